/* SPDX-License-Identifier: MIT */
/*
 * The memory of a thread that runs submissions: scratch for the kernels, and a workspace.
 *
 * The thread that begins a submission uses its workspace in place of the memory of the transient
 * slot. So calls that follow each other on one core use the same memory, whatever model they belong
 * to, and find it in the core's own cache. Memory that submissions bring is mostly in the cache of
 * another core or in none: a line takes five to seven times as long to get from there. Large
 * workspaces lie in huge pages. docs/project/figures.md has what both gain.
 *
 * A workspace belongs to one submission at a time. If the thread leaves a submission for another
 * one, the other one uses the memory that it has brought.
 */
#ifndef PTED_HAL_CPU_THREAD_MEMORY_H
#define PTED_HAL_CPU_THREAD_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HAL_CPU_SCRATCH_BYTES ((size_t)16 << 20)
#define HAL_CPU_WORKSPACE_BYTES ((size_t)64 << 20) /* larger ones do not stay in a cache */

struct hal_cpu_thread_memory {
    void *scratch;      /* HAL_CPU_SCRATCH_BYTES, page aligned; the thread's alone */
    uint8_t *workspace; /* NULL: there were no addresses for it */
    atomic_uint state;  /* of the workspace: free, or whose it is; guards what follows */
    bool is_huge;      /* huge pages have been asked for */
    bool is_idle;      /* hal_cpu_workspace_trim() was called since it was used */
    size_t used;       /* bytes that its owner has asked for */
    size_t touched;    /* bytes that may take memory, from the beginning on */
};

/* Reserves address space, which takes memory only as it is touched. False: there is none for the
 * scratch. */
bool hal_cpu_thread_memory_init(struct hal_cpu_thread_memory *memory);
/* Also for a struct of zeros. The workspace is not in use. */
void hal_cpu_thread_memory_fini(struct hal_cpu_thread_memory *memory);

/*
 * Returns the workspace, for |bytes| bytes, 64-byte aligned, contents undefined; NULL: it is in
 * use, there is none, or |bytes| are too many. Any thread may give it back. Neither blocks.
 */
uint8_t *hal_cpu_workspace_take(struct hal_cpu_thread_memory *memory, size_t bytes);
void hal_cpu_workspace_give(struct hal_cpu_thread_memory *memory);

/*
 * If nobody has used the workspace since the last call, gives memory of it back to the system: at
 * most |bytes_max| bytes, but at least a huge page. Returns how many. Any thread.
 */
size_t hal_cpu_workspace_trim(struct hal_cpu_thread_memory *memory, size_t bytes_max);

#endif
