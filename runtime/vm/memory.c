/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"
#include "runtime/vm/vm.h"

/* Ranges that a call keeps for later statements. */
#define IDLE_MAX 32

/* Small values are rounded up to common sizes, so that they fit each other's memory. */
#define BYTES_MIN 256

static struct vm_memory *take_unused(struct vm *vm)
{
    struct vm_memory *memory = vm->unused;
    must(memory); /* vm_new() has made one for each range that can be in use */
    vm->unused = memory->next;
    *memory = (struct vm_memory){.refs = 1};
    return memory;
}

static void forget(struct vm *vm, struct vm_memory *memory)
{
    hal_buffer_unref(memory->binding.buffer);
    memory->binding.buffer = NULL;
    memory->next = vm->unused;
    vm->unused = memory;
}

static void drop_idle(struct vm *vm)
{
    while (vm->idle) {
        struct vm_memory *memory = vm->idle;
        vm->idle = memory->next;
        forget(vm, memory);
    }
    vm->idle_count = 0;
}

/* The smallest idle range that holds |bytes| without wasting more than that. */
static struct vm_memory *take_idle(struct vm *vm, size_t bytes)
{
    struct vm_memory **best = NULL;
    for (struct vm_memory **at = &vm->idle; *at; at = &(*at)->next) {
        size_t size = hal_buffer_size((*at)->binding.buffer);
        bool fits = size >= bytes && size / 2 <= bytes;
        best = fits && (!best || size < hal_buffer_size((*best)->binding.buffer)) ? at : best;
    }
    if (!best) {
        return NULL;
    }
    struct vm_memory *memory = *best;
    *best = memory->next;
    vm->idle_count--;
    memory->refs = 1;
    return memory;
}

enum status vm_allocate(struct rt_invocation *inv, size_t bytes, struct vm_memory **out_memory)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    struct vm *vm = vm_of(inv);
    size_t size = bytes < BYTES_MIN ? BYTES_MIN : bytes;
    struct vm_memory *memory = bytes ? take_idle(vm, size) : NULL;
    struct hal_buffer *buffer = NULL;
    if (!memory && bytes) {
        enum status status = hal_pool_reserve(inv->run_pool, size, &buffer, &inv->error);
        if (status == ST_EXHAUSTED && vm->idle) {
            drop_idle(vm);
            status = hal_pool_reserve(inv->run_pool, size, &buffer, &inv->error);
        }
        if (status != ST_OK) {
            return status;
        }
        inv->bytes += size;
    }
    if (!memory) {
        memory = take_unused(vm);
        memory->binding.buffer = buffer;
    }
    memory->owner = VM_OWNER_POOL;
    memory->binding.length = bytes;
    *out_memory = memory;
    return ST_OK;
}

struct vm_memory *vm_borrow(struct vm *vm, struct hal_binding binding, enum vm_owner owner)
{
    OBJ_CHECK(vm, VM_MAGIC);
    struct vm_memory *memory = take_unused(vm);
    memory->binding = binding;
    memory->binding.buffer = binding.buffer ? hal_buffer_ref(binding.buffer) : NULL;
    memory->owner = owner;
    return memory;
}

void vm_drop(struct vm *vm, struct vm_memory *memory)
{
    OBJ_CHECK(vm, VM_MAGIC);
    if (!memory || --memory->refs > 0) {
        return;
    }
    if (memory->owner == VM_OWNER_SPARE) {
        vm->spares[memory->state].is_used = false;
    }
    if (memory->owner == VM_OWNER_POOL && memory->binding.buffer && vm->idle_count < IDLE_MAX) {
        memory->next = vm->idle;
        vm->idle = memory;
        vm->idle_count++;
    } else {
        forget(vm, memory);
    }
}

void vm_release(struct vm *vm)
{
    OBJ_CHECK(vm, VM_MAGIC);
    for (uint32_t i = 0; i < vm->code->register_count; i++) {
        vm_put(vm, i, (struct vm_value){.kind = RT_NONE});
    }
    drop_idle(vm);
}

struct vm_value vm_share(const struct vm_value *value)
{
    if (value->memory) {
        must(value->memory->refs > 0);
        value->memory->refs++;
    }
    return *value;
}

void vm_put(struct vm *vm, uint32_t reg, struct vm_value value)
{
    OBJ_CHECK(vm, VM_MAGIC);
    struct vm_memory *old = vm->registers[reg].memory;
    vm->registers[reg] = value;
    vm_drop(vm, old);
}

uint8_t *vm_map(const struct vm_memory *memory)
{
    uint8_t *base = memory->binding.buffer ? hal_buffer_map(memory->binding.buffer) : NULL;
    return base ? base + memory->binding.offset : NULL;
}
