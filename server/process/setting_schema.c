/* SPDX-License-Identifier: MIT */
/* Settings as members of a JSON Schema: draft 2020-12. */
#include "config.h"

#include "base/precision.h"
#include "protocol/json.h"
#include "server/process/setting.h"

static void print_words(const char *words, struct buf *out)
{
    buf_add_str(out, "\"type\": \"string\", \"enum\": [\"");
    for (const char *c = words; *c; c++) {
        if (*c == ' ') {
            buf_add_str(out, "\", \"");
        } else {
            buf_add_char(out, *c);
        }
    }
    buf_add_str(out, "\"]");
}

static void print_precisions(struct buf *out)
{
    buf_add_str(out, "\"type\": \"string\", \"enum\": [");
    for (int i = 0; i < PRECISION_COUNT; i++) {
        buf_printf(out, "%s\"%s\"", i ? ", " : "", precision_word((enum precision)i));
    }
    buf_add_char(out, ']');
}

static void print_range(const char *type, uint64_t min, uint64_t max, struct buf *out)
{
    buf_printf(out, "\"type\": %s, \"minimum\": %llu, \"maximum\": %llu", type,
               (unsigned long long)min, (unsigned long long)max);
}

void setting_print_type(enum option_type type, const char *words, uint64_t min, uint64_t max,
                        struct buf *out)
{
    switch (type) {
    case OPTION_BYTES:
        print_range("[\"integer\", \"string\"]", min, max, out);
        buf_add_str(out, ", \"pattern\": \"^[0-9]+[KMG]?$\"");
        break;
    case OPTION_MS:
        buf_add_str(out, "\"type\": \"string\", \"pattern\": \"^(0|[0-9]+(ms|s|m|h))$\"");
        break;
    case OPTION_COUNT:
        print_range("\"integer\"", min, max, out);
        break;
    case OPTION_PRECISION:
        print_precisions(out);
        break;
    case OPTION_WORD:
        print_words(words, out);
        break;
    case OPTION_SWITCH:
        buf_add_str(out, "\"type\": \"boolean\"");
        break;
    case OPTION_TEXT:
    case OPTION_FILE:
        buf_add_str(out, "\"type\": \"string\", \"minLength\": 1");
        break;
    case OPTION_TEXTS:
    case OPTION_FILES:
        buf_add_str(out,
                    "\"type\": \"array\", \"items\": {\"type\": \"string\", \"minLength\": 1}");
        break;
    case OPTION_MODELS:
        buf_add_str(out, "\"type\": \"object\"");
        break;
    }
}

bool setting_print_json_preset(const struct setting *setting, struct buf *out)
{
    if (!setting->set) {
        struct buf text;
        buf_init(&text, 64);
        bool is_number = setting->type == OPTION_COUNT;
        setting_print_preset(setting, &text);
        buf_printf(out, is_number ? "%.*s" : "\"%.*s\"", SPAN_FMT(buf_span(&text)));
        buf_fini(&text);
        return true;
    }
    bool has_preset = setting->type == OPTION_WORD || setting->type == OPTION_SWITCH;
    if (has_preset) {
        buf_add_str(out, setting->example);
    }
    return has_preset;
}

void setting_print_schema(const char *indent, const struct setting *setting, struct buf *out)
{
    struct buf preset;
    buf_printf(out, "%s\"%s\": {\n%s  \"description\": ", indent, setting->member, indent);
    json_print_string(out, span_str(setting->doc));
    buf_printf(out, ",\n%s  ", indent);
    setting_print_type(setting->type, setting->words, setting->min, setting->max, out);
    buf_init(&preset, 64);
    if (setting_print_json_preset(setting, &preset)) {
        buf_printf(out, ",\n%s  \"default\": %.*s", indent, SPAN_FMT(buf_span(&preset)));
    } else {
        buf_printf(out, ",\n%s  \"examples\": [%s]", indent, setting->example);
    }
    buf_fini(&preset);
    buf_printf(out, "\n%s}", indent);
}
