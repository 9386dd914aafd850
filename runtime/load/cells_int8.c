/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/load/cells_int8.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/cache_int8.h"
#include "runtime/program/method.h"

static const char another_shape[] = "another shape";

/* ---- the buffers of a block ------------------------------------------------------------------ */

/* The only block of a method has its buffers behind inputs and results. */
static void list_only(const struct rt_method *method, struct rt_cache_int8 *caches)
{
    uint32_t output = method->result_count;
    for (uint32_t i = 0; i < method->state_count; i++) {
        caches[i].input = method->input_count + i;
        caches[i].output = method->states[i].is_written ? output++ : RT_CACHE_NO_END;
    }
}

/* The buffer in register |reg|, as far as the block has it. */
static struct rt_cache_int8 find_in(const struct rt_block *block, uint32_t reg)
{
    struct rt_cache_int8 cache = {.input = RT_CACHE_NO_END, .output = RT_CACHE_NO_END};
    for (uint32_t i = 0; i < block->graph.input_count; i++) {
        if (block->ins[i] == reg && cache.input != RT_CACHE_NO_END) {
            rt_cache_int8_refuse(&cache, "a copy");
        }
        cache.input = block->ins[i] == reg ? i : cache.input;
    }
    for (uint32_t i = 0; i < block->out_count; i++) {
        const struct rt_block_out *out = &block->outs[i];
        bool is_of_it = out->is_input && block->ins[out->index] == reg;
        if (out->reg == reg && !out->is_input) {
            cache.output = out->index;
        } else if (is_of_it != (out->reg == reg)) {
            rt_cache_int8_refuse(&cache, "a copy");
        }
    }
    return cache;
}

/* The host must not look at the buffer, and it is no result. */
static bool is_inside(const struct rt_code *code, uint32_t reg)
{
    bool is_inside = true;
    for (uint32_t i = 0; i < code->stmt_count; i++) {
        is_inside = is_inside && !rt_stmt_uses(&code->stmts[i], reg);
    }
    for (uint32_t i = 0; i < code->result_count; i++) {
        is_inside = is_inside && code->results[i].reg != reg;
    }
    return is_inside;
}

static void list_in(const struct rt_method *method, const struct rt_block *block,
                    struct rt_cache_int8 *caches)
{
    for (uint32_t i = 0; i < method->state_count; i++) {
        uint32_t reg = method->states[i].reg;
        caches[i] = find_in(block, reg);
        if (!is_inside(&method->code, reg)) {
            rt_cache_int8_refuse(&caches[i], "the host");
        }
    }
}

enum status rt_cells_int8_list(struct rt_method *method, struct rt_caches_int8 **out_caches,
                               struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct arena *arena = &method->code.arena;
    uint32_t blocks = method->code.block_count;
    struct rt_caches_int8 *caches = arena_array(arena, blocks, sizeof(*caches));
    for (uint32_t b = 0; caches && b < blocks; b++) {
        caches[b].count = method->state_count;
        caches[b].items = arena_array(arena, method->state_count, sizeof(*caches[b].items));
        if (!caches[b].items) {
            return arena_fail(arena, "the method", err);
        }
        if (method->code.stmt_count == 0) {
            list_only(method, caches[b].items);
        } else {
            list_in(method, method->code.blocks[b], caches[b].items);
        }
    }
    *out_caches = caches;
    return caches ? ST_OK : arena_fail(arena, "the method", err);
}

/* ---- what a method does with its buffers ----------------------------------------------------- */

static enum status shorten(struct shape *shape, enum dtype *dtype, size_t *bytes, struct error *err)
{
    must(shape->rank > 0);
    shape->dims[shape->rank - 1] += RT_CACHE_INT8_SCALE;
    *dtype = DT_I8;
    return shape_bytes(shape, DT_I8, bytes, err);
}

/* The block has changed the buffer, which the cell has in the same rows. */
static bool is_alike(const struct rt_block *block, const struct rt_cache_int8 *cache,
                     const struct shape *cell)
{
    const struct rt_value *v = &block->graph.values[block->graph.inputs[cache->input]];
    return cell->rank > 0 && v->dims[3].value - RT_CACHE_INT8_SCALE == cell->dims[cell->rank - 1];
}

/* A block that has the buffer and does not use it sees it as the others do. */
static enum status retype(struct rt_block *block, const struct rt_cache_int8 *cache,
                          const struct rt_register *reg, struct error *err)
{
    struct rt_graph *graph = &block->graph;
    struct rt_value *v = &graph->values[graph->inputs[cache->input]];
    struct rt_dim *dims = arena_array(&graph->arena, reg->bound.rank, sizeof(*dims));
    if (!dims) {
        return arena_fail(&graph->arena, "the method", err);
    }
    for (uint8_t d = 0; d < reg->bound.rank; d++) {
        dims[d] = rt_dim_of(reg->bound.dims[d]);
    }
    v->dims = dims;
    v->declared = NULL;
    v->dtype = reg->dtype;
    return ST_OK;
}

/* Of code with statements: the register of buffer |state|, and blocks that do not use it. */
static enum status note_register(const struct rt_method *method, uint32_t state,
                                 const struct rt_caches_int8 *caches, struct error *err)
{
    const struct rt_code *code = &method->code;
    struct rt_register *reg = &code->registers[method->states[state].reg];
    TRY(shorten(&reg->bound, &reg->dtype, &reg->bytes, err));
    for (uint32_t b = 0; b < code->block_count; b++) {
        const struct rt_cache_int8 *cache = &caches[b].items[state];
        if (cache->input != RT_CACHE_NO_END && cache->use == RT_CACHE_UNUSED) {
            TRY(retype(code->blocks[b], cache, reg, err));
        }
    }
    return ST_OK;
}

