/* SPDX-License-Identifier: MIT */
/*
 * Epilogues: if only a clamp or a residual addition reads the output of a product or convolution,
 * it becomes part of that. So does rounding to halves if a value is narrowed and then widened
 * again: a result that is rounded where it is made needs no conversions between products. A clamp
 * of halves moves before the rounding; as its bounds round to themselves, the result is the same.
 */
#include "config.h"

#include <math.h>

#include "base/check.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* Reads the bounds of a node that clamps its argument 0 to fixed numbers; false for other nodes. */
static bool read_clamp(const struct rt_graph *graph, const struct rt_node *node, double *min,
                       double *max)
{
    *min = -INFINITY;
    *max = INFINITY;
    if (rt_op_is(node->op, RT_KNOWN_relu)) {
        *min = 0;
        return true;
    }
    if (!rt_op_is(node->op, RT_KNOWN_hardtanh) && !rt_op_is(node->op, RT_KNOWN_clamp)) {
        return false;
    }
    const struct rt_value *lo = rt_node_arg(graph, node, 1), *hi = rt_node_arg(graph, node, 2);
    *min = lo->kind == RT_NONE ? -INFINITY : rt_value_number(lo);
    *max = hi->kind == RT_NONE ? INFINITY : rt_value_number(hi);
    return rt_value_is_fixed(lo) && rt_value_is_fixed(hi);
}

/* Does the node that makes |value| round its result to halves? */
static bool is_rounded(const struct rt_rewrite *rw, uint32_t value)
{
    return rw->graph->values[value].is_half;
}

/* The node that makes |value| if it has an epilogue, no clamp or rounding yet, and a single reader;
 * else NULL. */
static struct rt_node *open_producer(const struct rt_rewrite *rw, uint32_t value)
{
    const struct rt_graph *graph = rw->graph;
    uint32_t index = graph->values[value].node;
    if (index == RT_NO_NODE || !rt_rewrite_is_single_use(rw, value)) {
        return NULL;
    }
    struct rt_node *node = &graph->nodes[index];
    const struct rt_epilogue *e = node->op->detail;
    if (!(node->op->flags & RT_OP_EPILOGUE) || node->is_dead || is_rounded(rw, value) ||
        rt_node_arg(graph, node, e->min)->f != -INFINITY ||
        rt_node_arg(graph, node, e->max)->f != INFINITY) {
        return NULL;
    }
    return node;
}

/* The users of |from| use |node|'s output from now on. */
static void take_over(struct rt_rewrite *rw, struct rt_node *node, uint32_t from)
{
    rt_rewrite_set_uses(rw, node->outs[0], rt_rewrite_uses(rw, from));
    rt_rewrite_replace(rw, from, node->outs[0]);
}

/* The node that makes |value| by narrowing floats to halves, or NULL. */
static struct rt_node *narrowing(const struct rt_rewrite *rw, uint32_t value)
{
    struct rt_node *node = rt_rewrite_producer(rw, value, RT_KNOWN_to_dtype);
    bool narrows = node && rw->graph->values[value].dtype == DT_F16 &&
                   rt_node_arg(rw->graph, node, 0)->dtype == DT_F32;
    return narrows ? node : NULL;
}

static void set_bounds(struct rt_graph *graph, struct rt_node *node, double min, double max)
{
    const struct rt_epilogue *e = node->op->detail;
    uint32_t least = rt_graph_float(graph, min), most = rt_graph_float(graph, max);
    node->args[e->min] = least;
    node->args[e->max] = most;
}

static void fuse_clamp(struct rt_rewrite *rw, const struct rt_node *clamp, double min, double max)
{
    struct rt_graph *graph = rw->graph;
    uint32_t value = clamp->args[0];
    struct rt_node *narrow = narrowing(rw, value), *node;
    node = open_producer(rw, narrow ? narrow->args[0] : value);
    if (!node || (narrow && !rt_rewrite_is_single_use(rw, value)) ||
        rt_node_out(graph, clamp, 0)->dtype != (narrow ? DT_F16 : DT_F32)) {
        return;
    }
    set_bounds(graph, node, min, max);
    take_over(rw, narrow ? narrow : node, clamp->outs[0]);
}

/* Is |node| a product that can round its result? */
static bool can_round(const struct rt_node *node)
{
    const struct rt_epilogue *e = node->op->flags & RT_OP_EPILOGUE ? node->op->detail : NULL;
    return e && e->rounds;
}

/* Exporters store some half-precision weights as floats. If the other operand is halves, it pays to
 * recognise them; for most other weights the check ends at the first number. */
static void recognise_halves(struct rt_graph *graph, const struct rt_node *product)
{
    struct rt_value *weights = rt_node_arg(graph, product, 1);
    if (rt_node_arg(graph, product, 0)->is_half && weights->is_constant && !weights->is_half) {
        weights->is_half = rt_convert_are_halves((const float *)(const void *)weights->bytes.ptr,
                                                 weights->bytes.len / sizeof(float));
    }
}

/* Floats that are narrowed and then widened here are rounded by the node that makes them. */
static void fuse_rounding(struct rt_rewrite *rw, const struct rt_node *widen)
{
    struct rt_graph *graph = rw->graph;
    const struct rt_node *narrow = narrowing(rw, widen->args[0]);
    if (!narrow || rt_node_out(graph, widen, 0)->dtype != DT_F32) {
        return;
    }
    uint32_t value = narrow->args[0], producer = graph->values[value].node;
    bool rounds = producer != RT_NO_NODE && can_round(&graph->nodes[producer]);
    if (!rounds || !(is_rounded(rw, value) || rt_rewrite_is_single_use(rw, value))) {
        return;
    }
    graph->values[value].is_half = true;
    uint32_t uses = rt_rewrite_uses(rw, value) + rt_rewrite_uses(rw, widen->outs[0]);
    rt_rewrite_set_uses(rw, value, uses);
    rt_rewrite_replace(rw, widen->outs[0], value);
}

/* Adds argument |other| inside the producer of argument |sum|. This cannot make a cycle: only this
 * addition reads the producer, so the other argument does not depend on it. */
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
    if (rt_value_is_fixed(alpha) && rt_value_number(alpha) == 1 && !try_residual(rw, add, 0, 1)) {
        try_residual(rw, add, 1, 0);
    }
}

enum status rt_pass_fuse(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        double min, max;
        if (read_clamp(graph, node, &min, &max)) {
            fuse_clamp(&rw, node, min, max);
        } else if (rt_op_is(node->op, RT_KNOWN_to_dtype)) {
            fuse_rounding(&rw, node);
        } else if (rt_op_is(node->op, RT_KNOWN_add)) {
            fuse_add(&rw, node);
        } else if (can_round(node)) {
            recognise_halves(graph, node);
        }
    }
    return rt_rewrite_end(&rw, err);
}
