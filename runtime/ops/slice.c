/* SPDX-License-Identifier: MIT */
/*
 * Operators that take part of a tensor (slices, selections, splits), and the two that put a part
 * back. Taking a part is one strided copy; putting a part back is several copies to different
 * elements.
 *
 * Bounds may be symbolic and come from the request. Bounds of slices are clamped, as in PyTorch;
 * indices of selections are checked when the dims are known.
 */
#include "config.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/keep.h"
#include "runtime/ops/op.h"
#include "runtime/ops/view_priv.h"

/* The dims of argument 0, but |size| for dim |dim|. */
static void dims_with(const struct rt_value *self, uint8_t dim, struct rt_dim size,
                      struct rt_dim out[SHAPE_RANK_MAX])
{
    for (uint8_t d = 0; d < self->rank; d++) {
        out[d] = d == dim ? size : self->dims[d];
    }
}

static void dims_without(const struct rt_value *self, uint8_t dim,
                         struct rt_dim out[SHAPE_RANK_MAX])
{
    for (uint8_t d = 0; d + 1 < self->rank; d++) {
        out[d] = self->dims[d < dim ? d : d + 1];
    }
}

static enum status need_rank(struct rt_shape_call *call, uint8_t rank)
{
    if (rt_shape_arg(call, 0)->rank < rank) {
        return rt_shape_refuse(call, "rank %u, expected %u or more", rt_shape_arg(call, 0)->rank,
                               rank);
    }
    return ST_OK;
}

static struct rt_place place_of(int64_t known)
{
    return (struct rt_place){.known = known};
}

/* Every |step|th element of |dim| from |first| on: |part| with the strides of |whole|. */
static struct rt_copy copy_part(const struct rt_tensor *part, const struct rt_tensor *whole,
                                uint8_t dim, struct rt_place first, int64_t step)
{
    struct rt_copy copy = rt_copy_to(part);
    for (uint8_t d = 0; d < part->rank; d++) {
        copy.src[d] = whole->strides[d] * (d == dim ? step : 1);
    }
    rt_copy_move(&copy, first, 0, whole->strides[dim]);
    return copy;
}

/* Index |index| of dim |dim|, which |part| does not have. */
static struct rt_copy copy_selected(const struct rt_tensor *part, const struct rt_tensor *whole,
                                    uint8_t dim, struct rt_place index)
{
    struct rt_copy copy = rt_copy_to(part);
    for (uint8_t d = 0; d < part->rank; d++) {
        copy.src[d] = whole->strides[d < dim ? d : d + 1];
    }
    rt_copy_move(&copy, index, 0, whole->strides[dim]);
    return copy;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* An end of a slice, clamped to [0, size]. */
static struct rt_dim clamp_end(struct rt_dims *dims, struct rt_dim end, struct rt_dim size)
{
    end = rt_view_wrap(dims, end, size);
    return rt_dim_max(dims, rt_dim_of(0), rt_dim_min(dims, end, size));
}

/* Start, end and step of a slice, which are argument |first| and the next two. */
static enum status slice_length(struct rt_shape_call *call, uint32_t first, struct rt_dim size,
                                struct rt_dim *out_length)
{
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim start = rt_dim_of(0), end = size, zero = rt_dim_of(0);
    int64_t step;

    TRY(rt_shape_need_const(call, first + 2, &step));
    if (step < 1) {
        return rt_shape_refuse(call, "step %" PRId64 ", expected 1 or more", step);
    }
    if (!rt_shape_arg_is_none(call, first)) {
        start = clamp_end(dims, rt_shape_arg(call, first)->i, size);
    }
    if (!rt_shape_arg_is_none(call, first + 1) &&
        !rt_dim_is(rt_shape_arg(call, first + 1)->i, INT64_MAX)) {
        end = clamp_end(dims, rt_shape_arg(call, first + 1)->i, size);
    }
    *out_length =
        rt_dim_ceildiv(dims, rt_dim_max(dims, zero, rt_dim_sub(dims, end, start)), rt_dim_of(step));
    return ST_OK;
}

/* Each run reads the start; the output's dims give the end. */
static enum status slice_place_of(struct rt_shape_call *call, uint32_t first, uint32_t arg,
                                  uint32_t dim_arg, struct rt_dim *out_place)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    uint8_t dim = rt_dim_from_first(rt_shape_arg(call, dim_arg)->i.value, self->rank);

    *out_place = rt_dim_of(0);
    if (arg == first) {
        *out_place = clamp_end(&call->graph->dims, rt_shape_arg(call, arg)->i, self->dims[dim]);
    }
    return ST_OK;
}

