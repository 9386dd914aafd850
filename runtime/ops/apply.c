/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/ops/apply.h"

#include "base/check.h"
#include "runtime/ops/known.h"

enum status rt_op_apply(struct rt_graph *graph, const struct rt_op *op, const uint32_t *args,
                        uint32_t arg_count, enum dtype dtype, uint32_t *out_value,
                        struct error *err)
{
    uint32_t out = rt_graph_tensor(graph, dtype, 0, NULL);
    uint32_t node = rt_graph_node(graph, op, args, arg_count, &out, 1);
    TRY(rt_graph_check(graph, err));
    TRY(rt_graph_infer(graph, node, err));
    *out_value = out;
    return ST_OK;
}

enum status rt_op_convert(struct rt_graph *graph, uint32_t value, enum dtype dtype,
                          uint32_t *out_value, struct error *err)
{
    const struct rt_value *v = &graph->values[value];
    *out_value = value;
    if (v->kind == RT_NONE || v->dtype == dtype) {
        return ST_OK;
    }
    uint32_t args[] = {value, rt_graph_bool(graph, false), rt_graph_none(graph)};
    return rt_op_apply(graph, RT_OP(to_dtype), args, 3, dtype, out_value, err);
}

enum status rt_op_view(struct rt_graph *graph, uint32_t value, const struct rt_dim *dims,
                       uint8_t rank, uint32_t *out_value, struct error *err)
{
    const uint32_t args[] = {value, rt_graph_ints(graph, dims, rank)};
    return rt_op_apply(graph, RT_OP(view), args, 2, graph->values[value].dtype, out_value, err);
}

enum status rt_op_permute(struct rt_graph *graph, uint32_t value, const uint8_t *order,
                          uint8_t rank, uint32_t *out_value, struct error *err)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    must(rank <= SHAPE_RANK_MAX);
    for (uint8_t d = 0; d < rank; d++) {
        dims[d] = rt_dim_of(order[d]);
    }
    const uint32_t args[] = {value, rt_graph_ints(graph, dims, rank)};
    return rt_op_apply(graph, RT_OP(permute), args, 2, graph->values[value].dtype, out_value, err);
}
