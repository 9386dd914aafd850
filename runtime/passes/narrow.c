/* SPDX-License-Identifier: MIT */
/*
 * Values in memory as bfloat16. A product whose weights are bfloat16 rounds its input to that, too.
 * If only such products read a value, possibly through views, the node that makes it may as well
 * round it: the results are the same bits, and half the bytes are written and read. The sums of
 * residual blocks, which products add to their results, are bfloat16, too, if nothing else needs
 * them as floats. That rounds a sum once for each block, as the products that read it do anyway.
 *
 * A value that others read as floats gets a rounded copy for its products, if they would round it
 * many times: each tile of a product rounds the rows that it reads, and a tile may be one panel of
 * weights wide. For an image with a channel of zeros one operator makes that copy of the image's
 * planes, in place of three.
 */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/ops/planes.h"
#include "runtime/passes/passes.h"

/* Rounding a value once costs about as much as four of the times that products do it. */
#define ROUNDS_MIN 4
#define TILE_ROWS 14

/* With fewer channels a window consists of short runs, which take twice as long to round. */
#define CHANNELS_FEW 8

/* By value. */
struct narrowing {
    struct rt_graph *graph;
    bool *keeps;      /* has readers that need floats */
    double *rounds;   /* how often products would round each element */
    uint32_t *copies; /* rounded, 0: none yet */
};

/* Are the node's weights bfloat16? */
static bool is_product(const struct rt_graph *graph, const struct rt_node *node)
{
    return (rt_op_is(node->op, RT_KNOWN_gemm) || rt_op_is(node->op, RT_KNOWN_conv) ||
            rt_op_is(node->op, RT_KNOWN_expand_dw)) &&
           rt_node_arg(graph, node, 1)->dtype == DT_BF16;
}

/* Does the node only move the elements of argument 0, or look at them in another shape? */
static bool moves(const struct rt_graph *graph, const struct rt_node *node)
{
    if (!(node->op->flags & (RT_OP_VIEW | RT_OP_MOVES | RT_OP_COPY)) || node->out_count != 1 ||
        !(node->op->dtypes >> DT_BF16 & 1) || rt_node_arg(graph, node, 0)->kind != RT_TENSOR) {
        return false;
    }
    bool is_alone = true;
    for (uint32_t i = 1; i < node->arg_count; i++) {
        enum rt_kind kind = rt_node_arg(graph, node, i)->kind;
        is_alone &= kind != RT_TENSOR && kind != RT_TENSORS;
    }
    return is_alone;
}

/* Does the node only choose some of the elements of argument 0? Its readers have been looked at:
 * nobody asks which elements, because of rounded ones others may be the largest. */
static bool chooses(const struct narrowing *n, const struct rt_node *node)
{
    return rt_op_is(node->op, RT_KNOWN_max_pool2d) && !n->keeps[node->outs[1]];
}

/* Can the node store its results as bfloat16? */
static bool rounds(const struct rt_graph *graph, const struct rt_node *node)
{
    bool is_pointwise = (node->op->flags & RT_OP_POINTWISE) && !(node->op->flags & RT_OP_COPY) &&
                        !rt_op_is(node->op, RT_KNOWN_chain);
    return is_product(graph, node) || is_pointwise || rt_op_is(node->op, RT_KNOWN_layer_norm) ||
           rt_op_is(node->op, RT_KNOWN_expand_dw) || rt_op_is(node->op, RT_KNOWN_cat_affine);
}

/* The argument of a product that is added to its results; 0: none. */
static uint32_t residual_of(const struct rt_node *node)
{
    const struct rt_epilogue *e = node->op->flags & RT_OP_EPILOGUE ? node->op->detail : NULL;
    return e ? e->residual : 0;
}

static bool is_float(const struct rt_value *v)
{
    return v->kind == RT_TENSOR && v->dtype == DT_F32 && !v->is_half && !v->is_constant &&
           !v->is_packed;
}

