/* SPDX-License-Identifier: MIT */
/*
 * Operators that give a tensor other dims: views, which share its bytes, and reorderings and
 * repetitions, each of which is one strided copy.
 *
 * Shape functions check ranks, dim numbers and sizes; sizes may be symbolic. If a size is only
 * known with a request, the shape program checks it before anything is emitted.
 */
#include "config.h"

#include <inttypes.h>

#include "runtime/emit/emit.h"
#include "runtime/kernels/copy.h"
#include "runtime/ops/op.h"
#include "runtime/ops/view_priv.h"

/* ---- the same bytes -------------------------------------------------------------------------- */

static enum status view_shape(struct rt_shape_call *call)
{
    struct rt_dims *dims = &call->graph->dims;
    const struct rt_value *self = rt_shape_arg(call, 0), *size = rt_shape_arg(call, 1);
    struct rt_dim out[SHAPE_RANK_MAX], product = rt_dim_of(1);
    uint32_t open = SHAPE_RANK_MAX;

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_rank(call, size->count));
    for (uint32_t i = 0; i < size->count; i++) {
        out[i] = size->ints[i];
        if (rt_dim_is(out[i], -1) && open == SHAPE_RANK_MAX) {
            open = i;
        } else if (rt_dim_is_const(out[i]) && out[i].value < 0) {
            return rt_shape_refuse(call,
                                   "size %" PRId64 " of dim %u, expected 0 or more, or a single -1",
                                   out[i].value, i);
        } else {
            product = rt_dim_mul(dims, product, out[i]);
        }
    }
    struct rt_dim numel = rt_value_numel(call->graph, self);
    if (open < size->count) {
        if (rt_dim_is(product, 0)) {
            return rt_shape_refuse(call, "a size of -1 together with one of 0");
        }
        out[open] = rt_dim_floordiv(dims, numel, product);
        product = rt_dim_mul(dims, product, out[open]);
    }
    TRY(rt_dim_require_equal(dims, product, numel, "elements of a view (must equal the tensor's)",
                             call->err));
    return rt_shape_set_out(call, 0, (uint8_t)size->count, out);
}

static enum status unsqueeze_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];
    int64_t number;
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_rank(call, self->rank + 1u));
    TRY(rt_shape_need_const(call, 1, &number));
    TRY(rt_shape_need_dim(call, number, self->rank + 1, &dim));
    for (uint8_t d = 0; d <= self->rank; d++) {
        out[d] = d == dim ? rt_dim_of(1) : self->dims[d > dim ? d - 1 : d];
    }
    return rt_shape_set_out(call, 0, self->rank + 1, out);
}

/*
 * Decides which of the dims in |mask| are removed: dims of 1. For a dim that is still unknown the
 * rank of the file's output decides; the likeliest are dims that cannot be more than 1.
 */
static enum status find_ones(struct rt_shape_call *call, uint32_t mask, uint32_t *out_ones)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    uint32_t ones = 0, rank = self->rank, file_rank = rt_node_out(call->graph, call->node, 0)->rank;

    for (uint8_t d = 0; d < self->rank; d++) {
        bool is_one = (mask >> d & 1) && rt_dim_is(self->dims[d], 1);
        ones |= (is_one ? 1u : 0u) << d;
        rank -= is_one;
    }
    for (uint32_t i = 0; i < 2; i++) {
        int64_t most = i == 0 ? 1 : INT64_MAX;
        for (uint8_t d = 0; d < self->rank && rank > file_rank; d++) {
            bool is_open = (mask & ~ones) >> d & 1 && !rt_dim_is_const(self->dims[d]);
            if (is_open && self->dims[d].value <= most) {
                TRY(rt_dim_require_equal(&call->graph->dims, self->dims[d], rt_dim_of(1),
                                         "size of a squeezed dim", call->err));
                ones |= 1u << d;
                rank--;
            }
        }
    }
    *out_ones = ones;
    return ST_OK;
}

