/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels for graphs that dequantize, compute and quantize again. See passes.def.
 *
 * One walk finds for each value whether it is stored as integers with a scale, or can be computed
 * from such values. If a result is quantized again, all nodes from integers to integers become
 * integer operators. If not, the last node computes from integers and gives floats. Operators that
 * only move numbers move the integers. The pass deletes no node: at the end, all nodes without
 * readers are dropped.
 */
#include "config.h"

#include "runtime/passes/quantize.h"

#include <math.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/passes.h"

const struct q_info *q_info_of(const struct q_pass *q, uint32_t value)
{
    static const struct q_info nothing;
    return rt_rewrite_has(&q->rw, value) ? &q->info[value] : &nothing;
}

const struct rt_node *q_producer(const struct q_pass *q, uint32_t value)
{
    uint32_t node = q->graph->values[value].node;
    return node == RT_NO_NODE || node >= q->rw.node_count ? NULL : &q->graph->nodes[node];
}

/* The integers of |value| as u8. */
static enum status as_u8(struct q_pass *q, uint32_t value, uint32_t *out_value)
{
    bool is_known_value = rt_rewrite_has(&q->rw, value);
    *out_value = value;
    if (is_known_value && q->info[value].u8 != 0) {
        *out_value = q->info[value].u8;
        return ST_OK;
    }
    if (q->graph->values[value].dtype == DT_U8) {
        return ST_OK;
    }
    TRY(rt_op_apply(q->graph, RT_OP(q_flip), &value, 1, DT_U8, out_value, q->err));
    if (is_known_value) {
        q->info[value].u8 = *out_value;
        q->info[value].is_flip = true;
    }
    return ST_OK;
}

enum status q_quantize(struct q_pass *q, uint32_t x, const struct q_params *params,
                       uint32_t *out_value)
{
    uint32_t args[] = {
        x,
        rt_graph_float(q->graph, params->scale),
        q_int(q, params->zero),
        q_int(q, params->min),
        q_int(q, params->max),
        q_int(q, dtype_infos[DT_U8].executorch),
    };
    return rt_op_apply(q->graph, RT_OP(quantize), args, 6, DT_U8, out_value, q->err);
}

enum status q_dequantize(struct q_pass *q, uint32_t bytes, double scale, int64_t zero,
                         uint32_t *out_value)
{
    uint32_t args[] = {
        bytes,
        rt_graph_float(q->graph, scale),
        q_int(q, zero),
        q_int(q, 0),
        q_int(q, 255),
        q_int(q, dtype_infos[DT_U8].executorch),
        rt_graph_none(q->graph),
    };
    return rt_op_apply(q->graph, RT_OP(dequantize), args, 7, DT_F32, out_value, q->err);
}

/* ---- what is stored -------------------------------------------------------------------------- */

static bool is_usual_scale(double scale)
{
    return isfinite(scale) && scale >= 1e-30 && scale <= 1e30;
}

static enum status on_dequantize(struct q_pass *q, const struct rt_node *node)
{
    const struct rt_value *x = rt_node_arg(q->graph, node, 0);
    struct q_info *info = &q->info[node->outs[0]];
    double scale = rt_value_number(rt_node_arg(q->graph, node, 1));
    int64_t zero;
    if (!q_is_byte(x) || rt_node_out(q->graph, node, 0)->dtype != DT_F32 ||
        !is_usual_scale(scale) || !q_fixed_int(rt_node_arg(q->graph, node, 2), &zero) ||
        zero < -q_shift_of(x) || zero > UINT8_MAX - q_shift_of(x)) {
        return ST_OK;
    }
    if (q->is_known[node->args[0]]) {
        bool fits = x->dtype == DT_I8 && zero == 0;
        info->kind = fits ? Q_WEIGHTS : Q_UNKNOWN;
        info->bytes = node->args[0];
        info->scale = scale;
        return ST_OK;
    }
    info->kind = Q_TENSOR;
    info->scale = scale;
    info->zero = zero + q_shift_of(x);
    return as_u8(q, node->args[0], &info->bytes);
}

/* Is |v| none, or a constant of zeros only? */
static bool is_zero(const struct rt_value *v)
{
    bool is_constant = v->kind == RT_TENSOR && v->is_constant;
    for (size_t i = 0; is_constant && i < v->bytes.len; i++) {
        is_constant = v->bytes.ptr[i] == 0;
    }
    return v->kind == RT_NONE || is_constant;
}

/* Does |node| dequantize constant weights with constant scales? */
static bool restores_weights(const struct q_pass *q, const struct rt_node *node)
{
    return rt_node_arg(q->graph, node, 0)->dtype == DT_I8 && q->is_known[node->args[0]] &&
           q->is_known[node->args[1]] && rt_node_out(q->graph, node, 0)->dtype == DT_F32;
}

