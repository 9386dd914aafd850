/* SPDX-License-Identifier: MIT */
/*
 * Cancels permutes. One walk moves them towards the outputs, through operators that can compute on
 * the unpermuted argument: element-wise operators, concatenations, pads, slices, and reductions.
 * Where two permutes meet they become one, and a permute that changes nothing is dropped. Operators
 * that are permutes under another name become permutes.
 *
 * A network whose file has channels last is full of permutes around its convolutions; after this
 * pass it has the form of the original network. The layout pass looks at the remaining permutes
 * again: most of them move no bytes.
 *
 * Moving a permute never adds work. A permute with other readers stays, unless it only exchanges
 * the two orders of images, which costs nothing at convolutions.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* Dim d of the permuted tensor is dim dims[d] of the original. */
struct order {
    uint8_t rank;
    uint8_t dims[SHAPE_RANK_MAX];
};

struct pass {
    struct rt_rewrite rw;
    struct rt_graph *graph;
    struct error *err;
};

static bool is_op(const struct rt_node *node, enum rt_known id)
{
    return rt_op_is(node->op, id);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static struct order identity(uint8_t rank)
{
    struct order order = {.rank = rank};
    for (uint8_t d = 0; d < rank; d++) {
        order.dims[d] = d;
    }
    return order;
}

static bool same_order(const struct order *a, const struct order *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank) == 0;
}

static struct order inverse(const struct order *order)
{
    struct order inverse = {.rank = order->rank};
    for (uint8_t d = 0; d < order->rank; d++) {
        inverse.dims[order->dims[d]] = d;
    }
    return inverse;
}

/* Does the permute move channels from second to last, as after a convolution? */
static bool is_to_pixels(const struct order *order)
{
    bool is = order->rank >= 3 && order->dims[0] == 0 && order->dims[order->rank - 1] == 1;
    for (uint8_t d = 1; is && d + 1 < order->rank; d++) {
        is = order->dims[d] == d + 1;
    }
    return is;
}

/* Reads the order of |node| if it is a permute by any name. The shape function has checked its
 * dims. */
static bool read_order(const struct rt_graph *graph, const struct rt_node *node,
                       struct order *out_order)
{
    if (!is_op(node, RT_KNOWN_permute) && !is_op(node, RT_KNOWN_transpose) &&
        !is_op(node, RT_KNOWN_t)) {
        return false;
    }
    uint8_t rank = rt_node_arg(graph, node, 0)->rank;
    *out_order = identity(rank);
    if (is_op(node, RT_KNOWN_permute)) {
        const struct rt_value *dims = rt_node_arg(graph, node, 1);
        for (uint8_t d = 0; d < rank; d++) {
            out_order->dims[d] = rt_dim_from_first(dims->ints[d].value, rank);
        }
        return true;
    }
    if (rank < 2) {
        return true;
    }
    bool is_t = is_op(node, RT_KNOWN_t);
    uint8_t a = is_t ? 0 : rt_dim_from_first(rt_node_arg(graph, node, 1)->i.value, rank);
    uint8_t b = is_t ? 1 : rt_dim_from_first(rt_node_arg(graph, node, 2)->i.value, rank);
    out_order->dims[a] = b;
    out_order->dims[b] = a;
    return true;
}

/* If |value| is a permute, its argument and order; else |value| itself and the identity. */
static uint32_t look_through(const struct rt_graph *graph, uint32_t value, struct order *out_order)
{
    const struct rt_value *v = &graph->values[value];
    if (v->kind == RT_TENSOR && v->node != RT_NO_NODE &&
        read_order(graph, &graph->nodes[v->node], out_order)) {
        return graph->nodes[v->node].args[0];
    }
    *out_order = identity(v->kind == RT_TENSOR ? v->rank : 0);
    return value;
}