static enum status squeeze(struct rt_shape_call *call, uint32_t mask)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];
    uint32_t ones = 0;
    uint8_t rank = 0;

    TRY(rt_view_same_dtype(call));
    TRY(find_ones(call, mask, &ones));
    for (uint8_t d = 0; d < self->rank; d++) {
        if (!(ones >> d & 1)) {
            out[rank++] = self->dims[d];
        }
    }
    return rt_shape_set_out(call, 0, rank, out);
}

static enum status squeeze_dim_shape(struct rt_shape_call *call)
{
    int64_t number;
    uint8_t dim;

    TRY(rt_shape_need_const(call, 1, &number));
    TRY(rt_shape_need_dim(call, number, rt_shape_arg(call, 0)->rank, &dim));
    return squeeze(call, 1u << dim);
}

static enum status squeeze_dims_shape(struct rt_shape_call *call)
{
    uint8_t order[SHAPE_RANK_MAX];
    uint32_t mask;

    TRY(rt_view_dims(call, 1, order, &mask));
    return squeeze(call, mask);
}

/* ---- other orders ---------------------------------------------------------------------------- */

static enum status permute_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];
    uint8_t order[SHAPE_RANK_MAX];
    uint32_t mask;

    TRY(rt_view_same_dtype(call));
    if (rt_shape_arg(call, 1)->count != self->rank) {
        return rt_shape_refuse(call, "%u dims, but the tensor has rank %u",
                               rt_shape_arg(call, 1)->count, self->rank);
    }
    TRY(rt_view_dims(call, 1, order, &mask));
    for (uint8_t d = 0; d < self->rank; d++) {
        out[d] = self->dims[order[d]];
    }
    return rt_shape_set_out(call, 0, self->rank, out);
}

/* Output dim d is dim order[d] of the input. */
static enum status emit_order(struct rt_emit *emit, const uint8_t *order, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_copy copy = rt_copy_to(out);

    for (uint8_t d = 0; d < out->rank; d++) {
        copy.src[d] = self->strides[order[d]];
    }
    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status permute_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0);
    uint8_t order[SHAPE_RANK_MAX];

    for (uint8_t d = 0; d < self->rank; d++) {
        order[d] = rt_dim_from_first(rt_emit_ints(emit, 1, d), self->rank);
    }
    return emit_order(emit, order, err);
}

static enum status swap_shape(struct rt_shape_call *call, uint8_t a, uint8_t b)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];

    TRY(rt_view_same_dtype(call));
    for (uint8_t d = 0; d < self->rank; d++) {
        out[d] = self->dims[d == a ? b : d == b ? a : d];
    }
    return rt_shape_set_out(call, 0, self->rank, out);
}

static enum status emit_swap(struct rt_emit *emit, uint8_t a, uint8_t b, struct error *err)
{
    uint8_t order[SHAPE_RANK_MAX];

    for (uint8_t d = 0; d < SHAPE_RANK_MAX; d++) {
        order[d] = d == a ? b : d == b ? a : d;
    }
    return emit_order(emit, order, err);
}

static enum status transpose_shape(struct rt_shape_call *call)
{
    uint8_t rank = rt_shape_arg(call, 0)->rank, a, b;
    int64_t first, second;

    TRY(rt_shape_need_const(call, 1, &first));
    TRY(rt_shape_need_const(call, 2, &second));
    TRY(rt_shape_need_dim(call, first, rank, &a));
    TRY(rt_shape_need_dim(call, second, rank, &b));
    return swap_shape(call, a, b);
}

static enum status transpose_emit(struct rt_emit *emit, struct error *err)
{
    uint8_t rank = rt_emit_arg(emit, 0)->rank;

    return emit_swap(emit, rt_dim_from_first(rt_emit_int(emit, 1), rank),
                     rt_dim_from_first(rt_emit_int(emit, 2), rank), err);
}

