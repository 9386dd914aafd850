/* SPDX-License-Identifier: MIT */
/*
 * Start: device, sockets, models, then READY. Stop: the first SIGTERM or SIGINT answers "not
 * ready", takes what is in the accept queue, closes the listening sockets and the idle connections,
 * and waits for the rest up to drain_timeout; the second one ends the process at once.
 */
#include "config.h"

#include "server/server.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "server/conn.h"
#include "server/listener.h"
#include "server/log.h"
#include "server/request.h"

#define SWEEP_MS_MAX 1000
#define SWEEP_MS_MIN 10
/* Between the signal and the closing of the sockets the loop takes what waits to be accepted. */
#define ACCEPT_QUEUE_MS 20
#define DEFAULT_LISTEN "127.0.0.1:8000"
#define SIGNAL_EXIT_BASE 128

static struct server *server_of(const uv_handle_t *handle)
{
    return handle->data;
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void close_handles(struct server *server)
{
    uv_handle_t *handles[] = {
        (uv_handle_t *)&server->wake,     (uv_handle_t *)&server->sweep,
        (uv_handle_t *)&server->watchdog, (uv_handle_t *)&server->drain,
        (uv_handle_t *)&server->sigterm,  (uv_handle_t *)&server->sigint,
    };
    server->is_closing = true;
    listener_close_all(server);
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_close(handles[i], NULL);
    }
}

void server_check_drained(struct server *server)
{
    if (server->conn_count == 0) {
        uv_timer_stop(&server->sweep);
    }
    if (server->is_draining && !server->is_closing && server->conn_count == 0 &&
        server->busy_request_count == 0 && list_is_empty(&server->listeners)) {
        close_handles(server);
    }
}

static void for_each_conn(struct server *server, void (*fn)(struct conn *conn))
{
    for (struct list *node = server->conns.next, *next; node != &server->conns; node = next) {
        next = node->next;
        fn(LIST_ENTRY(node, struct conn, link));
    }
}

static void on_drain_timeout(uv_timer_t *timer)
{
    struct server *server = server_of((uv_handle_t *)timer);
    log_line(LOG_WARNING, "stopping: %u connections did not finish in time", server->conn_count);
    for_each_conn(server, conn_abort);
}

static void on_accept_queue_empty(uv_timer_t *timer)
{
    struct server *server = server_of((uv_handle_t *)timer);
    listener_close_all(server);
    for_each_conn(server, conn_drain);
    uv_timer_start(timer, on_drain_timeout, server->params->drain_timeout, 0);
    server_check_drained(server);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct server *server = server_of((uv_handle_t *)signal);
    if (server->is_draining) {
        log_line(LOG_WARNING, "stopping now");
        _exit(SIGNAL_EXIT_BASE + number);
    }
    log_line(LOG_NOTICE, "stopping: %u connections are open", server->conn_count);
    notify_send(&server->notify, "STOPPING=1\nSTATUS=finishing %u connections", server->conn_count);
    server->is_draining = true;
    uv_timer_start(&server->drain, on_accept_queue_empty, ACCEPT_QUEUE_MS, 0);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void on_sweep(uv_timer_t *timer)
{
    struct server *server = server_of((uv_handle_t *)timer);
    uint64_t now = uv_now(&server->loop);
    for (struct list *node = server->conns.next, *next; node != &server->conns; node = next) {
        next = node->next;
        conn_check_deadline(LIST_ENTRY(node, struct conn, link), now);
    }
}

/* Often enough that the shortest limit is at most a quarter late. */
static uint64_t sweep_interval_ms(const struct params *params)
{
    const uint64_t limits[] = {params->idle_timeout,  params->header_timeout,
                               params->body_timeout,  params->run_timeout,
                               params->write_timeout, params->linger_timeout};
    uint64_t interval = SWEEP_MS_MAX;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        interval = limits[i] / 4 < interval ? limits[i] / 4 : interval;
    }
    return interval > SWEEP_MS_MIN ? interval : SWEEP_MS_MIN;
}

void server_start_sweep(struct server *server)
{
    if (!uv_is_active((const uv_handle_t *)&server->sweep)) {
        uint64_t interval = sweep_interval_ms(server->params);
        uv_timer_start(&server->sweep, on_sweep, interval, interval);
    }
}

static void on_watchdog(uv_timer_t *timer)
{
    notify_send(&server_of((uv_handle_t *)timer)->notify, "WATCHDOG=1");
}

/* ---- what workers hand back ------------------------------------------------------------------ */

void server_complete(struct server *server, struct request *request)
{
    struct request *head = atomic_load_explicit(&server->completed, memory_order_relaxed);
    do {
        request->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&server->completed, &head, request,
                                                    memory_order_release, memory_order_relaxed));
    if (!head) {
        uv_async_send(&server->wake); /* a wake-up that is pending takes this one along */
    }
}

