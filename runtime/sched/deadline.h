/* SPDX-License-Identifier: MIT */
/*
 * Jobs by deadline, the nearest first: a binary heap whose entries know their place, so that one
 * can leave from anywhere. Jobs without a deadline are not in it. No lock: the scheduler's.
 */
#ifndef PTED_RUNTIME_SCHED_DEADLINE_H
#define PTED_RUNTIME_SCHED_DEADLINE_H

#include <stdint.h>

#include "base/status.h"

struct rt_sched_job;

struct rt_deadlines {
    struct rt_sched_job **jobs; /* owned; a heap of borrowed pointers */
    uint32_t count;
    size_t capacity;
};

void rt_deadlines_fini(struct rt_deadlines *deadlines);

/* Fails with ST_EXHAUSTED without memory. A job with RT_SCHED_NEVER is left out. */
MUST_CHECK enum status rt_deadlines_add(struct rt_deadlines *deadlines, struct rt_sched_job *job,
                                        struct error *err);

/* Does nothing when it is not in. */
void rt_deadlines_remove(struct rt_deadlines *deadlines, struct rt_sched_job *job);

/* Returns the job with the nearest deadline; NULL when there is none. */
struct rt_sched_job *rt_deadlines_first(const struct rt_deadlines *deadlines);

#endif
