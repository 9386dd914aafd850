/* SPDX-License-Identifier: MIT */
/*
 * Convolutions as operators that have kernels: see passes.def. Convolutions with one or two dims in
 * float32 use packed weights ("conv", "conv_dw", "conv_group"), and so do volumes, plane by plane
 * (see lower_volume.c); halves are converted to float32. All others, and the gradients, use the
 * plain kernels "conv_direct" and "conv_gradient".
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/lower.h"

/* A convolution of |dtype| is computed in this type. */
static enum dtype compute_dtype(enum dtype dtype)
{
    if (dtype == DT_F64) {
        return DT_F64;
    }
    return dtype_is_float(dtype) ? DT_F32 : DT_I64;
}

/*
 * |count| entries for the last axes: the entries of the list, and |idle| for axes that it does not
 * have.
 */
static uint32_t entries(struct rt_graph *graph, uint32_t list, uint8_t axes, uint8_t count,
                        int64_t idle)
{
    const struct rt_value *v = &graph->values[list];
    struct rt_dim items[RT_CONV_AXES_MAX];

    for (uint8_t i = 0; i < count; i++) {
        bool is_own = i + axes >= count && v->count > 0;
        items[i] = is_own ? v->ints[v->count == 1 ? 0 : i + axes - count] : rt_dim_of(idle);
    }
    return rt_graph_ints(graph, items, count);
}

static uint8_t axes_of(const struct rt_graph *graph, uint32_t x)
{
    return (uint8_t)(graph->values[x].rank - 2);
}

/* ---- packed weights -------------------------------------------------------------------------- */

static uint32_t kernel_pair(struct rt_graph *graph, const struct rt_value *w)
{
    struct rt_dim items[2] = {rt_dim_of(1), w->dims[w->rank - 1]};
    if (w->rank == 4) {
        items[0] = w->dims[2];
    }
    return rt_graph_ints(graph, items, 2);
}

/* Several groups, each with one input and one output channel? */
static bool is_depthwise(const struct rt_graph *graph, const uint32_t args[RT_CONV_ARGS])
{
    const struct rt_value *w = &graph->values[args[RT_CONV_W]];
    return !graph->values[args[RT_CONV_TRANSPOSED]].b && rt_dim_is(w->dims[1], 1) &&
           rt_dim_same(w->dims[0], graph->values[args[RT_CONV_GROUPS]].i) &&
           !rt_dim_is(w->dims[0], 1);
}

/*
 * Does the device have a kernel for groups as small as these? It reads a power of two of channels
 * for as many others, and is fast for kernels 3 wide with steps of one or two pixels.
 */
static bool has_small_groups(const struct rt_graph *graph, const uint32_t args[RT_CONV_ARGS])
{
    const struct rt_value *w = &graph->values[args[RT_CONV_W]];
    int64_t groups = graph->values[args[RT_CONV_GROUPS]].i.value, group = w->dims[1].value;
    int64_t channels = w->dims[0].value;
    const struct rt_value *stride = &graph->values[args[RT_CONV_STRIDE]];
    return !graph->values[args[RT_CONV_TRANSPOSED]].b && group > 1 && group <= graph->group_max &&
           (group & (group - 1)) == 0 && channels == groups * group &&
           channels >= graph->group_max && rt_dim_is(w->dims[w->rank - 1], 3) &&
           stride->ints[stride->count - 1].value <= 2;
}

/* [C, I, H, W] in the order of |axes|: the weights of all channels for each tap are neighbours. */
static enum status weights_by_tap(struct rt_graph *graph, uint32_t weights, const uint8_t axes[4],
                                  uint32_t *out, struct error *err)
{
    const struct rt_value *w = &graph->values[weights];
    struct rt_dim dims[4] = {w->dims[0], w->dims[1], rt_dim_of(1), w->dims[w->rank - 1]};
    uint32_t view;
    if (w->rank == 4) {
        dims[2] = w->dims[2];
    }
    TRY(rt_op_view(graph, weights, dims, 4, &view, err));
    return rt_op_permute(graph, view, axes, 4, out, err);
}

/* Are the taps of a kernel's row neighbours in the input and in the sum, with all their channels?
 */
static bool has_rows(const struct rt_graph *graph, const uint32_t from[RT_CONV_ARGS])
{
    return !graph->values[from[RT_CONV_TRANSPOSED]].b &&
           rt_dim_is(graph->values[from[RT_CONV_GROUPS]].i, 1) &&
           rt_ints_are(&graph->values[from[RT_CONV_DILATION]], 1);
}

