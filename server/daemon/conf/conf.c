/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/conf/conf.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/check.h"
#include "server/daemon/conf/conf_priv.h"
#include "server/http/address.h"
#include "server/http/proxies.h"
#include "server/model/card/beside.h"
#include "server/process/exit_status.h"
#include "server/process/fetch.h"
#include "server/process/log.h"
#include "server/process/model_name.h"
#include "server/process/setting.h"

#define REPORT_BYTES_MAX (4 << 20)
#define LINE_BYTES_MAX 8192
#define ESCAPE_FACTOR 4 /* log_escape() makes at most so many bytes of one */
#define DOCUMENT_BYTES_MAX (4 << 20)
#define DOCUMENT_VALUES_MAX (1 << 17)
#define ARENA_BYTES_MAX (16 << 20)
#define FOLDER_VARIABLE "CONFIGURATION_DIRECTORY" /* of systemd */

static const struct document_limits document_limits = {.bytes_max = DOCUMENT_BYTES_MAX,
                                                       .values_max = DOCUMENT_VALUES_MAX};

/* ---- the report ------------------------------------------------------------------------------ */

void conf_report_init(struct conf_report *report)
{
    *report = (struct conf_report){.exit_status = EX_OK};
    buf_init(&report->lines, REPORT_BYTES_MAX);
}

void conf_report_fini(struct conf_report *report)
{
    buf_fini(&report->lines);
}

/* Counts a problem. A value may have control characters; its line shows them as escapes. */
static void add_problem(struct conf_report *report, int exit_status, const struct buf *text)
{
    size_t max = ESCAPE_FACTOR * text->len;
    uint8_t *room = buf_reserve(&report->lines, max + 1);
    if (room) {
        size_t len = log_escape((char *)room, max, buf_span(text));
        room[len] = '\n';
        buf_commit(&report->lines, len + 1);
    }
    if (report->problem_count++ == 0) {
        report->exit_status = exit_status;
    }
}

static void complain(struct conf_report *report, int exit_status, const char *name,
                     const struct error *err)
{
    struct buf text;
    buf_init(&text, LINE_BYTES_MAX);
    buf_printf(&text, "pted: %s%s%s", name, *name ? ": " : "", err->text);
    add_problem(report, exit_status, &text);
    buf_fini(&text);
}

