/* SPDX-License-Identifier: MIT */
/* Operators with their own strides over a tensor: as_strided, diagonals, windows, flips; and
 * operators that join tensors: cat and stack. All are strided copies. */
#include "config.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/copy.h"
#include "runtime/ops/op.h"
#include "runtime/ops/pointwise.h"
#include "runtime/ops/view_priv.h"

/* ---- as_strided ------------------------------------------------------------------------------ */

static enum status as_strided_shape(struct rt_shape_call *call)
{
    const struct rt_value *size = rt_shape_arg(call, 1), *stride = rt_shape_arg(call, 2);

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_rank(call, size->count));
    if (stride->count != size->count) {
        return rt_shape_refuse(call, "%u sizes, but %u strides", size->count, stride->count);
    }
    for (uint32_t d = 0; d < size->count; d++) {
        if (rt_dim_is_const(size->ints[d]) && size->ints[d].value < 0) {
            return rt_shape_refuse(call, "size %" PRId64 " of dim %u, expected 0 or more",
                                   size->ints[d].value, d);
        }
    }
    return rt_shape_set_out(call, 0, (uint8_t)size->count, size->ints);
}

/* The file's strides and offset may reach anything: every element that they reach must be inside
 * the tensor. */
static enum status as_strided_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    bool has_offset = rt_emit_value(emit, 3)->kind != RT_NONE;
    struct rt_copy copy = rt_copy_to(out);
    int64_t low, high, reach;

    if (out->numel == 0) {
        return ST_OK;
    }
    copy.src_offset = low = high = has_offset ? rt_emit_int(emit, 3) : 0;
    for (uint8_t d = 0; d < out->rank; d++) {
        copy.src[d] = rt_emit_ints(emit, 2, d);
        if (!mul_i64(out->dims[d] - 1, copy.src[d], &reach) ||
            !add_i64(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
            return error_set(err, ST_INVALID,
                             "as_strided: stride %" PRId64 " along a dim of size %" PRId64
                             " is out of range",
                             copy.src[d], out->dims[d]);
        }
    }
    if (low < 0 || high >= self->numel) {
        return error_set(err, ST_INVALID,
                         "as_strided: elements %" PRId64 " to %" PRId64
                         " do not fit a tensor of %" PRId64,
                         low, high, self->numel);
    }
    return rt_copy_emit(emit, out, self, &copy, err);
}

/* ---- diagonals, windows, flips --------------------------------------------------------------- */

static enum status diagonal_shape(struct rt_shape_call *call)
{
    struct rt_dims *dims = &call->graph->dims;
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];
    uint8_t first, second, rank = 0;
    int64_t offset;

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_const(call, 1, &offset));
    TRY(rt_view_need_dim(call, 2, &first));
    TRY(rt_view_need_dim(call, 3, &second));
    if (first == second) {
        return rt_shape_refuse(call, "a diagonal needs two dims, got dim %u twice", first);
    }
    for (uint8_t d = 0; d < self->rank; d++) {
        if (d != first && d != second) {
            out[rank++] = self->dims[d];
        }
    }
    struct rt_dim below = rt_dim_add(dims, self->dims[first], rt_dim_of(offset < 0 ? offset : 0));
    struct rt_dim right = rt_dim_sub(dims, self->dims[second], rt_dim_of(offset > 0 ? offset : 0));
    out[rank++] = rt_dim_max(dims, rt_dim_of(0), rt_dim_min(dims, below, right));
    return rt_shape_set_out(call, 0, rank, out);
}

static enum status diagonal_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    uint8_t first = rt_dim_from_first(rt_emit_int(emit, 2), self->rank);
    uint8_t second = rt_dim_from_first(rt_emit_int(emit, 3), self->rank);
    struct rt_copy copy = rt_copy_to(out);
    int64_t offset = rt_emit_int(emit, 1);
    uint8_t rank = 0;

    if (out->numel == 0) {
        return ST_OK;
    }
    for (uint8_t d = 0; d < self->rank; d++) {
        if (d != first && d != second) {
            copy.src[rank++] = self->strides[d];
        }
    }
    copy.src[rank] = self->strides[first] + self->strides[second];
    copy.src_offset = offset < 0 ? -offset * self->strides[first] : offset * self->strides[second];
    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status unfold_shape(struct rt_shape_call *call)
{
    struct rt_dims *dims = &call->graph->dims;
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];
    int64_t size, step;
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_rank(call, self->rank + 1u));
    TRY(rt_view_need_dim(call, 1, &dim));
    TRY(rt_shape_need_const(call, 2, &size));
    TRY(rt_shape_need_const(call, 3, &step));
    struct rt_dim whole = self->rank ? self->dims[dim] : rt_dim_of(1);
    if (size < 0 || size > whole.value || step < 1) {
        return rt_shape_refuse(
            call, "windows of %" PRId64 " in steps of %" PRId64 " do not fit the dim", size, step);
    }
    for (uint8_t d = 0; d < self->rank; d++) {
        out[d] = self->dims[d];
    }
    if (self->rank > 0) {
        struct rt_dim last = rt_dim_sub(dims, whole, rt_dim_of(size));
        out[dim] = rt_dim_add(dims, rt_dim_floordiv(dims, last, rt_dim_of(step)), rt_dim_of(1));
    }
    out[self->rank] = rt_dim_of(size);
    return rt_shape_set_out(call, 0, self->rank + 1, out);
}

