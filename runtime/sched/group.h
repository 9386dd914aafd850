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
    uint32_t stepping_count; /* runs with steps */
    int64_t ready_rows;      /* of all queues, like the next one */
    uint32_t ready_steps;    /* jobs with rows that return */
    int64_t expected_rows;   /* of steps, once the steps of the last run have come back */
    uint64_t held_ns; /* which is awaited until then: |hold_ns| after the last run, or after */
    uint64_t hold_ns; /* the first of them has come back */
    _Atomic uint64_t due_ns; /* see rt_queue_tell_due() */
};

/* |queue|, which is empty, is about to be freed. */
void rt_group_leave(struct rt_sched_queue *queue);

#endif