void conf_refuse(const char *path, const struct error *err, struct conf_report *report)
{
    bool is_said = err->code == ST_INVALID || err->code == ST_TOO_LARGE;
    struct buf text;
    buf_init(&text, LINE_BYTES_MAX);
    document_print_error(&text, path, err);
    add_problem(report, is_said ? EX_CONFIG : exit_status_of(err->code), &text);
    buf_fini(&text);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct conf *conf_new(struct conf_report *report)
{
    struct conf *config = calloc(1, sizeof(*config));
    if (!config) {
        struct error err;
        error_no_memory(&err, "the settings");
        complain(report, EX_OSERR, "", &err);
        return NULL;
    }
    config->magic = CONF_MAGIC;
    arena_init(&config->arena, ARENA_BYTES_MAX);
    options_init(&config->options);
    return config;
}

void conf_free(struct conf *config)
{
    if (!config) {
        return;
    }
    OBJ_CHECK(config, CONF_MAGIC);
    config->magic = 0;
    document_close(&config->document);
    arena_fini(&config->arena);
    free(config);
}

/* The configuration, if there was no problem. */
static struct conf *finish(struct conf *config, const struct conf_report *report)
{
    if (report->problem_count == 0) {
        return config;
    }
    conf_free(config);
    return NULL;
}

/* ---- the environment ------------------------------------------------------------------------- */

/* An empty variable is none: files of services and containers cannot always leave one out. */
static const char *find_variable(char *const *environment, const char *name)
{
    size_t len = strlen(name);
    for (char *const *at = environment; *at; at++) {
        if (strncmp(*at, name, len) == 0 && (*at)[len] == '=' && (*at)[len + 1]) {
            return *at + len + 1;
        }
    }
    return NULL;
}

static enum status set_variable(struct conf *config, const struct setting *setting,
                                const char *value, struct error *err)
{
    if (!option_is_list(setting->type)) {
        return setting_set(setting, &config->options, value, err);
    }
    while (*value) {
        size_t len = strcspn(value, ",");
        const char *item = arena_strdup(&config->arena, value, len);
        if (!item) {
            return arena_fail(&config->arena, "the environment", err);
        }
        TRY(setting_set(setting, &config->options, item, err));
        value += len + (value[len] != '\0');
    }
    return ST_OK;
}

static void read_environment(struct conf *config, char *const *environment,
                             struct conf_report *report)
{
    config->options.source = OPTIONS_FROM_VARIABLES;
    for (uint32_t i = 0; i < setting_count; i++) {
        char name[SETTING_VARIABLE_MAX];
        struct error err;
        setting_variable(&settings[i], name);
        const char *value = find_variable(environment, name);
        if (value && set_variable(config, &settings[i], value, &err) != ST_OK) {
            complain(report, EX_CONFIG, name, &err);
        }
    }
}

/* ---- the document ---------------------------------------------------------------------------- */

static void open_document(struct conf *config, struct conf_report *report)
{
    struct error err;
    const char *path = config->options.config_file;
    if (document_open(path, &document_limits, &config->document, &err) == ST_OK) {
        conf_read_document(config, report);
    } else {
        conf_refuse(path, &err, report);
    }
}

struct conf *conf_parse(const char *path, struct span text, struct conf_report *report)
{
    struct error err;
    struct conf *config = conf_new(report);
    if (!config) {
        return NULL;
    }
    config->options.config_file = path;
    if (document_parse(text, &document_limits, &config->document, &err) == ST_OK) {
        conf_read_document(config, report);
    } else {
        conf_refuse(path, &err, report);
    }
    return finish(config, report);
}

/* NULL: there is none, or no memory for its path. */
static const char *find_default(struct conf *config, char *const *environment,
                                struct conf_report *report)
{
    static const char file[] = "/pted.json";
    const char *folder = find_variable(environment, FOLDER_VARIABLE);
    if (!folder) {
        return NULL;
    }
    size_t len = strcspn(folder, ":");
    char *path = arena_alloc(&config->arena, len + sizeof(file));
    if (!path) {
        struct error err;
        arena_fail(&config->arena, "the path of pted.json", &err);
        complain(report, EX_OSERR, "", &err);
        return NULL;
    }
    memcpy(path, folder, len);
    memcpy(path + len, file, sizeof(file));
    return access(path, F_OK) == 0 || errno != ENOENT ? path : NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Checks what an address of good form needs beside it. */
static enum status verify_address(const struct options *options, const char *address,
                                  struct error *err)
{
    TRY(address_verify(address, err));
    return address_is_tls(address) && !options->tls_cert
               ? error_set(err, ST_INVALID, "%s: expected --tls-cert FILE beside it", address)
               : ST_OK;
}

static enum status verify_proxy(const struct options *options, const char *proxy, struct error *err)
{
    (void)options;
    return proxies_verify(proxy, err);
}

typedef enum status verify_f(const struct options *options, const char *text, struct error *err);

static void verify_texts(const struct options *options, const struct option_texts *texts,
                         const char *const names[OPTIONS_SOURCE_COUNT], verify_f *verify_text,
                         struct conf_report *report)
{
    for (uint32_t i = 0; i < texts->count; i++) {
        struct error err;
        if (verify_text(options, texts->items[i], &err) != ST_OK) {
            complain(report, texts->source == OPTIONS_FROM_ARGUMENTS ? EX_USAGE : EX_CONFIG,
                     names[texts->source], &err);
        }
    }
}

/* A folder is a model if one program lies in it, whatever the name that its path gives. */
static enum status verify_model(const struct option_model *model, struct error *err)
{
    char path[PATH_MAX];
    if (!fetch_is_url(model->path)) {
        TRY(beside_find_program(model->path, path, sizeof(path), err));
    }
    return model_name_verify(options_model_name(model), err);
}

/* Is the file there? Only a check asks: a daemon says it when it loads the model. */
static void verify_file(const struct option_model *model, struct conf_report *report)
{
    struct error err;
    if (model->path && !fetch_is_url(model->path) && access(model->path, R_OK) != 0) {
        struct span name = options_model_name(model);
        error_set(&err, ST_NOT_FOUND, "model '%.*s': %s: %s", SPAN_FMT(name), model->path,
                  strerror(errno));
        complain(report, EX_NOINPUT, "", &err);
    }
}

/* Checks that the table cannot express: forms of addresses and of names. */
static void verify(const struct options *options, struct conf_report *report)
{
    static const char *const listen[] = {"", "listeners", "PTED_LISTEN", "--listen"};
    static const char *const admin[] = {"", "admin_listeners", "PTED_ADMIN_LISTEN",
                                        "--admin-listen"};
    static const char *const health[] = {"", "health_listeners", "PTED_HEALTH_LISTEN",
                                         "--health-listen"};
    static const char *const proxy[] = {"", "proxies", "PTED_PROXY", "--proxy"};
    verify_texts(options, &options->listen, listen, verify_address, report);
    verify_texts(options, &options->admin_listen, admin, verify_address, report);
    verify_texts(options, &options->health_listen, health, verify_address, report);
    verify_texts(options, &options->proxies, proxy, verify_proxy, report);
    for (uint32_t i = 0; i < options->model_count; i++) {
        const struct option_model *model = &options->models[i];
        struct error err;
        if (options->action == OPTIONS_CHECK) {
            verify_file(model, report);
        }
        if (model->source != OPTIONS_FROM_DOCUMENT && verify_model(model, &err) != ST_OK) {
            bool is_argument = model->source == OPTIONS_FROM_ARGUMENTS;
            complain(report, is_argument ? EX_USAGE : EX_CONFIG, "", &err);
        }
    }
}

static void read_sources(struct conf *config, const struct conf_sources *sources,
                         struct conf_report *report)
{
    struct error err;
    struct options *options = &config->options;
    if (options_add_arguments(options, sources->argc, sources->argv, &err) != ST_OK) {
        complain(report, EX_USAGE, "", &err);
        return;
    }
    if (options->action == OPTIONS_HELP || options->action == OPTIONS_VERSION) {
        return;
    }
    const char *path = options->config_file ? options->config_file
                                            : find_variable(sources->environment, "PTED_CONFIG");
    path = path ? path : find_default(config, sources->environment, report);
    options_init(options); /* the arguments are the last source */
    options->config_file = path;
    if (path) {
        open_document(config, report);
    }
    read_environment(config, sources->environment, report);
    if (options_add_arguments(options, sources->argc, sources->argv, &err) != ST_OK) {
        complain(report, EX_USAGE, "", &err);
    }
    options->config_file = path;
    verify(options, report);
}

struct conf *conf_read(const struct conf_sources *sources, struct conf_report *report)
{
    struct conf *config = conf_new(report);
    if (!config) {
        return NULL;
    }
    read_sources(config, sources, report);
    return finish(config, report);
}

bool conf_has_models(const struct conf *config, const struct conf_sources *sources)
{
    OBJ_CHECK(config, CONF_MAGIC);
    const struct options *options = &config->options;
    return options->model_count > 0 || options->folder_count > 0 || options->config_file ||
           find_variable(sources->environment, FOLDER_VARIABLE);
}
