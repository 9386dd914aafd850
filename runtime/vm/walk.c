/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "hal/queue.h"
#include "runtime/state_priv.h"
#include "runtime/vm/invocation_priv.h"
#include "runtime/vm/vm.h"
#include "runtime/vm/words.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* Every register, input and output of a block may hold memory of its own, and then some idle. */
static size_t memories_max(const struct rt_code *code)
{
    return (size_t)code->register_count + code->ins_max + 2 * (size_t)code->outs_max + 64;
}

struct vm *vm_new(const struct rt_method *method)
{
    const struct rt_code *code = &method->code;
    size_t end = sizeof(struct vm), ins = code->ins_max, outs = code->outs_max;
    size_t registers_at = rt_take_array(&end, code->register_count, sizeof(struct vm_value));
    size_t frame_at = rt_take_array(&end, ins, sizeof(struct vm_value));
    size_t outputs_at = rt_take_array(&end, outs, sizeof(struct vm_memory *));
    size_t fresh_at = rt_take_array(&end, outs, sizeof(struct vm_value));
    size_t given_at = rt_take_array(&end, ins, sizeof(struct rt_block_input));
    size_t slots_at = rt_take_array(&end, 1 + ins + outs, sizeof(struct hal_binding));
    size_t words_at = rt_take_array(&end, code->words_max, sizeof(int64_t));
    size_t spares_at = rt_take_array(&end, method->state_count, sizeof(struct vm_spare));
    size_t memories_at = rt_take_array(&end, memories_max(code), sizeof(struct vm_memory));
    struct vm *vm = calloc(1, end);
    if (!vm) {
        return NULL;
    }
    char *base = (char *)vm;
    vm->code = code;
    vm->registers = (void *)(base + registers_at);
    vm->frame = (void *)(base + frame_at);
    vm->outputs = (void *)(base + outputs_at);
    vm->fresh = (void *)(base + fresh_at);
    vm->given = (void *)(base + given_at);
    vm->slots = (void *)(base + slots_at);
    vm->words = (void *)(base + words_at);
    vm->spares = (void *)(base + spares_at);
    struct vm_memory *memories = (void *)(base + memories_at);
    for (size_t i = 0; i < memories_max(code); i++) {
        memories[i].next = vm->unused;
        vm->unused = &memories[i];
    }
    return vm;
}

/* ---- the beginning --------------------------------------------------------------------------- */

static struct hal_binding retain(struct hal_binding binding)
{
    binding.buffer = binding.buffer ? hal_buffer_ref(binding.buffer) : NULL;
    return binding;
}

static struct hal_binding whole(struct hal_buffer *buffer)
{
    return (struct hal_binding){.buffer = buffer, .length = hal_buffer_size(buffer)};
}

static void load_inputs(struct rt_invocation *inv)
{
    for (uint32_t i = 0; i < rt_method_input_count(inv->method); i++) {
        if (rt_method_input(inv->method, i)->kind == RT_IO_TENSOR) {
            struct hal_binding binding = retain(inv->inputs[i].binding);
            vm_put(inv->vm, i,
                   (struct vm_value){.kind = RT_TENSOR,
                                     .shape = inv->inputs[i].shape,
                                     .memory = vm_borrow(inv->vm, binding, VM_OWNER_INPUT)});
        }
    }
}

static void load_states(struct rt_invocation *inv)
{
    const struct rt_method *method = inv->method;
    const struct rt_state_slots *slots = rt_program_state_slots(method->program);
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct rt_method_state *use = &method->states[i];
        struct hal_buffer *buffer =
            inv->state ? inv->state->current[use->slot] : slots->items[use->slot].initial;
        inv->vm->spares[i] = (struct vm_spare){0};
        vm_put(
            inv->vm, use->reg,
            (struct vm_value){.kind = RT_TENSOR,
                              .shape = inv->vm->code->registers[use->reg].bound,
                              .memory = vm_borrow(inv->vm, retain(whole(buffer)), VM_OWNER_STATE)});
    }
}

