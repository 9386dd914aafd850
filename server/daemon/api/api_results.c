/* SPDX-License-Identifier: MIT */
/*
 * POST /v2/models/{m}/{r}/call, where {r} is the result allocator that the signature of the model
 * names, "forward$results":
 *
 *     {"args": [3, 4]}      the sizes of inputs that vary, in the order of the signature
 *     {"result": [{"dtype": "float32", "shape": [3, 4], "bytes": 48}, null]}
 *
 * A result has an entry if a size of it varies. It is the buffer that a call with such inputs
 * gives, or null if its size depends on data.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "protocol/call.h"
#include "protocol/json.h"
#include "protocol/pytree.h"
#include "runtime/program/results.h"
#include "runtime/program/signature.h"
#include "server/daemon/api/api.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/request/request.h"

/* A dim of an input that varies. */
struct place {
    uint32_t input;
    uint8_t dim;
};

static uint32_t list_places(const struct rt_method *method, struct place *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        for (uint8_t d = 0; io->kind == RT_IO_TENSOR && d < io->shape.rank; d++) {
            if (rt_io_is_dynamic(io, d)) {
                out[count++] = (struct place){i, d};
            }
        }
    }
    return count;
}

/* The arguments, which are |count| integers. */
static enum status read_args(struct request *request, uint32_t count, int64_t *out,
                             struct error *err)
{
    struct arena *arena = &request->infer.arena;
    const struct oip_body body = {.json = body_span(&request->body)};
    const struct call_limits limits = codec_call_limits(&request->infer);
    struct call_request *call = &request->infer.call.tree;
    struct call_io *ios = arena_array(arena, count, sizeof(*ios));
    struct sip structure;
    struct tensor_nan nan = {0};
    if (!ios) {
        return api_no_memory(err);
    }
    for (uint32_t i = 0; i < count; i++) {
        ios[i] = (struct call_io){.kind = CALL_SCALAR, .dtype = DT_I64};
    }
    TRY(pytree_positional(count, 0, arena, &structure, err));
    const struct call_method allocator = {
        .structure = &structure, .inputs = ios, .input_count = count};
    TRY(call_parse(&body, &allocator, &limits, arena, call, NULL, err));
    for (uint32_t i = 0; i < count; i++) {
        if (call_decode_leaf(&call->leaves[i], DT_I64, &nan, &out[i], err) != ST_OK) {
            return call_prefix(&allocator, &call->leaves[i], i, "", err);
        }
    }
    return ST_OK;
}

/* The shape of each input, by raw index; NULL: it takes no tensor. */
static enum status make_shapes(struct request *request, const struct rt_method *method,
                               const struct shape ***out, struct error *err)
{
    struct arena *arena = &request->infer.arena;
    uint32_t inputs = rt_method_input_count(method);
    const struct shape **shapes = arena_array(arena, inputs, sizeof(struct shape *));
    struct shape *own = arena_array(arena, inputs, sizeof(*own));
    struct place *places = arena_array(arena, (size_t)inputs * SHAPE_RANK_MAX, sizeof(*places));
    int64_t *dims = arena_array(arena, (size_t)inputs * SHAPE_RANK_MAX, sizeof(*dims));
    if (!shapes || !own || !places || !dims) {
        return api_no_memory(err);
    }
    for (uint32_t i = 0; i < inputs; i++) {
        const struct rt_io *io = rt_method_input(method, i);
        own[i] = io->shape;
        shapes[i] = io->kind == RT_IO_TENSOR ? &own[i] : NULL;
    }
    uint32_t count = list_places(method, places);
    TRY(read_args(request, count, dims, err));
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io = rt_method_input(method, places[i].input);
        int64_t bound = io->shape.dims[places[i].dim];
        if (dims[i] < 0 || dims[i] > bound) {
            return error_set(err, ST_INVALID,
                             "args[%u]: dim %u of input '%s': expected 0 to %" PRId64
                             ", got %" PRId64,
                             i, places[i].dim, io->name, bound, dims[i]);
        }
        own[places[i].input].dims[places[i].dim] = dims[i];
    }
    *out = shapes;
    return ST_OK;
}

static void print_buffer(struct buf *out, const struct rt_io *io, const struct rt_result_info *info)
{
    char text[SHAPE_TEXT_MAX];
    if (!info->is_known) {
        buf_add_str(out, "null");
        return;
    }
    buf_printf(out, "{\"dtype\":\"%s\",\"shape\":%s,\"bytes\":%zu}", dtype_name(io->dtype),
               shape_print(&info->shape, text), info->bytes);
}

static enum status find_allocator(const struct request *request, const struct model *model,
                                  struct error *err)
{
    const char *name = rt_method_signature(model->method)->fbr;
    if (name && strcmp(request->match.region, name) == 0) {
        return ST_OK;
    }
    return error_set(err, ST_NOT_FOUND, "model '%s' has no '%.64s', expected %s", model->name,
                     request->match.region,
                     name ? name : "none: the sizes of its results do not vary");
}

enum status api_results(struct request *request, struct error *err)
{
    const struct model *model = api_find_ready(request, err);
    struct buf *out = &request->out;
    const struct shape **shapes = NULL;
    if (!model) {
        return err->code;
    }
    TRY(find_allocator(request, model, err));
    TRY(make_shapes(request, model->method, &shapes, err));
    uint32_t count = rt_method_result_count(model->method);
    struct rt_result_info *infos = arena_array(&request->infer.arena, count, sizeof(*infos));
    if (!infos) {
        return api_no_memory(err);
    }
    TRY(rt_method_result_shapes(model->method, shapes, infos, err));
    buf_add_str(out, "{\"result\":[");
    bool is_first = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io = rt_method_result(model->method, i);
        if (io->kind == RT_IO_TENSOR && io->dynamic_dims) {
            buf_add_str(out, is_first ? "" : ",");
            print_buffer(out, io, &infos[i]);
            is_first = false;
        }
    }
    buf_add_str(out, "]}");
    return api_check_printed(request, err);
}