static enum status slice_place(struct rt_shape_call *call, uint32_t arg, struct rt_dim *out_place)
{
    return slice_place_of(call, 2, arg, 1, out_place);
}

static enum status slice_scatter_place(struct rt_shape_call *call, uint32_t arg,
                                       struct rt_dim *out_place)
{
    return slice_place_of(call, 3, arg, 2, out_place);
}

/* The same at concrete dims: the start of the slice, in [0, size]. */
static struct rt_place slice_start(const struct rt_emit *emit, uint32_t index, int64_t size)
{
    if (rt_emit_value(emit, index)->kind == RT_NONE) {
        return place_of(0);
    }
    struct rt_place start = rt_emit_place(emit, index);
    start.known += start.known < 0 ? size : 0;
    start.known = rt_max(0, rt_min(start.known, size));
    return start;
}

/*
 * At most the dim's size: a larger step also takes one element, and its products do not overflow.
 */
static int64_t slice_step(const struct rt_emit *emit, uint32_t index, int64_t size)
{
    return rt_max(1, rt_min(rt_emit_int(emit, index), size));
}

static enum status slice_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX], length;
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(need_rank(call, 1));
    TRY(rt_view_need_dim(call, 1, &dim));
    TRY(slice_length(call, 2, self->dims[dim], &length));
    dims_with(self, dim, length, out);
    return rt_shape_set_out(call, 0, self->rank, out);
}

static enum status slice_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), self->rank);
    int64_t size = self->dims[dim];
    struct rt_copy copy =
        copy_part(out, self, dim, slice_start(emit, 2, size), slice_step(emit, 4, size));

    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status narrow_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX], length = rt_shape_arg(call, 3)->i;
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(need_rank(call, 1));
    TRY(rt_view_need_dim(call, 1, &dim));
    if (rt_dim_is_const(length) && length.value < 0) {
        return rt_shape_refuse(call, "length %" PRId64 ", expected 0 or more", length.value);
    }
    dims_with(self, dim, length, out);
    return rt_shape_set_out(call, 0, self->rank, out);
}

/* An index into a dim of |size|; |count| elements are taken from there on. */
static enum status wrapped_place(struct rt_shape_call *call, struct rt_dim index,
                                 struct rt_dim size, struct rt_dim count, struct rt_dim *out_place)
{
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim place = rt_view_wrap(dims, index, size);

    TRY(rt_shape_need_at_least(call, place, rt_dim_of(0), "first index"));
    TRY(rt_shape_need_at_least(call, size, rt_dim_add(dims, place, count),
                               "elements of the indexed dim"));
    *out_place = place;
    return ST_OK;
}

static enum status narrow_place(struct rt_shape_call *call, uint32_t arg, struct rt_dim *out_place)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    uint8_t dim = rt_dim_from_first(rt_shape_arg(call, 1)->i.value, self->rank);

    *out_place = rt_dim_of(0);
    return arg == 2 ? wrapped_place(call, rt_shape_arg(call, 2)->i, self->dims[dim],
                                    rt_shape_arg(call, 3)->i, out_place)
                    : ST_OK;
}

static enum status narrow_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), self->rank);
    int64_t size = self->dims[dim], length = out->dims[dim];
    struct rt_place start = rt_emit_place(emit, 2);

    start.known += start.known < 0 ? size : 0;
    if (start.known < 0 || start.known > size || length > size - start.known) {
        return error_set(err, ST_INVALID,
                         "narrow: %" PRId64 " elements from %" PRId64
                         " on do not fit a dim of %" PRId64,
                         length, start.known, size);
    }
    struct rt_copy copy = copy_part(out, self, dim, start, 1);
    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status select_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX], index = rt_shape_arg(call, 2)->i;
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(need_rank(call, 1));
    TRY(rt_view_need_dim(call, 1, &dim));
    int64_t size = self->dims[dim].value; /* or its bound */
    if (rt_dim_is_const(index) && (index.value >= size || index.value < -size)) {
        return rt_shape_refuse(call, "index %" PRId64 " does not exist in dim %u of size %" PRId64,
                               index.value, dim, size);
    }
    if (rt_dim_is_const(index)) {
        int64_t least = index.value < 0 ? -index.value : index.value + 1;
        TRY(rt_shape_need_at_least(call, self->dims[dim], rt_dim_of(least),
                                   "elements of the dim that an index selects from"));
    }
    dims_without(self, dim, out);
    return rt_shape_set_out(call, 0, self->rank - 1, out);
}

