/* SPDX-License-Identifier: MIT */
/* Matrix products as operators that have kernels, and the pass itself: see passes.def. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/lower.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* ---- matrix products ------------------------------------------------------------------------- */

/* Halves are computed as floats. */
static enum dtype work_type(enum dtype dtype)
{
    return dtype == DT_F16 || dtype == DT_BF16 ? DT_F32 : dtype;
}

/* Fewer numbers are not worth the copy; of more, the copy of some rows would take megabytes. */
#define BF16_PAIRS_MIN 8
#define BF16_DEPTH_MAX 65536

/* Passes put fewer nodes between a constant and its product. A file can have any number of them,
 * and as many products, so that looking at all would take time that grows with the square. */
#define FIXED_NODES_MAX 8

/* Is |value| a constant, perhaps converted, permuted or padded, or parts of one in another order?
 */
static bool is_fixed(const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    for (int i = 0; v->node != RT_NO_NODE && i < FIXED_NODES_MAX; i++) {
        const struct rt_node *node = &graph->nodes[v->node];
        if (rt_op_is(node->op, RT_KNOWN_to_dtype) || rt_op_is(node->op, RT_KNOWN_constant_pad) ||
            rt_op_is(node->op, RT_KNOWN_permute)) {
            v = rt_node_arg(graph, node, 0);
        } else if (rt_op_is(node->op, RT_KNOWN_join_parts)) {
            v = &graph->values[rt_node_arg(graph, node, 0)->values[0]];
        } else {
            break;
        }
    }
    return v->is_constant;
}

enum dtype rt_lower_packed_type(const struct rt_graph *graph, uint32_t weights, struct rt_dim pairs,
                                struct rt_dim depth)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    bool fits = rt_dim_is_const(pairs) && pairs.value >= BF16_PAIRS_MIN && pairs.value % 2 == 0 &&
                rt_dim_is_const(depth) && depth.value <= BF16_DEPTH_MAX;
    return graph->precision == PRECISION_BF16 && fits && is_fixed(graph, weights) ? DT_BF16
                                                                                  : DT_F32;
}

/* The type of the packed matrix of a product over |k|. It may depend on inputs: both sides are
 * rounded then. */
static enum dtype product_type(const struct rt_graph *graph, struct rt_dim k)
{
    bool fits = rt_dim_is_const(k) && k.value >= BF16_PAIRS_MIN && k.value <= BF16_DEPTH_MAX;
    return graph->precision == PRECISION_BF16 && fits ? DT_BF16 : DT_F32;
}

static enum status make_gemm(struct rt_graph *graph, const struct rt_product *p, uint32_t *out,
                             struct error *err)
{
    uint32_t packed;
    const struct rt_value *w = &graph->values[p->weights];
    struct rt_dim k = w->dims[w->rank - (p->is_transposed ? 1 : 2)];
    TRY(rt_op_apply(graph, p->is_transposed ? RT_OP(pack_nk) : RT_OP(pack_kn), &p->weights, 1,
                    product_type(graph, k), &packed, err));
    uint32_t args[] = {
        p->x,
        packed,
        rt_graph_int(graph, p->n),
        p->bias,
        p->residual,
        rt_graph_float(graph, -INFINITY),
        rt_graph_float(graph, INFINITY),
        rt_graph_none(graph),
    };
    return rt_op_apply(graph, RT_OP(gemm), args, 8, DT_F32, out, err);
}

static enum status add(struct rt_graph *graph, uint32_t a, uint32_t b, uint32_t *out,
                       struct error *err)
{
    uint32_t args[] = {a, b, rt_graph_int(graph, rt_dim_of(1))};
    *out = a;
    if (graph->values[b].kind == RT_NONE) {
        return ST_OK;
    }
    return rt_op_apply(graph, RT_OP(add), args, 3, graph->values[a].dtype, out, err);
}

/* Doubles and integers: without packing or an epilogue. */
static enum status make_matmul(struct rt_graph *graph, const struct rt_product *p, uint32_t *out,
                               struct error *err)
{
    enum dtype dtype = graph->values[p->x].dtype;
    uint32_t args[] = {p->x, p->weights};
    if (p->is_transposed) {
        static const uint8_t order[] = {1, 0};
        TRY(rt_op_permute(graph, p->weights, order, 2, &args[1], err));
    }
    TRY(rt_op_apply(graph, RT_OP(matmul), args, 2, dtype, out, err));
    TRY(add(graph, *out, p->bias, out, err));
    return add(graph, *out, p->residual, out, err);
}

enum status rt_lower_product(struct rt_graph *graph, struct rt_product p, enum dtype dtype,
                             uint32_t *out_value, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    enum dtype work = work_type(graph->values[p.x].dtype);
    uint32_t *const parts[] = {&p.x, &p.weights, &p.bias, &p.residual};
    for (int i = 0; i < 4; i++) {
        TRY(rt_op_convert(graph, *parts[i], work, parts[i], err));
    }
    TRY(work == DT_F32 ? make_gemm(graph, &p, out_value, err)
                       : make_matmul(graph, &p, out_value, err));
    return rt_op_convert(graph, *out_value, dtype, out_value, err);
}

