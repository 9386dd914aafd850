/* SPDX-License-Identifier: MIT */
/* Nodes in front of inputs and behind results, added to the graph as it was imported. */
#include "config.h"

#include "runtime/program/adapt.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/table.h"
#include "hal/buffer.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/rewrite.h"
#include "runtime/program/method.h"
#include "runtime/program/oracle.h"

#define PIXEL_RANK 4
#define NORM_LEAST 1e-12 /* as torch.nn.functional.normalize has it */

static const uint32_t pixel_types =
    1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16 | 1u << DT_F64 | 1u << DT_U8 | 1u << DT_I8;
static const uint32_t float_types = 1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16 | 1u << DT_F64;

static bool has_type(enum dtype dtype, uint32_t types)
{
    return dtype < 32 && types >> dtype & 1;
}

/* "float32[?,8]" into |text|. */
static const char *io_text(const struct rt_io *io, char text[SHAPE_TEXT_MAX])
{
    struct buf out;
    buf_init(&out, SHAPE_TEXT_MAX - 1);
    rt_io_print(io, &out);
    size_t len = out.len < SHAPE_TEXT_MAX ? out.len : SHAPE_TEXT_MAX - 1;
    memcpy(text, out.ptr ? (const char *)out.ptr : "", len);
    text[len] = '\0';
    buf_fini(&out);
    return text;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static enum status check_pixel_io(const struct rt_io *io, struct error *err)
{
    char text[SHAPE_TEXT_MAX];
    return io->kind == RT_IO_TENSOR && io->shape.rank == PIXEL_RANK &&
                   has_type(io->dtype, pixel_types)
               ? ST_OK
               : error_set(err, ST_UNSUPPORTED,
                           "expected an input of floats or 8-bit integers with four dims, such as "
                           "float32[1,3,224,224], got %s",
                           io_text(io, text));
}

static bool is_channel_count(int64_t count)
{
    return count == 1 || count == 3 || count == 4;
}

/* Does the graph take its bounds, but halves for the dims |first| to |last| of input |value|? */
static bool takes_halves(struct rt_graph *graph, uint32_t value, uint32_t first, uint32_t last)
{
    struct rt_dims *dims = &graph->dims;
    struct error ignored;
    int64_t *values = calloc((size_t)dims->expr_count + 1, sizeof(*values));
    for (uint32_t i = 1; values && i < dims->expr_count; i++) {
        const struct rt_expr *e = &dims->exprs[i];
        values[i] = e->kind == RT_EXPR_SYMBOL && e->hi <= UINT32_MAX ? e->hi : 1;
    }
    for (uint32_t dim = first; values && dim <= last; dim++) {
        struct rt_dim has = rt_dim_resolve(dims, graph->values[value].dims[dim]);
        values[has.expr] = has.expr ? (has.value + 1) / 2 : 0;
    }
    bool takes = values && rt_dims_eval(dims, values, &ignored) == ST_OK;
    free(values);
    return takes;
}

/* A file that has any dims which vary does not say which: the sizes that the program computes
 * decide. Alone, or both sides of the picture together. */
bool rt_adapt_varies(const struct rt_method *method, uint32_t index, uint32_t dim)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(index < method->input_count);
    const struct rt_io *io = &method->inputs[index];
    if (!rt_io_is_dynamic(io, dim) || io->shape.dims[dim] < 2 || method->code.block_count != 1) {
        return false;
    }
    struct rt_graph *graph = &method->code.blocks[0]->graph;
    uint32_t value = graph->inputs[index];
    bool is_free = !rt_dim_is_const(rt_dim_resolve(&graph->dims, graph->values[value].dims[dim]));
    uint32_t other = dim + 1 < io->shape.rank && io->shape.dims[dim + 1] > 4 ? dim + 1 : dim;
    return is_free &&
           (takes_halves(graph, value, dim, dim) || takes_halves(graph, value, dim, other) ||
            takes_halves(graph, value, dim - 1, dim));
}

/* Does anything but the first block read or write register |reg|, which belongs to an input? */
static bool is_used_later(const struct rt_code *code, uint32_t reg)
{
    bool is_used = false;
    for (uint32_t i = 0; i < code->stmt_count; i++) {
        is_used |= rt_stmt_uses(&code->stmts[i], reg);
    }
    for (uint32_t b = 0; code->stmt_count > 0 && b < code->block_count; b++) {
        const struct rt_block *block = code->blocks[b];
        for (uint32_t i = 0; b > 0 && i < block->graph.input_count; i++) {
            is_used |= block->ins[i] == reg;
        }
        for (uint32_t i = 0; i < block->out_count; i++) {
            const struct rt_block_out *out = &block->outs[i];
            is_used |= out->reg == reg || (b == 0 && out->is_input && out->index == reg);
        }
    }
    for (uint32_t i = 0; code->stmt_count > 0 && i < code->result_count; i++) {
        is_used |= code->results[i].reg == reg;
    }
    return is_used;
}

