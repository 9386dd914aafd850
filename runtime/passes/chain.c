/* SPDX-License-Identifier: MIT */
/*
 * Pointwise chains: a float node and the preceding nodes whose results only this node reads become
 * one node, as long as all of them have the dims of the last one and the chain has room. Where an
 * exporter writes several steps for one loop, such as hardswish, they become that loop.
 *
 * Runs after layout, because then the memory order of each tensor is known.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "runtime/ops/chain.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* ---- loops that stand for several ---------------------------------------------------------- */

/* The step that makes |value| if its loop is |op|, else NULL. */
static const struct rt_chain_step *maker(const struct rt_chain *c, int value,
                                         enum rt_pointwise_op op)
{
    int step = value - (int)c->tensors;
    return step >= 0 && c->steps[step].op == op ? &c->steps[step] : NULL;
}

static bool is_number(const struct rt_chain *c, int arg, float number)
{
    return arg < 0 && (float)c->numbers[-1 - arg] == number;
}

/* If one operand of a binary step is |number|, the other one; else -1. */
static int beside(const struct rt_chain *c, const struct rt_chain_step *s, float number)
{
    return is_number(c, s->args[1], number)   ? s->args[0]
           : is_number(c, s->args[0], number) ? s->args[1]
                                              : -1;
}

/* x if |value| is clamp(x + 3, 0, 6), else -1. */
static int find_gate(const struct rt_chain *c, int value)
{
    const struct rt_chain_step *clamp = maker(c, value, RT_PW_clamp);
    if (!clamp || !is_number(c, clamp->args[2], 6)) {
        return -1;
    }
    const struct rt_chain_step *relu = maker(c, clamp->args[0], RT_PW_relu);
    bool is_positive = c->numbers[-1 - clamp->args[1]] <= 0 && relu;
    if (!is_positive && !is_number(c, clamp->args[1], 0)) {
        return -1;
    }
    const struct rt_chain_step *add =
        maker(c, is_positive ? relu->args[0] : clamp->args[0], RT_PW_add);
    return add ? beside(c, add, 3) : -1;
}

/* x if |s| is x / 6, else -1. */
static int find_sixth(const struct rt_chain *c, const struct rt_chain_step *s)
{
    return s->op == RT_PW_div && is_number(c, s->args[1], 6) ? s->args[0]
           : s->op == RT_PW_mul                              ? beside(c, s, 1.0F / 6)
                                                             : -1;
}

static void become(struct rt_chain_step *s, enum rt_pointwise_op op, int operand)
{
    *s = (struct rt_chain_step){.op = op, .args = {operand}};
}

/* Replaces x * sigmoid(x) by silu(x), and x * hardsigmoid(x) by hardswish(x). */
static void simplify_product(const struct rt_chain *c, struct rt_chain_step *s)
{
    for (int i = 0; i < 2; i++) {
        int x = s->args[i], other = s->args[1 - i];
        const struct rt_chain_step *sigmoid = maker(c, other, RT_PW_sigmoid);
        const struct rt_chain_step *hard = maker(c, other, RT_PW_hardsigmoid);
        if (x >= 0 && sigmoid && sigmoid->args[0] == x) {
            become(s, RT_PW_silu, x);
            return;
        }
        if (x >= 0 && hard && hard->args[0] == x) {
            become(s, RT_PW_hardswish, x);
            return;
        }
    }
}

static void simplify_sixth(const struct rt_chain *c, struct rt_chain_step *s)
{
    int whole = find_sixth(c, s);
    const struct rt_chain_step *product = whole >= 0 ? maker(c, whole, RT_PW_mul) : NULL;
    int x = whole >= 0 ? find_gate(c, whole) : -1;

    if (x >= 0) {
        become(s, RT_PW_hardsigmoid, x);
        return;
    }
    for (int i = 0; product && i < 2; i++) {
        x = product->args[i];
        if (x >= 0 && find_gate(c, product->args[1 - i]) == x) {
            become(s, RT_PW_hardswish, x);
            return;
        }
    }
}

