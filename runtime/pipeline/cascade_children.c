/* SPDX-License-Identifier: MIT */
/*
 * Steps as jobs of the scheduler, children of a parent that has yielded. A step becomes a job
 * when all that it follows is over, so it waits for nothing but its turn. It may then run as one
 * with any calls of its method.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/call/batch.h"
#include "runtime/call/inside.h"
#include "runtime/pipeline/cascade_priv.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/sched/job.h"

static struct cascade_step *step_of(struct rt_sched_job *job)
{
    return LIST_ENTRY(job, struct cascade_step, job);
}

static bool start_child(struct rt_sched_job *job, bool may_run_inline)
{
    (void)may_run_inline;
    rt_invocation_submit(step_of(job)->invocation, HAL_CALLER_BUSY, rt_job_end, job);
    return true;
}

static bool cancel_child(struct rt_sched_job *job)
{
    return rt_batch_leave(step_of(job)->invocation);
}

static void on_child_done(struct rt_sched_job *job, enum status status)
{
    struct cascade_step *step = step_of(job);
    if (job->batch_size > 1) {
        step->joined = job->is_batch_end ? job->batch_rows : -1;
    }
    rt_cascade_end_step(step, status);
}

static const struct rt_sched_job_ops child_ops = {
    .start = start_child,
    .start_batch = rt_job_start_batch,
    .fits = rt_job_fits,
    .cancel = cancel_child,
    .done = on_child_done,
};

/* Steps with states run alone: their memory is in use until they are over, whoever leaves. */
static int64_t child_rows(const struct rt_sched_queue *queue, const struct rt_invocation *inv)
{
    bool may_join = rt_sched_queue_joins(queue) &&
                    inv->method->callable->why_alone == REASON_NONE && inv->plan &&
                    !inv->method->steps;
    return may_join ? rt_batch_rows(inv) : 0;
}

void rt_cascade_submit_child(struct rt_cascade *cascade, uint32_t index)
{
    struct cascade_step *step = &cascade->steps[index];
    struct rt_invocation *inv = step->invocation;
    struct rt_sched_job *parent = rt_cascade_parent(cascade);
    struct error err;
    inv->is_awaited = false;
    if (!cascade->queues[index] || rt_pipeline_step_count(inv->method) > 0) {
        inv->parent = parent;
        rt_invocation_submit(inv, HAL_CALLER_BUSY, rt_cascade_on_step_done, step);
        return;
    }
    step->job.ops = &child_ops;
    step->job.deadline_ns = RT_SCHED_NEVER;
    step->job.priority = parent->priority;
    step->job.rows = child_rows(cascade->queues[index], inv);
    step->job.call = inv;
    step->job.parent = parent;
    step->job.is_uncounted = !cascade->is_partial; /* only calls of lists count for their models */
    enum status status = rt_sched_submit(cascade->queues[index], &step->job, false, &err);
    must(status == ST_OK); /* a child is not refused, and needs no memory: rt_sched_yield() */
}

/* Only the end of a step lets those behind it begin. */
static void make_all_late(struct rt_cascade *cascade)
{
    for (uint32_t i = 0; i < cascade->layout->step_count; i++) {
        struct cascade_step *step = &cascade->steps[i];
        step->is_late |= step->status == ST_OK && atomic_load(&step->pending) > 0;
    }
}

void rt_cascade_hand_over(struct rt_cascade *cascade, struct rt_sched_job *parent,
                          struct rt_sched_queue *const *queues)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    must(cascade->prepared == cascade->layout->step_count && !rt_cascade_parent(cascade));
    atomic_store_explicit(&cascade->parent, parent, memory_order_relaxed);
    cascade->queues = queues;
    make_all_late(cascade);
}
