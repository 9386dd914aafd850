/* SPDX-License-Identifier: MIT */
/*
 * Removes copies that change nothing: see passes.def. A value is written only once, so a copy with
 * the same type and dims is the value itself. Exporters write many copies to keep buffers apart
 * that do not exist here. XNNPACK joins at most five tensors at a time, so what joins more comes as
 * a tree of concatenations, and each level of it copied everything. Networks split an image,
 * compute something of the last piece, and join that with all pieces: the image itself will do.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* The last argument that is a tensor: the source of an RT_OP_COPY. */
static uint32_t source_of(const struct rt_graph *graph, const struct rt_node *node)
{
    for (uint32_t i = node->arg_count; i-- > 0;) {
        if (rt_node_arg(graph, node, i)->kind == RT_TENSOR) {
            return node->args[i];
        }
    }
    return 0;
}

/* ---- concatenations -------------------------------------------------------------------------- */

enum { CAT_LIST, CAT_DIM };
enum { SPLIT_X, SPLIT_SIZES, SPLIT_DIM };

/* Tensors that a concatenation may have of others. Each level of a chain of them gets a list of its
 * own, so without a bound a file with a long chain would take its length squared. */
#define JOINED_MAX 128

/* The dim along which |cat| joins its tensors; -1 if only a call knows it. */
static int dim_of(const struct rt_graph *graph, const struct rt_node *cat)
{
    struct rt_dim dim = rt_node_arg(graph, cat, CAT_DIM)->i;
    uint8_t rank = rt_node_out(graph, cat, 0)->rank;
    return rt_dim_is_const(dim) ? rt_dim_from_first(dim.value, rank) : -1;
}

/* The tensors that item |item| of |cat| consists of, if a concatenation along the same dim makes it
 * for |cat| alone; else NULL. */
static const struct rt_value *parts_of(const struct rt_rewrite *rw, const struct rt_node *cat,
                                       uint32_t item)
{
    const struct rt_graph *graph = rw->graph;
    const struct rt_value *v = &graph->values[item], *out = rt_node_out(graph, cat, 0);
    if (v->kind != RT_TENSOR || v->dtype != out->dtype || v->rank != out->rank ||
        !rt_rewrite_is_single_use(rw, item)) {
        return NULL;
    }
    const struct rt_node *inner = rt_rewrite_producer(rw, item, RT_KNOWN_cat);
    bool is_alike =
        inner && dim_of(graph, inner) >= 0 && dim_of(graph, inner) == dim_of(graph, cat);
    return is_alike ? rt_node_arg(graph, inner, CAT_LIST) : NULL;
}

/* The split whose pieces, all of them in their order, are the items of |cat| from |first| on; else
 * NULL. */
static const struct rt_node *split_of(const struct rt_graph *graph, const struct rt_node *cat,
                                      uint32_t first)
{
    const struct rt_value *list = rt_node_arg(graph, cat, CAT_LIST);
    const struct rt_value *piece = &graph->values[list->values[first]];
    const struct rt_node *split = piece->node != RT_NO_NODE ? &graph->nodes[piece->node] : NULL;
    if (!split || !rt_op_is(split->op, RT_KNOWN_split_sizes) ||
        piece->dtype != rt_node_out(graph, cat, 0)->dtype) {
        return NULL;
    }
    const struct rt_value *pieces = rt_node_out(graph, split, 0);
    struct rt_dim dim = rt_node_arg(graph, split, SPLIT_DIM)->i;
    bool is_along = rt_dim_is_const(dim) && dim_of(graph, cat) >= 0 &&
                    rt_dim_from_first(dim.value, piece->rank) == dim_of(graph, cat);
    bool are_all =
        pieces->count <= list->count - first &&
        memcmp(pieces->values, &list->values[first], pieces->count * sizeof(*pieces->values)) == 0;
    return is_along && are_all ? split : NULL;
}

/* What one or more items of a concatenation are, from the item before |end| on. */
struct run {
    const uint32_t *values;
    uint32_t count, end;
};

static struct run run_of(const struct rt_rewrite *rw, const struct rt_node *cat, uint32_t first)
{
    const struct rt_graph *graph = rw->graph;
    const struct rt_value *list = rt_node_arg(graph, cat, CAT_LIST);
    const struct rt_value *parts = parts_of(rw, cat, list->values[first]);
    const struct rt_node *split = split_of(graph, cat, first);
    if (split) {
        return (struct run){&split->args[SPLIT_X], 1, first + rt_node_out(graph, split, 0)->count};
    }
    return parts ? (struct run){parts->values, parts->count, first + 1}
                 : (struct run){&list->values[first], 1, first + 1};
}