/* Marks what |node| has to read as floats. Its own readers have been looked at. */
static void mark_arguments(struct narrowing *n, const struct rt_node *node)
{
    bool is_cat = rt_op_is(node->op, RT_KNOWN_cat);
    bool passes_on = (is_cat || chooses(n, node) || moves(n->graph, node)) &&
                     is_float(rt_node_out(n->graph, node, 0)) && !n->keeps[node->outs[0]];
    bool multiplies = is_product(n->graph, node);
    uint32_t residual = multiplies ? residual_of(node) : 0;
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const struct rt_value *v = rt_node_arg(n->graph, node, i);
        for (uint32_t item = 0; v->kind == RT_TENSORS && item < v->count; item++) {
            n->keeps[v->values[item]] |= !is_cat || !passes_on;
        }
        bool takes_bf16 = i == 0 ? multiplies || passes_on : i == residual;
        n->keeps[node->args[i]] |= !takes_bf16;
    }
}

/* Is all that the node moves or joins bfloat16? A concatenation of several types has the widest. */
static bool has_bf16(const struct narrowing *n, const struct rt_node *node)
{
    const struct rt_graph *graph = n->graph;
    const struct rt_value *x = rt_node_arg(graph, node, 0);
    if (!rt_op_is(node->op, RT_KNOWN_cat)) {
        return (chooses(n, node) || moves(graph, node)) && x->dtype == DT_BF16;
    }
    bool is_bf16 = x->count > 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct rt_value *item = &graph->values[x->values[i]];
        is_bf16 &= item->kind == RT_TENSOR && item->dtype == DT_BF16;
    }
    return is_bf16;
}

static void narrow_outputs(struct narrowing *n, const struct rt_node *node)
{
    struct rt_graph *graph = n->graph;
    bool follows = has_bf16(n, node);
    struct rt_value *out = rt_node_out(graph, node, 0);
    if ((follows || rounds(graph, node)) && is_float(out) && !n->keeps[node->outs[0]]) {
        out->dtype = DT_BF16;
    }
}

/* ---- rounded copies -------------------------------------------------------------------------- */

/* The product of dims [from, to) at their upper bounds. */
static double size_of(const struct rt_value *v, uint8_t from, uint8_t to)
{
    double size = 1;
    for (uint8_t d = from; d < to; d++) {
        size *= (double)v->dims[d].value;
    }
    return size;
}

/* How often a product would round an element of its input: in each window that the element is in,
 * and, if there are more panels of weights than tiles of rows, for each panel: see
 * rt_cut_product().
 */
static double rounds_of(const struct rt_graph *graph, const struct rt_node *node)
{
    const struct rt_value *x = rt_node_arg(graph, node, 0), *w = rt_node_arg(graph, node, 1);
    double panels = (double)w->dims[1].value, rows, windows = 1;
    if (rt_op_is(node->op, RT_KNOWN_gemm)) {
        rows = size_of(x, 0, x->rank - 1) / (double)w->dims[0].value;
    } else if (rt_op_is(node->op, RT_KNOWN_expand_dw)) {
        return panels;
    } else {
        const struct rt_value *stride = rt_node_arg(graph, node, RT_PACKED_STRIDE);
        windows = (double)w->dims[2].value * (double)w->dims[0].value / (double)x->dims[1].value;
        windows *= x->dims[1].value < CHANNELS_FEW ? 2 : 1;
        rows = size_of(x, 2, x->rank);
        for (uint32_t i = 0; i < stride->count; i++) {
            windows /= (double)stride->ints[i].value;
            rows /= (double)stride->ints[i].value;
        }
    }
    return windows * (panels > rows / TILE_ROWS ? panels : 1);
}

static bool rounds_floats(const struct rt_graph *graph, const struct rt_node *node)
{
    return is_product(graph, node) && is_float(rt_node_arg(graph, node, 0));
}

