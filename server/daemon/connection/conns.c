/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/connection/conns.h"

#include <stdlib.h>

#include "base/check.h"
#include "server/daemon/connection/protocol.h"
#include "server/daemon/connection/session.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/requests.h"
#include "server/process/options.h"

#define SWEEP_MS_MAX 1000
#define SWEEP_MS_MIN 10

static void for_each(struct conns *conns, void (*fn)(struct session *session))
{
    for (struct list *node = conns->all.next, *next; node != &conns->all; node = next) {
        next = node->next;
        fn(LIST_ENTRY(node, struct session, link));
    }
}

static void drain_one(struct session *session)
{
    session->ops->drain(session);
}

static void abort_one(struct session *session)
{
    session->ops->abort(session);
}

void conns_drain(struct conns *conns)
{
    OBJ_CHECK(conns, CONNS_MAGIC);
    conns->is_grace_over = true;
    for_each(conns, drain_one);
}

void conns_abort(struct conns *conns)
{
    OBJ_CHECK(conns, CONNS_MAGIC);
    for_each(conns, abort_one);
}

static void warn_one(struct session *session)
{
    if (session->ops->warn) {
        session->ops->warn(session);
    }
}

void conns_refuse_later(struct conns *conns, uint64_t ms)
{
    OBJ_CHECK(conns, CONNS_MAGIC);
    for_each(conns, warn_one);
    conns->refuses_at_ms = uv_now(&conns->loop->uv) + ms;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* The process was stopped, its machine slept, or others had the processor. Timers come before
 * sockets in a turn of the loop, so what clients have sent meanwhile is not read yet. They get the
 * time back. */
static void postpone(struct conns *conns, uint64_t pause_ms, uint64_t now)
{
    for (struct list *node = conns->all.next; node != &conns->all; node = node->next) {
        struct session *session = LIST_ENTRY(node, struct session, link);
        session->ops->postpone(session, pause_ms, now);
    }
    conns->refuses_at_ms += conns->loop->is_draining ? pause_ms : 0;
}

static void on_sweep(uv_timer_t *timer)
{
    struct conns *conns;
    OBJ_CAST(conns, timer->data, CONNS_MAGIC);
    uint64_t now = uv_now(&conns->loop->uv), since_ms = now - conns->swept_ms;
    turn_watch_enter(&conns->loop->watch, TURN_SWEEP);
    conns->swept_ms = now;
    if (since_ms > 2 * uv_timer_get_repeat(timer)) {
        postpone(conns, since_ms, now);
        return;
    }
    for (struct list *node = conns->all.next, *next; node != &conns->all; node = next) {
        struct session *session = LIST_ENTRY(node, struct session, link);
        next = node->next;
        session->ops->check_deadline(session, now);
    }
}

/* A quarter of the shortest limit, so that no limit ends more than a quarter late. */
static uint64_t sweep_interval_ms(const struct params *params)
{
    const uint64_t limits[] = {params->idle_timeout,
                               params->header_timeout,
                               params->body_timeout,
                               params->write_timeout,
                               params->linger_timeout,
                               params->rate_window,
                               params->drain_incomplete_timeout};
    uint64_t interval = SWEEP_MS_MAX;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        interval = limits[i] / 4 < interval ? limits[i] / 4 : interval;
    }
    return interval > SWEEP_MS_MIN ? interval : SWEEP_MS_MIN;
}

void conns_note_new(struct conns *conns)
{
    OBJ_CHECK(conns, CONNS_MAGIC);
    conns->count++;
    if (!uv_is_active((const uv_handle_t *)&conns->sweep)) {
        uint64_t interval = sweep_interval_ms(conns->params);
        conns->swept_ms = uv_now(&conns->loop->uv);
        uv_timer_start(&conns->sweep, on_sweep, interval, interval);
    }
}

void conns_note_gone(struct conns *conns)
{
    OBJ_CHECK(conns, CONNS_MAGIC);
    must(conns->count > 0);
    if (--conns->count == 0) {
        uv_timer_stop(&conns->sweep);
    }
    conns->note_gone(conns->owner);
}

/* ---- life ------------------------------------------------------------------------------------ */

void conns_init(struct conns *conns, struct requests *requests, void (*note_gone)(void *owner),
                void *owner)
{
    must(requests->uses.loop && requests->uses.params);
    *conns = (struct conns){
        .magic = CONNS_MAGIC,
        .loop = requests->uses.loop,
        .params = requests->uses.params,
        .requests = requests,
        .owner = owner,
        .note_gone = note_gone,
        .protocols = protocols_all,
        .refuses_at_ms = UINT64_MAX,
    };
    list_init(&conns->all);
    places_init(&conns->places, 0);
}

enum status conns_open(struct conns *conns, struct error *err)
{
    OBJ_CHECK(conns, CONNS_MAGIC);
    uv_timer_init(&conns->loop->uv, &conns->sweep);
    conns->sweep.data = conns;
    conns->read_buffer = malloc(CONNS_READ_BYTES);
    return conns->read_buffer ? ST_OK : error_no_memory(err, "the read buffer");
}

void conns_fini(struct conns *conns)
{
    OBJ_CHECK(conns, CONNS_MAGIC);
    must(list_is_empty(&conns->all) && conns->count == 0);
    places_fini(&conns->places);
    free(conns->read_buffer);
    conns->read_buffer = NULL;
}
