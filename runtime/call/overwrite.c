/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/call/overwrite.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/call/messages.h"
#include "runtime/emit/log.h"

/* The rows of |update| whose content has to be logged: those that may differ from the initial
 * content, of those that the host knows to be overwritten. */
static struct rt_rows find_kept(const struct rt_overwrite *o, const struct rt_update *update)
{
    struct rt_rows kept = rt_state_touched(o->state, o->cell, update->rows, update->row_bytes);
    if (update->tiles == 0) {
        struct rt_rows known = rt_messages_known(update, o->words);
        kept.first = kept.first > known.first ? kept.first : known.first;
        kept.end = kept.end < known.end ? kept.end : known.end;
    }
    return kept;
}

static size_t outer_of(const struct rt_overwrite *o, const struct rt_update *update)
{
    size_t size = hal_buffer_size(o->state->current[o->cell]);
    return size / (size_t)(update->rows * update->row_bytes);
}

/* The log of |update|, with |kept| rows. Returns its bytes; 0: it needs none. */
static size_t describe(const struct rt_overwrite *o, const struct rt_update *update,
                       const struct rt_rows *kept, struct rt_log *log)
{
    if (kept->first >= kept->end) {
        return 0;
    }
    if (update->tiles > 0) {
        return rt_log_describe(log, update->tiles, (uint64_t)update->entries,
                               (uint64_t)update->entry_bytes);
    }
    return rt_log_describe(log, 1, outer_of(o, update),
                           (uint64_t)((kept->end - kept->first) * kept->row_bytes));
}

void rt_overwrite_measure(const struct rt_overwrite *o, size_t *io_bytes)
{
    OBJ_CHECK(o->state, RT_STATE_MAGIC);
    const struct rt_plan_result *result = &o->plan->results[o->result];
    if (!o->state->is_overwritten[o->cell]) {
        return;
    }
    for (uint32_t i = result->first_update, n = 0; n < result->update_count; n++) {
        struct rt_log log;
        const struct rt_update *update = &o->plan->updates[i].of;
        struct rt_rows kept = find_kept(o, update);
        *io_bytes = rt_add_or_max(*io_bytes, describe(o, update, &kept, &log));
        i = o->plan->updates[i].next;
    }
}

struct rt_growth rt_growth_begin(const struct rt_state *state, uint32_t cell)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    return (struct rt_growth){.rows = state->touched[cell]};
}

/* Rows of |update| that the host knows are added to |*io_rows|. Returns the most bytes that all
 * others take, and those of pages that become the state's own. */
static size_t grow(const struct rt_overwrite *o, const struct rt_update *update,
                   struct rt_rows *io_rows)
{
    const struct rt_state_cell *cell = &o->state->cells->items[o->cell];
    if (update->tiles == 0) {
        struct rt_rows known = rt_messages_known(update, o->words);
        *io_rows = rt_rows_join(*io_rows, known);
        return rt_state_paged_bytes(o->state, o->cell, RT_STATE_ALL_ROWS) -
               rt_state_paged_bytes(o->state, o->cell, known.first);
    }
    size_t page = hal_buffer_page_bytes(cell->initial), bytes;
    size_t rows = outer_of(o, update) * (size_t)update->count;
    bool is_known = mul_size(rows, (size_t)update->row_bytes + 2 * page, &bytes);
    return is_known && bytes < cell->tensor.byte_count ? bytes : cell->tensor.byte_count;
}

/* |a| - |b|, or 0. */
static size_t rest(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

void rt_overwrite_grow(const struct rt_overwrite *o, bool has_base, struct rt_growth *io_growth,
                       size_t *io_bytes)
{
    OBJ_CHECK(o->state, RT_STATE_MAGIC);
    const struct rt_plan_result *result = &o->plan->results[o->result];
    const struct rt_state_cell *cell = &o->state->cells->items[o->cell];
    size_t size = cell->tensor.byte_count, more = has_base ? 0 : size;
    if (cell->is_replaced || hal_buffer_page_bytes(cell->initial) == 0) {
        return; /* it has all its memory */
    }
    struct rt_rows rows = io_growth->rows;
    for (uint32_t i = result->first_update, n = 0; has_base && n < result->update_count; n++) {
        more = rt_add_or_max(more, grow(o, &o->plan->updates[i].of, &rows));
        i = o->plan->updates[i].next;
    }
    size_t known =
        rest(rt_state_rows_bytes(cell, rows), rt_state_rows_bytes(cell, io_growth->rows));
    size_t paged = rt_state_paged_bytes(o->state, o->cell, RT_STATE_ALL_ROWS);
    size_t max = rest(size, rt_state_rows_bytes(cell, o->state->touched[o->cell]) - paged);
    size_t bytes = rt_add_or_max(io_growth->bytes, rt_add_or_max(known, more));
    bytes = bytes < max ? bytes : max;
    *io_bytes = rt_add_or_max(*io_bytes, bytes - io_growth->bytes);
    *io_growth = (struct rt_growth){rows, bytes};
}

/* Logs |kept| rows before the run. */
static void log_rows(const struct rt_overwrite *o, const struct rt_rows *kept, struct rt_log *log)
{
    const char *content = hal_buffer_map(o->state->current[o->cell]);
    size_t bytes = (size_t)((kept->end - kept->first) * kept->row_bytes);
    for (uint64_t outer = 0; outer < log->entries; outer++) {
        uint64_t offset =
            (outer * (uint64_t)kept->rows + (uint64_t)kept->first) * (uint64_t)kept->row_bytes;
        rt_log_put(log, 0, content + offset, offset, bytes);
    }
}

static void begin_update(const struct rt_overwrite *o, const struct rt_plan_update *update)
{
    struct rt_log like, *log = NULL;
    struct rt_rows kept = find_kept(o, &update->of);
    size_t bytes = describe(o, &update->of, &kept, &like);
    if (bytes > 0) {
        log = rt_state_log(o->state, o->cell, &like, bytes);
    }
    if (log && update->of.tiles == 0) {
        log_rows(o, &kept, log);
    }
    rt_messages_put_log(update, update->of.tiles > 0 ? log : NULL, &kept, o->workspace);
}

void rt_overwrite_begin(const struct rt_overwrite *o)
{
    OBJ_CHECK(o->state, RT_STATE_MAGIC);
    const struct rt_plan_result *result = &o->plan->results[o->result];
    if (!o->state->is_overwritten[o->cell]) {
        struct rt_rows stale = rt_state_spoil(o->state, o->cell);
        rt_messages_put_stale(o->plan, o->result, &stale, o->workspace);
        return;
    }
    for (uint32_t i = result->first_update, n = 0; n < result->update_count; n++) {
        begin_update(o, &o->plan->updates[i]);
        i = o->plan->updates[i].next;
    }
}
