/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/resident.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/program/method.h"

/* The constants that nodes and results read, each once. */
static void mark_used(const struct rt_graph *graph, bool *is_used)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct rt_tensors tensors = rt_node_arg_tensors(graph, &graph->nodes[i]);
        for (uint32_t value; !graph->nodes[i].is_dead && rt_tensors_next(&tensors, &value);) {
            is_used[value] = true;
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        is_used[graph->outputs[i]] = true;
    }
}

enum status rt_method_each_constant(const struct rt_method *method,
                                    void (*fn)(void *arg, const struct rt_value *value), void *arg,
                                    struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    for (uint32_t i = 0; i < method->code.block_count; i++) {
        const struct rt_graph *graph = &method->code.blocks[i]->graph;
        bool *is_used = calloc(graph->value_count, sizeof(*is_used));
        if (!is_used) {
            return error_no_memory(err, "%u values", graph->value_count);
        }
        mark_used(graph, is_used);
        for (uint32_t k = 0; k < graph->value_count; k++) {
            const struct rt_value *v = &graph->values[k];
            if (is_used[k] && v->kind == RT_TENSOR && v->is_constant) {
                fn(arg, v);
            }
        }
        free(is_used);
    }
    return ST_OK;
}

static void add_constant(void *arg, const struct rt_value *value)
{
    struct rt_resident *sum = arg;
    sum->own_bytes += value->buffer ? hal_buffer_size(value->buffer) : 0;
    sum->file_bytes += value->buffer ? 0 : value->bytes.len;
}

enum status rt_method_resident(const struct rt_method *method, struct rt_resident *out,
                               struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    *out = (struct rt_resident){0};
    return rt_method_each_constant(method, add_constant, out, err);
}

bool rt_method_has_statements(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->code.stmt_count > 0;
}
