/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/sched/job.h"

#include "base/check.h"
#include "runtime/call/batch.h"
#include "runtime/call/inside.h"
#include "runtime/sched/sched.h"

_Static_assert(RT_SCHED_BATCH_MAX <= RT_BATCH_CALLS_MAX, "each batch can be submitted");

static struct rt_invocation *call_of(const struct rt_sched_job *job)
{
    struct rt_invocation *inv;
    OBJ_CAST(inv, job->call, INVOCATION_MAGIC);
    return inv;
}

void rt_job_end(struct rt_invocation *invocation, enum status status, void *arg)
{
    must(arg != NULL);
    (void)invocation;
    rt_sched_finished(arg, status);
}

bool rt_job_start_batch(struct rt_sched_job *const *jobs, uint32_t count)
{
    struct rt_invocation *parts[RT_SCHED_BATCH_MAX];
    void *args[RT_SCHED_BATCH_MAX];
    struct error err;
    must(count > 0 && count <= RT_SCHED_BATCH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = call_of(jobs[i]);
        args[i] = jobs[i];
    }
    return rt_batch_submit(parts, args, count, rt_job_end, &err) == ST_OK;
}

bool rt_job_fits(struct rt_sched_job *a, struct rt_sched_job *b)
{
    return rt_batch_fits(call_of(a), call_of(b));
}
