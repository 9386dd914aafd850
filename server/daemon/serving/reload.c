/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/reload.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "server/daemon/conf/conf.h"
#include "server/daemon/serving/changes.h"
#include "server/daemon/serving/watch.h"
#include "server/process/log.h"
#include "server/process/notify.h"

#define NS_PER_US 1000
#define US_PER_S 1000000u

void reload_init(struct reload *reload, const struct options *options)
{
    *reload = (struct reload){.magic = RELOAD_MAGIC, .options = options, .model_options = options};
}

void reload_use_sources(struct reload *reload, const struct conf_sources *sources)
{
    OBJ_CHECK(reload, RELOAD_MAGIC);
    reload->sources = sources;
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
static void notify_begin(struct reload *reload)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t us = (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
    notify_send(reload->notify, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, us);
}

/* What else new settings need, before models change. */
static enum status prepare(struct reload *reload, const struct options *options, struct error *err)
{
    TRY(watch_prepare(reload->watch, options, err));
    return reload->read_files(reload->owner, options, err);
}

void reload_begin(struct reload *reload)
{
    OBJ_CHECK(reload, RELOAD_MAGIC);
    struct conf_report report;
    struct conf *config = NULL;
    struct error err;
    notify_begin(reload);
    if (reload->sources) {
        conf_report_init(&report);
        config = conf_read(reload->sources, &report);
        log_problems(&report);
        conf_report_fini(&report);
    }
    if (config && prepare(reload, &config->options, &err) != ST_OK) {
        log_line(LOG_ERROR, "SIGHUP: %s", err.text);
        conf_free(config);
        config = NULL;
    }
    if (reload->sources && !config) {
        log_line(LOG_ERROR, "SIGHUP: the settings are refused; the old ones stay in use");
    }
    log_line(LOG_NOTICE, "SIGHUP: looking for changed models");
    changes_reload(reload->changes, config);
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

void reload_adopt(struct reload *reload, struct conf *config)
{
    OBJ_CHECK(reload, RELOAD_MAGIC);
    if (config) {
        report_others(reload->options, &config->options);
        conf_free(reload->config);
        reload->config = config;
        reload->model_options = &config->options;
        watch_turn(reload->watch, &config->options);
    }
    notify_send(reload->notify, "READY=1");
}

void reload_refuse(struct reload *reload, struct conf *config)
{
    OBJ_CHECK(reload, RELOAD_MAGIC);
    conf_free(config);
    notify_send(reload->notify, "READY=1");
}

void reload_fini(struct reload *reload)
{
    OBJ_CHECK(reload, RELOAD_MAGIC);
    conf_free(reload->config);
    reload->config = NULL;
    reload->model_options = reload->options;
}