static enum status verify_read_once(const struct rt_method *method, uint32_t index,
                                    struct error *err)
{
    return is_used_later(&method->code, index)
               ? error_set(err, ST_UNSUPPORTED,
                           "the program reads this input again behind a branch")
               : ST_OK;
}

enum status rt_adapt_find_pixels(const struct rt_method *method, uint32_t index,
                                 struct rt_pixels *out, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(index < method->input_count);
    const struct rt_io *io = &method->inputs[index];
    const int64_t *dims = io->shape.dims;
    char text[SHAPE_TEXT_MAX];
    TRY(check_pixel_io(io, err));
    TRY(verify_read_once(method, index, err));
    bool is_nchw = is_channel_count(dims[1]), is_nhwc = !is_nchw && is_channel_count(dims[3]);
    if (!is_nchw && !is_nhwc) {
        return error_set(err, ST_UNSUPPORTED,
                         "expected 1, 3 or 4 channels in dim 1 or in dim 3, got %s",
                         io_text(io, text));
    }
    uint32_t at = is_nchw ? 2 : 1;
    if (dims[at] > UINT32_MAX || dims[at + 1] > UINT32_MAX) {
        return error_set(err, ST_UNSUPPORTED, "expected pictures, got %s", io_text(io, text));
    }
    bool is_float = has_type(io->dtype, float_types);
    *out = (struct rt_pixels){
        .has_any_height = rt_adapt_varies(method, index, at),
        .has_any_width = rt_adapt_varies(method, index, at + 1),
        .height = (uint32_t)dims[at],
        .width = (uint32_t)dims[at + 1],
        .channels = (uint32_t)dims[is_nchw ? 1 : 3],
        .scale = is_float ? 1.0 / 255 : 1,
        .std = {1, 1, 1, 1},
        .is_nhwc = is_nhwc,
    };
    return ST_OK;
}

/* Where the program has the dims of a picture. */
struct places {
    uint8_t channels, height, width;
};

static struct places places_of(const struct rt_pixels *pixels)
{
    return pixels->is_nhwc ? (struct places){3, 1, 2} : (struct places){1, 2, 3};
}

static bool has_numbers(const struct rt_pixels *pixels)
{
    bool has = isfinite(pixels->scale);
    for (uint32_t c = 0; c < pixels->channels; c++) {
        double step = pixels->scale / pixels->std[c], shift = pixels->mean[c] / pixels->std[c];
        has = has && pixels->std[c] != 0 && isfinite((float)step) && isfinite((float)shift);
    }
    return has;
}

/* One dim of the program's input is |wanted|. */
static enum status fix_dim(struct rt_graph *graph, uint32_t value, uint8_t dim, uint32_t wanted,
                           const char *what, struct error *err)
{
    struct rt_dim has = graph->values[value].dims[dim];
    bool is_const = rt_dim_is_const(has);
    if (is_const ? has.value != wanted : has.value < wanted) {
        return error_set(err, ST_INVALID, "%s: expected %s%" PRId64 ", got %u", what,
                         is_const ? "" : "at most ", has.value, wanted);
    }
    return rt_dim_require_equal(&graph->dims, has, rt_dim_of(wanted), what, err);
}

static enum status fix_dims(struct rt_graph *graph, uint32_t value, const struct rt_pixels *pixels,
                            struct error *err)
{
    struct places at = places_of(pixels);
    TRY(fix_dim(graph, value, at.channels, pixels->channels, "channels", err));
    TRY(pixels->has_any_height ? ST_OK
                               : fix_dim(graph, value, at.height, pixels->height, "height", err));
    return pixels->has_any_width ? ST_OK
                                 : fix_dim(graph, value, at.width, pixels->width, "width", err);
}

/* A number for each channel, as a constant on the method's device. */
static enum status make_factors(struct rt_method *method, struct rt_graph *graph,
                                const float *numbers, uint32_t count, uint32_t *out_value,
                                struct error *err)
{
    const struct shape shape = {.rank = 1, .dims = {count}};
    struct hal_buffer *buffer;
    TRY(hal_buffer_new(method->device, count * sizeof(*numbers), &buffer, err));
    memcpy(hal_buffer_map(buffer), numbers, count * sizeof(*numbers));
    *out_value = rt_graph_constant(graph, DT_F32, &shape, (struct span){0});
    if (*out_value == 0) {
        hal_buffer_unref(buffer);
        return rt_graph_check(graph, err);
    }
    rt_graph_set_constant(graph, *out_value, buffer);
    return ST_OK;
}

