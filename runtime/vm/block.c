/* SPDX-License-Identifier: MIT */
/* One block of a call. Its inputs come from registers. Its outputs get memory of the pool, or the
 * memory of a state's next generation, and become registers when the block has run. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "hal/queue.h"
#include "runtime/call/inside.h"
#include "runtime/call/messages.h"
#include "runtime/call/overwrite.h"
#include "runtime/program/state_cells.h"
#include "runtime/vm/vm.h"

static enum status gather(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = vm_of(inv);
    for (uint32_t i = 0; i < block->graph.input_count; i++) {
        const struct rt_value *v = &block->graph.values[block->graph.inputs[i]];
        const struct vm_value *value = &vm->registers[block->ins[i]];
        bool is_needed = v->kind == RT_TENSOR || !rt_value_is_fixed(v);
        if (is_needed && value->kind != v->kind) {
            return error_set(&inv->error, ST_INVALID, "a value is read before anything wrote it");
        }
        vm->given[i] = (struct rt_block_input){
            .shape = &value->shape,
            .number = value->number,
            .label = i < block->given_count ? inv->given[i].label : NULL,
        };
        vm->slots[RT_SLOT_INPUT + i] =
            value->memory ? value->memory->binding : (struct hal_binding){0};
    }
    return ST_OK;
}

/* The next generation of the mutable buffer in |reg| is written where it will stay. */
static bool take_spare(struct rt_invocation *inv, uint32_t reg, size_t bytes,
                       struct vm_memory **out_memory)
{
    const struct rt_method *method = inv->method;
    struct vm *vm = vm_of(inv);
    for (uint32_t i = 0; inv->state && i < method->state_count; i++) {
        const struct rt_method_state *use = &method->states[i];
        if (use->reg != reg || !use->is_written || vm->spares[i].is_used ||
            bytes != vm->code->registers[reg].bytes ||
            rt_state_reserve(inv->state, use->cell, NULL) != ST_OK) {
            continue;
        }
        *out_memory =
            vm_borrow(vm, hal_binding_whole(inv->state->spare[use->cell]), VM_OWNER_SPARE);
        (*out_memory)->state = i;
        struct rt_rows stale = rt_state_spoil(inv->state, use->cell);
        bool is_other = vm->spares[i].is_spoiled || vm->spares[i].is_overwritten;
        vm->spares[i].is_used = true;
        vm->spares[i].stale = is_other ? (struct rt_rows){0} : stale;
        vm->spares[i].is_spoiled = true;
        return true;
    }
    return false;
}

/* Does another out of |block| pass on the old content of register |reg|? */
static bool is_passed_on(const struct rt_block *block, uint32_t reg)
{
    for (uint32_t i = 0; i < block->out_count; i++) {
        if (block->outs[i].is_input && block->ins[block->outs[i].index] == reg) {
            return true;
        }
    }
    return false;
}

/* The next generation of a mutable buffer is written over the present one, if only the register of
 * |out| has that. */
static bool take_current(struct rt_invocation *inv, const struct rt_block *block,
                         const struct rt_block_out *out, struct vm_memory **out_memory)
{
    struct vm *vm = vm_of(inv);
    const struct rt_plan_result *result = &vm->plan->results[out->index];
    struct vm_memory *memory = vm->registers[out->reg].memory;
    struct hal_buffer *target;
    if (!inv->state || !result->may_overwrite || block->ins[result->base] != out->reg || !memory ||
        memory->owner != VM_OWNER_STATE || memory->refs != 1 || is_passed_on(block, out->reg)) {
        return false;
    }
    const struct rt_method_state *use = &inv->method->states[memory->state];
    if (use->reg != out->reg || !use->is_written ||
        result->bytes != vm->code->registers[out->reg].bytes ||
        memory->binding.buffer != inv->state->current[use->cell] ||
        rt_state_open(inv->state, use->cell, true, &target, NULL) != ST_OK ||
        target != memory->binding.buffer) {
        return false;
    }
    memory->refs++;
    *out_memory = memory;
    return true;
}

/* The method's state whose memory is output |index| of the running block: spare memory, or the
 * present generation that is overwritten. */
