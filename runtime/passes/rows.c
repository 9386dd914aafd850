/* SPDX-License-Identifier: MIT */
/*
 * Makes the nodes, the inputs and the outputs. rows_mark.c says beforehand how each node of |from|
 * is treated, and rows_values.c makes the values.
 */
#include "config.h"

#include "runtime/passes/rows.h"

#include <string.h>

#include "base/check.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/rows_priv.h"

/* ---- nodes ----------------------------------------------------------------------------------- */

static enum status record(const struct rt_rows_making *m, const struct rt_node *node, uint32_t row)
{
    uint32_t *args = rt_rows_take(m, node->arg_count, sizeof(*args));
    uint32_t *outs = rt_rows_take(m, node->out_count, sizeof(*outs));
    TRY(args && outs ? ST_OK : rt_rows_exhausted(m));
    for (uint32_t i = 0; i < node->arg_count; i++) {
        TRY(rt_rows_apart(m, node->args[i], row, &args[i]));
    }
    for (uint32_t i = 0; i < node->out_count; i++) {
        TRY(rt_rows_apart(m, node->outs[i], row, &outs[i]));
    }
    return rt_rows_add_node(m, node->op, args, node->arg_count, outs, node->out_count);
}

static enum status record_apart(const struct rt_rows_making *m, const struct rt_node *node)
{
    for (uint32_t row = 0; row < m->rows; row++) {
        TRY(record(m, node, row));
    }
    return ST_OK;
}

/* ---- rows that all steps write to one buffer ------------------------------------------------- */

enum { WRITE_CACHE, WRITE_VALUE, WRITE_PLACE, WRITE_ARGS };

static struct rt_dim only_number(const struct rt_rows_making *m)
{
    return m->from->values[m->from->inputs[m->from->input_count - 1]].i;
}

/* One row for each step, to a buffer as the call found it, at the place that the number says. */
static bool writes_row(const struct rt_rows_making *m, const struct rt_node *node)
{
    const struct rt_value *cache = &m->from->values[node->args[WRITE_CACHE]];
    const struct rt_value *value = &m->from->values[node->args[WRITE_VALUE]];
    const struct rt_value *place = &m->from->values[node->args[WRITE_PLACE]];
    return m->is_private[node->args[WRITE_CACHE]] && cache->node == RT_NO_NODE &&
           rt_rows_may_join(m, node->args[WRITE_VALUE]) && value->rank == 4 &&
           rt_dim_is(value->dims[1], 1) && place->kind == RT_INT &&
           rt_dim_same(place->i, only_number(m));
}

/* The rows of all steps behind each other along dim 1. */
static enum status gather_rows(const struct rt_rows_making *m, uint32_t value, uint32_t *out)
{
    uint32_t *rows = rt_rows_take(m, m->rows, sizeof(*rows));
    struct rt_value v = m->from->values[value];
    struct rt_dim *dims = rt_rows_copy_dims(m, v.dims, v.rank, 0);
    if (!rows || !dims) {
        return rt_rows_exhausted(m);
    }
    for (uint32_t row = 0; row < m->rows; row++) {
        TRY(rt_rows_apart(m, value, row, &rows[row]));
    }
    dims[1] = rt_dim_of(m->rows);
    v.dims = dims;
    v.declared = NULL;
    uint32_t list = rt_graph_tensors(m->graph, rows, m->rows);
    const uint32_t args[] = {list, rt_graph_int(m->graph, rt_dim_of(1))};
    TRY(rt_rows_add_value(m, v, out));
    return rt_rows_add_node(m, RT_OP(cat), args, 2, out, 1);
}

