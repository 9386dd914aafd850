/* SPDX-License-Identifier: MIT */
/*
 * The jobs of one model: waiting jobs, by priority, and the number of running ones. Also the time
 * that the model has had of the device, by which the scheduler chooses among models, and the time
 * that its jobs usually take. No lock: the scheduler's.
 */
#ifndef PTED_RUNTIME_SCHED_QUEUE_H
#define PTED_RUNTIME_SCHED_QUEUE_H

#include <stdatomic.h>

#include "base/refs.h"
#include "base/share.h"
#include "runtime/sched/group.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sizing.h"

/* Queues whose jobs run as one: a run has jobs of so many at most. */
#define RT_SCHED_PARTS_MAX 8

/* The jobs of one queue in a run. */
struct rt_sched_part {
    struct rt_sched_queue *queue; /* lives while one of these jobs is not over */
    uint32_t size;                /* at the start of the run */
    uint32_t left;                /* that are not over */
    uint32_t counted;             /* of these, that may count for the batch */
    uint64_t charged_ns;          /* to the queue, in advance */
};

/* A unit of work for the device: one job, or several that run as one. The scheduler recycles it;
 * its memory lives as long as the scheduler. */
struct rt_sched_run {
    struct list link; /* free; the scheduler's */
    struct list jobs; /* that are not over */
    uint64_t serial;  /* another one whenever it is used again */
    bool has_yielded; /* its one job is a parent whose children are jobs: it takes no place */
    uint64_t started_ns;
    struct rt_sched_part parts[RT_SCHED_PARTS_MAX]; /* the first one has the first job */
    uint32_t part_count;
    uint32_t size;        /* jobs at its start */
    int64_t rows;         /* likewise; 0: they are not counted */
    int64_t returning;    /* rows of them that are steps */
    atomic_int *in_start; /* of whoever is inside start(); NULL once that has returned */
};

#define RT_SCHED_QUEUE_MAGIC 0x9e0ede77u

struct rt_sched_queue {
    uint32_t magic;
    struct refs refs;
    struct rt_sched *sched; /* borrowed; outlives its queues */
    atomic_bool joins;      /* rt_sched_queue_joins() */
    struct rt_sched_queue_options options;
    struct rt_sizing sizing;
    uint32_t joined_running_max;            /* of runs, while several rows may run as one */
    struct list link;                       /* in sched->ready while something is ready */
    struct list ready[RT_SCHED_PRIORITIES]; /* struct rt_sched_job, oldest first */
    uint32_t levels;                        /* bit i: ready[i] is not empty */
    uint32_t waiting_count, running_count;  /* jobs; runs that take a place */
    uint32_t child_count;                   /* of waiting jobs; all of them are ready */
    uint32_t yielded_count;                 /* runs that take none: parents */
    size_t waiting_bytes;
    struct share places;       /* of |waiting_max|, by client, under the lock; children take none */
    struct rt_sched_group own; /* meaningful while |group| is this */
    struct rt_sched_group *_Atomic group;
    int64_t mixed_rows; /* of several queues that may run as one with a job of this one */
    int64_t ready_rows;
    uint32_t ready_steps; /* jobs with rows that return */
    bool is_starved;      /* its first job found no memory: not before some has become free */
    uint64_t open_ns;     /* since when it only waits for jobs to be joined; 0: it does not */
    bool was_alone;       /* the last run was no step: the next one is, if a step is ready */
    uint64_t used_ns;     /* of the device, over the weight; comparable between queues */
    uint64_t run_ns;      /* the usual device time of a job; 0: no job has finished */
    uint64_t lasts_ns;    /* the usual time of a run, however many jobs it has; likewise */
    uint32_t passes;      /* runs in a row that went before a job that was too late */
};

void rt_queue_init(struct rt_sched_queue *queue, struct rt_sched *sched,
                   const struct rt_sched_queue_options *options);
void rt_queue_fini(struct rt_sched_queue *queue);

/* Fails with ST_EXHAUSTED when |job| would be one too many, for the queue or for its client. A
 * child never is. */
MUST_CHECK enum status rt_queue_admit(struct rt_sched_queue *queue, const struct rt_sched_job *job,
                                      struct error *err);

/* |job| begins to wait; once rt_queue_ready() has been called, it may be the first. */
void rt_queue_add(struct rt_sched_queue *queue, struct rt_sched_job *job);
void rt_queue_ready(struct rt_sched_queue *queue, struct rt_sched_job *job);

/* Makes it ready again, before all others of its priority. */
void rt_queue_ready_again(struct rt_sched_queue *queue, struct rt_sched_job *job);

/* |job| no longer waits, neither ready nor behind others in a lane. */
void rt_queue_remove(struct rt_sched_queue *queue, struct rt_sched_job *job);

/* Does the same, but a job that can still be done before its deadline goes before a job that
 * probably cannot: else each job of a long queue would start just before its deadline, and the
 * device would do work for jobs that are cut. A job that is too late runs if no other is ready, or
 * if others have gone first some times. The caller starts the job. */
struct rt_sched_job *rt_queue_take_turn(struct rt_sched_queue *queue, uint64_t now_ns);

/* May a run begin, or a run of others take its jobs along, by the limit on runs at a time?
 * Something is ready. */
bool rt_queue_may_run(const struct rt_sched_queue *queue, bool is_guest);

/* Would a run that began now probably not be over at the deadline of |job|? */
bool rt_queue_is_too_late(const struct rt_sched_queue *queue, const struct rt_sched_job *job,
                          uint64_t now_ns);

/* Returns when what is ready has waited for others long enough: 0 if there is nothing to wait
 * for. */
uint64_t rt_queue_due_ns(const struct rt_sched_queue *queue);

/* Does the same, also if nothing is ready; from now on any thread sees it in the due_ns of the
 * group without the lock, or what others of the group wait for if this one waits for nothing. */
uint64_t rt_queue_tell_due(struct rt_sched_queue *queue);

/* Call when a job took so long: it counts in |run_ns|. */
void rt_queue_note_run(struct rt_sched_queue *queue, uint64_t took_ns);

/* Returns the part of |run| that has the jobs of |queue|; NULL: it has none. */
struct rt_sched_part *rt_queue_find_part(struct rt_sched_run *run,
                                         const struct rt_sched_queue *queue);

/*
 * Call when the device takes |run|. Each queue is charged with the usual time of its jobs, and the
 * charge is put right when the last of them is over, with |status|; and when the last one of the
 * run is.
 */
void rt_queue_started(struct rt_sched_run *run);
void rt_queue_end_part(const struct rt_sched_run *run, const struct rt_sched_part *part,
                       uint64_t now_ns, enum status status);
void rt_queue_finished(struct rt_sched_queue *queue, struct rt_sched_run *run, uint64_t now_ns,
                       enum status status);

/* |run| is over: its steps come back soon. */
void rt_queue_await_steps(struct rt_sched_queue *queue, const struct rt_sched_run *run,
                          uint64_t now_ns);

/* Takes the charge back: the device took |run| in vain. Its first part is the only one; the others
 * go before. */
void rt_queue_drop_guests(struct rt_sched_run *run);
void rt_queue_unstarted(struct rt_sched_run *run);

/* Runs at a time, at most; 0: no such limit. */
uint32_t rt_queue_running_max(const struct rt_sched_queue *queue);

/* See rt_sched_drain_ns(); |depth| jobs run at a time. */
uint64_t rt_queue_drain_ns(const struct rt_sched_queue *queue, uint32_t depth);

#endif
