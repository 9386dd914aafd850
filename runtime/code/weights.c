/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/weights.h"

#include <stdlib.h>

#include "runtime/code/code.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"

/* Nodes between a constant and the operator that extracts the numbers from its bytes: views,
 * conversions. */
#define DETOUR_MAX 8

/* Positions of bytes that have been seen: a hash table, owned; NULL: free. */
struct seen {
    const uint8_t **places;
    size_t mask;
};

/* True: now it has. */
static bool is_new(struct seen *seen, const uint8_t *place)
{
    size_t at = (size_t)((uintptr_t)place * UINT64_C(0x9e3779b97f4a7c15) >> 20) & seen->mask;
    while (seen->places[at] && seen->places[at] != place) {
        at = (at + 1) & seen->mask;
    }
    bool is_free = !seen->places[at];
    seen->places[at] = place;
    return is_free;
}

static bool has_bytes(const struct rt_value *v)
{
    return v->is_constant && v->bytes.len > 0;
}

static size_t count_constants(const struct rt_code *code)
{
    size_t count = 0;
    for (uint32_t i = 0; i < code->block_count; i++) {
        const struct rt_graph *graph = &code->blocks[i]->graph;
        for (uint32_t k = 0; k < graph->value_count; k++) {
            count += has_bytes(&graph->values[k]);
        }
    }
    return count;
}

/* The constant that |value| is, or is computed from by first arguments; 0: there is none. */
static uint32_t constant_behind(const struct rt_graph *graph, uint32_t value)
{
    for (int i = 0; i < DETOUR_MAX; i++) {
        const struct rt_value *v = &graph->values[value];
        if (v->is_constant || v->node == RT_NO_NODE || graph->nodes[v->node].arg_count == 0) {
            return v->is_constant ? value : 0;
        }
        value = graph->nodes[v->node].args[0];
    }
    return 0;
}

/* A fact that operators reveal about the numbers in their arguments. */
struct fact {
    enum rt_known op;
    uint8_t per_byte; /* of argument 0; 0: nothing is said */
    enum rt_activations activations;
};

static const struct fact facts[] = {
    {RT_KNOWN_unpack_int4, 2, RT_ACTIVATIONS_PLAIN},
    {RT_KNOWN_embedding_i4, 2, RT_ACTIVATIONS_PLAIN},
    {RT_KNOWN_embedding_i4_as, 2, RT_ACTIVATIONS_PLAIN},
    {RT_KNOWN_embedding_i2, 4, RT_ACTIVATIONS_PLAIN},
    {RT_KNOWN_embedding_i2_as, 4, RT_ACTIVATIONS_PLAIN},
    {RT_KNOWN_quantize, 0, RT_ACTIVATIONS_STATIC},
    {RT_KNOWN_quantize_dynamic, 0, RT_ACTIVATIONS_DYNAMIC},
    {RT_KNOWN_choose_qparams, 0, RT_ACTIVATIONS_DYNAMIC},
    {RT_KNOWN_choose_rows, 0, RT_ACTIVATIONS_DYNAMIC},
};

static const struct fact *find_fact(const struct rt_node *node)
{
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        if (rt_op_is(node->op, facts[i].op)) {
            return &facts[i];
        }
    }
    return NULL;
}

/* By value, how many numbers one of its bytes holds, if not one. */
static void look_at_nodes(const struct rt_graph *graph, uint8_t *per_byte,
                          struct rt_weights *weights)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct fact *fact = find_fact(&graph->nodes[i]);
        if (fact && fact->per_byte) {
            per_byte[constant_behind(graph, graph->nodes[i].args[0])] = fact->per_byte;
        }
        if (fact && fact->activations > weights->activations) {
            weights->activations = fact->activations;
        }
    }
}

static void add_constants(const struct rt_graph *graph, const uint8_t *per_byte, struct seen *seen,
                          struct rt_weights *weights)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct rt_value *v = &graph->values[i];
        if (has_bytes(v) && is_new(seen, v->bytes.ptr)) {
            weights->items[weights->count++] = (struct rt_weight){
                .name = v->name,
                .bytes = v->bytes,
                .dtype = v->dtype,
                .per_byte = per_byte[i] ? per_byte[i] : 1,
                .dims = v->dims,
                .rank = v->rank,
            };
        }
    }
}

static bool find_all(const struct rt_code *code, struct seen *seen, struct rt_weights *weights)
{
    for (uint32_t i = 0; i < code->block_count; i++) {
        const struct rt_graph *graph = &code->blocks[i]->graph;
        uint8_t *per_byte = calloc(graph->value_count, 1);
        if (!per_byte) {
            return false;
        }
        look_at_nodes(graph, per_byte, weights);
        add_constants(graph, per_byte, seen, weights);
        free(per_byte);
    }
    return true;
}

enum status rt_weights_find(const struct rt_code *code, struct arena *arena, struct rt_weights *out,
                            struct error *err)
{
    size_t count = count_constants(code), size = 2;
    while (size < 2 * count) {
        size *= 2;
    }
    *out = (struct rt_weights){.items = arena_array(arena, count, sizeof(*out->items))};
    struct seen seen = {.places = calloc(size, sizeof(*seen.places)), .mask = size - 1};
    bool has_memory = out->items && seen.places && find_all(code, &seen, out);
    free(seen.places);
    return has_memory ? ST_OK : arena_fail(arena, "the method", err);
}

uint64_t rt_weight_count(const struct rt_weight *weight)
{
    return (uint64_t)(weight->bytes.len / dtype_bytes(weight->dtype)) * weight->per_byte;
}
