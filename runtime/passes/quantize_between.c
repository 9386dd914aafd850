/* SPDX-License-Identifier: MIT */
/* The operators between integer products, computed on integers: see quantize.h. */
#include "config.h"

#include <math.h>

#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/quantize.h"

/* With more pixels, the sum would not fit 24 bits. */
#define MEAN_PIXELS_MAX 65536

static uint32_t float_arg(struct q_pass *q, double value)
{
    return rt_graph_float(q->graph, value);
}

enum status q_restore(struct q_pass *q, const struct q_info *x, const struct q_params *params,
                      uint32_t *out_value)
{
    *out_value = x->bytes;
    double factor = x->scale / params->scale;
    if (x->scale == params->scale && x->zero == params->zero && params->min == 0 &&
        params->max == 255) {
        return ST_OK;
    }
    uint32_t args[] = {
        x->bytes,
        rt_graph_none(q->graph),
        float_arg(q, factor),
        float_arg(q, 0),
        float_arg(q, (double)params->zero - (double)x->zero * factor),
        float_arg(q, (double)params->min),
        float_arg(q, (double)params->max),
    };
    return rt_op_apply(q->graph, RT_OP(q_add), args, 7, DT_U8, out_value, q->err);
}

/* ---- two tensors ----------------------------------------------------------------------------- */

static bool is_pair(const struct q_pass *q, const struct rt_node *node)
{
    const struct rt_value *a = rt_node_arg(q->graph, node, 0), *b = rt_node_arg(q->graph, node, 1);
    return q_info_of(q, node->args[0])->kind == Q_TENSOR &&
           q_info_of(q, node->args[1])->kind == Q_TENSOR && rt_value_same_dims(a, b);
}

static enum status make_sum(struct q_pass *q, const struct rt_node *node, double sign,
                            const struct q_params *params, uint32_t *out_value)
{
    const struct rt_value *alpha = rt_node_arg(q->graph, node, 2);
    if (!rt_value_is_fixed(alpha) || !isfinite(rt_value_number(alpha))) {
        return ST_OK;
    }
    struct q_info a = *q_info_of(q, node->args[0]), b = *q_info_of(q, node->args[1]);
    double a_factor = a.scale / params->scale;
    double b_factor = sign * rt_value_number(alpha) * b.scale / params->scale;
    double addend = (double)params->zero - (double)a.zero * a_factor - (double)b.zero * b_factor;
    uint32_t args[] = {
        a.bytes,
        b.bytes,
        float_arg(q, a_factor),
        float_arg(q, b_factor),
        float_arg(q, addend),
        float_arg(q, (double)params->min),
        float_arg(q, (double)params->max),
    };
    return rt_op_apply(q->graph, RT_OP(q_add), args, 7, DT_U8, out_value, q->err);
}

static enum status make_mul(struct q_pass *q, const struct rt_node *node,
                            const struct q_params *params, uint32_t *out_value)
{
    struct q_info a = *q_info_of(q, node->args[0]), b = *q_info_of(q, node->args[1]);
    uint32_t args[] = {
        a.bytes,
        b.bytes,
        q_int(q, a.zero),
        q_int(q, b.zero),
        float_arg(q, a.scale * b.scale / params->scale),
        float_arg(q, (double)params->zero),
        float_arg(q, (double)params->min),
        float_arg(q, (double)params->max),
    };
    return rt_op_apply(q->graph, RT_OP(q_mul), args, 8, DT_U8, out_value, q->err);
}

/* ---- means ----------------------------------------------------------------------------------- */

/* Does |node| compute the mean over all dims after the channels of [n, c, ..]? */
static bool is_global_mean(const struct q_pass *q, const struct rt_node *node)
{
    if (!q_is(node, RT_KNOWN_mean) && !q_is(node, RT_KNOWN_adaptive_avg_pool2d)) {
        return false; /* it may have one argument */
    }
    const struct rt_value *x = rt_node_arg(q->graph, node, 0);
    const struct rt_value *list = rt_node_arg(q->graph, node, 1);
    uint32_t seen = 0, wanted = 0;
    if (x->rank < 3) {
        return false;
    }
    if (q_is(node, RT_KNOWN_adaptive_avg_pool2d)) {
        return x->rank == 4 && list->count == 2 && rt_dim_is(list->ints[0], 1) &&
               rt_dim_is(list->ints[1], 1);
    }
    for (uint8_t i = 2; i < x->rank; i++) {
        wanted |= 1u << i;
    }
    for (uint32_t i = 0; list->kind == RT_INTS && i < list->count; i++) {
        seen |= 1u << rt_dim_from_first(list->ints[i].value, x->rank);
    }
    return seen == wanted;
}

static enum status make_mean(struct q_pass *q, const struct rt_node *node,
                             const struct q_params *params, uint32_t *out_value)
{
    const struct rt_value *x = rt_node_arg(q->graph, node, 0);
    struct q_info info = *q_info_of(q, node->args[0]);
    int64_t pixels = 1;
    for (uint8_t i = 2; i < x->rank; i++) {
        int64_t most = x->dims[i].value; /* an upper bound suffices */
        if (most < 1 || most > MEAN_PIXELS_MAX / pixels) {
            return ST_OK;
        }
        pixels *= most;
    }
    double factor = info.scale / params->scale;
    bool keeps = rt_node_out(q->graph, node, 0)->rank == x->rank;
    uint32_t args[] = {
        info.bytes,
        rt_graph_bool(q->graph, keeps),
        float_arg(q, factor),
        float_arg(q, (double)params->zero - (double)info.zero * factor),
        float_arg(q, (double)params->min),
        float_arg(q, (double)params->max),
    };
    return rt_op_apply(q->graph, RT_OP(q_mean), args, 6, DT_U8, out_value, q->err);
}