static bool find_written(const struct vm *vm, uint32_t index, enum vm_owner owner,
                         uint32_t *out_state)
{
    const struct vm_memory *memory = vm->outputs[index];
    if (!memory || memory->owner != owner) {
        return false;
    }
    *out_state = memory->state;
    return true;
}

static struct rt_overwrite overwrite_of(struct rt_invocation *inv, uint32_t index, uint32_t state)
{
    return (struct rt_overwrite){vm_of(inv)->plan,
                                 index,
                                 inv->method->states[state].cell,
                                 inv->state,
                                 vm_of(inv)->words,
                                 vm_map(vm_of(inv)->workspace)};
}

/* The memory that the state may take from now on. New memory gets all rows if earlier blocks have
 * written in place. */
static enum status charge(struct rt_invocation *inv, size_t log_bytes)
{
    struct vm *vm = vm_of(inv);
    size_t bytes = 0;
    uint32_t state;
    bool writes = false;
    for (uint32_t i = 0; i < vm->plan->result_count; i++) {
        bool is_spare = find_written(vm, i, VM_OWNER_SPARE, &state);
        if (is_spare || find_written(vm, i, VM_OWNER_STATE, &state)) {
            const struct rt_overwrite overwrite = overwrite_of(inv, i, state);
            struct vm_spare *spare = &vm->spares[state];
            rt_overwrite_grow(&overwrite, !is_spare || (spare->has_base && !spare->is_overwritten),
                              is_spare ? &spare->grown : &spare->grown_in_place, &bytes);
            writes = true;
        }
    }
    return writes ? rt_state_charge(inv->state, bytes, log_bytes, &inv->error) : ST_OK;
}

/* Before the block runs: rows that it overwrites are logged. */
static enum status begin_overwrites(struct rt_invocation *inv)
{
    struct vm *vm = vm_of(inv);
    size_t bytes = 0;
    uint32_t state;
    for (uint32_t i = 0; i < vm->plan->result_count; i++) {
        if (find_written(vm, i, VM_OWNER_STATE, &state)) {
            const struct rt_overwrite overwrite = overwrite_of(inv, i, state);
            rt_overwrite_measure(&overwrite, &bytes);
        }
    }
    TRY(charge(inv, bytes));
    if (bytes > 0) {
        TRY(rt_state_reserve_log(inv->state, bytes, &inv->error));
    }
    for (uint32_t i = 0; i < vm->plan->result_count; i++) {
        if (find_written(vm, i, VM_OWNER_STATE, &state)) {
            const struct rt_overwrite overwrite = overwrite_of(inv, i, state);
            rt_overwrite_begin(&overwrite);
        }
    }
    return ST_OK;
}

/* The words for the block, once its inputs and outputs have their memory. */
static void put_words(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = vm_of(inv);
    uint8_t *workspace = vm_map(vm->workspace);
    uint32_t state;
    rt_messages_put(vm->plan, vm->words, workspace);
    for (uint32_t i = 0; i < block->graph.output_count; i++) {
        uint32_t base = vm->plan->results[i].base;
        if (!find_written(vm, i, VM_OWNER_SPARE, &state)) {
            continue;
        }
        uint32_t cell = inv->method->states[state].cell;
        vm->spares[state].has_base = base != RT_NO_BASE && vm->slots[RT_SLOT_INPUT + base].buffer ==
                                                               inv->state->current[cell];
        if (vm->spares[state].has_base) {
            rt_messages_put_stale(vm->plan, i, &vm->spares[state].stale, workspace);
        }
    }
}

/* Reads the block's answers. What several blocks have overwritten adds up. */
static void read_written(struct rt_invocation *inv)
{
    struct vm *vm = vm_of(inv);
    uint32_t state;
    for (uint32_t i = 0; i < vm->plan->result_count; i++) {
        struct rt_rows written = {0};
        if (find_written(vm, i, VM_OWNER_STATE, &state)) {
            struct vm_spare *spare = &vm->spares[state];
            written = rt_messages_written(vm->plan, i, vm_map(vm->workspace));
            spare->written =
                spare->is_overwritten ? rt_rows_join(spare->written, written) : written;
            spare->is_overwritten = true;
        } else if (find_written(vm, i, VM_OWNER_SPARE, &state)) {
            struct vm_spare *spare = &vm->spares[state];
            if (spare->has_base && !spare->is_overwritten) {
                written = rt_messages_written(vm->plan, i, vm_map(vm->workspace));
            }
            spare->written = written;
        }
    }
}

