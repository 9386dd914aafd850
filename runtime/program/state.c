/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/state_slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/import/kernels.h"
#include "runtime/program/method.h"

/* ---- slots ----------------------------------------------------------------------------------- */

/*
 * One buffer under one name; nameless ones only where methods share memory at all: every method has
 * an arena 0 of its own, the others belong to the program.
 */
static bool is_same_buffer(const struct rt_state_slot *slot, const struct pte_plan *plan,
                           const struct pte_tensor *t)
{
    const struct pte_tensor *s = &slot->tensor;
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
        struct rt_state_slot slot = {.tensor = *tensor, .plan = plan};
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

/* The method of a program that has no file, whose parts' buffers are the program's, too. */
static const struct rt_method *whole_of(struct rt_program *program)
{
    return rt_program_method(program, 0);
}

static size_t add_or_max(size_t a, size_t b)
{
    size_t sum;
    return add_size(a, b, &sum) ? sum : SIZE_MAX;
}

/* The program of part |index|, if it is the first part that has it. */
static struct rt_program *new_program(const struct rt_method *method, uint32_t index)
{
    struct rt_program *program = rt_method_program(method->parts[index]);
    for (uint32_t i = 0; i < index; i++) {
        if (rt_method_program(method->parts[i]) == program) {
            return NULL;
        }
    }
    return program;
}

/* Of one generation. */
static size_t generation_bytes(struct rt_program *program)
{
    const struct rt_method *method = whole_of(program);
    const struct rt_state_slots *slots = rt_program_state_slots(program);
    size_t bytes = 0;
    for (uint32_t i = 0; i < slots->count; i++) {
        const struct rt_state_slot *slot = &slots->items[i];
        bytes = add_or_max(bytes, slot->is_written ? slot->tensor.byte_count : 0);
    }
    for (uint32_t i = 0; i < method->part_count; i++) {
        struct rt_program *part = new_program(method, i);
        bytes = add_or_max(bytes, part ? generation_bytes(part) : 0);
    }
    return bytes;
}

/* Several parts may have written a buffer: the generation that the call found is kept as well. */
size_t rt_program_state_bytes(struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    size_t one = generation_bytes(program), both = add_or_max(one, one);
    return whole_of(program)->part_count > 0 ? add_or_max(both, one) : both;
}

/* Of a program with |slots|, and with room for |part_count| parts; NULL: no memory. */
static struct rt_state *allocate(const struct rt_state_slots *slots, uint32_t part_count)
{
    size_t slot_bytes = 2 * sizeof(struct rt_rows) + 3 * sizeof(struct hal_buffer *);
    size_t bytes = slots->count * slot_bytes + part_count * sizeof(struct rt_state *);
    struct rt_state *state = calloc(1, sizeof(*state) + bytes);
    if (!state) {
        return NULL;
    }
    state->magic = RT_STATE_MAGIC;
    refs_init(&state->refs);
    state->slots = slots;
    state->stale = (struct rt_rows *)(state + 1);
    state->unsettled = state->stale + slots->count;
    state->current = (struct hal_buffer **)(state->unsettled + slots->count);
    state->spare = state->current + slots->count;
    state->settled = state->spare + slots->count;
    state->parts = (struct rt_state **)(state->settled + slots->count);
    for (uint32_t i = 0; i < slots->count; i++) {
        state->current[i] = hal_buffer_ref(slots->items[i].initial);
    }
    return state;
}

static enum status add_parts(struct rt_state *state, const struct rt_method *method,
                             struct error *err)
{
    for (uint32_t i = 0; i < method->part_count; i++) {
        struct rt_program *program = new_program(method, i);
        if (program && generation_bytes(program) > 0) {
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
    const struct rt_method *method = whole_of(program);
    struct rt_state *state = allocate(rt_program_state_slots(program), method->part_count);
    if (!state) {
        return error_set(err, ST_EXHAUSTED, "no memory for the state of a sequence");
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
    for (uint32_t i = 0; i < state->slots->count; i++) {
        hal_buffer_unref(state->current[i]);
        hal_buffer_unref(state->spare[i]);
    }
    for (uint32_t i = 0; i < state->part_count; i++) {
        rt_state_unref(state->parts[i]);
    }
    rt_program_unref(state->program);
    state->magic = 0;
    free(state);
}

enum status rt_state_reserve(struct rt_state *state, uint32_t slot, struct error *err)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    const struct hal_buffer *initial = state->slots->items[slot].initial;
    if (state->spare[slot]) {
        return ST_OK;
    }
    return hal_buffer_new(hal_buffer_device(initial), hal_buffer_size(initial), &state->spare[slot],
                          err);
}

void rt_state_enter(struct rt_state *state)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    must(!atomic_exchange_explicit(&state->is_busy, true, memory_order_acquire));
}

/* The generation that the call found becomes spare memory. The initial content is the program's. */
static void keep(struct rt_state *state, uint32_t slot)
{
    struct hal_buffer *old = state->settled[slot];
    if (state->spare[slot] || old == state->slots->items[slot].initial) {
        hal_buffer_unref(old);
    } else {
        state->spare[slot] = old;
        state->stale[slot] = state->unsettled[slot];
    }
}

/* It is current again, and what was written is spare memory. */
static void take_back(struct rt_state *state, uint32_t slot)
{
    struct hal_buffer *unwanted = state->current[slot];
    state->current[slot] = state->settled[slot];
    if (state->spare[slot]) {
        hal_buffer_unref(unwanted);
        state->stale[slot] = (struct rt_rows){0};
    } else {
        state->spare[slot] = unwanted;
        state->stale[slot] = state->unsettled[slot];
    }
}

static void settle(struct rt_state *state, bool is_kept)
{
    for (uint32_t i = 0; i < state->slots->count; i++) {
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
    if (!state->is_part) {
        settle(state, is_kept);
    }
    atomic_store_explicit(&state->is_busy, false, memory_order_release);
}

struct rt_rows rt_state_spoil(struct rt_state *state, uint32_t slot)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    struct rt_rows stale = state->stale[slot];
    state->stale[slot] = (struct rt_rows){0};
    return stale;
}

void rt_state_advance(struct rt_state *state, uint32_t slot, struct rt_rows written)
{
    OBJ_CHECK(state, RT_STATE_MAGIC);
    struct hal_buffer *old = state->current[slot];
    must(state->spare[slot]);
    state->current[slot] = state->spare[slot];
    if (!state->settled[slot]) {
        state->settled[slot] = old;
        state->unsettled[slot] = written;
        state->spare[slot] = NULL;
        state->stale[slot] = (struct rt_rows){0};
    } else { /* written by this call, too: no longer wanted */
        state->spare[slot] = old;
        state->stale[slot] = written;
    }
}
