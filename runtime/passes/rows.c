/* SPDX-License-Identifier: MIT */
/*
 * Each value of |from| is the same in all rows, or it differs. A value that differs has a value for
 * each row, or one for all rows (dim 0 is then |rows| times as large), or both: the other form is
 * made when a node first asks for it, and kept.
 */
#include "config.h"

#include "runtime/passes/rows.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"

#define NO_VALUE UINT32_MAX

/* A constant of that many bytes counts as weights: reading it once for all rows is worth a copy. */
#define WEIGHTS_BYTES_MIN 2048

struct making {
    struct rt_graph *graph;
    const struct rt_graph *from;
    uint32_t rows;
    const struct rt_graph_buffers *buffers; /* of rt_graph_speculation(), else NULL */
    struct error *err;
    /* ---- by value of |from| ---- */
    bool *differs;
    bool *is_private; /* as large as a mutable buffer, and made of one */
    uint32_t *same;   /* the value in |graph|, or NO_VALUE; of one that differs always that */
    uint32_t *joined; /* of all rows, or NO_VALUE */
    uint32_t *apart;  /* [value * rows + row], or NO_VALUE */
    /* ---- by node of |from| ---- */
    bool *wants_rows; /* it reads weights, or what it gives goes to a node that does */
    /* ---- by value of |graph| ---- */
    bool *has_rows;
    uint32_t value_max;
    /* ---- by expression of |from|, of the row whose numbers were last looked up ---- */
    struct rt_dim *dims; /* [expression * rows + row] */
};

static void *take(const struct making *m, size_t count, size_t size)
{
    void *items = arena_array(&m->graph->arena, count, size);
    if (items && count) {
        memset(items, 0, count * size);
    }
    return items;
}

static enum status exhausted(const struct making *m)
{
    return arena_fail(&m->graph->arena, "the method", m->err);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static struct rt_dim dim_of(const struct making *m, struct rt_dim dim, uint32_t row)
{
    return dim.expr ? m->dims[(size_t)dim.expr * m->rows + row] : dim;
}

/* The expressions of |from| for a row: each depends on earlier ones. */
static struct rt_dim make_dim(const struct making *m, const struct rt_expr *e, uint32_t row)
{
    struct rt_dims *dims = &m->graph->dims;
    return e->kind == RT_EXPR_SYMBOL
               ? rt_dim_symbol(dims, e->hi)
               : rt_dim_apply(dims, e->kind, dim_of(m, e->a, row), dim_of(m, e->b, row));
}

static enum status make_dims(const struct making *m)
{
    const struct rt_dims *dims = &m->from->dims;
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 1; i < dims->expr_count; i++) {
            m->dims[(size_t)i * m->rows + row] = make_dim(m, &dims->exprs[i], row);
        }
        TRY(rt_dims_check(&m->graph->dims, m->err));
        for (uint32_t i = 0; i < dims->requirement_count; i++) {
            const struct rt_requirement *r = &dims->requirements[i];
            TRY(rt_dim_require_equal(&m->graph->dims, dim_of(m, r->a, row), dim_of(m, r->b, row),
                                     r->what, m->err));
        }
    }
    return ST_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum status add_value(const struct making *m, struct rt_value value, uint32_t *out)
{
    *out = rt_graph_none(m->graph);
    TRY(rt_graph_check(m->graph, m->err));
    if (*out >= m->value_max) {
        return error_set(m->err, ST_TOO_LARGE, "a graph of %u rows has too many values", m->rows);
    }
    value.node = RT_NO_NODE;
    if (value.buffer) {
        hal_buffer_ref(value.buffer);
    }
    m->graph->values[*out] = value;
    return ST_OK;
}

static struct rt_dim *copy_dims(const struct making *m, const struct rt_dim *from, uint32_t count,
                                uint32_t row)
{
    struct rt_dim *dims = take(m, count, sizeof(*dims));
    for (uint32_t i = 0; dims && i < count; i++) {
        dims[i] = dim_of(m, from[i], row);
    }
    return dims;
}

static enum status apart_of(const struct making *m, uint32_t value, uint32_t row, uint32_t *out);

