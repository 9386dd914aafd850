/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/log_limit.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/resource.h"
#include "server/process/log.h"

#define WINDOW_NS (LOG_LIMIT_S * (uint64_t)1000000000)

static const struct {
    enum log_level level; /* of a line, and of the line with the count */
    const char *name;
} kinds[LOG_KIND_COUNT] = {
    [LOG_KIND_REFUSED] = {LOG_INFO, "requests answered 4xx"},
    [LOG_KIND_FAILED] = {LOG_WARNING, "requests answered 5xx"},
    [LOG_KIND_ACCEPT] = {LOG_WARNING, "connections not taken"},
    [LOG_KIND_ACCESS] = {LOG_WARNING, "losses of the access log"},
    [LOG_KIND_TLS] = {LOG_INFO, "handshakes of TLS that failed"},
    [LOG_KIND_MODELS] = {LOG_INFO, "loads because of calls, and idle models"},
    [LOG_KIND_SLOW] = {LOG_WARNING, "turns of the loop that took long"},
    [LOG_KIND_PROXY] = {LOG_WARNING, "malformed words of proxies"},
};

void log_limits_init(struct log_limits *limits, uint64_t (*clock)(void))
{
    must(clock != NULL);
    *limits = (struct log_limits){.magic = LOG_LIMITS_MAGIC, .clock = clock};
    for (unsigned kind = 0; kind < LOG_KIND_COUNT; kind++) {
        share_init(&limits->windows[kind].lines, LOG_LIMIT_LINES,
                   resource_kept(RESOURCE_LOG_LINES, LOG_LIMIT_LINES));
    }
}

void log_limits_fini(struct log_limits *limits)
{
    OBJ_CHECK(limits, LOG_LIMITS_MAGIC);
    for (unsigned kind = 0; kind < LOG_KIND_COUNT; kind++) {
        share_clear(&limits->windows[kind].lines);
        share_fini(&limits->windows[kind].lines);
    }
    limits->magic = 0;
}

static void end_window(struct log_limits *limits, unsigned kind)
{
    if (limits->windows[kind].suppressed > 0) {
        log_line(kinds[kind].level, "%" PRIu64 " similar lines suppressed in %d s: %s",
                 limits->windows[kind].suppressed, LOG_LIMIT_S, kinds[kind].name);
    }
    limits->windows[kind].suppressed = 0;
    share_clear(&limits->windows[kind].lines);
}

static bool is_over(const struct log_limits *limits, unsigned kind, uint64_t now_ns)
{
    must(now_ns >= limits->windows[kind].since_ns);
    return now_ns - limits->windows[kind].since_ns >= WINDOW_NS;
}

bool log_limits_admit(struct log_limits *limits, enum log_kind kind, uint64_t client)
{
    OBJ_CHECK(limits, LOG_LIMITS_MAGIC);
    must(kind < LOG_KIND_COUNT);
    uint64_t now_ns = limits->clock();
    if (log_has_level(LOG_DEBUG)) {
        return true;
    }
    if (share_used(&limits->windows[kind].lines) == 0 || is_over(limits, kind, now_ns)) {
        end_window(limits, kind);
        limits->windows[kind].since_ns = now_ns;
    }
    if (share_take(&limits->windows[kind].lines, client, 1) != SHARE_TAKEN) {
        limits->windows[kind].suppressed++;
        return false;
    }
    return true;
}

bool log_limits_flush(struct log_limits *limits, bool of_all)
{
    OBJ_CHECK(limits, LOG_LIMITS_MAGIC);
    uint64_t now_ns = limits->clock();
    bool has_more = false;
    for (unsigned kind = 0; kind < LOG_KIND_COUNT; kind++) {
        if (of_all || is_over(limits, kind, now_ns)) {
            end_window(limits, kind);
        }
        has_more |= limits->windows[kind].suppressed > 0;
    }
    return has_more;
}

struct share_stats log_limits_stats(const struct log_limits *limits)
{
    OBJ_CHECK(limits, LOG_LIMITS_MAGIC);
    struct share_stats all = {0};
    for (unsigned kind = 0; kind < LOG_KIND_COUNT; kind++) {
        struct share_stats stats;
        share_stats(&limits->windows[kind].lines, &stats);
        all.size += stats.size;
        all.used += stats.used;
        all.refused_count += stats.refused_count;
        all.most_held = stats.most_held > all.most_held ? stats.most_held : all.most_held;
        all.client_count =
            stats.client_count > all.client_count ? stats.client_count : all.client_count;
    }
    return all;
}