static struct q_info *note_weights(struct q_pass *q, const struct rt_node *node)
{
    struct q_info *info = &q->info[node->outs[0]];
    info->kind = Q_WEIGHTS;
    info->bytes = node->args[0];
    info->scale = 1;
    info->scales = node->args[1];
    return info;
}

/* Arguments: q, scales, optional zero points, axis. */
static void on_dequantize_channels(struct q_pass *q, const struct rt_node *node)
{
    int64_t axis;
    if (restores_weights(q, node) && is_zero(rt_node_arg(q->graph, node, 2)) &&
        q_fixed_int(rt_node_arg(q->graph, node, 3), &axis)) {
        uint8_t rank = rt_node_arg(q->graph, node, 0)->rank;
        note_weights(q, node)->axis = rt_dim_from_first(axis, rank);
    }
}

/* Arguments: q [n, k], scales [n, groups], group. */
static void on_dequantize_groups(struct q_pass *q, const struct rt_node *node)
{
    const struct rt_value *w = rt_node_arg(q->graph, node, 0);
    int64_t group;
    if (restores_weights(q, node) && w->rank == 2 &&
        q_fixed_int(rt_node_arg(q->graph, node, 2), &group)) {
        /* A single group means one scale for each row of weights. */
        note_weights(q, node)->group = rt_dim_is(w->dims[1], group) ? 0 : group;
    }
}

/* Makes a node that quantizes the rows of |x|, with its integers as u8; uses of the same |x| share
 * it. */
static enum status quantize_rows(struct q_pass *q, uint32_t x, struct q_rows *out_rows)
{
    struct rt_graph *graph = q->graph;
    bool is_known_value = rt_rewrite_has(&q->rw, x);
    if (is_known_value && q->rows[x].node != RT_NO_NODE) {
        *out_rows = q->rows[x];
        return ST_OK;
    }
    uint32_t args[] = {x, q_int(q, 1)};
    uint32_t outs[] = {
        rt_graph_tensor(graph, DT_I8, 0, NULL),
        rt_graph_tensor(graph, DT_F32, 0, NULL),
        rt_graph_tensor(graph, DT_I32, 0, NULL),
    };
    out_rows->node = rt_graph_node(graph, rt_op_known(RT_KNOWN_quantize_dynamic), args, 2, outs, 3);
    TRY(rt_graph_check(graph, q->err));
    TRY(rt_graph_infer(graph, out_rows->node, q->err));
    TRY(as_u8(q, outs[0], &out_rows->u8));
    if (is_known_value) {
        q->rows[x] = *out_rows;
    }
    return ST_OK;
}

/* The floats that |node| restores from quantized rows, or 0. */
static uint32_t find_rows(const struct q_pass *q, const struct rt_node *node)
{
    const struct rt_node *from = q_producer(q, node->args[0]);
    int64_t dims = 0;
    if (!from) {
        return 0;
    }
    if (q_is(from, RT_KNOWN_quantize_dynamic)) {
        bool fits = from->outs[1] == node->args[1] && from->outs[2] == node->args[2];
        return fits && q_fixed_int(rt_node_arg(q->graph, from, 1), &dims) && dims == 1
                   ? from->args[0]
                   : 0;
    }
    const struct rt_node *chosen = q_producer(q, node->args[1]);
    bool fits = q_is(from, RT_KNOWN_quantize_rows) && chosen &&
                q_is(chosen, RT_KNOWN_choose_rows) && from->args[1] == node->args[1] &&
                from->args[2] == node->args[2] && chosen->outs[0] == node->args[1] &&
                chosen->outs[1] == node->args[2] && chosen->args[0] == from->args[0];
    return fits ? from->args[0] : 0;
}

static enum status on_dequantize_rows(struct q_pass *q, const struct rt_node *node)
{
    uint32_t x = find_rows(q, node), out = node->outs[0];
    struct q_rows rows;
    if (x == 0 || q->graph->values[out].dtype != DT_F32 || q->graph->values[x].dtype != DT_F32) {
        return ST_OK;
    }
    TRY(quantize_rows(q, x, &rows));
    const uint32_t *outs = q->graph->nodes[rows.node].outs;
    struct q_info *info = &q->info[out];
    info->kind = Q_ROWS;
    info->bytes = rows.u8;
    info->scales = outs[1];
    info->zeros = outs[2];
    return ST_OK;
}

/* ---- what is quantized ----------------------------------------------------------------------- */