/* [O, I, H, W] as the matrix [O, H * W * I]. */
static enum status weights_by_row(struct rt_graph *graph, uint32_t weights, struct rt_dim depth,
                                  uint32_t *out, struct error *err)
{
    const struct rt_value *w = &graph->values[weights];
    struct rt_dim dims[2] = {w->dims[0], depth};
    uint8_t order[4] = {0}, rank = w->rank;
    uint32_t moved;
    for (uint8_t d = 2; d < rank; d++) {
        order[d - 1] = d;
    }
    order[rank - 1] = 1;
    TRY(rt_op_permute(graph, weights, order, rank, &moved, err));
    return rt_op_view(graph, moved, dims, 2, out, err);
}

/* The sum of an output has so many products. */
static struct rt_dim depth_of(struct rt_graph *graph, const struct rt_value *w,
                              struct rt_dim channels)
{
    struct rt_dim depth = channels;
    for (uint8_t i = 2; i < w->rank; i++) {
        depth = rt_dim_mul(&graph->dims, depth, w->dims[i]);
    }
    return depth;
}

/* The type of the packed weights: the channels of a tap are neighbours in the sum. */
static enum dtype packed_type(struct rt_graph *graph, const uint32_t from[RT_CONV_ARGS])
{
    const struct rt_value *w = &graph->values[from[RT_CONV_W]];
    int64_t groups = graph->values[from[RT_CONV_GROUPS]].i.value;
    bool is_transposed = graph->values[from[RT_CONV_TRANSPOSED]].b;
    struct rt_dim channels = is_transposed ? rt_dim_of(w->dims[0].value / groups) : w->dims[1];
    return rt_lower_packed_type(graph, from[RT_CONV_W], channels, depth_of(graph, w, channels));
}

/*
 * The type, if rows of the kernel are multiplied as one. Pairs of numbers must not be parted: if
 * the number of channels is odd, no row may end in the padding, and rows must have an even length.
 */
static enum dtype row_type(struct rt_graph *graph, const uint32_t from[RT_CONV_ARGS])
{
    const struct rt_value *w = &graph->values[from[RT_CONV_W]];
    bool is_even = w->dims[1].value % 2 == 0;
    if (!has_rows(graph, from) || !rt_dim_is_const(w->dims[1]) ||
        !(is_even || rt_ints_are(&graph->values[from[RT_CONV_PADDING]], 0))) {
        return DT_F32;
    }
    struct rt_dim row = rt_dim_mul(&graph->dims, w->dims[1], w->dims[w->rank - 1]);
    return rt_lower_packed_type(graph, from[RT_CONV_W], row, depth_of(graph, w, w->dims[1]));
}

static enum status pack_weights(struct rt_graph *graph, const uint32_t from[RT_CONV_ARGS],
                                uint32_t *out, struct error *err)
{
    uint32_t args[] = {from[RT_CONV_W], from[RT_CONV_GROUPS], from[RT_CONV_TRANSPOSED]};
    const struct rt_value *w = &graph->values[from[RT_CONV_W]];
    enum dtype dtype = packed_type(graph, from);
    bool is_row = dtype == DT_F32 && row_type(graph, from) == DT_BF16;
    dtype = is_row ? DT_BF16 : dtype;
    if (is_row && w->dims[1].value % 2) {
        TRY(weights_by_row(graph, from[RT_CONV_W], depth_of(graph, w, w->dims[1]), &args[0], err));
        return rt_op_apply(graph, RT_OP(pack_nk), args, 1, dtype, out, err);
    }
    return rt_op_apply(graph, RT_OP(pack_conv), args, 3, dtype, out, err);
}

/* The value with a channel of zeros behind the others, which are dim 1. */
static enum status add_channel(struct rt_graph *graph, uint32_t *value, struct error *err)
{
    struct rt_dim pads[2 * SHAPE_RANK_MAX] = {rt_dim_of(0)};
    uint32_t last = 2U * (graph->values[*value].rank - 2U) + 1; /* pads begin at the last dim */
    for (uint32_t i = 0; i <= last; i++) {
        pads[i] = rt_dim_of(i == last);
    }
    uint32_t args[] = {*value, rt_graph_ints(graph, pads, last + 1), rt_graph_float(graph, 0)};
    return rt_op_apply(graph, RT_OP(constant_pad), args, 3, DT_F32, value, err);
}

/* Images of three channels get a fourth one where that permits products of bfloat16 numbers: they
 * take half the time of others, and a third more of them are computed. */
