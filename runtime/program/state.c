/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/array.h"
#include "runtime/program/state_cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/import/kernels.h"
#include "runtime/program/method.h"

#define CELLS_APART 64 /* rows by which the last buffer of a sequence is later than the first */

/* ---- cells ----------------------------------------------------------------------------------- */

/* The plan whose memory 0 |plan| has. */
static const struct pte_plan *home_of(const struct pte_plan *plan)
{
    return plan->base ? plan->base : plan;
}

/*
 * One buffer under one name; nameless ones only where methods share memory at all: every method has
 * a memory 0 of its own, the others belong to the program.
 */
static bool is_same_buffer(const struct rt_state_cell *cell, const struct pte_plan *plan,
                           const struct pte_tensor *t)
{
    const struct pte_tensor *s = &cell->tensor;
    if (s->dtype != t->dtype || s->byte_count != t->byte_count) {
        return false;
    }
    if (s->name[0] != '\0' || t->name[0] != '\0') {
        return strcmp(s->name, t->name) == 0;
    }
    return s->memory == t->memory && s->offset == t->offset &&
           (s->memory > 0 || home_of(cell->plan) == home_of(plan));
}

static enum status make_initial(struct hal_device *device, const struct pte_tensor *t,
                                struct hal_buffer **out_buffer, struct error *err)
{
    must(!t->is_external || t->bytes.ptr); /* pte_link() refuses the method otherwise */
    TRY(hal_buffer_new(device, t->byte_count, out_buffer, err));
    if (t->bytes.ptr && t->byte_count > 0) {
        rt_import_row_major(t, hal_buffer_map(*out_buffer));
    }
    return ST_OK;
}

enum status rt_state_cells_add(struct rt_state_cells *cells, struct hal_device *device,
                               const struct pte_plan *plan, const struct pte_tensor *tensor,
                               bool is_written, uint32_t *out_cell, struct error *err)
{
    uint32_t i = 0;
    while (i < cells->count && !is_same_buffer(&cells->items[i], plan, tensor)) {
        i++;
    }
    if (i == cells->count) {
        struct rt_state_cell cell = {.tensor = *tensor, .plan = plan};
        if (!ARRAY_ROOM(cells->items, cells->capacity, cells->count + 1)) {
            return error_no_memory(err, "%u mutable buffers", cells->count + 1);
        }
        TRY(make_initial(device, tensor, &cell.initial, err));
        cell.begins_zero = !tensor->bytes.ptr;
        cells->items[cells->count++] = cell;
    }
    cells->items[i].is_written |= is_written;
    *out_cell = i;
    must(cells->items[i].initial != NULL);
    return ST_OK;
}

void rt_state_cells_fini(struct rt_state_cells *cells)
{
    for (uint32_t i = 0; i < cells->count; i++) {
        hal_buffer_unref(cells->items[i].initial);
    }
    free(cells->items);
    *cells = (struct rt_state_cells){0};
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Of a program with |cells|, and with room for |part_count| parts; NULL: no memory. */
static struct rt_state *allocate(const struct rt_state_cells *cells, uint32_t part_count)
{
    size_t cell_bytes = 4 * sizeof(struct rt_rows) + 4 * sizeof(struct hal_buffer *) + sizeof(bool);
    size_t bytes = cells->count * cell_bytes + part_count * sizeof(struct rt_state *);
    struct rt_state *state = calloc(1, sizeof(*state) + bytes);
    if (!state) {
        return NULL;
    }
    state->magic = RT_STATE_MAGIC;
    refs_init(&state->refs);
    must(pthread_mutex_init(&state->lending, NULL) == 0);
    state->cells = cells;
    state->stale = (struct rt_rows *)(state + 1);
    state->unsettled = state->stale + cells->count;
    state->touched = state->unsettled + cells->count;
    state->paged = state->touched + cells->count;
    state->current = (struct hal_buffer **)(state->paged + cells->count);
    state->spare = state->current + cells->count;
    state->settled = state->spare + cells->count;
    state->shared = state->settled + cells->count;
    state->parts = (struct rt_state **)(state->shared + cells->count);
    state->is_overwritten = (bool *)(state->parts + part_count);
    for (uint32_t i = 0; i < cells->count; i++) {
        state->current[i] = hal_buffer_ref(cells->items[i].initial);
        state->touched[i].rows = RT_ROWS_NONE;
    }
    return state;
}

static enum status add_parts(struct rt_state *state, const struct rt_method *method,
                             struct error *err)
{
    for (uint32_t i = 0; i < method->part_count; i++) {
        struct rt_program *program = rt_state_new_part(method, i);
        if (program && rt_program_state_bytes(program) > 0) {
            struct rt_state **part = &state->parts[state->part_count];
            TRY(rt_state_new(program, part, err));
            (*part)->is_part = true;
            state->part_count++;
        }
    }
    return ST_OK;
}

enum status rt_state_new(struct rt_program *program, struct rt_state **out_state, struct error *err)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    const struct rt_method *method = rt_program_method(program, 0);
    struct rt_state *state = allocate(rt_program_state_cells(program), method->part_count);
    if (!state) {
        return error_no_memory(err, "the state of a sequence");
    }
    state->program = rt_program_ref(program);
    if (add_parts(state, method, err) != ST_OK) {
        rt_state_unref(state);
        return err->code;
    }
    *out_state = state;
    return ST_OK;
}