/* Reads the bounds of a node that clamps its argument 0 to fixed numbers; false for other nodes. */
static bool read_clamp(const struct rt_graph *graph, const struct rt_node *node, double *min,
                       double *max)
{
    bool is_relu = q_is(node, RT_KNOWN_relu);
    *min = is_relu ? 0 : -INFINITY;
    *max = INFINITY;
    if (is_relu || (!q_is(node, RT_KNOWN_hardtanh) && !q_is(node, RT_KNOWN_clamp))) {
        return is_relu;
    }
    const struct rt_value *lo = rt_node_arg(graph, node, 1), *hi = rt_node_arg(graph, node, 2);
    *min = lo->kind == RT_NONE ? -INFINITY : rt_value_number(lo);
    *max = hi->kind == RT_NONE ? INFINITY : rt_value_number(hi);
    return rt_value_is_fixed(lo) && rt_value_is_fixed(hi);
}

static int64_t stored(const struct q_params *params, double number)
{
    double v = fmin(fmax(rint(number / params->scale) + (double)params->zero, (double)params->min),
                    (double)params->max);
    return (int64_t)v;
}

/* Clamps that only the quantize reads become its bounds; returns the value before them. */
static uint32_t peel_clamps(const struct q_pass *q, uint32_t value, struct q_params *params)
{
    const struct rt_node *node = q_producer(q, value);
    double min, max;
    while (node && rt_rewrite_is_single_use(&q->rw, value) &&
           read_clamp(q->graph, node, &min, &max) &&
           rt_node_arg(q->graph, node, 0)->dtype == DT_F32 && min <= max) {
        int64_t low = stored(params, min), high = stored(params, max);
        params->min = low;
        params->max = high;
        value = node->args[0];
        node = q_producer(q, value);
    }
    return value;
}

static bool read_params(const struct rt_graph *graph, const struct rt_node *node,
                        struct q_params *params)
{
    const struct rt_value *out = rt_node_out(graph, node, 0);
    int64_t shift = q_shift_of(out);
    params->scale = rt_value_number(rt_node_arg(graph, node, 1));
    bool fits = q_is_byte(out) && rt_node_arg(graph, node, 0)->dtype == DT_F32 &&
                is_usual_scale(params->scale) &&
                q_fixed_int(rt_node_arg(graph, node, 2), &params->zero) &&
                q_fixed_int(rt_node_arg(graph, node, 3), &params->min) &&
                q_fixed_int(rt_node_arg(graph, node, 4), &params->max);
    if (!fits || params->min < -shift || params->max > 255 - shift || params->min > params->max ||
        params->zero < -shift || params->zero > 255 - shift) {
        return false;
    }
    params->zero += shift;
    params->min += shift;
    params->max += shift;
    return true;
}

/* Stores |value|, floats, as |params| say, without computing the floats; *out_value 0: not
 * possible. */
static enum status store(struct q_pass *q, uint32_t value, const struct q_params *params,
                         uint32_t *out_value)
{
    struct q_params peeled = *params;
    uint32_t from = peel_clamps(q, value, &peeled);
    const struct q_info *x = q_info_of(q, from);
    *out_value = 0;
    if (x->kind == Q_PRODUCT) {
        return rt_rewrite_is_single_use(&q->rw, from)
                   ? q_make_product(q, x->node, &peeled, out_value)
                   : ST_OK;
    }
    if (x->kind == Q_TENSOR) {
        return q_restore(q, x, &peeled, out_value);
    }
    return q_make_between(q, from, &peeled, out_value);
}

/* Clamps of the integers, also after nodes that move them, become bounds of |params|, too. */
static void find_clamps(struct q_pass *q, uint32_t value, struct q_params *params)
{
    double shift = (double)q_shift_of(&q->graph->values[value]), min, max;
    while (rt_rewrite_is_single_use(&q->rw, value) && q->info[value].user != RT_NO_NODE) {
        const struct rt_node *node = &q->graph->nodes[q->info[value].user];
        bool moves = q_can_move(q, node) && !q_is(node, RT_KNOWN_constant_pad);
        bool clamps = node->out_count == 1 && node->args[0] == value &&
                      rt_node_out(q->graph, node, 0)->dtype == q->graph->values[value].dtype &&
                      read_clamp(q->graph, node, &min, &max) && min <= max;
        if (!moves && !clamps) {
            return;
        }
        if (clamps) {
            params->min =
                (int64_t)fmin(fmax((double)params->min, ceil(min) + shift), (double)params->max);
            params->max =
                (int64_t)fmax(fmin((double)params->max, floor(max) + shift), (double)params->min);
        }
        value = node->outs[0];
        q->info[value].is_bounded = clamps;
    }
}

static enum status on_quantize(struct q_pass *q, const struct rt_node *node)
{
    uint32_t out = node->outs[0], value = node->args[0], made;
    struct q_params params;
    if (!read_params(q->graph, node, &params)) {
        return ST_OK;
    }
    find_clamps(q, out, &params);
    TRY(store(q, value, &params, &made));
    if (made == 0) {
        TRY(q_quantize(q, value, &params, &made));
    }
    q->info[out].u8 = made;
    return ST_OK;
}

