/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/state_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/import/kernels.h"
#include "runtime/method.h"

/* ---- slots ----------------------------------------------------------------------------------- */

/*
 * One buffer under one name; nameless ones only where methods share memory at all: every method has
 * an arena 0 of its own, the others belong to the program.
 */
static bool is_same_buffer(const struct rt_state_slot *slot, const struct pte_plan *plan,
                           const struct pte_tensor *t)
{
    const struct pte_tensor *s = slot->tensor;
    if (s->dtype != t->dtype || s->byte_count != t->byte_count) {
        return false;
    }
    if (s->name[0] != '\0' || t->name[0] != '\0') {
        return strcmp(s->name, t->name) == 0;
    }
    return s->arena == t->arena && s->offset == t->offset && (s->arena > 0 || slot->plan == plan);
}

static enum status grow(struct rt_state_slots *slots, struct error *err)
{
    if (slots->count < slots->capacity) {
        return ST_OK;
    }
    uint32_t capacity = slots->capacity ? slots->capacity * 2 : 16;
    struct rt_state_slot *items = realloc(slots->items, capacity * sizeof(*items));
    if (!items) {
        return error_set(err, ST_EXHAUSTED, "no memory for %u mutable buffers", capacity);
    }
    slots->items = items;
    slots->capacity = capacity;
    return ST_OK;
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

enum status rt_state_slots_add(struct rt_state_slots *slots, struct hal_device *device,
                               const struct pte_plan *plan, const struct pte_tensor *tensor,
                               bool is_written, uint32_t *out_slot, struct error *err)
{
    uint32_t i = 0;
    while (i < slots->count && !is_same_buffer(&slots->items[i], plan, tensor)) {
        i++;
    }
    if (i == slots->count) {
        struct rt_state_slot slot = {.tensor = tensor, .plan = plan};
        TRY(grow(slots, err));
        TRY(make_initial(device, tensor, &slot.initial, err));
        slots->items[slots->count++] = slot;
    }
    slots->items[i].is_written |= is_written;
    *out_slot = i;
    return ST_OK;
}

void rt_state_slots_fini(struct rt_state_slots *slots)
{
    for (uint32_t i = 0; i < slots->count; i++) {
        hal_buffer_unref(slots->items[i].initial);
    }
    free(slots->items);
    *slots = (struct rt_state_slots){0};
}

/* ---- states ---------------------------------------------------------------------------------- */

size_t rt_program_state_bytes(struct rt_program *program)
{
    const struct rt_state_slots *slots = rt_program_state_slots(program);
    size_t bytes = 0;
    for (uint32_t i = 0; i < slots->count; i++) {
        size_t both = slots->items[i].tensor->byte_count;
        bool fits = slots->items[i].is_written && add_size(both, both, &both);
        bytes = !slots->items[i].is_written            ? bytes
                : fits && add_size(bytes, both, &both) ? both
                                                       : SIZE_MAX;
    }
    return bytes;
}

enum status rt_state_new(struct rt_program *program, struct rt_state **out_state, struct error *err)
{
    const struct rt_state_slots *slots = rt_program_state_slots(program);
    size_t slot_bytes = sizeof(struct rt_rows) + 2 * sizeof(struct hal_buffer *);
    struct rt_state *state = calloc(1, sizeof(*state) + slots->count * slot_bytes);
    if (!state) {
        return error_set(err, ST_EXHAUSTED, "no memory for the state of a sequence");
    }
    atomic_init(&state->refs, 1);
    state->program = rt_program_ref(program);
    state->slots = slots;
    state->stale = (struct rt_rows *)(state + 1);
    state->current = (struct hal_buffer **)(state->stale + slots->count);
    state->spare = state->current + slots->count;
    for (uint32_t i = 0; i < slots->count; i++) {
        state->current[i] = hal_buffer_ref(slots->items[i].initial);
    }
    *out_state = state;
    return ST_OK;
}

struct rt_state *rt_state_ref(struct rt_state *state)
{
    atomic_fetch_add_explicit(&state->refs, 1, memory_order_relaxed);
    return state;
}

void rt_state_unref(struct rt_state *state)
{
    if (!state || atomic_fetch_sub_explicit(&state->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < state->slots->count; i++) {
        hal_buffer_unref(state->current[i]);
        hal_buffer_unref(state->spare[i]);
    }
    rt_program_unref(state->program);
    free(state);
}

enum status rt_state_reserve(struct rt_state *state, uint32_t slot, struct error *err)
{
    const struct hal_buffer *initial = state->slots->items[slot].initial;
    if (state->spare[slot]) {
        return ST_OK;
    }
    return hal_buffer_new(hal_buffer_device(initial), hal_buffer_size(initial), &state->spare[slot],
                          err);
}

void rt_state_enter(struct rt_state *state)
{
    must(!atomic_exchange_explicit(&state->is_busy, true, memory_order_acquire));
}

void rt_state_leave(struct rt_state *state)
{
    atomic_store_explicit(&state->is_busy, false, memory_order_release);
}

struct rt_rows rt_state_spoil(struct rt_state *state, uint32_t slot)
{
    struct rt_rows stale = state->stale[slot];
    state->stale[slot] = (struct rt_rows){0};
    return stale;
}

/* The initial content belongs to the program and is never written to. */
void rt_state_advance(struct rt_state *state, uint32_t slot, struct rt_rows written)
{
    struct hal_buffer *old = state->current[slot];
    must(state->spare[slot]);
    state->current[slot] = state->spare[slot];
    state->spare[slot] = old;
    state->stale[slot] = written;
    if (old == state->slots->items[slot].initial) {
        hal_buffer_unref(old);
        state->spare[slot] = NULL;
        state->stale[slot] = (struct rt_rows){0};
    }
}
