/* SPDX-License-Identifier: MIT */
/* Long options only, "--name value" or "--name=value"; an argument without a leading dash is a
 * model file. The first wrong argument ends the parse: nothing is guessed. */
#include "config.h"

#include "server/process/options.h"

#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "base/precision.h"
#include "server/process/args.h"

struct param_info {
    const char *name;
    size_t offset; /* in struct params */
    uint64_t preset, min, max;
    enum option_unit unit;
    const char *doc;
    bool is_of_model; /* may be set for one model */
};

static const struct param_info param_infos[] = {
#define PARAM(name, preset, min, max, unit, doc)                                                   \
    {#name, offsetof(struct params, name), preset, min, max, OPTION_##unit, doc, false},
#define MODEL_PARAM(name, preset, min, max, unit, doc)                                             \
    {#name, offsetof(struct params, name), preset, min, max, OPTION_##unit, doc, true},
#include "server/process/params.def"
#undef PARAM
};

#define PARAM_COUNT (sizeof(param_infos) / sizeof(param_infos[0]))

static uint64_t *param_at(struct params *params, const struct param_info *info)
{
    return (uint64_t *)(void *)((char *)params + info->offset);
}

/* ---- numbers ------------------------------------------------------------------------------------
 */

struct suffix {
    const char *text;
    uint64_t factor;
};

static const struct suffix byte_suffixes[] = {
    {"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {NULL, 0}};
static const struct suffix ms_suffixes[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {NULL, 0}};
static const struct suffix count_suffixes[] = {{"", 1}, {NULL, 0}};

static const struct suffix *unit_suffixes(enum option_unit unit)
{
    return unit == OPTION_BYTES ? byte_suffixes : unit == OPTION_MS ? ms_suffixes : count_suffixes;
}

static const char *unit_example(enum option_unit unit)
{
    return unit == OPTION_BYTES ? "a size such as 65536 or 64M"
           : unit == OPTION_MS  ? "a time such as 500ms or 10s"
                                : "a number";
}

enum status options_parse_number(const char *text, enum option_unit unit, uint64_t min,
                                 uint64_t max, uint64_t *out_value, struct error *err)
{
    const char *p = text;
    uint64_t value = 0;
    bool fits = true;
    for (; *p >= '0' && *p <= '9'; p++) {
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    }
    const struct suffix *suffix = unit_suffixes(unit);
    while (suffix->text && strcmp(suffix->text, p) != 0) {
        suffix++;
    }
    if (p == text || !suffix->text) {
        return error_set(err, ST_INVALID, "expected %s, got '%s'", unit_example(unit), text);
    }
    fits = fits && !__builtin_mul_overflow(value, suffix->factor, &value);
    if (!fits || value < min || value > max) {
        const char *name = unit == OPTION_BYTES ? " bytes" : unit == OPTION_MS ? " ms" : "";
        return error_set(err, ST_INVALID, "expected %llu to %llu%s, got '%s'",
                         (unsigned long long)min, (unsigned long long)max, name, text);
    }
    *out_value = value;
    return ST_OK;
}

enum status options_parse_precision(const char *text, enum precision *out_precision,
                                    struct error *err)
{
    if (!precision_find(span_str(text), out_precision)) {
        return error_set(err, ST_INVALID, "expected exact, fast or bf16, got '%s'", text);
    }
    return ST_OK;
}

static enum status parse_param(const struct param_info *info, const char *text, uint64_t *out_value,
                               struct error *err)
{
    enum precision precision;
    if (info->unit != OPTION_PRECISION) {
        return options_parse_number(text, info->unit, info->min, info->max, out_value, err);
    }
    TRY(options_parse_precision(text, &precision, err));
    *out_value = precision;
    return ST_OK;
}

/* ---- options that are not in params.def ------------------------------------------------------ */

typedef enum status option_set_f(struct options *options, const char *value, struct error *err);

/* Appends to |values|, which has room for |max|. */
static enum status add_value(const char **values, uint32_t *count, uint32_t max, const char *value,
                             struct error *err)
{
    if (*count == max) {
        return error_set(err, ST_INVALID, "given more than %u times", max);
    }
    values[(*count)++] = value;
    return ST_OK;
}

static enum status set_listen(struct options *options, const char *value, struct error *err)
{
    return add_value(options->listen, &options->listen_count, OPTIONS_LISTEN_MAX, value, err);
}

static enum status set_admin_listen(struct options *options, const char *value, struct error *err)
{
    return add_value(options->admin_listen, &options->admin_listen_count, OPTIONS_LISTEN_MAX, value,
                     err);
}

static enum status set_watch(struct options *options, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    options->watches = true;
    return ST_OK;
}

static enum status add_model(struct options *options, struct option_model model, struct error *err)
{
    if (options->model_count == OPTIONS_MODELS_MAX) {
        return error_set(err, ST_INVALID, "more than %d models; use --models DIR",
                         OPTIONS_MODELS_MAX);
    }
    options->models[options->model_count++] = model;
    return ST_OK;
}

/* "NAME=FILE" */
static enum status split(const char *value, struct option_model *out_model, struct error *err)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1]) {
        return error_set(err, ST_INVALID, "expected NAME=FILE, got '%s'", value);
    }
    *out_model = (struct option_model){value, (uint32_t)(equals - value), equals + 1};
    return ST_OK;
}

static enum status set_model(struct options *options, const char *value, struct error *err)
{
    struct option_model model = {0};
    TRY(split(value, &model, err));
    return add_model(options, model, err);
}

static enum status set_data(struct options *options, const char *value, struct error *err)
{
    struct option_model data = {0};
    TRY(split(value, &data, err));
    if (options->data_count == OPTIONS_DATA_MAX) {
        return error_set(err, ST_INVALID, "given more than %d times", OPTIONS_DATA_MAX);
    }
    options->data[options->data_count++] = data;
    return ST_OK;
}

static enum status set_pipeline(struct options *options, const char *value, struct error *err)
{
    return add_value(options->pipelines, &options->pipeline_count, OPTIONS_PIPELINES_MAX, value,
                     err);
}

static const struct param_info *find_param(struct span name);

/* "NAME:PARAM=VALUE" */
static enum status set_setting(struct options *options, const char *value, struct error *err)
{
    const char *colon = strchr(value, ':');
    const char *equals = colon ? strchr(colon, '=') : NULL;
    if (!equals || colon == value) {
        return error_set(err, ST_INVALID, "expected NAME:PARAM=VALUE, got '%s'", value);
    }
    struct span name = span_of(colon + 1, (size_t)(equals - colon - 1));
    const struct param_info *info = find_param(name);
    if (!info || !info->is_of_model) {
        return error_set(err, ST_INVALID, "a model has no parameter '%.*s'", SPAN_FMT(name));
    }
    if (options->setting_count == OPTIONS_SETTINGS_MAX) {
        return error_set(err, ST_INVALID, "given more than %d times", OPTIONS_SETTINGS_MAX);
    }
    struct option_setting *setting = &options->settings[options->setting_count++];
    *setting = (struct option_setting){
        .name = value,
        .name_len = (uint32_t)(colon - value),
        .is_of_file = info->offset == offsetof(struct params, precision) ||
                      info->offset == offsetof(struct params, version_count_max),
        .offset = info->offset,
    };
    enum status status = parse_param(info, equals + 1, &setting->value, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.*s: ", SPAN_FMT(name));
}

void options_apply(const struct option_setting *setting, struct params *params)
{
    *(uint64_t *)(void *)((char *)params + setting->offset) = setting->value;
}

static enum status set_models(struct options *options, const char *value, struct error *err)
{
    return add_value(options->folders, &options->folder_count, OPTIONS_FOLDERS_MAX, value, err);
}

static enum status set_cpu(struct options *options, const char *value, struct error *err)
{
    (void)err; /* the device knows its levels and refuses others */
    options->cpu_level = value;
    return ST_OK;
}

static enum status set_device(struct options *options, const char *value, struct error *err)
{
    (void)err; /* the drivers know their devices and refuse others */
    options->device = value;
    return ST_OK;
}

static enum status set_workers(struct options *options, const char *value, struct error *err)
{
    return options_parse_number(value, OPTION_COUNT, 1, 1024, &options->workers, err);
}

static enum status set_log_file(struct options *options, const char *value, struct error *err)
{
    (void)err; /* log_open() reports whether it can be written */
    options->log_file = value;
    return ST_OK;
}

static enum status set_log_level(struct options *options, const char *value, struct error *err)
{
    if (!log_level_find(value, &options->log_level)) {
        return error_set(err, ST_INVALID,
                         "expected error, warning, notice, info or debug, got '%s'", value);
    }
    return ST_OK;
}

static enum status set_log_requests(struct options *options, const char *value, struct error *err)
{
    if (strcmp(value, "errors") != 0 && strcmp(value, "all") != 0) {
        return error_set(err, ST_INVALID, "expected errors or all, got '%s'", value);
    }
    options->log_requests = strcmp(value, "all") == 0 ? OPTIONS_LOG_ALL : OPTIONS_LOG_ERRORS;
    return ST_OK;
}

static enum status set_access_log(struct options *options, const char *value, struct error *err)
{
    static const char *const words[] = {
        [OPTIONS_ACCESS_OFF] = "off",
        [OPTIONS_ACCESS_ERRORS] = "errors",
        [OPTIONS_ACCESS_SAMPLED] = "sampled",
        [OPTIONS_ACCESS_ALL] = "all",
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(value, words[i]) == 0) {
            options->access_log = (enum options_access_log)i;
            return ST_OK;
        }
    }
    return error_set(err, ST_INVALID, "expected off, errors, sampled or all, got '%s'", value);
}

static enum status set_access_log_file(struct options *options, const char *value,
                                       struct error *err)
{
    (void)err; /* access_log_open() reports whether it can be written */
    options->access_log_file = value;
    return ST_OK;
}

struct option_info {
    const char *name, *value, *doc; /* |value| is "" for an option without one */
    option_set_f *set;
};

static const struct option_info option_infos[] = {
    {"listen", "ADDR", "IP:PORT, [IPV6]:PORT, NAME:PORT, unix:PATH; repeatable (127.0.0.1:8000)",
     set_listen},
    {"admin-listen", "ADDR", "likewise, for requests that load and unload models; repeatable",
     set_admin_listen},
    {"model", "NAME=FILE", "serve FILE as NAME; repeatable", set_model},
    {"models", "DIR", "serve its NAME.pte, NAME/model.pte, NAME/VERSION/model.pte; repeatable",
     set_models},
    {"watch", "", "load and unload models when files in those folders change", set_watch},
    {"data", "NAME=FILE", "weights of NAME are in FILE.ptd; repeatable (those beside the program)",
     set_data},
    {"pipeline", "FILE", "chains of models in FILE.json, each served as a model; repeatable",
     set_pipeline},
    {"set", "NAME:PARAM=N", "one of the limits of a model below, for the model NAME; repeatable",
     set_setting},
    {"device", "NAME", "one of `pte devices`, or auto: a GPU if there is one (cpu)", set_device},
    {"workers", "N", "threads that compute (as many as the process may use)", set_workers},
    {"cpu", "LEVEL", "highest instruction set: generic, avx2, avx512, ... (the best there is)",
     set_cpu},
    {"log-level", "LEVEL", "error, warning, notice, info or debug (info)", set_log_level},
    {"log-requests", "WHICH", "errors, or all: a line for each request at its end (errors)",
     set_log_requests},
    {"access-log", "WHICH", "a JSON line for requests: off, errors, sampled or all (off)",
     set_access_log},
    {"access-log-file", "FILE", "append these lines to FILE, which SIGHUP opens again (stderr)",
     set_access_log_file},
    {"log-file", "FILE", "append the log to FILE, which SIGHUP opens again (stderr)", set_log_file},
};

#define OPTION_COUNT_OWN (sizeof(option_infos) / sizeof(option_infos[0]))

/* ---- parsing ------------------------------------------------------------------------------------
 */

/* Parameter names are written with underscores in C and with dashes on the command line. */
static bool name_matches(const char *c_name, struct span name)
{
    if (strlen(c_name) != name.len) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        char want = c_name[i] == '_' ? '-' : c_name[i];
        if (want != (char)name.ptr[i]) {
            return false;
        }
    }
    return true;
}

