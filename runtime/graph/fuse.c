/* SPDX-License-Identifier: MIT */
/*
 * Epilogues: a clamp or a residual addition that follows a product or convolution, and nothing else
 * that reads its output, becomes part of it.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "runtime/graph/passes.h"
#include "runtime/graph/rewrite.h"
#include "runtime/ops/op.h"

/* The bounds of a node that clamps its argument 0 to fixed numbers; false when it is none. */
static bool read_clamp(const struct rt_graph *graph, const struct rt_node *node, double *min,
                       double *max)
{
    *min = -INFINITY;
    *max = INFINITY;
    if (strcmp(node->op->name, "relu") == 0) {
        *min = 0;
        return true;
    }
    if (strcmp(node->op->name, "hardtanh") != 0 && strcmp(node->op->name, "clamp") != 0) {
        return false;
    }
    const struct rt_value *lo = rt_node_arg(graph, node, 1), *hi = rt_node_arg(graph, node, 2);
    *min = lo->kind == RT_NONE ? -INFINITY : rt_arg_number(lo);
    *max = hi->kind == RT_NONE ? INFINITY : rt_arg_number(hi);
    return rt_value_is_fixed(lo) && rt_value_is_fixed(hi);
}

/* The node that makes |value| if it has an epilogue, no clamp yet, and nobody else reads it. */
static struct rt_node *open_producer(const struct rt_rewrite *rw, uint32_t value)
{
    const struct rt_graph *graph = rw->graph;
    uint32_t index = graph->values[value].node;
    if (index == RT_NO_NODE || !rt_rewrite_is_single_use(rw, value)) {
        return NULL;
    }
    struct rt_node *node = &graph->nodes[index];
    const struct rt_epilogue *e = node->op->detail;
    if (!(node->op->flags & RT_OP_EPILOGUE) || node->is_dead ||
        rt_node_arg(graph, node, e->min)->f != -INFINITY ||
        rt_node_arg(graph, node, e->max)->f != INFINITY) {
        return NULL;
    }
    return node;
}

/* |from|, whose users now mean |node|'s output. The output inherits them. */
static void take_over(struct rt_rewrite *rw, struct rt_node *node, uint32_t from)
{
    rw->uses[node->outs[0]] = rw->uses[from];
    rt_rewrite_replace(rw, from, node->outs[0]);
}

static void fuse_clamp(struct rt_rewrite *rw, const struct rt_node *clamp, double min, double max)
{
    struct rt_graph *graph = rw->graph;
    struct rt_node *node = open_producer(rw, clamp->args[0]);
    if (!node || rt_node_out(graph, clamp, 0)->dtype != DT_F32) {
        return;
    }
    const struct rt_epilogue *e = node->op->detail;
    node->args[e->min] = rt_graph_float(graph, min);
    node->args[e->max] = rt_graph_float(graph, max);
    take_over(rw, node, clamp->outs[0]);
}

/*
 * Adds argument |other| inside the producer of argument |sum|. That cannot make a cycle: nobody but
 * this addition reads the producer, so the other argument does not depend on it.
 */
static bool try_residual(struct rt_rewrite *rw, const struct rt_node *add, uint32_t sum,
                         uint32_t other)
{
    struct rt_graph *graph = rw->graph;
    struct rt_node *node = open_producer(rw, add->args[sum]);
    const struct rt_value *residual = rt_node_arg(graph, add, other);
    if (!node || add->args[sum] == add->args[other] || residual->dtype != DT_F32 ||
        !rt_value_same_dims(residual, rt_node_out(graph, add, 0)) ||
        !rt_value_same_dims(residual, rt_node_out(graph, node, 0))) {
        return false;
    }
    const struct rt_epilogue *e = node->op->detail;
    if (e->residual == 0 || rt_node_arg(graph, node, e->residual)->kind != RT_NONE) {
        return false;
    }
    node->args[e->residual] = add->args[other];
    take_over(rw, node, add->outs[0]);
    return true;
}

static void fuse_add(struct rt_rewrite *rw, const struct rt_node *add)
{
    const struct rt_value *alpha = rt_node_arg(rw->graph, add, 2);
    if (rt_value_is_fixed(alpha) && rt_arg_number(alpha) == 1 && !try_residual(rw, add, 0, 1)) {
        try_residual(rw, add, 1, 0);
    }
}

enum status rt_pass_fuse(struct rt_graph *graph, struct error *err)
{
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        double min, max;
        if (read_clamp(graph, node, &min, &max)) {
            fuse_clamp(&rw, node, min, max);
        } else if (strcmp(node->op->name, "add") == 0) {
            fuse_add(&rw, node);
        }
    }
    return rt_rewrite_end(&rw, err);
}
