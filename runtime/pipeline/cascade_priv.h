/* SPDX-License-Identifier: MIT */
/* The inside of a cascade, shared by preparing and running it. See runtime/pipeline/cascade.h. */
#ifndef PTED_RUNTIME_PIPELINE_CASCADE_PRIV_H
#define PTED_RUNTIME_PIPELINE_CASCADE_PRIV_H

#include <stdatomic.h>

#include "runtime/call/invocation.h"
#include "runtime/pipeline/cascade.h"
#include "runtime/sched/sched.h"

/* Semaphores that one submission can wait for; two of its timepoints stay free. */
#define RT_CASCADE_WAITS_MAX 6

struct cascade_step {
    struct rt_cascade *cascade;
    struct rt_invocation *invocation; /* owned */
    struct hal_timepoint end;         /* semaphore: ref held; NULL: no step waits for it */
    enum status status;
    struct error error; /* when status is not ST_OK */
    struct rt_culprit culprit;
    uint64_t done_ns;   /* when the step was over, on the monotone clock; not in partial cascades */
    size_t given_bytes; /* pool bytes of the call before it was prepared */
    bool is_late; /* started by the thread that completes the last step that it has to follow */
    bool is_connected; /* its edges are bound */
    bool is_prepared;  /* it has its memory */
    int64_t rows_max;  /* that may run as one with it */
    int64_t joined;    /* rt_cascade_joined() */
    atomic_uint pending;
    struct rt_sched_job job; /* in a cascade that was handed over */
};

#define RT_CASCADE_MAGIC 0xca5cade5u

struct rt_cascade {
    uint32_t magic;
    const struct rt_cascade_layout *layout;
    struct cascade_step *steps; /* behind the struct */
    uint32_t prepared;          /* number of prepared steps */
    bool is_partial;
    atomic_bool is_cancelled; /* unless another flag is used */
    atomic_bool *cancel;
    atomic_uint left;
    /* Borrowed: the steps are its children; NULL: they are not. Set before the first child is
     * submitted; a thread that cancels may look at it at any time. */
    _Atomic(struct rt_sched_job *) parent;
    struct rt_sched_queue *const *queues; /* borrowed: of them */
    uint64_t submitted_ns;                /* like done_ns */
    rt_cascade_done_f *done;
    void *arg;
    rt_cascade_event_f *trace;
    void *trace_arg;
};

/* Returns the job whose children the steps are, or NULL. */
static inline struct rt_sched_job *rt_cascade_parent(const struct rt_cascade *cascade)
{
    return atomic_load_explicit(&cascade->parent, memory_order_relaxed);
}

/* Both calls use one state, so one has to be over before the other begins. */
bool rt_cascade_share_state(const struct rt_cascade *cascade, uint32_t a, uint32_t b);

/* Returns a producer whose failure step |index| shares; |index| itself if there is none. */
uint32_t rt_cascade_failed_producer(const struct rt_cascade *cascade, uint32_t index);

/* Step |index| of a cascade that was handed over is prepared and waits for nothing: it becomes a
 * child of the parent. */
void rt_cascade_submit_child(struct rt_cascade *cascade, uint32_t index);

/* |step| has run, or will not run: the call of the step is over. */
void rt_cascade_end_step(struct cascade_step *step, enum status status);
void rt_cascade_on_step_done(struct rt_invocation *invocation, enum status status, void *step);

/* Prepares a step that had to wait for its producers; or finds that it is not to run, with the
 * reason in the step's error. */
MUST_CHECK enum status rt_cascade_prepare_late(struct rt_cascade *cascade, uint32_t index);

#endif
