/* SPDX-License-Identifier: MIT */
/*
 * start_all() is the only place that starts jobs. Every function that makes room or adds a job
 * calls it, on its own thread. After a completion the worker itself starts the next job, so the
 * device waits for no other thread.
 *
 * start() may finish its job before it returns. Then start_all(), which is still on the stack, goes
 * on with the next job. If rt_sched_finished() did so, jobs that fail at once would recurse as deep
 * as the queue is long. The same holds for all that callbacks do meanwhile, such as submitting the
 * children of a parent: see struct pause.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/sched/choose.h"
#include "runtime/sched/deadline.h"
#include "runtime/sched/queue.h"

/*
 * While a thread has one, it starts no jobs: whoever made it does so, afterwards. See start_all()
 * and finish_child().
 */
struct pause {
    struct rt_sched *sched;
    bool has_more; /* there may be something to start */
};

static _Thread_local struct pause *current_pause;

static struct pause *begin_pause(struct pause *own, struct rt_sched *sched)
{
    struct pause *before = current_pause;
    *own = (struct pause){.sched = sched};
    current_pause = own;
    return before;
}

/* As many runs as may be in use with |more| queues or parents. With the lock held, or before
 * anybody else knows |sched|. */
static bool add_runs(struct rt_sched *sched, uint32_t more)
{
    uint32_t count = sched->options.depth + sched->queue_count + sched->yielded_count + more;
    while (sched->run_count < count) {
        struct rt_sched_run *run = calloc(1, sizeof(*run));
        if (!run) {
            return false;
        }
        list_init(&run->jobs);
        list_push_front(&sched->free_runs, &run->link);
        sched->run_count++;
    }
    return true;
}

/*
 * When the last job is done, its owner may free the scheduler: on another thread, or in done(),
 * while this thread is about to look for the next job. So a thread that looks after a start() or a
 * done() has a reference, which it took while that job was not over.
 */
static void hold(struct rt_sched *sched)
{
    refs_take(&sched->refs);
}

static void let_go(struct rt_sched *sched)
{
    if (!refs_drop(&sched->refs)) {
        return;
    }
    while (!list_is_empty(&sched->free_runs)) {
        free(rt_choose_run(sched));
    }
    rt_deadlines_fini(&sched->deadlines);
    pthread_mutex_destroy(&sched->lock);
    sched->magic = 0;
    free(sched);
}

enum status rt_sched_new(const struct rt_sched_options *options, struct rt_sched **out_sched,
                         struct error *err)
{
    must(options->depth > 0 && options->clock);
    struct rt_sched *sched = calloc(1, sizeof(*sched));
    if (!sched) {
        return error_no_memory(err, "the scheduler");
    }
    sched->magic = RT_SCHED_MAGIC;
    refs_init(&sched->refs);
    sched->options = *options;
    must(pthread_mutex_init(&sched->lock, NULL) == 0);
    list_init(&sched->ready);
    list_init(&sched->free_runs);
    if (!add_runs(sched, 0)) {
        rt_sched_free(sched);
        return error_no_memory(err, "%u jobs", options->depth);
    }
    *out_sched = sched;
    return ST_OK;
}

void rt_sched_lane_init(struct rt_sched_lane *lane)
{
    list_init(&lane->tickets);
}

void rt_sched_free(struct rt_sched *sched)
{
    if (sched) {
        OBJ_CHECK(sched, RT_SCHED_MAGIC);
        pthread_mutex_lock(&sched->lock);
        must(sched->running_count == 0 && sched->queue_count == 0 && sched->yielded_count == 0);
        pthread_mutex_unlock(&sched->lock);
        let_go(sched);
    }
}

enum status rt_sched_queue_new(struct rt_sched *sched, const struct rt_sched_queue_options *options,
                               struct rt_sched_queue **out_queue, struct error *err)
{
    OBJ_CHECK(sched, RT_SCHED_MAGIC);
    struct rt_sched_queue *queue = malloc(sizeof(*queue));
    pthread_mutex_lock(&sched->lock);
    bool is_complete = queue && add_runs(sched, 1);
    sched->queue_count += is_complete;
    pthread_mutex_unlock(&sched->lock);
    if (!is_complete) {
        free(queue);
        return error_no_memory(err, "a queue");
    }
    rt_queue_init(queue, sched, options);
    *out_queue = queue;
    return ST_OK;
}

