/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/drain.h"

#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

#include "server/daemon/connection/listener.h"
#include "server/daemon/server.h"
#include "server/process/fetch.h"
#include "server/process/log.h"

#define NS_PER_MS 1000000u
/* After the signal the loop accepts waiting clients for this long, then closes the sockets. */
#define ACCEPT_QUEUE_MS 20
/* A client that connects again and again cannot delay the stop. */
#define ACCEPT_ROUNDS_MAX 100
/* After that, requests that are on their way arrive on idle connections for this long. Their
 * answers close the connection. */
#define IDLE_GRACE_MS 60
/* timeout(1) sends its signal twice, to the process and to its group; after Ctrl-C, a parent may
 * pass on what the daemon has got as well. Signals this soon after the first mean the same stop. */
#define SAME_STOP_MS 250
#define SIGNAL_EXIT_BASE 128

static void on_drain_timeout(uv_timer_t *timer)
{
    struct server *server = server_of(timer->data);
    log_line(LOG_WARNING, "stopping: %u connections did not finish in time", server->conns.count);
    conns_abort(&server->conns);
}

static void on_idle_grace_over(uv_timer_t *timer)
{
    struct server *server = server_of(timer->data);
    conns_drain(&server->conns);
    uv_timer_start(timer, on_drain_timeout, server->params->drain_timeout, 0);
}

/* Closing a listening socket resets the clients in its queue. So the loop looks once more, by a
 * timer of 0 ms, until the queue is empty. */
static void on_accept_queue_empty(uv_timer_t *timer)
{
    struct server *server = server_of(timer->data);
    if (listeners_has_waiting(&server->listeners) &&
        server->drain.accept_rounds++ < ACCEPT_ROUNDS_MAX) {
        uv_timer_start(timer, on_accept_queue_empty, 0, 0);
        return;
    }
    listeners_close_all(&server->listeners);
    uv_timer_start(timer, on_idle_grace_over, IDLE_GRACE_MS, 0);
    server_check_drained(server);
}

void drain_begin(struct server *server)
{
    struct drain *drain = &server->drain;
    server->loop.is_draining = true;
    drain->begun_ns = uv_hrtime();
    proving_stop(&server->proving);
    fetch_cancel();
    conns_refuse_later(&server->conns, server->params->drain_incomplete_timeout);
    uv_timer_start(&drain->timer, on_accept_queue_empty, ACCEPT_QUEUE_MS, 0);
}

/* Nothing but probes gets answers yet, calls wait for the models, and a thread that loads a model
 * may take minutes. */
static _Noreturn void leave_start(struct server *server)
{
    log_line(LOG_NOTICE, "stopped while models were loading");
    changes_refuse_start(&server->changes);
    turns_end(&server->loop.turns);
    notify_send(&server->notify, "STOPPING=1");
    listeners_close_all(&server->listeners);
    access_log_close(&server->access_log);
    _exit(EX_OK);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct server *server = server_of(signal->data);
    if (server->loop.is_draining) {
        if (uv_hrtime() - server->drain.begun_ns < (uint64_t)SAME_STOP_MS * NS_PER_MS) {
            return;
        }
        log_line(LOG_WARNING, "stopping now");
        _exit(SIGNAL_EXIT_BASE + number);
    }
    if (server->loop.is_starting) {
        leave_start(server);
    }
    log_line(LOG_NOTICE, "stopping: %u connections are open", server->conns.count);
    notify_send(&server->notify, "STOPPING=1\nSTATUS=finishing %u connections",
                server->conns.count);
    drain_begin(server);
}

void drain_init(struct server *server)
{
    struct drain *drain = &server->drain;
    *drain = (struct drain){.begun_ns = 0};
    uv_timer_init(&server->loop.uv, &drain->timer);
    uv_signal_init(&server->loop.uv, &drain->sigterm);
    uv_signal_init(&server->loop.uv, &drain->sigint);
}

void drain_watch_signals(struct server *server)
{
    uv_signal_start(&server->drain.sigterm, on_signal, SIGTERM);
    uv_signal_start(&server->drain.sigint, on_signal, SIGINT);
}