static enum status select_place(struct rt_shape_call *call, uint32_t arg, struct rt_dim *out_place)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    uint8_t dim = rt_dim_from_first(rt_shape_arg(call, arg - 1)->i.value, self->rank);

    return wrapped_place(call, rt_shape_arg(call, arg)->i, self->dims[dim], rt_dim_of(1),
                         out_place);
}

/* Argument |index| as a position in a dim of |size|. */
static enum status emit_index(const struct rt_emit *emit, uint32_t index, int64_t size,
                              struct rt_place *out_place, struct error *err)
{
    struct rt_place place = rt_emit_place(emit, index);
    if (!place.is_read && (place.known < -size || place.known >= size)) {
        return error_set(err, ST_INVALID,
                         "index %" PRId64 " does not exist in a dim of size %" PRId64, place.known,
                         size);
    }
    place.known += place.known < 0 ? size : 0;
    *out_place = place;
    return ST_OK;
}

static enum status select_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), self->rank);
    struct rt_place place = {0};

    TRY(emit_index(emit, 2, self->dims[dim], &place, err));
    struct rt_copy copy = copy_selected(out, self, dim, place);
    return rt_copy_emit(emit, out, self, &copy, err);
}

/* ---- splits ---------------------------------------------------------------------------------- */

static uint32_t out_count(const struct rt_shape_call *call)
{
    return rt_node_out(call->graph, call->node, 0)->count;
}

static enum status set_piece(struct rt_shape_call *call, uint32_t item, uint8_t dim,
                             struct rt_dim size)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];

    dims_with(self, dim, size, out);
    return rt_shape_set_out_item(call, 0, item, self->rank, out);
}

static enum status split_shape(struct rt_shape_call *call)
{
    struct rt_dims *dims = &call->graph->dims;
    uint32_t count = out_count(call);
    int64_t piece;
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(need_rank(call, 1));
    TRY(rt_shape_need_const(call, 1, &piece));
    TRY(rt_view_need_dim(call, 2, &dim));
    if (piece < 1 || count == 0) {
        return rt_shape_refuse(call, "cannot make %u pieces of %" PRId64 " elements", count, piece);
    }
    struct rt_dim size = rt_shape_arg(call, 0)->dims[dim];
    struct rt_dim pieces =
        rt_dim_ceildiv(dims, rt_dim_max(dims, size, rt_dim_of(1)), rt_dim_of(piece));
    TRY(rt_dim_require_equal(dims, pieces, rt_dim_of(count), "pieces of a split", call->err));
    struct rt_dim before = rt_dim_mul(dims, rt_dim_of(piece), rt_dim_of(count - 1));
    for (uint32_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count;
        TRY(set_piece(call, i, dim, is_last ? rt_dim_sub(dims, size, before) : rt_dim_of(piece)));
    }
    return ST_OK;
}

static enum status split_sizes_shape(struct rt_shape_call *call)
{
    struct rt_dims *dims = &call->graph->dims;
    const struct rt_value *sizes = rt_shape_arg(call, 1);
    struct rt_dim sum = rt_dim_of(0);
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(need_rank(call, 1));
    TRY(rt_view_need_dim(call, 2, &dim));
    if (sizes->count != out_count(call)) {
        return rt_shape_refuse(call, "%u sizes, but %u outputs", sizes->count, out_count(call));
    }
    for (uint32_t i = 0; i < sizes->count; i++) {
        if (rt_dim_is_const(sizes->ints[i]) && sizes->ints[i].value < 0) {
            return rt_shape_refuse(call, "size %" PRId64 " of piece %u, expected 0 or more",
                                   sizes->ints[i].value, i);
        }
        sum = rt_dim_add(dims, sum, sizes->ints[i]);
        TRY(set_piece(call, i, dim, sizes->ints[i]));
    }
    return rt_dim_require_equal(dims, sum, rt_shape_arg(call, 0)->dims[dim],
                                "elements in all pieces of a split", call->err);
}