struct rt_sched_queue *rt_sched_queue_ref(struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    refs_take(&queue->refs);
    return queue;
}

void rt_sched_queue_unref(struct rt_sched_queue *queue)
{
    if (queue && refs_drop(&queue->refs)) {
        OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
        struct rt_sched *sched = queue->sched;
        pthread_mutex_lock(&sched->lock);
        must(queue->waiting_count == 0 && queue->running_count == 0 && queue->yielded_count == 0);
        rt_group_leave(queue);
        sched->queue_count--;
        pthread_mutex_unlock(&sched->lock);
        rt_queue_fini(queue);
        free(queue);
    }
}

void rt_sched_queue_join(struct rt_sched_queue *queue, const struct rt_sched_join *join)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched *sched = queue->sched;
    pthread_mutex_lock(&sched->lock);
    if (join->is_learning) {
        rt_sizing_learn(&queue->sizing, join->rows_max, join->rows);
    } else {
        rt_sizing_fix(&queue->sizing, join->rows);
    }
    queue->joined_running_max = join->running_max;
    rt_group_bound(queue);
    queue->options.delay_ns = join->delay_ns;
    atomic_store_explicit(&queue->joins, join->rows_max > 1, memory_order_relaxed);
    pthread_mutex_unlock(&sched->lock);
}

bool rt_sched_queue_joins(const struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    return atomic_load_explicit(&queue->joins, memory_order_relaxed);
}

void rt_sched_queue_sizes(struct rt_sched_queue *queue, struct rt_sched_sizes *out_sizes)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched *sched = queue->sched;
    const struct rt_sizing *sizing = &queue->sizing;
    pthread_mutex_lock(&sched->lock);
    out_sizes->rows_max = rt_sizing_best(sizing);
    out_sizes->count = sizing->count > 1 ? sizing->count : 0;
    memcpy(out_sizes->sizes, sizing->sizes, sizeof(out_sizes->sizes));
    pthread_mutex_unlock(&sched->lock);
}

/* ---- starting -------------------------------------------------------------------------------- */

static enum status outcome(const struct rt_sched_job *job, enum status status)
{
    /* A job that has run is answered with its result, even if it ended a little too late. */
    return job->is_expired && status == ST_CANCELLED ? ST_TIMEOUT : status;
}

/* NULL: its queue has left the run. */
static struct rt_sched_part *count_out(const struct rt_sched_job *job)
{
    struct rt_sched_part *part = rt_queue_find_part(job->run, job->queue);
    if (part) {
        part->left--;
        part->counted -= !job->is_uncounted;
    }
    return part;
}

/*
 * Makes |job|, which the device took in vain, the first of its queue again. False: it was cancelled
 * or has timed out, and is over.
 */
static bool put_back(struct rt_sched *sched, struct rt_sched_job *job)
{
    list_remove(&job->link);
    count_out(job);
    job->run = NULL;
    job->started_ns = job->joining_ns = 0;
    if (job->is_cancelled || job->is_expired) {
        return false;
    }
    job->state = RT_SCHED_WAITING;
    rt_queue_add(job->queue, job);
    if (!job->queue->levels) {
        list_push_back(&sched->ready, &job->queue->link);
    }
    rt_queue_ready_again(job->queue, job);
    return true;
}

/* |job|, which is in no queue any more, is over. */
static void leave(struct rt_sched *sched, struct rt_sched_job *job)
{
    must(list_is_empty(&job->children));
    rt_deadlines_remove(&sched->deadlines, job);
    rt_choose_leave_lanes(sched, job);
    list_remove(&job->child_link);
    job->state = RT_SCHED_IDLE;
}

