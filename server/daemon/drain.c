/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/drain.h"

#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/check.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/listener.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/observe/access_log.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/serving/changes.h"
#include "server/daemon/serving/proving.h"
#include "server/process/fetch.h"
#include "server/process/log.h"
#include "server/process/notify.h"
#include "server/process/options.h"

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

/* The drain of a callback. */
static struct drain *drain_of(void *data)
{
    struct drain *drain;
    OBJ_CAST(drain, data, DRAIN_MAGIC);
    return drain;
}

void drain_check(struct drain *drain)
{
    OBJ_CHECK(drain, DRAIN_MAGIC);
    const struct drain_uses *uses = &drain->uses;
    if (uses->loop->is_draining && !uses->loop->is_closing && uses->conns->count == 0 &&
        uses->requests->busy_count == 0 && list_is_empty(&uses->listeners->all)) {
        uses->end(uses->owner);
    }
}

static void on_drain_timeout(uv_timer_t *timer)
{
    struct conns *conns = drain_of(timer->data)->uses.conns;
    log_line(LOG_WARNING, "stopping: %u connections did not finish in time", conns->count);
    conns_abort(conns);
}

static void on_idle_grace_over(uv_timer_t *timer)
{
    const struct drain_uses *uses = &drain_of(timer->data)->uses;
    conns_drain(uses->conns);
    uv_timer_start(timer, on_drain_timeout, uses->params->drain_timeout, 0);
}

/* Closing a listening socket resets the clients in its queue. So the loop looks once more, by a
 * timer of 0 ms, until the queue is empty. */
static void on_accept_queue_empty(uv_timer_t *timer)
{
    struct drain *drain = drain_of(timer->data);
    if (listeners_has_waiting(drain->uses.listeners) &&
        drain->accept_rounds++ < ACCEPT_ROUNDS_MAX) {
        uv_timer_start(timer, on_accept_queue_empty, 0, 0);
        return;
    }
    listeners_close_all(drain->uses.listeners);
    uv_timer_start(timer, on_idle_grace_over, IDLE_GRACE_MS, 0);
    drain_check(drain);
}

void drain_begin(struct drain *drain)
{
    OBJ_CHECK(drain, DRAIN_MAGIC);
    const struct drain_uses *uses = &drain->uses;
    uses->loop->is_draining = true;
    drain->begun_ns = uv_hrtime();
    proving_stop(uses->proving);
    fetch_cancel();
    conns_refuse_later(uses->conns, uses->params->drain_incomplete_timeout);
    uv_timer_start(&drain->timer, on_accept_queue_empty, ACCEPT_QUEUE_MS, 0);
}

/* Nothing but probes gets answers yet, calls wait for the models, and a thread that loads a model
 * may take minutes. */
static _Noreturn void leave_start(const struct drain_uses *uses)
{
    log_line(LOG_NOTICE, "stopped while models were loading");
    changes_refuse_start(uses->changes);
    turns_end(&uses->loop->turns);
    notify_send(uses->notify, "STOPPING=1");
    listeners_close_all(uses->listeners);
    access_log_close(uses->access_log);
    _exit(EX_OK);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct drain *drain = drain_of(signal->data);
    const struct drain_uses *uses = &drain->uses;
    if (uses->loop->is_draining) {
        if (uv_hrtime() - drain->begun_ns < (uint64_t)SAME_STOP_MS * NS_PER_MS) {
            return;
        }
        log_line(LOG_WARNING, "stopping now");
        _exit(SIGNAL_EXIT_BASE + number);
    }
    if (uses->loop->is_starting) {
        leave_start(uses);
    }
    log_line(LOG_NOTICE, "stopping: %u connections are open", uses->conns->count);
    notify_send(uses->notify, "STOPPING=1\nSTATUS=finishing %u connections", uses->conns->count);
    drain_begin(drain);
}

void drain_init(struct drain *drain, const struct drain_uses *uses)
{
    *drain = (struct drain){.magic = DRAIN_MAGIC, .uses = *uses};
    uv_timer_init(&uses->loop->uv, &drain->timer);
    uv_signal_init(&uses->loop->uv, &drain->sigterm);
    uv_signal_init(&uses->loop->uv, &drain->sigint);
    drain->timer.data = drain->sigterm.data = drain->sigint.data = drain;
}

void drain_watch_signals(struct drain *drain)
{
    OBJ_CHECK(drain, DRAIN_MAGIC);
    uv_signal_start(&drain->sigterm, on_signal, SIGTERM);
    uv_signal_start(&drain->sigint, on_signal, SIGINT);
}
