/* SPDX-License-Identifier: MIT */
/*
 * The inside of the scheduler: waiting jobs, and the choice of the next one. The functions are
 * called with the lock held. runtime/sched/sched.c starts and ends the jobs that they choose.
 */
#ifndef PTED_RUNTIME_SCHED_CHOOSE_H
#define PTED_RUNTIME_SCHED_CHOOSE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/refs.h"
#include "runtime/sched/deadline.h"
#include "runtime/sched/queue.h"

#define RT_SCHED_MAGIC 0x5c4edd0eu

struct rt_sched {
    uint32_t magic;
    struct refs refs; /* the caller's, and one of each thread that may still look: see hold() */
    struct rt_sched_options options;
    pthread_mutex_t lock;
    struct list ready; /* queues with a ready job */
    struct rt_deadlines deadlines;
    struct list
        free_runs; /* of |depth|, one a queue and one a parent that has yielded: see may_start() */
    uint32_t run_count; /* free ones included */
    uint32_t running_count, queue_count, yielded_count;
    uint64_t refused_count; /* jobs, by all queues */
    uint64_t used_ns; /* of the queue that was served last; a queue that was empty begins with it */
    /* A thread that changes one of these three looks at the next one: see starve(). */
    atomic_uint unreleased_count; /* jobs that have run: rt_sched_released() is still to come */
    atomic_uint starved_count;    /* queues */
    atomic_uint release_count;    /* how often memory may have become free; it wraps */
};

/* How far the start of a job has come: it may be over when start() returns. */
enum { RT_SCHED_STARTING, RT_SCHED_OVER, RT_SCHED_OVER_AND_IDLE };

/* The jobs that start_all() is about to start, and how that went: they may be freed by then. */
struct rt_sched_start {
    atomic_int state;
    struct rt_sched_run *run; /* meaningful while |state| is RT_SCHED_STARTING */
    int64_t rows;
    uint32_t count;
    struct rt_sched_job *jobs[RT_SCHED_BATCH_MAX];
};

/*
 * Corrects the time of a thread, which reads the clock before it takes the lock. In between, other
 * threads may have queued or started jobs, at later times: nothing begins or ends before
 * |earliest|.
 */
static inline uint64_t rt_sched_not_before(uint64_t earliest, uint64_t now)
{
    return now > earliest ? now : earliest;
}

/* Returns a run that nothing uses. */
struct rt_sched_run *rt_choose_run(struct rt_sched *sched);

/* |job| waits, in its lanes as well; a waiting job waits no longer, except in its lanes. */
void rt_choose_add(struct rt_sched *sched, struct rt_sched_job *job);
void rt_choose_remove(struct rt_sched *sched, struct rt_sched_job *job);

/* |job| is over: its tickets are given back, and the next ones are first. */
void rt_choose_leave_lanes(struct rt_sched *sched, const struct rt_sched_job *job);

/* Call when the queue's first job waits for memory: call it before the counts of memory are looked
 * at. */
void rt_choose_starve(struct rt_sched *sched, struct rt_sched_queue *queue);

/* Call when another job, or none, is the first of its queue; or memory may have become free. Jobs
 * that wait for it may be tried again. */
void rt_choose_feed(struct rt_sched *sched, struct rt_sched_queue *queue);
void rt_choose_feed_all(struct rt_sched *sched);

/* Takes |job|, which is not in its queue yet, as running since it was queued. False: others wait or
 * run, or it waits for others to run with it, so it goes through its queue. */
bool rt_choose_sole(struct rt_sched *sched, struct rt_sched_job *job, struct rt_sched_start *start);

/* Takes the next job, and the jobs that run as one with it, as running since |now|. False: no job
 * may run. */
bool rt_choose_next(struct rt_sched *sched, uint64_t now, struct rt_sched_start *start);

#endif
