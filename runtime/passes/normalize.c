/* SPDX-License-Identifier: MIT */
/*
 * Batch norm in inference is a scale and a shift for each channel:
 *
 *     scale = weight / sqrt(var + eps)        shift = bias - mean * scale
 *
 * After a convolution with constant weights, both are merged into weights and bias:
 *
 *     W' = W * scale                          b' = b * scale + shift
 *
 * The pass writes all of this as nodes; folding computes them once.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

enum { BN_X, BN_WEIGHT, BN_BIAS, BN_MEAN, BN_VAR, BN_MOMENTUM, BN_EPS };
enum { CONV_X, CONV_W, CONV_BIAS, CONV_TRANSPOSED = 6, CONV_GROUPS = 8 };

static enum status add(struct rt_graph *graph, uint32_t a, uint32_t b, uint32_t *out,
                       struct error *err)
{
    uint32_t args[] = {a, b, rt_graph_int(graph, rt_dim_of(1))};
    return rt_op_apply(graph, RT_OP(add), args, 3, DT_F32, out, err);
}

static enum status multiply(struct rt_graph *graph, uint32_t a, uint32_t b, uint32_t *out,
                            struct error *err)
{
    uint32_t args[] = {a, b};
    return rt_op_apply(graph, RT_OP(mul), args, 2, DT_F32, out, err);
}

/* The vector |v| as a tensor of |rank| with its dim at |axis|, and 1 elsewhere. */
static enum status spread(struct rt_graph *graph, uint32_t v, uint8_t rank, uint8_t axis,
                          uint32_t *out, struct error *err)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    for (uint8_t i = 0; i < rank; i++) {
        dims[i] = i == axis ? graph->values[v].dims[0] : rt_dim_of(1);
    }
    return rt_op_view(graph, v, dims, rank, out, err);
}

static enum status scale_and_shift(struct rt_graph *graph, const uint32_t *bn, uint32_t *scale,
                                   uint32_t *shift, struct error *err)
{
    uint32_t scale_args[] = {bn[BN_WEIGHT], bn[BN_VAR], bn[BN_EPS]};
    TRY(rt_op_apply(graph, RT_OP(bn_scale), scale_args, 3, DT_F32, scale, err));
    uint32_t shift_args[] = {bn[BN_BIAS], bn[BN_MEAN], *scale};
    return rt_op_apply(graph, RT_OP(bn_shift), shift_args, 3, DT_F32, shift, err);
}

static bool is_constant_or_none(const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    return v->kind == RT_NONE || v->is_constant;
}

/* Weights may also be a permute that is computed when they are packed (runtime/code/fold.c). */
static bool are_weights_constant(const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    bool is_permuted =
        v->node != RT_NO_NODE && rt_op_is(graph->nodes[v->node].op, RT_KNOWN_permute);
    return is_constant_or_none(graph, is_permuted ? graph->nodes[v->node].args[0] : value);
}

/* Can batch norm |bn| be merged into convolution |conv|? */
static bool can_absorb(const struct rt_graph *graph, const struct rt_node *conv,
                       const struct rt_node *bn)
{
    bool grouped_transposed = rt_node_arg(graph, conv, CONV_TRANSPOSED)->b &&
                              !rt_dim_is(rt_node_arg(graph, conv, CONV_GROUPS)->i, 1);
    bool is_constant = are_weights_constant(graph, conv->args[CONV_W]) &&
                       is_constant_or_none(graph, conv->args[CONV_BIAS]);
    for (uint32_t i = BN_WEIGHT; i <= BN_VAR; i++) {
        is_constant = is_constant && is_constant_or_none(graph, bn->args[i]);
    }
    return is_constant && !grouped_transposed;
}

/* Gives convolution |index| scaled weights and a new bias. */
static enum status absorb(struct rt_graph *graph, uint32_t index, uint32_t scale, uint32_t shift,
                          struct error *err)
{
    uint32_t w = graph->nodes[index].args[CONV_W], bias = graph->nodes[index].args[CONV_BIAS];
    uint8_t out_axis = rt_node_arg(graph, &graph->nodes[index], CONV_TRANSPOSED)->b ? 1 : 0;
    uint32_t factors, scaled;
    TRY(spread(graph, scale, graph->values[w].rank, out_axis, &factors, err));
    TRY(multiply(graph, w, factors, &scaled, err));
    if (graph->values[bias].kind == RT_TENSOR) {
        uint32_t scaled_bias;
        TRY(multiply(graph, bias, scale, &scaled_bias, err));
        TRY(add(graph, scaled_bias, shift, &shift, err));
    }
    graph->nodes[index].args[CONV_W] = scaled;
    graph->nodes[index].args[CONV_BIAS] = shift;
    return ST_OK;
}

static enum status rewrite_batch_norm(struct rt_rewrite *rw, uint32_t index, struct error *err)
{
    struct rt_graph *graph = rw->graph;
    const struct rt_node *bn = &graph->nodes[index];
    uint32_t x = bn->args[BN_X], y = bn->outs[0], scale, shift, replacement = x;
    struct rt_node *conv = rt_rewrite_producer(rw, x, RT_KNOWN_convolution);
    bool folds = conv && rt_rewrite_is_single_use(rw, x) && can_absorb(graph, conv, bn);
    uint32_t conv_index = graph->values[x].node;
    TRY(scale_and_shift(graph, bn->args, &scale, &shift, err));
    if (folds) {
        TRY(absorb(graph, conv_index, scale, shift, err));
    } else {
        uint32_t args[] = {x, scale, shift};
        TRY(rt_op_apply(graph, RT_OP(affine), args, 3, DT_F32, &replacement, err));
    }
    rt_rewrite_replace(rw, y, replacement);
    return ST_OK;
}

/* The saved statistics are empty in inference; if a method returns them, the node stays. */
static bool is_plain(const struct rt_rewrite *rw, const struct rt_node *bn)
{
    return rt_rewrite_uses(rw, bn->outs[1]) == 0 && rt_rewrite_uses(rw, bn->outs[2]) == 0 &&
           rt_node_out(rw->graph, bn, 0)->dtype == DT_F32;
}

enum status rt_pass_normalize(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        if (rt_op_is(node->op, RT_KNOWN_batch_norm) && is_plain(&rw, node)) {
            TRY(rewrite_batch_norm(&rw, i, err));
        }
    }
    return rt_rewrite_end(&rw, err);
}
