/* SPDX-License-Identifier: MIT */
/* The types of nodes, a row each, and the import of nodes that are not on images. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/import/xnnpack.h"

/* ---- numbers one by one ---------------------------------------------------------------------- */

static enum dtype promoted(const struct rt_xnnpack_import *x, uint32_t a, uint32_t b)
{
    enum dtype left = x->graph->values[a].dtype, right = x->graph->values[b].dtype;
    return left == right ? left : DT_F32;
}

/* add and sub have a factor as third argument; the others have two arguments. */
static enum status import_binary(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    uint32_t args[3] = {0}, out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &args[0]));
    TRY(rt_xnnpack_real(x, node->inputs[1], &args[1]));
    args[2] = rt_xnnpack_int(x, 1);
    bool has_factor = node->row->op == RT_KNOWN_add || node->row->op == RT_KNOWN_sub;
    TRY(rt_xnnpack_apply(x, rt_op_known(node->row->op), args, has_factor ? 3 : 2,
                         promoted(x, args[0], args[1]), &out));
    return rt_xnnpack_finish(x, node, out);
}

static enum status import_unary(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    uint32_t arg, out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &arg));
    TRY(rt_xnnpack_apply(x, rt_op_known(node->row->op), &arg, 1, x->graph->values[arg].dtype,
                         &out));
    return rt_xnnpack_finish(x, node, out);
}

static enum status import_square(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    uint32_t args[2], out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &args[0]));
    args[1] = args[0];
    TRY(rt_xnnpack_apply(x, RT_OP(mul), args, 2, x->graph->values[args[0]].dtype, &out));
    return rt_xnnpack_finish(x, node, out);
}

/* XNNPACK has only one GELU, whatever the exported model asked for. */
static enum status import_gelu(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    uint32_t args[2], out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &args[0]));
    args[1] = rt_graph_string(x->graph, span_str("none"));
    TRY(rt_xnnpack_apply(x, RT_OP(gelu), args, 2, x->graph->values[args[0]].dtype, &out));
    return rt_xnnpack_finish(x, node, out);
}

/* x * clamp(x + 3, 0, 6) / 6 */
static enum status import_hardswish(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    uint32_t arg, out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &arg));
    enum dtype dtype = x->graph->values[arg].dtype;
    uint32_t shift[] = {arg, rt_graph_float(x->graph, 3), rt_xnnpack_int(x, 1)};
    TRY(rt_xnnpack_apply(x, RT_OP(add_scalar), shift, 3, dtype, &out));
    uint32_t bounds[] = {out, rt_graph_float(x->graph, 0), rt_graph_float(x->graph, 6)};
    TRY(rt_xnnpack_apply(x, RT_OP(clamp), bounds, 3, dtype, &out));
    uint32_t product[] = {arg, out};
    TRY(rt_xnnpack_apply(x, RT_OP(mul), product, 2, dtype, &out));
    uint32_t quotient[] = {out, rt_graph_float(x->graph, 6)};
    TRY(rt_xnnpack_apply(x, RT_OP(div_scalar), quotient, 2, dtype, &out));
    return rt_xnnpack_finish(x, node, out);
}

static enum status import_leaky_relu(struct rt_xnnpack_import *x,
                                     const struct rt_xnnpack_node *node)
{
    uint32_t args[2], out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &args[0]));
    args[1] = rt_graph_float(x->graph, (double)node->number);
    TRY(rt_xnnpack_apply(x, RT_OP(leaky_relu), args, 2, x->graph->values[args[0]].dtype, &out));
    return rt_xnnpack_finish(x, node, out);
}

static enum status import_elu(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    uint32_t args[4], out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &args[0]));
    args[1] = rt_graph_float(x->graph, (double)node->number);
    args[2] = args[3] = rt_graph_float(x->graph, 1);
    TRY(rt_xnnpack_apply(x, RT_OP(elu), args, 4, x->graph->values[args[0]].dtype, &out));
    return rt_xnnpack_finish(x, node, out);
}