/* All of |cat|'s tensors, into |items| unless that is NULL; returns how many there are. */
static uint32_t flatten(const struct rt_rewrite *rw, const struct rt_node *cat, uint32_t *items)
{
    const struct rt_value *list = rt_node_arg(rw->graph, cat, CAT_LIST);
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count;) {
        struct run run = run_of(rw, cat, i);
        for (uint32_t j = 0; items && j < run.count; j++) {
            items[count + j] = run.values[j];
        }
        count += run.count;
        i = run.end;
    }
    return count;
}

/* Joins the tensors of inner concatenations directly, which have been visited before, and tensors
 * that were split instead of all their pieces. */
static enum status visit_cat(struct rt_rewrite *rw, struct rt_node *cat, struct error *err)
{
    struct rt_graph *graph = rw->graph;
    uint32_t count = flatten(rw, cat, NULL);
    if (count == rt_node_arg(graph, cat, CAT_LIST)->count || count > JOINED_MAX) {
        return ST_OK;
    }
    uint32_t *items = arena_array(&graph->arena, count, sizeof(*items));
    if (!items) {
        return arena_fail(&graph->arena, "the method", err);
    }
    flatten(rw, cat, items);
    cat->args[CAT_LIST] = rt_graph_tensors(graph, items, count);
    return rt_graph_check(graph, err);
}

/* ---- parts of constants ---------------------------------------------------------------------- */

/* Each part of a constant becomes a node with one tensor, so that it is folded. Modules for
 * attention keep the weights of several products in one matrix. */
static enum status visit_split(struct rt_rewrite *rw, const struct rt_node *split,
                               struct error *err)
{
    struct rt_graph *graph = rw->graph;
    const struct rt_value *parts = rt_node_out(graph, split, 0);
    const struct rt_value *sizes = rt_node_arg(graph, split, SPLIT_SIZES);
    uint32_t from = split->args[SPLIT_X], dim = split->args[SPLIT_DIM], count = parts->count;
    uint32_t *values = parts->values;
    struct rt_dim *lengths = sizes->ints, begin = rt_dim_of(0);
    for (uint32_t i = 0; i < count && graph->values[from].is_constant; i++) {
        uint32_t made,
            args[] = {from, dim, rt_graph_int(graph, begin), rt_graph_int(graph, lengths[i])};
        enum dtype dtype = graph->values[from].dtype;
        TRY(rt_op_apply(graph, RT_OP(narrow), args, 4, dtype, &made, err));
        rt_rewrite_replace(rw, values[i], made);
        begin = rt_dim_add(&graph->dims, begin, lengths[i]);
    }
    return ST_OK;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static bool begins_at_0(const struct rt_graph *graph, const struct rt_node *slice)
{
    const struct rt_value *start = rt_node_arg(graph, slice, 2);
    return start->kind == RT_NONE || (start->kind == RT_INT && rt_dim_is(start->i, 0));
}

/* The value that |node| may copy; 0: none. */
static uint32_t original_of(const struct rt_graph *graph, const struct rt_node *node)
{
    if (rt_op_is(node->op, RT_KNOWN_expand)) {
        return node->args[0];
    }
    if (rt_op_is(node->op, RT_KNOWN_slice)) {
        return begins_at_0(graph, node) ? node->args[0] : 0;
    }
    if (rt_op_is(node->op, RT_KNOWN_constant_pad)) {
        return rt_ints_are(rt_node_arg(graph, node, 1), 0) ? node->args[0] : 0;
    }
    if (!rt_op_is(node->op, RT_KNOWN_cat)) {
        return node->op->flags & RT_OP_COPY ? source_of(graph, node) : 0;
    }
    const struct rt_value *list = rt_node_arg(graph, node, CAT_LIST);
    return list->count == 1 ? list->values[0] : 0;
}

enum status rt_pass_elide(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        struct rt_node *node = rt_rewrite_node(&rw, i);
        if (rt_op_is(node->op, RT_KNOWN_cat)) {
            TRY(visit_cat(&rw, node, err));
        } else if (rt_op_is(node->op, RT_KNOWN_split_sizes)) {
            TRY(visit_split(&rw, node, err));
            continue;
        }
        uint32_t from = original_of(graph, node), to = node->outs[0];
        const struct rt_value *a = &graph->values[from], *b = &graph->values[to];
        if (a->kind == RT_TENSOR && a->dtype == b->dtype && rt_value_same_dims(a, b)) {
            rt_rewrite_replace(&rw, to, from);
        }
    }
    return rt_rewrite_end(&rw, err);
}
