/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/generation/runs.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "runtime/call/invocation.h"
#include "runtime/program/state.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/serving/serving.h"
#include "server/http/client.h"

enum status runs_fail_several(struct error *err)
{
    return error_set(err, ST_INVALID,
                     "model is missing: several could answer, which GET /v1/models lists");
}

enum status runs_find_only(struct infer *infer, bool (*can_answer)(const struct model *model),
                           const char *what, char out_name[MODEL_NAME_MAX + 1], struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct repository_index *index = repository_ref_index(&infer->serving->repository);
    uint32_t count = 0;
    out_name[0] = '\0';
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        if (model_is_to_be_had(model) && can_answer(model)) {
            count += strcmp(out_name, model->name) != 0; /* versions follow each other */
            snprintf(out_name, MODEL_NAME_MAX + 1, "%s", model->name);
        }
    }
    repository_unref_index(index);
    return count == 1  ? ST_OK
           : count > 1 ? runs_fail_several(err)
                       : error_set(err, ST_NOT_FOUND, "model is missing: no %s is loaded", what);
}

enum status runs_parse(struct infer *infer, const struct oip_body *parts, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct infer_call *call = &infer->call;
    return call->codec->parse(infer, call, parts, NULL, err);
}

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
enum status runs_open_sequence(struct infer *infer, const char *kind, struct error *err)
{
    static _Atomic(uint64_t) last_number;
    OBJ_CHECK(infer, INFER_MAGIC);
    struct infer_call *call = &infer->call;
    struct rt_program *program = call->model->program;
    if (call->sequence || rt_program_state_bytes(program) == 0) {
        return ST_OK;
    }
    const struct rt_sequence_key key = {.program = program,
                                        .number = atomic_fetch_add(&last_number, 1) + 1,
                                        .name = span_str(kind),
                                        .client = client_that_lasts(infer->client->id),
                                        .is_of_request = true};
    return seats_open_sequence(infer, &key, true, &call->sequence, err) == ST_OK
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