static void drop_unused(struct rt_chain *c)
{
    int to[RT_CHAIN_VALUES_MAX];
    bool used[RT_CHAIN_VALUES_MAX] = {false};
    uint32_t kept = 0;

    used[c->tensors + c->step_count - 1] = true;
    for (uint32_t i = c->step_count; i-- > 0;) {
        const struct rt_chain_step *s = &c->steps[i];
        for (uint32_t a = 0; used[c->tensors + i] && a < rt_chain_arg_count(s->op); a++) {
            if (s->args[a] >= 0) {
                used[s->args[a]] = true;
            }
        }
    }
    for (uint32_t v = 0; v < c->tensors + c->step_count; v++) {
        to[v] = (int)(v < c->tensors ? v : c->tensors + kept);
        if (v < c->tensors || !used[v]) {
            continue;
        }
        struct rt_chain_step s = c->steps[v - c->tensors];
        for (uint32_t a = 0; a < rt_chain_arg_count(s.op); a++) {
            s.args[a] = s.args[a] >= 0 ? to[s.args[a]] : s.args[a];
        }
        c->steps[kept++] = s;
    }
    c->step_count = kept;
}

/* Numbers each use of a constant separately, in the order of use. */
static void renumber(struct rt_chain *c)
{
    double numbers[RT_CHAIN_NUMBERS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->step_count; i++) {
        for (uint32_t a = 0; a < rt_chain_arg_count(c->steps[i].op); a++) {
            int *arg = &c->steps[i].args[a];
            if (*arg < 0) {
                numbers[count] = c->numbers[-1 - *arg];
                *arg = -1 - (int)count++;
            }
        }
    }
    memcpy(c->numbers, numbers, count * sizeof(*numbers));
    c->number_count = count;
}

static void simplify(struct rt_chain *chain)
{
    for (uint32_t i = 0; i < chain->step_count; i++) {
        struct rt_chain_step *s = &chain->steps[i];
        if (s->op == RT_PW_mul) {
            simplify_product(chain, s);
        }
        simplify_sixth(chain, s);
    }
    drop_unused(chain);
    renumber(chain);
}

/* ---- which nodes --------------------------------------------------------------------------- */

/* The nodes of a chain, which grows from its last node towards the inputs. */
struct growth {
    struct rt_rewrite *rw;
    uint32_t nodes[RT_CHAIN_STEPS_MAX], count;
    uint32_t tensors[RT_CHAIN_TENSORS_MAX], tensor_count; /* made outside of the chain */
    uint32_t number_count;
};

/* Reads a node as a step; operands that are constants with one element become numbers. */
static bool read_step(const struct rt_graph *graph, uint32_t node, struct rt_pointwise_step *step)
{
    uint32_t numbers = 0;

    if (!rt_pointwise_read_step(graph, &graph->nodes[node], step)) {
        return false;
    }
    for (uint32_t i = 0; i < rt_pointwise_infos[step->op].inputs; i++) {
        numbers |= (uint32_t)(step->values[i] == RT_PW_NUMBER) << i;
    }
    return rt_chain_takes(step->op, numbers);
}

static bool has_node(const struct growth *g, uint32_t node)
{
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

/* Lists the tensors and numbers that the chain of |g->nodes| reads; false if there are too many. */
static bool list_operands(struct growth *g)
{
    const struct rt_graph *graph = g->rw->graph;
    struct rt_pointwise_step step;

    g->tensor_count = g->number_count = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        must(read_step(graph, g->nodes[i], &step));
        for (uint32_t a = 0; a < rt_chain_arg_count(step.op); a++) {
            uint32_t value = step.values[a], t = 0;
            if (value == RT_PW_NUMBER) {
                g->number_count++;
                continue;
            }
            if (has_node(g, graph->values[value].node)) {
                continue;
            }
            while (t < g->tensor_count && g->tensors[t] != value) {
                t++;
            }
            if (t == RT_CHAIN_TENSORS_MAX) {
                return false;
            }
            g->tensors[t] = value;
            g->tensor_count = t == g->tensor_count ? t + 1 : g->tensor_count;
        }
    }
    return g->number_count <= RT_CHAIN_NUMBERS_MAX;
}