static enum status copy_list(const struct making *m, struct rt_value *v, uint32_t row)
{
    uint32_t *items = take(m, v->count, sizeof(*items));
    if (!items) {
        return exhausted(m);
    }
    for (uint32_t i = 0; i < v->count; i++) {
        TRY(apart_of(m, v->values[i], row, &items[i]));
    }
    v->values = items;
    return ST_OK;
}

/* A copy of |value| with the numbers of |row|. */
static enum status copy_value(const struct making *m, uint32_t value, uint32_t row, uint32_t *out)
{
    struct rt_value v = m->from->values[value];
    v.declared = NULL;
    if (v.kind == RT_TENSORS) {
        TRY(copy_list(m, &v, row));
    } else if (v.kind == RT_INTS) {
        v.ints = copy_dims(m, v.ints, v.count, row);
        TRY(v.ints ? ST_OK : exhausted(m));
    } else if (v.kind == RT_INT) {
        v.i = dim_of(m, v.i, row);
    } else if ((v.kind == RT_FLOAT || v.kind == RT_BOOL) && v.symbol) {
        v.symbol = dim_of(m, (struct rt_dim){.expr = v.symbol}, row).expr;
    }
    return add_value(m, v, out);
}

/* Nodes that the pass adds have the origin of the node that it works on. */
static enum status add_node(const struct making *m, const struct rt_op *op, const uint32_t *args,
                            uint32_t arg_count, const uint32_t *outs, uint32_t out_count)
{
    rt_graph_node(m->graph, op, args, arg_count, outs, out_count);
    return rt_graph_check(m->graph, m->err);
}

static struct rt_value joined_tensor(const struct making *m, uint32_t value)
{
    struct rt_value v = m->from->values[value];
    struct rt_dim *dims = copy_dims(m, v.dims, v.rank, 0);
    if (dims) {
        dims[0] = rt_dim_mul(&m->graph->dims, v.dims[0], rt_dim_of(m->rows));
    }
    v.dims = dims;
    v.declared = NULL;
    return v;
}

static bool may_be_joined(const struct making *m, uint32_t value)
{
    const struct rt_value *v = &m->from->values[value];
    return v->kind == RT_TENSOR && v->rank > 0 && !v->order && !v->is_packed &&
           !m->is_private[value];
}

/* The rows of |value|, which has them apart, behind each other. */
static enum status join(const struct making *m, uint32_t value)
{
    uint32_t list, dim, out;
    const struct rt_value v = joined_tensor(m, value);
    TRY(v.dims ? ST_OK : exhausted(m));
    list = rt_graph_tensors(m->graph, &m->apart[(size_t)value * m->rows], m->rows);
    dim = rt_graph_int(m->graph, rt_dim_of(0));
    TRY(add_value(m, v, &out));
    const uint32_t args[] = {list, dim};
    TRY(add_node(m, RT_OP(cat), args, 2, &out, 1));
    m->joined[value] = out;
    m->has_rows[out] = true;
    return ST_OK;
}

/* The rows of |value|, which has them behind each other, apart. */
static enum status split(const struct making *m, uint32_t value)
{
    const struct rt_value *v = &m->from->values[value];
    struct rt_dim *sizes = take(m, m->rows, sizeof(*sizes));
    uint32_t *rows = &m->apart[(size_t)value * m->rows];
    TRY(sizes ? ST_OK : exhausted(m));
    for (uint32_t r = 0; r < m->rows; r++) {
        sizes[r] = v->dims[0];
        TRY(copy_value(m, value, r, &rows[r]));
    }
    const uint32_t args[] = {m->joined[value], rt_graph_ints(m->graph, sizes, m->rows),
                             rt_graph_int(m->graph, rt_dim_of(0))};
    uint32_t out = rt_graph_tensors(m->graph, rows, m->rows);
    return add_node(m, RT_OP(split_sizes), args, 3, &out, 1);
}

