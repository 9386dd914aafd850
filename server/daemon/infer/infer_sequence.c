/* SPDX-License-Identifier: MIT */
/* Calls of sequences: the states of their models, from one request to the next. */
#include "config.h"

#include "server/daemon/infer/infer_sequence.h"

#include "base/check.h"
#include "runtime/program/state.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/serving/serving.h"
#include "server/http/client.h"
#include "server/model/repository.h"
#include "server/process/alarm.h"

#define NS_PER_MS 1000000u

void infer_sequence_end(const struct infer_call *call)
{
    if (call->is_sequence_end && call->sequence) {
        rt_sequence_end(call->sequence);
    }
}

void infer_sequence_close(struct infer *infer, struct infer_call *call)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    if (call->sequence) {
        const struct params *params = infer->env->params;
        rt_sequence_close(call->sequence);
        call->sequence = NULL;
        alarm_set(infer->env->alarm, uv_hrtime() + params->sequence_timeout * NS_PER_MS);
    }
}

enum status infer_sequence_open(struct infer *infer, struct infer_call *call, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    const struct oip_parameters *parameters = call->parameters;
    if (parameters->sequence_id == 0 && parameters->sequence_name.len == 0) {
        return parameters->sequence_start || parameters->sequence_end
                   ? error_set(err, ST_INVALID,
                               "parameters.sequence_%s: sequence_id is missing, 0 or empty",
                               parameters->sequence_start ? "start" : "end")
                   : ST_OK;
    }
    const struct rt_sequence_key key = {
        .program = call->model->program,
        .number = parameters->sequence_id,
        .name = parameters->sequence_name,
        .client = client_that_lasts(infer->client->id),
    };
    if (rt_program_state_bytes(key.program) == 0) {
        return ST_OK; /* there is nothing to remember */
    }
    call->is_sequence_end = parameters->sequence_end;
    if (seats_open_sequence(infer, &key, parameters->sequence_start, &call->sequence, err) !=
        ST_OK) {
        return error_prefix(err, "parameters.sequence_id: ");
    }
    rt_invocation_set_state(call->invocation, rt_sequence_state(call->sequence));
    return ST_OK;
}

bool infer_sequence_find_generation(struct infer *infer, struct infer_call *call,
                                    struct model **out_newest)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    const struct oip_parameters *parameters = call->parameters;
    struct model *model = call->model;
    const struct rt_sequence_key key = {.number = parameters->sequence_id,
                                        .name = parameters->sequence_name};
    if ((key.number == 0 && key.name.len == 0) || parameters->sequence_start ||
        rt_program_state_bytes(model->program) == 0) {
        return false;
    }
    const struct serving *serving = infer->serving;
    struct model *found =
        repository_find_generation(&infer->serving->repository, model, serving->sequences, &key);
    if (found == model) {
        model_unref(found);
        return false;
    }
    *out_newest = model;
    call->model = found;
    return true;
}
