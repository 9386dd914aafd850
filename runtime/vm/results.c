/* SPDX-License-Identifier: MIT */
/* The registers at the end of a call become its results and its states' next content. */
#include "config.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/call/inside.h"
#include "runtime/program/state_cells.h"
#include "runtime/vm/vm.h"

static struct hal_binding retain(struct hal_binding binding)
{
    binding.buffer = binding.buffer ? hal_buffer_ref(binding.buffer) : NULL;
    return binding;
}

/* Copies the result to the caller's memory, if there is any; otherwise the result stays where it
 * was computed. */
static enum status give_tensor(struct rt_invocation *inv, uint32_t index, struct vm_value *value)
{
    const struct rt_io *io = rt_method_result(inv->method, index);
    struct hal_binding *bound = &inv->bound[index];
    struct vm_memory *memory;
    size_t bytes;
    TRY(shape_bytes(&value->shape, io->dtype, &bytes, &inv->error));
    if (bound->buffer && !in_range(bound->offset, bytes, hal_buffer_size(bound->buffer))) {
        return error_set(&inv->error, ST_INVALID, "%s needs %zu bytes at %zu, its memory has %zu",
                         io->label, bytes, bound->offset, hal_buffer_size(bound->buffer));
    }
    bool is_kept = value->memory->owner == VM_OWNER_POOL || value->memory->owner == VM_OWNER_INPUT;
    if (!bound->buffer && is_kept) {
        *bound = retain(value->memory->binding);
    } else if (!bound->buffer) {
        TRY(vm_allocate(inv, bytes, &memory)); /* the next call writes to the memory of a state */
        *bound = retain(memory->binding);
        vm_drop(vm_of(inv), memory);
    }
    uint8_t *base = bound->buffer ? hal_buffer_map(bound->buffer) : NULL;
    uint8_t *to = base ? base + bound->offset : NULL;
    if (bytes > 0 && to != vm_map(value->memory)) {
        memcpy(to, vm_map(value->memory), bytes);
    }
    bound->length = bytes;
    inv->results[index].shape = value->shape;
    inv->results[index].bytes = span_of(to, bytes);
    return ST_OK;
}

enum status vm_give_results(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_code *code = vm_of(inv)->code;
    for (uint32_t i = 0; i < code->result_count; i++) {
        struct vm_value *value = &vm_of(inv)->registers[code->results[i].reg];
        const struct rt_io *io = rt_method_result(inv->method, i);
        bool is_tensor = io->kind == RT_IO_TENSOR;
        if (code->results[i].is_kept && value->kind == RT_NONE) {
            continue;
        }
        if ((is_tensor || code->results[i].is_computed) &&
            value->kind != code->registers[code->results[i].reg].kind) {
            return error_set(&inv->error, ST_INVALID, "%s was never written", io->label);
        }
        if (is_tensor) {
            TRY(give_tensor(inv, i, value));
        } else {
            rt_invocation_give_scalar(inv, i, value->number);
        }
    }
    return ST_OK;
}

/* A buffer whose new content is in other memory: another register's, or the caller's. */
static enum status move_to_spare(struct rt_invocation *inv, const struct rt_method_state *use)
{
    struct vm_value *value = &vm_of(inv)->registers[use->reg];
    size_t size = vm_of(inv)->code->registers[use->reg].bytes, bytes;
    TRY(shape_bytes(&value->shape, vm_of(inv)->code->registers[use->reg].dtype, &bytes,
                    &inv->error));
    if (bytes != size) {
        return error_set(&inv->error, ST_INVALID, "a mutable buffer of %zu bytes gets %zu", size,
                         bytes);
    }
    TRY(rt_state_reserve(inv->state, use->cell, &inv->error));
    const struct rt_state_cell *cell = &inv->state->cells->items[use->cell];
    bool grows = !cell->is_replaced && hal_buffer_page_bytes(cell->initial) > 0;
    size_t charged = vm_of(inv)->spares[use - inv->method->states].grown.bytes;
    size_t rest = grows && bytes > charged ? bytes - charged : 0;
    TRY(rt_state_charge(inv->state, rest, 0, &inv->error));
    rt_state_spoil(inv->state, use->cell);
    if (bytes > 0) {
        memcpy(hal_buffer_map(inv->state->spare[use->cell]), vm_map(value->memory), bytes);
    }
    return ST_OK;
}

/* Before spare memory is overwritten, a value that another buffer has there is copied. */
static enum status save_from_spares(struct rt_invocation *inv)
{
    const struct rt_method *method = inv->method;
    for (uint32_t i = 0; i < method->state_count; i++) {
        uint32_t reg = method->states[i].reg;
        struct vm_value *value = &vm_of(inv)->registers[reg], copy = *value;
        if (value->kind != RT_TENSOR || value->memory->owner != VM_OWNER_SPARE ||
            value->memory->state == i) {
            continue;
        }
        size_t bytes = value->memory->binding.length;
        TRY(vm_allocate(inv, bytes, &copy.memory));
        if (bytes > 0) {
            memcpy(vm_map(copy.memory), vm_map(value->memory), bytes);
        }
        vm_put(vm_of(inv), reg, copy);
    }
    return ST_OK;
}

/* Does the buffer's memory have its content? */
static bool is_unchanged(const struct rt_invocation *inv, uint32_t i)
{
    const struct rt_method_state *use = &inv->method->states[i];
    const struct vm_memory *memory = vm_of(inv)->registers[use->reg].memory;
    return memory->owner == VM_OWNER_STATE &&
           memory->binding.buffer == inv->state->current[use->cell];
}

enum status vm_advance_states(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_method *method = inv->method;
    TRY(save_from_spares(inv));
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct vm_value *value = &vm_of(inv)->registers[method->states[i].reg];
        if (value->kind != RT_TENSOR) {
            return error_set(&inv->error, ST_INVALID, "a mutable buffer lost its content");
        }
        if (value->memory->owner != VM_OWNER_SPARE && !is_unchanged(inv, i)) {
            TRY(move_to_spare(inv, &method->states[i]));
            vm_of(inv)->spares[i].written = (struct rt_rows){0};
        }
    }
    for (uint32_t i = 0; i < method->state_count; i++) {
        if (!is_unchanged(inv, i) || vm_of(inv)->spares[i].is_overwritten) {
            rt_state_advance(inv->state, method->states[i].cell, vm_of(inv)->spares[i].written);
        }
    }
    return ST_OK;
}