static void note_cell(const struct rt_method *method, uint32_t state,
                      const struct rt_caches_int8 *caches, bool *out_is_int8)
{
    const struct rt_code *code = &method->code;
    struct rt_state_cells *cells = rt_program_state_cells(method->program);
    struct rt_state_cell *cell = &cells->items[method->states[state].cell];
    *out_is_int8 = false;
    for (uint32_t b = 0; b < code->block_count; b++) {
        const struct rt_cache_int8 *cache = &caches[b].items[state];
        const char *why = cache->why;
        if (cache->use == RT_CACHE_ROWS) {
            *out_is_int8 = true;
            why = is_alike(code->blocks[b], cache, &cell->tensor.shape) ? NULL : another_shape;
        }
        cell->is_other |= why || cache->use == RT_CACHE_OTHER;
        cell->not_int8 = cell->not_int8 ? cell->not_int8 : why;
    }
    cell->is_int8 |= *out_is_int8;
}

enum status rt_cells_int8_note(const struct rt_method *method, const struct rt_caches_int8 *caches,
                               struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    for (uint32_t i = 0; i < method->state_count; i++) {
        bool is_int8;
        note_cell(method, i, caches, &is_int8);
        if (is_int8 && method->code.stmt_count > 0) {
            TRY(note_register(method, i, caches, err));
        }
    }
    return ST_OK;
}

/* ---- the cells ------------------------------------------------------------------------------- */

static void fill(const struct rt_state_cell *cell, const struct pte_tensor *to, char *out, float *x)
{
    int64_t depth = cell->tensor.shape.dims[cell->tensor.shape.rank - 1];
    size_t width = dtype_bytes(cell->tensor.dtype);
    size_t from_row = (size_t)depth * width, to_row = (size_t)(depth + RT_CACHE_INT8_SCALE);
    const char *from = hal_buffer_map(cell->initial);
    for (size_t row = 0; row < to->byte_count / to_row; row++) {
        rt_convert_load(cell->tensor.dtype, RT_CLASS_F32)(x, from + row * from_row, (int64_t)width,
                                                          depth);
        rt_cache_int8_write(out + row * to_row, x, depth);
    }
}

static enum status replace(struct rt_state_cell *cell, struct hal_device *device, struct error *err)
{
    struct pte_tensor tensor = cell->tensor;
    struct hal_buffer *initial;
    float *row = NULL;
    int64_t depth = tensor.shape.dims[tensor.shape.rank - 1];
    TRY(shorten(&tensor.shape, &tensor.dtype, &tensor.byte_count, err));
    TRY(hal_buffer_new(device, tensor.byte_count, &initial, err));
    if (!cell->begins_zero && tensor.byte_count > 0) {
        row = calloc((size_t)depth, sizeof(*row));
        if (!row) {
            hal_buffer_unref(initial);
            return error_no_memory(err, "a row of a mutable buffer");
        }
        fill(cell, &tensor, hal_buffer_map(initial), row);
        free(row);
    }
    hal_buffer_unref(cell->initial);
    cell->initial = initial;
    cell->tensor = tensor;
    return ST_OK;
}

static enum status refuse(const struct rt_state_cells *cells, uint32_t index, struct error *err)
{
    const struct rt_state_cell *cell = &cells->items[index];
    char dims[SHAPE_TEXT_MAX];
    shape_print(&cell->tensor.shape, dims);
    return error_set(err, ST_UNSUPPORTED,
                     "cache int8: mutable buffer %u, %.64s%s%s %s, is used by %.64s; only "
                     "writes of rows and attention may use a cache in 8 bits",
                     index, cell->tensor.name, cell->tensor.name[0] ? ", " : "",
                     dtype_name(cell->tensor.dtype), dims,
                     cell->not_int8 ? cell->not_int8 : another_shape);
}

/* No buffer is such a cache: why the first one that may have been meant is none. */
static enum status refuse_all(const struct rt_state_cells *cells, struct error *err)
{
    for (uint32_t i = 0; i < cells->count; i++) {
        if (cells->items[i].is_written && cells->items[i].not_int8) {
            return refuse(cells, i, err);
        }
    }
    return error_set(err, ST_UNSUPPORTED,
                     "cache int8: the program has no mutable buffer that is written by rows and "
                     "read by attention");
}

enum status rt_cells_int8_settle(struct rt_program *program, struct error *err)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    struct rt_state_cells *cells = rt_program_state_cells(program);
    const struct hal_device_props *props = hal_device_props(program->device);
    uint32_t count = 0;
    if (!props->is_host) {
        return error_set(err, ST_UNSUPPORTED, "cache int8: only on the CPU, not on %.64s",
                         props->description);
    }
    for (uint32_t i = 0; i < cells->count; i++) {
        struct rt_state_cell *cell = &cells->items[i];
        if (cell->is_int8 && cell->is_other) {
            return refuse(cells, i, err);
        }
        TRY(cell->is_int8 ? replace(cell, program->device, err) : ST_OK);
        count += cell->is_int8;
    }
    return count > 0 ? ST_OK : refuse_all(cells, err);
}
