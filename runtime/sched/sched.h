/* SPDX-License-Identifier: MIT */
/*
 * Decides which job runs next. A job is a call that is ready to run; it waits in the queue of its
 * model until the device takes it. The device holds few jobs at a time (|depth|): enough that it
 * never waits for the next one, few enough that priorities, deadlines and fairness have an effect.
 *
 * Of several models with waiting jobs, the model that has had the least device time for its weight
 * is next. A model without a job on the device is always given one, so that a slow model cannot
 * keep a fast one out. Within a model: the higher priority first, then in order.
 *
 * Where a model allows it, jobs that wait while the device is busy run as one, up to a number of
 * rows. A job waits for others to join it only if the options of its queue give a time for that, or
 * if they are steps (|returns|): steps that have just run together come back one after the other,
 * within a small part of the time that they took, and the first waits for the last. Between two
 * jobs that run alone there is a turn for steps.
 *
 * A job may be a parent: it yields, and its children are jobs of their own, each in the queue of
 * its model, where it runs as one with other waiting jobs. Children take the place in the queue
 * that their parent's time of arrival gives them.
 *
 * The scheduler knows neither invocations nor sockets: a job starts, cancels and ends by callbacks,
 * and time comes from a clock that the caller gives. Each job that rt_sched_submit() took ends in
 * exactly one call of done().
 *
 * Any thread. Callbacks are called outside all locks, except cancel().
 */
#ifndef PTED_RUNTIME_SCHED_SCHED_H
#define PTED_RUNTIME_SCHED_SCHED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/status.h"

struct rt_sched;
struct share_stats;
struct rt_sched_job;
struct rt_sched_queue;

/* Priorities as the protocol has them: 1 is the highest, 0 stands for the default. */
#define RT_SCHED_PRIORITIES 8
#define RT_SCHED_PRIORITY_DEFAULT 4
#define RT_SCHED_NEVER UINT64_MAX

/* Jobs that run as one, at most; numbers of rows among which the scheduler chooses. */
#define RT_SCHED_BATCH_MAX 64
#define RT_SCHED_SIZES_MAX 16

struct rt_sched_job_ops {
    /*
     * The device has room: run, and call rt_sched_finished() once, from any thread, also before
     * this returns. |may_run_inline|: on the thread that submits the job, which may do it itself.
     * False: there is no memory to run it now. It waits for memory then, before all others of its
     * priority, while there is a job that runs or has not been released yet; else it is done with
     * ST_EXHAUSTED.
     */
    bool (*start)(struct rt_sched_job *job, bool may_run_inline);
    /*
     * (optional, with fits) The same for jobs that run as one. Each is finished for itself, in any
     * order; the device has room again when the last one is. False: there is no memory to run them
     * as one. The first is started alone then, and the others wait again.
     */
    bool (*start_batch)(struct rt_sched_job *const *jobs, uint32_t count);
    /* Both have rows: may they run as one? Must neither block nor call back. */
    bool (*fits)(struct rt_sched_job *a, struct rt_sched_job *b);
    /*
     * A started job is not wanted any more: finish soon; false. Or true: one of several that run as
     * one has left them, is over, and will not be finished. Must neither block nor call back.
     */
    bool (*cancel)(struct rt_sched_job *job);
    /*
     * The end. ST_TIMEOUT: the deadline has passed; ST_CANCELLED; or what rt_sched_finished() was
     * given. May be called before rt_sched_submit() returns. The job is the caller's again.
     */
    void (*done)(struct rt_sched_job *job, enum status status);
};

struct rt_sched_run;

enum rt_sched_state { RT_SCHED_IDLE, RT_SCHED_WAITING, RT_SCHED_RUNNING };

/*
 * A lane: its jobs run one after the other, in the order in which they were submitted, even if they
 * are in different queues. It outlives its jobs.
 */
struct rt_sched_lane {
    struct list
        tickets; /* struct rt_sched_ticket; the job of the first is the one whose turn it is */
};

void rt_sched_lane_init(struct rt_sched_lane *lane);

/*
 * A job's place in a lane. A job may be in several: it takes its places in all of them at once, so
 * no two jobs ever wait for each other, and runs when it is the first in each.
 */
struct rt_sched_ticket {
    struct rt_sched_lane *lane; /* set before rt_sched_submit() */
    struct rt_sched_job *job;   /* the scheduler's, like the rest */
    struct list link;
};

