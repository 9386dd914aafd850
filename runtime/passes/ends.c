/* SPDX-License-Identifier: MIT */
/*
 * An input "flows" through element-wise nodes to reorders. If all its readers are such nodes, they
 * can work in the order that the reorders make, and the reorders go. A result that a reorder makes,
 * or an element-wise node behind a reorder that nobody else reads, can be given as it was before.
 */
#include "config.h"

#include "runtime/passes/ends.h"

#include <string.h>

#include "base/check.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/copy.h"
#include "runtime/passes/rewrite.h"

#define NO_INPUT UINT32_MAX

struct search {
    const struct rt_graph *graph;
    uint32_t *input;  /* by value: the input that flows there, or NO_INPUT */
    uint32_t *uses;   /* by value: by nodes and outputs */
    bool *is_spoiled; /* by input: a reader needs it row-major */
    struct rt_graph_ends ends;
};

/* ---- inputs ---------------------------------------------------------------------------------- */

static bool is_reorder(const struct rt_node *node)
{
    return rt_op_is(node->op, RT_KNOWN_reorder);
}

/* Are the elements of |v| in the same place in both orders, next to tensors of |rank|? Fewer dims
 * are broadcast, and read by strides as they are. */
static bool suits_both(const struct rt_value *v, uint8_t rank)
{
    return !v->is_packed && (v->rank < rank || rt_value_orders_agree(v));
}

/* Does |node| work in any order that all its tensors have, but for |value|s neighbours that suit
 * both? */
static bool follows(const struct rt_graph *graph, const struct rt_node *node, uint32_t value)
{
    const struct rt_value *out = rt_node_out(graph, node, 0);
    bool does = node->op->layout == RT_LAYOUT_ELEMENTWISE && node->out_count == 1 &&
                out->kind == RT_TENSOR && out->rank == graph->values[value].rank && !out->order;
    for (uint32_t i = 0; does && i < node->arg_count; i++) {
        const struct rt_value *v = rt_node_arg(graph, node, i);
        does = v->kind != RT_TENSORS &&
               (v->kind != RT_TENSOR || node->args[i] == value || suits_both(v, out->rank));
    }
    return does;
}

/* Input |input| flows to |value|, too. Of two inputs a later reader would spoil one alone. */
static void join_flows(struct search *s, uint32_t value, uint32_t input)
{
    uint32_t before = s->input[value];
    if (before != NO_INPUT && before != input) {
        s->is_spoiled[before] = s->is_spoiled[input] = true;
    }
    s->input[value] = input;
}

/* |node| reads |value|, to which input |input| flows. */
static void note_reader(struct search *s, const struct rt_node *node, uint32_t value,
                        uint32_t input)
{
    const uint8_t **order = &s->ends.inputs[input];
    const struct rt_value *out = rt_node_out(s->graph, node, 0);
    if (is_reorder(node) && (!*order || *order == out->order)) {
        *order = out->order;
    } else if (follows(s->graph, node, value)) {
        join_flows(s, node->outs[0], input);
    } else {
        s->is_spoiled[input] = true;
    }
}

static void find_inputs(struct search *s)
{
    const struct rt_graph *graph = s->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        bool has_orders = v->kind == RT_TENSOR && shape_channels_last(v->rank) && !v->order;
        s->is_spoiled[i] = !has_orders || s->input[graph->inputs[i]] != NO_INPUT;
        s->input[graph->inputs[i]] = i;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct rt_tensors args = rt_node_arg_tensors(graph, &graph->nodes[i]);
        for (uint32_t value; rt_tensors_next(&args, &value);) {
            s->uses[value]++;
            if (s->input[value] != NO_INPUT) {
                note_reader(s, &graph->nodes[i], value, s->input[value]);
            }
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t value = graph->outputs[i];
        s->uses[value]++;
        if (s->input[value] != NO_INPUT) {
            s->is_spoiled[s->input[value]] = true;
        }
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (s->is_spoiled[i]) {
            s->ends.inputs[i] = NULL;
        }
    }
}

/* ---- results --------------------------------------------------------------------------------- */

/* The value that a reorder made |value| of, row-major; NO_INPUT: there is none. */
static uint32_t before_reorder(const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    if (v->kind != RT_TENSOR || v->node == RT_NO_NODE || v->order ||
        !is_reorder(&graph->nodes[v->node])) {
        return NO_INPUT;
    }
    uint32_t before = graph->nodes[v->node].args[0];
    const struct rt_value *b = &graph->values[before];
    return b->order && !b->is_packed && !b->is_constant && b->order == shape_channels_last(b->rank)
               ? before
               : NO_INPUT;
}

/* The argument of the node that makes |value| which a reorder made, if the node can do without;
 * else the number of its arguments. */
static uint32_t reordered_arg(const struct rt_graph *graph, uint32_t value)
{
    const struct rt_node *node = &graph->nodes[graph->values[value].node];
    for (uint32_t i = 0; i < node->arg_count; i++) {
        if (before_reorder(graph, node->args[i]) != NO_INPUT &&
            follows(graph, node, node->args[i])) {
            return i;
        }
    }
    return node->arg_count;
}