struct rt_state *rt_state_part(struct rt_state *state, const struct rt_program *program)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    for (uint32_t i = 0; i < state->part_count; i++) {
        if (state->parts[i]->program == program) {
            return state->parts[i];
        }
    }
    return NULL;
}

struct rt_state *rt_state_ref(struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    refs_take(&state->refs);
    return state;
}

void rt_state_unref(struct rt_state *state)
{
    if (!state) {
        return;
    }
    OBJ_CHECK(state, RT_STATE_MAGIC);
    if (!refs_drop(&state->refs)) {
        return;
    }
    must(!atomic_load(&state->is_busy)); /* a call in flight has a reference */
    for (uint32_t i = 0; i < state->cells->count; i++) {
        hal_buffer_unref(state->current[i]);
        hal_buffer_unref(state->spare[i]);
        hal_buffer_unref(state->shared[i]);
    }
    rt_state_drop_logs(state);
    for (uint32_t i = 0; i < state->part_count; i++) {
        rt_state_unref(state->parts[i]);
    }
    rt_pages_unref(state->pages);
    pthread_mutex_destroy(&state->lending);
    rt_program_unref(state->program);
    state->magic = 0;
    free(state);
}

/* ---- content that several states have -------------------------------------------------------- */

static void set_buffer(struct hal_buffer **at, struct hal_buffer *buffer)
{
    struct hal_buffer *old = *at;
    *at = hal_buffer_ref(buffer);
    hal_buffer_unref(old);
}

/* Only the first |rows| rows of cell |i| are wanted. */
static void cut(struct rt_state *state, uint32_t i, int64_t rows)
{
    struct rt_rows *touched = &state->touched[i];
    bool is_of_rows = state->cells->items[i].begins_zero && touched->rows > 0;
    if (is_of_rows && touched->end > rows) {
        touched->end = rows > touched->first ? rows : touched->first;
    }
}

void rt_state_share(struct rt_state *state, struct rt_state *from, int64_t rows)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    OBJ_CHECK(from, RT_STATE_MAGIC);
    must(state->cells == from->cells && state->part_count == from->part_count);
    for (uint32_t i = 0; i < state->cells->count; i++) {
        if (from->current[i] != from->cells->items[i].initial) {
            set_buffer(&state->current[i], from->current[i]);
            set_buffer(&state->shared[i], from->current[i]);
            state->touched[i] = from->touched[i];
            cut(state, i, rows);
        }
    }
    if (state->is_part || state->part_count > 0) {
        rows = RT_STATE_ALL_ROWS; /* the calls of a pipeline write whole generations */
    } else {
        rt_state_borrow(state, from, rows);
    }
    for (uint32_t i = 0; i < state->part_count; i++) {
        rt_state_share(state->parts[i], from->parts[i], rows);
    }
}

size_t rt_state_trim(struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    must(!atomic_load(&state->is_busy));
    size_t bytes = 0;
    rt_state_drop_logs(state);
    for (uint32_t i = 0; i < state->cells->count; i++) {
        hal_buffer_unref(state->spare[i]);
        state->spare[i] = NULL;
        const struct rt_state_cell *cell = &state->cells->items[i];
        bool is_initial = state->current[i] == cell->initial;
        /* Shared content, too: |state| may keep it for longer than the one that has paid for it. */
        size_t rows = rt_state_rows_bytes(cell, state->touched[i]);
        rows -= rt_state_paged_bytes(state, i, RT_STATE_ALL_ROWS);
        bytes = rt_add_or_max(bytes, is_initial ? 0 : rows);
    }
    bytes = rt_add_or_max(bytes, state->made_bytes);
    for (uint32_t i = 0; i < state->part_count; i++) {
        bytes = rt_add_or_max(bytes, rt_state_trim(state->parts[i]));
    }
    return bytes;
}

bool rt_state_wrote(const struct rt_state *state, int64_t first, int64_t end)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    for (uint32_t i = 0; i < state->cells->count; i++) {
        const struct rt_rows *rows = &state->unsettled[i];
        bool is_own = state->current[i] != state->cells->items[i].initial;
        if (is_own && (rows->rows == 0 || rows->first != first || rows->end != end)) {
            return false;
        }
    }
    return state->part_count == 0;
}

/* New memory has the initial content if that is zeros. */
enum status rt_state_reserve(struct rt_state *state, uint32_t cell, struct error *err)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    const struct rt_state_cell *of = &state->cells->items[cell];
    if (state->spare[cell]) {
        return ST_OK;
    }
    state->stale[cell] = of->begins_zero ? state->touched[cell] : (struct rt_rows){0};
    return hal_buffer_new_sparse(hal_buffer_device(of->initial), hal_buffer_size(of->initial),
                                 &state->spare[cell], err);
}