/* The piece of |out| elements at |offset|; an unused piece has no memory. */
static enum status emit_piece(struct rt_emit *emit, const struct rt_tensor *out, uint8_t dim,
                              int64_t offset, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0);

    if (!out) {
        return ST_OK;
    }
    struct rt_copy copy = copy_part(out, self, dim, place_of(offset), 1);
    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status split_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 2), self->rank);
    int64_t piece = rt_emit_int(emit, 1), offset = 0;

    for (uint32_t i = 0; offset < self->dims[dim]; i++) {
        TRY(emit_piece(emit, rt_emit_out_item(emit, 0, i), dim, offset, err));
        if (piece > self->dims[dim] - offset) {
            break;
        }
        offset += piece;
    }
    return ST_OK;
}

static enum status split_sizes_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 2), self->rank);
    int64_t offset = 0;

    for (uint32_t i = 0; i < rt_emit_value(emit, 1)->count; i++) {
        TRY(emit_piece(emit, rt_emit_out_item(emit, 0, i), dim, offset, err));
        offset += rt_emit_ints(emit, 1, i);
    }
    return ST_OK;
}

static enum status unbind_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(need_rank(call, 1));
    TRY(rt_view_need_dim(call, 1, &dim));
    TRY(rt_dim_require_equal(&call->graph->dims, self->dims[dim], rt_dim_of(out_count(call)),
                             "elements of the dim (one for each output)", call->err));
    dims_without(self, dim, out);
    for (uint32_t i = 0; i < out_count(call); i++) {
        TRY(rt_shape_set_out_item(call, 0, i, self->rank - 1, out));
    }
    return ST_OK;
}

static enum status unbind_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), self->rank);

    for (uint32_t i = 0; i < self->dims[dim]; i++) {
        const struct rt_tensor *out = rt_emit_out_item(emit, 0, i);
        if (out) {
            struct rt_copy copy = copy_selected(out, self, dim, place_of(i));
            TRY(rt_copy_emit(emit, out, self, &copy, err));
        }
    }
    return ST_OK;
}

/* ---- parts put back -------------------------------------------------------------------------- */

static enum status slice_scatter_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *part = rt_shape_arg(call, 1);
    struct rt_dim length;
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_dtype(call, 1, 1u << self->dtype));
    TRY(need_rank(call, 1));
    TRY(rt_view_need_dim(call, 2, &dim));
    TRY(slice_length(call, 3, self->dims[dim], &length));
    if (part->rank != self->rank) {
        return rt_shape_refuse(call, "the part has rank %u, expected %u", part->rank, self->rank);
    }
    for (uint8_t d = 0; d < self->rank; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, part->dims[d],
                                 d == dim ? length : self->dims[d],
                                 "size of the part (must equal that of its place)", call->err));
    }
    return rt_shape_set_out_like(call, 0, 0);
}

static enum status select_scatter_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *part = rt_shape_arg(call, 1);
    struct rt_dim rest[SHAPE_RANK_MAX];
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_dtype(call, 1, 1u << self->dtype));
    TRY(need_rank(call, 1));
    TRY(rt_view_need_dim(call, 2, &dim));
    if (part->rank != self->rank - 1) {
        return rt_shape_refuse(call, "the part has rank %u, expected %u", part->rank,
                               self->rank - 1);
    }
    dims_without(self, dim, rest);
    for (uint8_t d = 0; d < part->rank; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, part->dims[d], rest[d],
                                 "size of the part (must equal that of its place)", call->err));
    }
    return rt_shape_set_out_like(call, 0, 0);
}

/* Copies the elements between first, first + step, ... (|count| of them) of |dim| of argument 0 to
 * the output, as a dim of step - 1 inside a dim of step. */
static enum status emit_between(struct rt_emit *emit, uint8_t dim, struct rt_place first,
                                int64_t step, int64_t count, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_copy copy = rt_copy_to(out);

    if (step == 1 || count < 2 || rt_keep_is_in_place(self, out)) {
        return ST_OK;
    }
    for (uint8_t d = 0; d < out->rank; d++) {
        copy.src[d] = self->strides[d];
    }
    copy.dims[dim] = count - 1;
    copy.dst[dim] *= step;
    copy.src[dim] *= step;
    copy.dst_offset = out->strides[dim];
    copy.src_offset = self->strides[dim];
    rt_copy_move(&copy, first, out->strides[dim], self->strides[dim]);
    if (!rt_copy_add_dim(&copy, step - 1, out->strides[dim], self->strides[dim])) {
        return error_set(err, ST_UNSUPPORTED, "slice_scatter: more than %d dims to walk",
                         SHAPE_RANK_MAX);
    }
    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status slice_scatter_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *part = rt_emit_arg(emit, 1), *out = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 2), out->rank);
    struct rt_place start = slice_start(emit, 3, out->dims[dim]);
    int64_t step = slice_step(emit, 5, out->dims[dim]), count = part->dims[dim];
    struct rt_copy copy = {.rank = out->rank};

    for (uint8_t d = 0; d < out->rank; d++) {
        copy.dims[d] = part->dims[d];
        copy.dst[d] = out->strides[d] * (d == dim ? step : 1);
        copy.src[d] = part->strides[d];
    }
    rt_copy_move(&copy, start, out->strides[dim], 0);
    TRY(rt_copy_emit(emit, out, part, &copy, err));
    TRY(emit_between(emit, dim, start, step, count, err));
    return rt_keep_emit(emit, dim, start, count ? (count - 1) * step + 1 : 0, err);
}

