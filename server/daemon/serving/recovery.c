/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/recovery.h"

#include "base/check.h"
#include "hal/device.h"
#include "server/daemon/server.h"
#include "server/daemon/serving/serving.h"
#include "server/process/log.h"

#define TRIES_MAX 3
#define RETRY_MS 1000 /* times the number of attempts */
/* A loss sooner than this counts as the same trouble, not as a new one. */
#define CALM_MS 60000
/* How long to wait for the old device's memory before the new device is filled. */
#define SHED_MS 2000
#define SHED_POLL_MS 10

static void start_try(struct server *server, uint64_t delay_ms);

/* On a thread of libuv: loading takes time, and the loop has to answer "not ready". */
static void load(uv_work_t *work)
{
    struct server *server = server_of(work->data);
    struct recovery *recovery = &server->recovery;
    OBJ_CHECK(recovery, RECOVERY_MAGIC);
    must(recovery->is_active && !recovery->fresh);
    const struct options *options = server->model_options;
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

static void on_loaded(uv_work_t *work, int uv_status)
{
    struct server *server = server_of(work->data);
    struct recovery *recovery = &server->recovery;
    OBJ_CHECK(recovery, RECOVERY_MAGIC);
    must(uv_status == 0 && recovery->is_active); /* the work is never cancelled */
    offload_end(&server->offload, OFFLOAD_LONG);
    if (server->loop.is_closing) {
        serving_free(recovery->fresh);
        return;
    }
    if (!recovery->fresh) {
        log_line(LOG_ERROR, "loading the models again: %s", recovery->err.text);
        start_try(server, RETRY_MS * recovery->tries);
        return;
    }
    recovery->is_active = false;
    recovery->done_ms = uv_now(&server->loop.uv);
    server_replace_serving(server, recovery->fresh);
    recovery->fresh = NULL;
    struct repository *repository = &server->serving->repository;
    uint32_t ready = repository_ready_count(repository), count = repository_count(repository);
    log_line(LOG_NOTICE, "serving %u of %u models again, on %s", ready, count,
             hal_device_props(server->serving->device)->name);
    notify_send(&server->notify, "STATUS=serving %u of %u models", ready, count);
    changes_go_on(server);
}

static void on_timer(uv_timer_t *timer)
{
    struct server *server = server_of(timer->data);
    struct recovery *recovery = &server->recovery;
    OBJ_CHECK(recovery, RECOVERY_MAGIC);
    changes_drop_retired(server);
    if (server->serving->users > 0 && uv_now(&server->loop.uv) < recovery->shed_ms) {
        uv_timer_start(timer, on_timer, SHED_POLL_MS, 0);
        return;
    }
    if (server->serving->users == 0) {
        transfers_leave_pool(server);
        serving_shed(server->serving);
    }
    recovery->work.data = server;
    recovery->before = server->serving;
    offload_begin(&server->offload, OFFLOAD_LONG, &recovery->work, load, on_loaded);
}

static void start_try(struct server *server, uint64_t delay_ms)
{
    struct recovery *recovery = &server->recovery;
    OBJ_CHECK(recovery, RECOVERY_MAGIC);
    if (recovery->tries == TRIES_MAX) {
        give_up_device(recovery);
    }
    recovery->tries++;
    uv_timer_start(&recovery->timer, on_timer, delay_ms, 0);
}

void recovery_init(struct server *server)
{
    struct recovery *recovery = &server->recovery;
    *recovery =
        (struct recovery){.magic = RECOVERY_MAGIC, .device_name = server_device_name(server)};
    uv_timer_init(&server->loop.uv, &recovery->timer);
    recovery->timer.data = server;
}

void recovery_begin(struct server *server)
{
    struct recovery *recovery = &server->recovery;
    OBJ_CHECK(recovery, RECOVERY_MAGIC);
    struct error why;
    if (recovery->is_active || server->loop.is_closing) {
        return;
    }
    recovery->is_active = true;
    error_set(&why, ST_UNAVAILABLE, "the device was lost; the models are being loaded again");
    log_line(LOG_ERROR, "%s: %s", hal_device_props(server->serving->device)->name, why.text);
    notify_send(&server->notify, "STATUS=%s", why.text);
    repository_fail(&server->serving->repository, &why);
    uint64_t now = uv_now(&server->loop.uv);
    if (now - recovery->done_ms > CALM_MS) {
        recovery->tries = 0;
    }
    recovery->shed_ms = now + SHED_MS;
    start_try(server, 0);
}