static enum status allocate_outputs(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = vm_of(inv);
    const struct rt_graph *graph = &block->graph;
    for (uint32_t i = 0; i < block->out_count; i++) {
        const struct rt_block_out *out = &block->outs[i];
        if (!out->is_input && !vm->outputs[out->index] &&
            graph->values[graph->outputs[out->index]].kind == RT_TENSOR &&
            !take_current(inv, block, out, &vm->outputs[out->index])) {
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
    TRY(vm_allocate(inv, vm->plan->workspace_bytes, &vm->workspace));
    vm->slots[RT_SLOT_WORKSPACE] = vm->workspace->binding;
    if (inv->method->poison_workspaces && vm->plan->workspace_bytes > 0) {
        memset(vm_map(vm->workspace), 0xff, vm->plan->workspace_bytes);
    }
    put_words(inv, block);
    return begin_overwrites(inv);
}

static enum status submit_block(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = vm_of(inv);
    struct hal_profile *spans;
    TRY(rt_profile_note(inv->profile, block, vm->plan, &spans, &inv->error));
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
        .keeps_slots = inv->method->poison_workspaces,
        .profile = spans,
    };
    return hal_queue_submit(inv->method->device, &submission, &inv->error);
}

enum status vm_block_begin(struct rt_invocation *inv, struct rt_block *block)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    TRY(gather(inv, block));
    TRY(rt_block_plan(block, vm_of(inv)->given, vm_of(inv)->words, &vm_of(inv)->plan, &inv->error));
    TRY(allocate_outputs(inv, block));
    return vm_of(inv)->plan->is_empty ? ST_OK : submit_block(inv, block);
}

static enum status read_extent(struct rt_invocation *inv, const struct rt_block_out *out,
                               struct vm_value *value)
{
    const struct rt_register *r = &vm_of(inv)->code->registers[out->reg];
    int64_t rows;
    const uint8_t *bytes = vm_map(vm_of(inv)->outputs[out->extent]);
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
    struct vm *vm = vm_of(inv);
    const struct rt_value *v = &block->graph.values[block->graph.outputs[out->index]];
    const struct rt_plan_result *result = &vm->plan->results[out->index];
    *value = (struct vm_value){.kind = v->kind,
                               .number = rt_messages_number(vm->plan, out->index, vm->words)};
    if (v->kind == RT_TENSOR) {
        value->shape = result->shape;
        value->memory = vm->outputs[out->index];
        value->memory->refs++;
    }
    return out->extent == RT_NO_EXTENT ? ST_OK : read_extent(inv, out, value);
}

/* Takes all new values before a register changes, because inputs may be among them. */
static enum status take_outs(struct rt_invocation *inv, const struct rt_block *block)
{
    struct vm *vm = vm_of(inv);
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

void vm_block_leave(struct vm *vm)
{
    OBJ_CHECK(vm, VM_MAGIC);
    for (uint32_t i = 0; i < vm->code->outs_max; i++) {
        vm_drop(vm, vm->outputs[i]);
        vm->outputs[i] = NULL;
    }
    vm_drop(vm, vm->workspace);
    vm->workspace = NULL;
    rt_plan_unref(vm->plan);
    vm->plan = NULL;
}

enum status vm_block_finish(struct rt_invocation *inv, enum status status)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    struct vm *vm = vm_of(inv);
    if (vm->plan && !vm->plan->is_empty && vm->reached != ST_OK) {
        rt_invocation_replace_semaphore(inv);
        vm->reached = ST_OK;
    }
    if (status == ST_OK) {
        read_written(inv);
        status = take_outs(inv, vm->code->blocks[vm->code->stmts[vm->pc].target]);
    }
    vm_block_leave(vm);
    vm->pc++;
    return status;
}
