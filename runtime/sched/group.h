/* SPDX-License-Identifier: MIT */
/*
 * What queues have in common whose jobs run as one (rt_sched_queue_mix()): as one queue would have
 * it. Most queues have a group of their own, which is part of them. The scheduler's lock guards all
 * but |due_ns|.
 */
#ifndef PTED_RUNTIME_SCHED_GROUP_H
#define PTED_RUNTIME_SCHED_GROUP_H

#include <stdatomic.h>
#include <stdint.h>

struct rt_sched_queue;

struct rt_sched_group {
    uint32_t queue_count;
    uint32_t steps_max;      /* of runs with steps, the least of all queues; 0: no bound */
    uint32_t stepping_count; /* runs with steps */
    int64_t ready_rows;      /* of all queues, like the next one */
    uint32_t ready_steps;    /* jobs with rows that return */
    int64_t expected_rows;   /* of steps, once the steps of the last run have come back: */
    uint64_t held_ns;        /* they are awaited until then, */
    uint64_t hold_ns;        /* so long after the last run, or after the first has come back */
    _Atomic uint64_t due_ns; /* see rt_queue_tell_due() */
};

/* Call when the bound of |queue| has changed. Its runs with steps obey the least bound of its
 * group: a queue with a larger one would always run, and the others would wait for it. */
void rt_group_bound(const struct rt_sched_queue *queue);

/* |queue|, which is empty, is about to be freed. */
void rt_group_leave(struct rt_sched_queue *queue);

#endif
