/* SPDX-License-Identifier: MIT */
/*
 * Rows that a mask hides: where all numbers of a row are -inf, softmax gives NaN, and PyTorch's
 * attention is exported with a check that gives zeros instead:
 *
 *     where(not any(not (x == -inf), dim), zeros, softmax(x, dim))
 *
 * One operator computes that without writing masks as large as x.
 */
#include "config.h"

#include <math.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

static bool is_number(const struct rt_value *v, double number)
{
    return rt_value_is_fixed(v) && rt_value_number(v) == number;
}

/* Argument 0 of the node that makes |value|, if its operator is |op|; else 0, which is no value. */
static uint32_t under(const struct rt_rewrite *rw, uint32_t value, enum rt_known op)
{
    const struct rt_node *node = rt_rewrite_producer(rw, value, op);
    return node ? node->args[0] : 0;
}

/* x, if |condition| is true for the rows along |dim| of x that are -inf everywhere; else 0. */
static uint32_t hidden_rows_of(const struct rt_rewrite *rw, uint32_t condition, int64_t dim)
{
    const struct rt_graph *graph = rw->graph;
    uint32_t value = under(rw, condition, RT_KNOWN_logical_not);
    const struct rt_node *any = rt_rewrite_producer(rw, value, RT_KNOWN_any);
    if (!any || !is_number(rt_node_arg(graph, any, 1), (double)dim) ||
        !rt_node_arg(graph, any, 2)->b) {
        return 0;
    }
    value = under(rw, any->args[0], RT_KNOWN_logical_not);
    const struct rt_node *equal = rt_rewrite_producer(rw, value, RT_KNOWN_eq_scalar);
    return equal && is_number(rt_node_arg(graph, equal, 1), -INFINITY) ? equal->args[0] : 0;
}

static bool is_zeros(const struct rt_rewrite *rw, uint32_t value)
{
    const struct rt_node *zeros = rt_rewrite_producer(rw, value, RT_KNOWN_full_like);
    return zeros && is_number(rt_node_arg(rw->graph, zeros, 1), 0);
}

static enum status try_where(struct rt_rewrite *rw, const struct rt_node *where, struct error *err)
{
    struct rt_graph *graph = rw->graph;
    const struct rt_value *out = rt_node_out(graph, where, 0);
    const struct rt_node *softmax = rt_rewrite_producer(rw, where->args[2], RT_KNOWN_softmax);
    uint32_t from = where->outs[0], made;
    if (!softmax || out->dtype != DT_F32 || !is_zeros(rw, where->args[1]) ||
        !rt_value_same_dims(out, rt_node_out(graph, softmax, 0)) ||
        !rt_value_is_fixed(rt_node_arg(graph, softmax, 1))) {
        return ST_OK;
    }
    uint32_t args[] = {softmax->args[0], softmax->args[1]};
    int64_t dim = (int64_t)rt_value_number(&graph->values[args[1]]);
    if (hidden_rows_of(rw, where->args[0], dim) == args[0]) {
        TRY(rt_op_apply(graph, RT_OP(softmax_masked), args, 2, DT_F32, &made, err));
        rt_rewrite_replace(rw, from, made);
    }
    return ST_OK;
}

enum status rt_pass_softmax(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        if (rt_op_is(node->op, RT_KNOWN_where)) {
            TRY(try_where(&rw, node, err));
        }
    }
    return rt_rewrite_end(&rw, err);
}
