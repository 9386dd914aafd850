/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of lines. XNNPACK has no convolution of one axis, so exporters make an image of one
 * column of each line, convolve that, and make a line of the result:
 *
 *     view, convolution of [N, C, L, 1], view, activation of [N, C, L], view, convolution ...
 *
 * This pass makes convolutions of [N, C, L] of them, moves activations of images of one column in
 * front of the view, and joins views. Then the operators around a convolution stand next to it, so
 * that later passes merge them, and all taps of a kernel are one row, whose products are one sum.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

enum { LINE_RANK = 3, ACTIVATION_ARGS = 4 };

/* What |value| is a view of, if it is one that changes no type; else |value|. */
static uint32_t under_view(const struct rt_rewrite *rw, uint32_t value)
{
    const struct rt_node *view = rt_rewrite_producer(rw, value, RT_KNOWN_view);
    return view ? view->args[0] : value;
}

/* Does |image| have the dims of |line|, and a dim of 1 at |axis|? */
static bool is_line(const struct rt_value *line, const struct rt_value *image, uint8_t axis)
{
    bool is = line->kind == RT_TENSOR && line->rank == LINE_RANK && image->rank == LINE_RANK + 1;
    for (uint8_t d = 0; is && d <= LINE_RANK; d++) {
        is = d == axis ? rt_dim_is(image->dims[d], 1)
                       : rt_dim_same(image->dims[d], line->dims[d - (d > axis)]);
    }
    return is;
}

/* A list of one entry for each of two axes, or for both: that of |axis|. An empty list has none. */
static struct rt_dim entry(const struct rt_value *list, uint32_t axis)
{
    return list->count == 0 ? rt_dim_of(0) : list->ints[list->count == 1 ? 0 : axis];
}

static uint32_t entry_list(struct rt_graph *graph, uint32_t list, uint32_t axis)
{
    const struct rt_value *v = &graph->values[list];
    if (v->count == 0) {
        return list;
    }
    struct rt_dim one = entry(v, axis);
    return rt_graph_ints(graph, &one, 1);
}

/* The axis of a convolution of two axes along which there is one pixel and one tap; 0: none. */
static uint8_t unit_axis(const struct rt_rewrite *rw, const struct rt_node *node)
{
    const struct rt_graph *graph = rw->graph;
    const struct rt_value *x = rt_node_arg(graph, node, RT_CONV_X);
    const struct rt_value *line = &graph->values[under_view(rw, node->args[RT_CONV_X])];
    const struct rt_value *w = rt_node_arg(graph, node, RT_CONV_W);
    const struct rt_value *padding = rt_node_arg(graph, node, RT_CONV_PADDING);
    for (uint8_t axis = LINE_RANK; axis > 1 && w->rank == LINE_RANK + 1; axis--) {
        if (is_line(line, x, axis) && rt_dim_is(w->dims[axis], 1) &&
            rt_dim_is(entry(padding, axis - 2U), 0) &&
            rt_dim_is(rt_node_out(graph, node, 0)->dims[axis], 1)) {
            return axis;
        }
    }
    return 0;
}

static enum status make_line(struct rt_rewrite *rw, const struct rt_node *node, uint8_t unit,
                             struct error *err)
{
    struct rt_graph *graph = rw->graph;
    uint32_t from = node->outs[0], args[RT_CONV_ARGS], other = unit == 2 ? 1 : 0, out;
    struct rt_value image = graph->values[from];
    const struct rt_value *w = rt_node_arg(graph, node, RT_CONV_W);
    struct rt_dim dims[LINE_RANK] = {w->dims[0], w->dims[1], w->dims[2 + other]};
    static const uint8_t lists[] = {RT_CONV_STRIDE, RT_CONV_PADDING, RT_CONV_DILATION,
                                    RT_CONV_OUTPUT_PADDING};
    for (uint32_t i = 0; i < RT_CONV_ARGS; i++) {
        args[i] = node->args[i];
    }
    for (uint32_t i = 0; i < sizeof(lists); i++) {
        args[lists[i]] = entry_list(graph, args[lists[i]], other);
    }
    args[RT_CONV_X] = under_view(rw, args[RT_CONV_X]);
    TRY(rt_op_view(graph, args[RT_CONV_W], dims, LINE_RANK, &args[RT_CONV_W], err));
    TRY(rt_op_apply(graph, RT_OP(convolution), args, RT_CONV_ARGS, image.dtype, &out, err));
    TRY(rt_op_view(graph, out, image.dims, image.rank, &out, err));
    rt_rewrite_replace(rw, from, out);
    return ST_OK;
}

/* An operator that computes number by number, of a line seen as an image. */
static enum status move_activation(struct rt_rewrite *rw, const struct rt_node *node,
                                   struct error *err)
{
    struct rt_graph *graph = rw->graph;
    uint32_t from = node->outs[0], args[ACTIVATION_ARGS], out;
    struct rt_value image = graph->values[from];
    args[0] = under_view(rw, node->args[0]);
    bool moves = node->arg_count <= ACTIVATION_ARGS && args[0] != node->args[0] &&
                 is_line(&graph->values[args[0]], &image, LINE_RANK) &&
                 rt_value_same_dims(rt_node_arg(graph, node, 0), &image);
    for (uint32_t i = 1; i < node->arg_count && moves; i++) {
        args[i] = node->args[i];
        moves = rt_node_arg(graph, node, i)->kind != RT_TENSOR;
    }
    if (!moves) {
        return ST_OK;
    }
    TRY(rt_op_apply(graph, node->op, args, node->arg_count, image.dtype, &out, err));
    TRY(rt_op_view(graph, out, image.dims, image.rank, &out, err));
    rt_rewrite_replace(rw, from, out);
    return ST_OK;
}

/* A view of a view is one view, or nothing if it has the dims of what is under both. */
static enum status join_views(struct rt_rewrite *rw, const struct rt_node *node, struct error *err)
{
    struct rt_graph *graph = rw->graph;
    uint32_t from = node->outs[0], inner = under_view(rw, node->args[0]), out = inner;
    struct rt_value v = graph->values[from];
    if (inner == node->args[0]) {
        return ST_OK;
    }
    if (!rt_value_same_dims(&graph->values[inner], &v)) {
        TRY(rt_op_view(graph, inner, v.dims, v.rank, &out, err));
    }
    rt_rewrite_replace(rw, from, out);
    return ST_OK;
}

enum status rt_pass_lines(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        uint8_t unit = rt_op_is(node->op, RT_KNOWN_convolution) ? unit_axis(&rw, node) : 0;
        if (unit != 0) {
            TRY(make_line(&rw, node, unit, err));
        } else if (rt_op_is(node->op, RT_KNOWN_view)) {
            TRY(join_views(&rw, node, err));
        } else if ((node->op->flags & RT_OP_POINTWISE) && node->out_count == 1) {
            TRY(move_activation(&rw, node, err));
        }
    }
    return rt_rewrite_end(&rw, err);
}
