/* SPDX-License-Identifier: MIT */
/* Texts about the settings for people and programs, printed from the table. contrib/settings.sh
 * writes all but --help into files; a test compares them. */
#include "config.h"

#include "server/daemon/conf/conf_print.h"

#include <string.h>

#include "protocol/json.h"
#include "server/model/card/card_schema.h"
#include "server/process/manual.h"
#include "server/process/setting.h"

/* ---- --help ---------------------------------------------------------------------------------- */

static void print_help_of(const struct setting *setting, struct buf *out)
{
    struct buf name;
    buf_init(&name, 64);
    setting_print_option(setting, &name);
    if (setting->set && *setting->value) {
        buf_printf(&name, " %s", setting->value);
    }
    buf_printf(out, "  --%-24.*s %s", SPAN_FMT(buf_span(&name)), setting->doc);
    if (!setting->set || setting->preset_text) {
        buf_add_str(out, " (");
        setting_print_preset(setting, out);
        buf_add_char(out, ')');
    }
    buf_add_char(out, '\n');
    buf_fini(&name);
}

static void print_help_of_numbers(bool are_of_model, struct buf *out)
{
    for (uint32_t i = 0; i < setting_count; i++) {
        if (!settings[i].set && settings[i].is_of_model == are_of_model) {
            print_help_of(&settings[i], out);
        }
    }
}

void conf_print_help(struct buf *out)
{
    buf_add_str(out, "usage: pted [OPTION]... [FILE.pte]...\n"
                     "Serves ExecuTorch programs over HTTP (Open Inference Protocol v2).\n\n"
                     "Examples:\n"
                     "  pted digits.pte      # then curl http://127.0.0.1:8000/v2/models/digits\n"
                     "  pted --models DIR --watch --listen 0.0.0.0:8000\n"
                     "  pted --config pted.json\n\n"
                     "Options, with their defaults:\n");
    for (uint32_t i = 0; i < setting_count; i++) {
        if (settings[i].set) {
            print_help_of(&settings[i], out);
        }
    }
    buf_add_str(out,
                "  --check-config             report what is wrong with the settings, and exit\n"
                "  --help                     this text\n"
                "  --version                  version, processor and libraries\n\n"
                "Limits and times:\n");
    print_help_of_numbers(false, out);
    buf_add_str(out, "\nOf each model; of one alone with --set, as --set digits:max-batch=8:\n");
    print_help_of_numbers(true, out);
    buf_add_str(
        out,
        "\nThe variable PTED_BODY_BYTES_MAX and the member \"body_bytes_max\" of the document say\n"
        "the same as --body-bytes-max, and so on; an option comes before a variable, and a\n"
        "variable before the document.\n"
        "SIGTERM or SIGINT: finish the open requests and exit 0; a second one: exit now.\n"
        "SIGHUP: open the log files again, read settings of models, tokens and certificates,\n"
        "look for changed files.\n"
        "SIGUSR1: log what is in flight.\n"
        "Exit status: 0 asked to stop, 64 usage, 65 bad model file, 66 no such file\n"
        "or device, 69 unsupported, 70 internal, 71 system, 77 no permission, 78 bad settings.\n");
}

/* ---- pted(8) --------------------------------------------------------------------------------- */

void conf_print_manual(struct buf *out)
{
    for (uint32_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &settings[i];
        if (setting->set) {
            continue;
        }
        buf_add_str(out, ".It Fl -");
        setting_print_option(setting, out);
        buf_add_str(out, setting->type == OPTION_PRECISION ? " Ar MODE Pq " : " Ar N Pq ");
        setting_print_preset(setting, out);
        buf_add_char(out, '\n');
        manual_print_sentence(setting->doc, out);
        if (setting->type != OPTION_PRECISION) {
            buf_add_str(out, "From ");
            setting_print_number(setting, setting->min, out);
            buf_add_str(out, " to ");
            setting_print_number(setting, setting->max, out);
            buf_add_str(out, ".\n");
        }
    }
}

/* ---- the schema ------------------------------------------------------------------------------ */