void rt_state_enter(struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    must(!atomic_exchange_explicit(&state->is_busy, true, memory_order_acquire));
}

/* The generation that the call found becomes spare memory, unless others may hold it: the initial
 * content, or a shared one. */
static void keep(struct rt_state *state, uint32_t cell)
{
    struct hal_buffer *old = state->settled[cell];
    bool is_shared = old == state->shared[cell];
    if (is_shared) {
        hal_buffer_unref(state->shared[cell]);
        state->shared[cell] = NULL;
    }
    if (state->spare[cell] || is_shared || old == state->cells->items[cell].initial) {
        hal_buffer_unref(old);
    } else {
        state->spare[cell] = old;
        state->stale[cell] = state->unsettled[cell];
    }
}

/* The old content is current again, and the written memory is spare. */
static void take_back(struct rt_state *state, uint32_t cell)
{
    struct hal_buffer *unwanted = state->current[cell];
    state->current[cell] = state->settled[cell];
    if (state->spare[cell]) {
        hal_buffer_unref(unwanted);
        state->stale[cell] = (struct rt_rows){0};
    } else {
        state->spare[cell] = unwanted;
        state->stale[cell] = state->unsettled[cell];
    }
}

static void settle(struct rt_state *state, bool is_kept)
{
    for (uint32_t i = 0; i < state->cells->count; i++) {
        if (state->settled[i]) {
            (is_kept ? keep : take_back)(state, i);
            state->settled[i] = NULL;
        }
    }
    for (uint32_t i = 0; i < state->part_count; i++) {
        settle(state->parts[i], is_kept);
    }
}

void rt_state_leave(struct rt_state *state, bool is_kept)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    if (!is_kept) {
        rt_state_undo(state);
    }
    rt_state_forget(state);
    if (!state->is_part) {
        settle(state, is_kept);
    }
    state->growth = 0;
    if (state->account) {
        state->account->settle(state->account, rt_state_bytes(state));
    }
    atomic_store_explicit(&state->is_busy, false, memory_order_release);
}

struct rt_rows rt_state_spoil(struct rt_state *state, uint32_t cell)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    struct rt_rows stale = state->stale[cell];
    state->stale[cell] = (struct rt_rows){0};
    return stale;
}

struct rt_rows rt_rows_join(struct rt_rows a, struct rt_rows b)
{
    if (a.rows == RT_ROWS_NONE || b.rows == RT_ROWS_NONE) {
        return a.rows == RT_ROWS_NONE ? b : a;
    }
    if (a.rows != b.rows || a.row_bytes != b.row_bytes) {
        return (struct rt_rows){0};
    }
    a.first = b.first < a.first ? b.first : a.first;
    a.end = b.end > a.end ? b.end : a.end;
    return a;
}

/* A long sequence reads its rows for each token, and in large pages they are read faster. Rows
 * before |old| were told of before. Moving rows to a page takes some hundred microseconds. All
 * buffers would do that at the same row, so each of them is a row later than the one before. */
static void compact(const struct rt_state *state, uint32_t cell, struct rt_rows written,
                    int64_t old)
{
    const struct rt_rows *touched = &state->touched[cell];
    struct hal_buffer *buffer = state->current[cell];
    int64_t late = cell % CELLS_APART, first = state->paged[cell].end, end = written.end - late;
    int64_t known = old - late > first ? old - late : first;
    if (touched->rows <= 0 || written.rows != touched->rows || touched->first > 0 || known >= end) {
        return;
    }
    size_t row = (size_t)written.row_bytes, block = (size_t)written.rows * row;
    for (size_t base = 0; base < hal_buffer_size(buffer); base += block) {
        hal_buffer_compact(buffer, base + (size_t)first * row, (size_t)(end - first) * row,
                           (size_t)(known - first) * row);
    }
}

void rt_state_advance(struct rt_state *state, uint32_t cell, struct rt_rows written)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    struct hal_buffer *old = state->current[cell];
    must(state->is_overwritten[cell] || state->spare[cell]);
    state->touched[cell] =
        rt_rows_join(state->touched[cell], written); /* also if it is taken back */
    if (!state->spare[cell]) {
        state->unsettled[cell] = written;
        rt_state_own(state, cell, written);
        compact(state, cell, written, written.first);
        return;
    }
    state->paged[cell] = (struct rt_rows){0};
    state->is_overwritten[cell] = false; /* what it has overwritten is no longer wanted */
    state->current[cell] = state->spare[cell];
    compact(state, cell, written, 0);
    if (!state->settled[cell]) {
        state->settled[cell] = old;
        state->unsettled[cell] = written;
        state->spare[cell] = NULL;
        state->stale[cell] = (struct rt_rows){0};
    } else { /* written by this call, too: no longer wanted */
        state->spare[cell] = old;
        state->stale[cell] = written;
    }
}