/* x > 0 ? x : x * slope, with a slope for each place of the last dim. */
static enum status import_prelu(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    uint32_t arg, slope, is_positive, scaled, out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &arg));
    TRY(rt_xnnpack_real(x, node->inputs[1], &slope));
    enum dtype dtype = promoted(x, arg, slope);
    uint32_t compared[] = {arg, rt_graph_float(x->graph, 0)};
    TRY(rt_xnnpack_apply(x, RT_OP(gt_scalar), compared, 2, DT_BOOL, &is_positive));
    uint32_t product[] = {arg, slope};
    TRY(rt_xnnpack_apply(x, RT_OP(mul), product, 2, dtype, &scaled));
    uint32_t choice[] = {is_positive, arg, scaled};
    TRY(rt_xnnpack_apply(x, RT_OP(where), choice, 3, dtype, &out));
    return rt_xnnpack_finish(x, node, out);
}

/* Clamps quantized values as they are stored. */
static enum status import_clamp(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    const struct rt_xnnpack_value *in = &x->payload.values[node->inputs[0]];
    const struct rt_xnnpack_value *out = &x->payload.values[node->outputs[0]];
    bool is_plain = rt_xnnpack_types[in->type].quant == XNN_PLAIN;
    uint32_t arg, clamped;
    if (is_plain || !rt_xnnpack_same_form(in, out)) {
        TRY(rt_xnnpack_real(x, node->inputs[0], &arg));
        return rt_xnnpack_finish(x, node, arg);
    }
    TRY(rt_xnnpack_stored(x, node->inputs[0], &arg));
    uint32_t args[] = {
        arg,
        rt_xnnpack_int(x, (int64_t)rt_xnnpack_quantize(in, (double)node->min)),
        rt_xnnpack_int(x, (int64_t)rt_xnnpack_quantize(in, (double)node->max)),
    };
    TRY(rt_xnnpack_apply(x, RT_OP(clamp), args, 3, rt_xnnpack_types[in->type].dtype, &clamped));
    return rt_xnnpack_define(x, node->outputs[0], clamped);
}

static enum status import_convert(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    uint32_t arg;
    TRY(rt_xnnpack_real(x, node->inputs[0], &arg));
    return rt_xnnpack_finish(x, node, arg);
}

/* ---- moving ---------------------------------------------------------------------------------- */

/* A node that only moves elements works on stored values if all operands and the output store
 * numbers alike, else on dequantized numbers. */
struct move {
    bool on_stored;
    uint32_t args[XNN_INPUTS_MAX];
    enum dtype dtype;
};

static enum status begin_move(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                              struct move *move)
{
    const struct rt_xnnpack_value *out = &x->payload.values[node->outputs[0]];
    move->on_stored = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct rt_xnnpack_value *in = &x->payload.values[node->inputs[i]];
        move->on_stored = move->on_stored && !in->quantizes_rows && rt_xnnpack_same_form(in, out);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t *arg = &move->args[i];
        TRY(move->on_stored ? rt_xnnpack_stored(x, node->inputs[i], arg)
                            : rt_xnnpack_real(x, node->inputs[i], arg));
        enum dtype dtype = x->graph->values[*arg].dtype;
        move->dtype = i == 0 || dtype == move->dtype ? dtype : DT_F32;
    }
    return ST_OK;
}

static enum status end_move(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                            const struct move *move, uint32_t moved)
{
    return move->on_stored ? rt_xnnpack_define(x, node->outputs[0], moved)
                           : rt_xnnpack_finish(x, node, moved);
}

static enum status import_copy(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    struct move move;
    TRY(begin_move(x, node, &move));
    return end_move(x, node, &move, move.args[0]);
}

static enum status need_rank(struct rt_xnnpack_import *x, const struct move *move, uint32_t count)
{
    uint8_t rank = x->graph->values[move->args[0]].rank;
    if (count != rank) {
        return error_set(x->err, ST_UNSUPPORTED,
                         "%" PRIu32 " entries, expected %u (one for each dim)", count, rank);
    }
    return ST_OK;
}

