/* SPDX-License-Identifier: MIT */
/*
 * Makes one copy of several. A permute, a selection or a slice whose input is itself made by such
 * nodes, with views between them, reads the first node's input by strides of its own. Attention is
 * full of them: one permute of queries, keys and values, three selections of it, and a permute of
 * heads moved each element three times. Strides and offset have to be numbers, so only the first
 * dim of a tensor may vary. Runs behind all other passes, because they know these nodes.
 */
#include "config.h"

#include "base/bytes.h"
#include "base/check.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* Nodes that are followed, so that long chains of views do not take their length squared. */
#define NODES_MAX 16

/* Where the elements of a tensor lie in the row-major tensor |base|. */
struct place {
    uint32_t base;
    uint8_t rank;
    struct rt_dim dims[SHAPE_RANK_MAX];
    int64_t strides[SHAPE_RANK_MAX]; /* in elements; of a dim of 1: any */
    int64_t offset;
    uint32_t copies; /* nodes between that copy elements */
};

static bool is_one(struct rt_dim dim)
{
    return rt_dim_is(dim, 1);
}

/* ---- the nodes ------------------------------------------------------------------------------- */

static bool begin_at(const struct rt_graph *graph, uint32_t value, struct place *p)
{
    const struct rt_value *v = &graph->values[value];
    int64_t stride = 1;
    bool is_known = true;
    *p = (struct place){.base = value, .rank = v->rank};
    for (uint8_t d = v->rank; d-- > 0;) {
        p->dims[d] = v->dims[d];
        p->strides[d] = stride;
        if (!is_known && !is_one(v->dims[d])) {
            return false;
        }
        is_known = is_known && rt_dim_is_const(v->dims[d]) &&
                   mul_i64(stride, v->dims[d].value, &stride);
    }
    return v->order == NULL;
}

static bool permute(const struct rt_graph *graph, const struct rt_node *node, struct place *p)
{
    const struct rt_value *list = rt_node_arg(graph, node, 1);
    const struct place from = *p;
    for (uint8_t d = 0; d < p->rank; d++) {
        uint8_t dim = rt_dim_from_first(list->ints[d].value, p->rank);
        must(rt_dim_is_const(list->ints[d]) && dim < p->rank);
        p->dims[d] = from.dims[dim];
        p->strides[d] = from.strides[dim];
    }
    return true;
}

/* The dim that argument 1 names. */
static bool find_dim(const struct rt_graph *graph, const struct rt_node *node,
                     const struct place *p, uint8_t *out_dim)
{
    struct rt_dim dim = rt_node_arg(graph, node, 1)->i;
    *out_dim = rt_dim_from_first(dim.value, p->rank);
    return rt_dim_is_const(dim) && *out_dim < p->rank;
}

/* Later by |count| elements of dim |dim|, of which it has as many. */
static bool skip(struct place *p, uint8_t dim, int64_t count)
{
    int64_t elements;
    return count >= 0 && rt_dim_is_const(p->dims[dim]) && count <= p->dims[dim].value &&
           mul_i64(p->strides[dim], count, &elements) && add_i64(p->offset, elements, &p->offset);
}

static bool select_index(const struct rt_graph *graph, const struct rt_node *node, struct place *p)
{
    struct rt_dim index = rt_node_arg(graph, node, 2)->i;
    uint8_t dim;
    if (!find_dim(graph, node, p, &dim) || !rt_dim_is_const(index) ||
        !rt_dim_is_const(p->dims[dim])) {
        return false;
    }
    int64_t at = index.value + (index.value < 0 ? p->dims[dim].value : 0);
    if (at >= p->dims[dim].value || !skip(p, dim, at)) {
        return false;
    }
    p->rank--;
    for (uint8_t d = dim; d < p->rank; d++) {
        p->dims[d] = p->dims[d + 1];
        p->strides[d] = p->strides[d + 1];
    }
    return true;
}

static bool slice(const struct rt_graph *graph, const struct rt_node *node, struct place *p)
{
    const struct rt_value *start = rt_node_arg(graph, node, 2), *step = rt_node_arg(graph, node, 4);
    int64_t first = start->kind == RT_NONE ? 0 : start->i.value;
    uint8_t dim;
    if ((start->kind != RT_NONE && !rt_dim_is_const(start->i)) || !rt_dim_is(step->i, 1) ||
        !find_dim(graph, node, p, &dim) || !skip(p, dim, first)) {
        return false;
    }
    p->dims[dim] = rt_node_out(graph, node, 0)->dims[dim];
    return true;
}

/* One that this pass has made. It counts from the beginning of its input. */
static bool move(const struct rt_graph *graph, const struct rt_node *node, struct place *p)
{
    const struct rt_value *out = rt_node_out(graph, node, 0), *list = rt_node_arg(graph, node, 2);
    if (p->base != node->args[0]) {
        return false;
    }
    p->rank = out->rank;
    p->offset = rt_node_arg(graph, node, 3)->i.value;
    for (uint8_t d = 0; d < out->rank; d++) {
        p->dims[d] = out->dims[d];
        p->strides[d] = list->ints[d].value;
    }
    return true;
}

/* ---- views ----------------------------------------------------------------------------------- */

/* The dims of one side of a view that are looked at: [begin, end). */
struct group {
    const struct rt_dim *dims;
    uint8_t begin, end, rank;
    int64_t product;
};

static void skip_ones(struct group *g)
{
    while (g->begin < g->rank && is_one(g->dims[g->begin])) {
        g->begin++;
    }
    g->end = g->begin;
    g->product = 1;
}

