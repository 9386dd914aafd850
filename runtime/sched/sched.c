/* SPDX-License-Identifier: MIT */
/*
 * start_all() is the only place that starts jobs. Every function that makes room or adds a job
 * calls it, on its own thread. After a completion the worker itself starts the next job, so the
 * device waits for no other thread.
 *
 * start() may finish its job before it returns. Then start_all(), which is still on the stack, goes
 * on with the next job. If rt_sched_finished() did so, jobs that fail at once would recurse as deep
 * as the queue is long.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/sched/deadline.h"
#include "runtime/sched/queue.h"

/* Jobs that are looked at to make a batch. */
#define LOOKS_MAX 256

enum { STARTING, OVER, OVER_AND_IDLE };

#define RT_SCHED_MAGIC 0x5c4edd0eu

struct rt_sched {
    uint32_t magic;
    struct rt_sched_options options;
    pthread_mutex_t lock;
    struct list ready; /* queues in which something is ready */
    struct rt_deadlines deadlines;
    struct list free_runs; /* of |depth| and one a queue: see may_start() */
    uint32_t running_count, queue_count;
    uint64_t used_ns; /* of the queue that was served last: what a queue begins with */
    /* Of these three a thread that changes one looks at the next: see starve(). */
    atomic_uint unreleased_count; /* jobs that have run: rt_sched_released() is still to come */
    atomic_uint starved_count;    /* queues */
    atomic_uint release_count;    /* how often memory may have become free; it wraps */
};

/* With the lock held, or before anybody else knows |sched|. */
static bool add_run(struct rt_sched *sched)
{
    struct rt_sched_run *run = malloc(sizeof(*run));
    if (run) {
        list_init(&run->jobs);
        list_push_front(&sched->free_runs, &run->link);
    }
    return run != NULL;
}

static struct rt_sched_run *take_run(struct rt_sched *sched)
{
    must(!list_is_empty(&sched->free_runs));
    struct rt_sched_run *run = LIST_ENTRY(sched->free_runs.next, struct rt_sched_run, link);
    list_remove(&run->link);
    return run;
}

enum status rt_sched_new(const struct rt_sched_options *options, struct rt_sched **out_sched,
                         struct error *err)
{
    must(options->depth > 0 && options->clock);
    struct rt_sched *sched = calloc(1, sizeof(*sched));
    if (!sched) {
        return error_set(err, ST_EXHAUSTED, "no memory for the scheduler");
    }
    sched->magic = RT_SCHED_MAGIC;
    sched->options = *options;
    must(pthread_mutex_init(&sched->lock, NULL) == 0);
    list_init(&sched->ready);
    list_init(&sched->free_runs);
    for (uint32_t i = 0; i < options->depth; i++) {
        if (!add_run(sched)) {
            rt_sched_free(sched);
            return error_set(err, ST_EXHAUSTED, "no memory for %u jobs", options->depth);
        }
    }
    *out_sched = sched;
    return ST_OK;
}

void rt_sched_lane_init(struct rt_sched_lane *lane)
{
    list_init(&lane->turns);
}

void rt_sched_free(struct rt_sched *sched)
{
    if (sched) {
        OBJ_CHECK(sched, RT_SCHED_MAGIC);
        must(sched->running_count == 0 && sched->queue_count == 0);
        while (!list_is_empty(&sched->free_runs)) {
            free(take_run(sched));
        }
        rt_deadlines_fini(&sched->deadlines);
        pthread_mutex_destroy(&sched->lock);
        sched->magic = 0;
        free(sched);
    }
}