static const uint8_t *find_output(const struct search *s, uint32_t value)
{
    const struct rt_graph *graph = s->graph;
    const struct rt_value *v = &graph->values[value];
    uint32_t before = before_reorder(graph, value);
    if (before == NO_INPUT && v->kind == RT_TENSOR && v->node != RT_NO_NODE &&
        s->uses[value] == 1) {
        const struct rt_node *node = &graph->nodes[v->node];
        uint32_t arg = reordered_arg(graph, value);
        before = arg < node->arg_count ? before_reorder(graph, node->args[arg]) : NO_INPUT;
    }
    return before == NO_INPUT ? NULL : graph->values[before].order;
}

enum status rt_graph_find_ends(const struct rt_graph *graph, struct arena *arena,
                               struct rt_graph_ends *out, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct search s = {
        .graph = graph,
        .input = arena_array(arena, graph->value_count, sizeof(*s.input)),
        .uses = arena_array(arena, graph->value_count, sizeof(*s.uses)),
        .is_spoiled = arena_array(arena, graph->input_count, sizeof(bool)),
        .ends = {arena_array(arena, graph->input_count, sizeof(*out->inputs)),
                 arena_array(arena, graph->output_count, sizeof(*out->outputs))},
    };
    if (!s.input || !s.uses || !s.is_spoiled || !s.ends.inputs || !s.ends.outputs) {
        return arena_fail(arena, "the method", err);
    }
    for (uint32_t i = 0; i < graph->value_count; i++) {
        s.input[i] = NO_INPUT;
        s.uses[i] = 0;
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        s.ends.inputs[i] = NULL;
    }
    find_inputs(&s);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        s.ends.outputs[i] = find_output(&s, graph->outputs[i]);
    }
    *out = s.ends;
    return ST_OK;
}

/* ---- the variant ----------------------------------------------------------------------------- */

static enum status check_ends(const struct rt_graph *graph, const struct rt_graph_ends *wanted,
                              const struct rt_graph_ends *found, struct error *err)
{
    bool can = true;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        can = can && (!wanted->inputs[i] || wanted->inputs[i] == found->inputs[i]);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        can = can && (!wanted->outputs[i] || wanted->outputs[i] == found->outputs[i]);
    }
    return can ? ST_OK
               : error_set(err, ST_UNSUPPORTED, "%s: an order of memory that it does not prefer",
                           graph->name);
}

/* A node of the graph that was copied, whose readers of a turned tensor are reorders and nodes that
 * follow. |is_turned|, by value: does it lie in another order now? */
static void turn_node(struct rt_rewrite *rw, const struct rt_node *node, bool *is_turned)
{
    struct rt_graph *graph = rw->graph;
    struct rt_tensors args = rt_node_arg_tensors(graph, node);
    for (uint32_t value; rt_tensors_next(&args, &value);) {
        if (!is_turned[value]) {
            continue;
        }
        if (is_reorder(node)) {
            rt_rewrite_replace(rw, node->outs[0], value);
        } else {
            must(is_turned[node->outs[0]] || follows(graph, node, value)); /* else it is spoiled */
            rt_node_out(graph, node, 0)->order = graph->values[value].order;
            is_turned[node->outs[0]] = true;
        }
    }
}

static enum status turn_inputs(struct rt_graph *graph, const struct rt_graph_ends *ends,
                               struct error *err)
{
    struct rt_rewrite rw;
    bool *is_turned = arena_array(&graph->arena, graph->value_count, sizeof(*is_turned));
    if (!is_turned) {
        return arena_fail(&graph->arena, "the method", err);
    }
    memset(is_turned, 0, graph->value_count * sizeof(*is_turned));
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (ends->inputs[i]) {
            graph->values[graph->inputs[i]].order = ends->inputs[i];
            is_turned[graph->inputs[i]] = true;
        }
    }
    for (uint32_t i = 0; i < rw.node_count; i++) {
        turn_node(&rw, &graph->nodes[i], is_turned); /* by the arguments that it had */
        (void)rt_rewrite_node(&rw, i);
    }
    return rt_rewrite_end(&rw, err);
}

/* Output |index|, which a reorder made, is given as it was before. */
static void turn_output(struct rt_graph *graph, uint32_t index, const uint8_t *order)
{
    uint32_t value = graph->outputs[index], before = before_reorder(graph, value);
    if (before != NO_INPUT) {
        graph->outputs[index] = before;
        return;
    }
    struct rt_node *node = &graph->nodes[graph->values[value].node];
    uint32_t arg = reordered_arg(graph, value);
    must(arg < node->arg_count);
    node->args[arg] = before_reorder(graph, node->args[arg]);
    graph->values[value].order = order;
}

enum status rt_graph_with_ends(struct rt_graph *graph, const struct rt_graph *from,
                               const struct rt_graph_ends *ends, struct error *err)
{
    struct rt_graph_ends found;
    TRY(rt_graph_copy(graph, from, err));
    TRY(rt_graph_own_lists(graph, err));
    TRY(rt_graph_find_ends(graph, &graph->arena, &found, err));
    TRY(check_ends(graph, ends, &found, err));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (ends->outputs[i]) {
            turn_output(graph, i, ends->outputs[i]);
        }
    }
    return turn_inputs(graph, ends, err);
}
