/* SPDX-License-Identifier: MIT */
/*
 * The loop over the steps of a request (request.def), and what a step calls at its end. Private to
 * this folder. Threads as in request.h: LOOP steps run on the loop, ANYWHERE steps on whatever
 * thread has the request.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_REQUEST_STEPS_H
#define PTED_SERVER_DAEMON_REQUEST_REQUEST_STEPS_H

#include "server/daemon/request/request_priv.h"

enum request_step_result {
    STEP_NEXT,
    STEP_MOVE, /* the step goes on, or begins again, at the next place
                  (server/daemon/infer/work.h) */
    STEP_WAIT,
};
enum request_step_where { LOOP, ANYWHERE };

typedef enum request_step_result request_step_f(struct request *request);
typedef enum outcome request_call_f(struct infer *infer, struct error *err);

/* A row of request.def. */
struct request_step_info {
    const char *name;
    request_step_f *run;
    request_call_f *call;   /* of request_step_call() */
    enum request_step then; /* likewise: follows it if it is done */
    enum request_step_where where;
    unsigned next; /* bits of the steps that may come next */
};

extern const struct request_step_info request_steps[STEP_COUNT];

/* ---- request.c: the steps -------------------------------------------------------------------- */

#define STEP(name, fn, where, next) request_step_f fn;
#define CALL_STEP(name, call, then, where, next)
#include "server/daemon/request/request.def"
#undef STEP
request_step_f request_step_call;

/* ---- request_steps.c ------------------------------------------------------------------------- */

/* Makes |next| the present step, which request.def lets follow the one before. */
void request_go(struct request *request, enum request_step next);

/* Ends a step with |outcome|, of which this is the only reader: goes on to |next|, or tries the
 * step again somewhere or after a wait, or goes to the answer with the reason in |request->err|. */
enum request_step_result request_advance(struct request *request, enum outcome outcome,
                                         enum request_step next);

/* Ends a step with the reason in |request->err|. */
enum request_step_result request_fail(struct request *request);

/* Returns the outcome of a step that never begins again. */
static inline enum outcome request_outcome_of(enum status status)
{
    return status == ST_OK ? OUTCOME_DONE : OUTCOME_FAILED;
}

/* Runs steps on the loop until one waits, or another thread has the request. The request may be
 * over then. Call on the loop, while it has the request. */
void request_run_steps(struct request *request);

#endif