/* ---- functions of one number ----------------------------------------------------------------- */

static bool is_pointwise(const struct rt_op *op)
{
    const struct rt_op *row = rt_ops_pointwise;
    while (row->name && row != op) {
        row++;
    }
    return row->name != NULL;
}

/* A function from one f32 tensor to another, with all other arguments fixed? */
static bool is_function(const struct rt_graph *graph, const struct rt_node *node)
{
    bool fits = is_pointwise(node->op) && node->arg_count <= 8 && node->out_count == 1 &&
                rt_node_arg(graph, node, 0)->kind == RT_TENSOR &&
                rt_node_arg(graph, node, 0)->dtype == DT_F32 &&
                rt_node_out(graph, node, 0)->dtype == DT_F32;
    for (uint32_t i = 1; fits && i < node->arg_count; i++) {
        const struct rt_value *v = rt_node_arg(graph, node, i);
        fits = v->kind != RT_TENSOR && v->kind != RT_TENSORS && rt_value_is_fixed(v);
    }
    return fits;
}

#define CHAIN_MAX 16

/* Constant folding runs the same nodes once on all 256 numbers: this gives the table. */
static enum status make_table(struct q_pass *q, const struct q_info *x, const uint32_t *chain,
                              uint32_t count, const struct q_params *params, uint32_t *out_value)
{
    uint32_t all = q_int(q, 256), numbers, value;
    TRY(rt_op_apply(q->graph, RT_OP(arange), &all, 1, DT_I64, &numbers, q->err));
    TRY(rt_op_convert(q->graph, numbers, DT_U8, &value, q->err));
    TRY(q_dequantize(q, value, x->scale, x->zero, &value));
    while (count-- > 0) {
        const struct rt_node *node = &q->graph->nodes[chain[count]];
        uint32_t args[8], arg_count = node->arg_count;
        memcpy(args, node->args, arg_count * sizeof(*args));
        args[0] = value;
        TRY(rt_op_apply(q->graph, node->op, args, arg_count, DT_F32, &value, q->err));
    }
    return q_quantize(q, value, params, out_value);
}

static enum status make_lookup(struct q_pass *q, uint32_t value, const struct q_params *params,
                               uint32_t *out_value)
{
    uint32_t chain[CHAIN_MAX], count = 0, table;
    const struct rt_node *node = q_producer(q, value);
    while (node && count < CHAIN_MAX && rt_rewrite_is_single_use(&q->rw, value) &&
           is_function(q->graph, node)) {
        chain[count++] = q->graph->values[value].node;
        value = node->args[0];
        node = q_producer(q, value);
        if (q_info_of(q, value)->kind == Q_TENSOR) {
            struct q_info x = *q_info_of(q, value);
            TRY(make_table(q, &x, chain, count, params, &table));
            uint32_t args[] = {x.bytes, table};
            return rt_op_apply(q->graph, RT_OP(q_lookup), args, 2, DT_U8, out_value, q->err);
        }
    }
    return ST_OK;
}

/* ---- concatenation --------------------------------------------------------------------------- */

#define CAT_MAX 64

static enum status make_cat(struct q_pass *q, const struct rt_node *node,
                            const struct q_params *params, uint32_t *out_value)
{
    uint32_t list = node->args[0], dim = node->args[1], count = q->graph->values[list].count;
    uint32_t items[CAT_MAX];
    if (count == 0 || count > CAT_MAX) {
        return ST_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (q_info_of(q, q->graph->values[list].values[i])->kind != Q_TENSOR) {
            return ST_OK;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct q_info *x = q_info_of(q, q->graph->values[list].values[i]);
        TRY(q_restore(q, x, params, &items[i]));
    }
    uint32_t args[] = {rt_graph_tensors(q->graph, items, count), dim};
    return rt_op_apply(q->graph, RT_OP(cat), args, 2, DT_U8, out_value, q->err);
}

enum status q_make_between(struct q_pass *q, uint32_t value, const struct q_params *params,
                           uint32_t *out_value)
{
    const struct rt_node *node = q_producer(q, value);
    *out_value = 0;
    if (!node || !rt_rewrite_is_single_use(&q->rw, value)) {
        return ST_OK;
    }
    if (q_is(node, RT_KNOWN_add) || q_is(node, RT_KNOWN_sub)) {
        double sign = q_is(node, RT_KNOWN_add) ? 1 : -1;
        return is_pair(q, node) ? make_sum(q, node, sign, params, out_value) : ST_OK;
    }
    if (q_is(node, RT_KNOWN_mul)) {
        return is_pair(q, node) ? make_mul(q, node, params, out_value) : ST_OK;
    }
    if (q_is(node, RT_KNOWN_cat)) {
        return make_cat(q, node, params, out_value);
    }
    if (node->arg_count > 0 && q_info_of(q, node->args[0])->kind == Q_TENSOR &&
        is_global_mean(q, node)) {
        return make_mean(q, node, params, out_value);
    }
    return make_lookup(q, value, params, out_value);
}