static enum status record_write(const struct rt_rows_making *m, const struct rt_node *node)
{
    uint32_t args[WRITE_ARGS], out;
    if (!writes_row(m, node)) {
        return error_set(m->err, ST_UNSUPPORTED, "a mutable buffer is not written row by row");
    }
    TRY(rt_rows_apart(m, node->args[WRITE_CACHE], 0, &args[WRITE_CACHE]));
    TRY(gather_rows(m, node->args[WRITE_VALUE], &args[WRITE_VALUE]));
    TRY(rt_rows_apart(m, node->args[WRITE_PLACE], 0, &args[WRITE_PLACE]));
    TRY(rt_rows_copy_value(m, node->outs[0], 0, &out));
    for (uint32_t row = 0; row < m->rows; row++) {
        m->apart[(size_t)node->outs[0] * m->rows + row] = out;
    }
    return rt_rows_add_node(m, node->op, args, WRITE_ARGS, &out, 1);
}

/* ---- nodes for all rows ---------------------------------------------------------------------- */

/* An output of a node for all rows, whose dims its shape function finds. */
static enum status open_out(const struct rt_rows_making *m, uint32_t value, uint32_t *out)
{
    struct rt_value v = m->from->values[value];
    if (v.kind == RT_TENSORS) {
        uint32_t *items = rt_rows_take(m, v.count, sizeof(*items));
        TRY(items ? ST_OK : rt_rows_exhausted(m));
        for (uint32_t i = 0; i < v.count; i++) {
            TRY(open_out(m, v.values[i], &items[i]));
        }
        v.values = items;
    } else if (!rt_rows_may_join(m, value)) {
        return error_set(m->err, ST_UNSUPPORTED, "its result cannot be put together");
    }
    v.declared = NULL;
    return rt_rows_add_value(m, v, out); /* with the dims of one call, which batch rules look at */
}

static void forget_dims(const struct rt_rows_making *m, uint32_t made)
{
    struct rt_value *v = &m->graph->values[made];
    v->dims = NULL;
    for (uint32_t i = 0; v->kind == RT_TENSORS && i < v->count; i++) {
        forget_dims(m, v->values[i]);
    }
}

/* Each result has |rows| times the rows of one call, and otherwise its dims. */
static enum status check_out(const struct rt_rows_making *m, uint32_t value, uint32_t made)
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

static void take_out(const struct rt_rows_making *m, uint32_t value, uint32_t made)
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
static bool is_aligned(const struct rt_rows_making *m, const struct rt_node *node)
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

static enum status fill(const struct rt_rows_making *m, const struct rt_node *node, uint32_t *args,
                        uint32_t *outs)
{
    for (uint32_t i = 0; i < node->arg_count; i++) {
        TRY(rt_rows_joined(m, node->args[i], &args[i]));
    }
    for (uint32_t i = 0; i < node->out_count; i++) {
        TRY(open_out(m, node->outs[i], &outs[i]));
    }
    return ST_OK;
}

static enum status infer(const struct rt_rows_making *m, const struct rt_node *from,
                         uint32_t number)
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
static enum status record_joined(const struct rt_rows_making *m, const struct rt_node *node)
{
    struct rt_graph *graph = m->graph;
    uint32_t *args = rt_rows_take(m, node->arg_count, sizeof(*args));
    uint32_t *outs = rt_rows_take(m, node->out_count, sizeof(*outs));
    TRY(args && outs ? ST_OK : rt_rows_exhausted(m));
    if (!is_aligned(m, node)) {
        return error_set(m->err, ST_UNSUPPORTED, "its arguments are not aligned");
    }
    TRY(fill(m, node, args, outs));
    uint32_t number = graph->node_count, requirements = graph->dims.requirement_count;
    TRY(rt_rows_add_node(m, node->op, args, node->arg_count, outs, node->out_count));
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
static bool has_joined(const struct rt_rows_making *m, const struct rt_node *node)
{
    uint32_t value;
    for (struct rt_tensors it = rt_node_arg_tensors(m->from, node); rt_tensors_next(&it, &value);) {
        if (m->joined[value] != RT_ROWS_NONE) {
            return true;
        }
    }
    return false;
}

static enum status record_node(const struct rt_rows_making *m, uint32_t index,
                               uint32_t *joined_count)
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
    bool tries = !rt_rows_is_apart(m, node) && (has || (m->wants_rows[index] && !is_view));
    if (!tries) {
        return record_apart(m, node);
    }
    enum status status = record_joined(m, node);
    if (status == ST_UNSUPPORTED) {
        return record_apart(m, node);
    }
    *joined_count += status == ST_OK && rt_rows_reads_weights(m->from, node);
    return status;
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* The constants that rows give become inputs. */
static enum status open_varying(const struct rt_rows_making *m)
{
    struct rt_graph *graph = m->graph;
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 0; i < m->from->value_count; i++) {
            if (rt_rows_varies(m, i)) {
                struct rt_value v = m->from->values[i];
                uint32_t *made = &graph->inputs[graph->input_count++];
                v.is_constant = false;
                v.bytes = (struct span){0};
                v.buffer = NULL;
                TRY(rt_rows_add_value(m, v, made));
                m->apart[(size_t)i * m->rows + row] = *made;
            }
        }
    }
    return ST_OK;
}

