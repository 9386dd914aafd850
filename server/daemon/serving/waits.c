/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/waits.h"

#include <stdio.h>

#include <uv.h>

#include "base/check.h"
#include "base/resource.h"
#include "server/model/model.h"
#include "server/process/options.h"

#define NS_PER_MS 1000000u

void waiter_init(struct waiter *waiter, waiter_f *done)
{
    must(done != NULL);
    *waiter = (struct waiter){.model = "", .done = done};
    list_init(&waiter->change_link);
    list_init(&waiter->wait_link);
}

/* Of all its waits together. */
static uint64_t due_ns(const struct waits *waits, const struct waiter *waiter)
{
    uint64_t limit = waits->params->loading_timeout * NS_PER_MS;
    uint64_t left = limit > waiter->waited_ns ? limit - waiter->waited_ns : 0;
    uint64_t ours = waiter->began_ns + left, clients = waiter->client_due_ns;
    return clients < ours ? clients : ours;
}

enum status waits_begin(struct waits *waits, struct waiter *waiter, struct error *err)
{
    OBJ_CHECK(waits, WAITS_MAGIC);
    must(list_is_empty(&waiter->wait_link));
    enum share_taken taken = share_take(&waits->places, waiter->client, 1);
    if (taken != SHARE_TAKEN) {
        return resource_refuse(RESOURCE_LOADING, &waits->places, taken, waiter->client, err);
    }
    waiter->began_ns = uv_hrtime();
    list_push_back(&waits->waiters, &waiter->wait_link);
    uint64_t due = due_ns(waits, waiter);
    waits->due_ns = due < waits->due_ns ? due : waits->due_ns;
    alarm_set(waits->alarm, due);
    return ST_OK;
}

void waits_end(struct waits *waits, struct waiter *waiter)
{
    OBJ_CHECK(waits, WAITS_MAGIC);
    if (!list_is_empty(&waiter->wait_link)) {
        list_remove(&waiter->wait_link);
        share_give(&waits->places, waiter->client, 1);
        waiter->waited_ns += uv_hrtime() - waiter->began_ns;
    }
}

/* It has waited until |now_ns|. */
static void refuse(struct waiter *waiter, uint64_t now_ns)
{
    struct error err;
    char what[MODEL_NAME_MAX + 16] = "the models are"; /* at the start: the name is in a body */
    if (waiter->model[0]) {
        snprintf(what, sizeof(what), "model '%s' is", waiter->model);
    }
    if (waiter->client_due_ns <= now_ns) {
        error_set(&err, ST_TIMEOUT, "%s still loading after %.6g ms", what,
                  (double)(now_ns - waiter->arrived_ns) / NS_PER_MS);
    } else {
        error_set(&err, ST_UNAVAILABLE, "%s still loading after %.6g ms (--loading-timeout)", what,
                  (double)waiter->waited_ns / NS_PER_MS);
    }
    waiter->done(waiter, err.code, &err);
}

uint64_t waits_expire(struct waits *waits, uint64_t now_ns)
{
    struct list *next;
    OBJ_CHECK(waits, WAITS_MAGIC);
    if (now_ns < waits->due_ns) {
        return waits->due_ns;
    }
    waits->due_ns = ALARM_NEVER;
    for (struct list *at = waits->waiters.next; at != &waits->waiters; at = next) {
        struct waiter *waiter = LIST_ENTRY(at, struct waiter, wait_link);
        next = at->next;
        uint64_t due = due_ns(waits, waiter);
        if (due <= now_ns) {
            list_remove(&waiter->change_link);
            waits_end(waits, waiter);
            refuse(waiter, now_ns);
        } else {
            waits->due_ns = due < waits->due_ns ? due : waits->due_ns;
        }
    }
    return waits->due_ns;
}

void waits_init(struct waits *waits, struct alarm *alarm, const struct params *params)
{
    uint64_t count = params->loading_count_max;
    *waits = (struct waits){
        .magic = WAITS_MAGIC, .params = params, .alarm = alarm, .due_ns = ALARM_NEVER};
    list_init(&waits->waiters);
    share_init(&waits->places, count, resource_kept(RESOURCE_LOADING, count));
}

void waits_fini(struct waits *waits)
{
    if (waits->magic == WAITS_MAGIC) { /* else the start failed before */
        share_fini(&waits->places);
        waits->magic = 0;
    }
}
