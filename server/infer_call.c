/* SPDX-License-Identifier: MIT */
/* Requests and answers in the method's own structure (protocol/call.h). */
#include "config.h"

#include "base/check.h"
#include "runtime/invocation.h"
#include "server/infer.h"
#include "server/request.h"
#include "server/server.h"

static enum status parse(struct request *request, const struct oip_body *parts, struct error *err)
{
    struct infer *infer = &request->infer;
    const struct params *params = request->server->params;
    const struct call_limits limits = {
        .tensor_bytes_max = params->ring_bytes,
        .json_depth_max = params->json_depth_max,
        .element_count_max = params->element_count_max,
    };
    return call_parse(parts, &infer->model->call, &limits, &infer->arena, &infer->leaves, err);
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

static const struct model_io *find_output(const struct model *model, int64_t index)
{
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (model->outputs[i].index == index) {
            return &model->outputs[i];
        }
    }
    return NULL;
}

/* The leaves of the results, in their order; a None has no bytes. */
static enum status list_outputs(struct infer *infer, bool is_binary, struct error *err)
{
    const struct sip_tree *tree = &infer->model->call.structure->results;
    infer->outputs = arena_array(&infer->arena, tree->leaf_count, sizeof(infer->outputs[0]));
    if (!infer->outputs || tree->leaf_count > INFER_OUTPUTS_MAX) {
        return error_set(err, ST_UNSUPPORTED, "result: expected at most %d leaves, got %u",
                         INFER_OUTPUTS_MAX, tree->leaf_count);
    }
    for (uint32_t node = 0; node != SIP_NO_NODE; node = sip_next(tree, node)) {
        const struct model_io *io = tree->nodes[node].kind == SIP_LEAF
                                        ? find_output(infer->model, tree->nodes[node].raw_index)
                                        : NULL;
        if (io) {
            infer->outputs[infer->output_count++] = (struct infer_output){io, is_binary};
        }
    }
    return ST_OK;
}

static enum status decode_tensor(struct infer *infer, uint32_t index, const struct call_leaf *leaf,
                                 struct error *err)
{
    const struct call_method *method = &infer->model->call;
    enum dtype dtype = method->inputs[index].dtype;
    bool is_direct = leaf->form == CALL_BINARY && dtype != DT_BOOL && infer->body->buffer;
    void *memory;
    enum status status = is_direct ? infer_bind(infer, index, dtype, &leaf->shape, leaf->data, err)
                                   : rt_invocation_input(infer->invocation, index, dtype,
                                                         &leaf->shape, &memory, err);
    if (status != ST_OK) {
        return call_prefix(method, index, ": ", err);
    }
    if (!is_direct && call_decode_leaf(leaf, dtype, memory, err) != ST_OK) {
        return call_prefix(method, index, "", err);
    }
    return ST_OK;
}

static enum status decode_scalar(struct infer *infer, uint32_t index, const struct call_leaf *leaf,
                                 struct error *err)
{
    const struct call_method *method = &infer->model->call;
    enum rt_io_kind kind = rt_method_input(infer->model->method, index)->kind;
    union infer_scalar value;
    must(leaf->bytes <= sizeof(value));
    if (call_decode_leaf(leaf, method->inputs[index].dtype, &value, err) != ST_OK) {
        return call_prefix(method, index, "", err);
    }
    return infer_scalar(infer, kind, index, &value, err) == ST_OK
               ? ST_OK
               : call_prefix(method, index, ": ", err);
}

static enum status decode_input(struct infer *infer, uint32_t index, struct error *err)
{
    const struct call_leaf *leaf = &infer->leaves[index];
    const struct call_method *method = &infer->model->call;
    if (leaf->form == CALL_ABSENT) {
        return ST_OK; /* call_parse() knows that it may be */
    }
    switch (method->inputs[index].kind) {
    case CALL_TENSOR:
        return decode_tensor(infer, index, leaf, err);
    case CALL_SCALAR:
        return decode_scalar(infer, index, leaf, err);
    case CALL_STRING:
        return rt_invocation_string(infer->invocation, index, leaf->data, err) == ST_OK
                   ? ST_OK
                   : call_prefix(method, index, ": ", err);
    case CALL_NONE:
        break; /* has no leaf that is given */
    }
    unreachable();
}

static enum status decode(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    TRY(list_outputs(infer, route_query_has(head_target(&request->head), "binary=1"), err));
    for (uint32_t i = 0; i < infer->model->call.input_count; i++) {
        TRY(decode_input(infer, i, err));
    }
    return ST_OK;
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static enum status print(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    const struct call_method *method = &infer->model->call;
    struct call_result *results =
        arena_array(&infer->arena, method->result_count, sizeof(*results));
    infer->encoded.spans = arena_array(&infer->arena, infer->output_count + 1, sizeof(struct span));
    if (!results || !infer->encoded.spans) {
        return error_set(err, ST_EXHAUSTED, "answer: out of memory");
    }
    for (size_t i = 0; i < infer->output_count; i++) {
        uint32_t index = infer->outputs[i].io->index;
        const struct rt_result *result = rt_invocation_result(infer->invocation, index);
        results[index] = (struct call_result){result->shape, result->bytes};
    }
    bool is_binary = infer->output_count && infer->outputs[0].is_binary;
    return call_print(method, results, is_binary, &request->out, &infer->encoded, err);
}

const struct infer_form infer_form_call = {parse, decode, print};