static enum status scale(struct rt_graph *graph, uint32_t x, uint32_t factor, uint32_t *out,
                         struct error *err)
{
    uint32_t args[] = {x, factor};
    *out = x;
    if (rt_value_number(&graph->values[factor]) == 1) {
        return ST_OK;
    }
    return rt_op_apply(graph, RT_OP(mul_scalar), args, 2, graph->values[x].dtype, out, err);
}

static const struct rt_node *producer(const struct rt_graph *graph, uint32_t value,
                                      enum rt_known op)
{
    const struct rt_value *v = &graph->values[value];
    bool is_it = v->node != RT_NO_NODE && rt_op_is(graph->nodes[v->node].op, op);
    return is_it ? &graph->nodes[v->node] : NULL;
}

/*
 * The order in which |permute| takes the dims of its argument, with the last two exchanged; false:
 * its last dim is not the argument's last one then, so that rows would have to be moved anyway.
 */
static bool untransposed_order(const struct rt_graph *graph, const struct rt_node *permute,
                               uint8_t order[SHAPE_RANK_MAX], bool *out_is_identity)
{
    const struct rt_value *list = rt_node_arg(graph, permute, 1);
    uint8_t rank = (uint8_t)list->count;
    *out_is_identity = true;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t from = d + 2 < rank ? d : 2u * rank - 3 - d;
        order[d] = rt_dim_from_first(list->ints[from].value, rank);
        *out_is_identity &= order[d] == d;
    }
    return rank >= 2 && order[rank - 1] == rank - 1;
}

/* A view of |value| with the dims of |like|, the last two exchanged. */
static enum status view_transposed(struct rt_graph *graph, uint32_t value,
                                   const struct rt_value *like, uint32_t *out, struct error *err)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    uint8_t rank = like->rank;
    memcpy(dims, like->dims, rank * sizeof(dims[0]));
    dims[rank - 2] = like->dims[rank - 1];
    dims[rank - 1] = like->dims[rank - 2];
    return rt_op_view(graph, value, dims, rank, out, err);
}

static bool same_matrices(const struct rt_value *a, const struct rt_value *b)
{
    return a->rank >= 2 && b->rank >= 2 &&
           rt_dim_same(a->dims[a->rank - 2], b->dims[b->rank - 2]) &&
           rt_dim_same(a->dims[a->rank - 1], b->dims[b->rank - 1]);
}

/*
 * If |value| is a permute that exchanges the last two dims, perhaps with a view behind it that only
 * changes the dims before, |*out| is the tensor whose rows are its columns; else 0. A permute that
 * moves other dims, too, becomes one that moves whole rows.
 */
static enum status transposed(struct rt_graph *graph, uint32_t value, uint32_t *out,
                              struct error *err)
{
    const struct rt_node *view = producer(graph, value, RT_KNOWN_view);
    uint32_t inner = view ? view->args[0] : value;
    const struct rt_value *v = &graph->values[value], *from = &graph->values[inner];
    const struct rt_node *permute = producer(graph, inner, RT_KNOWN_permute);
    uint8_t order[SHAPE_RANK_MAX];
    bool is_identity;
    *out = 0;
    if (!permute || !same_matrices(v, from) ||
        !untransposed_order(graph, permute, order, &is_identity)) {
        return ST_OK;
    }
    uint32_t made = permute->args[0];
    if (!is_identity) {
        TRY(rt_op_permute(graph, made, order, from->rank, &made, err));
    }
    if (view) {
        TRY(view_transposed(graph, made, &graph->values[value], &made, err));
    }
    *out = made;
    return ST_OK;
}

/* The matrix that |value| repeats for each product of a batch; else |value|. Exporters make this of
 * linear layers over more than two dims. */
static uint32_t repeated_matrix(const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    const struct rt_node *view = producer(graph, value, RT_KNOWN_view);
    uint32_t inner = view ? view->args[0] : value;
    const struct rt_node *expand = producer(graph, inner, RT_KNOWN_expand);
    const struct rt_value *m = expand ? rt_node_arg(graph, expand, 0) : v;
    bool repeats = m->rank == 2 && v->rank > 2 && same_matrices(m, &graph->values[inner]) &&
                   same_matrices(m, v);
    return repeats ? expand->args[0] : value;
}

/* If the right-hand side is a transpose and is packed anyway, it is packed directly from the
 * untransposed tensor. */
