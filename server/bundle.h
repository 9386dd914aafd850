/* SPDX-License-Identifier: MIT */
/*
 * POST /v2/batch: a list of calls of any models, answered together. Each has an answer and a status
 * of its own. An input of one may be a result of another; the whole is a partial cascade
 * (runtime/pipeline/cascade.h), one job of the scheduler, and one reservation of memory or none.
 *
 * What is wrong with the list refuses it: its text, ids that repeat or that nobody has, circles,
 * binary data that cannot be shared out. All else is the affair of one call, and of those that take
 * its results.
 */
#ifndef PTED_SERVER_BUNDLE_H
#define PTED_SERVER_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/pipeline/cascade.h"
#include "server/infer.h"

#define BUNDLE_CALLS_MAX RT_CASCADE_STEPS_MAX

/* An input that is a result of call |from|. */
struct bundle_promise {
    uint32_t from;
    const struct oip_promise *said;
    const char *place;           /* "inputs[0].$from" */
    struct span name;            /* of the input, in the protocol's form */
    uint32_t input;              /* raw; in the method's own form */
    const struct oip_type *type; /* that the call says the result has, or NULL */
    const struct shape *shape;   /* likewise */
};

struct bundle_call {
    struct infer_call call;
    struct span id, text;
    struct span model_name, model_version;
    bool has_id, has_model, has_version, has_inputs, has_arguments;
    bool is_silent;                  /* only its status is answered */
    struct error err;                /* why it has failed; code ST_OK: it has not */
    struct bundle_promise *promises; /* all that it takes; in the arena */
    uint32_t promise_count;
    uint32_t step; /* of the cascade: after the steps that it takes results of */
};

struct bundle {
    struct bundle_call *calls; /* in the request's arena, like the other arrays */
    uint32_t count, capacity, promise_count;
    uint32_t *order;             /* by step: its call */
    struct rt_sched_turn *turns; /* in the sequences of its calls */
    uint32_t turn_count;
    struct rt_cascade_edge *edges;
    struct rt_cascade_layout layout;
    struct rt_cascade *cascade; /* owned; has the invocations once they are made */
    size_t demand;              /* with that: memory that all of it takes at least */
};

extern const struct infer_ops bundle_ops; /* bundle.c */

/* What the list of |request| holds, if that is one. */
void bundle_free(struct request *request);

/* bundle_read.c: the text becomes calls, each with its form's parse() behind it, with promises and
 * an order; out of memory of |request|. */
MUST_CHECK enum status bundle_read(struct request *request, const struct oip_body *parts,
                                   struct error *err);

/* Where call |index| is named in messages about the list: "[2]". */
enum status bundle_prefix(uint32_t index, const char *separator, struct error *err);

#endif
