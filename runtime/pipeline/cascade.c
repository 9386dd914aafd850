/* SPDX-License-Identifier: MIT */
/*
 * |left| counts the steps that are not over, and the submission itself; the thread that takes the
 * last one ends the cascade. A late step counts in |pending| its producers and the earlier steps of
 * its state; the thread that takes the last of those starts the step, or skips it if a producer has
 * failed.
 */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "runtime/call/batch.h"
#include "runtime/call/inside.h"
#include "runtime/pipeline/cascade_priv.h"
#include "runtime/pipeline/pipeline.h"

/* ---- life ------------------------------------------------------------------------------------ */

size_t rt_cascade_heap_bytes(const struct rt_cascade_layout *layout)
{
    return sizeof(struct rt_cascade) + layout->step_count * sizeof(struct cascade_step);
}

struct rt_cascade *rt_cascade_new(const struct rt_cascade_layout *layout, bool is_partial)
{
    must(layout->step_count > 0);
    struct rt_cascade *cascade = calloc(1, rt_cascade_heap_bytes(layout));
    if (!cascade) {
        return NULL;
    }
    cascade->magic = RT_CASCADE_MAGIC;
    cascade->layout = layout;
    cascade->is_partial = is_partial;
    cascade->cancel = &cascade->is_cancelled;
    cascade->steps = (struct cascade_step *)(cascade + 1);
    for (uint32_t i = 0; i < layout->step_count; i++) {
        cascade->steps[i].cascade = cascade;
    }
    return cascade;
}

static void release_ends(struct rt_cascade *cascade)
{
    for (uint32_t i = 0; i < cascade->layout->step_count; i++) {
        hal_semaphore_unref(cascade->steps[i].end.semaphore);
        cascade->steps[i].end.semaphore = NULL;
    }
}

void rt_cascade_reset(struct rt_cascade *cascade)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    release_ends(cascade);
    for (uint32_t i = 0; i < cascade->layout->step_count; i++) {
        struct cascade_step *step = &cascade->steps[i];
        rt_invocation_free(step->invocation);
        step->invocation = NULL;
        step->status = ST_OK;
        step->culprit.is_known = false;
        step->is_late = step->is_connected = step->is_prepared = false;
        step->rows_max = step->joined = 0;
    }
    cascade->prepared = 0;
    atomic_store_explicit(&cascade->parent, NULL, memory_order_relaxed);
    cascade->trace = NULL;
    atomic_store_explicit(&cascade->is_cancelled, false, memory_order_relaxed);
}

void rt_cascade_free(struct rt_cascade *cascade)
{
    if (cascade) {
        OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
        rt_cascade_reset(cascade);
        cascade->magic = 0;
        free(cascade);
    }
}

void rt_cascade_set_step(struct rt_cascade *cascade, uint32_t index,
                         struct rt_invocation *invocation)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    must(index < cascade->layout->step_count && invocation);
    must(!cascade->steps[index].invocation && cascade->prepared == 0);
    cascade->steps[index].invocation = invocation;
    if (!cascade->is_partial) {
        invocation->cancel = cascade->cancel;
    }
}

struct rt_invocation *rt_cascade_step(const struct rt_cascade *cascade, uint32_t index)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    return cascade->steps[index].invocation;
}

void rt_cascade_share_cancel(struct rt_cascade *cascade, atomic_bool *cancel)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    must(!cascade->is_partial);
    cascade->cancel = cancel;
}

void rt_cascade_keep(struct rt_cascade *cascade, uint64_t steps)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    must(!cascade->is_partial); /* there a thread that cancels looks at each step */
    for (uint32_t i = 0; i < cascade->layout->step_count; i++) {
        if (!(steps >> i & 1)) {
            rt_invocation_free(cascade->steps[i].invocation);
            cascade->steps[i].invocation = NULL;
        }
    }
}

void rt_cascade_fail_step(struct rt_cascade *cascade, uint32_t index, const struct error *err)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    must(cascade->is_partial && err->code != ST_OK);
    cascade->steps[index].status = err->code;
    cascade->steps[index].error = *err;
}

size_t rt_cascade_bytes(const struct rt_cascade *cascade)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    size_t bytes = 0;
    for (uint32_t i = 0; i < cascade->layout->step_count; i++) {
        const struct rt_invocation *inv = cascade->steps[i].invocation;
        bytes += inv ? rt_invocation_bytes(inv) : 0;
    }
    return bytes;
}

enum status rt_cascade_move_results(struct rt_cascade *cascade, struct hal_pool *pool,
                                    struct error *err)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    for (uint32_t i = 0; i < cascade->layout->step_count; i++) {
        const struct cascade_step *step = &cascade->steps[i];
        if (step->invocation && step->status == ST_OK) {
            TRY(rt_invocation_move_results(step->invocation, pool, err));
        }
    }
    return ST_OK;
}