/* |value| in row |row|. */
static enum status apart_of(const struct making *m, uint32_t value, uint32_t row, uint32_t *out)
{
    if (!m->differs[value]) {
        if (m->same[value] == NO_VALUE) {
            TRY(copy_value(m, value, 0, &m->same[value]));
        }
        *out = m->same[value];
        return ST_OK;
    }
    uint32_t *apart = &m->apart[(size_t)value * m->rows];
    if (apart[row] == NO_VALUE && m->joined[value] != NO_VALUE) {
        TRY(split(m, value));
    } else if (apart[row] == NO_VALUE) { /* a list, or a number */
        TRY(copy_value(m, value, row, &apart[row]));
    }
    *out = apart[row];
    return ST_OK;
}

/* |value| of all rows; ST_UNSUPPORTED: it cannot be put together. */
static enum status joined_of(const struct making *m, uint32_t value, uint32_t *out)
{
    const struct rt_value *v = &m->from->values[value];
    if (!m->differs[value]) {
        return apart_of(m, value, 0, out);
    }
    if (v->kind == RT_TENSORS) {
        struct rt_value list = *v;
        uint32_t *items = take(m, v->count, sizeof(*items));
        TRY(items ? ST_OK : exhausted(m));
        for (uint32_t i = 0; i < v->count; i++) {
            TRY(joined_of(m, v->values[i], &items[i]));
        }
        list.values = items;
        TRY(add_value(m, list, out));
        m->has_rows[*out] = true;
        return ST_OK;
    }
    if (!may_be_joined(m, value)) {
        return error_set(m->err, ST_UNSUPPORTED, "it cannot be put together");
    }
    if (m->joined[value] == NO_VALUE) {
        TRY(join(m, value));
    }
    *out = m->joined[value];
    return ST_OK;
}

/* ---- what nodes are -------------------------------------------------------------------------- */

static bool value_differs(const struct making *m, uint32_t value)
{
    const struct rt_value *v = &m->from->values[value];
    bool differs = m->differs[value] || (v->kind == RT_INT && v->i.expr) ||
                   ((v->kind == RT_FLOAT || v->kind == RT_BOOL) && v->symbol);
    for (uint32_t i = 0; v->kind == RT_INTS && i < v->count; i++) {
        differs |= v->ints[i].expr != 0;
    }
    for (uint32_t i = 0; v->kind == RT_TENSORS && i < v->count; i++) {
        differs |= m->differs[v->values[i]];
    }
    return differs;
}

static int64_t numel(const struct rt_value *v)
{
    int64_t n = 1;
    for (uint8_t d = 0; d < v->rank; d++) {
        n = mul_i64(n, v->dims[d].value, &n) ? n : INT64_MAX;
    }
    return n;
}

static bool reads_weights(const struct rt_graph *graph, const struct rt_node *node)
{
    uint32_t value;
    for (struct rt_tensors it = rt_node_arg_tensors(graph, node); rt_tensors_next(&it, &value);) {
        if (graph->values[value].is_constant &&
            graph->values[value].bytes.len >= WEIGHTS_BYTES_MIN) {
            return true;
        }
    }
    return false;
}

/* The smallest private tensor among the arguments; 0: there is none. */
static int64_t private_numel(const struct making *m, const struct rt_node *node)
{
    int64_t least = 0;
    uint32_t value;
    for (struct rt_tensors it = rt_node_arg_tensors(m->from, node); rt_tensors_next(&it, &value);) {
        int64_t n = m->is_private[value] ? numel(&m->from->values[value]) : 0;
        least = n && (!least || n < least) ? n : least;
    }
    return least;
}

/* A result of a private tensor is private, too, as long as it is not much smaller. */
static void mark_outs(const struct making *m, const struct rt_node *node, bool differs)
{
    int64_t least = private_numel(m, node);
    uint32_t value;
    for (uint32_t i = 0; i < node->out_count; i++) {
        m->differs[node->outs[i]] = differs;
    }
    for (struct rt_tensors it = rt_node_out_tensors(m->from, node); rt_tensors_next(&it, &value);) {
        m->differs[value] = differs;
        m->is_private[value] = least && numel(&m->from->values[value]) >= least / 2;
    }
}

