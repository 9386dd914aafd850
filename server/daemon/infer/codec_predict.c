/* SPDX-License-Identifier: MIT */
/* Requests and answers of KServe's first protocol (protocol/predict.h). */
#include "config.h"

#include "base/check.h"
#include "protocol/predict.h"
#include "runtime/call/invocation.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"

static bool find_input(const void *user, struct span name, uint32_t *out_index, struct error *err)
{
    const struct model *model = user;
    const struct model_io *io = model_find_io(model->inputs, model->input_count, name);
    if (!io) {
        model_refuse_name(model, RT_INPUT, name, err);
        return false;
    }
    *out_index = io->index;
    return true;
}

static enum status parse(struct infer *infer, struct infer_call *call, const struct oip_body *parts,
                         struct span *out_rest, struct error *err)
{
    struct call_limits limits = codec_call_limits(infer);
    must(!out_rest); /* no list has such requests */
    call->parameters = &call->tree.parameters;
    const struct predict_names names = {.find = find_input, .user = call->model};
    TRY(predict_parse(parts, &call->model->call, &names, &limits, &infer->arena, &call->tree, err));
    return ST_OK;
}

static enum status print(struct infer *infer, struct infer_call *call, struct error *err)
{
    struct predict_result *results =
        arena_array(&infer->arena, call->output_count + 1, sizeof(*results));
    if (!results) {
        return arena_fail(&infer->arena, "the answer", err);
    }
    for (size_t i = 0; i < call->output_count; i++) {
        const struct model_io *io = call->outputs[i].io;
        const struct rt_result *result = rt_invocation_result(call->invocation, io->index);
        results[i] =
            (struct predict_result){.name = io->meta.name,
                                    .io = &call->model->call.results[io->index],
                                    .value = {.shape = result->shape, .bytes = result->bytes}};
    }
    predict_print(results, call->output_count, call->tree.are_rows,
                  oip_answer_nan(call->parameters, &call->nan), infer->out);
    return ST_OK;
}

const struct codec codec_predict = {.parse = parse,
                                    .decode = codec_call_decode_text,
                                    .print = print,
                                    .name_input = codec_call_name_input};