static void load_scalars(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->code->register_count; i++) {
        const struct rt_scalar *initial = &vm->code->registers[i].initial;
        vm->registers[i] = (struct vm_value){.kind = initial->kind, .number = initial->number};
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static enum status gather(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = inv->vm;
    for (uint32_t i = 0; i < block->graph.input_count; i++) {
        const struct rt_value *v = &block->graph.values[block->graph.inputs[i]];
        const struct vm_value *value = &vm->registers[block->ins[i]];
        bool is_needed = v->kind == RT_TENSOR || !rt_value_is_fixed(v);
        if (is_needed && value->kind != v->kind) {
            return error_set(&inv->error, ST_INVALID, "a value is read before anything wrote it");
        }
        vm->given[i] = (struct rt_block_input){&value->shape, value->number};
        vm->slots[RT_SLOT_INPUT + i] =
            value->memory ? value->memory->binding : (struct hal_binding){0};
    }
    return ST_OK;
}

/* The next generation of the mutable buffer that lives in |reg| is written where it will stay. */
static bool take_spare(struct rt_invocation *inv, uint32_t reg, size_t bytes,
                       struct vm_memory **out_memory)
{
    const struct rt_method *method = inv->method;
    struct vm *vm = inv->vm;
    for (uint32_t i = 0; inv->state && i < method->state_count; i++) {
        const struct rt_method_state *use = &method->states[i];
        if (use->reg != reg || !use->is_written || vm->spares[i].is_used ||
            bytes != vm->code->registers[reg].bytes ||
            rt_state_reserve(inv->state, use->slot, NULL) != ST_OK) {
            continue;
        }
        *out_memory = vm_borrow(vm, retain(whole(inv->state->spare[use->slot])), VM_OWNER_SPARE);
        (*out_memory)->state = i;
        struct rt_rows stale = rt_state_spoil(inv->state, use->slot);
        vm->spares[i].is_used = true;
        vm->spares[i].stale = vm->spares[i].is_spoiled ? (struct rt_rows){0} : stale;
        vm->spares[i].is_spoiled = true;
        return true;
    }
    return false;
}

/* Which of the method's states has its spare memory as output |index| of the running block. */
static bool find_spare(const struct vm *vm, uint32_t index, uint32_t *out_state)
{
    const struct vm_memory *memory = vm->outputs[index];
    if (!memory || memory->owner != VM_OWNER_SPARE) {
        return false;
    }
    *out_state = memory->state;
    return true;
}

/* What the block is told, once its inputs and outputs have their memory. */
static void put_words(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = inv->vm;
    uint8_t *arena = vm_map(vm->arena);
    uint32_t state;
    rt_words_put(vm->plan, vm->words, arena);
    for (uint32_t i = 0; i < block->graph.output_count; i++) {
        uint32_t base = vm->plan->results[i].base;
        if (!find_spare(vm, i, &state)) {
            continue;
        }
        uint32_t slot = inv->method->states[state].slot;
        vm->spares[state].has_base = base != RT_NO_BASE && vm->slots[RT_SLOT_INPUT + base].buffer ==
                                                               inv->state->current[slot];
        if (vm->spares[state].has_base) {
            rt_words_put_stale(vm->plan, i, &vm->spares[state].stale, arena);
        }
    }
}

/* What the block has said. */
static void read_written(struct vm *vm)
{
    uint32_t state;
    for (uint32_t i = 0; i < vm->plan->result_count; i++) {
        if (find_spare(vm, i, &state)) {
            vm->spares[state].written = vm->spares[state].has_base
                                            ? rt_words_written(vm->plan, i, vm_map(vm->arena))
                                            : (struct rt_rows){0};
        }
    }
}

static enum status allocate_outputs(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = inv->vm;
    const struct rt_graph *graph = &block->graph;
    for (uint32_t i = 0; i < block->out_count; i++) {
        const struct rt_block_out *out = &block->outs[i];
        if (!out->is_input && !vm->outputs[out->index] &&
            graph->values[graph->outputs[out->index]].kind == RT_TENSOR) {
            take_spare(inv, out->reg, vm->plan->results[out->index].bytes,
                       &vm->outputs[out->index]);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (graph->values[graph->outputs[i]].kind == RT_TENSOR && !vm->outputs[i]) {
            TRY(vm_allocate(inv, vm->plan->results[i].bytes, &vm->outputs[i]));
        }
        vm->slots[rt_slot_result(graph->input_count, i)] =
            vm->outputs[i] ? vm->outputs[i]->binding : (struct hal_binding){0};
    }
    TRY(vm_allocate(inv, vm->plan->arena_bytes, &vm->arena));
    vm->slots[RT_SLOT_ARENA] = vm->arena->binding;
    if (inv->method->poison_arenas && vm->plan->arena_bytes > 0) {
        memset(vm_map(vm->arena), 0xff, vm->plan->arena_bytes);
    }
    put_words(inv, block);
    return ST_OK;
}

static enum status submit_block(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = inv->vm;
    const struct hal_submission submission = {
        .command = vm->plan->command,
        .slots = vm->slots,
        .slot_count = rt_slot_result(block->graph.input_count, block->graph.output_count),
        .signal = {{inv->semaphore, ++inv->timepoint}},
        .signal_count = 1,
        .caller = vm->caller,
        .share = inv->method->share,
        .weight = inv->method->weight,
        .cancel = inv->cancel,
        .fault = &inv->fault,
    };
    return hal_queue_submit(inv->method->device, &submission, &inv->error);
}

static enum status begin_block(struct rt_invocation *inv, struct rt_block *block)
{
    TRY(gather(inv, block));
    TRY(rt_block_plan(block, inv->vm->given, inv->vm->words, &inv->vm->plan, &inv->error));
    TRY(allocate_outputs(inv, block));
    return inv->vm->plan->is_empty ? ST_OK : submit_block(inv, block);
}

static enum status read_extent(struct rt_invocation *inv, const struct rt_block_out *out,
                               struct vm_value *value)
{
    const struct rt_register *r = &inv->vm->code->registers[out->reg];
    int64_t rows;
    const uint8_t *bytes = vm_map(inv->vm->outputs[out->extent]);
    must(bytes);
    memcpy(&rows, bytes, sizeof(rows));
    if (rows < 0 || rows > value->shape.dims[0]) {
        return error_set(&inv->error, ST_INTERNAL, "an operator gives more rows than it may");
    }
    if ((r->fixed_dims & 1) && rows != r->bound.dims[0]) {
        return error_set(&inv->error, ST_INVALID,
                         "a result that depends on data has %" PRId64 " rows, expected %" PRId64,
                         rows, r->bound.dims[0]);
    }
    value->shape.dims[0] = rows;
    return ST_OK;
}

static enum status read_out(struct rt_invocation *inv, const struct rt_block *block,
                            const struct rt_block_out *out, struct vm_value *value)
{
    struct vm *vm = inv->vm;
    const struct rt_value *v = &block->graph.values[block->graph.outputs[out->index]];
    const struct rt_plan_result *result = &vm->plan->results[out->index];
    *value = (struct vm_value){.kind = v->kind,
                               .number = rt_words_number(vm->plan, out->index, vm->words)};
    if (v->kind == RT_TENSOR) {
        value->shape = result->shape;
        value->memory = vm->outputs[out->index];
        value->memory->refs++;
    }
    return out->extent == RT_NO_EXTENT ? ST_OK : read_extent(inv, out, value);
}

/* All new values are taken before one register changes: inputs may be among them. */
static enum status take_outs(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = inv->vm;
    enum status status = ST_OK;
    uint32_t count = 0;
    for (; status == ST_OK && count < block->out_count; count++) {
        const struct rt_block_out *out = &block->outs[count];
        if (out->is_input) {
            vm->fresh[count] = vm_share(&vm->registers[block->ins[out->index]]);
        } else {
            status = read_out(inv, block, out, &vm->fresh[count]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (status == ST_OK) {
            vm_put(vm, block->outs[i].reg, vm->fresh[i]);
        } else {
            vm_drop(vm, vm->fresh[i].memory);
        }
    }
    return status;
}

/* What a block held while it ran, also one that did not come that far. */
static void leave_block(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->code->outs_max; i++) {
        vm_drop(vm, vm->outputs[i]);
        vm->outputs[i] = NULL;
    }
    vm_drop(vm, vm->arena);
    vm->arena = NULL;
    rt_plan_unref(vm->plan);
    vm->plan = NULL;
}

static enum status finish_block(struct rt_invocation *inv, enum status status)
{
    struct vm *vm = inv->vm;
    if (vm->plan && !vm->plan->is_empty && vm->reached != ST_OK) {
        rt_invocation_replace_semaphore(inv);
        vm->reached = ST_OK;
    }
    if (status == ST_OK) {
        read_written(vm);
        status = take_outs(inv, vm->code->blocks[vm->code->steps[vm->pc].target]);
    }
    leave_block(vm);
    vm->pc++;
    return status;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The caller's memory gets a copy; otherwise the result is where it was computed. */
static enum status give_tensor(struct rt_invocation *inv, uint32_t index, struct vm_value *value)
{
    const struct rt_io *io = rt_method_result(inv->method, index);
    struct hal_binding *bound = &inv->bound[index];
    struct vm_memory *memory;
    size_t bytes;
    TRY(shape_bytes(&value->shape, io->dtype, &bytes, &inv->error));
    if (bound->buffer && !in_range(bound->offset, bytes, hal_buffer_size(bound->buffer))) {
        return error_set(&inv->error, ST_INVALID,
                         "result '%s' needs %zu bytes at %zu, its memory has %zu", io->name, bytes,
                         bound->offset, hal_buffer_size(bound->buffer));
    }
    bool is_kept = value->memory->owner == VM_OWNER_POOL || value->memory->owner == VM_OWNER_INPUT;
    if (!bound->buffer && is_kept) {
        *bound = retain(value->memory->binding);
    } else if (!bound->buffer) {
        TRY(vm_allocate(inv, bytes, &memory)); /* the next call writes to a state's memory */
        *bound = retain(memory->binding);
        vm_drop(inv->vm, memory);
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

static enum status give_results(struct rt_invocation *inv)
{
    const struct rt_code *code = inv->vm->code;
    for (uint32_t i = 0; i < code->result_count; i++) {
        struct vm_value *value = &inv->vm->registers[code->results[i].reg];
        const struct rt_io *io = rt_method_result(inv->method, i);
        bool is_tensor = io->kind == RT_IO_TENSOR;
        if ((is_tensor || code->results[i].is_computed) &&
            value->kind != code->registers[code->results[i].reg].kind) {
            return error_set(&inv->error, ST_INVALID, "result '%s' was never written", io->name);
        }
        if (is_tensor) {
            TRY(give_tensor(inv, i, value));
        } else {
            rt_invocation_give_scalar(inv, i, value->number);
        }
    }
    return ST_OK;
}

/* A buffer whose new content is not where it stays: another register's, or the caller's. */
static enum status move_to_spare(struct rt_invocation *inv, const struct rt_method_state *use)
{
    struct vm_value *value = &inv->vm->registers[use->reg];
    size_t size = inv->vm->code->registers[use->reg].bytes, bytes;
    TRY(shape_bytes(&value->shape, inv->vm->code->registers[use->reg].dtype, &bytes, &inv->error));
    if (bytes != size) {
        return error_set(&inv->error, ST_INVALID, "a mutable buffer of %zu bytes gets %zu", size,
                         bytes);
    }
    TRY(rt_state_reserve(inv->state, use->slot, &inv->error));
    rt_state_spoil(inv->state, use->slot);
    if (bytes > 0) {
        memcpy(hal_buffer_map(inv->state->spare[use->slot]), vm_map(value->memory), bytes);
    }
    return ST_OK;
}

/* Before spare memory is overwritten, what another buffer has there for a value is copied. */
static enum status save_from_spares(struct rt_invocation *inv)
{
    const struct rt_method *method = inv->method;
    for (uint32_t i = 0; i < method->state_count; i++) {
        uint32_t reg = method->states[i].reg;
        struct vm_value *value = &inv->vm->registers[reg], copy = *value;
        if (value->kind != RT_TENSOR || value->memory->owner != VM_OWNER_SPARE ||
            value->memory->state == i) {
            continue;
        }
        size_t bytes = value->memory->binding.length;
        TRY(vm_allocate(inv, bytes, &copy.memory));
        if (bytes > 0) {
            memcpy(vm_map(copy.memory), vm_map(value->memory), bytes);
        }
        vm_put(inv->vm, reg, copy);
    }
    return ST_OK;
}

static bool is_unchanged(const struct rt_invocation *inv, uint32_t i)
{
    const struct rt_method_state *use = &inv->method->states[i];
    const struct vm_memory *memory = inv->vm->registers[use->reg].memory;
    return memory->owner == VM_OWNER_STATE &&
           memory->binding.buffer == inv->state->current[use->slot];
}

static enum status advance_states(struct rt_invocation *inv)
{
    const struct rt_method *method = inv->method;
    TRY(save_from_spares(inv));
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct vm_value *value = &inv->vm->registers[method->states[i].reg];
        if (value->kind != RT_TENSOR) {
            return error_set(&inv->error, ST_INVALID, "a mutable buffer lost its content");
        }
        if (value->memory->owner != VM_OWNER_SPARE && !is_unchanged(inv, i)) {
            TRY(move_to_spare(inv, &method->states[i]));
            inv->vm->spares[i].written = (struct rt_rows){0};
        }
    }
    for (uint32_t i = 0; i < method->state_count; i++) {
        if (!is_unchanged(inv, i)) {
            rt_state_advance(inv->state, method->states[i].slot, inv->vm->spares[i].written);
        }
    }
    return ST_OK;
}

static void end(struct rt_invocation *inv, enum status status)
{
    struct vm *vm = inv->vm;
    if (status == ST_OK) {
        status = give_results(inv);
    }
    if (status == ST_OK && inv->state) {
        status = advance_states(inv);
    }
    leave_block(vm);
    vm_release(vm);
    rt_invocation_end(inv, status);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static void walk(struct rt_invocation *inv, enum status status);

/* Worker, or the thread that submitted the block. */
static void on_block_reached(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct rt_invocation *inv = LIST_ENTRY(waiter, struct rt_invocation, waiter);
    struct vm *vm = inv->vm;
    vm->reached = status;
    if (atomic_fetch_add_explicit(&vm->arrivals, 1, memory_order_acq_rel) == 1) {
        vm->caller = HAL_CALLER_QUICK;
        walk(inv, finish_block(inv, status));
    }
}

/* True: the block is complete, vm->reached says how. False: somebody else goes on. */
static bool await_block(struct rt_invocation *inv)
{
    struct vm *vm = inv->vm;
    struct hal_semaphore *semaphore = hal_semaphore_ref(inv->semaphore);
    atomic_store_explicit(&vm->arrivals, 0, memory_order_relaxed);
    inv->waiter.value = inv->timepoint;
    inv->waiter.fn = on_block_reached;
    hal_semaphore_on(semaphore, &inv->waiter);
    bool is_second = atomic_fetch_add_explicit(&vm->arrivals, 1, memory_order_acq_rel) == 1;
    hal_semaphore_unref(semaphore);
    return is_second;
}

static enum status check_step(struct rt_invocation *inv)
{
    if (atomic_load_explicit(inv->cancel, memory_order_relaxed)) {
        return error_set(&inv->error, ST_CANCELLED, "%s", status_text(ST_CANCELLED));
    }
    if (inv->vm->steps_left == 0) {
        return error_set(&inv->error, ST_INVALID, "the call takes more than %llu steps",
                         (unsigned long long)inv->method->steps_max);
    }
    inv->vm->steps_left--;
    return ST_OK;
}

static void walk(struct rt_invocation *inv, enum status status)
{
    struct vm *vm = inv->vm;
    while (status == ST_OK && vm->pc < vm->code->step_count) {
        const struct rt_step *step = &vm->code->steps[vm->pc];
        status = check_step(inv);
        if (status == ST_OK && step->kind != RT_STEP_BLOCK) {
            status = vm_host_step(inv, step);
        } else if (status == ST_OK) {
            status = begin_block(inv, vm->code->blocks[step->target]);
            if (status == ST_OK && !vm->plan->is_empty && !await_block(inv)) {
                return;
            }
            status = status == ST_OK && !vm->plan->is_empty ? vm->reached : status;
            status = finish_block(inv, status);
        }
    }
    end(inv, status);
}

/* Blocks after which a call has used as much of the thread of a caller with little time as it may.
 */
#define QUICK_BLOCKS_MAX 16

void vm_run(struct rt_invocation *inv, enum hal_caller caller)
{
    struct vm *vm = inv->vm;
    vm->pc = 0;
    vm->reached = ST_OK;
    vm->steps_left = inv->method->steps_max;
    bool is_long = vm->code->has_loop || vm->code->block_count > QUICK_BLOCKS_MAX;
    vm->caller = caller == HAL_CALLER_QUICK && is_long ? HAL_CALLER_BUSY : caller;
    load_scalars(vm);
    load_inputs(inv);
    load_states(inv);
    walk(inv, ST_OK);
}