static void print_members_of_model(struct buf *out)
{
    for (uint32_t i = 0; i < setting_of_model_count; i++) {
        const struct setting_of_model *member = &settings_of_model[i];
        buf_printf(out, "%s        \"%s\": {\n          \"description\": ", i ? ",\n" : "",
                   member->name);
        json_print_string(out, span_str(member->doc));
        buf_add_str(out, ",\n          ");
        if (strcmp(member->name, "labels") == 0) { /* of a card, too */
            buf_add_str(out, "\"$ref\": \"#/$defs/labels\"");
        } else {
            setting_print_type(member->type, NULL, 0, 0, out);
        }
        buf_printf(out, ",\n          \"examples\": [%s]\n        }", member->example);
    }
    for (uint32_t i = 0; i < setting_count; i++) {
        if (settings[i].is_of_model) {
            buf_printf(out, ",\n        \"%s\": {\"$ref\": \"#/properties/%s\"}",
                       settings[i].member, settings[i].member);
        }
    }
    card_schema_print_members("        ", out);
}

/* server/model/pipelines.h has the rules of pipelines. */
static const char pipeline_schema[] =
    "    \"reference\": {\"type\": [\"string\", \"integer\"], \"minimum\": 0},\n"
    "    \"output\": {\n"
    "      \"type\": [\"string\", \"integer\", \"array\"], \"minimum\": 0,\n"
    "      \"items\": {\"$ref\": \"#/$defs/reference\"}\n"
    "    },\n"
    "    \"source\": {\n"
    "      \"oneOf\": [\n"
    "        {\"type\": \"null\"},\n"
    "        {\n"
    "          \"type\": \"object\", \"properties\": {\"input\": {\"$ref\": "
    "\"#/$defs/reference\"}},\n"
    "          \"required\": [\"input\"], \"additionalProperties\": false\n"
    "        },\n"
    "        {\n"
    "          \"type\": \"object\",\n"
    "          \"properties\": {\n"
    "            \"from\": {\"$ref\": \"#/$defs/reference\"},\n"
    "            \"output\": {\"$ref\": \"#/$defs/output\"}\n"
    "          },\n"
    "          \"required\": [\"from\"], \"additionalProperties\": false\n"
    "        }\n"
    "      ]\n"
    "    },\n"
    "    \"step\": {\n"
    "      \"type\": \"object\",\n"
    "      \"properties\": {\n"
    "        \"name\": {\"type\": \"string\"},\n"
    "        \"model\": {\"type\": \"string\"},\n"
    "        \"method\": {\"type\": \"string\"},\n"
    "        \"version\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 4294967295},\n"
    "        \"inputs\": {\n"
    "          \"type\": [\"array\", \"object\"],\n"
    "          \"items\": {\"$ref\": \"#/$defs/source\"},\n"
    "          \"additionalProperties\": {\"$ref\": \"#/$defs/source\"}\n"
    "        }\n"
    "      },\n"
    "      \"required\": [\"model\", \"inputs\"],\n"
    "      \"additionalProperties\": false\n"
    "    },\n"
    "    \"result\": {\n"
    "      \"type\": \"object\",\n"
    "      \"properties\": {\n"
    "        \"name\": {\"type\": \"string\"},\n"
    "        \"from\": {\"$ref\": \"#/$defs/reference\"},\n"
    "        \"output\": {\"$ref\": \"#/$defs/output\"}\n"
    "      },\n"
    "      \"required\": [\"from\"],\n"
    "      \"additionalProperties\": false\n"
    "    },\n"
    "    \"pipeline\": {\n"
    "      \"type\": \"object\",\n"
    "      \"properties\": {\n"
    "        \"description\": {}, \"cases\": {}, \"tolerance\": {}, \"et_check\": {},\n"
    "        \"inputs\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}},\n"
    "        \"steps\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/step\"}},\n"
    "        \"outputs\": {\n"
    "          \"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/$defs/result\"}\n"
    "        }\n"
    "      },\n"
    "      \"required\": [\"steps\"],\n"
    "      \"additionalProperties\": false\n"
    "    }";

