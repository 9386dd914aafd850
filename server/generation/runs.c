/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/generation/runs.h"

#include <stdatomic.h>

#include "base/check.h"
#include "runtime/call/invocation.h"
#include "runtime/program/state.h"
#include "runtime/sched/sequence.h"
#include "server/request/request.h"
#include "server/serving/serving.h"

void runs_add_times(struct runs_times *times, const struct rt_sched_job *job)
{
    times->queued_ns = times->queued_ns ? times->queued_ns : job->queued_ns;
    times->waited_ns += job->started_ns - job->queued_ns;
    times->computed_ns += job->finished_ns - job->started_ns;
}

void runs_join_times(const struct runs_times *times, struct rt_sched_job *job)
{
    job->queued_ns = times->queued_ns;
    job->started_ns = job->queued_ns + times->waited_ns;
    job->finished_ns = job->started_ns + times->computed_ns;
}

/* A key has a number and a name: no client has such a one. */
enum status runs_open_sequence(struct request *request, const char *kind, struct error *err)
{
    static _Atomic(uint64_t) last_number;
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct infer_call *call = &request->infer.call;
    struct rt_program *program = call->model->program;
    if (call->sequence || rt_program_state_bytes(program) == 0) {
        return ST_OK;
    }
    const struct rt_sequence_key key = {.program = program,
                                        .number = atomic_fetch_add(&last_number, 1) + 1,
                                        .name = span_str(kind),
                                        .client = request->client,
                                        .is_of_request = true};
    return rt_sequences_open(request->serving->sequences, &key, true, &call->sequence, err) == ST_OK
               ? ST_OK
               : error_prefix(err, "model '%s': ", call->model->name);
}

void runs_give_state(struct infer_call *call)
{
    if (call->sequence) {
        rt_invocation_set_state(call->invocation, rt_sequence_state(call->sequence));
    }
}

void runs_end_sequence(struct infer_call *call)
{
    if (call->sequence) {
        rt_sequence_end(call->sequence);
        rt_sequence_close(call->sequence);
        call->sequence = NULL;
    }
}