static enum status unfold_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), self->rank);
    int64_t step = rt_emit_int(emit, 3);
    struct rt_copy copy = rt_copy_to(out);

    for (uint8_t d = 0; d < self->rank; d++) {
        copy.src[d] = self->strides[d] * (d == dim && out->dims[d] > 1 ? step : 1);
    }
    copy.src[self->rank] = self->rank ? self->strides[dim] : 1;
    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status flip_shape(struct rt_shape_call *call)
{
    uint8_t flipped[SHAPE_RANK_MAX];
    uint32_t mask;

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_dims(call, 1, flipped, &mask));
    return rt_shape_set_out_like(call, 0, 0);
}

static enum status flip_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_copy copy = rt_copy_to(out);

    for (uint8_t d = 0; d < self->rank; d++) {
        copy.src[d] = self->strides[d];
    }
    for (uint32_t i = 0; self->rank > 0 && i < rt_emit_value(emit, 1)->count; i++) {
        uint8_t d = rt_dim_from_first(rt_emit_ints(emit, 1, i), self->rank);
        copy.src[d] = -self->strides[d];
        copy.src_offset += (self->dims[d] - 1) * self->strides[d];
    }
    return rt_copy_emit(emit, out, self, &copy, err);
}

/* ---- side by side ---------------------------------------------------------------------------- */

static const struct rt_value *list_item(const struct rt_shape_call *call, uint32_t item)
{
    return rt_graph_value(call->graph, rt_shape_arg(call, 0)->values[item]);
}

/* PyTorch accepts an empty tensor of one dim beside tensors of any rank. */
static bool is_nothing(const struct rt_value *value)
{
    return value->rank == 1 && rt_dim_is(value->dims[0], 0);
}

/* Parts are converted to their common type. */
static enum status list_dtype(struct rt_shape_call *call)
{
    enum dtype dtype = rt_shape_out_dtype(call, 0);

    for (uint32_t i = 0; i < rt_shape_arg(call, 0)->count; i++) {
        if (rt_convert_promote(list_item(call, i)->dtype, dtype) != dtype) {
            return rt_shape_refuse(call, "tensor %u is %s, but the output is %s", i,
                                   dtype_text(list_item(call, i)->dtype), dtype_text(dtype));
        }
    }
    return ST_OK;
}

/* The first tensor that determines the others' dims; NULL without one. */
static const struct rt_value *list_model(const struct rt_shape_call *call)
{
    for (uint32_t i = 0; i < rt_shape_arg(call, 0)->count; i++) {
        if (!is_nothing(list_item(call, i))) {
            return list_item(call, i);
        }
    }
    return NULL;
}

/* All dims except |dim| must equal the first tensor's; with 255 all dims. */
static enum status list_agrees(struct rt_shape_call *call, const struct rt_value *model,
                               const struct rt_value *value, uint8_t dim)
{
    if (value->rank != model->rank) {
        return rt_shape_refuse(call, "tensors have ranks %u and %u, expected the same", model->rank,
                               value->rank);
    }
    for (uint8_t d = 0; d < model->rank; d++) {
        if (d != dim) {
            TRY(rt_dim_require_equal(&call->graph->dims, model->dims[d], value->dims[d],
                                     "size of the tensors to join (must be equal)", call->err));
        }
    }
    return ST_OK;
}

static enum status cat_shape(struct rt_shape_call *call)
{
    struct rt_dim out[SHAPE_RANK_MAX], sum = rt_dim_of(0);
    const struct rt_value *model = list_model(call);
    int64_t number;
    uint8_t dim;

