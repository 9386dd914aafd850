/* SPDX-License-Identifier: MIT */
/* Layers over quantised weights (runtime/ops/quant_layers.c) as products and sums of floats. If the
 * weights are constants, folding converts them once. */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/lower.h"

/* Arguments for dequantize_channels along dim 0: x, scales and a list of others. */
enum status rt_lower_mixed_mm(struct rt_graph *graph, const struct rt_node *node, uint32_t *outs,
                              struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    uint32_t x = node->args[0], weights = node->args[1], none = rt_graph_none(graph), floats;
    struct rt_dim n = graph->values[weights].dims[1];
    enum dtype dtype = rt_node_out(graph, node, 0)->dtype;
    uint32_t args[] = {
        weights,
        node->args[2],
        none,
        rt_graph_int(graph, rt_dim_of(0)),
        rt_graph_int(graph, rt_dim_of(INT8_MIN)),
        rt_graph_int(graph, rt_dim_of(INT8_MAX)),
        rt_graph_int(graph, rt_dim_of(dtype_infos[DT_I8].executorch)),
        none,
    };
    TRY(rt_op_apply(graph, RT_OP(dequantize_channels), args, 8, DT_F32, &floats, err));
    struct rt_product p = {x, floats, none, none, n, false};
    return rt_lower_product(graph, p, dtype, outs, err);
}

enum status rt_lower_mixed_linear(struct rt_graph *graph, const struct rt_node *node,
                                  uint32_t *outs, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    uint32_t x = node->args[0], weights = node->args[1], scales = node->args[2], floats;
    uint32_t none = rt_graph_none(graph);
    enum dtype dtype = rt_node_out(graph, node, 0)->dtype;
    struct rt_dim n = graph->values[weights].dims[0], k = graph->values[weights].dims[1];
    struct rt_dim dims[] = {n, rt_dim_of(1)};
    if (graph->values[scales].rank == 2) {
        dims[1] = graph->values[scales].dims[1];
    }
    TRY(rt_op_view(graph, scales, dims, 2, &scales, err));
    uint32_t args[] = {weights, scales, rt_graph_int(graph, rt_dim_of(k.value / dims[1].value))};
    TRY(rt_op_apply(graph, RT_OP(dequantize_groups), args, 3, DT_F32, &floats, err));
    struct rt_product p = {x, floats, none, none, n, true};
    return rt_lower_product(graph, p, dtype, outs, err);
}

/* The summand that begins at argument |first|, as floats; its bounds are ignored. */
static enum status widen(struct rt_graph *graph, const uint32_t *first, uint32_t *out,
                         struct error *err)
{
    enum dtype dtype = graph->values[first[0]].dtype;
    uint32_t args[] = {
        first[0],
        first[1],
        first[2],
        rt_graph_int(graph, rt_dim_of(0)),
        rt_graph_int(graph, rt_dim_of(0)),
        rt_graph_int(graph, rt_dim_of(dtype_infos[dtype].executorch)),
        rt_graph_none(graph),
    };
    return rt_op_apply(graph, RT_OP(dequantize), args, 7, DT_F32, out, err);
}

enum status rt_lower_add_quantized(struct rt_graph *graph, const struct rt_node *node,
                                   uint32_t *outs, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    enum dtype dtype = rt_node_out(graph, node, 0)->dtype;
    const uint32_t *from = node->args;
    uint32_t sum[3] = {0, 0, rt_graph_int(graph, rt_dim_of(1))};
    uint32_t args[6] = {0, from[10], from[11], from[12], from[13]};
    args[5] = rt_graph_int(graph, rt_dim_of(dtype_infos[dtype].executorch));
    TRY(widen(graph, from, &sum[0], err));
    TRY(widen(graph, from + 5, &sum[1], err));
    TRY(rt_op_apply(graph, RT_OP(add), sum, 3, DT_F32, &args[0], err));
    return rt_op_apply(graph, RT_OP(quantize), args, 6, dtype, outs, err);
}