static enum status t_shape(struct rt_shape_call *call)
{
    uint8_t rank = rt_shape_arg(call, 0)->rank;

    if (rank > 2) {
        return rt_shape_refuse(call, "rank %u, expected at most 2", rank);
    }
    return swap_shape(call, 0, rank == 2);
}

static enum status t_emit(struct rt_emit *emit, struct error *err)
{
    return emit_swap(emit, 0, rt_emit_arg(emit, 0)->rank == 2, err);
}

static enum status reorder_shape(struct rt_shape_call *call)
{
    TRY(rt_view_same_dtype(call));
    return rt_shape_set_out_like(call, 0, 0);
}

/* The dims stay; each side has the memory order that its value says. */
static enum status reorder_emit(struct rt_emit *emit, struct error *err)
{
    return emit_swap(emit, 0, 0, err);
}

/* ---- repetitions ----------------------------------------------------------------------------- */

static enum status expand_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *size = rt_shape_arg(call, 1);
    struct rt_dim out[SHAPE_RANK_MAX];

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_rank(call, size->count));
    if (size->count < self->rank) {
        return rt_shape_refuse(call, "%u sizes, but the tensor has rank %u", size->count,
                               self->rank);
    }
    uint32_t leading = size->count - self->rank;
    for (uint32_t d = 0; d < size->count; d++) {
        bool is_kept = rt_dim_is(size->ints[d], -1) && d >= leading;
        out[d] = is_kept ? self->dims[d - leading] : size->ints[d];
        if (rt_dim_is_const(out[d]) && out[d].value < 0) {
            return rt_shape_refuse(call, "size %" PRId64 " of dim %u, expected 0 or more, or -1",
                                   out[d].value, d);
        }
        if (d >= leading) {
            TRY(rt_view_fits(call, self->dims[d - leading], out[d], "size of an expanded dim"));
        }
    }
    return rt_shape_set_out(call, 0, (uint8_t)size->count, out);
}

static enum status expand_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_copy copy = rt_copy_to(out);
    uint8_t leading = out->rank - self->rank;

    for (uint8_t d = 0; d < self->rank; d++) {
        copy.src[leading + d] = self->dims[d] == 1 ? 0 : self->strides[d];
    }
    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status repeat_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *repeats = rt_shape_arg(call, 1);
    struct rt_dim out[SHAPE_RANK_MAX];

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_rank(call, repeats->count));
    if (repeats->count < self->rank) {
        return rt_shape_refuse(call, "%u repeats, but the tensor has rank %u", repeats->count,
                               self->rank);
    }
    uint32_t leading = repeats->count - self->rank;
    for (uint32_t d = 0; d < repeats->count; d++) {
        out[d] = repeats->ints[d];
        if (rt_dim_is_const(out[d]) && out[d].value < 0) {
            return rt_shape_refuse(call, "%" PRId64 " repeats of dim %u, expected 0 or more",
                                   out[d].value, d);
        }
        if (d >= leading) {
            out[d] = rt_dim_mul(&call->graph->dims, out[d], self->dims[d - leading]);
        }
    }
    return rt_shape_set_out(call, 0, (uint8_t)repeats->count, out);
}

/* A repeated dim becomes two: the repetitions outside, the dim itself inside. */
static enum status repeat_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_copy copy = {0};
    uint8_t leading = out->rank - self->rank;
    bool fits = true;

    for (uint8_t d = 0; d < out->rank; d++) {
        int64_t times = rt_emit_ints(emit, 1, d), size = 1, stride = 0;
        if (d >= leading) {
            size = self->dims[d - leading];
            stride = self->strides[d - leading];
        }
        fits = fits && rt_copy_add_dim(&copy, times, out->strides[d] * size, 0) &&
               rt_copy_add_dim(&copy, size, out->strides[d], stride);
    }
    if (!fits) {
        return error_set(err, ST_UNSUPPORTED, "repeat: more than %d dims to walk", SHAPE_RANK_MAX);
    }
    return rt_copy_emit(emit, out, self, &copy, err);
}

