/* SPDX-License-Identifier: MIT */
/*
 * Padding and rolling. Along each dim the output is the input moved by |before| elements; outside
 * the input it is a constant, a reflection, the nearest element, or the elements of the other end.
 * One kernel computes them all, row by row along the innermost dim: the part inside is a strided
 * run, the two parts outside go element by element. Also tril, which replaces elements above a
 * diagonal by zeros.
 *
 * A negative pad crops. A reflection is shorter than its dim, so that it falls inside; this is
 * checked when the dims are known.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/element.h"
#include "runtime/ops/op.h"
#include "runtime/ops/pad.h"
#include "runtime/ops/shaders/generated/spirv.h"
#include "runtime/ops/view_priv.h"

/* ---- kernel ---------------------------------------------------------------------------------- */

/* The input's position for position |at| of the output; -1: the constant. */
static int64_t place_of(enum rt_outside outside, const struct rt_pad_dim *dim, int64_t at)
{
    int64_t place = at - dim->before;
    if (place >= 0 && place < dim->in) {
        return place;
    }
    switch (outside) {
    case RT_OUTSIDE_REFLECT:
        return place < 0 ? -place : 2 * (dim->in - 1) - place;
    case RT_OUTSIDE_NEAREST:
        return place < 0 ? 0 : dim->in - 1;
    case RT_OUTSIDE_WRAP:
        return place < 0 ? place + dim->in : place - dim->in;
    default:
        return -1;
    }
}

/* Positions [begin, end) of a row, all of them outside the input. */
static void pad_outside(const struct rt_pad_constants *c, char *dst, const char *src, int64_t begin,
                        int64_t end)
{
    const struct rt_pad_dim *dim = &c->dims[c->rank - 1];

    if (begin >= end) {
        return;
    }
    if (c->outside == RT_OUTSIDE_VALUE || c->outside == RT_OUTSIDE_NEAREST) {
        bool is_value = c->outside == RT_OUTSIDE_VALUE;
        const char *from = is_value ? (const char *)c->value.bytes
                                    : src + place_of(c->outside, dim, begin) * dim->src;
        rt_copy_run(dst + begin * dim->dst, dim->dst, from, 0, end - begin, c->width);
        return;
    }
    int64_t step = c->outside == RT_OUTSIDE_REFLECT ? -dim->src : dim->src;
    rt_copy_run(dst + begin * dim->dst, dim->dst, src + place_of(c->outside, dim, begin) * dim->src,
                step, end - begin, c->width);
}

/* Positions [begin, end) of a row; with |src| NULL the whole row is outside. */
static void pad_row(const struct rt_pad_constants *c, char *dst, const char *src, int64_t begin,
                    int64_t end)
{
    const struct rt_pad_dim *dim = &c->dims[c->rank - 1];

    if (!src) {
        rt_copy_run(dst + begin * dim->dst, dim->dst, (const char *)c->value.bytes, 0, end - begin,
                    c->width);
        return;
    }
    int64_t inside = rt_min(end, rt_max(begin, dim->before));
    int64_t behind = rt_min(end, rt_max(inside, dim->before + dim->in));
    pad_outside(c, dst, src, begin, inside);
    rt_copy_run(dst + inside * dim->dst, dim->dst, src + (inside - dim->before) * dim->src,
                dim->src, behind - inside, c->width);
    pad_outside(c, dst, src, behind, end);
}

static void pad_rows(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_pad_constants *c = args->constants;
    const struct rt_pad_dim *row = &c->dims[c->rank - 1];
    int64_t begin = tile.x * c->row_tile, end = rt_min(begin + c->row_tile, row->out);
    int64_t first = tile.y * c->tile, behind = rt_min(first + c->tile, c->rows);

    for (int64_t r = first; r < behind; r++) {
        char *dst = args->bindings[0];
        const char *src = args->bindings[1];
        int64_t rest = r;
        for (uint32_t d = c->rank - 1; d-- > 0;) {
            int64_t at = rest % c->dims[d].out;
            int64_t place = place_of(c->outside, &c->dims[d], at);
            rest /= c->dims[d].out;
            dst += at * c->dims[d].dst;
            src = src && place >= 0 ? src + place * c->dims[d].src : NULL;
        }
        pad_row(c, dst, src, begin, end);
    }
}

static const struct hal_kernel kernel_pad = {
    .name = "pad", .cpu = pad_rows, .spirv = HAL_SPIRV(pad_spirv)};

/* ---- recording ------------------------------------------------------------------------------- */

/* Outermost first, in the order of the output's memory. */
static void sort_dims(struct rt_pad_constants *c)
{
    for (uint32_t d = 1; d < c->rank; d++) {
        for (uint32_t e = d; e > 0 && c->dims[e - 1].dst < c->dims[e].dst; e--) {
            struct rt_pad_dim dim = c->dims[e];
            c->dims[e] = c->dims[e - 1];
            c->dims[e - 1] = dim;
        }
    }
}

