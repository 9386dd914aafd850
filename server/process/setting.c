/* SPDX-License-Identifier: MIT */
/* The table of settings, and the functions that take their values. */
#include "config.h"

#include "server/process/setting.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "server/process/fetch.h"
#include "server/process/options_priv.h"

/* ---- lists ----------------------------------------------------------------------------------- */

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

/* Texts of a source take the place of the texts of sources before it. */
static enum status add_text(struct options *options, struct option_texts *texts, const char *value,
                            struct error *err)
{
    if (texts->source != options->source) {
        texts->source = options->source;
        texts->count = 0;
    }
    return add_value(texts->items, &texts->count, OPTIONS_TEXTS_MAX, value, err);
}

static enum status set_listen(struct options *options, const char *value, struct error *err)
{
    return add_text(options, &options->listen, value, err);
}

static enum status set_admin_listen(struct options *options, const char *value, struct error *err)
{
    return add_text(options, &options->admin_listen, value, err);
}

static enum status set_health_listen(struct options *options, const char *value, struct error *err)
{
    return add_text(options, &options->health_listen, value, err);
}

static enum status set_tls_cert(struct options *options, const char *value, struct error *err)
{
    (void)err; /* tls_read() reports whether the files are good, here and below */
    options->tls_cert = value;
    return ST_OK;
}

static enum status set_tls_key(struct options *options, const char *value, struct error *err)
{
    (void)err;
    options->tls_key = value;
    return ST_OK;
}

static enum status set_tls_client_ca(struct options *options, const char *value, struct error *err)
{
    (void)err;
    options->tls_client_ca = value;
    return ST_OK;
}

static enum status set_tls_min_version(struct options *options, const char *value,
                                       struct error *err)
{
    (void)err; /* setting_set() has compared it with the table */
    options->tls_needs_1_3 = strcmp(value, "1.3") == 0;
    return ST_OK;
}

static enum status set_token_file(struct options *options, const char *value, struct error *err)
{
    (void)err; /* access_read() reports whether it can be read */
    options->token_file = value;
    return ST_OK;
}

static enum status set_proxy(struct options *options, const char *value, struct error *err)
{
    return add_text(options, &options->proxies, value, err);
}

static enum status set_proxy_says(struct options *options, const char *value, struct error *err)
{
    (void)err; /* setting_set() has compared it with the table, here and below */
    options->proxy_says = strcmp(value, "forwarded") == 0        ? OPTIONS_FORWARDED
                          : strcmp(value, "proxy-protocol") == 0 ? OPTIONS_PROXY_PROTOCOL
                                                                 : OPTIONS_X_FORWARDED_FOR;
    return ST_OK;
}

static enum status set_unix_clients(struct options *options, const char *value, struct error *err)
{
    (void)err;
    options->unix_is_one_client = strcmp(value, "one") == 0;
    return ST_OK;
}

/* "https://host:port", as browsers send it. */
static enum status set_cors_origin(struct options *options, const char *value, struct error *err)
{
    const char *host = strstr(value, "://");
    bool is_origin = host && host != value && host[3] && !strpbrk(host + 3, "/ *,");
    if (strcmp(value, "*") != 0 && !is_origin) {
        return error_set(err, ST_INVALID, "expected https://HOST[:PORT] or *, got '%.64s'", value);
    }
    return add_text(options, &options->cors_origins, value, err);
}

static enum status set_models(struct options *options, const char *value, struct error *err)
{
    return add_value(options->folders, &options->folder_count, OPTIONS_FOLDERS_MAX, value, err);
}

static enum status set_pipeline(struct options *options, const char *value, struct error *err)
{
    return add_value(options->pipelines, &options->pipeline_count, OPTIONS_PIPELINES_MAX, value,
                     err);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* "NAME=FILE" */
static enum status split(const struct options *options, const char *value, const char *option,
                         const char *variable, struct option_model *out_model, struct error *err)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1]) {
        return error_set(err, ST_INVALID, "expected NAME=FILE, got '%.64s'", value);
    }
    bool is_variable = options->source == OPTIONS_FROM_VARIABLES;
    *out_model = (struct option_model){.name = value,
                                       .name_len = (uint32_t)(equals - value),
                                       .path = equals + 1,
                                       .label = is_variable ? variable : option};
    return ST_OK;
}

static enum status set_model(struct options *options, const char *value, struct error *err)
{
    struct option_model model = {0};
    TRY(split(options, value, "--model ", "PTED_MODEL ", &model, err));
    return options_add_model(options, model, err);
}

static enum status set_data(struct options *options, const char *value, struct error *err)
{
    struct option_model data = {0};
    TRY(split(options, value, "--data ", "PTED_DATA ", &data, err));
    return options_add_data(options, data, err);
}

static enum status set_labels(struct options *options, const char *value, struct error *err)
{
    struct option_model labels = {0};
    TRY(split(options, value, "--labels ", "PTED_LABELS ", &labels, err));
    return options_add_labels(options, labels, err);
}