static enum status even_channels(struct rt_graph *graph, uint32_t args[RT_CONV_ARGS],
                                 struct error *err)
{
    const struct rt_value *w = &graph->values[args[RT_CONV_W]];
    if (is_depthwise(graph, args) || !rt_dim_is(w->dims[1], 3) || !has_rows(graph, args) ||
        row_type(graph, args) == DT_BF16) {
        return ST_OK;
    }
    w = &graph->values[args[RT_CONV_W]];
    struct rt_dim row = rt_dim_mul(&graph->dims, rt_dim_of(4), w->dims[w->rank - 1]);
    struct rt_dim depth = depth_of(graph, w, rt_dim_of(4));
    if (rt_lower_packed_type(graph, args[RT_CONV_W], row, depth) != DT_BF16) {
        return ST_OK;
    }
    TRY(add_channel(graph, &args[RT_CONV_X], err));
    return add_channel(graph, &args[RT_CONV_W], err);
}

static enum status make_packed(struct rt_graph *graph, const uint32_t from[RT_CONV_ARGS],
                               struct rt_dim outs, uint32_t *out, struct error *err)
{
    static const uint8_t depthwise[4] = {2, 3, 1, 0}, grouped[4] = {2, 1, 3, 0};
    const struct rt_op *op = RT_OP(conv);
    uint8_t axes = axes_of(graph, from[RT_CONV_X]);
    uint32_t packed;
    if (is_depthwise(graph, from)) {
        op = RT_OP(conv_dw);
        TRY(weights_by_tap(graph, from[RT_CONV_W], depthwise, &packed, err));
    } else if (has_small_groups(graph, from)) {
        op = RT_OP(conv_group);
        TRY(weights_by_tap(graph, from[RT_CONV_W], grouped, &packed, err));
    } else {
        TRY(pack_weights(graph, from, &packed, err));
    }
    uint32_t args[] = {
        from[RT_CONV_X],
        packed,
        from[RT_CONV_BIAS],
        rt_graph_none(graph),
        kernel_pair(graph, &graph->values[from[RT_CONV_W]]),
        entries(graph, from[RT_CONV_STRIDE], axes, 2, 1),
        entries(graph, from[RT_CONV_PADDING], axes, 2, 0),
        entries(graph, from[RT_CONV_DILATION], axes, 2, 1),
        entries(graph, from[RT_CONV_OUTPUT_PADDING], axes, 2, 0),
        from[RT_CONV_GROUPS],
        rt_graph_int(graph, outs),
        from[RT_CONV_TRANSPOSED],
        rt_graph_float(graph, -INFINITY),
        rt_graph_float(graph, INFINITY),
        rt_graph_none(graph),
    };
    return rt_op_apply(graph, op, args, RT_PACKED_ARGS, DT_F32, out, err);
}

/* ---- plain kernels --------------------------------------------------------------------------- */

/* x, weights and bias have one type; the output has |like|'s dims. */
static enum status make_direct(struct rt_graph *graph, const uint32_t from[RT_CONV_ARGS],
                               uint32_t like, uint32_t *out, struct error *err)
{
    uint8_t axes = axes_of(graph, from[RT_CONV_X]);
    uint32_t args[] = {
        from[RT_CONV_X],
        from[RT_CONV_W],
        from[RT_CONV_BIAS],
        entries(graph, from[RT_CONV_STRIDE], axes, RT_CONV_AXES_MAX, 1),
        entries(graph, from[RT_CONV_PADDING], axes, RT_CONV_AXES_MAX, 0),
        entries(graph, from[RT_CONV_DILATION], axes, RT_CONV_AXES_MAX, 1),
        from[RT_CONV_TRANSPOSED],
        from[RT_CONV_GROUPS],
        rt_graph_ints(graph, graph->values[like].dims, graph->values[like].rank),
    };
    return rt_op_apply(graph, RT_OP(conv_direct), args, 9, graph->values[from[RT_CONV_X]].dtype,
                       out, err);
}

