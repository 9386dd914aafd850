/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/passes/copy.h"

#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"

static void *copy(struct arena *arena, const void *items, size_t count, size_t size)
{
    void *made = arena_array(arena, count, size);
    if (made && count) {
        memcpy(made, items, count * size);
    }
    return made;
}

static bool copy_dims(struct rt_dims *dims, const struct rt_dims *from, struct arena *arena)
{
    *dims = *from;
    dims->arena = arena;
    dims->expr_capacity = dims->solved_capacity = from->expr_count;
    dims->requirement_capacity = from->requirement_count;
    dims->exprs = copy(arena, from->exprs, from->expr_count, sizeof(*from->exprs));
    dims->solved = copy(arena, from->solved, from->expr_count, sizeof(*from->solved));
    dims->requirements =
        copy(arena, from->requirements, from->requirement_count, sizeof(*from->requirements));
    return dims->exprs && dims->solved && dims->requirements;
}

enum status rt_graph_copy(struct rt_graph *graph, const struct rt_graph *from, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    OBJ_CHECK(from, RT_GRAPH_MAGIC);
    struct arena *arena = &graph->arena;
    struct rt_value *values = copy(arena, from->values, from->value_count, sizeof(*values));
    struct rt_node *nodes = copy(arena, from->nodes, from->node_count, sizeof(*nodes));
    if (!values || !nodes || (from->dims.exprs && !copy_dims(&graph->dims, &from->dims, arena))) {
        return arena_fail(&graph->arena, "the method", err);
    }
    graph->values = values;
    graph->value_capacity = graph->value_count = from->value_count;
    graph->nodes = nodes;
    graph->node_capacity = graph->node_count = from->node_count;
    graph->inputs = from->inputs;
    graph->input_count = from->input_count;
    graph->outputs = from->outputs;
    graph->output_count = from->output_count;
    graph->files = from->files;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        if (values[i].buffer) {
            hal_buffer_ref(values[i].buffer);
        }
    }
    return ST_OK;
}

static bool own_list(struct arena *arena, uint32_t **list, uint32_t count)
{
    *list = copy(arena, *list, count, sizeof(**list));
    return *list != NULL;
}

enum status rt_graph_own_lists(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct arena *arena = &graph->arena;
    bool is_done = own_list(arena, &graph->inputs, graph->input_count) &&
                   own_list(arena, &graph->outputs, graph->output_count);
    for (uint32_t i = 0; is_done && i < graph->node_count; i++) {
        is_done = own_list(arena, &graph->nodes[i].args, graph->nodes[i].arg_count);
    }
    for (uint32_t i = 0; is_done && i < graph->value_count; i++) {
        struct rt_value *v = &graph->values[i];
        is_done = v->kind != RT_TENSORS || own_list(arena, &v->values, v->count);
    }
    return is_done ? ST_OK : arena_fail(arena, "the method", err);
}
