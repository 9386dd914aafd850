/* SPDX-License-Identifier: MIT */
/* Replaces solved symbols in sizes: see passes.def. */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"

static void resolve_value(struct rt_dims *dims, struct rt_value *v)
{
    if (v->kind == RT_INT) {
        v->i = rt_dim_resolve(dims, v->i);
    }
    struct rt_dim *items = v->kind == RT_TENSOR ? v->dims : v->kind == RT_INTS ? v->ints : NULL;
    uint32_t count = v->kind == RT_TENSOR ? v->rank : v->count;
    for (uint32_t i = 0; items && i < count; i++) {
        items[i] = rt_dim_resolve(dims, items[i]);
    }
}

/* Drops requirements that are now always true. */
static void resolve_requirements(struct rt_dims *dims)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < dims->requirement_count; i++) {
        struct rt_requirement r = dims->requirements[i];
        r.a = rt_dim_resolve(dims, r.a);
        r.b = rt_dim_resolve(dims, r.b);
        if (!rt_dim_same(r.a, r.b)) {
            dims->requirements[kept++] = r;
        }
    }
    dims->requirement_count = kept;
}

enum status rt_pass_resolve(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    for (uint32_t i = 0; i < graph->value_count; i++) {
        resolve_value(&graph->dims, &graph->values[i]);
    }
    resolve_requirements(&graph->dims);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct rt_node *node = &graph->nodes[i];
        if (!(node->op->flags & RT_OP_SCALAR)) {
            continue;
        }
        node->is_dead = true;
        for (uint32_t j = 0; j < node->out_count; j++) {
            rt_node_out(graph, node, j)->node = RT_NO_NODE;
        }
    }
    return rt_graph_compact(graph, err);
}
