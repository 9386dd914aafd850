/* SPDX-License-Identifier: MIT */
/*
 * Values in memory as bfloat16. A product whose weights are bfloat16 rounds its input to that, too.
 * If such products are all that reads a value, possibly through views, the node that makes it may
 * as well round it: the results are the same bits, and half the bytes are written and read.
 */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"

/* By value. */
struct narrowing {
    struct rt_graph *graph;
    bool *keeps; /* has readers that need floats */
};

/* Are the node's weights bfloat16? */
static bool is_product(const struct rt_graph *graph, const struct rt_node *node)
{
    return (rt_op_is(node->op, RT_KNOWN_gemm) || rt_op_is(node->op, RT_KNOWN_conv)) &&
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

/* Can the node store its results as bfloat16? */
static bool rounds(const struct rt_graph *graph, const struct rt_node *node)
{
    bool is_pointwise = (node->op->flags & RT_OP_POINTWISE) && !(node->op->flags & RT_OP_COPY) &&
                        !rt_op_is(node->op, RT_KNOWN_chain);
    return is_product(graph, node) || is_pointwise || rt_op_is(node->op, RT_KNOWN_layer_norm);
}

static bool is_float(const struct rt_value *v)
{
    return v->kind == RT_TENSOR && v->dtype == DT_F32 && !v->is_half && !v->is_constant &&
           !v->is_packed;
}

/* Marks what |node| has to read as floats. Its own readers have been looked at. */
static void mark_arguments(struct narrowing *n, const struct rt_node *node)
{
    bool takes_bf16 = is_product(n->graph, node) ||
                      (moves(n->graph, node) && is_float(rt_node_out(n->graph, node, 0)) &&
                       !n->keeps[node->outs[0]]);
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const struct rt_value *v = rt_node_arg(n->graph, node, i);
        for (uint32_t item = 0; v->kind == RT_TENSORS && item < v->count; item++) {
            n->keeps[v->values[item]] = true;
        }
        n->keeps[node->args[i]] |= i > 0 || !takes_bf16;
    }
}

static void narrow_outputs(struct narrowing *n, const struct rt_node *node)
{
    struct rt_graph *graph = n->graph;
    bool follows = moves(graph, node) && rt_node_arg(graph, node, 0)->dtype == DT_BF16;
    struct rt_value *out = rt_node_out(graph, node, 0);
    if ((follows || rounds(graph, node)) && is_float(out) && !n->keeps[node->outs[0]]) {
        out->dtype = DT_BF16;
    }
}

enum status rt_pass_narrow(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    if (graph->precision != PRECISION_BF16) {
        return ST_OK;
    }
    struct narrowing n = {graph, calloc(graph->value_count + 1, sizeof(bool))};
    if (!n.keeps) {
        return error_set(err, ST_EXHAUSTED, "no memory for %u values", graph->value_count);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        n.keeps[graph->outputs[i]] = true;
    }
    for (uint32_t i = graph->node_count; i-- > 0;) {
        mark_arguments(&n, &graph->nodes[i]);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        narrow_outputs(&n, &graph->nodes[i]);
    }
    free(n.keeps);
    return ST_OK;
}