static bool is_kept(const struct rt_pad_dim *dim)
{
    return dim->before == 0 && dim->out == dim->in;
}

/*
 * Merges adjacent dims if both sides walk them as one and the inner dim is unchanged. The outer dim
 * may be moved if the outside does not depend on the distance: the move is then by whole inner
 * dims.
 */
static void merge_dims(struct rt_pad_constants *c)
{
    bool may_move = c->outside == RT_OUTSIDE_VALUE || c->outside == RT_OUTSIDE_WRAP;
    uint32_t last = 0;

    for (uint32_t d = 1; d < c->rank; d++) {
        struct rt_pad_dim *outer = &c->dims[last], *inner = &c->dims[d];
        if (is_kept(inner) && (may_move || is_kept(outer)) &&
            outer->dst == inner->dst * inner->out && outer->src == inner->src * inner->in) {
            outer->out *= inner->out;
            outer->before *= inner->in;
            outer->in *= inner->in;
            outer->dst = inner->dst;
            outer->src = inner->src;
        } else {
            c->dims[++last] = *inner;
        }
    }
    c->rank = last + 1;
}

/* Derives the other constants from the tensors; |before| and |outside| are set. */
static enum status emit_pad(struct rt_emit *emit, struct rt_pad_constants *c, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);

    if (out->numel == 0) {
        return ST_OK;
    }
    c->width = (uint32_t)dtype_bytes(out->dtype);
    c->rank = out->rank;
    for (uint32_t d = 0; d < c->rank; d++) {
        struct rt_pad_dim *dim = &c->dims[d];
        dim->out = out->dims[d];
        dim->in = self->dims[d];
        dim->dst = out->strides[d] * c->width;
        dim->src = self->strides[d] * c->width;
    }
    if (c->rank == 0) {
        c->rank = 1;
        c->dims[0] = (struct rt_pad_dim){1, 1, 0, c->width, c->width};
    }
    sort_dims(c);
    merge_dims(c);
    int64_t row = c->dims[c->rank - 1].out;
    int64_t elements = rt_cut_units(rt_emit_machine(emit, &kernel_pad), RT_WORK_COPY,
                                    (int64_t)out->bytes, c->width) /
                       c->width;
    c->row_tile = rt_min(row, elements);
    c->tile = elements / c->row_tile;
    c->rows = out->numel / row;
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = &kernel_pad,
                                .grid = {(uint32_t)((row - 1) / c->row_tile + 1),
                                         (uint32_t)((c->rows - 1) / c->tile + 1), 1},
                                .constants = c,
                                .constants_bytes = sizeof(*c),
                                .bindings = (struct hal_binding[]){out->binding, self->binding},
                                .binding_count = 2,
                                .cost = out->bytes / 5,
                            },
                            err);
}

/* ---- pads ------------------------------------------------------------------------------------ */

/* Pairs (before, after), from the last dim backwards. */
static enum status pad_shape(struct rt_shape_call *call)
{
    struct rt_dims *dims = &call->graph->dims;
    const struct rt_value *self = rt_shape_arg(call, 0), *pads = rt_shape_arg(call, 1);
    struct rt_dim out[SHAPE_RANK_MAX];

    TRY(rt_view_same_dtype(call));
    if (pads->count % 2 || pads->count / 2 > self->rank) {
        return rt_shape_refuse(call, "%u pads do not fit a tensor of rank %u", pads->count,
                               self->rank);
    }
    for (uint8_t d = 0; d < self->rank; d++) {
        uint32_t pair = 2u * (self->rank - 1u - d);
        out[d] = self->dims[d];
        if (pair < pads->count) {
            out[d] = rt_dim_add(dims, out[d], pads->ints[pair]);
            out[d] = rt_dim_add(dims, out[d], pads->ints[pair + 1]);
        }
        if (out[d].value < 0) {
            return rt_shape_refuse(call, "dim %u is cropped below 0 elements", d);
        }
    }
    return rt_shape_set_out(call, 0, self->rank, out);
}

static void read_pads(const struct rt_emit *emit, uint8_t rank, struct rt_pad_constants *c)
{
    for (uint32_t pair = 0; 2 * pair < rt_emit_value(emit, 1)->count; pair++) {
        c->dims[rank - 1 - pair].before = rt_emit_ints(emit, 1, 2 * pair);
    }
}

static enum status constant_pad_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_pad_constants c = {.outside = RT_OUTSIDE_VALUE,
                                 .value = rt_element_of(emit, 2, out->dtype)};

    read_pads(emit, out->rank, &c);
    for (uint8_t d = 0; d < out->rank; d++) {
        /*
         * The input is cropped away or pushed out of the output: the distance makes no difference.
         */
        c.dims[d].before = rt_max(-self->dims[d], rt_min(out->dims[d], c.dims[d].before));
    }
    return emit_pad(emit, &c, err);
}

