/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/watchdog.h"

#include <inttypes.h>

#include "base/check.h"
#include "hal/device.h"
#include "server/daemon/connection/listener.h"
#include "server/daemon/server.h"
#include "server/daemon/serving/serving.h"
#include "server/process/log.h"

/* While the device is being opened anew there is none. */
static bool is_device_stuck(struct server *server)
{
    struct watchdog *watchdog = &server->watchdog;
    OBJ_CHECK(watchdog, WATCHDOG_MAGIC);
    OBJ_CHECK(server->servings.current, SERVING_MAGIC);
    struct watched now = {false, 0};
    if (watchdog->serving != server->servings.current) {
        watchdog->serving = server->servings.current;
        watchdog->device = now;
    }
    if (server->servings.current->device) {
        struct hal_progress progress = hal_device_progress(server->servings.current->device);
        now = (struct watched){progress.is_busy, progress.mark};
    }
    return watched_is_stuck(&watchdog->device, now);
}

/* Loads of models may have all threads of the pool for as long as they take. */
static bool is_pool_stuck(struct server *server)
{
    const struct offload *offload = &server->offload;
    OBJ_CHECK(offload, OFFLOAD_MAGIC);
    struct watched now = {
        .has_work = offload->open[OFFLOAD_REQUEST] + offload->open[OFFLOAD_HEAVY] > 0 &&
                    offload->open[OFFLOAD_LONG] < offload->threads,
        .mark = offload->done[OFFLOAD_REQUEST] + offload->done[OFFLOAD_HEAVY],
    };
    return watched_is_stuck(&server->watchdog.pool, now);
}

/* True: |name| is. */
static bool report(const struct server *server, bool is_stuck, const char *name)
{
    if (is_stuck) {
        log_line(LOG_ERROR,
                 "watchdog: %s, and nothing was completed in %" PRIu64
                 " ms; systemd gets no sign of life until it gets on",
                 name, server->notify.watchdog_ms);
    }
    return is_stuck;
}

/* Each part is looked at each time, so that two looks, one interval apart, are compared. */
static bool find_stuck(struct server *server)
{
    bool is_stuck =
        report(server, listeners_is_stuck(&server->listeners), "clients wait to be accepted");
    is_stuck |= report(server, is_device_stuck(server), "the device has work");
    is_stuck |= report(server, is_pool_stuck(server), "threads have steps of requests to run");
    return is_stuck;
}

static void on_timer(uv_timer_t *timer)
{
    struct server *server = server_of(timer->data);
    OBJ_CHECK(&server->watchdog, WATCHDOG_MAGIC);
    bool is_stuck = find_stuck(server);
    if (!is_stuck) {
        notify_send(&server->notify, "WATCHDOG=1");
    }
    if (server->watchdog.is_silent && !is_stuck) {
        log_line(LOG_NOTICE, "watchdog: everything gets on again");
    }
    server->watchdog.is_silent = is_stuck;
}

void watchdog_init(struct server *server)
{
    server->watchdog = (struct watchdog){.magic = WATCHDOG_MAGIC};
    uv_timer_init(&server->loop.uv, &server->watchdog.timer);
}

void watchdog_start(struct server *server)
{
    OBJ_CHECK(&server->watchdog, WATCHDOG_MAGIC);
    uint64_t interval_ms = server->notify.watchdog_ms;
    if (interval_ms) {
        uv_timer_start(&server->watchdog.timer, on_timer, interval_ms, interval_ms);
    }
}