    if (rt_shape_arg(call, 0)->count == 0) {
        return rt_shape_refuse(call, "the list of tensors is empty");
    }
    TRY(list_dtype(call));
    if (!model) {
        return rt_shape_set_out(call, 0, 1, &sum);
    }
    TRY(rt_shape_need_const(call, 1, &number));
    TRY(rt_shape_need_dim(call, number, model->rank, &dim));
    if (model->rank == 0) {
        return rt_shape_refuse(call, "tensors have rank 0, expected 1 or more");
    }
    for (uint32_t i = 0; i < rt_shape_arg(call, 0)->count; i++) {
        const struct rt_value *value = list_item(call, i);
        if (!is_nothing(value)) {
            TRY(list_agrees(call, model, value, dim));
            sum = rt_dim_add(&call->graph->dims, sum, value->dims[dim]);
        }
    }
    for (uint8_t d = 0; d < model->rank; d++) {
        out[d] = d == dim ? sum : model->dims[d];
    }
    return rt_shape_set_out(call, 0, model->rank, out);
}

static enum status cat_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), out->rank);
    int64_t offset = 0;

    for (uint32_t i = 0; i < rt_emit_value(emit, 0)->count; i++) {
        const struct rt_tensor *part = rt_emit_arg_item(emit, 0, i);
        if (part->numel == 0) {
            /* An empty part, whose rank may differ. */
            continue;
        }
        struct rt_copy copy = {.rank = out->rank, .dst_offset = offset * out->strides[dim]};
        for (uint8_t d = 0; d < out->rank; d++) {
            copy.dims[d] = part->dims[d];
            copy.dst[d] = out->strides[d];
            copy.src[d] = part->strides[d];
        }
        TRY(rt_pointwise_convert(emit, out, part, &copy, err));
        offset += part->dims[dim];
    }
    return ST_OK;
}

static enum status stack_shape(struct rt_shape_call *call)
{
    struct rt_dim out[SHAPE_RANK_MAX];
    uint32_t count = rt_shape_arg(call, 0)->count;
    int64_t number;
    uint8_t dim;

    if (count == 0) {
        return rt_shape_refuse(call, "the list of tensors is empty");
    }
    const struct rt_value *model = list_item(call, 0);
    TRY(list_dtype(call));
    TRY(rt_view_rank(call, model->rank + 1u));
    TRY(rt_shape_need_const(call, 1, &number));
    TRY(rt_shape_need_dim(call, number, model->rank + 1, &dim));
    for (uint32_t i = 1; i < count; i++) {
        TRY(list_agrees(call, model, list_item(call, i), UINT8_MAX));
    }
    for (uint8_t d = 0; d <= model->rank; d++) {
        out[d] = d == dim ? rt_dim_of(count) : model->dims[d > dim ? d - 1 : d];
    }
    return rt_shape_set_out(call, 0, model->rank + 1, out);
}

static enum status stack_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), out->rank);

    for (uint32_t i = 0; i < rt_emit_value(emit, 0)->count; i++) {
        const struct rt_tensor *part = rt_emit_arg_item(emit, 0, i);
        struct rt_copy copy = {.rank = part->rank, .dst_offset = i * out->strides[dim]};
        for (uint8_t d = 0; d < part->rank; d++) {
            copy.dims[d] = part->dims[d];
            copy.dst[d] = out->strides[d < dim ? d : d + 1];
            copy.src[d] = part->strides[d];
        }
        TRY(rt_pointwise_convert(emit, out, part, &copy, err));
    }
    return ST_OK;
}

/* clang-format off */
const struct rt_op rt_ops_stride[] = {
    {.name = "as_strided", .kernels = "aten::as_strided_copy.out",
     .args = "TLLI?>T", .shape = as_strided_shape, .emit = as_strided_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ROW_MAJOR,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    /* the same, made by the pass moves: what it reads is inside the tensor, and inside one row of
     * it, which nothing shows of the strides in a file */
    {.name = "moved", .args = "TLLI>T", .shape = as_strided_shape, .emit = as_strided_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ROW_MAJOR, .batch = rt_batch_moved,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "diagonal", .kernels = "aten::diagonal_copy.out",
     .args = "TIII>T", .shape = diagonal_shape, .emit = diagonal_emit,
     .flags = RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY,
     .batch = rt_batch_diagonal, .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "unfold", .kernels = "aten::unfold_copy.out",
     .args = "TIII>T", .shape = unfold_shape, .emit = unfold_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_along,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "flip", .kernels = "aten::flip.out",
     .args = "TL>T", .shape = flip_shape, .emit = flip_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ELEMENTWISE, .batch = rt_batch_along,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "cat", .kernels = "aten::cat.out",
     .args = "XI>T", .shape = cat_shape, .emit = cat_emit,
     .flags = RT_OP_MOVES | RT_OP_JOINS | RT_OP_COMPLEX, .layout = RT_LAYOUT_ELEMENTWISE,
     .batch = rt_batch_list, .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "stack", .kernels = "aten::stack.out",
     .args = "XI>T", .shape = stack_shape, .emit = stack_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_list,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {0},
};
/* clang-format on */
