/* SPDX-License-Identifier: MIT */
/* Operators that exporters of language models write (runtime/ops/llm.c) as operators that have
 * kernels. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/lower.h"

/* The element that an update returns and that is never read. */
static enum status make_unread(struct rt_graph *graph, const struct rt_node *node, uint32_t *out,
                               struct error *err)
{
    const struct rt_dim one = rt_dim_of(1);
    uint32_t size = rt_graph_ints(graph, &one, 1);
    return rt_op_apply(graph, RT_OP(zeros), &size, 1, rt_node_out(graph, node, 0)->dtype, out, err);
}

static enum status write_rows(struct rt_graph *graph, const struct rt_op *op, uint32_t cache,
                              uint32_t value, uint32_t place, uint32_t *out, struct error *err)
{
    uint32_t args[] = {cache, value, place};
    return rt_op_apply(graph, op, args, 3, graph->values[cache].dtype, out, err);
}

/* Arguments: value, cache, start. */
enum status rt_lower_update_cache(struct rt_graph *graph, const struct rt_node *node,
                                  uint32_t *outs, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    TRY(write_rows(graph, RT_OP(write_rows), node->args[1], node->args[0], node->args[2], &outs[1],
                   err));
    return make_unread(graph, node, &outs[0], err);
}

/* Arguments: value, cache, a start that is ignored, places. */
enum status rt_lower_update_cache_at(struct rt_graph *graph, const struct rt_node *node,
                                     uint32_t *outs, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    TRY(write_rows(graph, RT_OP(write_rows_at), node->args[1], node->args[0], node->args[3],
                   &outs[1], err));
    return make_unread(graph, node, &outs[0], err);
}

/* Arguments: q, k, v, both caches, start, length, mask, dropout, is_causal, scale. */
enum status rt_lower_attention_cached(struct rt_graph *graph, const struct rt_node *node,
                                      uint32_t *outs, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    enum dtype dtype = rt_node_out(graph, node, 0)->dtype;
    uint32_t from[11];
    memcpy(from, node->args, sizeof(from));
    TRY(write_rows(graph, RT_OP(write_rows), from[3], from[1], from[5], &outs[1], err));
    TRY(write_rows(graph, RT_OP(write_rows), from[4], from[2], from[5], &outs[2], err));
    uint32_t args[] = {from[0], outs[1], outs[2], from[5], from[7], from[8], from[9], from[10]};
    return rt_op_apply(graph, RT_OP(attention), args, 8, dtype, outs, err);
}

/* Arguments: q, k, v, start, mask, dropout, is_causal, scale, the zero points and scales of q, k
 * and v, whether heads come first. */
enum status rt_lower_attention_quantized(struct rt_graph *graph, const struct rt_node *node,
                                         uint32_t *outs, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    enum dtype dtype = rt_node_out(graph, node, 0)->dtype;
    uint32_t from[15];
    memcpy(from, node->args, sizeof(from));
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t args[] = {
            from[i],
            from[9 + 2 * i],
            from[8 + 2 * i],
            rt_graph_int(graph, rt_dim_of(INT8_MIN)),
            rt_graph_int(graph, rt_dim_of(INT8_MAX)),
            rt_graph_int(graph, rt_dim_of(dtype_infos[DT_I8].executorch)),
            rt_graph_int(graph, rt_dim_of(dtype_infos[DT_F32].executorch)),
        };
        TRY(rt_op_apply(graph, RT_OP(dequantize_rows), args, 7, DT_F32, &from[i], err));
    }
    bool heads_first = graph->values[from[14]].b;
    return rt_op_apply(graph, heads_first ? RT_OP(attention_heads) : RT_OP(attention), from, 8,
                       dtype, outs, err);
}

/* [c, h, w] as [h / t, w / t, c, t, t], with the first two dims joined. */
enum status rt_lower_tile_crop(struct rt_graph *graph, const struct rt_node *node, uint32_t *outs,
                               struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    static const uint8_t order[5] = {1, 3, 0, 2, 4};
    struct rt_dim dims[4];
    const struct rt_value *image = rt_node_arg(graph, node, 0);
    memcpy(dims, rt_node_out(graph, node, 0)->dims, sizeof(dims));
    int64_t side = rt_node_arg(graph, node, 1)->i.value;
    struct rt_dim cut[5] = {image->dims[0], rt_dim_of(image->dims[1].value / side), rt_dim_of(side),
                            rt_dim_of(image->dims[2].value / side), rt_dim_of(side)};
    uint32_t value;
    TRY(rt_op_view(graph, node->args[0], cut, 5, &value, err));
    TRY(rt_op_permute(graph, value, order, 5, &value, err));
    return rt_op_view(graph, value, dims, 4, outs, err);
}