enum status rt_lower_convolution(struct rt_graph *graph, const struct rt_node *node,
                                 uint32_t outs[RT_LOWER_OUTS_MAX], struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    uint32_t args[RT_CONV_ARGS], like = node->outs[0];
    enum dtype dtype = graph->values[like].dtype, compute = compute_dtype(dtype);
    memcpy(args, node->args, sizeof(args));
    struct rt_dim channels = graph->values[like].dims[1];
    for (uint32_t i = RT_CONV_X; i <= RT_CONV_BIAS; i++) {
        TRY(rt_op_convert(graph, args[i], compute, &args[i], err));
    }
    bool is_volume = compute == DT_F32 && rt_lower_is_volume(graph, args);
    if (is_volume) {
        TRY(rt_lower_volume(graph, args, graph->values[like].dims[2], err));
    }
    if (compute == DT_F32 && axes_of(graph, args[RT_CONV_X]) <= 2) {
        TRY(even_channels(graph, args, err));
        TRY(make_packed(graph, args, channels, &outs[0], err));
        TRY(is_volume ? rt_lower_planes_as(graph, like, &outs[0], err) : ST_OK);
    } else {
        TRY(make_direct(graph, args, like, &outs[0], err));
    }
    return rt_op_convert(graph, outs[0], dtype, &outs[0], err);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The input's gradient is the transposed convolution of the output's gradient with the same
 * weights; for a transposed convolution, it is a plain convolution. */
static enum status input_gradient(struct rt_graph *graph, const uint32_t from[RT_CONV_BACK_ARGS],
                                  uint32_t like, uint32_t *out, struct error *err)
{
    uint32_t args[RT_CONV_ARGS] = {
        [RT_CONV_X] = from[RT_CONV_BACK_GRAD],
        [RT_CONV_W] = from[RT_CONV_BACK_W],
        [RT_CONV_BIAS] = rt_graph_none(graph),
        [RT_CONV_STRIDE] = from[RT_CONV_BACK_STRIDE],
        [RT_CONV_PADDING] = from[RT_CONV_BACK_PADDING],
        [RT_CONV_DILATION] = from[RT_CONV_BACK_DILATION],
        [RT_CONV_TRANSPOSED] =
            rt_graph_bool(graph, !graph->values[from[RT_CONV_BACK_TRANSPOSED]].b),
        [RT_CONV_GROUPS] = from[RT_CONV_BACK_GROUPS],
    };
    return make_direct(graph, args, like, out, err);
}

static enum status weight_gradient(struct rt_graph *graph, const uint32_t from[RT_CONV_BACK_ARGS],
                                   uint32_t like, uint32_t *out, struct error *err)
{
    bool is_transposed = graph->values[from[RT_CONV_BACK_TRANSPOSED]].b;
    uint8_t axes = axes_of(graph, from[RT_CONV_BACK_X]);
    uint32_t args[] = {
        from[is_transposed ? RT_CONV_BACK_X : RT_CONV_BACK_GRAD],
        from[is_transposed ? RT_CONV_BACK_GRAD : RT_CONV_BACK_X],
        entries(graph, from[RT_CONV_BACK_STRIDE], axes, RT_CONV_AXES_MAX, 1),
        entries(graph, from[RT_CONV_BACK_PADDING], axes, RT_CONV_AXES_MAX, 0),
        entries(graph, from[RT_CONV_BACK_DILATION], axes, RT_CONV_AXES_MAX, 1),
        from[RT_CONV_BACK_GROUPS],
        rt_graph_ints(graph, graph->values[like].dims, graph->values[like].rank),
    };
    return rt_op_apply(graph, RT_OP(conv_gradient), args, 7,
                       graph->values[from[RT_CONV_BACK_X]].dtype, out, err);
}

/* A bias is added to each pixel of its channel, so its gradient is a sum over the pixels. */
static enum status bias_gradient(struct rt_graph *graph, const uint32_t from[RT_CONV_BACK_ARGS],
                                 uint32_t *out, struct error *err)
{
    uint32_t grad = from[RT_CONV_BACK_GRAD], rank = graph->values[grad].rank;
    struct rt_dim summed[RT_CONV_AXES_MAX + 1] = {rt_dim_of(0)};
    for (uint32_t d = 2; d < rank; d++) {
        summed[d - 1] = rt_dim_of(d);
    }
    uint32_t args[] = {grad, rt_graph_ints(graph, summed, rank - 1), rt_graph_bool(graph, false),
                       rt_graph_none(graph)};
    return rt_op_apply(graph, RT_OP(sum), args, 4, graph->values[grad].dtype, out, err);
}

enum status rt_lower_convolution_backward(struct rt_graph *graph, const struct rt_node *node,
                                          uint32_t outs[RT_LOWER_OUTS_MAX], struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    uint32_t args[RT_CONV_BACK_ARGS], declared[RT_LOWER_OUTS_MAX];
    memcpy(args, node->args, sizeof(args));
    memcpy(declared, node->outs, sizeof(declared));
    enum dtype dtype = graph->values[args[RT_CONV_BACK_X]].dtype, compute = compute_dtype(dtype);
    for (uint32_t i = RT_CONV_BACK_GRAD; i <= RT_CONV_BACK_W; i++) {
        TRY(rt_op_convert(graph, args[i], compute, &args[i], err));
    }
    TRY(input_gradient(graph, args, declared[0], &outs[0], err));
    TRY(weight_gradient(graph, args, declared[1], &outs[1], err));
    TRY(bias_gradient(graph, args, &outs[2], err));
    for (uint32_t o = 0; o < RT_LOWER_OUTS_MAX; o++) {
        TRY(rt_op_convert(graph, outs[o], dtype, &outs[o], err));
    }
    return ST_OK;
}