/* As floats, in the program's order of channels. */
static enum status add_arithmetic(struct rt_method *method, struct rt_graph *graph,
                                  const struct rt_pixels *pixels, uint32_t *value,
                                  struct error *err)
{
    float scale[RT_PIXEL_CHANNELS_MAX], shift[RT_PIXEL_CHANNELS_MAX];
    for (uint32_t c = 0; c < pixels->channels; c++) {
        scale[c] = (float)(pixels->scale / pixels->std[c]);
        shift[c] = (float)(-pixels->mean[c] / pixels->std[c]);
    }
    uint32_t args[4] = {*value};
    TRY(make_factors(method, graph, scale, pixels->channels, &args[1], err));
    TRY(make_factors(method, graph, shift, pixels->channels, &args[2], err));
    args[3] = rt_graph_bool(graph, pixels->is_reversed);
    return rt_op_apply(graph, RT_OP(pixels), args, 4, DT_F32, value, err);
}

static enum status add_reversal(struct rt_graph *graph, uint32_t *value, struct error *err)
{
    const struct rt_dim last = rt_dim_of(PIXEL_RANK - 1);
    uint32_t args[] = {*value, rt_graph_ints(graph, &last, 1)};
    return rt_op_apply(graph, RT_OP(flip), args, 2, DT_U8, value, err);
}

/* Floats as integers of the type: rounded to even, limited to its range. */
static enum status add_rounding(struct rt_graph *graph, enum dtype dtype, uint32_t *value,
                                struct error *err)
{
    bool is_signed = dtype == DT_I8;
    TRY(rt_op_apply(graph, RT_OP(round), value, 1, DT_F32, value, err));
    uint32_t args[] = {*value, rt_graph_float(graph, is_signed ? -128 : 0),
                       rt_graph_float(graph, is_signed ? 127 : 255)};
    TRY(rt_op_apply(graph, RT_OP(clamp), args, 3, DT_F32, value, err));
    return rt_op_convert(graph, *value, dtype, value, err);
}

static enum status add_transpose(struct rt_graph *graph, uint32_t *value, struct error *err)
{
    static const uint8_t order[PIXEL_RANK] = {0, 3, 1, 2};
    return rt_op_permute(graph, *value, order, PIXEL_RANK, value, err);
}

/* Bytes that the program takes as they are. */
static bool is_plain(const struct rt_pixels *pixels, enum dtype dtype)
{
    bool is = dtype == DT_U8 && pixels->scale == 1;
    for (uint32_t c = 0; c < pixels->channels; c++) {
        is = is && pixels->mean[c] == 0 && pixels->std[c] == 1;
    }
    return is;
}

/* Adds the nodes from the new input |value| to the program's own input. */
static enum status add_nodes(struct rt_method *method, struct rt_graph *graph,
                             const struct rt_pixels *pixels, enum dtype dtype, uint32_t *value,
                             struct error *err)
{
    if (!is_plain(pixels, dtype)) {
        TRY(add_arithmetic(method, graph, pixels, value, err));
        bool is_float = has_type(dtype, float_types);
        TRY(is_float ? rt_op_convert(graph, *value, dtype, value, err)
                     : add_rounding(graph, dtype, value, err));
    } else if (pixels->is_reversed) {
        TRY(add_reversal(graph, value, err));
    }
    return pixels->is_nhwc ? ST_OK : add_transpose(graph, value, err);
}

/* Readers of |from| read |to|, which is made from other values. */
static enum status redirect(struct rt_graph *graph, uint32_t from, uint32_t to, struct error *err)
{
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    rt_rewrite_replace(&rw, from, to);
    return rt_rewrite_end(&rw, err);
}

/* Describes the value |v|. */
static void describe(struct rt_io *io, const struct rt_value *v)
{
    io->kind = RT_IO_TENSOR;
    io->file_order = NULL;
    io->dtype = v->dtype;
    io->shape.rank = v->rank;
    io->dynamic_dims = 0;
    for (uint8_t d = 0; d < v->rank; d++) {
        io->shape.dims[d] = v->dims[d].value;
        io->dynamic_dims |= rt_dim_is_const(v->dims[d]) ? 0 : 1u << d;
    }
}