enum status rt_sched_queue_new(struct rt_sched *sched, const struct rt_sched_queue_options *options,
                               struct rt_sched_queue **out_queue, struct error *err)
{
    OBJ_CHECK(sched, RT_SCHED_MAGIC);
    struct rt_sched_queue *queue = malloc(sizeof(*queue));
    pthread_mutex_lock(&sched->lock);
    bool is_complete = queue && add_run(sched);
    sched->queue_count += is_complete;
    pthread_mutex_unlock(&sched->lock);
    if (!is_complete) {
        free(queue);
        return error_set(err, ST_EXHAUSTED, "no memory for a queue");
    }
    rt_queue_init(queue, sched, options);
    *out_queue = queue;
    return ST_OK;
}

void rt_sched_queue_free(struct rt_sched_queue *queue)
{
    if (queue) {
        OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
        struct rt_sched *sched = queue->sched;
        pthread_mutex_lock(&sched->lock);
        must(queue->waiting_count == 0 && queue->running_count == 0);
        sched->queue_count--;
        struct rt_sched_run *run = take_run(sched);
        pthread_mutex_unlock(&sched->lock);
        free(run);
        queue->magic = 0;
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
    queue->options.delay_ns = join->delay_ns;
    pthread_mutex_unlock(&sched->lock);
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

/* ---- choosing; with the lock held ------------------------------------------------------------ */

/* |job| is the first in each of its lanes: it is ready for the device. */
static void make_ready(struct rt_sched *sched, struct rt_sched_job *job)
{
    struct rt_sched_queue *queue = job->queue;
    if (!queue->levels) {
        list_push_back(&sched->ready, &queue->link);
        if (queue->running_count == 0 && queue->used_ns < sched->used_ns) {
            queue->used_ns = sched->used_ns; /* what it did not use while idle is gone */
        }
    }
    rt_queue_ready(queue, job);
}

static bool is_first(const struct rt_sched_turn *turn)
{
    return turn->lane->turns.next == &turn->link;
}

/* In all of them before anybody else can be in one: see struct rt_sched_turn. */
static void enter_lanes(struct rt_sched_job *job)
{
    job->behind_count = 0;
    for (uint32_t i = 0; i < job->turn_count; i++) {
        struct rt_sched_turn *turn = &job->turns[i];
        turn->job = job;
        list_push_back(&turn->lane->turns, &turn->link);
        job->behind_count += !is_first(turn);
    }
}

static void enqueue(struct rt_sched *sched, struct rt_sched_job *job)
{
    job->state = RT_SCHED_WAITING;
    rt_queue_add(job->queue, job);
    enter_lanes(job);
    if (job->behind_count == 0) {
        make_ready(sched, job);
    }
}

/* Another job, or none, is the first of its queue. */
static void feed(struct rt_sched *sched, struct rt_sched_queue *queue)
{
    if (queue->is_starved) {
        queue->is_starved = false;
        atomic_fetch_sub(&sched->starved_count, 1);
    }
}

static void dequeue(struct rt_sched *sched, struct rt_sched_job *job)
{
    feed(sched, job->queue);
    rt_queue_remove(job->queue, job);
    if (!job->queue->levels) {
        list_remove(&job->queue->link);
    }
}

/* Memory may have become free: jobs that wait for it may be tried again. */
static void feed_all(struct rt_sched *sched)
{
    if (atomic_load(&sched->starved_count) == 0) {
        return;
    }
    for (struct list *l = sched->ready.next; l != &sched->ready; l = l->next) {
        feed(sched, LIST_ENTRY(l, struct rt_sched_queue, link));
    }
}

/* Ends the turn of a job that is over. If it was the first in its lane, the next one's turn begins.
 */
static void pass_turn(struct rt_sched *sched, struct rt_sched_turn *turn)
{
    struct rt_sched_lane *lane = turn->lane;
    bool was_first = is_first(turn);
    list_remove(&turn->link);
    if (!was_first || list_is_empty(&lane->turns)) {
        return;
    }
    struct rt_sched_job *next = LIST_ENTRY(lane->turns.next, struct rt_sched_turn, link)->job;
    must(next->behind_count > 0);
    if (--next->behind_count == 0) {
        make_ready(sched, next);
    }
}

/* |job| is over. */
static void leave_lanes(struct rt_sched *sched, const struct rt_sched_job *job)
{
    for (uint32_t i = 0; i < job->turn_count; i++) {
        pass_turn(sched, &job->turns[i]);
    }
}

/*
 * A queue that has nothing on the device may start a job even if that exceeds |depth|, but beyond
 * |depth| no queue has more than one. A job in the last place only waits on the device, so jobs
 * that others may still join in the queue do not get that place.
 */
static bool may_start(const struct rt_sched *sched, const struct rt_sched_queue *queue)
{
    uint32_t limit = rt_queue_running_max(queue), depth = sched->options.depth;
    bool may_grow = queue->ready_rows > 0 && queue->ready_rows < rt_sizing_rows(&queue->sizing);
    if (limit && queue->running_count >= limit) {
        return false;
    }
    return queue->running_count == 0 || sched->running_count + may_grow < depth;
}

/* Of those that may start, and have waited for jobs to be joined long enough. */
static struct rt_sched_queue *choose(const struct rt_sched *sched, uint64_t now)
{
    struct rt_sched_queue *best = NULL;
    for (struct list *l = sched->ready.next; l != &sched->ready; l = l->next) {
        struct rt_sched_queue *queue = LIST_ENTRY(l, struct rt_sched_queue, link);
        uint64_t due_ns = rt_queue_tell_due(queue);
        if (queue->is_starved || !may_start(sched, queue)) {
            queue->open_ns = 0;
        } else if (due_ns > now) {
            queue->open_ns = queue->open_ns ? queue->open_ns : now;
        } else if (!best || queue->used_ns < best->used_ns) {
            best = queue;
        }
    }
    return best;
}

/* The jobs that start_all() is about to start, and how that went: they may be freed by then. */
struct start {
    atomic_int state;
    struct rt_sched_run *run; /* meaningful while |state| is STARTING */
    int64_t rows;
    uint32_t count;
    struct rt_sched_job *jobs[RT_SCHED_BATCH_MAX];
};

/*
 * A thread reads the clock before it takes the lock. In between, other threads may have queued or
 * started jobs, at later times: nothing begins or ends before |earliest|.
 */
static uint64_t not_before(uint64_t earliest, uint64_t now)
{
    return now > earliest ? now : earliest;
}

static void set_running(struct rt_sched *sched, struct start *start, struct rt_sched_job *job,
                        uint64_t now)
{
    uint64_t open_ns = job->queue->open_ns;
    dequeue(sched, job);
    job->state = RT_SCHED_RUNNING;
    job->started_ns = not_before(job->queued_ns, now);
    if (open_ns) {
        uint64_t from_ns = not_before(job->queued_ns, open_ns);
        job->joining_ns = not_before(from_ns, job->started_ns) - from_ns;
    }
    job->run = start->run;
    list_push_back(&start->run->jobs, &job->link);
    start->jobs[start->count++] = job;
    start->rows += job->rows;
    start->run->returning += job->returns ? job->rows : 0;
}

/* Those of the queue that may run together with the one that is there already. */
static void gather(struct rt_sched *sched, struct start *start, struct rt_sched_queue *queue,
                   uint64_t now)
{
    struct rt_sched_job *head = start->jobs[0];
    int64_t rows_max = rt_sizing_rows(&queue->sizing);
    unsigned looks = LOOKS_MAX;
    for (uint32_t level = 0; level < RT_SCHED_PRIORITIES; level++) {
        struct list *ready = &queue->ready[level];
        for (struct list *l = ready->next, *next; l != ready && looks > 0; l = next, looks--) {
            struct rt_sched_job *job = LIST_ENTRY(l, struct rt_sched_job, link);
            next = l->next;
            if (start->count == RT_SCHED_BATCH_MAX || start->rows >= rows_max) {
                return;
            }
            if (job->rows > 0 && job->rows <= rows_max - start->rows &&
                head->ops->fits(head, job)) {
                set_running(sched, start, job, now);
            }
        }
    }
}

/* The next job, and those that run as one with it, as running since |now|. False: none may. */
static bool take_next(struct rt_sched *sched, uint64_t now, struct start *start)
{
    struct rt_sched_queue *queue = choose(sched, now);
    start->count = 0;
    start->rows = 0;
    if (!queue) {
        return false;
    }
    struct rt_sched_job *job = rt_queue_first(queue);
    struct rt_sched_run *run = start->run = take_run(sched);
    run->returning = 0;
    sched->used_ns = queue->used_ns;
    sched->running_count++;
    set_running(sched, start, job, now);
    if (rt_sizing_rows(&queue->sizing) > 1 && job->rows > 0) {
        gather(sched, start, queue, now);
    }
    queue->open_ns = 0;
    for (uint32_t i = 0; i < start->count; i++) {
        start->jobs[i]->batch_size = start->count;
        start->jobs[i]->batch_rows = start->rows;
    }
    queue->was_alone = run->returning == 0;
    run->size = start->count;
    run->rows = start->rows;
    run->started_ns = now;
    run->in_start = &start->state;
    rt_queue_started(queue, run);
    rt_queue_tell_due(queue);
    atomic_store_explicit(&start->state, STARTING, memory_order_relaxed);
    return true;
}

/* ---- starting -------------------------------------------------------------------------------- */

static enum status outcome(const struct rt_sched_job *job, enum status status)
{
    /* A job that has run is answered with its result, even if it ended a little too late. */
    return job->is_expired && status == ST_CANCELLED ? ST_TIMEOUT : status;
}

/*
 * Makes |job|, which the device took in vain, the first of its queue again. False: it was cancelled
 * or has timed out, and is over.
 */
static bool put_back(struct rt_sched *sched, struct rt_sched_job *job)
{
    list_remove(&job->link);
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

/* Removes a waiting job, which has not run. The caller calls done(), outside the lock. */
static void withdraw(struct rt_sched *sched, struct rt_sched_job *job, uint64_t now)
{
    dequeue(sched, job);
    leave_lanes(sched, job);
    rt_deadlines_remove(&sched->deadlines, job);
    job->finished_ns = not_before(job->queued_ns, now);
    job->state = RT_SCHED_IDLE;
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
    rt_deadlines_remove(&sched->deadlines, job);
    leave_lanes(sched, job);
    job->finished_ns = sched->options.clock();
    job->state = RT_SCHED_IDLE;
    tell_outside(sched, job, outcome(job, ST_CANCELLED));
}

/* Only the first job of |start| is tried again; the others go back to their queue. */
static void put_rest_back(struct rt_sched *sched, struct start *start)
{
    struct rt_sched_job *first = start->jobs[0];
    pthread_mutex_lock(&sched->lock);
    while (start->count > 1) {
        struct rt_sched_job *job = start->jobs[--start->count];
        if (!put_back(sched, job)) {
            drop(sched, job);
        }
    }
    rt_queue_unstarted(first->queue, start->run);
    start->run->size = first->batch_size = 1;
    first->batch_rows = start->run->rows = start->rows = first->rows;
    start->run->returning = first->returns ? first->rows : 0;
    rt_queue_started(first->queue, start->run);
    pthread_mutex_unlock(&sched->lock);
}

/* The queue's first job waits for memory: set before the counts below are looked at. */
static void set_starved(struct rt_sched *sched, struct rt_sched_queue *queue)
{
    if (!queue->is_starved) {
        queue->is_starved = true;
        atomic_fetch_add(&sched->starved_count, 1);
    }
}

/*
 * There is no memory for the one job of |start|. It waits for jobs that run, and for those that
 * have run and keep their results until they are text. Memory that is released without the lock is
 * counted before starved queues are looked for: so what was released since |releases| was read is
 * either seen here, or its thread sees the queue and feeds it.
 */
static void starve(struct rt_sched *sched, struct start *start, unsigned releases)
{
    struct rt_sched_job *job = start->jobs[0];
    struct rt_sched_queue *queue = job->queue;
    sched->running_count--;
    rt_queue_unstarted(queue, start->run);
    list_push_front(&sched->free_runs, &start->run->link);
    set_starved(sched, queue);
    bool is_changed = atomic_load(&sched->release_count) != releases;
    bool is_hopeless =
        !is_changed && sched->running_count == 0 && atomic_load(&sched->unreleased_count) == 0;
    bool is_waiting = put_back(sched, job);
    if (is_hopeless) {
        feed_all(sched); /* other queues may wait for this very job */
    }
    if (is_changed || !is_waiting) {
        feed(sched, queue);
    }
    if (is_hopeless && is_waiting) {
        withdraw(sched, job, sched->options.clock());
        tell_outside(sched, job, ST_EXHAUSTED);
    } else if (!is_waiting) {
        drop(sched, job);
    }
}

/* True: it runs, or has run. */
static bool start_taken(struct rt_sched *sched, struct start *start, const struct rt_sched_job *own)
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
 * Starts what |start| has taken, and whatever else may start. |own| is the job of the caller, who
 * may run it itself, or NULL.
 */
static void start_all(struct rt_sched *sched, struct start *start, const struct rt_sched_job *own)
{
    while (start->count > 0) {
        unsigned releases = atomic_load(&sched->release_count);
        bool is_started = start_taken(sched, start, own);
        if (is_started &&
            atomic_load_explicit(&start->state, memory_order_relaxed) == OVER_AND_IDLE) {
            return; /* the usual case of a small model: no need to look */
        }
        uint64_t now = sched->options.clock();
        pthread_mutex_lock(&sched->lock);
        if (!is_started) {
            starve(sched, start, releases);
        } else if (atomic_load_explicit(&start->state, memory_order_relaxed) == STARTING) {
            start->run->in_start = NULL; /* from now on its end starts the next one */
        }
        take_next(sched, now, start);
        pthread_mutex_unlock(&sched->lock);
    }
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
    list_init(&job->link);
    if (job->deadline_ns <= job->queued_ns) {
        job->finished_ns = job->queued_ns;
        job->ops->done(job, ST_TIMEOUT);
        return ST_OK;
    }
    struct start start;
    start.count = 0;
    pthread_mutex_lock(&sched->lock);
    enum status status = rt_queue_admit(queue, job, err);
    if (status == ST_OK) {
        status = rt_deadlines_add(&sched->deadlines, job, err);
    }
    if (status == ST_OK) {
        enqueue(sched, job);
        take_next(sched, job->queued_ns, &start);
    }
    pthread_mutex_unlock(&sched->lock);
    start_all(sched, &start, may_run_inline ? job : NULL);
    return status;
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* A job that ran is over. */
static void end(struct rt_sched *sched, struct rt_sched_job *job, uint64_t now)
{
    must(job->state == RT_SCHED_RUNNING);
    job->finished_ns = not_before(job->started_ns, now);
    rt_deadlines_remove(&sched->deadlines, job);
    list_remove(&job->link);
    job->state = RT_SCHED_IDLE;
    leave_lanes(sched, job);
    atomic_fetch_add(&sched->unreleased_count, 1);
}

/* |run|, which still counts, is over: what it says of the size of batches. */
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
                    uint64_t now, enum status status, struct start *start)
{
    note_cost(sched, queue, run, now, status);
    rt_queue_finished(queue, run, now, status);
    rt_queue_await_steps(queue, run, now);
    sched->running_count--;
    atomic_fetch_add(&sched->release_count, 1);
    feed_all(sched);
    list_push_front(&sched->free_runs, &run->link);
    if (run->in_start) {
        bool is_idle = list_is_empty(&sched->ready);
        atomic_store_explicit(run->in_start, is_idle ? OVER_AND_IDLE : OVER, memory_order_relaxed);
        run->in_start = NULL;
    } else {
        take_next(sched, now, start);
    }
}

void rt_sched_finished(struct rt_sched_job *job, enum status status)
{
    struct rt_sched *sched = job->queue->sched;
    struct rt_sched_run *run = job->run;
    uint64_t now = sched->options.clock();
    struct start start;
    start.count = 0;
    pthread_mutex_lock(&sched->lock);
    end(sched, job, now);
    job->is_batch_end = list_is_empty(&run->jobs);
    if (job->is_batch_end) {
        end_run(sched, job->queue, run, now, status, &start);
    }
    rt_queue_tell_due(job->queue);
    status = outcome(job, status);
    pthread_mutex_unlock(&sched->lock);
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
    struct start start;
    pthread_mutex_lock(&sched->lock);
    feed_all(sched);
    take_next(sched, sched->options.clock(), &start);
    pthread_mutex_unlock(&sched->lock);
    start_all(sched, &start, NULL);
}

/* Cancels a running job. True: it has left the jobs that it ran with, which go on. */
static bool cut(struct rt_sched *sched, struct rt_sched_job *job, uint64_t now)
{
    bool has_left = job->ops->cancel(job);
    if (has_left) {
        end(sched, job, now);
        must(!list_is_empty(&job->run->jobs));
    }
    return has_left;
}

void rt_sched_cancel(struct rt_sched_job *job)
{
    struct rt_sched *sched = job->queue->sched;
    uint64_t now = sched->options.clock();
    pthread_mutex_lock(&sched->lock);
    bool is_over = false;
    if (job->state == RT_SCHED_WAITING) {
        withdraw(sched, job, now);
        is_over = true;
    } else if (job->state == RT_SCHED_RUNNING && !job->is_cancelled) {
        job->is_cancelled = true;
        is_over = cut(sched, job, now);
    }
    pthread_mutex_unlock(&sched->lock);
    if (is_over) {
        job->ops->done(job, ST_CANCELLED);
    }
}

/*
 * Handles jobs that have passed their deadline. Waiting ones and those that leave a batch go to
 * |late|; other running ones are cancelled and end soon. Returns the next deadline.
 */
static uint64_t expire_all(struct rt_sched *sched, uint64_t now, struct list *late)
{
    struct rt_sched_job *job;
    while ((job = rt_deadlines_first(&sched->deadlines)) != NULL && job->deadline_ns <= now) {
        bool is_over = true;
        if (job->state == RT_SCHED_WAITING) {
            withdraw(sched, job, now);
        } else {
            rt_deadlines_remove(&sched->deadlines, job);
            job->is_expired = true;
            is_over = cut(sched, job, now);
        }
        if (is_over) {
            list_push_back(late, &job->link);
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
    struct start start;
    struct list late;
    list_init(&late);
    pthread_mutex_lock(&sched->lock);
    uint64_t next = expire_all(sched, now, &late);
    take_next(sched, now, &start);
    uint64_t due = next_due(sched, now);
    pthread_mutex_unlock(&sched->lock);
    start_all(sched, &start, NULL);
    while (!list_is_empty(&late)) {
        struct rt_sched_job *job = LIST_ENTRY(late.next, struct rt_sched_job, link);
        list_remove(&job->link);
        job->ops->done(job, ST_TIMEOUT);
    }
    return due < next ? due : next;
}

uint64_t rt_sched_due_ns(const struct rt_sched_job *job)
{
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
    uint64_t due_ns = atomic_load_explicit(&queue->due_ns, memory_order_relaxed);
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
        .running = queue->running_count,
        .waiting_bytes = queue->waiting_bytes,
    };
    pthread_mutex_unlock(&sched->lock);
    return load;
}