static enum status set_card(struct options *options, const char *value, struct error *err)
{
    struct option_model card = {0};
    TRY(split(options, value, "--card ", "PTED_CARD ", &card, err));
    return options_add_card(options, card, err);
}

static enum status set_tokenizer(struct options *options, const char *value, struct error *err)
{
    struct option_model tokenizer = {0};
    TRY(split(options, value, "--tokenizer ", "PTED_TOKENIZER ", &tokenizer, err));
    return options_add_tokenizer(options, tokenizer, err);
}

static enum status set_versions(struct options *options, const char *value, struct error *err)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value) {
        return error_set(err, ST_INVALID, "expected NAME=LIST, got '%.64s'", value);
    }
    bool is_variable = options->source == OPTIONS_FROM_VARIABLES;
    const struct option_model versions = {.name = value,
                                          .name_len = (uint32_t)(equals - value),
                                          .path = equals + 1,
                                          .label = is_variable ? "PTED_VERSIONS " : "--versions "};
    return options_add_versions(options, versions, err);
}

enum status options_add_setting(struct options *options, struct option_setting named,
                                const struct setting *setting, const char *value, struct error *err)
{
    must(setting->is_of_model && !setting->set);
    if (options->setting_count == OPTIONS_SETTINGS_MAX) {
        return error_set(err, ST_INVALID, "given more than %d times", OPTIONS_SETTINGS_MAX);
    }
    named.offset = setting->offset;
    named.is_of_file = setting->offset == offsetof(struct params, precision) ||
                       setting->offset == offsetof(struct params, version_count_max);
    TRY(setting_parse(setting, value, &named.value, err));
    options->settings[options->setting_count++] = named;
    return ST_OK;
}