/* Does the node only add channels of zeros, to RT_PLANES of them? */
static bool adds_channels(const struct rt_graph *graph, const struct rt_node *pad)
{
    const struct rt_value *x = rt_node_arg(graph, pad, 0), *pads = rt_node_arg(graph, pad, 1);
    const struct rt_value *number = rt_node_arg(graph, pad, 2), *out = rt_node_out(graph, pad, 0);
    bool adds = x->rank > 2 && x->order == NULL && is_float(x) && number->kind == RT_FLOAT &&
                number->symbol == 0 && number->f == 0 && rt_dim_is_const(x->dims[1]) &&
                x->dims[1].value >= 1 && x->dims[1].value <= RT_PLANES && /* pads may crop */
                rt_dim_is(out->dims[1], RT_PLANES);
    uint32_t behind = 2U * (x->rank - 2U) + 1; /* pads begin at the last dim */
    for (uint32_t i = 0; adds && i < pads->count; i++) {
        adds = i == behind || rt_dim_is(pads->ints[i], 0);
    }
    return adds;
}

/* The image whose padded and perhaps reordered copy |value| is, if that copy has all its channels
 * in each pixel; else RT_NO_NODE. */
static uint32_t find_planes(const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    bool is_last = v->order && v->order[v->rank - 1] == 1 && v->order[0] == 0;
    for (uint8_t d = 1; is_last && d + 1 < v->rank; d++) {
        is_last = v->order[d] == d + 1;
    }
    if (is_last && v->node != RT_NO_NODE && rt_op_is(graph->nodes[v->node].op, RT_KNOWN_reorder)) {
        v = rt_node_arg(graph, &graph->nodes[v->node], 0);
    }
    const struct rt_node *pad = v->node != RT_NO_NODE ? &graph->nodes[v->node] : NULL;
    bool adds =
        is_last && pad && rt_op_is(pad->op, RT_KNOWN_constant_pad) && adds_channels(graph, pad);
    return adds ? pad->args[0] : RT_NO_NODE;
}

/* A rounded copy of |value|. */
static enum status round_value(struct rt_graph *graph, uint32_t value, uint32_t *out,
                               struct error *err)
{
    const uint8_t *order = graph->values[value].order;
    uint32_t planes = find_planes(graph, value);
    if (planes != RT_NO_NODE) {
        TRY(rt_op_apply(graph, RT_OP(planes), &planes, 1, DT_BF16, out, err));
    } else {
        TRY(rt_op_convert(graph, value, DT_BF16, out, err));
    }
    graph->values[*out].order = order;
    return ST_OK;
}

/* Lets product |index| read a rounded copy of its input. */
static enum status read_copy(struct narrowing *n, uint32_t index, struct error *err)
{
    struct rt_graph *graph = n->graph;
    uint32_t value = graph->nodes[index].args[0];
    if (n->copies[value] == 0) {
        graph->origin = graph->nodes[index].origin;
        TRY(round_value(graph, value, &n->copies[value], err));
    }
    graph->nodes[index].args[0] = n->copies[value];
    return ST_OK;
}

static enum status make_copies(struct narrowing *n, struct error *err)
{
    struct rt_graph *graph = n->graph;
    uint32_t node_count = graph->node_count;
    for (uint32_t i = 0; i < node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        if (rounds_floats(graph, node)) {
            n->rounds[node->args[0]] += rounds_of(graph, node);
        }
    }
    for (uint32_t i = 0; i < node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        if (rounds_floats(graph, node) && n->rounds[node->args[0]] >= ROUNDS_MIN) {
            TRY(read_copy(n, i, err));
        }
    }
    return rt_graph_compact(graph, err);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void narrow_values(struct narrowing *n)
{
    struct rt_graph *graph = n->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        n->keeps[graph->outputs[i]] = true;
    }
    for (uint32_t i = graph->node_count; i-- > 0;) {
        mark_arguments(n, &graph->nodes[i]);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        narrow_outputs(n, &graph->nodes[i]);
    }
}

enum status rt_pass_narrow(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    if (graph->precision != PRECISION_BF16) {
        return ST_OK;
    }
    size_t count = graph->value_count + 1;
    struct narrowing n = {graph, calloc(count, sizeof(*n.keeps)), calloc(count, sizeof(*n.rounds)),
                          calloc(count, sizeof(*n.copies))};
    enum status status = ST_OK;
    if (!n.keeps || !n.rounds || !n.copies) {
        status = error_no_memory(err, "%u values", graph->value_count);
    } else {
        narrow_values(&n);
        status = make_copies(&n, err);
    }
    free(n.keeps);
    free(n.rounds);
    free(n.copies);
    return status;
}
