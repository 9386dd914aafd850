/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/thread_memory.h"

#include <sys/mman.h>

#include "base/check.h"
#include "hal/asan.h"
#include "hal/cpu/device.h"

/* A smaller workspace needs few small pages, and would take a huge one as a whole. */
#define HUGE_BYTES_MIN ((size_t)1 << 20)

#define GONE_AGE 2 /* the system has the memory */

enum { FREE, USED, TRIMMED };

static void *map(size_t bytes)
{
    void *memory = hal_cpu_map_aligned(bytes);
    hal_asan_poison(memory, memory ? bytes : 0);
    return memory;
}

static void unmap(void *memory, size_t bytes)
{
    if (memory) {
        hal_asan_unpoison(memory, bytes);
        must(munmap(memory, bytes) == 0);
    }
}

bool hal_cpu_thread_memory_init(struct hal_cpu_thread_memory *memory)
{
    *memory = (struct hal_cpu_thread_memory){.scratch = map(HAL_CPU_SCRATCH_BYTES)};
    if (!memory->scratch) {
        return false;
    }
    memory->workspace = map(HAL_CPU_WORKSPACE_BYTES);
    memory->age = GONE_AGE;
    return true;
}

void hal_cpu_thread_memory_fini(struct hal_cpu_thread_memory *memory)
{
    must(atomic_load(&memory->state) == FREE);
    unmap(memory->scratch, HAL_CPU_SCRATCH_BYTES);
    unmap(memory->workspace, HAL_CPU_WORKSPACE_BYTES);
    *memory = (struct hal_cpu_thread_memory){0};
}

static bool change_state(struct hal_cpu_thread_memory *memory, unsigned from, unsigned to)
{
    return atomic_compare_exchange_strong(&memory->state, &from, to);
}

uint8_t *hal_cpu_workspace_take(struct hal_cpu_thread_memory *memory, size_t bytes)
{
    if (!memory->workspace || bytes > HAL_CPU_WORKSPACE_BYTES ||
        !change_state(memory, FREE, USED)) {
        return NULL;
    }
    if (bytes >= HUGE_BYTES_MIN && !memory->is_huge) {
        memory->is_huge = true; /* a hint: not every system has them */
        (void)madvise(memory->workspace, HAL_CPU_WORKSPACE_BYTES, MADV_HUGEPAGE);
    }
    memory->age = 0;
    memory->used = bytes;
    hal_asan_unpoison(memory->workspace, bytes);
    return memory->workspace;
}

void hal_cpu_workspace_give(struct hal_cpu_thread_memory *memory)
{
    hal_asan_poison(memory->workspace, memory->used);
    must(change_state(memory, USED, FREE));
}

void hal_cpu_workspace_trim(struct hal_cpu_thread_memory *memory)
{
    if (!change_state(memory, FREE, TRIMMED)) {
        return;
    }
    if (memory->age == 1) {
        must(madvise(memory->workspace, HAL_CPU_WORKSPACE_BYTES, MADV_DONTNEED) == 0);
    }
    memory->age += memory->age < GONE_AGE;
    must(change_state(memory, TRIMMED, FREE));
}
