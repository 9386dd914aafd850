/* SPDX-License-Identifier: MIT */
/*
 * Calls that wait for a model to load (step LOAD): for its file, or for the first models. Each has
 * one of --loading-count-max places, shared by clients, for at most --loading-timeout; the load
 * goes on without it. Time in which a call waits does not count in its other limits, but in the one
 * that its client has given. Loop thread; |places| may be looked at by any.
 */
#ifndef PTED_SERVER_DAEMON_SERVING_WAITS_H
#define PTED_SERVER_DAEMON_SERVING_WAITS_H

#include <stdint.h>

#include "base/list.h"
#include "base/share.h"
#include "base/status.h"
#include "server/process/alarm.h"

struct params;
struct waiter;

#define WAITS_MAGIC 0x77616974u

/* Called when the change is made, or cannot be, or the wait was too long, for the reason |err|. */
typedef void waiter_f(struct waiter *waiter, enum status status, const struct error *err);

/* Who waits: for a change, or for a model to load, which the change does. Its owner sets the first
 * members before it waits. */
struct waiter {
    uint64_t client;              /* who is charged (base/share.h) */
    const char *model;            /* that it waits for, for an error; empty: the first models */
    uint64_t arrived_ns;          /* when its request was complete */
    uint64_t client_due_ns;       /* until when its client lets it wait */
    waiter_f *done;               /* it waits no more */
    struct list change_link;      /* in a change that it waits for */
    struct list wait_link;        /* in waits->waiters, while it waits for a model to load */
    uint64_t began_ns, waited_ns; /* since when; all earlier waits for models together */
};

struct waits {
    uint32_t magic;
    const struct params *params; /* borrowed, like |alarm| */
    struct alarm *alarm;
    struct share places;
    struct list waiters; /* by wait_link */
    uint64_t due_ns;     /* when the first of them has waited for too long, or earlier */
    uint32_t told_count; /* requests that wait no more, but have not had a turn since then: until
                            then no model is unloaded */
};

/* |alarm| goes off when waits_expire() is due. */
void waits_init(struct waits *waits, struct alarm *alarm, const struct params *params);
void waits_fini(struct waits *waits);

/* It waits for nothing, and has never waited. */
void waiter_init(struct waiter *waiter, waiter_f *done);

/* |waiter| waits from now on, until waits_end(). ST_EXHAUSTED: there is no place. */
MUST_CHECK enum status waits_begin(struct waits *waits, struct waiter *waiter, struct error *err);

/* Call when the place is free again. Nothing happens if it does not wait. */
void waits_end(struct waits *waits, struct waiter *waiter);

/* Refuses those that have waited for too long. Returns when to call again, or ALARM_NEVER. */
uint64_t waits_expire(struct waits *waits, uint64_t now_ns);

#endif