/* A clamp of integers is dropped if the node that made them has already done it. */
static void on_clamp(struct q_pass *q, const struct rt_node *node)
{
    struct q_info *out = &q->info[node->outs[0]];
    if (out->is_bounded) {
        out->u8 = q->info[node->args[0]].u8;
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

static enum status look_at(struct q_pass *q, uint32_t index)
{
    const struct rt_node *node = &q->graph->nodes[index];
    if (q_is(node, RT_KNOWN_quantize)) {
        return on_quantize(q, node);
    }
    if (q_is(node, RT_KNOWN_dequantize)) {
        return on_dequantize(q, node);
    }
    if (q_is(node, RT_KNOWN_dequantize_rows)) {
        return on_dequantize_rows(q, node);
    }
    if (q_is(node, RT_KNOWN_cat)) {
        return q_move_cat(q, index);
    }
    if (node->out_count == 1 && q_is_byte(rt_node_out(q->graph, node, 0)) &&
        (q_is(node, RT_KNOWN_clamp) || q_is(node, RT_KNOWN_hardtanh) ||
         q_is(node, RT_KNOWN_relu))) {
        on_clamp(q, node);
        return ST_OK;
    }
    if (q_can_move(q, node)) {
        return q_move(q, index);
    }
    if (q_is(node, RT_KNOWN_dequantize_channels)) {
        on_dequantize_channels(q, node);
    } else if (q_is(node, RT_KNOWN_dequantize_groups)) {
        on_dequantize_groups(q, node);
    } else {
        q_note_product(q, index);
    }
    return ST_OK;
}

/* Does |node| depend only on constants? */
static void note_known(struct q_pass *q, const struct rt_node *node)
{
    bool known = true;
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const struct rt_value *v = rt_node_arg(q->graph, node, i);
        known =
            known && (v->kind != RT_TENSOR || q->is_known[node->args[i]]) && v->kind != RT_TENSORS;
    }
    for (uint32_t i = 0; i < node->out_count; i++) {
        q->is_known[node->outs[i]] = known;
    }
}

/* Replaces |value| by its new computation, if there is one. */
static enum status replace(struct q_pass *q, uint32_t value)
{
    const struct q_info info = q->info[value];
    bool is_float = q->graph->values[value].dtype == DT_F32;
    uint32_t made = 0;
    if (info.u8 != 0 && !info.is_flip) {
        made = info.u8;
        if (q->graph->values[value].dtype == DT_I8) {
            TRY(rt_op_apply(q->graph, RT_OP(q_flip), &info.u8, 1, DT_I8, &made, q->err));
        }
    } else if (info.kind == Q_TENSOR && is_float) {
        const struct rt_node *node = q_producer(q, value);
        bool is_input =
            node && q_is(node, RT_KNOWN_dequantize) && q_info_of(q, node->args[0])->is_flip;
        if (!is_input) {
            TRY(q_dequantize(q, info.bytes, info.scale, info.zero, &made));
        }
    } else if (info.kind == Q_PRODUCT) {
        TRY(q_make_product(q, info.node, NULL, &made));
    }
    if (made != 0) {
        rt_rewrite_replace(&q->rw, value, made);
    }
    return ST_OK;
}

enum status rt_pass_quantize(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct q_pass q = {.graph = graph, .err = err};
    TRY(q_settle_scales(graph, err));
    uint32_t count = graph->value_count;
    TRY(rt_rewrite_begin(&q.rw, graph, err));
    q.info = arena_array(&graph->arena, count, sizeof(*q.info));
    q.is_known = arena_array(&graph->arena, count, sizeof(*q.is_known));
    q.rows = arena_array(&graph->arena, count, sizeof(*q.rows));
    graph->failed |= !q.info || !q.is_known || !q.rows;
    TRY(rt_graph_check(graph, err));
    for (uint32_t i = 0; i < count; i++) {
        q.is_known[i] = graph->values[i].is_constant;
        q.rows[i].node = q.info[i].user = RT_NO_NODE;
    }
    for (uint32_t i = 0; i < q.rw.node_count; i++) {
        for (uint32_t j = 0; j < graph->nodes[i].arg_count; j++) {
            q.info[graph->nodes[i].args[j]].user = i;
        }
    }
    for (uint32_t i = 0; i < q.rw.node_count; i++) {
        rt_rewrite_node(&q.rw, i);
        note_known(&q, &graph->nodes[i]);
        TRY(look_at(&q, i));
    }
    for (uint32_t i = 0; i < q.rw.value_count; i++) {
        TRY(replace(&q, i));
    }
    return rt_rewrite_end(&q.rw, err);
}