/* Removes a waiting job, which has not run. The caller calls done(), outside the lock. */
static void withdraw(struct rt_sched *sched, struct rt_sched_job *job, uint64_t now)
{
    rt_choose_remove(sched, job);
    leave(sched, job);
    job->finished_ns = rt_sched_not_before(job->queued_ns, now);
}

/* Calls done() without the lock, which is held before and after. */
static void tell_outside(struct rt_sched *sched, struct rt_sched_job *job, enum status status)
{
    pthread_mutex_unlock(&sched->lock);
    job->ops->done(job, status);
    pthread_mutex_lock(&sched->lock);
}

/* A job that put_back() did not take: it is over without having run. */
static void drop(struct rt_sched *sched, struct rt_sched_job *job)
{
    leave(sched, job);
    job->finished_ns = sched->options.clock();
    tell_outside(sched, job, outcome(job, ST_CANCELLED));
}

/* Only the first job of |start| is tried again; the others go back to their queue. */
static void put_rest_back(struct rt_sched *sched, struct rt_sched_start *start)
{
    struct rt_sched_job *first = start->jobs[0];
    struct rt_sched_run *run = start->run;
    pthread_mutex_lock(&sched->lock);
    rt_queue_drop_guests(run);
    while (start->count > 1) {
        struct rt_sched_job *job = start->jobs[--start->count];
        if (!put_back(sched, job)) {
            drop(sched, job);
        }
    }
    rt_queue_unstarted(run);
    must(run->parts[0].left == 1 && run->parts[0].queue == first->queue);
    run->size = run->parts[0].size = first->batch_size = 1;
    first->batch_rows = run->rows = start->rows = first->rows;
    run->returning = first->returns ? first->rows : 0;
    rt_queue_started(run);
    pthread_mutex_unlock(&sched->lock);
}

/*
 * There is no memory for the one job of |start|. It waits for running jobs, and for jobs that have
 * run and keep their results until they are text. A thread that releases memory without the lock
 * counts it before it looks for starved queues. So if memory was released since |releases| was
 * read, either it is seen here, or its thread sees the queue and feeds it.
 */
static void starve(struct rt_sched *sched, struct rt_sched_start *start, unsigned releases)
{
    struct rt_sched_job *job = start->jobs[0];
    struct rt_sched_queue *queue = job->queue;
    sched->running_count--;
    rt_queue_unstarted(start->run);
    list_push_front(&sched->free_runs, &start->run->link);
    rt_choose_starve(sched, queue);
    bool is_changed = atomic_load(&sched->release_count) != releases;
    bool is_hopeless = !is_changed && sched->running_count == 0 && sched->yielded_count == 0 &&
                       atomic_load(&sched->unreleased_count) == 0;
    bool is_waiting = put_back(sched, job);
    if (is_hopeless) {
        rt_choose_feed_all(sched); /* other queues may wait for this very job */
    }
    if (is_changed || !is_waiting) {
        rt_choose_feed(sched, queue);
    }
    if (is_hopeless && is_waiting) {
        withdraw(sched, job, sched->options.clock());
        tell_outside(sched, job, ST_EXHAUSTED);
    } else if (!is_waiting) {
        drop(sched, job);
    }
}

/* True: it runs, or has run. */
static bool start_taken(struct rt_sched *sched, struct rt_sched_start *start,
                        const struct rt_sched_job *own)
{
    struct rt_sched_job *job = start->jobs[0];
    if (start->count > 1) {
        if (job->ops->start_batch(start->jobs, start->count)) {
            return true;
        }
        put_rest_back(sched, start);
    }
    return job->ops->start(job, job == own);
}

/*
 * Starts the jobs that |start| has taken, and all others that may start. |own| is the caller's job,
 * which the caller's thread may run itself; or NULL.
 */