/* Does input |i| of |from| belong to each row, and not to all of them? */
static bool is_of_row(const struct making *m, uint32_t i)
{
    return i < m->buffers->first || i - m->buffers->first >= m->buffers->count;
}

static void mark(const struct making *m, const bool *is_private)
{
    for (uint32_t i = 0; i < m->from->input_count; i++) {
        uint32_t value = m->from->inputs[i];
        bool is_shared = m->buffers && !is_of_row(m, i) && !is_private[i];
        m->differs[value] = m->from->values[value].kind != RT_NONE && !is_shared;
        m->is_private[value] = is_private[i];
    }
    for (uint32_t i = 0; i < m->from->node_count; i++) {
        const struct rt_node *node = &m->from->nodes[i];
        bool differs = false;
        for (uint32_t a = 0; a < node->arg_count; a++) {
            m->differs[node->args[a]] = value_differs(m, node->args[a]);
            differs |= m->differs[node->args[a]];
        }
        mark_outs(m, node, differs);
    }
}

static bool has_numbers(const struct making *m, const struct rt_node *node)
{
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const struct rt_value *v = &m->from->values[node->args[i]];
        if (m->differs[node->args[i]] && v->kind != RT_TENSOR && v->kind != RT_TENSORS) {
            return true;
        }
    }
    return false;
}

/* Is there no way but row by row? */
static bool is_apart(const struct making *m, const struct rt_node *node)
{
    return private_numel(m, node) > 0 || has_numbers(m, node);
}