/* The last |count| dims of a tensor, which may have a batch dim. */
static enum status edge_shape(struct rt_shape_call *call, uint32_t count)
{
    const struct rt_value *self = rt_shape_arg(call, 0);

    if (rt_shape_arg(call, 1)->count != 2 * count ||
        (self->rank != count + 1 && self->rank != count + 2)) {
        return rt_shape_refuse(call, "%u pads do not fit a tensor of rank %u",
                               rt_shape_arg(call, 1)->count, self->rank);
    }
    return pad_shape(call);
}

static enum status edge_1d_shape(struct rt_shape_call *call)
{
    return edge_shape(call, 1);
}

static enum status edge_2d_shape(struct rt_shape_call *call)
{
    return edge_shape(call, 2);
}

static enum status edge_3d_shape(struct rt_shape_call *call)
{
    return edge_shape(call, 3);
}

static enum status emit_edge(struct rt_emit *emit, enum rt_outside outside, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_pad_constants c = {.outside = outside};

    read_pads(emit, out->rank, &c);
    for (uint8_t d = 0; out->numel > 0 && d < out->rank; d++) {
        int64_t in = self->dims[d], grown = out->dims[d] - in, before = c.dims[d].before;
        /* Any distance has a nearest element, if the dim has elements at all. */
        int64_t most = outside == RT_OUTSIDE_REFLECT ? in - 1 : in ? out->dims[d] + in : 0;
        if (before < -in || before > most || grown - before < -in || grown - before > most) {
            return error_set(err, ST_INVALID,
                             "cannot pad %" PRId64 " elements to %" PRId64 " with %" PRId64
                             " before",
                             in, out->dims[d], before);
        }
    }
    return emit_pad(emit, &c, err);
}

static enum status reflect_emit(struct rt_emit *emit, struct error *err)
{
    return emit_edge(emit, RT_OUTSIDE_REFLECT, err);
}

static enum status replicate_emit(struct rt_emit *emit, struct error *err)
{
    return emit_edge(emit, RT_OUTSIDE_NEAREST, err);
}

/* ---- roll ------------------------------------------------------------------------------------ */

static enum status roll_shape(struct rt_shape_call *call)
{
    uint32_t shifts = rt_shape_arg(call, 1)->count, count = rt_shape_arg(call, 2)->count;
    uint8_t rolled[SHAPE_RANK_MAX];
    uint32_t mask;

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_dims(call, 2, rolled, &mask));
    if (shifts != (count ? count : 1)) {
        return rt_shape_refuse(call, "%u shifts for %u dims", shifts, count);
    }
    return rt_shape_set_out_like(call, 0, 0);
}

static int64_t shift_of(const struct rt_emit *emit, uint32_t item, int64_t size)
{
    int64_t shift = size ? rt_emit_ints(emit, 1, item) % size : 0;
    return shift < 0 ? shift + size : shift;
}

/* Without dims the elements are rolled as if the tensor, which is row-major, had one dim. */
static enum status emit_roll_all(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    int64_t shift = shift_of(emit, 0, out->numel);
    struct rt_copy copy = {.rank = 1, .dims = {shift}, .dst = {1}, .src = {1}};

    copy.src_offset = out->numel - shift;
    TRY(rt_copy_emit(emit, out, self, &copy, err));
    copy.dims[0] = out->numel - shift;
    copy.dst_offset = shift;
    copy.src_offset = 0;
    return rt_copy_emit(emit, out, self, &copy, err);
}

static enum status roll_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    struct rt_pad_constants c = {.outside = RT_OUTSIDE_WRAP};

    if (rt_emit_value(emit, 2)->count == 0) {
        return emit_roll_all(emit, err);
    }
    for (uint32_t i = 0; out->rank > 0 && i < rt_emit_value(emit, 2)->count; i++) {
        uint8_t dim = rt_dim_from_first(rt_emit_ints(emit, 2, i), out->rank);
        c.dims[dim].before = shift_of(emit, i, out->dims[dim]);
    }
    return emit_pad(emit, &c, err);
}

/* ---- tril ------------------------------------------------------------------------------------ */

static void tril_rows(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_tril *c = args->constants;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->rows);

    for (int64_t r = first; r < behind; r++) {
        int64_t kept = rt_max(0, rt_min(c->width, r % c->height + 1 + c->diagonal));
        size_t row = (size_t)(c->width * c->bytes), head = (size_t)(kept * c->bytes);
        char *dst = (char *)args->bindings[0] + (size_t)r * row;
        memcpy(dst, (const char *)args->bindings[1] + (size_t)r * row, head);
        memset(dst + head, 0, row - head);
    }
}

