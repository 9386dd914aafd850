/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/semaphore.h"
#include "runtime/call/inside.h"
#include "runtime/program/state_cells.h"
#include "runtime/vm/vm.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* Every register, input and output of a block may hold memory of its own, and some more is idle. */
static size_t memories_max(const struct rt_code *code)
{
    return (size_t)code->register_count + code->ins_max + 2 * (size_t)code->outs_max + 64;
}

struct vm *vm_new(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
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
    vm->magic = VM_MAGIC;
    vm->code = code;
    vm->heap_bytes = end;
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

static void load_inputs(struct rt_invocation *inv)
{
    for (uint32_t i = 0; i < rt_method_input_count(inv->method); i++) {
        if (rt_method_input(inv->method, i)->kind == RT_IO_TENSOR) {
            const struct rt_bound_input *input = &inv->inputs[i];
            vm_put(
                vm_of(inv), i,
                (struct vm_value){.kind = RT_TENSOR,
                                  .shape = input->shape,
                                  .memory = vm_borrow(vm_of(inv), input->binding, VM_OWNER_INPUT)});
        }
    }
}

static void load_states(struct rt_invocation *inv)
{
    const struct rt_method *method = inv->method;
    const struct rt_state_cells *cells = rt_program_state_cells(method->program);
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct rt_method_state *use = &method->states[i];
        struct hal_buffer *buffer =
            inv->state ? inv->state->current[use->cell] : cells->items[use->cell].initial;
        struct vm_memory *memory = vm_borrow(vm_of(inv), hal_binding_whole(buffer), VM_OWNER_STATE);
        memory->state = i;
        vm_of(inv)->spares[i] = (struct vm_spare){0};
        if (inv->state) {
            vm_of(inv)->spares[i].grown = rt_growth_begin(inv->state, use->cell);
            vm_of(inv)->spares[i].grown_in_place = vm_of(inv)->spares[i].grown;
        }
        vm_put(vm_of(inv), use->reg,
               (struct vm_value){.kind = RT_TENSOR,
                                 .shape = vm_of(inv)->code->registers[use->reg].bound,
                                 .memory = memory});
    }
}

static void load_scalars(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->code->register_count; i++) {
        const struct rt_scalar *initial = &vm->code->registers[i].initial;
        vm->registers[i] = (struct vm_value){.kind = initial->kind, .number = initial->number};
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

static void end(struct rt_invocation *inv, enum status status)
{
    struct vm *vm = vm_of(inv);
    if (status == ST_OK) {
        status = vm_give_results(inv);
    }
    status = rt_invocation_judge(inv, status);
    if (status == ST_OK && inv->state) {
        status = vm_advance_states(inv);
    }
    vm_block_leave(vm);
    vm_release(vm);
    rt_invocation_finish(inv, status);
}

static void walk(struct rt_invocation *inv, enum status status);

/* On a worker, or on the thread that submitted the block. */
static void on_block_reached(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct rt_invocation *inv = LIST_ENTRY(waiter, struct rt_invocation, waiter);
    struct vm *vm = vm_of(inv);
    vm->reached = status;
    if (atomic_fetch_add_explicit(&vm->arrivals, 1, memory_order_acq_rel) == 1) {
        vm->caller = HAL_CALLER_QUICK;
        walk(inv, vm_block_finish(inv, status));
    }
}

/*
 * True: the block is complete, and vm->reached is its status. False: the completing thread goes on.
 */
static bool await_block(struct rt_invocation *inv)
{
    struct vm *vm = vm_of(inv);
    struct hal_semaphore *semaphore = hal_semaphore_ref(inv->semaphore);
    atomic_store_explicit(&vm->arrivals, 0, memory_order_relaxed);
    inv->waiter.value = inv->timepoint;
    inv->waiter.fn = on_block_reached;
    hal_semaphore_on(semaphore, &inv->waiter);
    bool is_second = atomic_fetch_add_explicit(&vm->arrivals, 1, memory_order_acq_rel) == 1;
    hal_semaphore_unref(semaphore);
    return is_second;
}

static enum status check_stmt(struct rt_invocation *inv)
{
    if (atomic_load_explicit(inv->cancel, memory_order_relaxed)) {
        return error_set(&inv->error, ST_CANCELLED, "%s", status_text(ST_CANCELLED));
    }
    if (vm_of(inv)->stmts_left == 0) {
        return error_set(&inv->error, ST_INVALID, "the call executes more than %llu statements",
                         (unsigned long long)inv->method->statements_max);
    }
    vm_of(inv)->stmts_left--;
    return ST_OK;
}

static void walk(struct rt_invocation *inv, enum status status)
{
    struct vm *vm = vm_of(inv);
    while (status == ST_OK && vm->pc < vm->code->stmt_count) {
        const struct rt_stmt *stmt = &vm->code->stmts[vm->pc];
        status = check_stmt(inv);
        if (status == ST_OK && stmt->kind != RT_STMT_BLOCK) {
            status = vm_host_stmt(inv, stmt);
        } else if (status == ST_OK) {
            status = vm_block_begin(inv, vm->code->blocks[stmt->target]);
            if (status == ST_OK && !vm->plan->is_empty && !await_block(inv)) {
                return;
            }
            status = status == ST_OK && !vm->plan->is_empty ? vm->reached : status;
            status = vm_block_finish(inv, status);
        }
    }
    end(inv, status);
}

/* After this many blocks a call has used enough of the thread of a caller with little time. */
#define QUICK_BLOCKS_MAX 16

void vm_run(struct rt_invocation *inv, enum hal_caller caller)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    struct vm *vm = vm_of(inv);
    vm->pc = 0;
    vm->reached = ST_OK;
    vm->stmts_left = inv->method->statements_max;
    bool is_long = vm->code->has_loop || vm->code->block_count > QUICK_BLOCKS_MAX;
    vm->caller = caller == HAL_CALLER_QUICK && is_long ? HAL_CALLER_BUSY : caller;
    load_scalars(vm);
    load_inputs(inv);
    load_states(inv);
    walk(inv, ST_OK);
}