static enum status make_permute(struct pass *p, uint32_t value, const struct order *order,
                                uint32_t *out_value)
{
    struct order whole, none = identity(order->rank);
    uint32_t base = look_through(p->graph, value, &whole);
    for (uint8_t d = 0; d < order->rank; d++) {
        none.dims[d] = whole.dims[order->dims[d]];
    }
    whole = identity(order->rank);
    if (same_order(&none, &whole)) {
        *out_value = base;
        return ST_OK;
    }
    return rt_op_permute(p->graph, base, none.dims, order->rank, out_value, p->err);
}

/* ---- arguments in the order from before ------------------------------------------------------ */

/* The number of dims that are not known to be 1. */
static uint32_t wide_dims(const struct rt_value *v)
{
    uint32_t count = 0;
    for (uint8_t d = 0; d < v->rank; d++) {
        count += !rt_dim_is(v->dims[d], 1);
    }
    return count;
}

/* Is |value|, broadcast to |order|'s rank, available without the permute at no cost? */
static bool can_undo(const struct pass *p, uint32_t value, const struct order *order)
{
    const struct rt_value *v = &p->graph->values[value];
    struct order own;
    look_through(p->graph, value, &own);
    return v->kind != RT_TENSOR || same_order(&own, order) || v->is_constant || wide_dims(v) < 2 ||
           (v->rank == order->rank && is_to_pixels(order));
}

static enum status undo(struct pass *p, uint32_t value, const struct order *order,
                        uint32_t *out_value)
{
    const struct rt_value *v = &p->graph->values[value];
    struct order back = inverse(order);
    *out_value = value;
    if (v->kind != RT_TENSOR || wide_dims(v) == 0) {
        return ST_OK; /* the same in every order */
    }
    if (v->rank < order->rank) {
        struct rt_dim dims[SHAPE_RANK_MAX];
        uint8_t missing = (uint8_t)(order->rank - v->rank);
        for (uint8_t d = 0; d < order->rank; d++) {
            dims[d] = d < missing ? rt_dim_of(1) : v->dims[d - missing];
        }
        TRY(rt_op_view(p->graph, value, dims, order->rank, &value, p->err));
    }
    return make_permute(p, value, &back, out_value);
}

/* Finds the order of a permute among |values| that may move: it has no other reader or is an
 * exchange of image orders. */
