/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/watchdog.h"

#include <inttypes.h>

#include "base/check.h"
#include "hal/device.h"
#include "server/daemon/connection/listener.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/process/log.h"
#include "server/process/notify.h"
#include "server/process/offload.h"

/* While the device is being opened anew there is none. */
static bool is_device_stuck(struct watchdog *watchdog)
{
    const struct serving *current = watchdog->uses.servings->current;
    OBJ_CHECK(current, SERVING_MAGIC);
    struct watched now = {false, 0};
    if (watchdog->serving != current) {
        watchdog->serving = current;
        watchdog->device = now;
    }
    if (current->device) {
        struct hal_progress progress = hal_device_progress(current->device);
        now = (struct watched){progress.is_busy, progress.mark};
    }
    return watched_is_stuck(&watchdog->device, now);
}

/* Loads of models may have all threads of the pool for as long as they take. */
static bool is_pool_stuck(struct watchdog *watchdog)
{
    const struct offload *offload = watchdog->uses.loop->offload;
    OBJ_CHECK(offload, OFFLOAD_MAGIC);
    struct watched now = {
        .has_work = offload->open[OFFLOAD_REQUEST] + offload->open[OFFLOAD_HEAVY] > 0 &&
                    offload->open[OFFLOAD_LONG] < offload->threads,
        .mark = offload->done[OFFLOAD_REQUEST] + offload->done[OFFLOAD_HEAVY],
    };
    return watched_is_stuck(&watchdog->pool, now);
}

/* True: |name| is. */
static bool report(const struct watchdog *watchdog, bool is_stuck, const char *name)
{
    if (is_stuck) {
        log_line(LOG_ERROR,
                 "watchdog: %s, and nothing was completed in %" PRIu64
                 " ms; systemd gets no sign of life until something is",
                 name, watchdog->uses.notify->watchdog_ms);
    }
    return is_stuck;
}

/* Each part is looked at each time, so that two looks, one interval apart, are compared. */
static bool find_stuck(struct watchdog *watchdog)
{
    bool is_stuck = report(watchdog, listeners_is_stuck(watchdog->uses.listeners),
                           "clients wait to be accepted");
    is_stuck |= report(watchdog, is_device_stuck(watchdog), "the device has work");
    is_stuck |= report(watchdog, is_pool_stuck(watchdog), "threads have steps of requests to run");
    return is_stuck;
}

static void on_timer(uv_timer_t *timer)
{
    struct watchdog *watchdog;
    OBJ_CAST(watchdog, timer->data, WATCHDOG_MAGIC);
    bool is_stuck = find_stuck(watchdog);
    if (!is_stuck) {
        notify_send(watchdog->uses.notify, "WATCHDOG=1");
    }
    if (watchdog->is_silent && !is_stuck) {
        log_line(LOG_NOTICE, "watchdog: all parts make progress again");
    }
    watchdog->is_silent = is_stuck;
}

void watchdog_init(struct watchdog *watchdog, const struct watchdog_uses *uses)
{
    *watchdog = (struct watchdog){.magic = WATCHDOG_MAGIC, .uses = *uses};
    uv_timer_init(&uses->loop->uv, &watchdog->timer);
    watchdog->timer.data = watchdog;
}

void watchdog_start(struct watchdog *watchdog)
{
    OBJ_CHECK(watchdog, WATCHDOG_MAGIC);
    uint64_t interval_ms = watchdog->uses.notify->watchdog_ms;
    if (interval_ms) {
        uv_timer_start(&watchdog->timer, on_timer, interval_ms, interval_ms);
    }
}