static enum status select_scatter_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *part = rt_emit_arg(emit, 1), *out = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 2), out->rank);
    struct rt_copy copy = {.rank = part->rank};
    struct rt_place place = {0};

    TRY(emit_index(emit, 3, out->dims[dim], &place, err));
    for (uint8_t d = 0; d < part->rank; d++) {
        copy.dims[d] = part->dims[d];
        copy.dst[d] = out->strides[d < dim ? d : d + 1];
        copy.src[d] = part->strides[d];
    }
    rt_copy_move(&copy, place, out->strides[dim], 0);
    TRY(rt_copy_emit(emit, out, part, &copy, err));
    return rt_keep_emit(emit, dim, place, 1, err);
}

/* clang-format off */
const struct rt_op rt_ops_slice[] = {
    {.name = "slice", .kernels = "aten::slice_copy.Tensor_out",
     .args = "TII?I?I>T", .shape = slice_shape, .emit = slice_emit,
     .flags = RT_OP_MOVES | RT_OP_CUTS | RT_OP_COMPLEX, .layout = RT_LAYOUT_ELEMENTWISE,
     .batch = rt_batch_part, .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel,
     .read = 1 << 2 | 1 << 3, .place = slice_place},
    {.name = "narrow", .kernels = "aten::narrow_copy.out",
     .args = "TIII>T", .shape = narrow_shape, .emit = narrow_emit,
     .flags = RT_OP_MOVES | RT_OP_CUTS | RT_OP_COMPLEX, .layout = RT_LAYOUT_ELEMENTWISE,
     .batch = rt_batch_part, .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel,
     .read = 1 << 2 | 1 << 3, .place = narrow_place},
    {.name = "select", .kernels = "aten::select_copy.int_out",
     .args = "TII>T", .shape = select_shape, .emit = select_emit,
     .flags = RT_OP_MOVES | RT_OP_CUTS | RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY,
     .batch = rt_batch_part, .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel,
     .read = 1 << 2, .place = select_place},
    {.name = "split", .kernels = "aten::split_copy.Tensor_out",
     .args = "TII>X", .shape = split_shape, .emit = split_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ELEMENTWISE, .batch = rt_batch_along,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "split_sizes", .kernels = "aten::split_with_sizes_copy.out",
     .args = "TLI>X", .shape = split_sizes_shape, .emit = split_sizes_emit,
     .flags = RT_OP_MOVES | RT_OP_COMPLEX, .layout = RT_LAYOUT_ELEMENTWISE, .batch = rt_batch_along,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "unbind", .kernels = "aten::unbind_copy.int_out",
     .args = "TI>X", .shape = unbind_shape, .emit = unbind_emit,
     .flags = RT_OP_COMPLEX, .layout = RT_LAYOUT_ANY, .batch = rt_batch_along,
     .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel},
    {.name = "slice_scatter", .kernels = "aten::slice_scatter.out",
     .args = "TTII?I?I>T", .shape = slice_scatter_shape, .emit = slice_scatter_emit,
     .flags = RT_OP_COMPLEX | RT_OP_IN_PLACE | RT_OP_ROWS,
     .batch = rt_batch_put_part, .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel,
     .read = 1 << 3 | 1 << 4, .place = slice_scatter_place},
    {.name = "select_scatter", .kernels = "aten::select_scatter.out",
     .args = "TTII>T", .shape = select_scatter_shape, .emit = select_scatter_emit,
     .flags = RT_OP_COMPLEX | RT_OP_IN_PLACE | RT_OP_ROWS,
     .batch = rt_batch_put_part, .dtypes = RT_DTYPES_ANY, .runs = &rt_copy_kernel,
     .read = 1 << 3, .place = select_place},
    {0},
};
/* clang-format on */