static void describe_register(struct rt_register *r, const struct rt_io *io)
{
    r->dtype = io->dtype;
    r->bound = io->shape;
    r->fixed_dims = ((1u << io->shape.rank) - 1) & ~io->dynamic_dims;
    r->bytes = (size_t)shape_numel(&io->shape) * dtype_bytes(io->dtype);
}

static enum status replace_input(struct rt_method *method, uint32_t index,
                                 const struct rt_pixels *pixels, struct error *err)
{
    struct rt_graph *graph = &method->code.blocks[0]->graph;
    uint32_t before = graph->inputs[index];
    enum dtype dtype = graph->values[before].dtype;
    TRY(fix_dims(graph, before, pixels, err));
    struct places at = places_of(pixels);
    const struct rt_dim *has = graph->values[before].dims;
    const struct rt_dim dims[] = {
        has[0], pixels->has_any_height ? has[at.height] : rt_dim_of(pixels->height),
        pixels->has_any_width ? has[at.width] : rt_dim_of(pixels->width),
        rt_dim_of(pixels->channels)};
    uint32_t given = rt_graph_tensor(graph, DT_U8, PIXEL_RANK, dims), made = given;
    TRY(rt_graph_check(graph, err));
    TRY(add_nodes(method, graph, pixels, dtype, &made, err));
    TRY(redirect(graph, before, made, err));
    graph->inputs[index] = given;
    describe(&method->inputs[index], &graph->values[given]);
    describe_register(&method->code.registers[index], &method->inputs[index]);
    return ST_OK;
}

enum status rt_adapt_pixels(struct rt_method *method, uint32_t index,
                            const struct rt_pixels *pixels, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(index < method->input_count && method->code.block_count > 0);
    TRY(check_pixel_io(&method->inputs[index], err));
    if (pixels->channels < 1 || pixels->channels > RT_PIXEL_CHANNELS_MAX || pixels->height < 1 ||
        pixels->width < 1) {
        return error_set(err, ST_INVALID, "expected 1 to %d channels and no empty pictures",
                         RT_PIXEL_CHANNELS_MAX);
    }
    if (!has_numbers(pixels)) {
        return error_set(err, ST_INVALID,
                         "expected numbers whose quotients float32 holds, and std other than 0");
    }
    TRY(verify_read_once(method, index, err));
    return replace_input(method, index, pixels, err);
}

/* ---- results --------------------------------------------------------------------------------- */

static const char *const step_names[] = {
    [RT_ADAPT_SOFTMAX] = "softmax",     [RT_ADAPT_SIGMOID] = "sigmoid",
    [RT_ADAPT_NORMALIZE] = "normalize", [RT_ADAPT_POOL] = "pool",
    [RT_ADAPT_ARG_MAX] = "arg_max",     [RT_ADAPT_THRESHOLD] = "threshold",
};
TABLE_ENDS_WITH(step_names, RT_ADAPT_THRESHOLD);

static enum status add_dim(const struct rt_value *v, const struct rt_adapt_step *step,
                           int64_t *out_dim, struct error *err)
{
    if (step->dim < -(int64_t)v->rank || step->dim >= v->rank) {
        return error_set(err, ST_INVALID, "the tensor has %u dims, got dim %" PRId64, v->rank,
                         step->dim);
    }
    *out_dim = rt_dim_from_first(step->dim, v->rank);
    return ST_OK;
}

static enum status add_softmax(struct rt_graph *graph, uint32_t *value, int64_t dim,
                               struct error *err)
{
    uint32_t args[] = {*value, rt_graph_int(graph, rt_dim_of(dim)), rt_graph_bool(graph, false)};
    return rt_op_apply(graph, RT_OP(softmax), args, 3, graph->values[*value].dtype, value, err);
}

static enum status add_fold(struct rt_graph *graph, const struct rt_op *op, uint32_t *value,
                            const struct rt_dim *dims, uint32_t count, bool keeps_dims,
                            struct error *err)
{
    uint32_t args[] = {*value, rt_graph_ints(graph, dims, count), rt_graph_bool(graph, keeps_dims),
                       rt_graph_none(graph)};
    return rt_op_apply(graph, op, args, 4, graph->values[*value].dtype, value, err);
}