static enum status lower_product(struct rt_graph *graph, const struct rt_node *node, uint32_t *outs,
                                 struct error *err)
{
    const struct rt_value *b = rt_node_arg(graph, node, 1);
    if (dtype_infos[b->dtype].kind == DTYPE_COMPLEX) {
        return rt_op_apply(graph, RT_OP(product_complex), node->args, 2, b->dtype, outs, err);
    }
    struct rt_product p = {node->args[0],        node->args[1],        rt_graph_none(graph),
                           rt_graph_none(graph), b->dims[b->rank - 1], false};
    enum dtype dtype = rt_node_out(graph, node, 0)->dtype;
    if (work_type(graph->values[p.x].dtype) == DT_F32) {
        uint32_t rows;
        p.weights = repeated_matrix(graph, p.weights);
        TRY(transposed(graph, p.weights, &rows, err));
        p.is_transposed = rows != 0;
        p.weights = rows ? rows : p.weights;
    }
    return rt_lower_product(graph, p, dtype, outs, err);
}

static enum status lower_linear(struct rt_graph *graph, const struct rt_node *node, uint32_t *outs,
                                struct error *err)
{
    struct rt_product p = {node->args[0],
                           node->args[1],
                           node->args[2],
                           rt_graph_none(graph),
                           rt_node_arg(graph, node, 1)->dims[0],
                           true};
    return rt_lower_product(graph, p, rt_node_out(graph, node, 0)->dtype, outs, err);
}

/* beta * bias + alpha * (x @ w). Usually the bias is one row for all; any other bias is added
 * afterwards. */
static enum status lower_addmm(struct rt_graph *graph, const struct rt_node *node, uint32_t *outs,
                               struct error *err)
{
    uint32_t args[5];
    memcpy(args, node->args, sizeof(args));
    enum dtype dtype = rt_node_out(graph, node, 0)->dtype, work = work_type(dtype);
    struct rt_dim n = rt_node_arg(graph, node, 2)->dims[1];
    uint32_t none = rt_graph_none(graph), bias = none, product;
    const struct rt_value *row = &graph->values[args[0]];
    bool is_row = row->rank == 1 && rt_dim_same(row->dims[0], n) &&
                  rt_value_number(&graph->values[args[4]]) == 1;
    if (rt_value_number(&graph->values[args[3]]) !=
        0) { /* a NaN in the bias is ignored if beta is 0 */
        TRY(rt_op_convert(graph, args[0], work, &bias, err));
        TRY(scale(graph, bias, args[3], &bias, err));
    }
    struct rt_product p = {args[1], args[2], is_row ? bias : none, none, n, false};
    TRY(rt_lower_product(graph, p, work, &product, err));
    if (!is_row) {
        TRY(scale(graph, product, args[4], &product, err));
        TRY(add(graph, product, bias, &product, err));
    }
    return rt_op_convert(graph, product, dtype, outs, err);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static const struct {
    enum rt_known op;
    rt_lower_f *lower;
} rules[] = {
    {RT_KNOWN_mm, lower_product},
    {RT_KNOWN_bmm, lower_product},
    {RT_KNOWN_addmm, lower_addmm},
    {RT_KNOWN_linear, lower_linear},
    {RT_KNOWN_convolution, rt_lower_convolution},
    {RT_KNOWN_convolution_backward, rt_lower_convolution_backward},
    {RT_KNOWN_mixed_mm, rt_lower_mixed_mm},
    {RT_KNOWN_update_cache, rt_lower_update_cache},
    {RT_KNOWN_update_cache_at, rt_lower_update_cache_at},
    {RT_KNOWN_attention_cached, rt_lower_attention_cached},
    {RT_KNOWN_attention_quantized, rt_lower_attention_quantized},
    {RT_KNOWN_tile_crop, rt_lower_tile_crop},
    {RT_KNOWN_moe_ffn, rt_lower_moe_ffn},
    {RT_KNOWN_mixed_linear, rt_lower_mixed_linear},
    {RT_KNOWN_add_quantized, rt_lower_add_quantized},
    {RT_KNOWN_fft_r2c, rt_lower_fft_r2c},
    {RT_KNOWN_fft_c2r, rt_lower_fft_c2r},
    {RT_KNOWN_fft_c2c, rt_lower_fft_c2c},
    {RT_KNOWN_complex, rt_lower_complex},
    {RT_KNOWN_polar, rt_lower_polar},
    {RT_KNOWN_angle, rt_lower_angle},
};

enum status rt_pass_lower(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        struct rt_node node = *rt_rewrite_node(&rw, i); /* a copy: rules add nodes */
        for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++) {
            uint32_t outs[RT_LOWER_OUTS_MAX];
            if (rt_op_is(node.op, rules[r].op)) {
                TRY(rules[r].lower(graph, &node, outs, err));
                for (uint32_t o = 0; o < node.out_count; o++) {
                    rt_rewrite_replace(&rw, node.outs[o], outs[o]);
                }
                break;
            }
        }
    }
    return rt_rewrite_end(&rw, err);
}