static enum status open_inputs(const struct rt_rows_making *m)
{
    struct rt_graph *graph = m->graph;
    size_t count = m->from->input_count;
    for (uint32_t i = 0; i < m->from->value_count; i++) {
        count += rt_rows_varies(m, i);
    }
    graph->inputs = rt_rows_take(m, count * m->rows, sizeof(*graph->inputs));
    TRY(graph->inputs ? ST_OK : rt_rows_exhausted(m));
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 0; i < m->from->input_count; i++) {
            uint32_t value = m->from->inputs[i];
            TRY(rt_rows_copy_value(m, value, row, &graph->inputs[graph->input_count]));
            m->apart[(size_t)value * m->rows + row] = graph->inputs[graph->input_count++];
        }
    }
    return open_varying(m);
}

static enum status open_outputs(const struct rt_rows_making *m)
{
    struct rt_graph *graph = m->graph;
    graph->outputs =
        rt_rows_take(m, (size_t)m->from->output_count * m->rows, sizeof(*graph->outputs));
    TRY(graph->outputs ? ST_OK : rt_rows_exhausted(m));
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 0; i < m->from->output_count; i++) {
            TRY(rt_rows_apart(m, m->from->outputs[i], row, &graph->outputs[graph->output_count]));
            graph->output_count++;
        }
    }
    return ST_OK;
}

static enum status open_input(const struct rt_rows_making *m, uint32_t i, uint32_t row)
{
    uint32_t value = m->from->inputs[i];
    uint32_t *made = &m->graph->inputs[m->graph->input_count];
    TRY(rt_rows_copy_value(m, value, row, made));
    for (uint32_t r = 0; r < m->rows; r++) {
        if (!rt_rows_has_own_input(m, i) || r == row) {
            m->apart[(size_t)value * m->rows + r] = *made;
        }
    }
    if (!rt_rows_has_own_input(m, i)) {
        m->same[value] = *made;
    }
    m->graph->input_count++;
    return ST_OK;
}

static enum status open_ahead_inputs(const struct rt_rows_making *m)
{
    struct rt_graph *graph = m->graph;
    uint32_t first = m->buffers->first, end = first + m->buffers->count;
    graph->inputs = rt_rows_take(m, (size_t)m->from->input_count * m->rows, sizeof(*graph->inputs));
    TRY(graph->inputs ? ST_OK : rt_rows_exhausted(m));
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

static enum status open_ahead_outputs(const struct rt_rows_making *m)
{
    struct rt_graph *graph = m->graph;
    const struct rt_graph_buffers *buffers = m->buffers;
    graph->outputs =
        rt_rows_take(m, (size_t)m->from->output_count * m->rows, sizeof(*graph->outputs));
    TRY(graph->outputs ? ST_OK : rt_rows_exhausted(m));
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 0; i < buffers->result_count; i++) {
            TRY(rt_rows_apart(m, m->from->outputs[i], row, &graph->outputs[graph->output_count++]));
        }
    }
    for (uint32_t i = 0; i < buffers->count; i++) {
        if (buffers->outputs[i] != RT_NO_OUTPUT) {
            uint32_t value = m->from->outputs[buffers->outputs[i]];
            TRY(rt_rows_apart(m, value, 0, &graph->outputs[graph->output_count++]));
        }
    }
    return ST_OK;
}