static void on_wake(uv_async_t *wake)
{
    struct server *server = server_of((uv_handle_t *)wake);
    struct request *stack =
        atomic_exchange_explicit(&server->completed, NULL, memory_order_acquire);
    struct request *oldest = NULL;
    while (stack) {
        struct request *next = stack->next;
        stack->next = oldest;
        oldest = stack;
        stack = next;
    }
    while (oldest) {
        struct request *next = oldest->next;
        request_completed(oldest);
        oldest = next;
    }
}

/* ---- starting -------------------------------------------------------------------------------- */

static enum status uv_fail(struct error *err, const char *what, int uv_code)
{
    return error_set(err, ST_SYSTEM, "%s: %s", what, uv_strerror(uv_code));
}

/* None of these can fail on an initialised loop but for descriptors, which the first two need. */
static enum status init_handles(struct server *server, struct error *err)
{
    int rc = uv_async_init(&server->loop, &server->wake, on_wake);
    if (rc < 0) {
        return uv_fail(err, "event loop", rc);
    }
    uv_timer_init(&server->loop, &server->sweep);
    uv_timer_init(&server->loop, &server->watchdog);
    uv_timer_init(&server->loop, &server->drain);
    uv_signal_init(&server->loop, &server->sigterm);
    uv_signal_init(&server->loop, &server->sigint);
    uv_handle_t *handles[] = {
        (uv_handle_t *)&server->wake,     (uv_handle_t *)&server->sweep,
        (uv_handle_t *)&server->watchdog, (uv_handle_t *)&server->drain,
        (uv_handle_t *)&server->sigterm,  (uv_handle_t *)&server->sigint,
    };
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        handles[i]->data = server;
    }
    return ST_OK;
}

static enum status init_memory(struct server *server, struct error *err)
{
    struct hal_device_options options = {
        .workers = (uint32_t)server->options->workers,
        .cpu_level = server->options->cpu_level,
    };
    TRY(hal_device_open("cpu", &options, &server->device, err));
    TRY(hal_pool_new(server->device, server->params->ring_bytes, &server->pool, err));
    server->read_buffer = malloc(SERVER_READ_BYTES);
    if (!server->read_buffer) {
        return error_set(err, ST_EXHAUSTED, "read buffer: out of memory");
    }
    return ST_OK;
}

static enum status init_listeners(struct server *server, struct error *err)
{
    for (uint32_t i = 0; i < server->notify.listen_count; i++) {
        TRY(listener_adopt(server, NOTIFY_LISTEN_FD + (int)i, err));
    }
    for (uint32_t i = 0; i < server->options->listen_count; i++) {
        TRY(listener_bind(server, server->options->listen[i], err));
    }
    if (list_is_empty(&server->listeners)) {
        TRY(listener_bind(server, DEFAULT_LISTEN, err));
    }
    return ST_OK;
}

/* As many descriptors as we may have; a refusal leaves what there is. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

enum status server_init(struct server *server, const struct options *options, struct error *err)
{
    *server = (struct server){.options = options, .params = &options->params};
    list_init(&server->listeners);
    list_init(&server->conns);
    list_init(&server->idle_requests);
    notify_init(&server->notify);
    raise_file_limit();
    signal(SIGPIPE, SIG_IGN);
    int rc = uv_loop_init(&server->loop);
    if (rc < 0) {
        return uv_fail(err, "event loop", rc);
    }
    server->has_loop = true;
    server->thread = uv_thread_self();
    TRY(init_handles(server, err));
    server->has_handles = true;
    TRY(init_listeners(server, err));
    TRY(init_memory(server, err));
    models_init(&server->models, server->device);
    return models_load(&server->models, options, err);
}

static uint32_t ready_count(const struct models *models)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < models->item_count; i++) {
        count += model_is_ready(&models->items[i]);
    }
    return count;
}

enum status server_run(struct server *server, struct error *err)
{
    TRY(listener_start_all(server, err));
    uv_signal_start(&server->sigterm, on_signal, SIGTERM);
    uv_signal_start(&server->sigint, on_signal, SIGINT);
    if (server->notify.watchdog_ms) {
        uv_timer_start(&server->watchdog, on_watchdog, server->notify.watchdog_ms,
                       server->notify.watchdog_ms);
    }
    uint32_t ready = ready_count(&server->models);
    log_line(LOG_NOTICE, "serving %u of %u models", ready, server->models.item_count);
    notify_send(&server->notify, "READY=1\nSTATUS=serving %u of %u models", ready,
                server->models.item_count);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    log_line(LOG_NOTICE, "stopped");
    return ST_OK;
}

void server_fini(struct server *server)
{
    if (server->has_handles && !server->is_closing) {
        close_handles(server);
        uv_run(&server->loop, UV_RUN_DEFAULT);
    }
    while (!list_is_empty(&server->idle_requests)) {
        request_free(LIST_ENTRY(server->idle_requests.next, struct request, link));
    }
    models_fini(&server->models);
    hal_pool_free(server->pool);
    if (server->device) {
        hal_device_unref(server->device);
    }
    free(server->read_buffer);
    if (server->has_loop) {
        int rc = uv_loop_close(&server->loop);
        must(rc == 0);
    }
    notify_fini(&server->notify);
}
