/* SPDX-License-Identifier: MIT */
/*
 * Batch rules that change what a node reads. An argument that is the same for all rows, such as the
 * class token of a ViT, is repeated for each row where the operator does not broadcast. An operator
 * that moves dim 0 of one row gets the rows as a dim of their own for the time being.
 */
#include "config.h"

#include <string.h>

#include "runtime/ops/apply.h"
#include "runtime/ops/batch_call.h"
#include "runtime/ops/known.h"

/* ---- changing a node ------------------------------------------------------------------------- */

enum status rt_batch_refuse(const struct rt_batch_call *call, const char *why)
{
    return error_set(call->err, ST_UNSUPPORTED, "%s", why);
}

bool rt_batch_is_first(struct rt_dim given, uint8_t rank)
{
    return !rt_dim_is_const(given) || given.value == 0 || given.value == -(int64_t)rank;
}

/* The lists of a node are shared with the graph for one row, so the list is copied. */
enum status rt_batch_replace(struct rt_batch_call *call, uint32_t index, uint32_t value)
{
    struct rt_graph *graph = call->graph;
    uint32_t *args = arena_array(&graph->arena, call->node->arg_count, sizeof(*args));
    if (!args) {
        return arena_fail(&graph->arena, "the method", call->err);
    }
    memcpy(args, call->node->args, call->node->arg_count * sizeof(*args));
    args[index] = value;
    call->node->args = args;
    return rt_graph_check(graph, call->err);
}

/* Appends a node in front of the call's one, which may move in memory. */
static enum status apply(struct rt_batch_call *call, const struct rt_op *op, uint32_t value,
                         const struct rt_dim *items, uint32_t count, uint32_t *out)
{
    struct rt_graph *graph = call->graph;
    uint32_t number = (uint32_t)(call->node - graph->nodes);
    const uint32_t args[] = {value, rt_graph_ints(graph, items, count),
                             op == RT_OP(expand) ? rt_graph_bool(graph, false) : 0};
    graph->origin = call->node->origin;
    enum status status = rt_op_apply(graph, op, args, op == RT_OP(expand) ? 3 : 2,
                                     graph->values[value].dtype, out, call->err);
    call->node = &graph->nodes[number];
    return status;
}

/* |value| once for each row; it keeps its order in memory. */
static enum status spread(struct rt_batch_call *call, uint32_t value, uint32_t *out)
{
    struct rt_graph *graph = call->graph;
    const struct rt_value *v = &graph->values[value];
    struct rt_dim items[SHAPE_RANK_MAX];
    if (v->rank == 0 || v->rank > SHAPE_RANK_MAX || v->is_packed) {
        return rt_batch_refuse(call, "an argument that is the same for all rows has no dim 0");
    }
    bool is_one = rt_dim_is(v->dims[0], 1);
    const uint8_t *order = v->order;
    items[0] = call->rows;
    for (uint8_t d = 1; d < v->rank; d++) {
        items[d] = is_one ? v->dims[d] : rt_dim_of(1);
    }
    TRY(apply(call, is_one ? RT_OP(expand) : RT_OP(repeat), value, items, v->rank, out));
    graph->values[*out].order = order;
    return ST_OK;
}

enum status rt_batch_spread(struct rt_batch_call *call, uint32_t index)
{
    uint32_t made;
    if (index >= call->node->arg_count || rt_batch_carries(call, index) ||
        rt_batch_arg(call, index)->kind != RT_TENSOR) {
        return ST_OK;
    }
    TRY(spread(call, call->node->args[index], &made));
    return rt_batch_replace(call, index, made);
}

static bool is_in_order(const struct rt_value *v)
{
    return v->order == NULL && !v->is_packed;
}

/* From now on the node is a view of argument 0, with the dims that its output has. */
static enum status become_view(struct rt_batch_call *call)
{
    struct rt_graph *graph = call->graph;
    const struct rt_value *out = rt_node_out(graph, call->node, 0);
    struct rt_dim items[SHAPE_RANK_MAX];
    const struct rt_value *self = rt_batch_arg(call, 0);
    /* A view has the bytes of its argument, whose rows follow each other if dim 0 is outermost. */
    bool is_row_by_row = (call->node->op->flags & RT_OP_VIEW) && self->order && self->order[0] == 0;
    if (out->kind != RT_TENSOR || out->rank == 0 || !is_in_order(out) ||
        !(is_in_order(self) || is_row_by_row)) {
        return rt_batch_refuse(call, "it works along dim 0");
    }
    memcpy(items, out->dims, out->rank * sizeof(items[0]));
    items[0] = rt_dim_mul(&graph->dims, call->rows, items[0]);
    const uint32_t args[] = {call->node->args[0], rt_graph_ints(graph, items, out->rank)};
    uint32_t *copy = arena_array(&graph->arena, 2, sizeof(*copy));
    if (!copy) {
        return arena_fail(&graph->arena, "the method", call->err);
    }
    memcpy(copy, args, sizeof(args));
    call->node->op = RT_OP(view);
    call->node->args = copy;
    call->node->arg_count = 2;
    return rt_graph_check(graph, call->err);
}