/* From the last node to the first; |consumed|, by value: a node that wants rows reads it. */
static enum status find_wants(const struct making *m)
{
    bool *consumed = take(m, m->from->value_count, sizeof(*consumed));
    TRY(consumed ? ST_OK : exhausted(m));
    for (uint32_t i = m->from->node_count; i-- > 0;) {
        const struct rt_node *node = &m->from->nodes[i];
        uint32_t value;
        bool wants = reads_weights(m->from, node);
        for (struct rt_tensors it = rt_node_out_tensors(m->from, node);
             rt_tensors_next(&it, &value);) {
            wants |= consumed[value];
        }
        m->wants_rows[i] = wants && !is_apart(m, node);
        for (struct rt_tensors it = rt_node_arg_tensors(m->from, node);
             m->wants_rows[i] && rt_tensors_next(&it, &value);) {
            consumed[value] = true;
        }
    }
    return ST_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static enum status record(const struct making *m, const struct rt_node *node, uint32_t row)
{
    uint32_t *args = take(m, node->arg_count, sizeof(*args));
    uint32_t *outs = take(m, node->out_count, sizeof(*outs));
    TRY(args && outs ? ST_OK : exhausted(m));
    for (uint32_t i = 0; i < node->arg_count; i++) {
        TRY(apart_of(m, node->args[i], row, &args[i]));
    }
    for (uint32_t i = 0; i < node->out_count; i++) {
        TRY(apart_of(m, node->outs[i], row, &outs[i]));
    }
    return add_node(m, node->op, args, node->arg_count, outs, node->out_count);
}

static enum status record_apart(const struct making *m, const struct rt_node *node)
{
    for (uint32_t row = 0; row < m->rows; row++) {
        TRY(record(m, node, row));
    }
    return ST_OK;
}

/* ---- rows that all steps write to one buffer ------------------------------------------------- */

enum { WRITE_CACHE, WRITE_VALUE, WRITE_PLACE, WRITE_ARGS };

static struct rt_dim only_number(const struct making *m)
{
    return m->from->values[m->from->inputs[m->from->input_count - 1]].i;
}

/* One row for each step, to a buffer as the call found it, at the place that the number says. */
static bool writes_row(const struct making *m, const struct rt_node *node)
{
    const struct rt_value *cache = &m->from->values[node->args[WRITE_CACHE]];
    const struct rt_value *value = &m->from->values[node->args[WRITE_VALUE]];
    const struct rt_value *place = &m->from->values[node->args[WRITE_PLACE]];
    return m->is_private[node->args[WRITE_CACHE]] && cache->node == RT_NO_NODE &&
           may_be_joined(m, node->args[WRITE_VALUE]) && value->rank == 4 &&
           rt_dim_is(value->dims[1], 1) && place->kind == RT_INT &&
           rt_dim_same(place->i, only_number(m));
}

/* The rows of all steps behind each other along dim 1. */
static enum status gather_rows(const struct making *m, uint32_t value, uint32_t *out)
{
    uint32_t *rows = take(m, m->rows, sizeof(*rows));
    struct rt_value v = m->from->values[value];
    struct rt_dim *dims = copy_dims(m, v.dims, v.rank, 0);
    if (!rows || !dims) {
        return exhausted(m);
    }
    for (uint32_t row = 0; row < m->rows; row++) {
        TRY(apart_of(m, value, row, &rows[row]));
    }
    dims[1] = rt_dim_of(m->rows);
    v.dims = dims;
    v.declared = NULL;
    uint32_t list = rt_graph_tensors(m->graph, rows, m->rows);
    const uint32_t args[] = {list, rt_graph_int(m->graph, rt_dim_of(1))};
    TRY(add_value(m, v, out));
    return add_node(m, RT_OP(cat), args, 2, out, 1);
}

static enum status record_write(const struct making *m, const struct rt_node *node)
{
    uint32_t args[WRITE_ARGS], out;
    if (!writes_row(m, node)) {
        return error_set(m->err, ST_UNSUPPORTED, "a mutable buffer is not written row by row");
    }
    TRY(apart_of(m, node->args[WRITE_CACHE], 0, &args[WRITE_CACHE]));
    TRY(gather_rows(m, node->args[WRITE_VALUE], &args[WRITE_VALUE]));
    TRY(apart_of(m, node->args[WRITE_PLACE], 0, &args[WRITE_PLACE]));
    TRY(copy_value(m, node->outs[0], 0, &out));
    for (uint32_t row = 0; row < m->rows; row++) {
        m->apart[(size_t)node->outs[0] * m->rows + row] = out;
    }
    return add_node(m, node->op, args, WRITE_ARGS, &out, 1);
}

/* ---- nodes for all rows ---------------------------------------------------------------------- */

/* An output of a node for all rows, whose dims its shape function finds. */
static enum status open_out(const struct making *m, uint32_t value, uint32_t *out)
{
    struct rt_value v = m->from->values[value];
    if (v.kind == RT_TENSORS) {
        uint32_t *items = take(m, v.count, sizeof(*items));
        TRY(items ? ST_OK : exhausted(m));
        for (uint32_t i = 0; i < v.count; i++) {
            TRY(open_out(m, v.values[i], &items[i]));
        }
        v.values = items;
    } else if (!may_be_joined(m, value)) {
        return error_set(m->err, ST_UNSUPPORTED, "its result cannot be put together");
    }
    v.declared = NULL;
    return add_value(m, v, out); /* with the dims of one call, which batch rules look at */
}

static void forget_dims(const struct making *m, uint32_t made)
{
    struct rt_value *v = &m->graph->values[made];
    v->dims = NULL;
    for (uint32_t i = 0; v->kind == RT_TENSORS && i < v->count; i++) {
        forget_dims(m, v->values[i]);
    }
}

/* Each result has |rows| times the rows of one call, and otherwise its dims. */
static enum status check_out(const struct making *m, uint32_t value, uint32_t made)
{
    const struct rt_value *v = &m->from->values[value], *is = &m->graph->values[made];
    for (uint32_t i = 0; v->kind == RT_TENSORS && i < v->count; i++) {
        TRY(check_out(m, v->values[i], is->values[i]));
    }
    for (uint8_t d = 0; v->kind == RT_TENSOR && d < v->rank; d++) {
        struct rt_dim rows = rt_dim_of(d == 0 ? m->rows : 1);
        struct rt_dim expected = rt_dim_mul(&m->graph->dims, v->dims[d], rows);
        if (!is->dims || !rt_dim_same(is->dims[d], expected)) {
            return error_set(m->err, ST_UNSUPPORTED, "dim %u of its result is another one", d);
        }
    }
    return ST_OK;
}

static void take_out(const struct making *m, uint32_t value, uint32_t made)
{
    const struct rt_value *v = &m->from->values[value];
    for (uint32_t i = 0; v->kind == RT_TENSORS && i < v->count; i++) {
        take_out(m, v->values[i], m->graph->values[made].values[i]);
    }
    if (v->kind == RT_TENSOR) {
        m->joined[value] = made;
        m->has_rows[made] = true;
    }
}

/*
 * Broadcasting aligns tensors at their last dims. So a tensor with fewer dims than the result would
 * be spread over all rows, and no tensor may have fewer.
 */
static bool is_aligned(const struct making *m, const struct rt_node *node)
{
    uint32_t value, outs = 0;
    uint8_t rank = 0;
    for (struct rt_tensors it = rt_node_out_tensors(m->from, node); rt_tensors_next(&it, &value);) {
        rank = m->from->values[value].rank;
        outs++;
    }
    for (struct rt_tensors it = rt_node_arg_tensors(m->from, node);
         node->op->flags & RT_OP_POINTWISE && rt_tensors_next(&it, &value);) {
        const struct rt_value *v = &m->from->values[value];
        bool is_row = m->differs[value];
        if ((is_row && v->rank != rank) ||
            (!is_row && v->rank == rank && rank > 0 && !rt_dim_is(v->dims[0], 1))) {
            return false;
        }
    }
    return outs > 0;
}

static enum status fill(const struct making *m, const struct rt_node *node, uint32_t *args,
                        uint32_t *outs)
{
    for (uint32_t i = 0; i < node->arg_count; i++) {
        TRY(joined_of(m, node->args[i], &args[i]));
    }
    for (uint32_t i = 0; i < node->out_count; i++) {
        TRY(open_out(m, node->outs[i], &outs[i]));
    }
    return ST_OK;
}

static enum status infer(const struct making *m, const struct rt_node *from, uint32_t number)
{
    struct rt_graph *graph = m->graph;
    const struct rt_op *op = from->op;
    rt_op_batch_f *rule =
        op->batch ? op->batch : (op->flags & RT_OP_POINTWISE ? rt_batch_pointwise : NULL);
    if (!rule) {
        return error_set(m->err, ST_UNSUPPORTED, "it has no rule for batches");
    }
    struct rt_batch_call call = {.graph = graph,
                                 .node = &graph->nodes[number],
                                 .rows = rt_dim_of(m->rows),
                                 .has_rows = m->has_rows,
                                 .value_count = graph->value_count,
                                 .err = m->err};
    TRY(rule(&call));
    if (graph->node_count != number + 1) { /* such as repeats: the rows are recorded apart */
        return error_set(m->err, ST_UNSUPPORTED, "its rule needs further nodes");
    }
    for (uint32_t i = 0; i < from->out_count; i++) {
        forget_dims(m, graph->nodes[number].outs[i]);
    }
    TRY(rt_graph_infer(graph, number, m->err));
    for (uint32_t i = 0; i < from->out_count; i++) {
        TRY(check_out(m, from->outs[i], graph->nodes[number].outs[i]));
    }
    return ST_OK;
}

/* Once for all rows; ST_UNSUPPORTED: that is impossible, and nothing has been recorded. */
static enum status record_joined(const struct making *m, const struct rt_node *node)
{
    struct rt_graph *graph = m->graph;
    uint32_t *args = take(m, node->arg_count, sizeof(*args));
    uint32_t *outs = take(m, node->out_count, sizeof(*outs));
    TRY(args && outs ? ST_OK : exhausted(m));
    if (!is_aligned(m, node)) {
        return error_set(m->err, ST_UNSUPPORTED, "its arguments are not aligned");
    }
    TRY(fill(m, node, args, outs));
    uint32_t number = graph->node_count, requirements = graph->dims.requirement_count;
    TRY(add_node(m, node->op, args, node->arg_count, outs, node->out_count));
    if (infer(m, node, number) != ST_OK || graph->dims.requirement_count != requirements) {
        graph->node_count = number;
        graph->dims.requirement_count = requirements;
        TRY(rt_graph_check(graph, m->err));
        return error_set(m->err, ST_UNSUPPORTED, "it is no node of several rows");
    }
    for (uint32_t i = 0; i < node->out_count; i++) {
        take_out(m, node->outs[i], outs[i]);
    }
    return ST_OK;
}

/* Is there an argument that exists only for all rows? */
static bool has_joined(const struct making *m, const struct rt_node *node)
{
    uint32_t value;
    for (struct rt_tensors it = rt_node_arg_tensors(m->from, node); rt_tensors_next(&it, &value);) {
        if (m->joined[value] != NO_VALUE) {
            return true;
        }
    }
    return false;
}

static enum status record_node(const struct making *m, uint32_t index, uint32_t *joined_count)
{
    const struct rt_node *node = &m->from->nodes[index];
    bool differs = false, is_view = node->op->flags & RT_OP_VIEW, has = has_joined(m, node);
    for (uint32_t i = 0; i < node->arg_count; i++) {
        differs |= m->differs[node->args[i]];
    }
    m->graph->origin = node->origin;
    if (!differs) {
        return record(m, node, 0);
    }
    if (m->buffers && rt_op_is(node->op, RT_KNOWN_write_rows)) {
        return record_write(m, node);
    }
    bool tries = !is_apart(m, node) && (has || (m->wants_rows[index] && !is_view));
    if (!tries) {
        return record_apart(m, node);
    }
    enum status status = record_joined(m, node);
    if (status == ST_UNSUPPORTED) {
        return record_apart(m, node);
    }
    *joined_count += status == ST_OK && reads_weights(m->from, node);
    return status;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static enum status open_inputs(const struct making *m)
{
    struct rt_graph *graph = m->graph;
    graph->inputs = take(m, (size_t)m->from->input_count * m->rows, sizeof(*graph->inputs));
    TRY(graph->inputs ? ST_OK : exhausted(m));
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 0; i < m->from->input_count; i++) {
            uint32_t value = m->from->inputs[i];
            TRY(copy_value(m, value, row, &graph->inputs[graph->input_count]));
            m->apart[(size_t)value * m->rows + row] = graph->inputs[graph->input_count++];
        }
    }
    return ST_OK;
}

