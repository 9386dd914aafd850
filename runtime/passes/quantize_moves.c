/* SPDX-License-Identifier: MIT */
/* Operators that only move numbers move the stored integers instead. See quantize.c. */
#include "config.h"

#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/quantize.h"

#include <math.h>

static bool is_movement(const struct rt_node *node)
{
    static const enum rt_known ops[] = {
        RT_KNOWN_view,
        RT_KNOWN_unsqueeze,
        RT_KNOWN_squeeze_dim,
        RT_KNOWN_squeeze,
        RT_KNOWN_permute,
        RT_KNOWN_transpose,
        RT_KNOWN_t,
        RT_KNOWN_expand,
        RT_KNOWN_repeat,
        RT_KNOWN_slice,
        RT_KNOWN_narrow,
        RT_KNOWN_select,
        RT_KNOWN_flip,
        RT_KNOWN_pixel_shuffle,
        RT_KNOWN_pixel_unshuffle,
        RT_KNOWN_clone,
        RT_KNOWN_clone_format,
        RT_KNOWN_alias,
        RT_KNOWN_constant_pad,
        RT_KNOWN_upsample_nearest2d,
        RT_KNOWN_max_pool2d,
    };
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (q_is(node, ops[i])) {
            return true;
        }
    }
    return false;
}

/* Makes node |index| again with |bytes| as argument 0, and with |pad| as its third argument if that
 * is the number to pad with. A second output must not be used. */
static enum status move_bytes(struct q_pass *q, uint32_t index, uint32_t bytes, int64_t pad,
                              uint32_t *out_value)
{
    struct rt_graph *graph = q->graph;
    const struct rt_node *node = &graph->nodes[index];
    uint32_t args[8], outs[2], count = node->arg_count, out_count = node->out_count;
    const struct rt_op *op = node->op;
    bool pads = q_is(node, RT_KNOWN_constant_pad);
    memcpy(args, node->args, count * sizeof(*args));
    if (out_count > 1) {
        outs[1] = rt_graph_tensor(graph, graph->values[node->outs[1]].dtype, 0, NULL);
    }
    args[0] = bytes;
    if (pads) {
        args[2] = q_int(q, pad < 0 ? 0 : pad > 255 ? 255 : pad);
    }
    outs[0] = rt_graph_tensor(graph, DT_U8, 0, NULL);
    uint32_t made = rt_graph_node(graph, op, args, count, outs, out_count);
    TRY(rt_graph_check(graph, q->err));
    TRY(rt_graph_infer(graph, made, q->err));
    *out_value = outs[0];
    return ST_OK;
}

bool q_can_move(const struct q_pass *q, const struct rt_node *node)
{
    return is_movement(node) && node->arg_count <= 8 && node->out_count <= 2 &&
           (node->out_count == 1 || rt_rewrite_uses(&q->rw, node->outs[1]) == 0) &&
           rt_node_arg(q->graph, node, 0)->kind == RT_TENSOR &&
           rt_node_arg(q->graph, node, 0)->dtype == rt_node_out(q->graph, node, 0)->dtype;
}

static bool pad_number(const struct q_pass *q, const struct rt_node *node, double *out_number)
{
    const struct rt_value *v = rt_node_arg(q->graph, node, node->arg_count - 1);
    *out_number = 0;
    if (!q_is(node, RT_KNOWN_constant_pad) || v->kind == RT_NONE) {
        return true;
    }
    *out_number = rt_value_number(v);
    return rt_value_is_fixed(v) && isfinite(*out_number);
}

/* Transposed weights are still weights. */
static void turn_weights(struct q_pass *q, const struct rt_node *node)
{
    const struct q_info *x = &q->info[node->args[0]];
    const struct rt_value *v = rt_node_arg(q->graph, node, 0);
    int64_t a = 0, b = 1;
    bool turns = q_is(node, RT_KNOWN_t);
    if (q_is(node, RT_KNOWN_permute)) {
        const struct rt_value *order = rt_node_arg(q->graph, node, 1);
        turns = order->count == 2 && (order->ints[0].value == 1 || order->ints[0].value == -1);
    } else if (q_is(node, RT_KNOWN_transpose)) {
        turns = q_fixed_int(rt_node_arg(q->graph, node, 1), &a) &&
                q_fixed_int(rt_node_arg(q->graph, node, 2), &b) && (a - b) % 2 != 0;
    }
    if (v->rank == 2 && turns) {
        q->info[node->outs[0]] = *x;
        q->info[node->outs[0]].is_turned = !x->is_turned;
    }
}

enum status q_move(struct q_pass *q, uint32_t index)
{
    const struct rt_node *node = &q->graph->nodes[index];
    uint32_t out = node->outs[0];
    struct q_info x = q->info[node->args[0]];
    double number;
    if (x.kind == Q_WEIGHTS) {
        turn_weights(q, node);
        return ST_OK;
    }
    if (!pad_number(q, node, &number)) {
        return ST_OK;
    }
    if (q_is_byte(&q->graph->values[out]) && x.u8 != 0 && !x.is_flip) {
        int64_t pad = (int64_t)number + q_shift_of(&q->graph->values[out]);
        return move_bytes(q, index, x.u8, pad, &q->info[out].u8);
    }
    if (x.kind == Q_TENSOR) {
        int64_t pad = (int64_t)rint(number / x.scale) + x.zero;
        TRY(move_bytes(q, index, x.bytes, pad, &x.bytes));
        x.u8 = 0;
        q->info[out] = x;
    }
    return ST_OK;
}

enum status q_move_cat(struct q_pass *q, uint32_t index)
{
    struct rt_graph *graph = q->graph;
    const struct rt_node *node = &graph->nodes[index];
    uint32_t list = node->args[0], count = graph->values[list].count, out = node->outs[0];
    uint32_t first = count > 0 ? graph->values[list].values[0] : 0, bytes[64];
    bool is_bytes = q_is_byte(&graph->values[out]);
    if (count == 0 || count > 64) {
        return ST_OK;
    }
    struct q_info like = *q_info_of(q, first);
    for (uint32_t i = 0; i < count; i++) {
        const struct q_info *x = q_info_of(q, graph->values[list].values[i]);
        bool fits = is_bytes
                        ? x->u8 != 0 && !x->is_flip
                        : x->kind == Q_TENSOR && x->scale == like.scale && x->zero == like.zero;
        if (!fits) {
            return ST_OK;
        }
        bytes[i] = is_bytes ? x->u8 : x->bytes;
    }
    uint32_t args[] = {rt_graph_tensors(graph, bytes, count), node->args[1]}, made;
    TRY(rt_op_apply(graph, node->op, args, 2, DT_U8, &made, q->err));
    if (is_bytes) {
        q->info[out].u8 = made;
    } else {
        like.bytes = made;
        like.u8 = 0;
        q->info[out] = like;
    }
    return ST_OK;
}