/* ---- arguments for all rows ------------------------------------------------------------------ */

/* Argument 0 is a list of tensors. Tensors that are the same for all rows are repeated. */
enum status rt_batch_list(struct rt_batch_call *call)
{
    struct rt_graph *graph = call->graph;
    uint32_t count = rt_batch_arg(call, 0)->count;
    uint32_t *items = arena_array(&graph->arena, count + 1, sizeof(*items));
    if (!items) {
        return arena_fail(&graph->arena, "the method", call->err);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t item = items[i] = rt_batch_arg(call, 0)->values[i];
        const struct rt_value *v = &graph->values[item];
        bool is_nothing = v->kind != RT_TENSOR || (v->rank == 1 && rt_dim_is(v->dims[0], 0));
        if (!is_nothing && !rt_batch_has_rows(call, item)) {
            TRY(spread(call, item, &items[i]));
        }
    }
    TRY(rt_batch_along(call));
    return rt_batch_replace(call, 0, rt_graph_tensors(graph, items, count));
}

/* Each tensor argument that has no rows, but the extent of one row's result along dim 0. */
enum status rt_batch_pointwise(struct rt_batch_call *call)
{
    for (uint32_t i = 0; i < call->node->arg_count; i++) {
        const struct rt_value *v = rt_batch_arg(call, i);
        const struct rt_value *out = rt_node_out(call->graph, call->node, 0);
        if (v->kind == RT_TENSOR && !rt_batch_carries(call, i) && v->rank == out->rank &&
            v->rank > 0 && !rt_dim_is(v->dims[0], 1) && rt_dim_same(v->dims[0], out->dims[0])) {
            TRY(rt_batch_spread(call, i));
        }
    }
    return ST_OK; /* the output's dims show that the rows are along the same dim everywhere */
}

/* Arguments 0 and |other| have one item for each of the other's, along dim 0 as well. */
static enum status spread_both(struct rt_batch_call *call, uint32_t other)
{
    TRY(rt_batch_spread(call, 0));
    TRY(rt_batch_spread(call, other));
    const struct rt_value *a = rt_batch_arg(call, 0), *b = rt_batch_arg(call, other);
    bool fits = a->rank > 0 && b->rank > 0 && rt_dim_same(a->dims[0], b->dims[0]);
    return fits ? ST_OK : rt_batch_refuse(call, "its arguments differ in dim 0");
}

enum status rt_batch_pair(struct rt_batch_call *call)
{
    return spread_both(call, 1);
}

/* Batches of matrices. A single matrix on the right is for all rows. */
enum status rt_batch_matrices(struct rt_batch_call *call)
{
    bool is_single = rt_batch_arg(call, 1)->rank <= 2 && !rt_batch_carries(call, 1);
    return is_single ? rt_batch_each(call) : spread_both(call, 1);
}

/* The matrices of argument 1 are packed: dim 0 says how many there are. */
enum status rt_batch_packed(struct rt_batch_call *call)
{
    if (!rt_batch_carries(call, 1) && !rt_dim_is(rt_batch_arg(call, 1)->dims[0], 1)) {
        return rt_batch_refuse(call, "its matrices are the same for all rows");
    }
    TRY(rt_batch_carries(call, 1) ? rt_batch_spread(call, 0) : ST_OK);
    return rt_batch_each(call);
}

/* Queries, keys and values; masks are broadcast. */
enum status rt_batch_attention(struct rt_batch_call *call)
{
    for (uint32_t i = 0; i < 3; i++) {
        TRY(rt_batch_spread(call, i));
    }
    return ST_OK;
}

/* ---- indices --------------------------------------------------------------------------------- */

/* Argument 2 is the dim. */
static bool meets_third(const struct rt_batch_call *call)
{
    return rt_batch_is_first(rt_batch_arg(call, 2)->i, rt_batch_arg(call, 0)->rank);
}

enum status rt_batch_along_third(struct rt_batch_call *call)
{
    return meets_third(call) ? rt_batch_refuse(call, "it works along dim 0") : rt_batch_each(call);
}