static enum status import_transpose(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    const struct rt_xnnpack_list *perm = &node->lists[0];
    uint8_t order[XNN_LIST_MAX];
    uint32_t seen = 0, moved;
    struct move move;
    TRY(begin_move(x, node, &move));
    TRY(need_rank(x, &move, perm->count));
    for (uint32_t i = 0; i < perm->count; i++) {
        if (perm->items[i] >= perm->count || (seen >> perm->items[i] & 1)) {
            return error_set(x->err, ST_UNSUPPORTED,
                             "dim %" PRIu32 " in a permutation of %" PRIu32
                             " dims, expected each dim once",
                             perm->items[i], perm->count);
        }
        seen |= 1u << perm->items[i];
        order[i] = (uint8_t)perm->items[i];
    }
    TRY(rt_xnnpack_permute(x, move.args[0], order, &moved));
    return end_move(x, node, &move, moved);
}

/* A size of 0 is inferred from the others. */
static enum status import_reshape(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    const struct rt_xnnpack_list *shape = &node->lists[0];
    struct rt_dim dims[XNN_LIST_MAX];
    uint32_t moved, open = 0;
    struct move move;
    TRY(begin_move(x, node, &move));
    for (uint32_t i = 0; i < shape->count; i++) {
        dims[i] = rt_dim_of(shape->items[i] ? (int64_t)shape->items[i] : -1);
        open += shape->items[i] == 0;
    }
    if (open > 1) {
        return error_set(x->err, ST_UNSUPPORTED,
                         "%" PRIu32 " sizes of 0 (to be inferred), expected at most 1", open);
    }
    TRY(rt_xnnpack_view(x, move.args[0], dims, (uint8_t)shape->count, &moved));
    return end_move(x, node, &move, moved);
}

/* |size| elements from the offset on, fewer if the value ends before. */
static enum status import_slice(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    const struct rt_xnnpack_list *offsets = &node->lists[0], *sizes = &node->lists[1];
    struct move move;
    TRY(begin_move(x, node, &move));
    TRY(need_rank(x, &move, offsets->count));
    TRY(need_rank(x, &move, sizes->count));
    uint32_t moved = move.args[0];
    for (uint32_t d = 0; d < offsets->count; d++) {
        int64_t begin = offsets->items[d], end = begin + sizes->items[d];
        if (begin == 0 && end >= x->graph->values[moved].dims[d].value) {
            continue;
        }
        uint32_t args[] = {
            moved,
            rt_xnnpack_int(x, d),
            rt_xnnpack_int(x, begin),
            rt_xnnpack_int(x, end),
            rt_xnnpack_int(x, 1),
        };
        TRY(rt_xnnpack_apply(x, RT_OP(slice), args, 5, move.dtype, &moved));
    }
    return end_move(x, node, &move, moved);
}

/* The graph's operator lists padding from the last dim on: before, after, before, after. */
static enum status import_pad(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    const struct rt_xnnpack_list *before = &node->lists[0], *after = &node->lists[1];
    const struct rt_xnnpack_value *value = &x->payload.values[node->inputs[0]];
    int64_t pads[2 * XNN_LIST_MAX];
    uint32_t moved, rank = before->count;
    struct move move;
    TRY(begin_move(x, node, &move));
    TRY(need_rank(x, &move, before->count));
    TRY(need_rank(x, &move, after->count));
    for (uint32_t d = 0; d < rank; d++) {
        pads[2 * (rank - 1 - d)] = before->items[d];
        pads[2 * (rank - 1 - d) + 1] = after->items[d];
    }
    double number = (double)node->number;
    uint32_t args[] = {move.args[0], rt_xnnpack_ints(x, pads, 2 * rank), 0};
    bool is_quantized = move.on_stored && rt_xnnpack_types[value->type].quant != XNN_PLAIN;
    args[2] = is_quantized ? rt_xnnpack_int(x, (int64_t)rt_xnnpack_quantize(value, number))
                           : rt_graph_float(x->graph, number);
    TRY(rt_xnnpack_apply(x, RT_OP(constant_pad), args, 3, move.dtype, &moved));
    return end_move(x, node, &move, moved);
}

