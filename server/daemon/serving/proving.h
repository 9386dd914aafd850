/* SPDX-License-Identifier: MIT */
/*
 * The number of a model's rows that may run as one is found by running it (runtime/call/batch.h),
 * which takes longer than loading the model. So models are served at once, each request alone, and
 * a thread of libuv's pool tries one model after the other in memory of its own. What one try has
 * no time for is left for the next ones (server/model/model_trial.h), which give way to calls.
 * Everything here belongs to the loop, except what the thread reads while it tries.
 */
#ifndef PTED_SERVER_DAEMON_SERVING_PROVING_H
#define PTED_SERVER_DAEMON_SERVING_PROVING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"
#include "server/model/model_trial.h"

struct loop;
struct model;
struct params;
struct serving;
struct servings;
struct trim;

#define PROVING_MAGIC 0x70726f76u

/* What proving uses; all of it is borrowed. */
struct proving_uses {
    struct loop *loop;
    struct servings *servings;
    struct trim *trim;
    const struct params *params;
};

struct proving {
    uint32_t magic;
    struct proving_uses uses;
    uv_timer_t timer; /* the next try of a model is due */
    uv_work_t work;
    atomic_bool is_stopped;  /* the daemon stops; any thread */
    struct serving *serving; /* held while a model is tried; otherwise NULL */
    struct model *model;     /* shared: ref held; the model that is being tried, or NULL */
    /* ---- the thread's, while it tries ---- */
    size_t ring_bytes;        /* memory for the trial */
    bool insists;             /* the try runs while calls want the device */
    uint32_t waits_left;      /* ms that it may still wait for an idle device */
    struct model_trial trial; /* a copy of the model's, which it carries on */
    struct error why_not;     /* its code: ST_OK: all rows are proven; ST_TIMEOUT: late */
    struct error why_one;     /* the same for guessed tokens */
    bool measured_late;       /* there was no time to measure what is proven */
    bool mixed_late;          /* the same for rows of siblings */
    struct model *sibling;    /* shared: ref held; steps of both run as one; or NULL */
};

void proving_init(struct proving *proving, const struct proving_uses *uses);

/* Call when the loop has begun, or has a new serving. */
void proving_begin(struct proving *proving);

/* Call when the daemon stops: ends the present try soon, and begins no other. The loop. */
void proving_stop(struct proving *proving);

#endif