enum status rt_cascade_status(const struct rt_cascade *cascade, uint32_t index)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    return cascade->steps[index].status;
}

bool rt_cascade_share_state(const struct rt_cascade *cascade, uint32_t a, uint32_t b)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    const struct rt_invocation *one = cascade->steps[a].invocation;
    const struct rt_invocation *two = cascade->steps[b].invocation;
    return one && two && one->state && one->state == two->state;
}

uint32_t rt_cascade_failed_producer(const struct rt_cascade *cascade, uint32_t index)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    const struct rt_cascade_layout *layout = cascade->layout;
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        const struct rt_cascade_edge *edge = &layout->edges[i];
        if (edge->to == index && cascade->steps[edge->from].status != ST_OK) {
            return edge->from;
        }
    }
    return index;
}

uint32_t rt_cascade_cause(const struct rt_cascade *cascade, uint32_t index)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    uint32_t from = rt_cascade_failed_producer(cascade, index);
    while (from != index) {
        index = from;
        from = rt_cascade_failed_producer(cascade, index);
    }
    return index;
}

const struct error *rt_cascade_error(const struct rt_cascade *cascade, uint32_t index)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    must(cascade->steps[index].status != ST_OK);
    return &cascade->steps[index].error;
}

const struct rt_culprit *rt_cascade_culprit(const struct rt_cascade *cascade, uint32_t index)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    must(cascade->steps[index].status != ST_OK);
    return &cascade->steps[index].culprit;
}

/* The cause of a failure: a step that follows from it has its status or is cut, and comes after it
 * or is cut. */
uint32_t rt_cascade_failed_step(const struct rt_cascade *cascade)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    uint32_t found = 0;
    for (uint32_t i = cascade->layout->step_count; i-- > 0;) {
        enum status status = cascade->steps[i].status, best = cascade->steps[found].status;
        if (status != ST_OK && (status != ST_CANCELLED || best == ST_OK || best == ST_CANCELLED)) {
            found = i;
        }
    }
    return found;
}

/* Step |before| was over before step |index| began. */
static void begin_behind(const struct rt_cascade *cascade, uint32_t before, uint32_t index,
                         uint64_t *begun)
{
    uint64_t over = cascade->steps[before].done_ns;
    begun[index] = over > begun[index] ? over : begun[index];
}

void rt_cascade_times(const struct rt_cascade *cascade, uint64_t *out_ns)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    const struct rt_cascade_layout *layout = cascade->layout;
    for (uint32_t i = 0; i < layout->step_count; i++) {
        out_ns[i] = cascade->submitted_ns;
        for (uint32_t k = 0; k < i; k++) {
            if (rt_cascade_share_state(cascade, k, i)) {
                begin_behind(cascade, k, i, out_ns);
            }
        }
    }
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        begin_behind(cascade, layout->edges[i].from, layout->edges[i].to, out_ns);
    }
    for (uint32_t i = 0; i < layout->step_count; i++) {
        uint64_t done = cascade->steps[i].done_ns;
        out_ns[i] = done > out_ns[i] ? done - out_ns[i] : 0; /* the device may know sooner */
    }
}

void rt_cascade_trace(struct rt_cascade *cascade, rt_cascade_event_f *fn, void *arg)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    cascade->trace = fn;
    cascade->trace_arg = arg;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Lists of calls are timed as a whole. */