static enum status open_outputs(const struct making *m)
{
    struct rt_graph *graph = m->graph;
    graph->outputs = take(m, (size_t)m->from->output_count * m->rows, sizeof(*graph->outputs));
    TRY(graph->outputs ? ST_OK : exhausted(m));
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 0; i < m->from->output_count; i++) {
            TRY(apart_of(m, m->from->outputs[i], row, &graph->outputs[graph->output_count]));
            graph->output_count++;
        }
    }
    return ST_OK;
}

static enum status open_input(const struct making *m, uint32_t i, uint32_t row)
{
    uint32_t value = m->from->inputs[i];
    uint32_t *made = &m->graph->inputs[m->graph->input_count];
    TRY(copy_value(m, value, row, made));
    for (uint32_t r = 0; r < m->rows; r++) {
        if (!is_of_row(m, i) || r == row) {
            m->apart[(size_t)value * m->rows + r] = *made;
        }
    }
    if (!is_of_row(m, i)) {
        m->same[value] = *made;
    }
    m->graph->input_count++;
    return ST_OK;
}

static enum status open_ahead_inputs(const struct making *m)
{
    struct rt_graph *graph = m->graph;
    uint32_t first = m->buffers->first, end = first + m->buffers->count;
    graph->inputs = take(m, (size_t)m->from->input_count * m->rows, sizeof(*graph->inputs));
    TRY(graph->inputs ? ST_OK : exhausted(m));
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 0; i < first; i++) {
            TRY(open_input(m, i, row));
        }
    }
    for (uint32_t row = 0; row < m->rows; row++) {
        TRY(open_input(m, end, row));
    }
    for (uint32_t i = first; i < end; i++) {
        TRY(open_input(m, i, 0));
    }
    return ST_OK;
}

