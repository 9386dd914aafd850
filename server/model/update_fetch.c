/* SPDX-License-Identifier: MIT */
/* Files of models that come from a URL, before the files are listed. */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "server/model/update.h"
#include "server/process/amount.h"
#include "server/process/fetch.h"
#include "server/process/log.h"

#define TOLD_S 5 /* between lines of the log */

struct progress {
    time_t told_s; /* of the monotonic clock */
};

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void on_progress(void *arg, const char *shown_url, uint64_t bytes, uint64_t total)
{
    struct progress *progress = arg;
    char some[AMOUNT_TEXT_MAX], all[AMOUNT_TEXT_MAX];
    if (now_s() - progress->told_s >= TOLD_S) {
        progress->told_s = now_s();
        log_line(LOG_INFO, "fetching %s: %s%s%s", shown_url, amount_bytes(bytes, some),
                 total ? " of " : "", total ? amount_bytes(total, all) : "");
    }
}

static void on_retry(void *arg, const char *line)
{
    (void)arg;
    log_line(LOG_NOTICE, "%s", line);
}

/* Is the file asked for with this update? Nobody waits for a URL because of a call. */
static bool is_due(const struct update *update, struct span name)
{
    switch (update->kind) {
    case UPDATE_START:
        return true;
    case UPDATE_SCAN:
        return update->retries_failed; /* SIGHUP, not a watched folder */
    case UPDATE_LOAD:
        return span_is(name, update->name);
    case UPDATE_NEED:
    case UPDATE_UNLOAD:
        return false;
    }
    return false;
}

static void log_fetched(const char *url, bool is_fresh)
{
    char shown[FETCH_SHOWN_MAX];
    fetch_show(url, shown);
    if (strncmp(url, "file:", 5) != 0) { /* it is used where it lies, and not looked at here */
        log_line(LOG_INFO, is_fresh ? "fetched %s" : "%s has not changed", shown);
    }
}

/* Without an answer the file of the cache serves; without that, a start and a load have failed. */
static enum status fetch(const struct update *update, const char *url, struct error *err)
{
    struct progress progress = {.told_s = now_s()};
    struct fetch fetch = fetch_of(update->options);
    char path[PATH_MAX];
    struct error ignored;
    uint64_t before = fetch_counts().fetched;
    fetch.on_progress = on_progress;
    fetch.on_retry = on_retry;
    fetch.arg = &progress;
    if (fetch_file(&fetch, url, err) == ST_OK) {
        log_fetched(url, fetch_counts().fetched != before);
        return ST_OK;
    }
    bool is_cached =
        fetch_path(&fetch, url, path, sizeof(path), &ignored) == ST_OK && access(path, R_OK) == 0;
    if (update->kind == UPDATE_LOAD || (update->kind == UPDATE_START && !is_cached)) {
        return err->code;
    }
    log_line(LOG_WARNING, "%s; %s", err->text,
             is_cached ? "its file in the cache is used" : "there is no file in the cache");
    return ST_OK;
}

static enum status fetch_all(const struct update *update, const struct option_model *models,
                             uint32_t count, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct span name = options_model_name(&models[i]);
        if (fetch_is_url(models[i].path) && is_due(update, name)) {
            TRY(fetch(update, models[i].path, err));
        }
    }
    return ST_OK;
}

enum status update_fetch(const struct update *update, struct error *err)
{
    OBJ_CHECK(update, UPDATE_MAGIC);
    const struct options *options = update->options;
    TRY(fetch_all(update, options->models, options->model_count, err));
    return fetch_all(update, options->data, options->data_count, err);
}