/* Is every use of |value| an operand of a node of the chain? */
static bool is_private(const struct growth *g, uint32_t value)
{
    const struct rt_graph *graph = g->rw->graph;
    uint32_t uses = 0;

    for (uint32_t i = 0; i < g->count; i++) {
        const struct rt_node *node = &graph->nodes[g->nodes[i]];
        for (uint32_t a = 0; a < node->arg_count; a++) {
            uses += node->args[a] == value;
        }
    }
    return uses == rt_rewrite_uses(g->rw, value);
}

static bool may_join(const struct growth *g, uint32_t value)
{
    const struct rt_graph *graph = g->rw->graph;
    const struct rt_value *v = &graph->values[value];
    const struct rt_node *last = &graph->nodes[g->nodes[0]];
    struct rt_pointwise_step step;

    return v->node != RT_NO_NODE && !graph->nodes[v->node].is_dead && is_private(g, value) &&
           rt_value_same_dims(v, rt_node_out(graph, last, 0)) && read_step(graph, v->node, &step);
}

/* Adds one node to the chain; false if no node fits. */
static bool grow(struct growth *g)
{
    uint32_t tensors[RT_CHAIN_TENSORS_MAX], count = g->tensor_count;

    memcpy(tensors, g->tensors, sizeof(tensors));
    for (uint32_t t = 0; t < count && g->count < RT_CHAIN_STEPS_MAX; t++) {
        if (!may_join(g, tensors[t])) {
            continue;
        }
        g->nodes[g->count++] = g->rw->graph->values[tensors[t]].node;
        if (list_operands(g)) {
            return true;
        }
        g->count--;
        must(list_operands(g));
    }
    return false;
}

/* The output may be written over argument 0, so a tensor with the same dims goes there, if there is
 * one. */
static void choose_first(struct growth *g, const struct rt_value *out)
{
    const struct rt_graph *graph = g->rw->graph;

    for (uint32_t t = 0; t < g->tensor_count; t++) {
        if (rt_value_same_dims(&graph->values[g->tensors[t]], out)) {
            uint32_t first = g->tensors[t];
            g->tensors[t] = g->tensors[0];
            g->tensors[0] = first;
            return;
        }
    }
}

/* Node numbers are a topological order. */
static void sort_nodes(struct growth *g)
{
    for (uint32_t i = 1; i < g->count; i++) {
        for (uint32_t j = i; j > 0 && g->nodes[j] < g->nodes[j - 1]; j--) {
            uint32_t node = g->nodes[j];
            g->nodes[j] = g->nodes[j - 1];
            g->nodes[j - 1] = node;
        }
    }
}

/* The number of a value in the chain. */
static int number_of(const struct growth *g, uint32_t value)
{
    for (uint32_t t = 0; t < g->tensor_count; t++) {
        if (g->tensors[t] == value) {
            return (int)t;
        }
    }
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->nodes[i] == g->rw->graph->values[value].node) {
            return (int)(g->tensor_count + i);
        }
    }
    unreachable();
}

static void make_steps(const struct growth *g, struct rt_chain *chain)
{
    *chain = (struct rt_chain){.tensors = g->tensor_count, .step_count = g->count};
    for (uint32_t i = 0; i < g->count; i++) {
        struct rt_chain_step *s = &chain->steps[i];
        struct rt_pointwise_step step;
        must(read_step(g->rw->graph, g->nodes[i], &step));
        s->op = step.op;
        for (uint32_t a = 0; a < rt_chain_arg_count(step.op); a++) {
            if (step.values[a] == RT_PW_NUMBER) {
                s->args[a] = -1 - (int)chain->number_count;
                chain->numbers[chain->number_count++] = step.numbers[a];
            } else {
                s->args[a] = number_of(g, step.values[a]);
            }
        }
    }
}

