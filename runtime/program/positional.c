/* SPDX-License-Identifier: MIT */
/*
 * Is a method's state positional? A decoder's caches have a row for each token. A call at position
 * p with n tokens writes the rows from p to p + n and reads no row behind them, so what is there
 * does not matter: the state of a longer sequence does for any beginning of it.
 *
 * Half of that is seen in the graphs: every written buffer is only the target of write_rows, and
 * attention reads the result as far as the rows that the call has just written. The other half,
 * that these are the rows of the position which the caller gave, is for the caller to look at after
 * each call (rt_state_wrote()).
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "runtime/ops/known.h"
#include "runtime/program/method.h"

/* The part of the state that a tensor of a graph has. */
enum content {
    NOTHING,
    BEFORE, /* a buffer as the call found it */
    AFTER,  /* with the rows of this call */
};

struct trace {
    const struct rt_method *method;
    const struct rt_graph *graph;
    uint8_t *contents; /* by value: enum content */
    uint32_t *writers; /* by value that is AFTER: the node of write_rows */
};

/* Arguments of write_rows and attention; attention reads rows up to start + queries. */
enum { WRITE_CACHE, WRITE_VALUE, WRITE_PLACE };
enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_START, ATTENTION_MASK };

static bool is_state_register(const struct rt_method *method, uint32_t reg)
{
    for (uint32_t i = 0; i < method->state_count; i++) {
        if (method->states[i].is_written && method->states[i].reg == reg) {
            return true;
        }
    }
    return false;
}

/* The host looks at no buffer. */
static bool statements_pass(const struct rt_method *method)
{
    for (uint32_t i = 0; i < method->code.stmt_count; i++) {
        const struct rt_stmt *stmt = &method->code.stmts[i];
        if (stmt->kind == RT_STMT_BLOCK) {
            continue;
        }
        /* An operand that a statement does not have may be the number of any register. */
        if (is_state_register(method, stmt->a) || is_state_register(method, stmt->b) ||
            is_state_register(method, stmt->c) || is_state_register(method, stmt->target)) {
            return false;
        }
    }
    return true;
}

static bool is_int(const struct rt_value *value)
{
    return value->kind == RT_INT;
}

static bool take_write(struct trace *t, const struct rt_node *node, uint32_t index)
{
    const struct rt_graph *graph = t->graph;
    if (!rt_op_is(node->op, RT_KNOWN_write_rows) ||
        t->contents[node->args[WRITE_CACHE]] != BEFORE ||
        t->contents[node->args[WRITE_VALUE]] != NOTHING ||
        !is_int(rt_node_arg(graph, node, WRITE_PLACE))) {
        return false;
    }
    t->contents[node->outs[0]] = AFTER;
    t->writers[node->outs[0]] = index;
    return true;
}

/* Does attention read no rows behind those that the call wrote to |cache|? */
static bool reads_written(const struct trace *t, const struct rt_node *node, uint32_t cache)
{
    const struct rt_graph *graph = t->graph;
    if (t->contents[cache] != AFTER) {
        return false;
    }
    const struct rt_node *write = &graph->nodes[t->writers[cache]];
    const struct rt_value *value = rt_node_arg(graph, write, WRITE_VALUE);
    const struct rt_value *q = rt_node_arg(graph, node, ATTENTION_Q);
    const struct rt_value *start = rt_node_arg(graph, node, ATTENTION_START);
    return value->dims && q->dims && value->rank == 4 && q->rank == 4 && is_int(start) &&
           rt_dim_same(value->dims[1], q->dims[1]) &&
           rt_dim_same(rt_node_arg(graph, write, WRITE_PLACE)->i, start->i);
}

static bool take_attention(const struct trace *t, const struct rt_node *node)
{
    bool is_attention =
        rt_op_is(node->op, RT_KNOWN_attention) || rt_op_is(node->op, RT_KNOWN_attention_int8);
    return is_attention && t->contents[node->args[ATTENTION_Q]] == NOTHING &&
           rt_node_arg(t->graph, node, ATTENTION_MASK)->kind == RT_NONE &&
           reads_written(t, node, node->args[ATTENTION_K]) &&
           reads_written(t, node, node->args[ATTENTION_V]);
}

