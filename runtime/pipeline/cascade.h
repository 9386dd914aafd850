/* SPDX-License-Identifier: MIT */
/*
 * Invocations that feed each other, as one: all are validated, given their memory and submitted
 * before the first has run. A result is the input of another step by buffer identity; the device
 * waits for it, no thread does. Where the size of a result depends on data, the steps that it feeds
 * are late: the worker that completes their last producer prepares and submits them. It also
 * submits the steps that have more producers than a device can wait for, and those that use the
 * state of an earlier step (runtime/program/state.h): such steps follow each other. Steps that are
 * jobs of the scheduler, to run as one with other calls, are all of that kind.
 *
 *     rt_cascade_new          for a fixed set of edges; used again and again
 *     rt_cascade_set_step     for each step: its invocation, filled except for inputs from edges
 *     rt_cascade_prepare      every refusal, and all of the memory or none of it
 *     rt_cascade_hand_over    (optional) the steps are to be jobs of the scheduler
 *     rt_cascade_submit       |done| is called once
 *     rt_cascade_reset        frees the invocations
 *
 * Belongs to one thread at a time, like an invocation. Pipelines (runtime/pipeline/pipeline.h) are
 * made of it, and so are calls that name each other's results.
 */
#ifndef PTED_RUNTIME_PIPELINE_CASCADE_H
#define PTED_RUNTIME_PIPELINE_CASCADE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "hal/queue.h"
#include "runtime/call/invocation.h"

struct hal_pool;
struct rt_cascade;
struct rt_culprit;
struct rt_invocation;
struct rt_io;
struct rt_sched_job;
struct rt_sched_queue;
struct shape;

#define RT_CASCADE_STEPS_MAX 64
#define RT_CASCADE_EDGES_MAX 1024

/* Result |output| of step |from| is input |input| of step |to|, a later step. Raw indices. */
struct rt_cascade_edge {
    uint32_t from, output, to, input;
    const char *place;         /* how messages call the input; NULL: by its name */
    const struct shape *shape; /* shape that the result must have; NULL: any that the input takes */
};

/* Immutable; outlives the cascades made of it. */
struct rt_cascade_layout {
    const struct rt_cascade_edge *edges; /* sorted by |to| */
    uint32_t edge_count, step_count;
};

/* Fails with ST_INVALID: too many steps or edges, or |from| is not before |to|. */
MUST_CHECK enum status rt_cascade_verify(const struct rt_cascade_layout *layout, struct error *err);

/* Can a value like |result| be input |input|? ST_INVALID says why it never can: kind, element type,
 * rank, or a dim. */
MUST_CHECK enum status rt_cascade_verify_edge(const struct rt_io *result, const struct rt_io *input,
                                              struct error *err);

/* |is_partial|: a failed step takes only the steps with it that depend on it, and the cascade's own
 * status is ST_OK; otherwise the first failure ends the whole. NULL: no memory. */
struct rt_cascade *rt_cascade_new(const struct rt_cascade_layout *layout, bool is_partial);
size_t rt_cascade_heap_bytes(const struct rt_cascade_layout *layout); /* without invocations */
void rt_cascade_free(struct rt_cascade *cascade); /* not while submitted; NULL is fine */

/* Frees all invocations and forgets what was prepared. */
void rt_cascade_reset(struct rt_cascade *cascade);

/* Gives |invocation| to the cascade, which owns it from now on. Once for each step, before
 * prepare. */
void rt_cascade_set_step(struct rt_cascade *cascade, uint32_t step,
                         struct rt_invocation *invocation);
struct rt_invocation *rt_cascade_step(const struct rt_cascade *cascade, uint32_t step);

/* For a cascade that is not partial, before the first step is set: |cancel| is the flag that
 * cancels it, and that its failure sets. */
void rt_cascade_share_cancel(struct rt_cascade *cascade, atomic_bool *cancel);

/* Call after done, not for partial cascades: frees the invocations of the other steps, with their
 * results. |steps| has a bit for each step to keep. */
void rt_cascade_keep(struct rt_cascade *cascade, uint64_t steps);

/* Call before prepare: this step has failed already, |err| says why. Partial cascades only. */
void rt_cascade_fail_step(struct rt_cascade *cascade, uint32_t step, const struct error *err);