static const struct param_info *find_param(struct span name)
{
    for (size_t i = 0; i < PARAM_COUNT; i++) {
        if (name_matches(param_infos[i].name, name)) {
            return &param_infos[i];
        }
    }
    return NULL;
}

/* Finds the parameter of a name: one of the two is not NULL, or neither if the name is unknown. */
struct found {
    const struct option_info *option;
    const struct param_info *param;
};

static struct found find(struct span name)
{
    struct found found = {NULL, find_param(name)};
    for (size_t i = 0; i < OPTION_COUNT_OWN; i++) {
        if (name_matches(option_infos[i].name, name)) {
            found.option = &option_infos[i];
        }
    }
    return found;
}

static enum status set(struct options *options, struct found found, const char *value,
                       struct error *err)
{
    if (found.option) {
        return found.option->set(options, value, err);
    }
    return parse_param(found.param, value, param_at(&options->params, found.param), err);
}

static enum status set_option(struct options *options, struct args *args, const struct arg *arg,
                              struct error *err)
{
    struct span name = arg->option;
    struct found found = {NULL, NULL};
    const char *value;
    if (name.len > 2 && memcmp(name.ptr, "--", 2) == 0) {
        found = find(span_of(name.ptr + 2, name.len - 2));
    }
    if (!found.option && !found.param) {
        return args_refuse(arg, err);
    }
    if (found.option && !*found.option->value) {
        return arg->value ? error_set(err, ST_INVALID, "%.*s: expected no value", SPAN_FMT(name))
                          : found.option->set(options, "", err);
    }
    TRY(args_value(args, arg, &value, err));
    enum status status = set(options, found, value, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.*s: ", SPAN_FMT(name));
}

enum status options_parse(int argc, char *const argv[], struct options *out_options,
                          struct error *err)
{
    struct options *options = out_options;
    struct args args = {.count = argc, .items = argv, .at = 1};
    *options = (struct options){.log_level = LOG_INFO};
    for (size_t i = 0; i < PARAM_COUNT; i++) {
        *param_at(&options->params, &param_infos[i]) = param_infos[i].preset;
    }
    for (struct arg arg; args_next(&args, &arg);) {
        if (arg.option.len == 0) {
            TRY(add_model(options, (struct option_model){.path = arg.text}, err));
        } else if (span_is(arg.option, "--help") || span_is(arg.option, "-h")) {
            options->action = OPTIONS_HELP;
            return ST_OK;
        } else if (span_is(arg.option, "--version") || span_is(arg.option, "-V")) {
            options->action = OPTIONS_VERSION;
            return ST_OK;
        } else {
            TRY(set_option(options, &args, &arg, err));
        }
    }
    return ST_OK;
}

/* ---- help ---------------------------------------------------------------------------------------
 */

/* The preset as it is written on the command line, in the largest unit that it is a multiple of. */
static void print_preset(struct buf *out, const struct param_info *info)
{
    uint64_t value = info->preset;
    if (info->unit == OPTION_PRECISION) {
        buf_add_str(out, precision_word((enum precision)value));
        return;
    }
    const char *suffix = "";
    const struct suffix *suffixes = unit_suffixes(info->unit);
    for (const struct suffix *s = suffixes; s->text; s++) {
        if (value % s->factor == 0 && (value >= s->factor || s->factor == 1)) {
            suffix = s->text;
        }
    }
    for (const struct suffix *s = suffixes; s->text; s++) {
        value = strcmp(s->text, suffix) == 0 ? value / s->factor : value;
    }
    buf_printf(out, "%llu%s", (unsigned long long)value, suffix);
}

static void print_param(struct buf *out, const struct param_info *info)
{
    char name[40];
    size_t len = strlen(info->name);
    for (size_t i = 0; i <= len && i < sizeof(name); i++) {
        name[i] = info->name[i] == '_' ? '-' : info->name[i];
    }
    buf_printf(out, "  --%-24s %s (", name, info->doc);
    print_preset(out, info);
    buf_add_str(out, ")\n");
}

static void print_params(struct buf *out, bool are_of_model)
{
    for (size_t i = 0; i < PARAM_COUNT; i++) {
        if (param_infos[i].is_of_model == are_of_model) {
            print_param(out, &param_infos[i]);
        }
    }
}

void options_print_help(struct buf *out)
{
    buf_add_str(out, "usage: pted [OPTION]... [FILE.pte]...\n"
                     "Serves ExecuTorch programs over HTTP (Open Inference Protocol v2).\n\n");
    for (size_t i = 0; i < OPTION_COUNT_OWN; i++) {
        char name[40];
        struct buf text;
        buf_init(&text, sizeof(name));
        buf_printf(&text, "%s %s", option_infos[i].name, option_infos[i].value);
        buf_printf(out, "  --%-24.*s %s\n", SPAN_FMT(buf_span(&text)), option_infos[i].doc);
        buf_fini(&text);
    }
    buf_add_str(out, "  --help                     this text\n"
                     "  --version                  version, processor and libraries\n\n"
                     "Limits and times:\n");
    print_params(out, false);
    buf_add_str(out, "\nOf a model, of one alone with --set NAME:PARAM=N:\n");
    print_params(out, true);
    buf_add_str(
        out, "\nSIGTERM or SIGINT: finish the open requests and exit 0; a second one: exit now.\n"
             "SIGHUP: open the log files again, and look for changed model files.\n"
             "SIGUSR1: log what is in flight.\n"
             "Exit status: 0 asked to stop, 64 usage, 65 bad model file, 66 no such file\n"
             "or device, 69 unsupported, 70 internal, 71 system, 77 no permission.\n");
}