/* Embedded by whoever submits it; zeroed once, then used again and again. */
struct rt_sched_job {
    /* Set before rt_sched_submit(). */
    const struct rt_sched_job_ops *ops;
    uint64_t deadline_ns;            /* on the scheduler's clock; RT_SCHED_NEVER */
    uint32_t priority;               /* 0: the default; beyond the lowest: the lowest */
    size_t bytes;                    /* of memory that it holds while it waits */
    uint64_t client;                 /* whose place it takes in the queue: base/share.h */
    struct rt_sched_ticket *tickets; /* of different lanes; the caller's until done() */
    uint32_t ticket_count;           /* 0: it is on its own */
    int64_t rows;                    /* that it brings to a batch; 0: it runs alone */
    bool returns; /* it is a step: the next one like it follows soon after its end */
    void *call;   /* the caller's, for fits() and start_batch() */
    /* it goes on with a job that arrived then, and takes the place of that job among jobs that run
     * alone; 0: it goes on with none */
    uint64_t since_ns;
    struct rt_sched_job *parent; /* it is a child of this job, see rt_sched_yield(); or NULL */
    bool is_uncounted;           /* never the |is_batch_end| of its batch */

    /* Valid in done(): times on the scheduler's clock; started is 0 when it never ran. */
    uint64_t queued_ns, started_ns, finished_ns;
    uint64_t joining_ns; /* of its wait: the device had room, but others might have joined it */
    uint32_t batch_size; /* jobs that ran as one with it, and it */
    int64_t batch_rows;  /* of all of them */
    bool is_batch_end;   /* it was the last of its queue in its batch, uncounted jobs apart */

    /* The scheduler's, under its lock. */
    enum rt_sched_state state;
    bool is_expired, is_cancelled;
    bool has_place;         /* in the queue's share */
    struct list children;   /* of a parent: children that are not over */
    struct list child_link; /* in that list of |parent| */
    uint32_t behind_count;  /* lanes where it is not the first: until then no device is for it */
    struct rt_sched_queue *queue;
    struct list link; /* in a queue's list while it is ready, then in |run|'s */
    struct rt_sched_run *run;
    uint32_t deadline_index; /* in the heap of deadlines */
};

struct rt_sched_options {
    uint32_t depth;          /* jobs on the device at a time; at least 1 */
    uint64_t (*clock)(void); /* ns, monotone */
};

struct rt_sched_queue_options {
    uint32_t waiting_max;     /* jobs */
    size_t waiting_bytes_max; /* of all waiting jobs; one alone may be larger */
    uint32_t running_max;     /* jobs on the device at a time; 0: as many as |depth| allows */
    int64_t rows_max;         /* of jobs that run as one; up to 1: each runs alone */
    uint64_t delay_ns;        /* that one with rows waits at most to be joined by others */
    uint32_t weight;          /* share of the device beside other queues; at least 1 */
};

MUST_CHECK enum status rt_sched_new(const struct rt_sched_options *options,
                                    struct rt_sched **out_sched, struct error *err);

/* Call when nothing waits or runs, no queue is left. Any thread, also in done(); a thread that is
 * still on its way out of start_all() frees the memory then. */
void rt_sched_free(struct rt_sched *sched);

MUST_CHECK enum status rt_sched_queue_new(struct rt_sched *sched,
                                          const struct rt_sched_queue_options *options,
                                          struct rt_sched_queue **out_queue, struct error *err);

/* Counted: a parent may need the queue of a model that is gone. The last reference is to an empty
 * queue. NULL is fine. Any thread, but not with a job of the queue that is not over. */
struct rt_sched_queue *rt_sched_queue_ref(struct rt_sched_queue *queue);
void rt_sched_queue_unref(struct rt_sched_queue *queue);

/* How jobs may run as one. */
struct rt_sched_join {
    int64_t rows_max;     /* that may */
    int64_t rows;         /* to begin with */
    bool is_learning;     /* from then on as many as cost least (runtime/sched/sizing.h) */
    uint32_t running_max; /* like the option, while more than one row may run as one */
    uint64_t delay_ns;    /* the option */
};

/* Lets jobs run as one from now on. Called again when more rows may: what has been learnt stays. */
void rt_sched_queue_join(struct rt_sched_queue *queue, const struct rt_sched_join *join);

/*
 * From now on up to |rows| rows of jobs of |queue| run as one with jobs of |other| and of the
 * queues that run as one with that, where fits() says so. Each queue keeps its own limits, weight
 * and counts, but a step begins as if the steps of all of them were those of one queue, whose runs
 * obey the least |running_max|. Only jobs that return run as one with those of other queues. Called
 * again when more rows may. ST_UNSUPPORTED: each of the two runs as one with others already.
 * ST_EXHAUSTED: there is no memory. Calls rt_sched_held_ns() for the queues are on the same thread.
 */
