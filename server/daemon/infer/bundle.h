/* SPDX-License-Identifier: MIT */
/*
 * POST /v2/batch: a list of calls of any models, answered together. Each call has its own answer
 * and status. An input of one call may be a result of another. The whole is a partial cascade
 * (runtime/pipeline/cascade.h), one job of the scheduler, and either one reservation of memory or
 * none.
 *
 * Errors of the list refuse the list: in its text, ids that repeat or are unknown, circles, binary
 * data that cannot be assigned to calls. Any other error belongs to one call and to the calls that
 * take its results.
 */
#ifndef PTED_SERVER_DAEMON_INFER_BUNDLE_H
#define PTED_SERVER_DAEMON_INFER_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/pipeline/cascade.h"
#include "server/daemon/infer/infer.h"

#define BUNDLE_CALLS_MAX RT_CASCADE_STEPS_MAX

/* An input that is a result of call |from|. */
struct bundle_promise {
    uint32_t from;
    const struct oip_promise *said;
    const char *place;           /* the place in the text: "inputs[0].$from" */
    struct span name;            /* of the input, in the protocol's form */
    uint32_t input;              /* raw index, in the method's own form */
    const struct oip_type *type; /* that the call declares for the result, or NULL */
    const struct shape *shape;   /* likewise */
    const char *whole; /* of the first part of a structure: the structure's place; or NULL */
    uint32_t node;     /* then: the structure among the inputs */
};

struct bundle_call {
    struct infer_call call;
    struct span id, text;
    struct span model_name, model_version;
    bool has_id, has_model, has_version, has_inputs, has_arguments;
    bool is_silent;                  /* the answer holds only its status */
    struct error err;                /* why it has failed; code ST_OK: it has not */
    struct bundle_promise *promises; /* all promises that it takes; in the arena */
    uint32_t promise_count;
    uint32_t step; /* its step of the cascade, behind the steps whose results it takes */
};

#define BUNDLE_MAGIC 0x62756e64u

struct bundle {
    uint32_t magic;
    struct bundle_call *calls; /* in the request's arena, like the other arrays */
    uint32_t count, promise_count;
    size_t capacity;
    uint32_t *order;                 /* by step: the call's index */
    struct rt_sched_ticket *tickets; /* places in the sequences of the calls */
    uint32_t ticket_count;
    struct rt_cascade_edge *edges;
    struct rt_cascade_layout layout;
    struct rt_sched_queue **queues; /* by step: its model's; NULL: it fails */
    struct rt_cascade *cascade;     /* owned; owns the invocations once they are made */
    size_t demand;                  /* least memory of all invocations together */
};

extern const struct infer_ops bundle_ops; /* bundle.c */

/* Returns the list that |infer| is. */
struct bundle *bundle_of(const struct infer *infer);

struct bundle_call *bundle_call_of(const struct bundle *bundle, uint32_t step);

/* In bundle_read.c: turns the text into calls, runs parse() of each call's codec, and adds promises
 * and an order. Uses memory of |request|. */
MUST_CHECK enum status bundle_read(struct infer *infer, const struct oip_body *parts,
                                   struct error *err);

/* In bundle_edges.c: an edge for each promise, in the order of the steps, also between failed
 * calls: edges decide which call fails with which. A promise that cannot be kept fails its call. */
MUST_CHECK enum status bundle_make_edges(struct infer *infer, struct error *err);

/* Begins a message about call |index| of the list: "[2]". */
enum status bundle_prefix(uint32_t index, const char *separator, struct error *err);

#endif