void conf_print_schema(struct buf *out)
{
    buf_add_str(
        out, "{\n"
             "  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
             "  \"title\": \"pted.json\",\n"
             "  \"description\": \"Settings of pted, a server of ExecuTorch models\",\n"
             "  \"type\": \"object\",\n"
             "  \"properties\": {\n"
             "    \"$schema\": {\"type\": \"string\"},\n"
             "    \"models\": {\n"
             "      \"description\": \"models by name: the path, or an object\",\n"
             "      \"type\": \"object\",\n"
             "      \"propertyNames\": {\"pattern\": \"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$\"},\n"
             "      \"additionalProperties\": {\"$ref\": \"#/$defs/model\"}\n"
             "    },\n"
             "    \"pipelines\": {\n"
             "      \"description\": \"pipelines by name\",\n"
             "      \"type\": \"object\",\n"
             "      \"additionalProperties\": {\"$ref\": \"#/$defs/pipeline\"}\n"
             "    }");
    for (uint32_t i = 0; i < setting_count; i++) {
        if (settings[i].member && settings[i].type != OPTION_MODELS) {
            buf_add_str(out, ",\n");
            setting_print_schema("    ", &settings[i], out);
        }
    }
    buf_add_str(out, "\n  },\n"
                     "  \"additionalProperties\": false,\n"
                     "  \"$defs\": {\n"
                     "    \"model\": {\n"
                     "      \"type\": [\"string\", \"object\"],\n"
                     "      \"minLength\": 1,\n"
                     "      \"properties\": {\n");
    print_members_of_model(out);
    buf_add_str(out, "\n      },\n"
                     "      \"additionalProperties\": false\n"
                     "    },\n");
    buf_add_str(out, pipeline_schema);
    buf_add_str(out, ",\n");
    card_schema_print_defs(out);
    buf_add_str(out, "\n  }\n}\n");
}

/* ---- the document ---------------------------------------------------------------------------- */

static void print_commented(const struct setting *setting, struct buf *out)
{
    buf_printf(out, "    // %s", setting->doc);
    if (setting->preset_text) {
        buf_printf(out, "; default: %s", setting->preset_text);
    }
    buf_printf(out, "\n    // \"%s\": %s,\n\n", setting->member, setting->example);
}

static void print_preset(const struct setting *setting, const char *before, struct buf *out)
{
    buf_printf(out, "%s    // %s", before, setting->doc);
    if (setting->type <= OPTION_COUNT) {
        buf_add_str(out, "; ");
        setting_print_number(setting, setting->min, out);
        buf_add_str(out, " to ");
        setting_print_number(setting, setting->max, out);
    }
    buf_printf(out, "\n    \"%s\": ", setting->member);
    (void)setting_print_json_preset(setting, out);
}

static bool has_json_preset(const struct setting *setting)
{
    struct buf text;
    buf_init(&text, 64);
    bool has = setting_print_json_preset(setting, &text);
    buf_fini(&text);
    return has;
}

void conf_print_document(struct buf *out)
{
    const char *before = "";
    buf_add_str(
        out,
        "// Settings of pted, with their defaults; see \"man pted\". Relative paths are\n"
        "// relative to the folder of this file.\n"
        "{\n"
        "    // Models by name: the path of the program, or an object that may have\n"
        "    // limits of the model, too. Without a path it is about a model that comes\n"
        "    // from a folder or another source.\n"
        "    // \"models\": {\"digits\": \"digits.pte\",\n"
        "    //            \"scorer\": {\"path\": \"scorer.pte\", \"max_batch\": 8}},\n\n"
        "    // Pipelines by name.\n"
        "    // \"pipelines\": {\"twice\": {\n"
        "    //     \"steps\": [{\"model\": \"digits\", \"inputs\": [{\"input\": 0}]}]}},\n\n");
    for (uint32_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &settings[i];
        if (setting->member && setting->type != OPTION_MODELS && !has_json_preset(setting)) {
            print_commented(setting, out);
        }
    }
    for (uint32_t i = 0; i < setting_count; i++) {
        if (settings[i].member && has_json_preset(&settings[i])) {
            print_preset(&settings[i], before, out);
            before = ",\n\n";
        }
    }
    buf_add_str(out, "\n}\n");
}
