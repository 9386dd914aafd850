/* SPDX-License-Identifier: MIT */
/* Complex numbers made of two tensors of reals, and their angles, by views of pairs: see
 * passes.def. */
#include "config.h"

#include "base/check.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/lower.h"

/* |value| with the dims of |like|, to which it can be broadcast. */
static enum status expand_as(struct rt_graph *graph, uint32_t *value, uint32_t like,
                             struct error *err)
{
    const struct rt_value *v = &graph->values[*value], *to = &graph->values[like];
    bool is_same = v->rank == to->rank;

    for (uint8_t d = 0; is_same && d < v->rank; d++) {
        is_same = rt_dim_same(v->dims[d], to->dims[d]);
    }
    if (is_same) {
        return ST_OK;
    }
    enum dtype dtype = v->dtype;
    uint32_t args[] = {*value, rt_graph_ints(graph, to->dims, to->rank),
                       rt_graph_bool(graph, false)};
    return rt_op_apply(graph, RT_OP(expand), args, 3, dtype, value, err);
}

/* |parts|: real and imaginary, with the dims of |like|. */
static enum status join_parts(struct rt_graph *graph, const uint32_t parts[2], uint32_t like,
                              uint32_t *out, struct error *err)
{
    uint32_t both[] = {parts[0], parts[1]}, pairs;

    TRY(expand_as(graph, &both[0], like, err));
    TRY(expand_as(graph, &both[1], like, err));
    enum dtype dtype = graph->values[both[0]].dtype;
    uint32_t args[] = {rt_graph_tensors(graph, both, 2), rt_graph_int(graph, rt_dim_of(-1))};
    TRY(rt_op_apply(graph, RT_OP(stack), args, 2, dtype, &pairs, err));
    return rt_op_apply(graph, RT_OP(view_as_complex), &pairs, 1, rt_convert_complex(dtype), out,
                       err);
}

enum status rt_lower_complex(struct rt_graph *graph, const struct rt_node *node,
                             uint32_t outs[RT_LOWER_OUTS_MAX], struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    return join_parts(graph, node->args, node->outs[0], &outs[0], err);
}

enum status rt_lower_polar(struct rt_graph *graph, const struct rt_node *node,
                           uint32_t outs[RT_LOWER_OUTS_MAX], struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    enum dtype dtype = rt_node_arg(graph, node, 0)->dtype;
    uint32_t size = node->args[0], angle = node->args[1], cosine, sine, parts[2];

    TRY(rt_op_apply(graph, RT_OP(cos), &angle, 1, dtype, &cosine, err));
    TRY(rt_op_apply(graph, RT_OP(sin), &angle, 1, dtype, &sine, err));
    TRY(rt_op_apply(graph, RT_OP(mul), (uint32_t[]){size, cosine}, 2, dtype, &parts[0], err));
    TRY(rt_op_apply(graph, RT_OP(mul), (uint32_t[]){size, sine}, 2, dtype, &parts[1], err));
    return join_parts(graph, parts, node->outs[0], &outs[0], err);
}

enum status rt_lower_angle(struct rt_graph *graph, const struct rt_node *node,
                           uint32_t outs[RT_LOWER_OUTS_MAX], struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    enum dtype part = rt_convert_part(rt_node_arg(graph, node, 0)->dtype);
    uint32_t pairs, parts[2]; /* imaginary, real */

    TRY(rt_op_apply(graph, RT_OP(view_as_real), node->args, 1, part, &pairs, err));
    for (int i = 0; i < 2; i++) {
        uint32_t args[] = {pairs, rt_graph_int(graph, rt_dim_of(-1)),
                           rt_graph_int(graph, rt_dim_of(1 - i))};
        TRY(rt_op_apply(graph, RT_OP(select), args, 3, part, &parts[i], err));
    }
    return rt_op_apply(graph, RT_OP(atan2), parts, 2, part, &outs[0], err);
}
