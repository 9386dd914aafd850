/* SPDX-License-Identifier: MIT */
/* Shared by methods of all kinds: their life, their inputs and results, their plans. */
#include "config.h"

#include "runtime/program/method.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/device.h"
#include "runtime/program/names.h"
#include "runtime/program/state_cells.h"
#include "runtime/pte/files.h"

/* A signature is as long as the file's own description of the structure, which is bounded. */
#define SIGNATURE_BYTES_MAX (64u << 20)

/* Statements, registers and what importing a method needs; a file's tables are bounded. */
#define CODE_BYTES_MAX (512u << 20)

static struct span constant_scalar(const struct rt_io *io)
{
    switch (io->kind) {
    case RT_IO_INT:
        return span_of(&io->value.i, sizeof(io->value.i));
    case RT_IO_FLOAT:
        return span_of(&io->value.f, sizeof(io->value.f));
    case RT_IO_BOOL:
        return span_of(&io->value.b, sizeof(io->value.b));
    case RT_IO_STRING:
        return io->value.s;
    default:
        return span_of(NULL, 0);
    }
}

bool rt_method_constant_result(const struct rt_method *method, uint32_t index,
                               struct span *out_bytes)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_io *io = rt_method_result(method, index);
    if (method->failure.code != ST_OK || method->code.block_count == 0) {
        return false;
    }
    if (io->kind != RT_IO_TENSOR) {
        *out_bytes = constant_scalar(io);
        return io->is_fixed || io->kind == RT_IO_NONE;
    }
    const struct rt_code_result *result = &method->code.results[index];
    const struct rt_graph *graph = &method->code.blocks[0]->graph;
    if (method->code.stmt_count > 0 || !result->has_source) {
        return false;
    }
    const struct rt_value *v = &graph->values[graph->outputs[index]];
    size_t bytes;
    if (!v->is_constant || v->order || shape_bytes(&io->shape, io->dtype, &bytes, NULL) != ST_OK) {
        return false;
    }
    *out_bytes = span_of(v->bytes.ptr, bytes);
    return true;
}

bool rt_method_is_constant(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    uint32_t count = rt_method_result_count(method);
    bool is_constant = count > 0 && rt_method_input_count(method) == 0;
    for (uint32_t i = 0; is_constant && i < count; i++) {
        struct span ignored;
        is_constant = rt_method_constant_result(method, i, &ignored);
    }
    return is_constant;
}

int64_t rt_method_state_rows(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    int64_t rows = 0;
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct rt_state_cells *cells = &method->program->state_cells;
        const struct shape *shape = &cells->items[method->states[i].cell].tensor.shape;
        if (shape->rank == 4 && (rows == 0 || shape->dims[2] < rows)) {
            rows = shape->dims[2];
        }
    }
    return rows;
}

static bool uses_cell(const struct rt_method *method, uint32_t cell)
{
    for (uint32_t i = 0; i < method->state_count; i++) {
        if (method->states[i].cell == cell) {
            return true;
        }
    }
    return false;
}

/* Does |by| use each buffer that |method| writes? */
static bool writes_for(const struct rt_method *method, const struct rt_method *by)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < method->state_count; i++) {
        if (method->states[i].is_written && !uses_cell(by, method->states[i].cell)) {
            return false;
        }
        written += method->states[i].is_written;
    }
    return written > 0;
}

bool rt_method_shares_states(const struct rt_method *a, const struct rt_method *b)
{
    OBJ_CHECK(a, RT_METHOD_MAGIC);
    OBJ_CHECK(b, RT_METHOD_MAGIC);
    return a->program == b->program && writes_for(a, b) && writes_for(b, a);
}

/* ---- the method ------------------------------------------------------------------------------ */

void rt_method_init(struct rt_method *method)
{
    method->magic = RT_METHOD_MAGIC;
    list_init(&method->invocations);
    list_init(&method->batches);
    must(pthread_mutex_init(&method->mutex, NULL) == 0);
    arena_init(&method->code.arena, CODE_BYTES_MAX);
    arena_init(&method->signature_arena, SIGNATURE_BYTES_MAX);
}

void rt_method_fini(struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    method->callable->fini(method);
    rt_orders_fini(method);
    if (method->batched) {
        rt_block_fini(method->batched);
        free(method->batched);
    }
    rt_code_fini(&method->code);
    arena_fini(&method->signature_arena);
    free(method->inputs);
    free(method->results);
    must(list_is_empty(&method->invocations) && list_is_empty(&method->batches));
    pthread_mutex_destroy(&method->mutex);
    method->magic = 0;
}

void rt_plan_stats_add(struct rt_plan_stats *stats, struct rt_block *block)
{
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    pthread_mutex_lock(&block->mutex);
    stats->count += block->plan_count;
    stats->bytes += block->plan_bytes;
    stats->found += atomic_load_explicit(&block->found_count, memory_order_relaxed);
    stats->made += block->made_count;
    pthread_mutex_unlock(&block->mutex);
}

struct rt_plan_stats rt_method_plan_stats(struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_plan_stats stats = {0};
    for (uint32_t i = 0; i < method->code.block_count; i++) {
        rt_plan_stats_add(&stats, method->code.blocks[i]);
    }
    if (method->batched) {
        rt_plan_stats_add(&stats, method->batched);
    }
    rt_orders_add_stats(method, &stats);
    return stats;
}

const char *rt_method_platform(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->callable->platform;
}

bool rt_method_has_own_work(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->callable->has_own_work;
}

void rt_method_set_weight(struct rt_method *method, uint32_t weight)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    method->weight = weight;
}

/* ---- plans ----------------------------------------------------------------------------------- */

enum status rt_method_place(struct rt_method *method,
                            void (*fn)(void *arg, const char *op, enum hal_placement placement),
                            void *arg, struct hal_command_stats *out_stats, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_code *code = &method->code;
    *out_stats = (struct hal_command_stats){0};
    for (uint32_t i = 0; i < code->block_count; i++) {
        struct rt_plan *plan;
        if (!rt_code_reaches(code, i)) {
            continue;
        }
        TRY(rt_block_plan_bounds(code->blocks[i], &plan, err));
        hal_command_add_stats(plan->command, out_stats);
        if (fn) {
            hal_command_list_hosted(plan->command, fn, arg);
        }
        rt_plan_unref(plan);
    }
    return ST_OK;
}

struct rt_input_stats rt_method_input_stats(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return (struct rt_input_stats){
        .in_place = atomic_load_explicit(&method->inputs_in_place, memory_order_relaxed),
        .converted = atomic_load_explicit(&method->converted_inputs, memory_order_relaxed),
    };
}

const char *rt_method_name(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->name;
}

struct rt_program *rt_method_program(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->program;
}

const struct error *rt_method_failure(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->failure.code == ST_OK ? NULL : &method->failure;
}

uint32_t rt_method_input_count(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->input_count;
}

uint32_t rt_method_result_count(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->result_count;
}

const struct rt_io *rt_method_input(const struct rt_method *method, uint32_t index)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(index < method->input_count);
    return &method->inputs[index];
}

const struct rt_io *rt_method_result(const struct rt_method *method, uint32_t index)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(index < method->result_count);
    return &method->results[index];
}