static enum status open_ahead_outputs(const struct making *m)
{
    struct rt_graph *graph = m->graph;
    const struct rt_graph_buffers *buffers = m->buffers;
    graph->outputs = take(m, (size_t)m->from->output_count * m->rows, sizeof(*graph->outputs));
    TRY(graph->outputs ? ST_OK : exhausted(m));
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 0; i < buffers->result_count; i++) {
            TRY(apart_of(m, m->from->outputs[i], row, &graph->outputs[graph->output_count++]));
        }
    }
    for (uint32_t i = 0; i < buffers->count; i++) {
        if (buffers->outputs[i] != RT_NO_OUTPUT) {
            uint32_t value = m->from->outputs[buffers->outputs[i]];
            TRY(apart_of(m, value, 0, &graph->outputs[graph->output_count++]));
        }
    }
    return ST_OK;
}

static enum status begin(struct making *m)
{
    size_t values = m->from->value_count;
    m->value_max = (uint32_t)values * (m->rows + 8) + m->from->node_count * (2 * m->rows + 8) + 64;
    m->differs = take(m, values, sizeof(*m->differs));
    m->is_private = take(m, values, sizeof(*m->is_private));
    m->same = take(m, values, sizeof(*m->same));
    m->joined = take(m, values, sizeof(*m->joined));
    m->apart = take(m, values * m->rows, sizeof(*m->apart));
    m->wants_rows = take(m, m->from->node_count, sizeof(*m->wants_rows));
    m->has_rows = take(m, m->value_max, sizeof(*m->has_rows));
    m->dims = take(m, (size_t)m->from->dims.expr_count * m->rows, sizeof(*m->dims));
    if (!m->differs || !m->is_private || !m->same || !m->joined || !m->apart || !m->wants_rows ||
        !m->has_rows || !m->dims) {
        return exhausted(m);
    }
    memset(m->same, 0xff, values * sizeof(*m->same));
    memset(m->joined, 0xff, values * sizeof(*m->joined));
    memset(m->apart, 0xff, values * m->rows * sizeof(*m->apart));
    return ST_OK;
}

