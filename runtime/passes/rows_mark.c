/* SPDX-License-Identifier: MIT */
/* How the values and nodes of |from| are treated: alike in all rows, row by row, or put together.
 */
#include "config.h"

#include "base/bytes.h"
#include "runtime/passes/rows_priv.h"

/* A constant of that many bytes counts as weights: reading it once for all rows is worth a copy. */
#define WEIGHTS_BYTES_MIN 2048

static bool value_differs(const struct rt_rows_making *m, uint32_t value)
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

bool rt_rows_reads_weights(const struct rt_graph *graph, const struct rt_node *node)
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
static int64_t private_numel(const struct rt_rows_making *m, const struct rt_node *node)
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
static void mark_outs(const struct rt_rows_making *m, const struct rt_node *node, bool differs)
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

bool rt_rows_has_own_input(const struct rt_rows_making *m, uint32_t i)
{
    return i < m->buffers->first || i - m->buffers->first >= m->buffers->count;
}

void rt_rows_mark(const struct rt_rows_making *m, const bool *is_private)
{
    for (uint32_t i = 0; i < m->from->input_count; i++) {
        uint32_t value = m->from->inputs[i];
        bool is_shared = m->buffers && !rt_rows_has_own_input(m, i) && !is_private[i];
        m->differs[value] = m->from->values[value].kind != RT_NONE && !is_shared;
        m->is_private[value] = is_private[i];
    }
    for (uint32_t i = 0; i < m->from->value_count; i++) {
        m->differs[i] |= rt_rows_varies(m, i);
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

static bool has_numbers(const struct rt_rows_making *m, const struct rt_node *node)
{
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const struct rt_value *v = &m->from->values[node->args[i]];
        if (m->differs[node->args[i]] && v->kind != RT_TENSOR && v->kind != RT_TENSORS) {
            return true;
        }
    }
    return false;
}

static bool reads_varying(const struct rt_rows_making *m, const struct rt_node *node)
{
    uint32_t value;
    for (struct rt_tensors it = rt_node_arg_tensors(m->from, node); rt_tensors_next(&it, &value);) {
        if (rt_rows_varies(m, value)) {
            return true;
        }
    }
    return false;
}

bool rt_rows_is_apart(const struct rt_rows_making *m, const struct rt_node *node)
{
    return private_numel(m, node) > 0 || has_numbers(m, node) || reads_varying(m, node);
}

/* From the last node to the first; |consumed|, by value: a node that wants rows reads it. */
enum status rt_rows_find_wants(const struct rt_rows_making *m)
{
    bool *consumed = rt_rows_take(m, m->from->value_count, sizeof(*consumed));
    TRY(consumed ? ST_OK : rt_rows_exhausted(m));
    for (uint32_t i = m->from->node_count; i-- > 0;) {
        const struct rt_node *node = &m->from->nodes[i];
        uint32_t value;
        bool wants = rt_rows_reads_weights(m->from, node);
        for (struct rt_tensors it = rt_node_out_tensors(m->from, node);
             rt_tensors_next(&it, &value);) {
            wants |= consumed[value];
        }
        m->wants_rows[i] = wants && !rt_rows_is_apart(m, node);
        for (struct rt_tensors it = rt_node_arg_tensors(m->from, node);
             m->wants_rows[i] && rt_tensors_next(&it, &value);) {
            consumed[value] = true;
        }
    }
    return ST_OK;
}