static bool find_order(const struct pass *p, const uint32_t *values, const bool *is_shared,
                       uint32_t count, uint8_t rank, struct order *out_order)
{
    for (uint32_t i = 0; i < count; i++) {
        struct order order, none = identity(rank);
        look_through(p->graph, values[i], &order);
        if (order.rank == rank && !same_order(&order, &none) &&
            (!is_shared[i] || is_to_pixels(&order))) {
            *out_order = order;
            return true;
        }
    }
    return false;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

#define ARGS_MAX 16

/* A node to be made again on its unpermuted arguments. */
struct moved {
    const struct rt_op *op;
    uint32_t args[ARGS_MAX], arg_count;
    bool is_shared[ARGS_MAX]; /* does another node read the argument? */
    uint32_t out;
    uint8_t rank;
    struct order order;
};

/* Makes the node with its new arguments, and replaces its output by a permute of the new output. */
static enum status finish(struct pass *p, const struct moved *m, const struct order *order)
{
    uint32_t out;
    TRY(rt_op_apply(p->graph, m->op, m->args, m->arg_count, p->graph->values[m->out].dtype, &out,
                    p->err));
    TRY(make_permute(p, out, order, &out));
    rt_rewrite_replace(&p->rw, m->out, out);
    return ST_OK;
}

static enum status move_pointwise(struct pass *p, struct moved *m)
{
    if (!find_order(p, m->args, m->is_shared, m->arg_count, m->rank, &m->order)) {
        return ST_OK;
    }
    for (uint32_t i = 0; i < m->arg_count; i++) {
        if (!can_undo(p, m->args[i], &m->order)) {
            return ST_OK;
        }
    }
    for (uint32_t i = 0; i < m->arg_count; i++) {
        TRY(undo(p, m->args[i], &m->order, &m->args[i]));
    }
    return finish(p, m, &m->order);
}

/* Replaces argument |index|, a dim, by its number before the permute. */
static void move_axis(struct pass *p, struct moved *m, uint32_t index)
{
    uint8_t dim = rt_dim_from_first(p->graph->values[m->args[index]].i.value, m->rank);
    m->args[index] = rt_graph_int(p->graph, rt_dim_of(m->order.dims[dim]));
}

static enum status move_along(struct pass *p, struct moved *m)
{
    if (!find_order(p, m->args, m->is_shared, 1, m->rank, &m->order)) {
        return ST_OK;
    }
    TRY(undo(p, m->args[0], &m->order, &m->args[0]));
    move_axis(p, m, 1);
    return finish(p, m, &m->order);
}

/* All items must be available in one order. */
static enum status move_cat(struct pass *p, struct moved *m)
{
    const struct rt_value *list = &p->graph->values[m->args[0]];
    uint32_t count = list->count, *items = arena_array(&p->graph->arena, count, sizeof(*items));
    if (!items) {
        p->graph->failed = true;
        return rt_graph_check(p->graph, p->err);
    }
    memcpy(items, list->values, count * sizeof(*items));
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) {
        found = find_order(p, &items[i], m->is_shared, 1, m->rank, &m->order);
    }
    for (uint32_t i = 0; i < count; i++) {
        found =
            found && can_undo(p, items[i], &m->order) && p->graph->values[items[i]].rank == m->rank;
    }
    for (uint32_t i = 0; found && i < count; i++) {
        TRY(undo(p, items[i], &m->order, &items[i]));
    }
    if (!found) {
        return ST_OK;
    }
    m->args[0] = rt_graph_tensors(p->graph, items, count);
    move_axis(p, m, 1);
    return finish(p, m, &m->order);
}

/* The pads are pairs, from the last dim on. */
static enum status move_pad(struct pass *p, struct moved *m)
{
    const struct rt_value *pads = &p->graph->values[m->args[1]];
    struct rt_dim moved[2 * SHAPE_RANK_MAX];
    if (!find_order(p, m->args, m->is_shared, 1, m->rank, &m->order)) {
        return ST_OK;
    }
    for (uint8_t d = 0; d < m->rank; d++) {
        uint32_t from = 2u * (m->rank - 1u - d), to = 2u * (m->rank - 1u - m->order.dims[d]);
        for (uint32_t side = 0; side < 2; side++) {
            moved[to + side] = from + side < pads->count ? pads->ints[from + side] : rt_dim_of(0);
        }
    }
    TRY(undo(p, m->args[0], &m->order, &m->args[0]));
    m->args[1] = rt_graph_ints(p->graph, moved, 2u * m->rank);
    return finish(p, m, &m->order);
}

/* The order of the remaining dims. */
static struct order reduced_order(const struct order *order, uint32_t reduced)
{
    struct order left = {.rank = 0};
    for (uint8_t d = 0; d < order->rank; d++) {
        if (reduced >> d & 1) {
            continue;
        }
        uint8_t place = 0;
        for (uint8_t e = 0; e < order->rank; e++) {
            place = (uint8_t)(place + (!(reduced >> e & 1) && order->dims[e] < order->dims[d]));
        }
        left.dims[left.rank++] = place;
    }
    return left;
}

/* Reductions over a list of dims that stay as 1 or are dropped. Without a list, all dims are
 * reduced and nothing moves. */