static void start_all(struct rt_sched *sched, struct rt_sched_start *start,
                      const struct rt_sched_job *own)
{
    if (start->count == 0) {
        return;
    }
    struct pause here, *before = begin_pause(&here, sched);
    hold(sched);
    while (start->count > 0) {
        unsigned releases = atomic_load(&sched->release_count);
        bool is_started = start_taken(sched, start, own);
        if (is_started && !here.has_more &&
            atomic_load_explicit(&start->state, memory_order_relaxed) == RT_SCHED_OVER_AND_IDLE) {
            break; /* the usual case of a small model: no need to look */
        }
        uint64_t now = sched->options.clock();
        pthread_mutex_lock(&sched->lock);
        if (!is_started) {
            starve(sched, start, releases);
        } else if (atomic_load_explicit(&start->state, memory_order_relaxed) == RT_SCHED_STARTING) {
            start->run->in_start = NULL; /* from now on its end starts the next one */
        }
        here.has_more = false;
        rt_choose_next(sched, now, start);
        pthread_mutex_unlock(&sched->lock);
    }
    current_pause = before;
    let_go(sched);
}

/* rt_choose_next(), unless the thread has a pause. */
static void take_or_pause(struct rt_sched *sched, uint64_t now, struct rt_sched_start *start)
{
    if (current_pause && current_pause->sched == sched) {
        current_pause->has_more = true;
        start->count = 0;
    } else {
        rt_choose_next(sched, now, start);
    }
}

/* A child of a parent that goes on is in its list; false: it is not to run. With the lock held. */
static bool join_parent(struct rt_sched_job *job)
{
    struct rt_sched_job *parent = job->parent;
    if (!parent) {
        return true;
    }
    must(parent->state == RT_SCHED_RUNNING && parent->run->has_yielded);
    must(job->deadline_ns == RT_SCHED_NEVER && job->ticket_count == 0);
    if (parent->is_cancelled || parent->is_expired) {
        return false;
    }
    list_push_back(&parent->children, &job->child_link);
    return true;
}

/* Takes |job| and what may start now; ST_CANCELLED: it is a child that is not to run. */
static enum status take_job(struct rt_sched *sched, struct rt_sched_job *job,
                            struct rt_sched_start *start, struct error *err)
{
    enum status status = rt_queue_admit(job->queue, job, err);
    sched->refused_count += status != ST_OK;
    TRY(status);
    TRY(rt_deadlines_add(&sched->deadlines, job, err));
    if (!join_parent(job)) {
        return ST_CANCELLED;
    }
    if (!current_pause && rt_choose_sole(sched, job, start)) {
        return ST_OK; /* the usual case of a small model */
    }
    rt_choose_add(sched, job);
    take_or_pause(sched, job->queued_ns, start);
    return ST_OK;
}

enum status rt_sched_submit(struct rt_sched_queue *queue, struct rt_sched_job *job,
                            bool may_run_inline, struct error *err)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched *sched = queue->sched;
    must(job->state == RT_SCHED_IDLE);
    job->queue = queue;
    job->is_expired = job->is_cancelled = job->is_batch_end = false;
    job->queued_ns = sched->options.clock();
    job->started_ns = job->finished_ns = job->joining_ns = 0;
    job->batch_size = 0;
    job->batch_rows = 0;
    list_init(&job->link);
    list_init(&job->children);
    list_init(&job->child_link);
    if (job->deadline_ns <= job->queued_ns) {
        job->finished_ns = job->queued_ns;
        job->ops->done(job, ST_TIMEOUT);
        return ST_OK;
    }
    struct rt_sched_start start;
    start.count = 0;
    pthread_mutex_lock(&sched->lock);
    enum status status = take_job(sched, job, &start, err);
    pthread_mutex_unlock(&sched->lock);
    if (status == ST_CANCELLED) {
        job->finished_ns = job->queued_ns;
        job->ops->done(job, ST_CANCELLED);
        return ST_OK;
    }
    start_all(sched, &start, may_run_inline ? job : NULL);
    return status;
}

