/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/thread_memory.h"

#include <sys/mman.h>

#include "base/asan.h"
#include "base/bytes.h"
#include "base/check.h"
#include "hal/cpu/map.h"

/* A smaller workspace needs few small pages, and would take a huge one as a whole. */
#define HUGE_BYTES_MIN ((size_t)1 << 20)

/* Memory goes back in huge pages, so that none of them is split. Small pages divide them. */
_Static_assert(HAL_CPU_WORKSPACE_BYTES % HAL_CPU_HUGE_PAGE == 0, "whole huge pages");

enum { FREE, USED, TRIMMED };

static void *map(size_t bytes)
{
    void *memory = hal_cpu_map_aligned(bytes);
    asan_poison(memory, memory ? bytes : 0);
    return memory;
}

static void unmap(void *memory, size_t bytes)
{
    if (memory) {
        asan_unpoison(memory, bytes);
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
        memory->is_huge = true;
        hal_cpu_map_huge(memory->workspace, HAL_CPU_WORKSPACE_BYTES);
    }
    size_t pages = align_up(bytes, HAL_CPU_HUGE_PAGE);
    memory->is_idle = false;
    memory->used = bytes;
    memory->touched = pages > memory->touched ? pages : memory->touched;
    asan_unpoison(memory->workspace, bytes);
    return memory->workspace;
}

void hal_cpu_workspace_give(struct hal_cpu_thread_memory *memory)
{
    asan_poison(memory->workspace, memory->used);
    must(change_state(memory, USED, FREE));
}

size_t hal_cpu_workspace_trim(struct hal_cpu_thread_memory *memory, size_t bytes_max)
{
    size_t given = 0, pages = bytes_max / HAL_CPU_HUGE_PAGE;
    size_t most = (pages ? pages : 1) * HAL_CPU_HUGE_PAGE;
    if (!change_state(memory, FREE, TRIMMED)) {
        return 0;
    }
    if (memory->is_idle && memory->touched > 0) {
        given = memory->touched < most ? memory->touched : most;
        memory->touched -= given;
        must(madvise(memory->workspace + memory->touched, given, MADV_DONTNEED) == 0);
    }
    memory->is_idle = true;
    must(change_state(memory, TRIMMED, FREE));
    return given;
}