/* ---- pixels and channels --------------------------------------------------------------------- */

/* The factor and the last three dims of the input: channels, height, width. */
static enum status need_pixels(struct rt_shape_call *call, int64_t *out_factor,
                               const struct rt_dim **out_chw)
{
    const struct rt_value *self = rt_shape_arg(call, 0);

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_const(call, 1, out_factor));
    if (self->rank < 3) {
        return rt_shape_refuse(call, "rank %u, expected 3 or more", self->rank);
    }
    /* Its square must not overflow. */
    if (*out_factor < 1 || *out_factor > INT32_MAX) {
        return rt_shape_refuse(call, "factor %" PRId64 ", expected at least 1", *out_factor);
    }
    *out_chw = self->dims + self->rank - 3;
    return ST_OK;
}

static enum status set_pixels(struct rt_shape_call *call, struct rt_dim channels,
                              struct rt_dim height, struct rt_dim width)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];

    for (uint8_t d = 0; d < self->rank - 3; d++) {
        out[d] = self->dims[d];
    }
    out[self->rank - 3] = channels;
    out[self->rank - 2] = height;
    out[self->rank - 1] = width;
    return rt_shape_set_out(call, 0, self->rank, out);
}

/* |dim| / |divisor|, which must be exact. */
static enum status divide(struct rt_shape_call *call, struct rt_dim dim, int64_t divisor,
                          struct rt_dim *out_dim)
{
    struct rt_dims *dims = &call->graph->dims;

    *out_dim = rt_dim_floordiv(dims, dim, rt_dim_of(divisor));
    return rt_dim_require_equal(dims, rt_dim_mod(dims, dim, rt_dim_of(divisor)), rt_dim_of(0),
                                "size of the dim modulo the pixel factor", call->err);
}

static enum status pixel_shuffle_shape(struct rt_shape_call *call)
{
    struct rt_dims *dims = &call->graph->dims;
    const struct rt_dim *chw;
    struct rt_dim channels;
    int64_t factor;

    TRY(need_pixels(call, &factor, &chw));
    TRY(divide(call, chw[0], factor * factor, &channels));
    return set_pixels(call, channels, rt_dim_mul(dims, chw[1], rt_dim_of(factor)),
                      rt_dim_mul(dims, chw[2], rt_dim_of(factor)));
}

static enum status pixel_unshuffle_shape(struct rt_shape_call *call)
{
    const struct rt_dim *chw;
    struct rt_dim height, width;
    int64_t factor;

    TRY(need_pixels(call, &factor, &chw));
    TRY(divide(call, chw[1], factor, &height));
    TRY(divide(call, chw[2], factor, &width));
    return set_pixels(call, rt_dim_mul(&call->graph->dims, chw[0], rt_dim_of(factor * factor)),
                      height, width);
}

/*
 * Both sides walk [.., C, r, r, H, W]: |many| is the side with C*r*r channels, |large| the side
 * with H*r times W*r pixels. The roles of |many| and |large| decide the dims of |dst| and |src| in
 * |copy|.
 */
static bool walk_pixels(const struct rt_tensor *many, const struct rt_tensor *large, int64_t factor,
                        struct rt_copy *copy)
{
    uint32_t c = many->rank - 3u, h = c + 1, w = c + 2;
    const int64_t *m = many->strides, *l = large->strides;
    bool fits = true;

    *copy = (struct rt_copy){0};
    for (uint32_t d = 0; d < c; d++) {
        fits = fits && rt_copy_add_dim(copy, many->dims[d], m[d], l[d]);
    }
    return fits && rt_copy_add_dim(copy, large->dims[c], m[c] * factor * factor, l[c]) &&
           rt_copy_add_dim(copy, factor, m[c] * factor, l[h]) &&
           rt_copy_add_dim(copy, factor, m[c], l[w]) &&
           rt_copy_add_dim(copy, many->dims[h], m[h], l[h] * factor) &&
           rt_copy_add_dim(copy, many->dims[w], m[w], l[w] * factor);
}