/* A part, argument 1, goes into argument 0. */
enum status rt_batch_put_part(struct rt_batch_call *call)
{
    return meets_third(call) ? rt_batch_refuse(call, "it works along dim 0") : rt_batch_pair(call);
}

/* Argument 1 is the dim, 2 are the indices, 3 has the elements that are written there. */
enum status rt_batch_indices(struct rt_batch_call *call)
{
    if (rt_batch_is_first(rt_batch_arg(call, 1)->i, rt_batch_arg(call, 0)->rank)) {
        return rt_batch_refuse(call, "it works along dim 0");
    }
    TRY(spread_both(call, 2));
    bool has_source = call->node->arg_count > 3 && rt_batch_arg(call, 3)->kind == RT_TENSOR;
    return has_source ? spread_both(call, 3) : ST_OK;
}

static bool is_zero(const struct rt_value *v)
{
    bool is_int = v->dtype == DT_I64 || v->dtype == DT_I32;
    bool is_single = v->kind == RT_TENSOR && v->is_constant && is_int;
    for (uint8_t d = 0; is_single && d < v->rank; d++) {
        is_single = rt_dim_is(v->dims[d], 1);
    }
    for (size_t i = 0; is_single && i < v->bytes.len; i++) {
        is_single = v->bytes.ptr[i] == 0;
    }
    return is_single && v->bytes.len > 0;
}

/* x[0, i] of one row, with the only index that there is: the index counts the rows. */
static enum status count_rows(struct rt_batch_call *call)
{
    struct rt_graph *graph = call->graph;
    uint32_t number = (uint32_t)(call->node - graph->nodes), count = rt_batch_arg(call, 1)->count;
    uint32_t items[SHAPE_RANK_MAX], made;
    if (count > SHAPE_RANK_MAX) {
        return rt_batch_refuse(call, "too many indices");
    }
    memcpy(items, rt_batch_arg(call, 1)->values, count * sizeof(items[0]));
    uint8_t rank = graph->values[items[0]].rank;
    const uint32_t end = rt_graph_int(graph, call->rows);
    graph->origin = call->node->origin;
    TRY(rt_op_apply(graph, RT_OP(arange), &end, 1, DT_I64, &made, call->err));
    call->node = &graph->nodes[number];
    struct rt_dim dims[SHAPE_RANK_MAX] = {call->rows};
    for (uint8_t d = 1; d < rank; d++) {
        dims[d] = rt_dim_of(1);
    }
    if (rank > 1) {
        TRY(apply(call, RT_OP(view), made, dims, rank, &made));
    }
    items[0] = made;
    return rt_batch_replace(call, 1, rt_graph_tensors(graph, items, count));
}

/* Argument 1 is a list of indices. The dims of the result show that dim 0 of an index, or of the
 * indexed tensor, comes first in it. */
enum status rt_batch_index(struct rt_batch_call *call)
{
    const struct rt_value *self = rt_batch_arg(call, 0), *list = rt_batch_arg(call, 1);
    const struct rt_value *first = list->count ? &call->graph->values[list->values[0]] : NULL;
    if (!rt_batch_carries(call, 0) || !first || first->kind == RT_NONE) {
        return ST_OK;
    }
    bool is_only = rt_dim_same(self->dims[0], call->rows) && first->rank > 0 && is_zero(first);
    return is_only ? count_rows(call) : rt_batch_refuse(call, "it takes rows by their number");
}

enum status rt_batch_put(struct rt_batch_call *call)
{
    const struct rt_value *list = rt_batch_arg(call, 1);
    bool is_fixed = list->count > 0 && call->graph->values[list->values[0]].kind == RT_NONE;
    for (uint32_t i = 0; i < list->count; i++) {
        is_fixed = is_fixed && !rt_batch_has_rows(call, list->values[i]);
    }
    if (!is_fixed) {
        return rt_batch_refuse(call, "it puts rows by their number");
    }
    return rt_batch_spread(call, 0);
}

/* ---- dim 0 of one row ------------------------------------------------------------------------ */

/* The node's operator along dim 0 of one row, argument 1: along dim 1 of a tensor whose dim 0 is
 * the rows. The node itself becomes a view of the result. */
