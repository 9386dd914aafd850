/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/reload.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "server/daemon/conf/conf.h"
#include "server/daemon/server.h"
#include "server/daemon/serving/changes.h"
#include "server/process/log.h"

#define NS_PER_US 1000
#define US_PER_S 1000000u

void reload_init(struct server *server, const struct conf_sources *sources)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    server->sources = sources;
}

/* A line of the log for each problem. */
static void log_problems(const struct conf_report *report)
{
    struct span rest = buf_span(&report->lines);
    while (rest.len > 0) {
        const uint8_t *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        log_line(LOG_ERROR, "SIGHUP: %.*s", (int)len, (const char *)rest.ptr);
        rest = span_of(rest.ptr + len + (end != NULL), rest.len - len - (end != NULL));
    }
}

/* systemd wants to know when reloading began (sd_notify(3)). */
static void notify_begin(struct server *server)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t us = (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
    notify_send(&server->notify, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, us);
}

/* The files beside the settings: files of TLS first, because tokens are in use once they are read.
 */
static enum status read_files(struct server *server, const struct options *options,
                              struct tls_context **out_context, struct error *err)
{
    if (server->tls.context) {
        TRY(tls_read(options, out_context, err));
    }
    enum status status = access_read(&server->access, options, err);
    if (status != ST_OK) {
        tls_context_free(*out_context);
        *out_context = NULL;
    }
    return status;
}

void reload_begin(struct server *server)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    struct conf_report report;
    struct conf *config = NULL;
    struct tls_context *context = NULL;
    struct error err;
    notify_begin(server);
    if (server->sources) {
        conf_report_init(&report);
        config = conf_read(server->sources, &report);
        log_problems(&report);
        conf_report_fini(&report);
    }
    if (config && read_files(server, &config->options, &context, &err) != ST_OK) {
        log_line(LOG_ERROR, "SIGHUP: %s", err.text);
        conf_free(config);
        config = NULL;
    }
    tls_use(server, context);
    if (server->sources && !config) {
        log_line(LOG_ERROR, "SIGHUP: the settings are refused; the old ones stay in use");
    }
    log_line(LOG_NOTICE, "SIGHUP: looking for changed models");
    changes_reload(server, config);
}

/* ---- settings that a reload does not change -------------------------------------------------- */

static void report_setting(const char *name, bool is_same)
{
    if (!is_same) {
        log_line(LOG_WARNING, "SIGHUP: %s: what has changed takes effect at the next start", name);
    }
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool are_same_texts(const struct option_texts *a, const struct option_texts *b)
{
    bool are_same = a->count == b->count;
    for (uint32_t i = 0; are_same && i < a->count; i++) {
        are_same = is_same_text(a->items[i], b->items[i]);
    }
    return are_same;
}

static void report_others(const struct options *in_use, const struct options *fresh)
{
#define MODEL_PARAM(name, ...)
#define PARAM(name, ...) report_setting(#name, in_use->params.name == fresh->params.name);
#include "server/process/params.def"
#undef PARAM
    report_setting("listeners", are_same_texts(&in_use->listen, &fresh->listen));
    report_setting("admin_listeners", are_same_texts(&in_use->admin_listen, &fresh->admin_listen));
    report_setting("health_listeners",
                   are_same_texts(&in_use->health_listen, &fresh->health_listen));
    report_setting("tls_cert", (in_use->tls_cert != NULL) == (fresh->tls_cert != NULL));
    report_setting("cors_origins", are_same_texts(&in_use->cors_origins, &fresh->cors_origins));
    report_setting("device", is_same_text(in_use->device, fresh->device));
    report_setting("cpu", is_same_text(in_use->cpu_level, fresh->cpu_level));
    report_setting("workers", in_use->workers == fresh->workers);
    report_setting("watch", in_use->watches == fresh->watches);
    report_setting("log_file", is_same_text(in_use->log_file, fresh->log_file));
    report_setting("log_level", in_use->log_level == fresh->log_level);
    report_setting("log_requests", in_use->log_requests == fresh->log_requests);
    report_setting("access_log", in_use->access_log == fresh->access_log);
    report_setting("console", in_use->has_no_console == fresh->has_no_console);
    report_setting("shared_memory", in_use->shared_memory == fresh->shared_memory);
    report_setting("access_log_file",
                   is_same_text(in_use->access_log_file, fresh->access_log_file));
    report_setting("otlp_endpoint", is_same_text(in_use->otlp_endpoint, fresh->otlp_endpoint));
    report_setting("otlp_service", is_same_text(in_use->otlp_service, fresh->otlp_service));
}

void reload_adopt(struct server *server, struct conf *config)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    if (config) {
        report_others(server->options, &config->options);
        conf_free(server->config);
        server->config = config;
        server->model_options = &config->options;
        watch_look(server);
    }
    notify_send(&server->notify, "READY=1");
}

void reload_refuse(struct server *server, struct conf *config)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    conf_free(config);
    notify_send(&server->notify, "READY=1");
}

void reload_fini(struct server *server)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    conf_free(server->config);
    server->config = NULL;
}