static enum status begin(struct rt_rows_making *m)
{
    size_t values = m->from->value_count;
    m->value_max = (uint32_t)values * (m->rows + 8) + m->from->node_count * (2 * m->rows + 8) + 64;
    m->differs = rt_rows_take(m, values, sizeof(*m->differs));
    m->is_private = rt_rows_take(m, values, sizeof(*m->is_private));
    m->same = rt_rows_take(m, values, sizeof(*m->same));
    m->joined = rt_rows_take(m, values, sizeof(*m->joined));
    m->apart = rt_rows_take(m, values * m->rows, sizeof(*m->apart));
    m->wants_rows = rt_rows_take(m, m->from->node_count, sizeof(*m->wants_rows));
    m->has_rows = rt_rows_take(m, m->value_max, sizeof(*m->has_rows));
    m->dims = rt_rows_take(m, (size_t)m->from->dims.expr_count * m->rows, sizeof(*m->dims));
    if (!m->differs || !m->is_private || !m->same || !m->joined || !m->apart || !m->wants_rows ||
        !m->has_rows || !m->dims) {
        return rt_rows_exhausted(m);
    }
    memset(m->same, 0xff, values * sizeof(*m->same));
    memset(m->joined, 0xff, values * sizeof(*m->joined));
    memset(m->apart, 0xff, values * m->rows * sizeof(*m->apart));
    return ST_OK;
}

/* The buffers that are not written are the same in all rows, like constants. */
static void mark_buffers(const struct rt_rows_making *m, bool *is_private)
{
    const struct rt_graph_buffers *buffers = m->buffers;
    for (uint32_t i = 0; i < buffers->count; i++) {
        is_private[buffers->first + i] = buffers->outputs[i] != RT_NO_OUTPUT;
    }
}

static enum status make(struct rt_rows_making *m, const bool *is_private, uint32_t *out_joined)
{
    m->graph->files = m->from->files;
    m->graph->precision = m->from->precision;
    *out_joined = 0;
    TRY(begin(m));
    TRY(rt_rows_make_dims(m));
    rt_rows_mark(m, is_private);
    TRY(rt_rows_find_wants(m));
    TRY(m->buffers ? open_ahead_inputs(m) : open_inputs(m));
    for (uint32_t i = 0; i < m->from->node_count; i++) {
        TRY(record_node(m, i, out_joined));
    }
    TRY(m->buffers ? open_ahead_outputs(m) : open_outputs(m));
    return rt_graph_compact(m->graph, m->err);
}

enum status rt_graph_rows(struct rt_graph *graph, const struct rt_graph *from, uint32_t rows,
                          const struct rt_rows_own *own, uint32_t *out_joined, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    OBJ_CHECK(from, RT_GRAPH_MAGIC);
    must(rows > 1);
    struct rt_rows_making m = {
        .graph = graph, .from = from, .rows = rows, .varies = own->varies, .err = err};
    return make(&m, own->is_private, out_joined);
}

enum status rt_graph_speculation(struct rt_graph *graph, const struct rt_graph *from, uint32_t rows,
                                 const struct rt_graph_buffers *buffers, uint32_t *out_joined,
                                 struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    OBJ_CHECK(from, RT_GRAPH_MAGIC);
    must(rows > 1 && buffers->first + buffers->count + 1 == from->input_count);
    struct rt_rows_making m = {
        .graph = graph, .from = from, .rows = rows, .buffers = buffers, .err = err};
    bool *is_private = rt_rows_take(&m, from->input_count, sizeof(*is_private));
    TRY(is_private ? ST_OK : rt_rows_exhausted(&m));
    mark_buffers(&m, is_private);
    return make(&m, is_private, out_joined);
}
