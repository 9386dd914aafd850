/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/recovery.h"

#include "base/check.h"
#include "hal/device.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/serving/changes.h"
#include "server/daemon/serving/proving.h"
#include "server/daemon/serving/reload.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/process/log.h"
#include "server/process/notify.h"
#include "server/process/offload.h"

#define TRIES_MAX 3
#define RETRY_MS 1000 /* times the number of attempts */
/* A loss sooner than this counts as the same trouble, not as a new one. */
#define CALM_MS 60000
/* How long to wait for the old device's memory before the new device is filled. */
#define SHED_MS 2000
#define SHED_POLL_MS 10

static void start_try(struct recovery *recovery, uint64_t delay_ms);

/* On a thread of libuv: loading takes time, and the loop has to answer "not ready". */
static void load(uv_work_t *work)
{
    struct recovery *recovery;
    OBJ_CAST(recovery, work->data, RECOVERY_MAGIC);
    must(recovery->is_active && !recovery->fresh);
    const struct options *options = recovery->uses.reload->model_options;
    enum status status =
        serving_new(options, recovery->device_name, false, &recovery->fresh, &recovery->err);
    if (status == ST_OK) {
        status = repository_load(&recovery->fresh->repository, options,
                                 &recovery->before->repository, &recovery->err);
    }
    if (status != ST_OK) {
        serving_free(recovery->fresh);
        recovery->fresh = NULL;
    }
}

static void give_up_device(struct recovery *recovery)
{
    log_line(LOG_ERROR, "device %s: given up after %u tries; the CPU computes",
             recovery->device_name, recovery->tries);
    recovery->device_name = "cpu";
}

/* Calls run on the new serving from now on. */
static void use_fresh(struct recovery *recovery)
{
    servings_replace(recovery->uses.servings, recovery->fresh);
    recovery->fresh = NULL;
    proving_begin(recovery->uses.proving);
    changes_watch_idle(recovery->uses.changes, uv_hrtime());
}

static void on_loaded(uv_work_t *work, int uv_status)
{
    struct recovery *recovery;
    OBJ_CAST(recovery, work->data, RECOVERY_MAGIC);
    must(uv_status == 0 && recovery->is_active); /* the work is never cancelled */
    offload_end(recovery->uses.loop->offload, OFFLOAD_LONG);
    if (recovery->uses.loop->is_closing) {
        serving_free(recovery->fresh);
        return;
    }
    if (!recovery->fresh) {
        log_line(LOG_ERROR, "loading the models again: %s", recovery->err.text);
        start_try(recovery, RETRY_MS * recovery->tries);
        return;
    }
    recovery->is_active = false;
    recovery->done_ms = uv_now(&recovery->uses.loop->uv);
    use_fresh(recovery);
    struct serving *serving = recovery->uses.servings->current;
    struct repository *repository = &serving->repository;
    uint32_t ready = repository_ready_count(repository), count = repository_count(repository);
    log_line(LOG_NOTICE, "serving %u of %u models again, on %s", ready, count,
             hal_device_props(serving->device)->name);
    notify_send(recovery->uses.notify, "STATUS=serving %u of %u models", ready, count);
    changes_keep_idle(recovery->uses.changes, false);
    changes_release(recovery->uses.changes);
}

static void on_timer(uv_timer_t *timer)
{
    struct recovery *recovery;
    OBJ_CAST(recovery, timer->data, RECOVERY_MAGIC);
    struct serving *serving = recovery->uses.servings->current;
    changes_drop_retired(recovery->uses.changes);
    if (serving->users > 0 && uv_now(&recovery->uses.loop->uv) < recovery->shed_ms) {
        uv_timer_start(timer, on_timer, SHED_POLL_MS, 0);
        return;
    }
    if (serving->users == 0) {
        servings_shed(recovery->uses.servings);
    }
    recovery->work.data = recovery;
    recovery->before = serving;
    offload_begin(recovery->uses.loop->offload, OFFLOAD_LONG, &recovery->work, load, on_loaded);
}

static void start_try(struct recovery *recovery, uint64_t delay_ms)
{
    OBJ_CHECK(recovery, RECOVERY_MAGIC);
    if (recovery->tries == TRIES_MAX) {
        give_up_device(recovery);
    }
    recovery->tries++;
    uv_timer_start(&recovery->timer, on_timer, delay_ms, 0);
}

void recovery_init(struct recovery *recovery, const struct recovery_uses *uses,
                   const char *device_name)
{
    *recovery =
        (struct recovery){.magic = RECOVERY_MAGIC, .uses = *uses, .device_name = device_name};
    uv_timer_init(&uses->loop->uv, &recovery->timer);
    recovery->timer.data = recovery;
}

void recovery_begin(struct recovery *recovery)
{
    OBJ_CHECK(recovery, RECOVERY_MAGIC);
    struct serving *serving = recovery->uses.servings->current;
    struct error why;
    if (recovery->is_active || recovery->uses.loop->is_closing) {
        return;
    }
    recovery->is_active = true;
    changes_hold(recovery->uses.changes);
    changes_keep_idle(recovery->uses.changes, true);
    error_set(&why, ST_UNAVAILABLE, "the device was lost; the models are being loaded again");
    log_line(LOG_ERROR, "%s: %s", hal_device_props(serving->device)->name, why.text);
    notify_send(recovery->uses.notify, "STATUS=%s", why.text);
    repository_fail(&serving->repository, &why);
    uint64_t now = uv_now(&recovery->uses.loop->uv);
    if (now - recovery->done_ms > CALM_MS) {
        recovery->tries = 0;
    }
    recovery->shed_ms = now + SHED_MS;
    start_try(recovery, 0);
}