/* ---- the node ------------------------------------------------------------------------------ */

static uint32_t names_of(struct rt_graph *graph, const struct rt_chain *c)
{
    char text[RT_CHAIN_STEPS_MAX * RT_PW_NAME_MAX];
    size_t len = 0;

    for (uint32_t i = 0; i < c->step_count; i++) {
        const char *name = rt_pointwise_name(c->steps[i].op);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " " : "", name);
    }
    must(len < sizeof(text));
    char *copy = arena_array(&graph->arena, len, 1);
    if (!copy) {
        graph->failed = true;
        return 0;
    }
    memcpy(copy, text, len);
    return rt_graph_string(graph, span_of(copy, len));
}

/* Turns the last node into the chain: its output keeps dims, order and readers. */
static enum status make_node(struct growth *g, const struct rt_chain *c, struct error *err)
{
    struct rt_graph *graph = g->rw->graph;
    struct rt_node *last = &graph->nodes[g->nodes[g->count - 1]];
    struct rt_dim codes[RT_CHAIN_STEPS_MAX * RT_CHAIN_ARGS_MAX];
    uint32_t *args = arena_array(&graph->arena, RT_CHAIN_TENSORS_MAX + 3, sizeof(*args));
    uint32_t count = 0;

    if (!args) {
        graph->failed = true;
        return rt_graph_check(graph, err);
    }
    for (uint32_t i = 0; i < c->step_count; i++) {
        for (uint32_t a = 0; a < rt_chain_arg_count(c->steps[i].op); a++) {
            codes[count++] = rt_dim_of(c->steps[i].args[a]);
        }
    }
    for (uint32_t t = 0; t < RT_CHAIN_TENSORS_MAX; t++) {
        args[t] = t < c->tensors ? g->tensors[t] : rt_graph_none(graph);
    }
    args[RT_CHAIN_TENSORS_MAX] = names_of(graph, c);
    args[RT_CHAIN_TENSORS_MAX + 1] = rt_graph_ints(graph, codes, count);
    args[RT_CHAIN_TENSORS_MAX + 2] = rt_graph_floats(graph, c->numbers, c->number_count);
    for (uint32_t i = 0; i + 1 < g->count; i++) {
        graph->nodes[g->nodes[i]].is_dead = true;
    }
    last->op = rt_op_known(RT_KNOWN_chain);
    last->args = args;
    last->arg_count = RT_CHAIN_TENSORS_MAX + 3;
    return rt_graph_check(graph, err);
}

/* Is a tensor broadcast? A chain does that faster than the node alone, even if it has only this
 * node. */
static bool repeats_rows(const struct growth *g)
{
    const struct rt_graph *graph = g->rw->graph;
    const struct rt_value *out = rt_node_out(graph, &graph->nodes[g->nodes[0]], 0);

    for (uint32_t t = 0; t < g->tensor_count; t++) {
        if (!rt_value_same_dims(&graph->values[g->tensors[t]], out)) {
            return true;
        }
    }
    return false;
}

static enum status chain_up(struct rt_rewrite *rw, uint32_t node, struct error *err)
{
    struct growth g = {.rw = rw, .nodes = {node}, .count = 1};
    struct rt_pointwise_step step;
    struct rt_chain chain;

    if (rw->graph->nodes[node].is_dead || !read_step(rw->graph, node, &step) ||
        !list_operands(&g)) {
        return ST_OK;
    }
    while (grow(&g)) {
    }
    if (g.count == 1 && !repeats_rows(&g)) {
        return ST_OK;
    }
    choose_first(&g, rt_node_out(rw->graph, &rw->graph->nodes[node], 0));
    sort_nodes(&g);
    make_steps(&g, &chain);
    simplify(&chain);
    return make_node(&g, &chain, err);
}

enum status rt_pass_chain(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = rw.node_count; i-- > 0;) {
        TRY(chain_up(&rw, i, err));
    }
    return rt_rewrite_end(&rw, err);
}
