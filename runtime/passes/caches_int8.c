/* SPDX-License-Identifier: MIT */
/* First it is found out what all nodes do with the buffers; then writes and attentions of those
 * that may change are made anew. */
#include "config.h"

#include "runtime/passes/caches_int8.h"

#include <string.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/cache_int8.h"
#include "runtime/ops/op.h"
#include "runtime/passes/rewrite.h"

enum { WRITE_CACHE, WRITE_ROWS, WRITE_PLACE, WRITE_ARGS };
enum { ATT_Q, ATT_KEYS, ATT_VALUES, ATT_ARGS = 8 };

struct search {
    struct rt_rewrite rw;
    struct rt_graph *graph;
    struct rt_cache_int8 *caches;
    uint32_t *cache_of; /* by value: the number of the buffer whose content it is, + 1 */
    uint32_t *made;     /* by value: the same content in bytes */
};

/* ---- what nodes do --------------------------------------------------------------------------- */

void rt_cache_int8_refuse(struct rt_cache_int8 *cache, const char *why)
{
    if (cache->use != RT_CACHE_OTHER) {
        cache->use = RT_CACHE_OTHER;
        cache->why = why;
    }
}

static void use_rows(struct rt_cache_int8 *cache)
{
    cache->use = cache->use == RT_CACHE_OTHER ? RT_CACHE_OTHER : RT_CACHE_ROWS;
}

static bool is_write(const struct rt_node *node)
{
    return rt_op_is(node->op, RT_KNOWN_write_rows) || rt_op_is(node->op, RT_KNOWN_write_rows_at);
}

/* Is argument |arg| of the node read as rows of a cache? */
static bool reads_rows(const struct search *s, const struct rt_node *node, uint32_t arg)
{
    if (is_write(node)) {
        return arg == WRITE_CACHE && !s->cache_of[node->args[WRITE_ROWS]];
    }
    return rt_op_is(node->op, RT_KNOWN_attention) && (arg == ATT_KEYS || arg == ATT_VALUES) &&
           !s->cache_of[node->args[ATT_Q]] && s->cache_of[node->args[ATT_KEYS]] &&
           s->cache_of[node->args[ATT_VALUES]];
}

static void look_at(const struct search *s, const struct rt_node *node)
{
    uint32_t value;
    for (uint32_t i = 0; i < node->arg_count; i++) {
        uint32_t number = s->cache_of[node->args[i]];
        if (number && reads_rows(s, node, i)) {
            use_rows(&s->caches[number - 1]);
        } else if (number) {
            rt_cache_int8_refuse(&s->caches[number - 1], node->op->name);
        }
    }
    for (struct rt_tensors it = rt_node_arg_tensors(s->graph, node);
         rt_tensors_next(&it, &value);) {
        bool is_arg = false;
        for (uint32_t i = 0; i < node->arg_count; i++) {
            is_arg |= node->args[i] == value;
        }
        if (!is_arg && s->cache_of[value]) { /* of a list */
            rt_cache_int8_refuse(&s->caches[s->cache_of[value] - 1], node->op->name);
        }
    }
    if (is_write(node)) {
        s->cache_of[node->outs[0]] = s->cache_of[node->args[WRITE_CACHE]];
    }
}

static bool is_of_floats(const struct rt_value *v)
{
    bool is_float =
        v->kind == RT_TENSOR && (v->dtype == DT_F32 || v->dtype == DT_F16 || v->dtype == DT_BF16);
    return is_float && v->rank == 4 && v->dims && rt_dim_is_const(v->dims[3]);
}

static void look_at_ends(const struct search *s, uint32_t count)
{
    for (uint32_t i = 0; i < s->graph->output_count; i++) {
        uint32_t number = s->cache_of[s->graph->outputs[i]];
        if (number && s->caches[number - 1].output != i) {
            rt_cache_int8_refuse(&s->caches[number - 1], "a result");
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct rt_cache_int8 *cache = &s->caches[i];
        uint32_t next = cache->output;
        if (next != RT_CACHE_NO_END && cache->use == RT_CACHE_UNUSED) {
            rt_cache_int8_refuse(cache, "a copy");
        }
        if (next != RT_CACHE_NO_END && s->cache_of[s->graph->outputs[next]] != i + 1) {
            uint32_t node = s->graph->values[s->graph->outputs[next]].node;
            rt_cache_int8_refuse(cache,
                                 node == RT_NO_NODE ? "a copy" : s->graph->nodes[node].op->name);
        }
    }
}

/* Keys in bytes need values in bytes. */
static bool spread(const struct search *s)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < s->rw.node_count; i++) {
        const struct rt_node *node = &s->graph->nodes[i];
        if (!rt_op_is(node->op, RT_KNOWN_attention) || !reads_rows(s, node, ATT_KEYS)) {
            continue;
        }
        struct rt_cache_int8 *keys = &s->caches[s->cache_of[node->args[ATT_KEYS]] - 1];
        struct rt_cache_int8 *values = &s->caches[s->cache_of[node->args[ATT_VALUES]] - 1];
        if (keys->use != values->use) {
            struct rt_cache_int8 *other = keys->use == RT_CACHE_OTHER ? keys : values;
            rt_cache_int8_refuse(other == keys ? values : keys, other->why);
            has_changed = true;
        }
    }
    return has_changed;
}

