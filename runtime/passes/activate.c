/* SPDX-License-Identifier: MIT */
/*
 * Activations behind products: if only an activation reads the output of a product or convolution,
 * the product computes it, a register tile at a time, and its own result is never stored. Runs
 * behind chain, which recognises activations that exporters write in several steps, and behind
 * expand_dw, which makes other operators of some. Only the CPU's kernels have activations.
 *
 * A product computes them as it computes its sums: numbers below the smallest normal float are
 * zero. Otherwise the results are the same bits as those of two nodes.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* The node that makes |value| for one reader, if it can compute an activation; else NULL. */
static struct rt_node *open_producer(const struct rt_rewrite *rw, uint32_t value)
{
    struct rt_graph *graph = rw->graph;
    uint32_t index = graph->values[value].node;
    if (index == RT_NO_NODE || !rt_rewrite_is_single_use(rw, value)) {
        return NULL;
    }
    struct rt_node *node = &graph->nodes[index];
    const struct rt_epilogue *e = node->op->flags & RT_OP_EPILOGUE ? node->op->detail : NULL;
    bool is_open = e && e->activation != 0 && !node->is_dead && !graph->values[value].is_half &&
                   rt_node_arg(graph, node, e->activation)->kind == RT_NONE;
    return is_open ? node : NULL;
}

static void visit(struct rt_rewrite *rw, const struct rt_node *node)
{
    struct rt_graph *graph = rw->graph;
    uint32_t value, name, out = node->outs[0];
    if (!rt_activation_find(graph, node, &value, &name)) {
        return;
    }
    struct rt_node *product = open_producer(rw, value);
    const struct rt_value *from = &graph->values[value], *to = &graph->values[out];
    if (!product || from->order != to->order || !rt_value_same_dims(from, to)) {
        return;
    }
    const struct rt_epilogue *e = product->op->detail;
    product->args[e->activation] = name;
    rt_rewrite_set_uses(rw, value, rt_rewrite_uses(rw, out));
    rt_rewrite_replace(rw, out, value);
}

enum status rt_pass_activate(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        visit(&rw, rt_rewrite_node(&rw, i));
    }
    return rt_rewrite_end(&rw, err);
}