static bool has_state(const struct trace *t, const struct rt_node *node)
{
    struct rt_tensors it = rt_node_arg_tensors(t->graph, node);
    uint32_t value;
    while (rt_tensors_next(&it, &value)) {
        if (t->contents[value] != NOTHING) {
            return true;
        }
    }
    return false;
}

static bool reads_unwritten(const struct trace *t, const struct rt_node *node)
{
    struct rt_tensors it = rt_node_arg_tensors(t->graph, node);
    uint32_t value;
    while (rt_tensors_next(&it, &value)) {
        if (t->contents[value] == BEFORE) {
            return true;
        }
    }
    return false;
}

static enum reason look_at_nodes(struct trace *t)
{
    for (uint32_t i = 0; i < t->graph->node_count; i++) {
        const struct rt_node *node = &t->graph->nodes[i];
        if (has_state(t, node) && !take_write(t, node, i) && !take_attention(t, node)) {
            return reads_unwritten(t, node) ? REASON_BUFFERS_NOT_ROWS : REASON_BUFFERS_READ_WHOLE;
        }
    }
    return REASON_NONE;
}

/* Where the only block of a method has its state: the inputs and outputs behind its own. */
static void mark_whole(struct trace *t)
{
    const struct rt_method *method = t->method;
    for (uint32_t i = 0; i < method->state_count; i++) {
        if (method->states[i].is_written) {
            t->contents[t->graph->inputs[method->input_count + i]] = BEFORE;
        }
    }
}

static bool results_pass(const struct trace *t)
{
    for (uint32_t i = 0; i < t->method->result_count && i < t->graph->output_count; i++) {
        if (t->contents[t->graph->outputs[i]] != NOTHING) {
            return false;
        }
    }
    return true;
}

static void mark_part(struct trace *t, const struct rt_block *block)
{
    for (uint32_t i = 0; i < t->graph->input_count; i++) {
        if (is_state_register(t->method, block->ins[i])) {
            t->contents[t->graph->inputs[i]] = BEFORE;
        }
    }
}

static bool outs_pass(const struct trace *t, const struct rt_block *block)
{
    for (uint32_t i = 0; i < block->out_count; i++) {
        const struct rt_block_out *out = &block->outs[i];
        uint32_t value =
            out->is_input ? t->graph->inputs[out->index] : t->graph->outputs[out->index];
        if (t->contents[value] != NOTHING && !is_state_register(t->method, out->reg)) {
            return false;
        }
    }
    return true;
}

static enum reason look_at_block(const struct rt_method *method, const struct rt_block *block)
{
    bool is_whole = method->code.stmt_count == 0;
    uint32_t count = block->graph.value_count;
    struct trace t = {.method = method, .graph = &block->graph};
    enum reason why_not = REASON_BUFFERS_NOT_ROWS; /* a safe answer without memory */
    t.contents = calloc(count + 1, sizeof(*t.contents));
    t.writers = calloc(count + 1, sizeof(*t.writers));
    if (t.contents && t.writers && (!is_whole || method->code.block_count == 1)) {
        is_whole ? mark_whole(&t) : mark_part(&t, block);
        why_not = look_at_nodes(&t);
        if (why_not == REASON_NONE && !(is_whole ? results_pass(&t) : outs_pass(&t, block))) {
            why_not = REASON_BUFFERS_ARE_RESULTS;
        }
    }
    free(t.contents);
    free(t.writers);
    return why_not;
}

enum reason rt_method_why_not_positional(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    if (method->part_count > 0) {
        return REASON_PIPELINE;
    }
    if (method->state_count == 0 || method->code.block_count == 0) {
        return REASON_NO_BUFFERS;
    }
    if (!statements_pass(method)) {
        return REASON_BUFFERS_ON_HOST;
    }
    enum reason why_not = REASON_NONE;
    for (uint32_t i = 0; why_not == REASON_NONE && i < method->code.block_count; i++) {
        why_not = look_at_block(method, method->code.blocks[i]);
    }
    return why_not;
}

bool rt_method_is_positional(const struct rt_method *method)
{
    return rt_method_why_not_positional(method) == REASON_NONE;
}