static uint64_t clock_ns(const struct rt_cascade *cascade)
{
    struct timespec now = {0};
    if (!cascade->is_partial) {
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void tell(const struct rt_cascade *cascade, enum rt_cascade_event event, uint32_t step)
{
    if (cascade->trace) {
        cascade->trace(event, step, cascade->trace_arg);
    }
}

static void count_down(struct rt_cascade *cascade)
{
    if (atomic_fetch_sub_explicit(&cascade->left, 1, memory_order_acq_rel) != 1) {
        return;
    }
    release_ends(cascade);
    enum status status = cascade->steps[rt_cascade_failed_step(cascade)].status;
    cascade->done(cascade, cascade->is_partial ? ST_OK : status, cascade->arg);
}

static void start_late(struct rt_cascade *cascade, uint32_t index);

/* A step that step |index| has to follow is over. */
static void come_closer(struct rt_cascade *cascade, uint32_t index)
{
    struct cascade_step *step = &cascade->steps[index];
    if (step->is_late && atomic_fetch_sub_explicit(&step->pending, 1, memory_order_acq_rel) == 1) {
        start_late(cascade, index);
    }
}

/* Step |index| has its status: steps that wait for it may go on, or never will. */
static void step_over(struct rt_cascade *cascade, uint32_t index)
{
    const struct rt_cascade_layout *layout = cascade->layout;
    cascade->steps[index].done_ns = clock_ns(cascade);
    tell(cascade, RT_CASCADE_COMPLETED, index);
    if (cascade->steps[index].status != ST_OK && !cascade->is_partial) {
        atomic_store_explicit(cascade->cancel, true, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        if (layout->edges[i].from == index) {
            come_closer(cascade, layout->edges[i].to);
        }
    }
    for (uint32_t i = index + 1; i < layout->step_count; i++) {
        if (rt_cascade_share_state(cascade, index, i)) {
            come_closer(cascade, i);
        }
    }
    count_down(cascade);
}

void rt_cascade_end_step(struct cascade_step *step, enum status status)
{
    const struct rt_invocation *inv = step->invocation;
    OBJ_CHECK(step->cascade, RT_CASCADE_MAGIC);
    must(step->is_prepared);
    step->status = status;
    if (status != ST_OK && inv->phase == RT_PHASE_DONE) {
        step->error = *rt_invocation_error(inv);
        step->culprit = *rt_invocation_culprit(inv);
    } else if (status != ST_OK) { /* it was cut while it ran as one with others */
        error_set(&step->error, status, "%s", status_text(status));
    }
    step_over(step->cascade, (uint32_t)(step - step->cascade->steps));
}

void rt_cascade_on_step_done(struct rt_invocation *inv, enum status status, void *arg)
{
    const struct cascade_step *step = arg;
    must(step->invocation == inv);
    rt_cascade_end_step(arg, status);
}

/* Counts each producer once: a step with more producers than a submission can wait for is late. */
static void wait_for_producers(struct rt_cascade *cascade, uint32_t index)
{
    const struct rt_cascade_layout *layout = cascade->layout;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        const struct rt_cascade_edge *edge = &layout->edges[i];
        uint64_t bit = (uint64_t)1 << edge->from;
        if (edge->to == index && !(seen & bit)) {
            rt_invocation_after(cascade->steps[index].invocation, &cascade->steps[edge->from].end);
            seen |= bit;
        }
    }
}

/* On the worker that completed the last step that this one has to follow; all inputs are there. */
static void start_late(struct rt_cascade *cascade, uint32_t index)
{
    struct cascade_step *step = &cascade->steps[index];
    step->status = rt_cascade_prepare_late(cascade, index);
    if (step->status != ST_OK) {
        if (step->is_prepared) {
            rt_invocation_give_up(step->invocation, step->status);
        }
        step_over(cascade, index);
        return;
    }
    tell(cascade, RT_CASCADE_SUBMITTED, index);
    if (rt_cascade_parent(cascade)) {
        rt_cascade_submit_child(cascade, index);
    } else {
        rt_invocation_submit(step->invocation, HAL_CALLER_BUSY, rt_cascade_on_step_done, step);
    }
}

static void submit_step(struct rt_cascade *cascade, uint32_t index,
                        const struct hal_timepoint *waits, uint32_t wait_count,
                        enum hal_caller caller)
{
    struct cascade_step *step = &cascade->steps[index];
    wait_for_producers(cascade, index);
    bool is_first =
        step->invocation->wait_count == 0; /* a step that follows another has waited through it */
    for (uint32_t i = 0; is_first && i < wait_count; i++) {
        rt_invocation_after(step->invocation, &waits[i]);
    }
    tell(cascade, RT_CASCADE_SUBMITTED, index);
    if (rt_cascade_parent(cascade)) {
        rt_cascade_submit_child(cascade, index);
    } else {
        rt_invocation_submit(step->invocation, caller, rt_cascade_on_step_done, step);
    }
}

/* ---- steps that run as one ------------------------------------------------------------------- */

void rt_cascade_join(struct rt_cascade *cascade, uint32_t index, int64_t rows_max)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    must(cascade->is_partial);
    cascade->steps[index].rows_max = rows_max;
}

int64_t rt_cascade_joined(const struct rt_cascade *cascade, uint32_t index)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    return cascade->steps[index].joined;
}

/* The rows that a step brings to others; 0: it runs alone, or has to follow a step. */
static int64_t rows_of(const struct rt_cascade *cascade, uint32_t index)
{
    const struct rt_cascade_layout *layout = cascade->layout;
    const struct cascade_step *step = &cascade->steps[index];
    bool may_join = step->rows_max > 1 && !step->is_late && step->status == ST_OK;
    for (uint32_t i = 0; may_join && i < layout->edge_count; i++) {
        may_join = layout->edges[i].to != index;
    }
    return may_join ? rt_batch_rows(step->invocation) : 0;
}