static const struct hal_kernel kernel_tril = {
    .name = "tril", .cpu = tril_rows, .spirv = HAL_SPIRV(tril_spirv)};

static enum status tril_shape(struct rt_shape_call *call)
{
    int64_t diagonal;

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_const(call, 1, &diagonal));
    if (rt_shape_arg(call, 0)->rank < 2) {
        return rt_shape_refuse(call, "rank %u, expected 2 or more", rt_shape_arg(call, 0)->rank);
    }
    return rt_shape_set_out_like(call, 0, 0);
}

static enum status tril_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);

    if (out->numel == 0) {
        return ST_OK;
    }
    struct rt_tril c = {.height = out->dims[out->rank - 2],
                        .width = out->dims[out->rank - 1],
                        .bytes = (uint32_t)dtype_bytes(out->dtype)};
    /* Beyond the matrix all diagonals are equivalent; the limit prevents overflow. */
    c.diagonal = rt_max(-c.height, rt_min(c.width, rt_emit_int(emit, 1)));
    c.rows = out->numel / c.width;
    c.tile = rt_cut_things(rt_emit_machine(emit, &kernel_tril), RT_WORK_COPY, c.rows,
                           c.width * c.bytes, c.width);
    return rt_emit_tiles(emit, c.rows, c.tile,
                         &(struct hal_dispatch){
                             .kernel = &kernel_tril,
                             .constants = &c,
                             .constants_bytes = sizeof(c),
                             .bindings = (struct hal_binding[]){out->binding, self->binding},
                             .binding_count = 2,
                             .cost = out->bytes / 8,
                         },
                         err);
}

/* clang-format off */
const struct rt_op rt_ops_pad[] = {
    {.name = "constant_pad", .kernels = "aten::constant_pad_nd.out",
     .args = "TLS>T", .shape = pad_shape, .emit = constant_pad_emit,
     .layout = RT_LAYOUT_ELEMENTWISE, .batch = rt_batch_padded,
     .dtypes = RT_DTYPES_ALL, .runs = &kernel_pad},
    {.name = "reflection_pad1d", .kernels = "aten::reflection_pad1d.out",
     .args = "TL>T", .shape = edge_1d_shape, .emit = reflect_emit, .layout = RT_LAYOUT_ELEMENTWISE,
     .batch = rt_batch_padded, .dtypes = RT_DTYPES_ALL, .runs = &kernel_pad},
    {.name = "reflection_pad2d", .kernels = "aten::reflection_pad2d.out",
     .args = "TL>T", .shape = edge_2d_shape, .emit = reflect_emit, .layout = RT_LAYOUT_ELEMENTWISE,
     .batch = rt_batch_padded, .dtypes = RT_DTYPES_ALL, .runs = &kernel_pad},
    {.name = "reflection_pad3d", .kernels = "aten::reflection_pad3d.out",
     .args = "TL>T", .shape = edge_3d_shape, .emit = reflect_emit, .layout = RT_LAYOUT_ELEMENTWISE,
     .batch = rt_batch_padded, .dtypes = RT_DTYPES_ALL, .runs = &kernel_pad},
    {.name = "replication_pad1d", .kernels = "aten::replication_pad1d.out",
     .args = "TL>T", .shape = edge_1d_shape, .emit = replicate_emit,
     .layout = RT_LAYOUT_ELEMENTWISE, .batch = rt_batch_padded,
     .dtypes = RT_DTYPES_ALL, .runs = &kernel_pad},
    {.name = "replication_pad2d", .kernels = "aten::replication_pad2d.out",
     .args = "TL>T", .shape = edge_2d_shape, .emit = replicate_emit,
     .layout = RT_LAYOUT_ELEMENTWISE, .batch = rt_batch_padded,
     .dtypes = RT_DTYPES_ALL, .runs = &kernel_pad},
    {.name = "replication_pad3d", .kernels = "aten::replication_pad3d.out",
     .args = "TL>T", .shape = edge_3d_shape, .emit = replicate_emit,
     .layout = RT_LAYOUT_ELEMENTWISE, .batch = rt_batch_padded,
     .dtypes = RT_DTYPES_ALL, .runs = &kernel_pad},
    {.name = "roll", .kernels = "aten::roll.out",
     .args = "TLL>T", .shape = roll_shape, .emit = roll_emit, .layout = RT_LAYOUT_ROW_MAJOR,
     .batch = rt_batch_roll, .dtypes = RT_DTYPES_ALL, .runs = &kernel_pad},
    {.name = "tril", .kernels = "aten::tril.out",
     .args = "TI>T", .shape = tril_shape, .emit = tril_emit, .layout = RT_LAYOUT_ROW_MAJOR,
     .batch = rt_batch_last_two, .dtypes = RT_DTYPES_ALL, .runs = &kernel_tril},
    {0},
};
/* clang-format on */