static enum status pixel_unshuffle_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_copy copy;

    if (!walk_pixels(out, self, rt_emit_int(emit, 1), &copy)) {
        return error_set(err, ST_UNSUPPORTED, "more than %d dims to walk", SHAPE_RANK_MAX);
    }
    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status pixel_shuffle_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_copy walk, copy;

    if (!walk_pixels(self, out, rt_emit_int(emit, 1), &walk)) {
        return error_set(err, ST_UNSUPPORTED, "more than %d dims to walk", SHAPE_RANK_MAX);
    }
    copy = walk;
    for (uint32_t d = 0; d < walk.rank; d++) {
        copy.dst[d] = walk.src[d];
        copy.src[d] = walk.dst[d];
    }
    return rt_copy_emit(emit, out, self, &copy, err);
}

/* clang-format off */
const struct rt_op rt_ops_view[] = {
    {.name = "view", .kernels = "aten::view_copy.out executorch_prim::et_view.default",
     .args = "TL>T", .shape = view_shape, .flags = RT_OP_VIEW | RT_OP_COMPLEX,
     .batch = rt_batch_sizes, .dtypes = RT_DTYPES_ANY},
    {.name = "unsqueeze", .kernels = "aten::unsqueeze_copy.out",
     .args = "TI>T", .shape = unsqueeze_shape, .flags = RT_OP_VIEW | RT_OP_COMPLEX,
     .batch = rt_batch_part, .dtypes = RT_DTYPES_ANY},
    {.name = "squeeze_dim", .kernels = "aten::squeeze_copy.dim_out",
     .args = "TI>T", .shape = squeeze_dim_shape, .flags = RT_OP_VIEW | RT_OP_COMPLEX,
     .batch = rt_batch_part, .dtypes = RT_DTYPES_ANY},
    {.name = "squeeze", .kernels = "aten::squeeze_copy.dims_out",
     .args = "TL>T", .shape = squeeze_dims_shape, .flags = RT_OP_VIEW | RT_OP_COMPLEX,
     .batch = rt_batch_part, .dtypes = RT_DTYPES_ANY},
    {.name = "permute", .kernels = "aten::permute_copy.out",
     .args = "TL>T", .shape = permute_shape, .emit = permute_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_permute,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    /* a permutation between memory orders that moves no byte; the layout pass makes it */
    {.name = "permuted", .args = "TL>T", .shape = permute_shape,
     .flags = RT_OP_VIEW | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_permute,
     .dtypes = RT_DTYPES_ANY},
    {.name = "transpose", .kernels = "aten::transpose_copy.int_out",
     .args = "TII>T", .shape = transpose_shape, .emit = transpose_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_transpose,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "t", .kernels = "aten::t_copy.out",
     .args = "T>T", .shape = t_shape, .emit = t_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY,
     .batch = rt_batch_t, .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "reorder", /* of the layout pass: copies to the memory order of its output */
     .args = "T>T", .shape = reorder_shape, .emit = reorder_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "expand", .kernels = "aten::expand_copy.out",
     .args = "TLB>T", .shape = expand_shape, .emit = expand_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_sizes,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "repeat", .kernels = "aten::repeat.out",
     .args = "TL>T", .shape = repeat_shape, .emit = repeat_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY,
     .batch = rt_batch_repeat, .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "pixel_shuffle", .kernels = "aten::pixel_shuffle.out",
     .args = "TI>T", .shape = pixel_shuffle_shape, .emit = pixel_shuffle_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "pixel_unshuffle", .kernels = "aten::pixel_unshuffle.out",
     .args = "TI>T", .shape = pixel_unshuffle_shape, .emit = pixel_unshuffle_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {0},
};
/* clang-format on */