static void find_uses(const struct search *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (s->caches[i].input == RT_CACHE_NO_END) {
            continue;
        }
        uint32_t value = s->graph->inputs[s->caches[i].input];
        s->cache_of[value] = i + 1;
        if (!is_of_floats(&s->graph->values[value])) {
            rt_cache_int8_refuse(&s->caches[i], NULL);
        }
    }
    for (uint32_t i = 0; i < s->rw.node_count; i++) {
        look_at(s, &s->graph->nodes[i]);
    }
    look_at_ends(s, count);
    while (spread(s)) {
    }
}

/* ---- the new form ---------------------------------------------------------------------------- */

static bool is_rows(const struct search *s, uint32_t value)
{
    uint32_t number = rt_rewrite_has(&s->rw, value) ? s->cache_of[value] : 0;
    return number && s->caches[number - 1].use == RT_CACHE_ROWS;
}

static enum status make_input(const struct search *s, uint32_t value, struct error *err)
{
    struct rt_graph *graph = s->graph;
    struct rt_value *v = &graph->values[value];
    struct rt_dim *dims = arena_array(&graph->arena, 4, sizeof(*dims));
    if (!dims) {
        return arena_fail(&graph->arena, "the method", err);
    }
    memcpy(dims, v->dims, 4 * sizeof(*dims));
    dims[3] = rt_dim_of(dims[3].value + RT_CACHE_INT8_SCALE);
    v->dims = dims;
    v->declared = NULL;
    v->dtype = DT_I8;
    s->made[value] = value;
    return ST_OK;
}

static enum status make_write(const struct search *s, const struct rt_node *node, struct error *err)
{
    struct rt_graph *graph = s->graph;
    const struct rt_op *op = node->op;
    uint32_t old = node->outs[0], args[WRITE_ARGS];
    memcpy(args, node->args, sizeof(args));
    args[WRITE_CACHE] = s->made[args[WRITE_CACHE]];
    TRY(rt_op_apply(graph, RT_OP(quantize_cache), &args[WRITE_ROWS], 1, DT_I8, &args[WRITE_ROWS],
                    err));
    TRY(rt_op_apply(graph, op, args, WRITE_ARGS, DT_I8, &s->made[old], err));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        graph->outputs[i] = graph->outputs[i] == old ? s->made[old] : graph->outputs[i];
    }
    return ST_OK;
}

static enum status make_attention(struct search *s, const struct rt_node *node, struct error *err)
{
    uint32_t value, old = node->outs[0], args[ATT_ARGS];
    must(node->arg_count == ATT_ARGS);
    memcpy(args, node->args, sizeof(args));
    args[ATT_KEYS] = s->made[args[ATT_KEYS]];
    args[ATT_VALUES] = s->made[args[ATT_VALUES]];
    TRY(rt_op_apply(s->graph, RT_OP(attention_int8), args, ATT_ARGS, s->graph->values[old].dtype,
                    &value, err));
    rt_rewrite_replace(&s->rw, old, value);
    return ST_OK;
}

static enum status make_all(struct search *s, uint32_t count, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (s->caches[i].use == RT_CACHE_ROWS) {
            TRY(make_input(s, s->graph->inputs[s->caches[i].input], err));
        }
    }
    for (uint32_t i = 0; i < s->rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&s->rw, i);
        if (is_write(node) && is_rows(s, node->args[WRITE_CACHE])) {
            TRY(make_write(s, node, err));
        } else if (rt_op_is(node->op, RT_KNOWN_attention) && is_rows(s, node->args[ATT_KEYS])) {
            TRY(make_attention(s, node, err));
        }
    }
    return rt_rewrite_end(&s->rw, err);
}

enum status rt_pass_caches_int8(struct rt_graph *graph, const struct rt_caches_int8 *caches,
                                struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct search s = {.graph = graph, .caches = caches->items};
    TRY(rt_rewrite_begin(&s.rw, graph, err));
    s.cache_of = arena_array(&graph->arena, graph->value_count, sizeof(*s.cache_of));
    s.made = arena_array(&graph->arena, graph->value_count, sizeof(*s.made));
    if (!s.cache_of || !s.made) {
        return arena_fail(&graph->arena, "the method", err);
    }
    find_uses(&s, caches->count);
    return make_all(&s, caches->count, err);
}
