/* SPDX-License-Identifier: MIT */
/*
 * Mutable buffers of a call: see runtime/program/state.h. Each buffer is an input of the plan, and
 * an output as well if the method writes it. Reads use the current generation or the program's
 * initial content. Writes go to the state's spare memory, or to memory that is dropped with the
 * call, so a call that fails has changed nothing that the next call reads. Spare memory holds the
 * generation before: if the method writes only some rows, the rows of the last call are copied, its
 * own rows are written, and the others are there already.
 */
#include "config.h"

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"
#include "runtime/call/words.h"
#include "runtime/program/state_cells.h"

void rt_invocation_set_state(struct rt_invocation *inv, struct rt_state *state)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    OBJ_CHECK(state, RT_STATE_MAGIC);
    must(inv->phase == RT_PHASE_FILLING && !inv->state);
    must(state->program == rt_method_program(inv->method));
    inv->state = rt_state_ref(state);
}

enum status rt_invocation_place_states(struct rt_invocation *inv, struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_method *method = inv->method;
    uint32_t result = rt_method_result_count(method);
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct rt_method_state *use = &method->states[i];
        if (use->is_written && !inv->state && inv->plan) {
            struct hal_binding *bound = &inv->bound[result];
            bound->length = inv->plan->results[result].bytes;
            inv->bytes += bound->length;
            TRY(hal_pool_reserve(inv->run_pool, bound->length, &bound->buffer, err));
        }
        result += use->is_written;
    }
    return ST_OK;
}

/* Tells the run which rows of written state |use| are stale: input |input| and result |result| of
 * the plan. */
static void tell_stale(struct rt_invocation *inv, const struct rt_method_state *use, uint32_t input,
                       uint32_t result)
{
    struct rt_rows stale = rt_state_spoil(inv->state, use->cell);
    if (inv->plan->results[result].base == input) {
        rt_words_put_stale(inv->plan, result, &stale, hal_buffer_map(inv->workspace));
    }
}

static struct rt_rows find_written(const struct rt_invocation *inv, uint32_t input, uint32_t result)
{
    if (inv->plan->results[result].base != input) {
        return (struct rt_rows){0};
    }
    return rt_words_written(inv->plan, result, hal_buffer_map(inv->workspace));
}

enum status rt_invocation_fill_states(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_method *method = inv->method;
    const struct rt_state_cells *cells = rt_program_state_cells(method->program);
    if (inv->steps) {
        rt_steps_tell_stale(inv);
    }
    uint32_t inputs = rt_method_input_count(method), result = rt_method_result_count(method);
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct rt_method_state *use = &method->states[i];
        inv->slots[RT_SLOT_INPUT + inputs + i] = hal_binding_whole(
            inv->state ? inv->state->current[use->cell] : cells->items[use->cell].initial);
        if (!use->is_written) {
            continue;
        }
        struct hal_binding *target = &inv->slots[rt_slot_result(inv->plan->input_count, result)];
        *target = inv->bound[result];
        if (inv->state) {
            /* Not earlier: other calls of the state may run until this one begins. */
            TRY(rt_state_reserve(inv->state, use->cell, &inv->error));
            *target = hal_binding_whole(inv->state->spare[use->cell]);
            tell_stale(inv, use, inputs + i, result);
        }
        result++;
    }
    return ST_OK;
}

void rt_invocation_leave_states(struct rt_invocation *inv, enum status status)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_method *method = inv->method;
    if (inv->steps) {
        rt_steps_end(inv, status);
    }
    if (!inv->state) {
        return;
    }
    bool advances = status == ST_OK && inv->plan; /* the VM has no plan here, and has done so */
    uint32_t inputs = rt_method_input_count(method), result = rt_method_result_count(method);
    for (uint32_t i = 0; advances && i < method->state_count; i++) {
        if (method->states[i].is_written) {
            struct rt_rows written = find_written(inv, inputs + i, result++);
            rt_state_advance(inv->state, method->states[i].cell, written);
        }
    }
    rt_state_leave(inv->state, status == ST_OK);
}
