/* SPDX-License-Identifier: MIT */
/*
 * Memory orders. Convolutions and pools want the channels of a pixel next to each other. Operators
 * that keep the order of their arguments (element-wise operators, concatenation) stay in that
 * order. All others read any order, or get row-major arguments. So a network has islands of
 * channels-last values, with a "reorder" at their borders, and each value is reordered at most once
 * in each direction. An image that becomes large only to leave the graph is reordered before that.
 *
 * A permute between the two orders costs nothing: the bytes already have the order that its result
 * needs, so the result is only declared to have it.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

struct layout {
    struct rt_rewrite rw;
    uint32_t *row_major, *channels; /* by value: a copy in that order, 0: none yet */
};

static enum status reorder(struct layout *l, uint32_t value, const uint8_t *order, uint32_t *out,
                           struct error *err)
{
    struct rt_graph *graph = l->rw.graph;
    uint32_t *twins = order ? l->channels : l->row_major;
    *out = value;
    const struct rt_value *v = &graph->values[value];
    if (v->kind != RT_TENSOR || v->order == order || rt_value_orders_agree(v)) {
        return ST_OK;
    }
    if (rt_rewrite_has(&l->rw, value) && twins[value] != 0) {
        *out = twins[value];
        return ST_OK;
    }
    TRY(rt_op_apply(graph, RT_OP(reorder), &value, 1, v->dtype, out, err));
    graph->values[*out].order = order;
    if (rt_rewrite_has(&l->rw, value)) {
        twins[value] = *out;
    }
    return ST_OK;
}

/* Reorders argument |index| of node |node|, a tensor or a list of tensors, into |order|. */
static enum status reorder_arg(struct layout *l, uint32_t node, uint32_t index,
                               const uint8_t *order, struct error *err)
{
    struct rt_graph *graph = l->rw.graph;
    uint32_t arg = graph->nodes[node].args[index], made;
    if (graph->values[arg].kind != RT_TENSORS) {
        TRY(reorder(l, arg, order, &made, err));
        graph->nodes[node].args[index] = made;
        return ST_OK;
    }
    uint32_t count = graph->values[arg].count, *items = graph->values[arg].values;
    bool changed = false;
    uint32_t *copy = arena_array(&graph->arena, count, sizeof(*copy));
    if (!copy) {
        graph->failed = true;
        return rt_graph_check(graph, err);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(reorder(l, items[i], order, &copy[i], err));
        changed |= copy[i] != items[i];
    }
    if (changed) {
        graph->nodes[node].args[index] = rt_graph_tensors(graph, copy, count);
    }
    return rt_graph_check(graph, err);
}

static enum status reorder_args(struct layout *l, uint32_t node, const uint8_t *order,
                                struct error *err)
{
    for (uint32_t i = 0; i < l->rw.graph->nodes[node].arg_count; i++) {
        TRY(reorder_arg(l, node, i, order, err));
    }
    return ST_OK;
}

static enum status lay_channels_last(struct layout *l, uint32_t node, struct error *err)
{
    struct rt_graph *graph = l->rw.graph;
    const struct rt_op *op = graph->nodes[node].op;
    const struct rt_epilogue *e = op->flags & RT_OP_EPILOGUE ? op->detail : NULL;
    uint32_t count = graph->nodes[node].arg_count;
    struct rt_value *out = &graph->values[graph->nodes[node].outs[0]];
    const uint8_t *order = shape_channels_last(out->rank);
    out->order = order;
    for (uint32_t i = 0; i < count; i++) {
        bool wants_channels = i == 0 || (e && e->residual && i == e->residual);
        TRY(reorder_arg(l, node, i, wants_channels ? order : NULL, err));
    }
    return ST_OK;
}

/* Does the tensor |v| have the output's rank and an order other than row-major? */
static bool sets_order(const struct rt_value *v, uint8_t rank)
{
    return v->rank == rank && v->order && !v->is_packed;
}

static bool wants_channels(const struct rt_graph *graph, const struct rt_node *node, uint8_t rank)
{
    bool wants = false;
    struct rt_tensors args = rt_node_arg_tensors(graph, node);
    for (uint32_t value; rt_tensors_next(&args, &value);) {
        wants |= sets_order(&graph->values[value], rank);
    }
    return wants;
}

/* Arguments of the output's rank are reordered to the output's order; arguments with fewer dims are
 * broadcast and are read by strides as they are. All pieces of a split have one rank. */
static enum status lay_elementwise(struct layout *l, uint32_t node, struct error *err)
{
    struct rt_graph *graph = l->rw.graph;
    uint32_t count = graph->nodes[node].arg_count, piece;
    struct rt_tensors outs = rt_node_out_tensors(graph, &graph->nodes[node]);
    uint8_t rank = rt_tensors_next(&outs, &piece) ? graph->values[piece].rank : 0;
    if (!wants_channels(graph, &graph->nodes[node], rank)) {
        return ST_OK;
    }
    outs = rt_node_out_tensors(graph, &graph->nodes[node]);
    while (rt_tensors_next(&outs, &piece)) {
        graph->values[piece].order = shape_channels_last(rank);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_value *v = rt_node_arg(graph, &graph->nodes[node], i);
        if (v->kind == RT_TENSORS || (v->kind == RT_TENSOR && v->rank == rank)) {
            TRY(reorder_arg(l, node, i, shape_channels_last(rank), err));
        }
    }
    return ST_OK;
}

