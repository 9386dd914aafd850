/* SPDX-License-Identifier: MIT */
/* When a call has to be over: by the client's limits, and by the parameters of its model. */
#include "config.h"

#include "base/check.h"
#include "server/daemon/infer/infer_priv.h"

#define NS_PER_MS 1000000u

static const struct params *params_of(const struct infer *infer)
{
    const struct model *model = infer->call.model; /* NULL: the request is a list */
    return model ? &model->params : infer->env->params;
}

/* The longest time that the client gives the request. */
static uint64_t client_limit_ns(const struct infer *infer)
{
    uint64_t ns;
    bool is_limit = infer->timeout_us && !__builtin_mul_overflow(infer->timeout_us, 1000, &ns);
    return is_limit ? ns : UINT64_MAX;
}

static uint64_t add_ns(uint64_t ns, uint64_t more)
{
    uint64_t sum;
    return __builtin_add_overflow(ns, more, &sum) ? RT_SCHED_NEVER : sum;
}

uint64_t infer_client_due_ns(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer->ops ? add_ns(infer->arrived_ns, client_limit_ns(infer)) : RT_SCHED_NEVER;
}

/* The time in which its model was loaded does not count. */
static uint64_t our_due_ns(const struct infer *infer, uint64_t limit_ms)
{
    return add_ns(infer->arrived_ns + infer->waited_ns, limit_ms * NS_PER_MS);
}

/* When one run has to be over, and the wait before the first: as we say, or the client, if that is
 * sooner. */
static uint64_t run_due_ns(const struct infer *infer)
{
    uint64_t ours = our_due_ns(infer, params_of(infer)->request_timeout);
    uint64_t clients = infer_client_due_ns(infer);
    return clients < ours ? clients : ours;
}

/* When all runs together have to be over. */
static uint64_t all_due_ns(const struct infer *infer)
{
    uint64_t ours = infer_has_runs(infer) ? our_due_ns(infer, params_of(infer)->generation_timeout)
                                          : RT_SCHED_NEVER;
    uint64_t clients = infer_client_due_ns(infer);
    return clients < ours ? clients : ours;
}

enum status infer_fail_late(const struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    const struct params *params = params_of(infer);
    uint64_t all_ns = all_due_ns(infer);
    bool is_all = all_ns != RT_SCHED_NEVER && uv_hrtime() >= all_ns;
    bool is_clients = (is_all ? all_ns : run_due_ns(infer)) == infer_client_due_ns(infer);
    double ms = is_clients ? (double)client_limit_ns(infer) / NS_PER_MS
                : is_all   ? (double)params->generation_timeout
                           : (double)params->request_timeout;
    return error_set(err, ST_TIMEOUT, "%s after %.6g ms%s",
                     infer->job.started_ns ? "not done" : "still waiting", ms,
                     is_clients ? ""
                     : is_all   ? " (--generation-timeout)"
                                : " (--request-timeout)");
}

uint64_t infer_wait_due_ns(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return run_due_ns(infer);
}

uint64_t infer_deadline_ns(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(infer->ops && infer->arrived_ns > 0);
    if (!infer_has_runs(infer)) {
        return infer_wait_due_ns(infer);
    }
    uint64_t step_ns = uv_hrtime() + params_of(infer)->request_timeout * NS_PER_MS;
    uint64_t all_ns = all_due_ns(infer);
    return all_ns < step_ns ? all_ns : step_ns;
}
