/* SPDX-License-Identifier: MIT */
/* Symbolic shape inference: see passes.h. */
#include "config.h"

#include "base/check.h"
#include "runtime/graph/passes.h"
#include "runtime/ops/op.h"

static enum status infer_node(struct rt_graph *graph, const struct rt_node *node,
                              struct error *err)
{
    struct rt_shape_call call = {graph, node, err};
    enum status status = node->op->shape(&call);
    if (status == ST_OK) {
        return rt_graph_check(graph, err);
    }
    if (node->origin != UINT32_MAX) {
        return error_prefix(err, "instruction %u, %s: ", node->origin, node->op->name);
    }
    return error_prefix(err, "%s: ", node->op->name);
}

static enum status infer_all(struct rt_graph *graph, struct error *err)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        TRY(infer_node(graph, &graph->nodes[i], err));
    }
    return ST_OK;
}

enum status rt_pass_infer(struct rt_graph *graph, struct error *err)
{
    TRY(infer_all(graph, err));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        struct rt_value *input = &graph->values[graph->inputs[i]];
        for (uint8_t d = 0; input->kind == RT_TENSOR && d < input->rank; d++) {
            input->dims[d] = rt_dim_resolve(&graph->dims, input->dims[d]);
        }
    }
    graph->dims.requirement_count = 0;
    return infer_all(graph, err);
}