/* x / max(sqrt(sum(x * x)), 1e-12); halves cannot hold that bound. */
static enum status add_norm(struct rt_graph *graph, uint32_t *value, int64_t dim, struct error *err)
{
    enum dtype dtype = graph->values[*value].dtype, wide = dtype == DT_F64 ? DT_F64 : DT_F32;
    const struct rt_dim along = rt_dim_of(dim);
    uint32_t x, norm;
    TRY(rt_op_convert(graph, *value, wide, &x, err));
    uint32_t both[] = {x, x};
    TRY(rt_op_apply(graph, RT_OP(mul), both, 2, wide, &norm, err));
    TRY(add_fold(graph, RT_OP(sum), &norm, &along, 1, true, err));
    TRY(rt_op_apply(graph, RT_OP(sqrt), &norm, 1, wide, &norm, err));
    uint32_t bounds[] = {norm, rt_graph_float(graph, NORM_LEAST), rt_graph_none(graph)};
    TRY(rt_op_apply(graph, RT_OP(clamp), bounds, 3, wide, &norm, err));
    both[1] = norm;
    TRY(rt_op_apply(graph, RT_OP(div), both, 2, wide, value, err));
    return rt_op_convert(graph, *value, dtype, value, err);
}

static enum status add_pool(struct rt_graph *graph, uint32_t *value, struct error *err)
{
    const struct rt_dim pixels[] = {rt_dim_of(2), rt_dim_of(3)}, tokens = rt_dim_of(1);
    uint8_t rank = graph->values[*value].rank;
    if (rank != 3 && rank != 4) {
        return error_set(err, ST_INVALID,
                         "expected [n, tokens, features] or [n, features, height, width], got %u "
                         "dims",
                         rank);
    }
    return rank == 3 ? add_fold(graph, RT_OP(mean), value, &tokens, 1, false, err)
                     : add_fold(graph, RT_OP(mean), value, pixels, 2, false, err);
}

static enum status add_arg_max(struct rt_graph *graph, uint32_t *value, int64_t dim,
                               struct error *err)
{
    uint32_t args[] = {*value, rt_graph_int(graph, rt_dim_of(dim)), rt_graph_bool(graph, false)};
    return rt_op_apply(graph, RT_OP(argmax), args, 3, DT_I64, value, err);
}

static enum status add_threshold(struct rt_graph *graph, uint32_t *value, double number,
                                 struct error *err)
{
    uint32_t args[] = {*value, rt_graph_float(graph, number)};
    return rt_op_apply(graph, RT_OP(ge_scalar), args, 2, DT_BOOL, value, err);
}

static enum status add_step(struct rt_graph *graph, const struct rt_adapt_step *step,
                            uint32_t *value, struct error *err)
{
    const struct rt_value *v = &graph->values[*value];
    bool needs_floats = step->kind != RT_ADAPT_ARG_MAX && step->kind != RT_ADAPT_THRESHOLD;
    bool has_dim = step->kind == RT_ADAPT_SOFTMAX || step->kind == RT_ADAPT_NORMALIZE ||
                   step->kind == RT_ADAPT_ARG_MAX;
    int64_t dim = 0;
    if (v->kind != RT_TENSOR || (needs_floats && !has_type(v->dtype, float_types))) {
        return error_set(err, ST_INVALID, "expected a tensor of %s, got %s",
                         needs_floats ? "floats" : "numbers",
                         v->kind == RT_TENSOR ? dtype_text(v->dtype) : "another value");
    }
    TRY(has_dim ? add_dim(v, step, &dim, err) : ST_OK);
    switch (step->kind) {
    case RT_ADAPT_SOFTMAX:
        return add_softmax(graph, value, dim, err);
    case RT_ADAPT_SIGMOID:
        return rt_op_apply(graph, RT_OP(sigmoid), value, 1, v->dtype, value, err);
    case RT_ADAPT_NORMALIZE:
        return add_norm(graph, value, dim, err);
    case RT_ADAPT_POOL:
        return add_pool(graph, value, err);
    case RT_ADAPT_ARG_MAX:
        return add_arg_max(graph, value, dim, err);
    case RT_ADAPT_THRESHOLD:
        return add_threshold(graph, value, step->number, err);
    }
    unreachable();
}

enum status rt_adapt_result(struct rt_method *method, uint32_t index,
                            const struct rt_adapt_step *step, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(index < method->result_count && method->code.block_count > 0);
    if (method->code.stmt_count > 0) {
        return error_set(err, ST_UNSUPPORTED,
                         "the program has branches, or sizes that depend on data: no single graph "
                         "makes this output");
    }
    struct rt_graph *graph = &method->code.blocks[0]->graph;
    uint32_t value = graph->outputs[index];
    if (add_step(graph, step, &value, err) != ST_OK) {
        return error_prefix(err, "%s: ", step_names[step->kind]);
    }
    graph->outputs[index] = value;
    describe(&method->results[index], &graph->values[value]);
    return ST_OK;
}
