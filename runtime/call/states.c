/* SPDX-License-Identifier: MIT */
/*
 * Mutable buffers of a call: see runtime/program/state.h. Each buffer is an input of the plan, and
 * an output as well if the method writes it. Reads use the current generation or the program's
 * initial content. A method that writes only some rows of a buffer writes them where they are, and
 * what they overwrite is logged (runtime/call/overwrite.h). Other writes go to the state's spare
 * memory, or to memory that is dropped with the call. So after a call that fails the next call
 * reads what it would have read without it.
 */
#include "config.h"

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"
#include "runtime/call/messages.h"
#include "runtime/call/overwrite.h"
#include "runtime/program/state_cells.h"

void rt_invocation_set_state(struct rt_invocation *inv, struct rt_state *state)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    OBJ_CHECK(state, RT_STATE_MAGIC);
    must(inv->phase == RT_PHASE_FILLING && !inv->state);
    must(state->program == rt_method_program(inv->method));
    rt_invocation_forget(inv);
    inv->state = rt_state_ref(state);
}

enum status rt_invocation_place_states(struct rt_invocation *inv, struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_method *method = inv->method;
    uint32_t result = method->result_count;
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

static struct rt_rows find_written(const struct rt_invocation *inv, uint32_t input, uint32_t result)
{
    if (inv->plan->results[result].base != input) {
        return (struct rt_rows){0};
    }
    return rt_messages_written(inv->plan, result, hal_buffer_map(inv->workspace));
}

static uint8_t *map_workspace(const struct rt_invocation *inv)
{
    return inv->workspace ? hal_buffer_map(inv->workspace) : NULL;
}

/* Does result |result| of the plan have all rows of |input| that it does not write? */
static bool has_base(const struct rt_invocation *inv, uint32_t input, uint32_t result)
{
    return inv->plan->results[result].base == input;
}

/* The memory that each written buffer of the state gets. Not earlier: other calls of the state may
 * run until this one begins. */
static enum status open_states(struct rt_invocation *inv, size_t *out_log_bytes)
{
    const struct rt_method *method = inv->method;
    uint32_t inputs = method->input_count, result = method->result_count;
    *out_log_bytes = 0;
    for (uint32_t i = 0; i < method->state_count; i++) {
        uint32_t cell = method->states[i].cell;
        struct hal_buffer *target;
        if (!method->states[i].is_written) {
            continue;
        }
        bool may_overwrite =
            has_base(inv, inputs + i, result) && inv->plan->results[result].may_overwrite;
        TRY(rt_state_open(inv->state, cell, may_overwrite, &target, &inv->error));
        inv->slots[rt_slot_result(inv->plan->input_count, result)] = hal_binding_whole(target);
        rt_overwrite_measure(&(struct rt_overwrite){inv->plan, result, cell, inv->state, inv->words,
                                                    map_workspace(inv)},
                             out_log_bytes);
        result++;
    }
    return ST_OK;
}

/* The memory that the state may take from now on. */
static enum status charge(struct rt_invocation *inv, size_t log_bytes)
{
    const struct rt_method *method = inv->method;
    uint32_t inputs = method->input_count, result = method->result_count;
    size_t bytes = 0;
    for (uint32_t i = 0; i < method->state_count; i++) {
        if (method->states[i].is_written) {
            uint32_t cell = method->states[i].cell;
            struct rt_growth growth = rt_growth_begin(inv->state, cell);
            rt_overwrite_grow(&(struct rt_overwrite){inv->plan, result, cell, inv->state,
                                                     inv->words, map_workspace(inv)},
                              has_base(inv, inputs + i, result), &growth, &bytes);
            result++;
        }
    }
    return rt_state_charge(inv->state, bytes, log_bytes, &inv->error);
}

static void begin_states(struct rt_invocation *inv)
{
    const struct rt_method *method = inv->method;
    uint32_t inputs = method->input_count, result = method->result_count;
    for (uint32_t i = 0; i < method->state_count; i++) {
        uint32_t cell = method->states[i].cell;
        if (!method->states[i].is_written) {
            continue;
        }
        if (has_base(inv, inputs + i, result)) {
            rt_overwrite_begin(&(struct rt_overwrite){inv->plan, result, cell, inv->state,
                                                      inv->words, map_workspace(inv)});
        } else {
            (void)rt_state_spoil(inv->state, cell);
        }
        result++;
    }
}

enum status rt_invocation_fill_states(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_method *method = inv->method;
    const struct rt_state_cells *cells = rt_program_state_cells(method->program);
    if (inv->steps) {
        rt_steps_begin(inv);
    }
    uint32_t inputs = method->input_count, result = method->result_count;
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct rt_method_state *use = &method->states[i];
        inv->slots[RT_SLOT_INPUT + inputs + i] = hal_binding_whole(
            inv->state ? inv->state->current[use->cell] : cells->items[use->cell].initial);
        if (use->is_written) {
            inv->slots[rt_slot_result(inv->plan->input_count, result)] = inv->bound[result];
            result++;
        }
    }
    if (inv->state) {
        size_t log_bytes;
        TRY(open_states(inv, &log_bytes));
        TRY(charge(inv, log_bytes));
        TRY(rt_state_reserve_log(inv->state, log_bytes, &inv->error));
        begin_states(inv);
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
    uint32_t inputs = method->input_count, result = method->result_count;
    for (uint32_t i = 0; advances && i < method->state_count; i++) {
        if (method->states[i].is_written) {
            struct rt_rows written = find_written(inv, inputs + i, result++);
            rt_state_advance(inv->state, method->states[i].cell, written);
        }
    }
    rt_state_leave(inv->state, status == ST_OK);
}
