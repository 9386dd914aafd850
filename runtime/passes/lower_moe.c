/* SPDX-License-Identifier: MIT */
/* Mixtures of experts (runtime/ops/moe.h) as operators that have kernels. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/ops/moe.h"
#include "runtime/ops/op.h"
#include "runtime/passes/lower.h"

/* Appends a node with several outputs, of |dtypes|. */
static enum status apply(struct rt_graph *graph, const struct rt_op *op, const uint32_t *args,
                         uint32_t arg_count, const enum dtype *dtypes, uint32_t out_count,
                         uint32_t *outs, struct error *err)
{
    for (uint32_t i = 0; i < out_count; i++) {
        outs[i] = rt_graph_tensor(graph, dtypes[i], 0, NULL);
    }
    uint32_t node = rt_graph_node(graph, op, args, arg_count, outs, out_count);
    TRY(rt_graph_check(graph, err));
    return rt_graph_infer(graph, node, err);
}

static uint32_t number(struct rt_graph *graph, int64_t value)
{
    return rt_graph_int(graph, rt_dim_of(value));
}

/* The experts' weights as products read them. */
struct weights {
    uint32_t packed, columns, group; /* values; columns: or none */
    int64_t n;
    bool is_gated;
};

/* The numbers of each column; |w|: unpacked weights and their scales. */
static enum status make_columns(struct rt_graph *graph, const uint32_t w[2], bool is_4bit,
                                uint32_t *out, struct error *err)
{
    const uint32_t none = rt_graph_none(graph), one = rt_graph_float(graph, 1);
    uint32_t args[] = {
        w[0],
        number(graph, 0),
        number(graph, 1),
        none,
        w[1],
        one,
        one,
        number(graph, 128), /* zero points of rows are those of i8 */
        one,
        rt_graph_bool(graph, is_4bit),
    };
    return rt_op_apply(graph, RT_OP(q_columns), args, 10, DT_I32, out, err);
}

/* A single group is a scale for each column; the panels have the scales of more than one. */
static enum status pack(struct rt_graph *graph, uint32_t source, const struct rt_torchao *m,
                        bool is_gated, struct weights *out, struct error *err)
{
    static const enum dtype dtypes[] = {DT_I8, DT_F32};
    const uint32_t none = rt_graph_none(graph), no = rt_graph_bool(graph, false);
    bool has_groups = m->group != m->columns;
    uint32_t is_4bit = rt_graph_bool(graph, m->is_4bit), w[2], columns;
    uint32_t unpack[] = {
        source,  number(graph, m->rows),        number(graph, m->columns), number(graph, m->group),
        is_4bit, rt_graph_bool(graph, is_gated)};
    TRY(apply(graph, RT_OP(moe_unpack), unpack, 6, dtypes, 2, w, err));
    TRY(make_columns(graph, w, m->is_4bit, &columns, err));
    *out = (struct weights){
        .columns = has_groups ? none : columns,
        .group = number(graph, has_groups ? m->group : 0),
        .n = is_gated ? m->rows / 2 : m->rows,
        .is_gated = is_gated,
    };
    uint32_t args[] = {
        w[0],       no, is_4bit, has_groups ? w[1] : none, has_groups ? columns : none,
        out->group, no, no};
    return rt_op_apply(graph, RT_OP(q_pack_linear), args, 8, DT_U8, &out->packed, err);
}

/* |chosen|: the experts of rows; |factors| of their results, or none. */
static enum status multiply(struct rt_graph *graph, const struct rt_moe *moe, uint32_t x,
                            uint32_t chosen, uint32_t factors, const struct weights *w,
                            uint32_t *out, struct error *err)
{
    static const enum dtype dtypes[] = {DT_I8, DT_F32, DT_I32};
    uint32_t quantize[] = {x, number(graph, 1)}, rows[3];
    TRY(apply(graph, RT_OP(quantize_dynamic), quantize, 2, dtypes, 3, rows, err));
    uint32_t args[] = {
        rows[0],
        rows[1],
        rows[2],
        chosen,
        factors,
        w->packed,
        w->columns,
        number(graph, moe->experts),
        number(graph, w->n),
        rt_graph_bool(graph, moe->is_4bit),
        w->group,
        rt_graph_bool(graph, w->is_gated),
    };
    return rt_op_apply(graph, RT_OP(moe_linear), args, 12, DT_F32, out, err);
}

/* The experts of each row, and their factors. */
static enum status make_routes(struct rt_graph *graph, const uint32_t *from, uint32_t outs[2],
                               struct error *err)
{
    static const enum dtype dtypes[] = {DT_I32, DT_F32};
    const uint32_t none = rt_graph_none(graph);
    bool has_bias = !rt_dim_is(rt_value_numel(graph, &graph->values[from[RT_MOE_BIAS]]), 0);
    struct rt_product gate = {
        from[RT_MOE_X], from[RT_MOE_GATE], none, none, graph->values[from[RT_MOE_EXPERTS]].i, true};
    uint32_t scores;
    TRY(rt_lower_product(graph, gate, DT_F32, &scores, err));
    bool is_sigmoid = span_is(graph->values[from[RT_MOE_SCORE]].bytes, "sigmoid");
    uint32_t args[] = {
        scores,
        has_bias ? from[RT_MOE_BIAS] : none,
        from[RT_MOE_CHOSEN],
        rt_graph_bool(graph, is_sigmoid),
        from[RT_MOE_SCALE],
    };
    return apply(graph, RT_OP(moe_route), args, 5, dtypes, 2, outs, err);
}

static struct rt_moe read_sizes(const struct rt_graph *graph, const uint32_t *from)
{
    const struct rt_value *values = graph->values;
    return (struct rt_moe){
        .experts = values[from[RT_MOE_EXPERTS]].i.value,
        .hidden = values[from[RT_MOE_HIDDEN]].i.value,
        .dim = values[from[RT_MOE_DIM]].i.value,
        .group = values[from[RT_MOE_GROUP]].i.value,
        .is_4bit = values[from[RT_MOE_BITS]].i.value == 4,
    };
}

enum status rt_lower_moe_ffn(struct rt_graph *graph, const struct rt_node *node, uint32_t *outs,
                             struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    uint32_t from[RT_MOE_ARGS], routes[2], inner, outer;
    memcpy(from, node->args, sizeof(from));
    const struct rt_moe moe = read_sizes(graph, from);
    const struct rt_torchao up = rt_moe_up(&moe), down = rt_moe_down(&moe);
    const struct rt_dim pairs = rt_dim_of(1);
    struct weights ups, downs;

    TRY(make_routes(graph, from, routes, err));
    TRY(pack(graph, from[RT_MOE_UP], &up, true, &ups, err));
    TRY(pack(graph, from[RT_MOE_DOWN], &down, false, &downs, err));
    TRY(multiply(graph, &moe, from[RT_MOE_X], routes[0], rt_graph_none(graph), &ups, &inner, err));
    TRY(multiply(graph, &moe, inner, routes[0], routes[1], &downs, &outer, err));
    uint32_t args[] = {outer, rt_graph_ints(graph, &pairs, 1), rt_graph_bool(graph, false),
                       rt_graph_none(graph)};
    return rt_op_apply(graph, RT_OP(sum), args, 4, DT_F32, outs, err);
}
