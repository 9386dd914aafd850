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

struct request;
struct server;

#define WAITS_MAGIC 0x77616974u

struct waits {
    uint32_t magic;
    struct share places;
    struct list requests; /* by wait_link */
    uint64_t due_ns;      /* when the first of them has waited for too long, or earlier */
    uint32_t told_count;  /* requests that wait no more, but have not had a turn since then: until
                             then no model is unloaded */
};

void waits_init(struct server *server);
void waits_fini(struct server *server);

/* |request| waits from now on, until waits_end(). ST_EXHAUSTED: there is no place. */
MUST_CHECK enum status waits_begin(struct request *request, struct error *err);

/* The place is free again. Nothing happens if the request does not wait. */
void waits_end(struct request *request);

/* Refuses requests that have waited for too long. Returns when to call again, or RT_SCHED_NEVER. */
uint64_t waits_expire(struct server *server, uint64_t now_ns);

#endif
