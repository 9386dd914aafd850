/* SPDX-License-Identifier: MIT */
/* The heap's memory only grows, to the largest number of jobs that it ever held. */
#include "config.h"

#include "runtime/sched/deadline.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/check.h"
#include "runtime/sched/sched.h"

#define NOT_IN UINT32_MAX

void rt_deadlines_fini(struct rt_deadlines *deadlines)
{
    must(deadlines->count == 0);
    free(deadlines->jobs);
    *deadlines = (struct rt_deadlines){0};
}

static void put(struct rt_deadlines *deadlines, uint32_t index, struct rt_sched_job *job)
{
    deadlines->jobs[index] = job;
    job->deadline_index = index;
}

static void move_up(struct rt_deadlines *deadlines, uint32_t index, struct rt_sched_job *job)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / 2;
        if (deadlines->jobs[parent]->deadline_ns <= job->deadline_ns) {
            break;
        }
        put(deadlines, index, deadlines->jobs[parent]);
        index = parent;
    }
    put(deadlines, index, job);
}

static void move_down(struct rt_deadlines *deadlines, uint32_t index, struct rt_sched_job *job)
{
    for (uint32_t child; (child = 2 * index + 1) < deadlines->count; index = child) {
        struct rt_sched_job **jobs = deadlines->jobs;
        if (child + 1 < deadlines->count &&
            jobs[child + 1]->deadline_ns < jobs[child]->deadline_ns) {
            child++;
        }
        if (job->deadline_ns <= jobs[child]->deadline_ns) {
            break;
        }
        put(deadlines, index, jobs[child]);
    }
    put(deadlines, index, job);
}

enum status rt_deadlines_add(struct rt_deadlines *deadlines, struct rt_sched_job *job,
                             struct error *err)
{
    must(job->state == RT_SCHED_IDLE); /* it waits from then on */
    job->deadline_index = NOT_IN;
    if (job->deadline_ns == RT_SCHED_NEVER) {
        return ST_OK;
    }
    if (!ARRAY_ROOM(deadlines->jobs, deadlines->capacity, deadlines->count + 1)) {
        return error_no_memory(err, "%u deadlines", deadlines->count + 1);
    }
    move_up(deadlines, deadlines->count++, job);
    return ST_OK;
}

void rt_deadlines_remove(struct rt_deadlines *deadlines, struct rt_sched_job *job)
{
    uint32_t index = job->deadline_index;
    if (index == NOT_IN) {
        return;
    }
    must(index < deadlines->count && deadlines->jobs[index] == job);
    job->deadline_index = NOT_IN;
    struct rt_sched_job *last = deadlines->jobs[--deadlines->count];
    if (last == job) {
        return;
    }
    if (index > 0 && last->deadline_ns < deadlines->jobs[(index - 1) / 2]->deadline_ns) {
        move_up(deadlines, index, last);
    } else {
        move_down(deadlines, index, last);
    }
}

struct rt_sched_job *rt_deadlines_first(const struct rt_deadlines *deadlines)
{
    return deadlines->count ? deadlines->jobs[0] : NULL;
}