/*
 * Prepares step by step. With RT_PREPARE_CACHED it ends at the first step without a plan with
 * ST_WOULD_PLAN; a call with RT_PREPARE_ALL goes on from there. After another failure |out_step| is
 * the step at fault, and the cascade is to be reset. In a partial cascade only lack of memory is a
 * failure of the whole; any other failure belongs to its step.
 */
MUST_CHECK enum status rt_cascade_prepare(struct rt_cascade *cascade, enum rt_prepare_mode mode,
                                          uint32_t *out_step, struct error *err);

/* Does step |step| have its memory, so that its results of known size can be described? */
bool rt_cascade_is_prepared(const struct rt_cascade *cascade, uint32_t step);

/*
 * Call before a reset, also after a failure: the least pool memory that all steps take together, by
 * the sizes that are known before anything runs. A cascade whose demand exceeds the pool never
 * fits.
 */
size_t rt_cascade_demand(const struct rt_cascade *cascade);

/* Pool memory that the prepared steps hold. */
size_t rt_cascade_bytes(const struct rt_cascade *cascade);

/* Call after done: |pool| holds the memory of the results of all steps from now on, as by
 * rt_invocation_move_results(). */
MUST_CHECK enum status rt_cascade_move_results(struct rt_cascade *cascade, struct hal_pool *pool,
                                               struct error *err);

/*
 * Call before submit, for partial cascades: step |step| may run as one with other steps that follow
 * no step, up to |rows_max| rows; rt_batch_prove() has to have allowed as many. After done:
 * rt_cascade_joined() says how many rows ran as one with it; 0: it ran alone; -1: they count
 * elsewhere, for another step or another call.
 */
void rt_cascade_join(struct rt_cascade *cascade, uint32_t step, int64_t rows_max);
int64_t rt_cascade_joined(const struct rt_cascade *cascade, uint32_t step);

/*
 * Call before submit, after rt_sched_yield() of |parent|: the steps are children of that job.
 * |queues|, which lives until done, is by step: where its call waits; NULL: it is submitted at
 * once, but if it is a call of a pipeline, then the steps of that are children as well. From then
 * on |parent| answers for the steps: nobody may wait for their timepoints, and rt_cascade_cancel()
 * leaves steps that run with others to rt_sched_cancel().
 */
void rt_cascade_hand_over(struct rt_cascade *cascade, struct rt_sched_job *parent,
                          struct rt_sched_queue *const *queues);

/* Called when all steps are over; it may reset the cascade. */
typedef void rt_cascade_done_f(struct rt_cascade *cascade, enum status status, void *arg);

/*
 * Steps without producers start after |waits|, whose semaphores live until then. With |caller|
 * HAL_CALLER_QUICK the thread runs no step itself if there are more than a few, steps of pipelines
 * included.
 */
void rt_cascade_submit(struct rt_cascade *cascade, const struct hal_timepoint *waits,
                       uint32_t wait_count, enum hal_caller caller, rt_cascade_done_f *done,
                       void *arg);

/* Call on any thread, between submit and done: steps that have not run will not run. */
void rt_cascade_cancel(struct rt_cascade *cascade);

/* Call after done: the status of step |step| and its error; the step whose failure that is, itself
 * or one whose results it takes; the step that made the cascade fail. */
enum status rt_cascade_status(const struct rt_cascade *cascade, uint32_t step);
const struct error *rt_cascade_error(const struct rt_cascade *cascade, uint32_t step);
const struct rt_culprit *rt_cascade_culprit(const struct rt_cascade *cascade, uint32_t step);
uint32_t rt_cascade_cause(const struct rt_cascade *cascade, uint32_t step);
uint32_t rt_cascade_failed_step(const struct rt_cascade *cascade);

/* Call after done, not for partial cascades. For each step: ns from the end of its last predecessor
 * to its own end. |out_ns| has room for RT_CASCADE_STEPS_MAX. */
void rt_cascade_times(const struct rt_cascade *cascade, uint64_t *out_ns);

/* For tests: the events of each step, on the thread where they happen. */
enum rt_cascade_event { RT_CASCADE_SUBMITTED, RT_CASCADE_COMPLETED };
typedef void rt_cascade_event_f(enum rt_cascade_event event, uint32_t step, void *arg);
void rt_cascade_trace(struct rt_cascade *cascade, rt_cascade_event_f *fn, void *arg);

#endif
