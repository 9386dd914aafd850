/* SPDX-License-Identifier: MIT */
/*
 * Calls that write the current generation of a state, and how their writes are undone. Rows that
 * may differ from the initial content are logged before they are overwritten; the log brings them
 * back. All other rows get the initial content.
 */
#include "config.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/emit/log.h"
#include "runtime/program/state_cells.h"

/* A log that is larger is freed when its call has ended. */
#define LOG_KEPT_MAX ((size_t)1 << 20)

enum status rt_state_open(struct rt_state *state, uint32_t cell, bool may_overwrite,
                          struct hal_buffer **out_target, struct error *err)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    struct hal_buffer *current = state->current[cell];
    bool is_own = current != state->cells->items[cell].initial && current != state->shared[cell];
    if (may_overwrite && is_own && !state->is_part) {
        hal_buffer_unref(state->spare[cell]);
        state->spare[cell] = NULL;
        state->is_overwritten[cell] = true;
        *out_target = current;
        return ST_OK;
    }
    TRY(rt_state_reserve(state, cell, err));
    *out_target = state->spare[cell];
    return ST_OK;
}

struct rt_rows rt_state_touched(const struct rt_state *state, uint32_t cell, int64_t rows,
                                int64_t row_bytes)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    const struct rt_rows *touched = &state->touched[cell];
    struct rt_rows none = {rows, row_bytes, 0, 0}, all = {rows, row_bytes, 0, rows};
    if (touched->rows == RT_ROWS_NONE) {
        return none;
    }
    return touched->rows == rows && touched->row_bytes == row_bytes ? *touched : all;
}

/* ---- the log --------------------------------------------------------------------------------- */

/* The beginning of memory for logs. */
struct memory {
    struct hal_buffer *before; /* owned: that of earlier logs of the same call, or NULL */
    size_t end, last;          /* of its logs; where the last one begins, 0: there is none */
};

static struct memory *memory_of(struct hal_buffer *buffer)
{
    return hal_buffer_map(buffer);
}

static void drop_log(struct rt_state *state)
{
    struct hal_buffer *unwanted = state->log;
    state->log = memory_of(unwanted)->before;
    hal_buffer_unref(unwanted);
}

void rt_state_drop_logs(struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    while (state->log) {
        drop_log(state);
    }
}

size_t rt_state_log_bytes(const struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    size_t bytes = 0;
    for (struct hal_buffer *at = state->log; at; at = memory_of(at)->before) {
        bytes += hal_buffer_size(at);
    }
    return bytes;
}

/* Before the first log of a memory. */
#define HEAD_BYTES (align_up(sizeof(struct memory), 16))

static bool has_room(const struct rt_state *state, size_t bytes)
{
    return bytes == 0 ||
           (state->log && in_range(memory_of(state->log)->end, bytes, hal_buffer_size(state->log)));
}

/* Has the memory no log of this call? Then larger memory takes its place. */
static bool is_replaced(const struct rt_state *state)
{
    return state->log && memory_of(state->log)->last == 0;
}

size_t rt_state_log_growth(const struct rt_state *state, size_t bytes)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    if (has_room(state, bytes)) {
        return 0;
    }
    size_t all = rt_add_or_max(bytes, HEAD_BYTES);
    return is_replaced(state) ? all - hal_buffer_size(state->log) : all;
}

enum status rt_state_reserve_log(struct rt_state *state, size_t bytes, struct error *err)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    struct hal_buffer *fresh;
    if (has_room(state, bytes)) {
        return ST_OK;
    }
    if (is_replaced(state)) {
        drop_log(state);
    }
    TRY(hal_buffer_new(hal_buffer_device(state->cells->items[0].initial),
                       rt_add_or_max(bytes, HEAD_BYTES), &fresh, err));
    *memory_of(fresh) = (struct memory){.before = state->log, .end = HEAD_BYTES};
    state->log = fresh;
    return ST_OK;
}

