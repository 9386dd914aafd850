/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/plan/numbers.h"

#include "base/check.h"
#include "runtime/ops/op.h"

struct search {
    struct rt_numbers *numbers;
    struct rt_graph *graph;
    bool *is_needed; /* by expression: the plan's memory, dispatches or constants depend on it */
    uint32_t expr_count;
    struct error *err;
};

static void need(struct search *s, uint32_t expr)
{
    s->is_needed[expr] = true;
}

static void need_dims(struct search *s, const struct rt_dim *dims, uint32_t count)
{
    for (uint32_t i = 0; dims && i < count; i++) {
        need(s, dims[i].expr);
    }
}

/* All expressions of a value; need_all() walks lists of tensors. */
static void need_value(struct search *s, uint32_t value)
{
    const struct rt_value *v = &s->graph->values[value];
    need_dims(s, v->dims, v->kind == RT_TENSOR ? v->rank : 0);
    need_dims(s, v->ints, v->kind == RT_INTS ? v->count : 0);
    if (v->kind == RT_INT) {
        need(s, v->i.expr);
    } else if (v->kind == RT_FLOAT || v->kind == RT_BOOL) {
        need(s, v->symbol);
    }
}

static void need_all(struct search *s, uint32_t value)
{
    const struct rt_value *v = &s->graph->values[value];
    need_value(s, value);
    for (uint32_t i = 0; v->kind == RT_TENSORS && i < v->count; i++) {
        need_value(s, v->values[i]);
    }
}

static bool is_read(const struct rt_graph *graph, const struct rt_node *node, uint32_t arg)
{
    const struct rt_value *v = rt_node_arg(graph, node, arg);
    return arg < 32 && node->op->read >> arg & 1 && v->kind == RT_INT && v->i.expr != 0;
}

static void find_needed(struct search *s)
{
    const struct rt_graph *graph = s->graph;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        for (uint32_t a = 0; a < node->arg_count; a++) {
            if (!is_read(graph, node, a)) {
                need_all(s, node->args[a]);
            }
        }
        for (uint32_t o = 0; o < node->out_count; o++) {
            need_all(s, node->outs[o]);
        }
    }
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++) {
        uint32_t value =
            i < graph->input_count ? graph->inputs[i] : graph->outputs[i - graph->input_count];
        if (graph->values[value].kind == RT_TENSOR) {
            need_value(s, value);
        }
    }
}

static bool is_free_symbol(const struct rt_dims *dims, uint32_t expr)
{
    return dims->exprs[expr].kind == RT_EXPR_SYMBOL && dims->solved[expr].expr == expr;
}

/* |is_known|: which expressions follow from needed symbols. */
static void find_known(const struct search *s, bool *is_known)
{
    const struct rt_dims *dims = &s->graph->dims;
    is_known[0] = true; /* a constant */
    for (uint32_t i = 1; i < s->expr_count; i++) {
        const struct rt_expr *e = &dims->exprs[i];
        is_known[i] = is_free_symbol(dims, i)     ? s->is_needed[i]
                      : e->kind == RT_EXPR_SYMBOL ? is_known[dims->solved[i].expr]
                                                  : is_known[e->a.expr] && is_known[e->b.expr];
    }
}

/* First the needed symbols, then needed expressions that do not follow from them. */
static void choose_keys(struct search *s, const bool *is_known)
{
    struct rt_numbers *numbers = s->numbers;
    for (uint32_t i = 1; i < s->expr_count; i++) {
        bool is_free = is_free_symbol(&s->graph->dims, i);
        if (s->is_needed[i] && (is_free || !is_known[i])) {
            numbers->keys[numbers->key_count++] = i;
        }
        numbers->is_each_evaluated |= (is_free || s->is_needed[i]) && !is_known[i];
    }
}

static void add_word(struct rt_numbers *numbers, uint32_t expr)
{
    if (expr != 0 && rt_numbers_find_word(numbers, expr) == RT_NO_WORD) {
        numbers->words[numbers->word_count++] = expr;
    }
}

static enum status find_uses(struct search *s, const bool *is_known)
{
    struct rt_graph *graph = s->graph;
    struct rt_numbers *numbers = s->numbers;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        for (uint32_t a = 0; a < node->arg_count; a++) {
            if (!is_read(graph, node, a) || is_known[rt_node_arg(graph, node, a)->i.expr]) {
                continue;
            }
            struct rt_number_use use = {.node = i, .arg = a};
            struct rt_shape_call call = {graph, node, s->err};
            if (node->op->place(&call, a, &use.place) != ST_OK) {
                return error_prefix(s->err, "%s: ", node->op->name);
            }
            numbers->uses[numbers->use_count++] = use;
            add_word(numbers, use.place.expr);
        }
    }
    return rt_graph_check(graph, s->err);
}

/* Scalars among the graph's outputs that differ between runs of a plan. */
static void find_outputs(struct search *s, const bool *is_known)
{
    const struct rt_graph *graph = s->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct rt_value *v = &graph->values[graph->outputs[i]];
        uint32_t expr = v->kind == RT_INT                           ? v->i.expr
                        : v->kind == RT_FLOAT || v->kind == RT_BOOL ? v->symbol
                                                                    : 0;
        if (!is_known[expr]) {
            add_word(s->numbers, expr);
        }
    }
}

static size_t count_uses(const struct rt_graph *graph)
{
    size_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        for (uint32_t a = 0; a < graph->nodes[i].arg_count; a++) {
            count += is_read(graph, &graph->nodes[i], a);
        }
    }
    return count;
}

enum status rt_numbers_find(struct rt_numbers *numbers, struct rt_graph *graph, struct arena *arena,
                            struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    size_t uses = count_uses(graph), exprs = graph->dims.expr_count;
    struct search s = {
        .numbers = numbers,
        .graph = graph,
        .is_needed = arena_array(arena, exprs, sizeof(bool)),
        .expr_count = graph->dims.expr_count,
        .err = err,
    };
    bool *is_known = arena_array(arena, exprs, sizeof(bool));
    *numbers = (struct rt_numbers){
        .keys = arena_array(arena, exprs, sizeof(*numbers->keys)),
        .words = arena_array(arena, uses + graph->output_count, sizeof(*numbers->words)),
        .uses = arena_array(arena, uses, sizeof(*numbers->uses)),
    };
    if (!s.is_needed || !is_known || !numbers->keys || !numbers->words || !numbers->uses) {
        return arena_fail(arena, "the method", err);
    }
    find_needed(&s);
    find_known(&s, is_known);
    choose_keys(&s, is_known);
    find_outputs(&s, is_known);
    return find_uses(&s, is_known);
}

const struct rt_number_use *rt_numbers_find_use(const struct rt_numbers *numbers, uint32_t node,
                                                uint32_t arg)
{
    for (uint32_t i = 0; numbers && i < numbers->use_count; i++) {
        if (numbers->uses[i].node == node && numbers->uses[i].arg == arg) {
            return &numbers->uses[i];
        }
    }
    return NULL;
}

uint32_t rt_numbers_find_word(const struct rt_numbers *numbers, uint32_t expr)
{
    for (uint32_t i = 0; numbers && i < numbers->word_count; i++) {
        if (numbers->words[i] == expr) {
            return i;
        }
    }
    return RT_NO_WORD;
}