static enum status import_cat(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    struct move move;
    uint32_t moved;
    TRY(begin_move(x, node, &move));
    if (node->params[0] >= x->graph->values[move.args[0]].rank) {
        return error_set(x->err, ST_UNSUPPORTED, "axis %" PRIu32 ", expected less than the rank %u",
                         node->params[0], x->graph->values[move.args[0]].rank);
    }
    uint32_t args[] = {
        rt_graph_tensors(x->graph, move.args, node->input_count),
        rt_xnnpack_int(x, node->params[0]),
    };
    TRY(rt_xnnpack_apply(x, RT_OP(cat), args, 2, move.dtype, &moved));
    return end_move(x, node, &move, moved);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Swaps the last two dims. */
static enum status swap_last(struct rt_xnnpack_import *x, uint32_t value, uint32_t *out_value)
{
    uint8_t rank = x->graph->values[value].rank, order[SHAPE_RANK_MAX];
    if (rank < 2) {
        return error_set(x->err, ST_UNSUPPORTED, "a factor has rank %u, expected at least 2", rank);
    }
    for (uint8_t d = 0; d < rank; d++) {
        order[d] = d;
    }
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
    return rt_xnnpack_permute(x, value, order, out_value);
}

/* The filter is [N, K], or [K, N] with the flag; scales of channels are along N. */
static enum status import_fully_connected(struct rt_xnnpack_import *x,
                                          const struct rt_xnnpack_node *node)
{
    const struct rt_xnnpack_value *filter = &x->payload.values[node->inputs[1]];
    bool swaps = node->flags & XNN_TRANSPOSE;
    uint32_t args[3], out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &args[0]));
    TRY(rt_xnnpack_convert(x, args[0], DT_F32, &args[0]));
    TRY(rt_xnnpack_stored(x, node->inputs[1], &args[1]));
    enum rt_xnnpack_quant quant = rt_xnnpack_types[filter->type].quant;
    if ((swaps && quant == XNN_PER_GROUP) ||
        (quant == XNN_PER_CHANNEL && filter->channel_dim != (swaps ? 1 : 0))) {
        return error_set(x->err, ST_UNSUPPORTED, "%s filter with scales along dim %u%s",
                         rt_xnnpack_types[filter->type].name, filter->channel_dim,
                         swaps ? ", transposed" : "");
    }
    if (swaps) {
        TRY(swap_last(x, args[1], &args[1]));
    }
    TRY(rt_xnnpack_decode(x, node->inputs[1], args[1], 0, &args[1]));
    args[2] = rt_graph_none(x->graph);
    if (node->inputs[2] != XNN_NO_VALUE) {
        TRY(rt_xnnpack_real(x, node->inputs[2], &args[2]));
        TRY(rt_xnnpack_convert(x, args[2], DT_F32, &args[2]));
    }
    TRY(rt_xnnpack_apply(x, RT_OP(linear), args, 3, DT_F32, &out));
    return rt_xnnpack_finish(x, node, out);
}

/*
 * The leading dims of the product, all but the last two: the factors' dims are broadcast to them.
 */
static enum status find_batch(struct rt_xnnpack_import *x, const uint32_t factors[2],
                              struct rt_dim batch[SHAPE_RANK_MAX], uint8_t *out_rank)
{
    const struct rt_value *a = &x->graph->values[factors[0]], *b = &x->graph->values[factors[1]];
    if (a->rank < 2 || b->rank < 2) {
        return error_set(x->err, ST_UNSUPPORTED,
                         "the factors have ranks %u and %u, expected at least 2", a->rank, b->rank);
    }
    uint8_t rank = (uint8_t)((a->rank > b->rank ? a->rank : b->rank) - 2);
    for (uint8_t i = 0; i < rank; i++) {
        struct rt_dim one = rt_dim_of(1);
        struct rt_dim p = i + a->rank < rank + 2 ? one : a->dims[i + a->rank - rank - 2];
        struct rt_dim q = i + b->rank < rank + 2 ? one : b->dims[i + b->rank - rank - 2];
        batch[i] = rt_dim_is(p, 1) ? q : p;
        if (!rt_dim_is(p, 1) && !rt_dim_is(q, 1)) {
            TRY(rt_dim_require_equal(&x->graph->dims, p, q,
                                     "matrices of the first batch, as many as of the second",
                                     x->err));
        }
    }
    *out_rank = rank;
    return ST_OK;
}

