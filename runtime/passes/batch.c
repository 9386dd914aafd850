/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/passes/batch.h"

#include <string.h>

#include "base/check.h"
#include "runtime/ops/op.h"
#include "runtime/passes/copy.h"

/* The graph being made. */
struct making {
    struct rt_graph *graph;
    struct rt_dim rows;
    bool *has_rows; /* by value of |from|: does dim 0 count rows? */
    uint32_t value_count;
    const struct rt_graph_labels *labels;
    struct error *err;
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* Multiplies dim 0 of |value| by the number of rows; |out_dims| gets its new dims. */
static enum status widen(const struct making *m, uint32_t value, struct rt_dim **out_dims)
{
    struct rt_graph *graph = m->graph;
    const struct rt_value *v = &graph->values[value];
    if (v->kind != RT_TENSOR || v->rank == 0) {
        return error_set(m->err, ST_UNSUPPORTED, "a value without dims depends on the input");
    }
    struct rt_dim *dims = arena_array(&graph->arena, v->rank, sizeof(*dims));
    if (!dims) {
        return arena_fail(&graph->arena, "the method", m->err);
    }
    memcpy(dims, v->dims, v->rank * sizeof(*dims));
    dims[0] = rt_dim_mul(&graph->dims, m->rows, dims[0]);
    *out_dims = dims;
    m->has_rows[value] = true;
    return ST_OK;
}

static enum status widen_input(const struct making *m, uint32_t index)
{
    uint32_t value = m->graph->inputs[index];
    struct rt_value *v = &m->graph->values[value];
    if (v->kind != RT_TENSOR) {
        return ST_OK;
    }
    if (v->rank == 0 || !rt_dim_is(v->dims[0], 1)) {
        return error_set(m->err, ST_UNSUPPORTED, "dim 0 of %s is not 1", m->labels->inputs[index]);
    }
    return widen(m, value, &v->dims);
}

/* |out_dims| gets the dims that the shape function of |value|, an output, has to find; the output
 * itself starts without dims. */
static enum status expect(const struct making *m, uint32_t value, struct rt_dim **out_dims)
{
    TRY(widen(m, value, out_dims));
    m->graph->values[value].dims = NULL;
    m->graph->values[value].declared = NULL;
    return ST_OK;
}

static enum status check(const struct making *m, uint32_t value, const struct rt_dim *expected)
{
    const struct rt_value *v = &m->graph->values[value];
    for (uint8_t d = 0; d < v->rank; d++) {
        if (!v->dims || !rt_dim_same(v->dims[d], expected[d])) {
            return error_set(m->err, ST_UNSUPPORTED,
                             "dim %u of its result does not grow with the rows as expected", d);
        }
    }
    return ST_OK;
}

static enum status infer(const struct making *m, uint32_t number)
{
    struct rt_graph *graph = m->graph;
    const struct rt_node *node = &graph->nodes[number];
    struct rt_dim *expected[64];
    uint32_t value, count = 0;
    for (struct rt_tensors it = rt_node_out_tensors(graph, node); rt_tensors_next(&it, &value);) {
        if (count == sizeof(expected) / sizeof(expected[0])) {
            return error_set(m->err, ST_UNSUPPORTED, "%s: too many results", node->op->name);
        }
        if (expect(m, value, &expected[count++]) != ST_OK) {
            return error_prefix(m->err, "%s: ", node->op->name);
        }
    }
    TRY(rt_graph_infer(graph, number, m->err));
    count = 0;
    for (struct rt_tensors it = rt_node_out_tensors(graph, node); rt_tensors_next(&it, &value);) {
        if (check(m, value, expected[count++]) != ST_OK) {
            return error_prefix(m->err, "%s: ", node->op->name);
        }
    }
    return ST_OK;
}

static bool depends(const struct making *m, const struct rt_node *node)
{
    for (uint16_t i = 0; i < node->arg_count; i++) {
        const struct rt_value *v = &m->graph->values[node->args[i]];
        for (uint32_t k = 0; v->kind == RT_TENSORS && k < v->count; k++) {
            m->has_rows[node->args[i]] |= m->has_rows[v->values[k]];
        }
        if (m->has_rows[node->args[i]]) {
            return true;
        }
    }
    return false;
}

static enum status widen_node(const struct making *m, uint32_t number)
{
    struct rt_node *node = &m->graph->nodes[number];
    const struct rt_op *op = node->op;
    if (!depends(m, node)) {
        return ST_OK;
    }
    rt_op_batch_f *rule =
        op->batch ? op->batch : (op->flags & RT_OP_POINTWISE ? rt_batch_pointwise : NULL);
    if (!rule) {
        return error_set(m->err, ST_UNSUPPORTED, "the operator %s has no rule for batches",
                         op->name);
    }
    struct rt_batch_call call = {m->graph, node, m->rows, m->has_rows, m->value_count, m->err};
    uint32_t before = m->graph->dims.requirement_count;
    if (rule(&call) != ST_OK) {
        return error_prefix(m->err, "%s: ", op->name);
    }
    TRY(infer(m, number));
    bool is_free = rt_dim_same(rt_dim_resolve(&m->graph->dims, m->rows), m->rows) &&
                   m->graph->dims.requirement_count == before;
    return is_free ? ST_OK
                   : error_set(m->err, ST_UNSUPPORTED, "%s: it requires a certain number of rows",
                               op->name);
}

static enum status check_outputs(const struct making *m)
{
    const struct rt_graph *graph = m->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t value = graph->outputs[i];
        if (!m->has_rows[value] || !rt_dim_same(graph->values[value].dims[0], m->rows)) {
            return error_set(m->err, ST_UNSUPPORTED, "dim 0 of %s is not the number of rows",
                             m->labels->outputs[i]);
        }
    }
    return ST_OK;
}

enum status rt_graph_batch(struct rt_graph *graph, const struct rt_graph *from, int64_t rows_max,
                           const struct rt_graph_labels *labels, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    OBJ_CHECK(from, RT_GRAPH_MAGIC);
    TRY(rt_graph_copy(graph, from, err));
    struct making m = {
        .graph = graph,
        .rows = rt_dim_symbol(&graph->dims, rows_max),
        .has_rows = arena_array(&graph->arena, from->value_count, sizeof(bool)),
        .value_count = from->value_count,
        .labels = labels,
        .err = err,
    };
    TRY(rt_graph_check(graph, err));
    if (!m.has_rows) {
        return arena_fail(&graph->arena, "the method", err);
    }
    memset(m.has_rows, 0, from->value_count * sizeof(bool));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        TRY(widen_input(&m, i));
    }
    for (uint32_t i = 0; i < from->node_count; i++) {
        TRY(widen_node(&m, i));
    }
    TRY(check_outputs(&m));
    /* Nodes that the rules made stand at the end. */
    return graph->node_count > from->node_count ? rt_graph_compact(graph, err) : ST_OK;
}
