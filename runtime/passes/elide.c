/* SPDX-License-Identifier: MIT */
/*
 * Removes copies that change nothing: see passes.h. A value is written only once, so a copy with
 * the same type and dims is the value itself. Exporters write many copies to keep buffers apart
 * that do not exist here.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* The last argument that is a tensor: the source of an RT_OP_COPY. */
static uint32_t source_of(const struct rt_graph *graph, const struct rt_node *node)
{
    for (uint32_t i = node->arg_count; i-- > 0;) {
        if (rt_node_arg(graph, node, i)->kind == RT_TENSOR) {
            return node->args[i];
        }
    }
    return 0;
}

enum status rt_pass_elide(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        if (!(node->op->flags & RT_OP_COPY)) {
            continue;
        }
        uint32_t from = source_of(graph, node), to = node->outs[0];
        const struct rt_value *a = &graph->values[from], *b = &graph->values[to];
        if (a->kind == RT_TENSOR && a->dtype == b->dtype && rt_value_same_dims(a, b)) {
            rt_rewrite_replace(&rw, to, from);
        }
    }
    return rt_rewrite_end(&rw, err);
}