static enum status lift(struct rt_batch_call *call)
{
    struct rt_graph *graph = call->graph;
    uint32_t self = call->node->args[0], number = (uint32_t)(call->node - graph->nodes);
    const struct rt_value *v = &graph->values[self];
    struct rt_dim dims[SHAPE_RANK_MAX] = {call->rows, rt_dim_of(-1)};
    enum dtype dtype = v->dtype;
    uint32_t args[8], count = call->node->arg_count;
    if (v->rank >= SHAPE_RANK_MAX || count > 8 || !is_in_order(v) ||
        !is_in_order(rt_node_out(graph, call->node, 0))) {
        return rt_batch_refuse(call, "it works along dim 0");
    }
    memcpy(dims + 2, v->dims + 1, (v->rank - 1u) * sizeof(dims[0]));
    TRY(apply(call, RT_OP(view), self, dims, v->rank + 1u, &self));
    memcpy(args, call->node->args, count * sizeof(args[0]));
    args[0] = self;
    args[1] = rt_graph_int(graph, rt_dim_of(1));
    TRY(rt_op_apply(graph, call->node->op, args, count, dtype, &self, call->err));
    call->node = &graph->nodes[number];
    TRY(rt_batch_replace(call, 0, self));
    return become_view(call);
}

/* Parts of dims, and dims of length 1, argument 1 being the dim. All of dim 0 is a view. */
enum status rt_batch_part(struct rt_batch_call *call)
{
    struct rt_graph *graph = call->graph;
    uint32_t from = call->node->args[0], to = call->node->outs[0];
    if (rt_batch_along(call) == ST_OK) {
        return ST_OK;
    }
    if (!rt_batch_carries(call, 0)) {
        return call->err->code;
    }
    struct rt_dim all = rt_value_numel(graph, &graph->values[to]);
    all = rt_dim_mul(&graph->dims, all, call->rows);
    bool is_all = rt_dim_same(all, rt_value_numel(graph, &graph->values[from]));
    bool is_dim = rt_batch_arg(call, 1)->kind == RT_INT;
    return is_all ? become_view(call) : is_dim ? lift(call) : call->err->code;
}

/* Does no dim longer than 1 change places? Then the elements do not either. */
static bool stays(const struct rt_value *out, const uint8_t *order)
{
    int last = -1;
    for (uint8_t d = 0; d < out->rank; d++) {
        if (!rt_dim_is(out->dims[d], 1)) {
            if (order[d] < last) {
                return false;
            }
            last = order[d];
        }
    }
    return true;
}

/* Swaps dims of one row, |order|: the rows become dim 0 of their own, and dim 0 the next one. */
static enum status permute_rows(struct rt_batch_call *call, const uint8_t *order, uint8_t rank)
{
    struct rt_graph *graph = call->graph;
    uint32_t self = call->node->args[0];
    struct rt_dim dims[SHAPE_RANK_MAX], places[SHAPE_RANK_MAX];
    if ((call->node->op->flags & RT_OP_VIEW) || stays(rt_node_out(graph, call->node, 0), order)) {
        return become_view(call);
    }
    if (rank >= SHAPE_RANK_MAX || !is_in_order(&graph->values[self]) ||
        !is_in_order(rt_node_out(graph, call->node, 0))) {
        return rt_batch_refuse(call, "it moves dim 0");
    }
    dims[0] = call->rows;
    places[0] = rt_dim_of(0);
    for (uint8_t d = 0; d < rank; d++) {
        const struct rt_value *out = rt_node_out(graph, call->node, 0);
        dims[1 + order[d]] = out->dims[d];
        places[1 + d] = rt_dim_of(1 + order[d]);
    }
    TRY(apply(call, RT_OP(view), self, dims, rank + 1u, &self));
    TRY(apply(call, RT_OP(permute), self, places, rank + 1u, &self));
    TRY(rt_batch_replace(call, 0, self));
    return become_view(call);
}

enum status rt_batch_permute(struct rt_batch_call *call)
{
    const struct rt_value *list = rt_batch_arg(call, 1);
    uint8_t rank = rt_batch_arg(call, 0)->rank, order[SHAPE_RANK_MAX];
    TRY(rt_batch_each(call));
    if (list->count > 0 && rt_batch_is_first(list->ints[0], rank)) {
        return ST_OK;
    }
    if (list->count != rank) {
        return rt_batch_refuse(call, "it moves dim 0");
    }
    for (uint8_t d = 0; d < rank; d++) {
        order[d] = rt_dim_from_first(list->ints[d].value, rank);
    }
    return permute_rows(call, order, rank);
}