bool rt_sched_yield(struct rt_sched_job *job)
{
    struct rt_sched_queue *queue = job->queue;
    struct rt_sched *sched = queue->sched;
    struct rt_sched_run *run = job->run;
    pthread_mutex_lock(&sched->lock);
    must(job->state == RT_SCHED_RUNNING && run->size == 1 && !run->has_yielded && !job->parent);
    bool is_busy =
        sched->running_count > 1 || sched->yielded_count > 0 || !list_is_empty(&sched->ready);
    if (is_busy && add_runs(sched, 1)) {
        run->has_yielded = true;
        rt_queue_unstarted(run);
        queue->yielded_count++;
        sched->running_count--;
        sched->yielded_count++;
    }
    pthread_mutex_unlock(&sched->lock);
    return run->has_yielded;
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* A job that ran is over, with |status|. If others of its run are not, but those of its queue are,
 * its queue has left the run. */
static void end(struct rt_sched *sched, struct rt_sched_job *job, uint64_t now, enum status status)
{
    struct rt_sched_run *run = job->run;
    must(job->state == RT_SCHED_RUNNING);
    job->finished_ns = rt_sched_not_before(job->started_ns, now);
    list_remove(&job->link);
    const struct rt_sched_part *part = count_out(job);
    job->is_batch_end = !job->is_uncounted && part->counted == 0;
    if (part->left == 0 && !list_is_empty(&run->jobs)) {
        rt_queue_end_part(run, part, job->finished_ns, status);
    }
    leave(sched, job);
    atomic_fetch_add(&sched->unreleased_count, !job->parent);
}

/* |run|, which still counts, is over: notes what its size of batches has cost. */
static void note_cost(const struct rt_sched *sched, struct rt_sched_queue *queue,
                      const struct rt_sched_run *run, uint64_t now, enum status status)
{
    uint32_t others = queue->running_count - 1;
    bool is_busy = others > 0 || queue->levels;
    bool is_all = sched->running_count == queue->running_count;
    if (is_busy && is_all && run->rows > 0 && status == ST_OK) {
        rt_sizing_note(&queue->sizing, run->rows, others, now);
    } else {
        rt_sizing_break(&queue->sizing);
    }
}

/* The last job of |run| is over, with |status|: the device has room for another one. */
static void end_run(struct rt_sched *sched, struct rt_sched_queue *queue, struct rt_sched_run *run,
                    uint64_t now, enum status status, struct rt_sched_start *start)
{
    if (run->has_yielded) {
        queue->yielded_count--;
        sched->yielded_count--;
        if (status == ST_OK) {
            rt_queue_note_run(queue, now - run->started_ns);
        }
    } else {
        note_cost(sched, queue, run, now, status);
        rt_queue_finished(queue, run, now, status);
        rt_queue_await_steps(queue, run, now);
        sched->running_count--;
    }
    atomic_fetch_add(&sched->release_count, 1);
    rt_choose_feed_all(sched);
    list_push_front(&sched->free_runs, &run->link);
    if (run->in_start) {
        bool is_idle = list_is_empty(&sched->ready);
        atomic_store_explicit(run->in_start, is_idle ? RT_SCHED_OVER_AND_IDLE : RT_SCHED_OVER,
                              memory_order_relaxed);
        run->in_start = NULL;
    } else {
        take_or_pause(sched, now, start);
    }
}

/* |job| is over, and its run if it was the last. Returns its outcome. */
static enum status end_in_run(struct rt_sched *sched, struct rt_sched_job *job, enum status status,
                              struct rt_sched_start *start)
{
    struct rt_sched_run *run = job->run;
    uint64_t now = sched->options.clock();
    pthread_mutex_lock(&sched->lock);
    end(sched, job, now, status);
    if (list_is_empty(&run->jobs)) {
        end_run(sched, job->queue, run, now, status, start);
    }
    rt_queue_tell_due(job->queue);
    status = outcome(job, status);
    pthread_mutex_unlock(&sched->lock);
    return status;
}

/*
 * The end of a child often makes other children ready. The children of a batch end one after the
 * other on one thread. If each of them started its successors, these would run alone instead of as
 * one. So the last one does it, after its own done().
 */
static void finish_child(struct rt_sched *sched, struct rt_sched_job *job, enum status status)
{
    const struct rt_sched_run *run = job->run;
    uint64_t serial = run->serial; /* constant until the job is over */
    struct rt_sched_start start;
    struct pause here, *before = begin_pause(&here, sched);
    hold(sched);
    start.count = 0;
    status = end_in_run(sched, job, status, &start);
    job->ops->done(job, status);
    current_pause = before;
    if (here.has_more) {
        pthread_mutex_lock(&sched->lock);
        if (run->serial != serial || list_is_empty(&run->jobs)) { /* the run is over */
            take_or_pause(sched, sched->options.clock(), &start);
        }
        pthread_mutex_unlock(&sched->lock);
        start_all(sched, &start, NULL);
    }
    let_go(sched);
}

void rt_sched_finished(struct rt_sched_job *job, enum status status)
{
    OBJ_CHECK(job->queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched *sched = job->queue->sched;
    struct rt_sched_start start;
    start.count = 0;
    if (job->parent) {
        finish_child(sched, job, status);
        return;
    }
    status = end_in_run(sched, job, status, &start);
    start_all(sched, &start, NULL);
    job->ops->done(job, status);
}

void rt_sched_released(struct rt_sched *sched)
{
    OBJ_CHECK(sched, RT_SCHED_MAGIC);
    unsigned before = atomic_fetch_sub(&sched->unreleased_count, 1);
    must(before > 0);
    atomic_fetch_add(&sched->release_count, 1);
    if (atomic_load(&sched->starved_count) == 0) {
        return;
    }
    struct rt_sched_start start;
    pthread_mutex_lock(&sched->lock);
    rt_choose_feed_all(sched);
    take_or_pause(sched, sched->options.clock(), &start);
    pthread_mutex_unlock(&sched->lock);
    start_all(sched, &start, NULL);
}

/* Cancels a running job. It goes to |over| if it has left the jobs that it ran with, which go on.
 */
static void cut(struct rt_sched *sched, struct rt_sched_job *job, uint64_t now, struct list *over)
{
    if (job->ops->cancel(job)) {
        end(sched, job, now, ST_CANCELLED);
        must(!list_is_empty(&job->run->jobs));
        list_push_back(over, &job->link);
    }
}

/* The same for |job| and its children. Children that wait are over, too. */
static void cut_all(struct rt_sched *sched, struct rt_sched_job *job, uint64_t now,
                    struct list *over)
{
    struct list *next;
    for (struct list *l = job->children.next; l != &job->children; l = next) {
        struct rt_sched_job *child = LIST_ENTRY(l, struct rt_sched_job, child_link);
        next = l->next;
        if (child->state == RT_SCHED_WAITING) {
            withdraw(sched, child, now);
            list_push_back(over, &child->link);
        } else if (!child->is_cancelled) {
            child->is_cancelled = true;
            cut(sched, child, now, over);
        }
    }
    cut(sched, job, now, over);
}

/* Outside the lock. */
static void tell_over(struct list *over, enum status status)
{
    while (!list_is_empty(over)) {
        struct rt_sched_job *job = LIST_ENTRY(over->next, struct rt_sched_job, link);
        list_remove(&job->link);
        job->ops->done(job, job->parent ? ST_CANCELLED : status);
    }
}

void rt_sched_cancel(struct rt_sched_job *job)
{
    OBJ_CHECK(job->queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched *sched = job->queue->sched;
    uint64_t now = sched->options.clock();
    struct list over;
    list_init(&over);
    pthread_mutex_lock(&sched->lock);
    if (job->state == RT_SCHED_WAITING) {
        withdraw(sched, job, now);
        list_push_back(&over, &job->link);
    } else if (job->state == RT_SCHED_RUNNING && !job->is_cancelled) {
        job->is_cancelled = true;
        cut_all(sched, job, now, &over);
    }
    pthread_mutex_unlock(&sched->lock);
    tell_over(&over, ST_CANCELLED);
}

/*
 * Handles jobs that have passed their deadline. Waiting jobs, jobs that leave a batch and waiting
 * children go to |late|; other running ones are cancelled and end soon. Returns the next deadline.
 */
static uint64_t expire_all(struct rt_sched *sched, uint64_t now, struct list *late)
{
    struct rt_sched_job *job;
    while ((job = rt_deadlines_first(&sched->deadlines)) != NULL && job->deadline_ns <= now) {
        if (job->state == RT_SCHED_WAITING) {
            withdraw(sched, job, now);
            list_push_back(late, &job->link);
        } else {
            rt_deadlines_remove(&sched->deadlines, job);
            job->is_expired = true;
            cut_all(sched, job, now, late);
        }
    }
    return job ? job->deadline_ns : RT_SCHED_NEVER;
}

/* When the next queue will have waited for jobs to be joined long enough. */
static uint64_t next_due(const struct rt_sched *sched, uint64_t now)
{
    uint64_t next = RT_SCHED_NEVER;
    for (struct list *l = sched->ready.next; l != &sched->ready; l = l->next) {
        uint64_t due = rt_queue_due_ns(LIST_ENTRY(l, struct rt_sched_queue, link));
        next = due > now && due < next ? due : next;
    }
    return next;
}

uint64_t rt_sched_expire(struct rt_sched *sched)
{
    OBJ_CHECK(sched, RT_SCHED_MAGIC);
    uint64_t now = sched->options.clock();
    struct rt_sched_start start;
    struct list late;
    list_init(&late);
    pthread_mutex_lock(&sched->lock);
    uint64_t next = expire_all(sched, now, &late);
    take_or_pause(sched, now, &start);
    uint64_t due = next_due(sched, now);
    pthread_mutex_unlock(&sched->lock);
    start_all(sched, &start, NULL);
    tell_over(&late, ST_TIMEOUT);
    return due < next ? due : next;
}

uint64_t rt_sched_due_ns(const struct rt_sched_job *job)
{
    OBJ_CHECK(job->queue, RT_SCHED_QUEUE_MAGIC);
    const struct rt_sched_queue_options *options = &job->queue->options;
    uint64_t due_ns = RT_SCHED_NEVER;
    if (job->rows > 0 && job->returns) {
        due_ns = rt_sched_held_ns(job->queue);
    } else if (options->delay_ns && job->rows > 0) {
        due_ns = job->queued_ns + options->delay_ns;
    }
    return due_ns < job->deadline_ns ? due_ns : job->deadline_ns;
}

uint64_t rt_sched_held_ns(struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    const struct rt_sched_group *group = queue->group;
    uint64_t due_ns = atomic_load_explicit(&group->due_ns, memory_order_relaxed);
    return due_ns ? due_ns : RT_SCHED_NEVER;
}

/* ---- looking --------------------------------------------------------------------------------- */

uint64_t rt_sched_drain_ns(struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched *sched = queue->sched;
    pthread_mutex_lock(&sched->lock);
    uint64_t ns = rt_queue_drain_ns(queue, sched->options.depth);
    pthread_mutex_unlock(&sched->lock);
    return ns;
}

struct rt_sched_load rt_sched_load(struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched *sched = queue->sched;
    pthread_mutex_lock(&sched->lock);
    struct rt_sched_load load = {
        .waiting = queue->waiting_count,
        .running = queue->running_count + queue->yielded_count,
        .waiting_bytes = queue->waiting_bytes,
    };
    pthread_mutex_unlock(&sched->lock);
    return load;
}

uint64_t rt_sched_refused(struct rt_sched *sched)
{
    OBJ_CHECK(sched, RT_SCHED_MAGIC);
    pthread_mutex_lock(&sched->lock);
    uint64_t count = sched->refused_count;
    pthread_mutex_unlock(&sched->lock);
    return count;
}

void rt_sched_places(struct rt_sched_queue *queue, struct share_stats *out_stats)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    pthread_mutex_lock(&queue->sched->lock);
    share_stats(&queue->places, out_stats);
    pthread_mutex_unlock(&queue->sched->lock);
}

bool rt_sched_is_idle(struct rt_sched *sched)
{
    OBJ_CHECK(sched, RT_SCHED_MAGIC);
    pthread_mutex_lock(&sched->lock);
    bool is_idle =
        sched->running_count == 0 && sched->yielded_count == 0 && list_is_empty(&sched->ready);
    pthread_mutex_unlock(&sched->lock);
    return is_idle;
}