static enum status move_reduction(struct pass *p, struct moved *m)
{
    uint8_t rank = p->graph->values[m->args[0]].rank;
    const struct rt_value *dims = &p->graph->values[m->args[1]];
    bool keeps = p->graph->values[m->args[2]].b;
    struct rt_dim moved[SHAPE_RANK_MAX];
    uint32_t reduced = 0;
    if (dims->kind != RT_INTS || dims->count == 0 ||
        !find_order(p, m->args, m->is_shared, 1, rank, &m->order)) {
        return ST_OK;
    }
    for (uint32_t i = 0; i < dims->count; i++) {
        uint8_t dim = rt_dim_from_first(dims->ints[i].value, rank);
        moved[i] = rt_dim_of(m->order.dims[dim]);
        reduced |= 1u << dim;
    }
    uint32_t count = dims->count;
    struct order order = keeps ? m->order : reduced_order(&m->order, reduced);
    TRY(undo(p, m->args[0], &m->order, &m->args[0]));
    m->args[1] = rt_graph_ints(p->graph, moved, count);
    return finish(p, m, &order);
}

typedef enum status move_f(struct pass *p, struct moved *m);

static const struct {
    enum rt_known op;
    move_f *move;
} rules[] = {
    {RT_KNOWN_cat, move_cat},        {RT_KNOWN_constant_pad, move_pad},
    {RT_KNOWN_slice, move_along},    {RT_KNOWN_narrow, move_along},
    {RT_KNOWN_mean, move_reduction}, {RT_KNOWN_sum, move_reduction},
    {RT_KNOWN_amax, move_reduction}, {RT_KNOWN_amin, move_reduction},
};

static move_f *find_rule(const struct rt_node *node)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (is_op(node, rules[i].op)) {
            return rules[i].move;
        }
    }
    bool writes_arguments = strchr(node->op->args, '!');
    return (node->op->flags & RT_OP_POINTWISE) && !writes_arguments ? move_pointwise : NULL;
}

/* Notes which arguments of node |index| have other readers. Call this before its arguments are
 * updated. */
static void note_shared(const struct pass *p, uint32_t index, struct moved *m)
{
    const struct rt_node *node = &p->graph->nodes[index];
    for (uint32_t i = 0; i < node->arg_count && i < ARGS_MAX; i++) {
        const struct rt_value *v = rt_node_arg(p->graph, node, i);
        m->is_shared[i] = !rt_rewrite_is_single_use(&p->rw, node->args[i]);
        for (uint32_t j = 0; v->kind == RT_TENSORS && j < v->count; j++) {
            m->is_shared[i] |= !rt_rewrite_is_single_use(&p->rw, v->values[j]);
        }
    }
}

/* A single permute that already is called "permute" stays. */
static enum status visit_permute(struct pass *p, const struct rt_node *node,
                                 const struct order *order)
{
    struct order none = identity(order->rank), before;
    uint32_t from = node->outs[0], arg = node->args[0], out;
    if (is_op(node, RT_KNOWN_permute) && !same_order(order, &none) &&
        look_through(p->graph, arg, &before) == arg) {
        return ST_OK;
    }
    TRY(make_permute(p, arg, order, &out));
    rt_rewrite_replace(&p->rw, from, out);
    return ST_OK;
}

static enum status visit(struct pass *p, uint32_t index)
{
    struct moved m = {0};
    struct order order;
    note_shared(p, index, &m);
    const struct rt_node *node = rt_rewrite_node(&p->rw, index);
    if (read_order(p->graph, node, &order)) {
        return visit_permute(p, node, &order);
    }
    move_f *move = find_rule(node);
    if (!move || node->arg_count > ARGS_MAX || node->out_count != 1) {
        return ST_OK;
    }
    m.op = node->op;
    m.arg_count = node->arg_count;
    m.out = node->outs[0];
    m.rank = p->graph->values[m.out].rank;
    memcpy(m.args, node->args, m.arg_count * sizeof(*m.args));
    return move(p, &m);
}

enum status rt_pass_permute(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct pass p = {.graph = graph, .err = err};
    TRY(rt_rewrite_begin(&p.rw, graph, err));
    for (uint32_t i = 0; i < p.rw.node_count; i++) {
        TRY(visit(&p, i));
    }
    return rt_rewrite_end(&p.rw, err);
}