/* "NAME:PARAM=VALUE" */
static enum status set_set(struct options *options, const char *value, struct error *err)
{
    const char *colon = strchr(value, ':');
    const char *equals = colon ? strchr(colon, '=') : NULL;
    if (!equals || colon == value) {
        return error_set(err, ST_INVALID, "expected NAME:PARAM=VALUE, got '%.64s'", value);
    }
    struct span name = span_of(colon + 1, (size_t)(equals - colon - 1));
    const struct setting *setting = setting_find(name);
    if (!setting || !setting->is_of_model) {
        char hint[SETTING_HINT_MAX];
        setting_hint(name, true, hint);
        return error_set(err, ST_INVALID, "a model has no setting '%.*s'%s", SPAN_SHORT(name),
                         hint);
    }
    bool is_variable = options->source == OPTIONS_FROM_VARIABLES;
    const struct option_setting named = {.name = value,
                                         .name_len = (uint32_t)(colon - value),
                                         .label = is_variable ? "PTED_SET " : "--set "};
    enum status status = options_add_setting(options, named, setting, equals + 1, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.*s: ", SPAN_SHORT(name));
}

void options_apply(const struct option_setting *setting, struct params *params)
{
    *(uint64_t *)(void *)((char *)params + setting->offset) = setting->value;
}

/* ---- single values --------------------------------------------------------------------------- */

static enum status set_config(struct options *options, const char *value, struct error *err)
{
    (void)err; /* opening it reports whether it can be read */
    options->config_file = value;
    return ST_OK;
}

static enum status set_watch(struct options *options, const char *value, struct error *err)
{
    unsigned number;
    TRY(options_parse_word(value, "true false", &number, err));
    options->watches = number == 0;
    return ST_OK;
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
    (void)err; /* setting_set() has compared it with the table */
    return options_parse_number(value, OPTION_COUNT, 0, UINT64_MAX, &options->workers, err);
}

static enum status set_log_file(struct options *options, const char *value, struct error *err)
{
    (void)err; /* log_open() reports whether it can be written */
    options->log_file = value;
    return ST_OK;
}

static enum status set_log_level(struct options *options, const char *value, struct error *err)
{
    return log_level_find(value, &options->log_level)
               ? ST_OK
               : error_set(err, ST_INTERNAL, "the log has no level '%.64s'", value);
}

static enum status set_log_requests(struct options *options, const char *value, struct error *err)
{
    (void)err; /* setting_set() has compared it with the table */
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
    return error_set(err, ST_INTERNAL, "the access log has no mode '%.64s'", value);
}

static enum status set_console(struct options *options, const char *value, struct error *err)
{
    (void)err; /* setting_set() has compared it with the table */
    options->has_no_console = strcmp(value, "off") == 0;
    return ST_OK;
}

static enum status set_shared_memory(struct options *options, const char *value, struct error *err)
{
    (void)err; /* setting_set() has compared it with the table */
    options->shared_memory = strcmp(value, "off") == 0    ? OPTIONS_SHARED_OFF
                             : strcmp(value, "unix") == 0 ? OPTIONS_SHARED_UNIX
                                                          : OPTIONS_SHARED_LOOPBACK;
    return ST_OK;
}

static enum status set_access_log_file(struct options *options, const char *value,
                                       struct error *err)
{
    (void)err; /* access_log_open() reports whether it can be written */
    options->access_log_file = value;
    return ST_OK;
}

static enum status take_url(const char *value, const char **out_url, struct error *err)
{
    if (strncmp(value, "http://", 7) != 0 && strncmp(value, "https://", 8) != 0) {
        return error_set(err, ST_INVALID, "expected http://... or https://..., got '%.64s'", value);
    }
    *out_url = value;
    return ST_OK;
}

static enum status set_cache_dir(struct options *options, const char *value, struct error *err)
{
    (void)err; /* the first file that comes there shows whether it can be written */
    options->cache_dir = value;
    return ST_OK;
}

static enum status set_packed_dir(struct options *options, const char *value, struct error *err)
{
    (void)err; /* the line of a model in the log says whether it can be used */
    options->packed_dir = value;
    return ST_OK;
}

static enum status set_hf_endpoint(struct options *options, const char *value, struct error *err)
{
    return take_url(value, &options->hf_endpoint, err);
}

static enum status set_s3_endpoint(struct options *options, const char *value, struct error *err)
{
    return take_url(value, &options->s3_endpoint, err);
}

static enum status set_otlp_endpoint(struct options *options, const char *value, struct error *err)
{
    return take_url(value, &options->otlp_endpoint, err);
}

static enum status set_otlp_service(struct options *options, const char *value, struct error *err)
{
    (void)err; /* any text will do */
    options->otlp_service = value;
    return ST_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define NUMBER(name, preset, min, max, unit, doc, is_of_model)                                     \
    {#name,                                                                                        \
     #name,                                                                                        \
     OPTION_##unit,                                                                                \
     preset,                                                                                       \
     min,                                                                                          \
     max,                                                                                          \
     NULL,                                                                                         \
     "N",                                                                                          \
     NULL,                                                                                         \
     NULL,                                                                                         \
     doc,                                                                                          \
     is_of_model,                                                                                  \
     offsetof(struct params, name),                                                                \
     NULL},

const struct setting settings[] = {
#define OPTION(name, member, type, min, max, words, value, preset, example, doc)                   \
    {#name, member, OPTION_##type, 0,   min,   max, words,                                         \
     value, preset, example,       doc, false, 0,   set_##name},
#define PARAM(name, preset, min, max, unit, doc) NUMBER(name, preset, min, max, unit, doc, false)
#define MODEL_PARAM(name, preset, min, max, unit, doc)                                             \
    NUMBER(name, preset, min, max, unit, doc, true)
#include "server/process/params.def"
#undef PARAM
};
const uint32_t setting_count = sizeof(settings) / sizeof(settings[0]);

const struct setting_of_model settings_of_model[] = {
#define MODEL_OPTION(name, type, example, doc)                                                     \
    {#name, OPTION_##type, example, doc, options_add_##name},
#define PARAM(...)
#include "server/process/params.def"
#undef PARAM
};
const uint32_t setting_of_model_count = sizeof(settings_of_model) / sizeof(settings_of_model[0]);

/* Names are written with underscores in C and with dashes on the command line. */
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

const struct setting *setting_find(struct span option)
{
    for (uint32_t i = 0; i < setting_count; i++) {
        if (name_matches(settings[i].name, option)) {
            return &settings[i];
        }
    }
    return NULL;
}

const struct setting *setting_find_member(const char *member)
{
    for (uint32_t i = 0; i < setting_count; i++) {
        if (settings[i].member && settings[i].type != OPTION_MODELS &&
            strcmp(settings[i].member, member) == 0) {
            return &settings[i];
        }
    }
    return NULL;
}

const struct setting *setting_find_of_model(const char *member)
{
    const struct setting *found = setting_find_member(member);
    return found && found->is_of_model ? found : NULL;
}

bool setting_is_of_card(const struct setting *setting)
{
    return setting->is_of_model && setting->offset != offsetof(struct params, version_count_max);
}

void options_init(struct options *options)
{
    *options = (struct options){.log_level = LOG_INFO};
    for (uint32_t i = 0; i < setting_count; i++) {
        if (!settings[i].set) {
            *(uint64_t *)(void *)((char *)&options->params + settings[i].offset) =
                settings[i].preset;
        }
    }
}

enum status setting_set(const struct setting *setting, struct options *options, const char *value,
                        struct error *err)
{
    uint64_t number;
    if (!setting->set) {
        TRY(setting_parse(setting, value, &number, err));
        *(uint64_t *)(void *)((char *)&options->params + setting->offset) = number;
        *(uint64_t *)(void *)((char *)&options->said + setting->offset) = 1;
        return ST_OK;
    }
    if (setting->type == OPTION_WORD) {
        unsigned ignored;
        TRY(options_parse_word(value, setting->words, &ignored, err));
    }
    if (setting->type == OPTION_COUNT) {
        TRY(options_parse_number(value, OPTION_COUNT, setting->min, setting->max, &number, err));
    }
    return setting->set(options, value, err);
}