/* |factor| broadcast to the leading dims |batch|, which become one dim before its last two. */
static enum status flatten_batch(struct rt_xnnpack_import *x, const struct rt_dim *batch,
                                 uint8_t rank, uint32_t *factor)
{
    const struct rt_value *v = &x->graph->values[*factor];
    struct rt_dim sizes[SHAPE_RANK_MAX], flat[3] = {rt_dim_of(1)};
    bool is_whole = v->rank == rank + 2;
    for (uint8_t i = 0; i < rank; i++) {
        sizes[i] = batch[i];
        flat[0] = rt_dim_mul(&x->graph->dims, flat[0], batch[i]);
        is_whole = is_whole && rt_dim_same(v->dims[i], batch[i]);
    }
    sizes[rank] = flat[1] = v->dims[v->rank - 2];
    sizes[rank + 1] = flat[2] = v->dims[v->rank - 1];
    if (!is_whole) {
        uint32_t args[] = {*factor, rt_graph_ints(x->graph, sizes, rank + 2u),
                           rt_graph_bool(x->graph, false)};
        TRY(rt_xnnpack_apply(x, RT_OP(expand), args, 3, v->dtype, factor));
    }
    return rank == 1 ? ST_OK : rt_xnnpack_view(x, *factor, flat, 3, factor);
}

static enum status import_batch_product(struct rt_xnnpack_import *x,
                                        const struct rt_xnnpack_node *node)
{
    struct rt_dim batch[SHAPE_RANK_MAX];
    uint32_t args[2], out;
    uint8_t rank = 0;
    for (uint32_t i = 0; i < 2; i++) {
        TRY(rt_xnnpack_real(x, node->inputs[i], &args[i]));
        TRY(rt_xnnpack_convert(x, args[i], DT_F32, &args[i]));
    }
    if (node->flags & XNN_TRANSPOSE) {
        TRY(swap_last(x, args[1], &args[1]));
    }
    TRY(find_batch(x, args, batch, &rank));
    if (rank == 0) {
        TRY(rt_xnnpack_apply(x, RT_OP(mm), args, 2, DT_F32, &out));
        return rt_xnnpack_finish(x, node, out);
    }
    TRY(flatten_batch(x, batch, rank, &args[0]));
    TRY(flatten_batch(x, batch, rank, &args[1]));
    TRY(rt_xnnpack_apply(x, RT_OP(bmm), args, 2, DT_F32, &out));
    if (rank > 1) {
        batch[rank] = x->graph->values[out].dims[1];
        batch[rank + 1] = x->graph->values[out].dims[2];
        TRY(rt_xnnpack_view(x, out, batch, (uint8_t)(rank + 2), &out));
    }
    return rt_xnnpack_finish(x, node, out);
}

/* Over the last dim. */
static enum status import_softmax(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    uint32_t args[3], out;
    TRY(rt_xnnpack_real(x, node->inputs[0], &args[0]));
    args[1] = rt_xnnpack_int(x, -1);
    args[2] = rt_graph_bool(x->graph, false);
    TRY(rt_xnnpack_apply(x, RT_OP(softmax), args, 3, x->graph->values[args[0]].dtype, &out));
    return rt_xnnpack_finish(x, node, out);
}

