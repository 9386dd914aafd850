/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/passes/rewrite.h"

#include "base/check.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"

static void add_uses(struct rt_rewrite *rw, uint32_t value, int by)
{
    if (rt_rewrite_has(rw, value)) {
        rw->uses[value] += (uint32_t)by;
    }
}

/* The items of a list count as arguments of the node that makes the list, whoever reads it. */
static void count_uses(struct rt_rewrite *rw, const struct rt_node *node, int by)
{
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const struct rt_value *v = rt_node_arg(rw->graph, node, i);
        add_uses(rw, node->args[i], by);
        for (uint32_t j = 0; v->kind == RT_TENSORS && v->node == RT_NO_NODE && j < v->count; j++) {
            add_uses(rw, v->values[j], by);
        }
    }
}

void rt_rewrite_drop_uses(struct rt_rewrite *rw, const struct rt_node *node)
{
    count_uses(rw, node, -1);
}

enum status rt_rewrite_begin(struct rt_rewrite *rw, struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    *rw = (struct rt_rewrite){
        .graph = graph,
        .node_count = graph->node_count,
        .value_count = graph->value_count,
        .to = arena_array(&graph->arena, graph->value_count, sizeof(*rw->to)),
        .uses = arena_array(&graph->arena, graph->value_count, sizeof(*rw->uses)),
    };
    graph->failed |= !rw->to || !rw->uses;
    TRY(rt_graph_check(graph, err));
    for (uint32_t i = 0; i < rw->value_count; i++) {
        rw->to[i] = i;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        count_uses(rw, &graph->nodes[i], 1);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        rw->uses[graph->outputs[i]]++;
    }
    return ST_OK;
}

static uint32_t current(const struct rt_rewrite *rw, uint32_t value)
{
    while (rt_rewrite_has(rw, value) && rw->to[value] != value) {
        value = rw->to[value];
    }
    return value;
}

struct rt_node *rt_rewrite_node(struct rt_rewrite *rw, uint32_t index)
{
    struct rt_node *node = &rw->graph->nodes[index];
    rw->graph->origin = node->origin;
    for (uint32_t i = 0; i < node->arg_count; i++) {
        node->args[i] = current(rw, node->args[i]);
        struct rt_value *v = rt_node_arg(rw->graph, node, i);
        for (uint32_t j = 0; v->kind == RT_TENSORS && v->node == RT_NO_NODE && j < v->count; j++) {
            v->values[j] = current(rw, v->values[j]);
        }
    }
    return node;
}

void rt_rewrite_replace(struct rt_rewrite *rw, uint32_t from, uint32_t to)
{
    must(rt_rewrite_has(rw, from));
    if (from != to) {
        rw->to[from] = to;
    }
}

uint32_t rt_rewrite_uses(const struct rt_rewrite *rw, uint32_t value)
{
    return rt_rewrite_has(rw, value) ? rw->uses[value] : UINT32_MAX;
}

void rt_rewrite_set_uses(struct rt_rewrite *rw, uint32_t value, uint32_t uses)
{
    if (rt_rewrite_has(rw, value)) {
        rw->uses[value] = uses;
    }
}

bool rt_rewrite_is_single_use(const struct rt_rewrite *rw, uint32_t value)
{
    return rt_rewrite_uses(rw, value) == 1;
}

struct rt_node *rt_rewrite_producer(const struct rt_rewrite *rw, uint32_t value, enum rt_known op)
{
    uint32_t node = rw->graph->values[value].node;
    if (node == RT_NO_NODE || rw->graph->nodes[node].is_dead ||
        !rt_op_is(rw->graph->nodes[node].op, op)) {
        return NULL;
    }
    return &rw->graph->nodes[node];
}

static bool is_another_size(struct rt_dim a, struct rt_dim b)
{
    return rt_dim_is_const(a) && rt_dim_is_const(b) && a.value != b.value;
}

/* A replacement must have the size of the value that it replaces, as far as that is known:
 * operators are planned by the sizes of the values that were there before. */
static enum status check_sizes(const struct rt_rewrite *rw, uint32_t value, struct error *err)
{
    const struct rt_value *from = &rw->graph->values[value];
    const struct rt_value *to = &rw->graph->values[current(rw, value)];
    bool is_tensor = from->kind == RT_TENSOR && to->kind == RT_TENSOR && from->dims && to->dims;
    bool differs = is_tensor && from->rank != to->rank;
    for (uint8_t d = 0; is_tensor && !differs && d < from->rank; d++) {
        differs = is_another_size(from->dims[d], to->dims[d]);
    }
    return differs
               ? error_set(err, ST_UNSUPPORTED, "the result of an operator has two different sizes")
               : ST_OK;
}

enum status rt_rewrite_end(struct rt_rewrite *rw, struct error *err)
{
    for (uint32_t i = 0; i < rw->value_count; i++) {
        if (rw->to[i] != i) {
            TRY(check_sizes(rw, i, err));
        }
    }
    for (uint32_t i = 0; i < rw->graph->node_count; i++) {
        rt_rewrite_node(rw, i);
    }
    for (uint32_t i = 0; i < rw->graph->output_count; i++) {
        rw->graph->outputs[i] = current(rw, rw->graph->outputs[i]);
    }
    return rt_graph_compact(rw->graph, err);
}
