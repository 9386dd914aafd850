/* SPDX-License-Identifier: MIT */
/* How much memory states take. */
#include "config.h"

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/program/method.h"
#include "runtime/program/state_cells.h"

/* ---- of a program ---------------------------------------------------------------------------- */

/* The program of part |index|, if it is the first part that has it. */
struct rt_program *rt_state_new_part(const struct rt_method *method, uint32_t index)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(index < method->part_count);
    struct rt_program *program = rt_method_program(method->parts[index]);
    for (uint32_t i = 0; i < index; i++) {
        if (rt_method_program(method->parts[i]) == program) {
            return NULL;
        }
    }
    return program;
}

/* Of one generation, or only of what does not grow. */
static size_t cell_bytes(const struct rt_state_cell *cell, bool is_whole)
{
    bool grows = !cell->is_replaced && hal_buffer_page_bytes(cell->initial) > 0;
    size_t bytes = cell->is_written ? cell->tensor.byte_count : 0;
    if (grows) {
        return is_whole ? bytes : 0;
    }
    return rt_add_or_max(bytes, bytes); /* a call writes the next generation beside this one */
}

static size_t program_bytes(struct rt_program *program, bool is_whole)
{
    const struct rt_state_cells *cells = rt_program_state_cells(program);
    size_t bytes = 0;
    for (uint32_t i = 0; i < cells->count; i++) {
        bytes = rt_add_or_max(bytes, cell_bytes(&cells->items[i], is_whole));
    }
    return bytes;
}

/* Several parts may have written a buffer: the generation that the call found is kept as well. */
static size_t pipeline_bytes(struct rt_program *program)
{
    const struct rt_method *method = rt_program_method(program, 0);
    const struct rt_state_cells *cells = rt_program_state_cells(program);
    size_t bytes = 0;
    for (uint32_t i = 0; i < cells->count; i++) {
        const struct rt_state_cell *cell = &cells->items[i];
        bytes = rt_add_or_max(bytes, cell->is_written ? cell->tensor.byte_count : 0);
    }
    for (uint32_t i = 0; i < method->part_count; i++) {
        struct rt_program *part = rt_state_new_part(method, i);
        bytes = rt_add_or_max(bytes, part ? pipeline_bytes(part) : 0);
    }
    return bytes;
}

static size_t state_bytes(struct rt_program *program, bool is_whole)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    if (rt_program_method(program, 0)->part_count == 0) {
        return program_bytes(program, is_whole);
    }
    size_t one = pipeline_bytes(program);
    return rt_add_or_max(one, rt_add_or_max(one, one));
}

size_t rt_program_state_bytes(struct rt_program *program)
{
    return state_bytes(program, true);
}

size_t rt_program_state_bytes_least(struct rt_program *program)
{
    return state_bytes(program, false);
}

/* ---- of a state ------------------------------------------------------------------------------ */

size_t rt_state_rows_bytes(const struct rt_state_cell *cell, struct rt_rows rows)
{
    size_t page = hal_buffer_page_bytes(cell->initial), size = cell->tensor.byte_count;
    size_t bytes = 0, last = 0;
    if (rows.rows == RT_ROWS_NONE) {
        return 0;
    }
    if (page == 0 || rows.rows == 0 || !cell->begins_zero) {
        return size;
    }
    if (rows.first >= rows.end) {
        return 0;
    }
    size_t block = (size_t)(rows.rows * rows.row_bytes);
    must(block > 0 || size == 0); /* else the loop has no end */
    for (size_t at = 0; at < size; at += block) {
        size_t first = (at + (size_t)(rows.first * rows.row_bytes)) & ~(page - 1);
        size_t end = align_up(at + (size_t)(rows.end * rows.row_bytes), page);
        first = first < last ? last : first;
        bytes += end > first ? end - first : 0;
        last = end;
    }
    return bytes;
}

size_t rt_state_cell_bytes(const struct rt_state *state, uint32_t cell)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    const struct rt_state_cell *of = &state->cells->items[cell];
    const struct hal_buffer *current = state->current[cell];
    bool is_own = current != of->initial && current != state->shared[cell];
    return is_own ? rt_state_rows_bytes(of, state->touched[cell]) -
                        rt_state_paged_bytes(state, cell, RT_STATE_ALL_ROWS)
                  : 0;
}

size_t rt_state_bytes(const struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    size_t bytes = rt_program_state_bytes_least(state->program);
    for (uint32_t i = 0; i < state->cells->count; i++) {
        const struct rt_state_cell *cell = &state->cells->items[i];
        if (cell_bytes(cell, false) > 0 || !cell->is_written) {
            continue; /* counted as a whole */
        }
        bytes = rt_add_or_max(bytes, rt_state_cell_bytes(state, i));
        if (state->spare[i]) {
            bytes = rt_add_or_max(bytes, rt_state_rows_bytes(cell, state->touched[i]));
        }
    }
    return rt_add_or_max(bytes, rt_add_or_max(state->made_bytes, rt_state_log_bytes(state)));
}

static size_t touched_bytes(const struct rt_state *state, uint32_t cell)
{
    const struct rt_rows *rows = &state->touched[cell];
    size_t bytes = hal_buffer_size(state->current[cell]);
    if (state->current[cell] == state->cells->items[cell].initial) {
        return 0;
    }
    if (rows->rows <= 0 || !state->cells->items[cell].begins_zero) {
        return bytes;
    }
    int64_t count = rows->end > rows->first ? rows->end - rows->first : 0;
    return (size_t)((double)bytes * (double)count / (double)rows->rows);
}

size_t rt_state_touched_bytes(const struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    size_t bytes = 0;
    for (uint32_t i = 0; i < state->cells->count; i++) {
        bytes = rt_add_or_max(bytes, touched_bytes(state, i));
    }
    for (uint32_t i = 0; i < state->part_count; i++) {
        bytes = rt_add_or_max(bytes, rt_state_touched_bytes(state->parts[i]));
    }
    return bytes;
}

/* ---- who pays -------------------------------------------------------------------------------- */

void rt_state_set_account(struct rt_state *state, const struct rt_state_account *account)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    must(!atomic_load(&state->is_busy));
    state->account = account;
}

enum status rt_state_charge(struct rt_state *state, size_t bytes, size_t log_bytes,
                            struct error *err)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    state->growth = rt_add_or_max(state->growth, bytes);
    if (!state->account) {
        return ST_OK;
    }
    size_t all = rt_add_or_max(rt_state_bytes(state), rt_state_log_growth(state, log_bytes));
    return state->account->charge(state->account, rt_add_or_max(all, state->growth), err);
}