struct rt_log *rt_state_log(struct rt_state *state, uint32_t cell, const struct rt_log *like,
                            size_t bytes)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    struct memory *memory = memory_of(state->log);
    must(bytes % 16 == 0 && in_range(memory->end, bytes, hal_buffer_size(state->log)));
    struct rt_log *log = (struct rt_log *)(void *)((char *)memory + memory->end);
    *log = *like;
    log->cell = cell;
    log->back = memory->last ? memory->end - memory->last : 0;
    memset(rt_log_counts(log), 0, log->tiles * sizeof(uint64_t));
    memory->last = memory->end;
    memory->end += bytes;
    return log;
}

/* Brings back what |log| has, the last entry of each tile first. */
static void replay(struct rt_state *state, struct rt_log *log)
{
    struct hal_buffer *buffer = state->current[log->cell];
    char *content = hal_buffer_map(buffer);
    size_t size = hal_buffer_size(buffer);
    for (uint32_t tile = 0; tile < log->tiles; tile++) {
        for (uint64_t i = rt_log_counts(log)[tile]; i-- > 0;) {
            const struct rt_log_entry *entry = rt_log_entry(log, tile, i);
            must(in_range(entry->offset, entry->bytes, size));
            size_t offset = (size_t)entry->offset;
            memcpy(content + offset, entry + 1, (size_t)entry->bytes);
            rt_state_own_from(state, log->cell, offset);
        }
    }
}

/* All logs of one memory, the last one first. */
static void replay_all(struct rt_state *state, struct memory *memory)
{
    while (memory->last > 0) {
        struct rt_log *log = (struct rt_log *)(void *)((char *)memory + memory->last);
        replay(state, log);
        memory->last = log->back ? memory->last - (size_t)log->back : 0;
    }
}

/* ---- what was untouched ---------------------------------------------------------------------- */

static void restore(struct rt_state *state, uint32_t cell, size_t offset, size_t bytes)
{
    const struct rt_state_cell *of = &state->cells->items[cell];
    struct hal_buffer *buffer = state->current[cell];
    if (bytes == 0) {
        return;
    }
    if (of->begins_zero) {
        hal_buffer_clear(buffer, offset, bytes);
    } else {
        memcpy((char *)hal_buffer_map(buffer) + offset,
               (const char *)hal_buffer_map(of->initial) + offset, bytes);
    }
}

/* All rows but the touched ones get the initial content. */
static void restore_untouched(struct rt_state *state, uint32_t cell)
{
    const struct rt_rows *touched = &state->touched[cell];
    size_t size = hal_buffer_size(state->current[cell]);
    if (touched->rows == 0) {
        return;
    }
    if (touched->rows == RT_ROWS_NONE || touched->first >= touched->end) {
        restore(state, cell, 0, size);
        return;
    }
    size_t block = (size_t)(touched->rows * touched->row_bytes);
    size_t first = (size_t)(touched->first * touched->row_bytes);
    size_t end = (size_t)(touched->end * touched->row_bytes);
    for (size_t at = 0; at < size; at += block) {
        restore(state, cell, at, first);
        restore(state, cell, at + end, block - end);
    }
}

void rt_state_undo(struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    while (state->log) {
        replay_all(state, memory_of(state->log));
        drop_log(state);
    }
    for (uint32_t i = 0; i < state->cells->count; i++) {
        if (state->is_overwritten[i]) {
            restore_untouched(state, i);
        }
    }
}

void rt_state_forget(struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    memset(state->is_overwritten, 0, state->cells->count * sizeof(*state->is_overwritten));
    while (state->log &&
           (memory_of(state->log)->before || hal_buffer_size(state->log) > LOG_KEPT_MAX)) {
        drop_log(state);
    }
    if (state->log) {
        memory_of(state->log)->last = 0;
        memory_of(state->log)->end = HEAD_BYTES;
    }
}