/* Adds a dim to the group; false: there is none, or its size is not a positive number. */
static bool extend(struct group *g)
{
    return g->end < g->rank && rt_dim_is_const(g->dims[g->end]) && g->dims[g->end].value > 0 &&
           mul_i64(g->product, g->dims[g->end++].value, &g->product);
}

/* Groups of dims on both sides that have the same elements. */
static bool match(struct group *from, struct group *to)
{
    if (from->end < from->rank && to->end < to->rank &&
        rt_dim_same(from->dims[from->end], to->dims[to->end])) {
        from->end++;
        to->end++;
        return true;
    }
    if (!extend(from) || !extend(to)) {
        return false;
    }
    while (from->product != to->product) {
        if (!extend(from->product < to->product ? from : to)) {
            return false;
        }
    }
    return true;
}

/* Do the dims of |g| lie one behind the other, so that they are like one dim? */
static bool is_even(const struct place *p, const struct group *g)
{
    uint8_t inner = g->end - 1;
    for (uint8_t d = inner; d-- > g->begin;) {
        int64_t stride;
        if (is_one(p->dims[d])) {
            continue;
        }
        if (!mul_i64(p->strides[inner], p->dims[inner].value, &stride) ||
            p->strides[d] != stride) {
            return false;
        }
        inner = d;
    }
    return true;
}

static bool view(const struct rt_graph *graph, const struct rt_node *node, struct place *p)
{
    const struct place old = *p;
    const struct rt_value *out = rt_node_out(graph, node, 0);
    struct group from = {.dims = old.dims, .rank = old.rank};
    struct group to = {.dims = out->dims, .rank = out->rank};
    p->rank = out->rank;
    for (uint8_t d = 0; d < out->rank; d++) {
        p->dims[d] = out->dims[d];
        p->strides[d] = 1;
    }
    for (;;) {
        skip_ones(&from);
        skip_ones(&to);
        if (from.begin == from.rank && to.begin == to.rank) {
            return true;
        }
        if (!match(&from, &to) || !is_even(&old, &from)) {
            return false;
        }
        int64_t stride = old.strides[from.end - 1];
        for (uint8_t d = to.end; d-- > to.begin;) {
            p->strides[d] = stride;
            if (d > to.begin && !mul_i64(stride, p->dims[d].value, &stride)) {
                return false;
            }
        }
        from.begin = from.end;
        to.begin = to.end;
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

static bool copies(const struct rt_node *node)
{
    return rt_op_is(node->op, RT_KNOWN_permute) || rt_op_is(node->op, RT_KNOWN_select) ||
           rt_op_is(node->op, RT_KNOWN_slice) || rt_op_is(node->op, RT_KNOWN_moved);
}

static bool follow(const struct rt_graph *graph, const struct rt_node *node, struct place *p)
{
    p->copies += copies(node);
    return rt_op_is(node->op, RT_KNOWN_permute)  ? permute(graph, node, p)
           : rt_op_is(node->op, RT_KNOWN_select) ? select_index(graph, node, p)
           : rt_op_is(node->op, RT_KNOWN_slice)  ? slice(graph, node, p)
           : rt_op_is(node->op, RT_KNOWN_moved)  ? move(graph, node, p)
                                                 : view(graph, node, p);
}

/* Is |node| one that follow() knows: are all elements of its output elements of its argument? */
static bool is_move(const struct rt_graph *graph, const struct rt_node *node)
{
    const struct rt_value *from = rt_node_arg(graph, node, 0), *to = rt_node_out(graph, node, 0);
    return (copies(node) || node->op->flags & RT_OP_VIEW) && from->kind == RT_TENSOR &&
           from->dtype == to->dtype && !from->order && !to->order;
}

/* The place of |value|, as far up as nodes can be followed. */
static bool find_place(const struct rt_graph *graph, uint32_t value, struct place *p)
{
    const struct rt_node *nodes[NODES_MAX];
    uint32_t count = 0, index = graph->values[value].node;
    while (count < NODES_MAX && index != RT_NO_NODE && is_move(graph, &graph->nodes[index])) {
        nodes[count] = &graph->nodes[index];
        index = graph->values[nodes[count++]->args[0]].node;
    }
    for (uint32_t first = count; first > 0; first--) {
        bool is_found = begin_at(graph, nodes[first - 1]->args[0], p);
        for (uint32_t i = first; is_found && i-- > 0;) {
            is_found = follow(graph, nodes[i], p);
        }
        if (is_found) {
            return true;
        }
    }
    return false;
}

/* |node| becomes a copy from |p|, which has the dims of its output. */
static enum status read_directly(struct rt_graph *graph, uint32_t index, const struct place *p,
                                 struct error *err)
{
    struct rt_dim strides[SHAPE_RANK_MAX];
    uint32_t *args = arena_array(&graph->arena, 4, sizeof(*args));
    if (!args) {
        return arena_fail(&graph->arena, "the method", err);
    }
    for (uint8_t d = 0; d < p->rank; d++) {
        strides[d] = rt_dim_of(p->strides[d]);
    }
    args[0] = p->base;
    args[1] = rt_graph_ints(graph, p->dims, p->rank);
    args[2] = rt_graph_ints(graph, strides, p->rank);
    args[3] = rt_graph_int(graph, rt_dim_of(p->offset));
    struct rt_node *node = &graph->nodes[index];
    node->op = RT_OP(moved);
    node->args = args;
    node->arg_count = 4;
    return ST_OK;
}

enum status rt_pass_moves(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    struct place place;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        if (copies(node) && find_place(graph, node->outs[0], &place) && place.copies > 1 &&
            place.rank > 0) {
            TRY(read_directly(graph, i, &place, err));
        }
    }
    return rt_rewrite_end(&rw, err);
}