struct joining {
    struct rt_invocation *parts[RT_CASCADE_STEPS_MAX];
    void *steps[RT_CASCADE_STEPS_MAX];
    int64_t rows;
    uint32_t count;
};

/* Step |first| and later ones that may run as one with it, and are not in |begun|. */
static void gather(struct rt_cascade *cascade, uint32_t first, uint64_t begun, struct joining *out)
{
    struct rt_invocation *head = cascade->steps[first].invocation;
    out->rows = out->count = 0;
    for (uint32_t i = first; i < cascade->layout->step_count; i++) {
        struct cascade_step *step = &cascade->steps[i];
        int64_t rows = begun >> i & 1 ? 0 : rows_of(cascade, i);
        if (rows > 0 && rows <= cascade->steps[first].rows_max - out->rows &&
            step->invocation->method == head->method && rt_batch_fits(head, step->invocation)) {
            out->parts[out->count] = step->invocation;
            out->steps[out->count++] = step;
            out->rows += rows;
        }
    }
}

/* False: step |first| has no others. Steps that have been submitted are in |begun|; without memory
 * for all as one, they run side by side. */
static bool submit_joined(struct rt_cascade *cascade, uint32_t first, uint64_t *begun)
{
    struct joining all;
    struct error ignored;
    _Static_assert(RT_CASCADE_STEPS_MAX <= RT_BATCH_CALLS_MAX, "all steps may run as one");
    if (rows_of(cascade, first) == 0) {
        return false;
    }
    gather(cascade, first, *begun, &all);
    if (all.count < 2) {
        return false;
    }
    for (uint32_t i = 0; i < all.count; i++) {
        struct cascade_step *step = all.steps[i];
        step->joined = i == 0 ? all.rows : -1;
        *begun |= (uint64_t)1 << (step - cascade->steps);
        tell(cascade, RT_CASCADE_SUBMITTED, (uint32_t)(step - cascade->steps));
    }
    if (rt_batch_submit(all.parts, all.steps, all.count, rt_cascade_on_step_done, &ignored) ==
        ST_OK) {
        return true;
    }
    for (uint32_t i = 0; i < all.count; i++) {
        struct cascade_step *step = all.steps[i];
        step->joined = 0;
        rt_invocation_submit(step->invocation, HAL_CALLER_BUSY, rt_cascade_on_step_done, step);
    }
    return true;
}

/* ---- submitting ------------------------------------------------------------------------------ */

/* Calls that a caller with little time may make itself, each of a small method. */
#define QUICK_CALLS_MAX 4

static bool is_long(const struct rt_cascade *cascade)
{
    uint32_t calls = 0;
    for (uint32_t i = 0; i < cascade->layout->step_count; i++) {
        const struct rt_invocation *inv = cascade->steps[i].invocation;
        calls += inv ? rt_method_call_count(inv->method) : 0;
    }
    return calls > QUICK_CALLS_MAX;
}

void rt_cascade_submit(struct rt_cascade *cascade, const struct hal_timepoint *waits,
                       uint32_t wait_count, enum hal_caller caller, rt_cascade_done_f *done,
                       void *arg)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    uint32_t count = cascade->layout->step_count;
    must(cascade->prepared == cascade->layout->step_count);
    caller = caller == HAL_CALLER_QUICK && is_long(cascade) ? HAL_CALLER_BUSY : caller;
    cascade->done = done;
    cascade->arg = arg;
    cascade->submitted_ns = clock_ns(cascade);
    atomic_store_explicit(&cascade->left, count + 1, memory_order_relaxed);
    uint64_t begun = 0; /* with others: see submit_joined() */
    for (uint32_t i = 0; i < count; i++) {
        if (cascade->steps[i].is_late || (begun >> i & 1)) {
            continue;
        }
        if (cascade->steps[i].status != ST_OK) {
            step_over(cascade, i);
        } else if (rt_cascade_parent(cascade) || !submit_joined(cascade, i, &begun)) {
            submit_step(cascade, i, waits, wait_count, caller);
        }
    }
    count_down(cascade);
}

/*
 * The scheduler cancels children, one by one. It calls this with its lock held, so if the steps
 * become children at this moment none of them has been submitted, and there is no batch to cut.
 */
void rt_cascade_cancel(struct rt_cascade *cascade)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    bool has_parent = rt_cascade_parent(cascade) != NULL;
    atomic_store_explicit(cascade->cancel, true, memory_order_relaxed);
    for (uint32_t i = 0; cascade->is_partial && i < cascade->layout->step_count; i++) {
        struct rt_invocation *inv = cascade->steps[i].invocation;
        if (inv && has_parent) {
            rt_invocation_cancel(inv);
        } else if (inv) {
            rt_batch_cut(inv);
        }
    }
}