/* Do two orders of |v|'s dims, outermost first, give the same bytes? Dims of 1 do not matter. */
static bool same_bytes(const struct rt_value *v, const uint8_t *a, const uint8_t *b)
{
    uint8_t i = 0, j = 0;
    for (;;) {
        while (i < v->rank && rt_dim_is(v->dims[a[i]], 1)) {
            i++;
        }
        while (j < v->rank && rt_dim_is(v->dims[b[j]], 1)) {
            j++;
        }
        if (i == v->rank || j == v->rank) {
            return i == j;
        }
        if (a[i++] != b[j++]) {
            return false;
        }
    }
}

/* Gives the output |order| if that has the bytes of row-major or of channels-last; else false. */
static bool declare_order(struct rt_value *out, const uint8_t *order)
{
    uint8_t row_major[SHAPE_RANK_MAX];
    for (uint8_t d = 0; d < out->rank; d++) {
        row_major[d] = d;
    }
    const uint8_t *channels = shape_channels_last(out->rank);
    bool is_row_major = same_bytes(out, order, row_major);
    if (!is_row_major && !(channels && same_bytes(out, order, channels))) {
        return false;
    }
    out->order = is_row_major ? NULL : channels;
    return true;
}

/* If some order gives the output of a permute the bytes of the argument, the output gets it; else
 * the permute stays. */
static void lay_permute(struct layout *l, struct rt_node *node)
{
    const struct rt_value *in = rt_node_arg(l->rw.graph, node, 0);
    const struct rt_value *dims = rt_node_arg(l->rw.graph, node, 1);
    struct rt_value *out = rt_node_out(l->rw.graph, node, 0);
    uint8_t from[SHAPE_RANK_MAX], order[SHAPE_RANK_MAX];
    for (uint8_t d = 0; d < out->rank; d++) {
        from[rt_dim_from_first(dims->ints[d].value, out->rank)] = d;
    }
    for (uint8_t i = 0; i < out->rank; i++) {
        order[i] = from[in->order ? in->order[i] : i];
    }
    if (declare_order(out, order)) {
        node->op = rt_op_known(RT_KNOWN_permuted);
    }
}

/* A view that only adds or drops dims of 1 keeps the channels of a pixel together: a line of pixels
 * is an image of one row. */
static bool lay_view(struct layout *l, const struct rt_node *node)
{
    const struct rt_value *in = rt_node_arg(l->rw.graph, node, 0);
    struct rt_value *out = rt_node_out(l->rw.graph, node, 0);
    uint8_t to[SHAPE_RANK_MAX], order[SHAPE_RANK_MAX], d = 0, count = 0;
    if (!in->order || in->is_packed) {
        return false;
    }
    for (uint8_t i = 0; i < in->rank; i++) {
        if (rt_dim_is(in->dims[i], 1)) {
            continue;
        }
        while (d < out->rank && rt_dim_is(out->dims[d], 1)) {
            d++;
        }
        if (d == out->rank || !rt_dim_same(out->dims[d], in->dims[i])) {
            return false;
        }
        to[i] = d++;
    }
    for (uint8_t i = 0; i < in->rank; i++) {
        if (!rt_dim_is(in->dims[in->order[i]], 1)) {
            order[count++] = to[in->order[i]];
        }
    }
    for (d = 0; d < out->rank; d++) {
        if (rt_dim_is(out->dims[d], 1)) {
            order[count++] = d;
        }
    }
    return count == out->rank && declare_order(out, order);
}

static bool leaves_graph(const struct rt_graph *graph, uint32_t value)
{
    bool leaves = false;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        leaves |= graph->outputs[i] == value;
    }
    return leaves;
}

static enum status lay_node(struct layout *l, uint32_t node, struct error *err)
{
    struct rt_node *n = &l->rw.graph->nodes[node];
    if (rt_op_is(n->op, RT_KNOWN_permute)) {
        lay_permute(l, n);
        return ST_OK;
    }
    if ((n->op->flags & RT_OP_VIEW) && n->op->layout == RT_LAYOUT_ROW_MAJOR && lay_view(l, n)) {
        return ST_OK;
    }
    switch (n->op->layout) {
    case RT_LAYOUT_ANY:
        return ST_OK;
    case RT_LAYOUT_ROW_MAJOR:
        return reorder_args(l, node, NULL, err);
    case RT_LAYOUT_CHANNELS_LAST:
        return lay_channels_last(l, node, err);
    case RT_LAYOUT_CHANNELS_INSIDE:
        return leaves_graph(l->rw.graph, n->outs[0]) ? reorder_args(l, node, NULL, err)
                                                     : lay_channels_last(l, node, err);
    case RT_LAYOUT_ELEMENTWISE:
        return lay_elementwise(l, node, err);
    }
    return ST_OK;
}

enum status rt_pass_layout(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct layout l;
    TRY(rt_rewrite_begin(&l.rw, graph, err));
    l.row_major = arena_array(&graph->arena, graph->value_count, sizeof(*l.row_major));
    l.channels = arena_array(&graph->arena, graph->value_count, sizeof(*l.channels));
    graph->failed |= !l.row_major || !l.channels;
    TRY(rt_graph_check(graph, err));
    for (uint32_t i = 0; i < l.rw.node_count; i++) {
        TRY(lay_node(&l, i, err));
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        TRY(reorder(&l, graph->outputs[i], NULL, &graph->outputs[i], err));
    }
    return rt_rewrite_end(&l.rw, err);
}