/* The rows become a dim of their own, whose stride is the length of a row. */
enum status rt_batch_moved(struct rt_batch_call *call)
{
    struct rt_graph *graph = call->graph;
    TRY(rt_batch_each(call));
    uint32_t number = (uint32_t)(call->node - graph->nodes), self = call->node->args[0], made;
    const struct rt_value *sizes = rt_batch_arg(call, 1), *strides = rt_batch_arg(call, 2);
    struct rt_dim dims[SHAPE_RANK_MAX], steps[SHAPE_RANK_MAX];
    if (sizes->count >= SHAPE_RANK_MAX || !is_in_order(&graph->values[self])) {
        return rt_batch_refuse(call, "it moves dim 0");
    }
    dims[0] = call->rows;
    steps[0] =
        rt_dim_floordiv(&graph->dims, rt_value_numel(graph, &graph->values[self]), call->rows);
    for (uint32_t d = 0; d < sizes->count; d++) {
        dims[1 + d] = sizes->ints[d];
        steps[1 + d] = strides->ints[d];
    }
    const uint32_t args[] = {self, rt_graph_ints(graph, dims, sizes->count + 1),
                             rt_graph_ints(graph, steps, sizes->count + 1), call->node->args[3]};
    graph->origin = call->node->origin;
    enum status status =
        rt_op_apply(graph, RT_OP(moved), args, 4, graph->values[self].dtype, &made, call->err);
    call->node = &graph->nodes[number];
    TRY(status);
    TRY(rt_batch_replace(call, 0, made));
    return become_view(call);
}

static enum status swap(struct rt_batch_call *call, uint8_t a, uint8_t b)
{
    uint8_t rank = rt_batch_arg(call, 0)->rank, order[SHAPE_RANK_MAX];
    for (uint8_t d = 0; d < rank; d++) {
        order[d] = d == a ? b : d == b ? a : d;
    }
    return permute_rows(call, order, rank);
}

enum status rt_batch_transpose(struct rt_batch_call *call)
{
    uint8_t rank = rt_batch_arg(call, 0)->rank;
    struct rt_dim a = rt_batch_arg(call, 1)->i, b = rt_batch_arg(call, 2)->i;
    TRY(rt_batch_each(call));
    if (!rt_batch_is_first(a, rank) && !rt_batch_is_first(b, rank)) {
        return ST_OK;
    }
    bool are_const = rt_dim_is_const(a) && rt_dim_is_const(b);
    return are_const
               ? swap(call, rt_dim_from_first(a.value, rank), rt_dim_from_first(b.value, rank))
               : rt_batch_refuse(call, "it moves dim 0");
}

enum status rt_batch_t(struct rt_batch_call *call)
{
    TRY(rt_batch_each(call));
    return rt_batch_arg(call, 0)->rank < 2 ? ST_OK : swap(call, 0, 1);
}

/* Argument 1 has the number of repetitions of each dim. */
enum status rt_batch_repeat(struct rt_batch_call *call)
{
    const struct rt_value *times = rt_batch_arg(call, 1);
    bool is_once = times->count == rt_batch_arg(call, 0)->rank && rt_dim_is(times->ints[0], 1);
    return is_once ? rt_batch_each(call) : rt_batch_refuse(call, "it repeats dim 0");
}

/* Argument 2 lists the dims. */
enum status rt_batch_roll(struct rt_batch_call *call)
{
    const struct rt_value *dims = rt_batch_arg(call, 2);
    uint8_t rank = rt_batch_arg(call, 0)->rank;
    bool meets = dims->count == 0;
    for (uint32_t i = 0; i < dims->count; i++) {
        meets = meets || rt_batch_is_first(dims->ints[i], rank);
    }
    return meets ? rt_batch_refuse(call, "it works along dim 0") : rt_batch_each(call);
}

/* Works on matrices, in the last two dims. */
enum status rt_batch_last_two(struct rt_batch_call *call)
{
    bool meets = rt_batch_arg(call, 0)->rank < 3;
    return meets ? rt_batch_refuse(call, "it works along dim 0") : rt_batch_each(call);
}

/* Arguments 2 and 3 are the dims. */
enum status rt_batch_diagonal(struct rt_batch_call *call)
{
    uint8_t rank = rt_batch_arg(call, 0)->rank;
    bool meets = rt_batch_is_first(rt_batch_arg(call, 2)->i, rank) ||
                 rt_batch_is_first(rt_batch_arg(call, 3)->i, rank);
    return meets ? rt_batch_refuse(call, "it works along dim 0") : rt_batch_each(call);
}

/* Argument 3 is the extent of dim 0. */
enum status rt_batch_samples(struct rt_batch_call *call)
{
    struct rt_graph *graph = call->graph;
    struct rt_dim samples = rt_batch_arg(call, 3)->i;
    TRY(rt_batch_each(call));
    uint32_t made = rt_graph_int(graph, rt_dim_mul(&graph->dims, call->rows, samples));
    return rt_batch_replace(call, 3, made);
}