/* The buffers that are not written are the same in all rows, like constants. */
static void mark_buffers(const struct making *m, bool *is_private)
{
    const struct rt_graph_buffers *buffers = m->buffers;
    for (uint32_t i = 0; i < buffers->count; i++) {
        is_private[buffers->first + i] = buffers->outputs[i] != RT_NO_OUTPUT;
    }
}

static enum status make(struct making *m, const bool *is_private, uint32_t *out_joined)
{
    m->graph->files = m->from->files;
    m->graph->precision = m->from->precision;
    *out_joined = 0;
    TRY(begin(m));
    TRY(make_dims(m));
    mark(m, is_private);
    TRY(find_wants(m));
    TRY(m->buffers ? open_ahead_inputs(m) : open_inputs(m));
    for (uint32_t i = 0; i < m->from->node_count; i++) {
        TRY(record_node(m, i, out_joined));
    }
    TRY(m->buffers ? open_ahead_outputs(m) : open_outputs(m));
    return rt_graph_compact(m->graph, m->err);
}

enum status rt_graph_rows(struct rt_graph *graph, const struct rt_graph *from, uint32_t rows,
                          const bool *is_private, uint32_t *out_joined, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    OBJ_CHECK(from, RT_GRAPH_MAGIC);
    must(rows > 1);
    struct making m = {.graph = graph, .from = from, .rows = rows, .err = err};
    return make(&m, is_private, out_joined);
}

enum status rt_graph_speculation(struct rt_graph *graph, const struct rt_graph *from, uint32_t rows,
                                 const struct rt_graph_buffers *buffers, uint32_t *out_joined,
                                 struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    OBJ_CHECK(from, RT_GRAPH_MAGIC);
    must(rows > 1 && buffers->first + buffers->count + 1 == from->input_count);
    struct making m = {.graph = graph, .from = from, .rows = rows, .buffers = buffers, .err = err};
    bool *is_private = take(&m, from->input_count, sizeof(*is_private));
    TRY(is_private ? ST_OK : exhausted(&m));
    mark_buffers(&m, is_private);
    return make(&m, is_private, out_joined);
}