MUST_CHECK enum status rt_sched_queue_mix(struct rt_sched_queue *queue,
                                          struct rt_sched_queue *other, int64_t rows,
                                          struct error *err);

/* May jobs of the queue run as one? */
bool rt_sched_queue_joins(const struct rt_sched_queue *queue);

/* A number of rows that may run as one, and the cost of a row when a full device ran so many. */
struct rt_sched_size {
    int64_t rows;
    double row_ns;   /* a moving average; 0: not known */
    uint64_t epochs; /* measured */
};

struct rt_sched_sizes {
    int64_t rows_max; /* of jobs that run as one: the best size so far */
    uint32_t count;   /* of sizes that are measured; 0: |rows_max| is given */
    struct rt_sched_size sizes[RT_SCHED_SIZES_MAX];
};

void rt_sched_queue_sizes(struct rt_sched_queue *queue, struct rt_sched_sizes *out_sizes);

/*
 * Takes |job|, or refuses it: ST_EXHAUSTED when the queue is full, in which case done() is not
 * called. |may_run_inline|: it may run before this returns, on this thread.
 */
MUST_CHECK enum status rt_sched_submit(struct rt_sched_queue *queue, struct rt_sched_job *job,
                                       bool may_run_inline, struct error *err);

/*
 * In start() of |job|: it takes no place on the device from now on, since its children are jobs
 * that the scheduler starts. It is finished when they are over. False: the device has nothing else
 * to do, so there is nothing to join, or there is no memory for it; |job| is to run by itself.
 *
 * Children name |job| as their |parent|. They are submitted between this call and its end, have no
 * deadline and no lanes, are never refused, and never wait for others to join them. They are done
 * with ST_CANCELLED soon after |job| has been cancelled or its deadline has passed, by their own
 * cancel() if they run. rt_sched_released() is not called for them.
 */
MUST_CHECK bool rt_sched_yield(struct rt_sched_job *job);

/* |job| is over and the device has room. The code that runs |job| calls it; |job| may be freed
 * then.
 */
void rt_sched_finished(struct rt_sched_job *job, enum status status);

/*
 * Call once for each job whose done() saw a |started_ns|, when its results have been freed or a
 * client may keep them for any time. Jobs that wait for memory are tried again. Any thread.
 */
void rt_sched_released(struct rt_sched *sched);

/*
 * Call when the caller does not want |job| any more. One that waits, or leaves others that it runs
 * with, is done at once (from here); a running job, as soon as its cancel() has worked; a job that
 * is over is left alone. |job| has been taken and its memory is still the job's.
 */
void rt_sched_cancel(struct rt_sched_job *job);

/*
 * Ends what has passed its deadline, and starts what has waited for others long enough. Returns
 * when to come back, or RT_SCHED_NEVER: the caller does so then, or when a job that it has
 * submitted meanwhile is due.
 */
uint64_t rt_sched_expire(struct rt_sched *sched);

/* Returns when rt_sched_expire() has something to do for |job|, which has been taken, if it still
 * waits. */
uint64_t rt_sched_due_ns(const struct rt_sched_job *job);

/* Until then steps of |queue| wait for steps that have just run to come back; or RT_SCHED_NEVER.
 * After the end of a step the caller sees to it that rt_sched_expire() is called then. No lock: a
 * thread that is stopped while it holds the scheduler's does not stop the loop here. It may be a
 * time that is over, or at which nothing is left to do. */
uint64_t rt_sched_held_ns(struct rt_sched_queue *queue);

/* Returns the expected time until a job submitted now is over, by the times of recent jobs; 0:
 * unknown. */
uint64_t rt_sched_drain_ns(struct rt_sched_queue *queue);

struct rt_sched_load {
    uint32_t waiting, running;
    size_t waiting_bytes;
};

struct rt_sched_load rt_sched_load(struct rt_sched_queue *queue);

/* Jobs that queues have refused, those that are gone included. Any thread. */
uint64_t rt_sched_refused(struct rt_sched *sched);

/* Counts the places for jobs that wait, by client. Any thread. */
void rt_sched_places(struct rt_sched_queue *queue, struct share_stats *out_stats);

/* Does no job run, and is none ready to run? */
bool rt_sched_is_idle(struct rt_sched *sched);

#endif