/* The exporter writes this node, but no runtime executes it, so its meaning is unknown. */
static enum status import_attention(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    (void)node;
    return error_set(x->err, ST_UNSUPPORTED, "not supported: no runtime defines this node");
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define BINARY(name, op)                                                                           \
    {                                                                                              \
        name, "iiog", import_binary, 0, RT_KNOWN_##op                                              \
    }
#define UNARY(name, op)                                                                            \
    {                                                                                              \
        name, "iog", import_unary, 0, RT_KNOWN_##op                                                \
    }
#define WINDOW "uuuuuuuuuu" /* padding, kernel, stride, dilation */

static const struct rt_xnnpack_row rows[] = {
    [1] = BINARY("Add", add),
    [2] = {"FullyConnected", "iibog", import_fully_connected, XNN_TRANSPOSE, RT_KNOWN_NONE},
    [3] = {"Softmax", "iog", import_softmax, 0, RT_KNOWN_NONE},
    [4] = UNARY("Sigmoid", sigmoid),
    [5] = {"StaticTranspose", "-Liog", import_transpose, 0, RT_KNOWN_NONE},
    [6] = {"Clamp", "iog", import_clamp, 0, RT_KNOWN_NONE},
    [7] = {"Conv2d", WINDOW "uuuuuiibog", rt_xnnpack_import_conv, XNN_SAME_PADDING, RT_KNOWN_NONE},
    [8] = BINARY("Div", div),
    [9] = {"StaticResizeBilinear2D", "uuiog", rt_xnnpack_import_resize, XNN_ALIGN_CORNERS,
           RT_KNOWN_NONE},
    [10] = {"StaticConstantPad", "LLfiog", import_pad, 0, RT_KNOWN_NONE},
    [11] = {"AvgPooling2d", WINDOW "iog", rt_xnnpack_import_avg_pool,
            XNN_SAME_PADDING | XNN_KEEP_DIMS, RT_KNOWN_NONE},
    [12] = BINARY("Minimum", minimum),
    [13] = {"DepthwiseConv2d", WINDOW "uuuuuiibog", rt_xnnpack_import_depthwise, XNN_SAME_PADDING,
            RT_KNOWN_NONE},
    [14] = {"MaxPooling2d", WINDOW "iog", rt_xnnpack_import_max_pool,
            XNN_SAME_PADDING | XNN_KEEP_DIMS, RT_KNOWN_NONE},
    [15] = BINARY("Multiply", mul),
    [16] = BINARY("Subtract", sub),
    [17] = UNARY("Floor", floor),
    [18] = {"Convert", "iog", import_convert, 0, RT_KNOWN_NONE},
    [19] = {"GlobalAvgPooling2d", "iog", rt_xnnpack_import_global_pool, XNN_KEEP_DIMS,
            RT_KNOWN_NONE},
    [20] = {"StaticReshape", "-Liog", import_reshape, 0, RT_KNOWN_NONE},
    [21] = {"ArgMaxPooling2d", "uuuuuuioog", rt_xnnpack_import_argmax_pool, XNN_KEEP_DIMS,
            RT_KNOWN_NONE},
    [22] = UNARY("SquareRoot", sqrt),
    [23] = UNARY("Ceiling", ceil),
    [24] = {"Hardswish", "iog", import_hardswish, 0, RT_KNOWN_NONE},
    [25] = {"LeakyReLU", "fiog", import_leaky_relu, 0, RT_KNOWN_NONE},
    [26] = BINARY("Maximum", maximum),
    [27] = UNARY("Negate", neg),
    [28] = {"Square", "iog", import_square, 0, RT_KNOWN_NONE},
    [29] = {"ELU", "fiog", import_elu, 0, RT_KNOWN_NONE},
    [30] = UNARY("Abs", abs),
    [31] = {"PReLU", "iiog", import_prelu, 0, RT_KNOWN_NONE},
    [32] = {"Concatenate2", "uii--og", import_cat, 0, RT_KNOWN_NONE},
    [33] = {"Concatenate3", "uiii-og", import_cat, 0, RT_KNOWN_NONE},
    [34] = {"Concatenate4", "uiiiiog", import_cat, 0, RT_KNOWN_NONE},
    [35] = {"StaticSlice", "-LLiog", import_slice, 0, RT_KNOWN_NONE},
    [36] = {"ScaledDotProductAttention", "iiiiiog", import_attention, 0, RT_KNOWN_NONE},
    [37] = {"BatchMatrixMultiply", "iiog", import_batch_product, XNN_TRANSPOSE, RT_KNOWN_NONE},
    [38] = {"Concatenate5", "uiiiiogi", import_cat, 0, RT_KNOWN_NONE},
    [39] = {"ConvTranspose2d", WINDOW "uuuuuiibog", rt_xnnpack_import_deconv, 0, RT_KNOWN_NONE},
    [40] = UNARY("ReciprocalSquareRoot", rsqrt),
    [41] = UNARY("Log", log),
    [42] = {"Gelu", "iog", import_gelu, 0, RT_KNOWN_NONE},
    [43] = UNARY("Tanh", tanh),
    [44] = UNARY("Exp", exp),
    [45] = UNARY("Sin", sin),
    [46] = {"Copy", "iog", import_copy, 0, RT_KNOWN_NONE},
    [47] = UNARY("Cos", cos),
};

const struct rt_xnnpack_row *rt_xnnpack_row_find(uint8_t tag)
{
    return tag < sizeof(rows) / sizeof(rows[0]) && rows[tag].name ? &rows[tag] : NULL;
}
