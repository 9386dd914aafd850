/* SPDX-License-Identifier: MIT */
/* Which result becomes which input, of the calls in a list. */
#include "config.h"

#include "base/check.h"
#include "runtime/program/names.h"
#include "runtime/program/signature.h"
#include "server/daemon/infer/bundle.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"

/* The promised result. */
static enum status find_output(const struct bundle_promise *promise, const struct model *model,
                               const struct model_io **out, struct error *err)
{
    uint32_t index, i = 0;
    if (rt_method_pick_result(model->method, &promise->said->output, &index, err) != ST_OK) {
        return error_prefix(err, "%s.output: model '%s': ", promise->place, model->name);
    }
    while (i < model->output_count && model->outputs[i].index != index) {
        i++;
    }
    *out = &model->outputs[i];
    return i < model->output_count
               ? ST_OK
               : error_set(err, ST_INVALID, "%s.output: model '%s': output %u is None",
                           promise->place, model->name, index);
}

static enum status find_input(const struct infer_call *call, const struct bundle_promise *promise,
                              uint32_t *out_index, struct error *err)
{
    const struct model *model = call->model;
    *out_index = promise->input;
    if (call->codec != &codec_oip) {
        return ST_OK;
    }
    const struct model_io *io = model_find_io(model->inputs, model->input_count, promise->name);
    if (!io) {
        model_refuse_name(model, RT_INPUT, promise->name, err);
        return error_prefix(err, "%s: ", promise->place);
    }
    *out_index = io->index;
    return ST_OK;
}

/* If a call declares the shape of a promised input, it must match the result as far as sizes are
 * known. */
static enum status check_type(const struct bundle_promise *promise, const struct model_io *output,
                              struct error *err)
{
    const struct oip_type *said = promise->type, *is = &output->meta.type;
    bool fits =
        !said || (said->is_bytes == is->is_bytes && (said->is_bytes || said->dtype == is->dtype));
    return fits ? ST_OK
                : error_set(err, ST_INVALID, "%s: datatype is %s, expected %s", promise->place,
                            oip_type_name(*said), oip_type_name(*is));
}

struct pair {
    const struct model *from, *to;
};

/* A None has no edge: it may only become a None. */
static enum status check_none(void *user, uint32_t result, uint32_t input, struct error *err)
{
    const struct pair *pair = user;
    const struct rt_io *from = rt_method_result(pair->from->method, result);
    const struct rt_io *to = rt_method_input(pair->to->method, input);
    if (from->kind == RT_IO_NONE || to->kind != RT_IO_NONE) {
        return ST_OK;
    }
    return error_set(err, ST_INVALID, "output '%s' is not None, %s takes nothing else", from->name,
                     to->path);
}

/* The first part of a structure stands for all of it. */
static enum status check_structure(const struct bundle_promise *promise, const struct model *from,
                                   const struct model *to, struct error *err)
{
    struct pair pair = {from, to};
    const struct rt_signature *taker = rt_method_signature(to->method);
    const struct pick_structure wanted = {&taker->structure, promise->node, check_none, &pair};
    uint32_t depth = promise->said->output.depth, at = taker->leaves[promise->input];
    for (; at != promise->node; at = taker->structure.inputs.nodes[at].parent) {
        depth--;
    }
    return pick_compare(&promise->said->output, depth,
                        &rt_method_signature(from->method)->structure.results, &wanted,
                        err) == ST_OK
               ? ST_OK
               : error_prefix(err, "%s.output: model '%s': ", promise->whole, from->name);
}

/* The edge leads from a call whose model is known to a call that has not failed yet. */
static enum status make_edge(const struct bundle *bundle, const struct infer_call *to,
                             const struct bundle_promise *promise, struct rt_cascade_edge *edge,
                             struct error *err)
{
    const struct infer_call *from = &bundle->calls[promise->from].call;
    const struct model_io *output = NULL;
    if (promise->whole) {
        TRY(check_structure(promise, from->model, to->model, err));
    }
    TRY(find_output(promise, from->model, &output, err));
    TRY(find_input(to, promise, &edge->input, err));
    TRY(check_type(promise, output, err));
    edge->output = output->index;
    edge->place = promise->place;
    edge->shape = promise->shape;
    const struct rt_io *result = rt_method_result(from->model->method, edge->output);
    const struct rt_io *input = rt_method_input(to->model->method, edge->input);
    if (rt_cascade_verify_edge(result, input, err) != ST_OK) {
        return error_prefix(err, "%s: ", promise->place);
    }
    return ST_OK;
}

enum status bundle_make_edges(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct bundle *bundle = bundle_of(infer);
    must(bundle->count > 0);
    uint32_t count = 0;
    if (!bundle->edges) { /* else this is a repeated attempt */
        bundle->edges = arena_array(&infer->arena, bundle->promise_count, sizeof(*bundle->edges));
    }
    if (!bundle->edges) {
        return arena_fail(&infer->arena, "the list", err);
    }
    for (uint32_t step = 0; step < bundle->count; step++) {
        struct bundle_call *call = bundle_call_of(bundle, step);
        for (uint32_t i = 0; i < call->promise_count; i++) {
            const struct bundle_promise *promise = &call->promises[i];
            const struct bundle_call *from = &bundle->calls[promise->from];
            struct rt_cascade_edge *edge = &bundle->edges[count++];
            *edge = (struct rt_cascade_edge){.from = from->step, .to = step};
            if (call->err.code == ST_OK && from->call.model &&
                make_edge(bundle, &call->call, promise, edge, &call->err) != ST_OK) {
                *edge = (struct rt_cascade_edge){.from = from->step, .to = step};
            }
        }
    }
    bundle->layout = (struct rt_cascade_layout){bundle->edges, count, bundle->count};
    must(count == bundle->promise_count);
    return rt_cascade_verify(&bundle->layout, err);
}
