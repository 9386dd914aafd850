/* SPDX-License-Identifier: MIT */
/*
 * A command buffer as the CPU runs it: a flat list of regions. A region is a list of dispatches;
 * one numbering covers all tiles of a region, so any range of numbers is a piece of work. Regions
 * and dispatches without tiles are left out. Copies are dispatches here.
 */
#ifndef PTED_HAL_CPU_ROUTINE_H
#define PTED_HAL_CPU_ROUTINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "hal/kernel.h"

struct hal_command;
struct hal_profile;
struct hal_record;

#define HAL_CPU_TILES_MAX (UINT32_MAX / 2) /* of a region */
#define HAL_CPU_BATCH_MAX 65536            /* tiles */
/* Batches of a region, and regions of a routine. A cursor also has room for additions of workers
 * that find nothing left. */
#define HAL_CPU_BATCHES_MAX (1u << 19)
#define HAL_CPU_REGIONS_MAX (1u << 23)

struct hal_cpu_binding {
    uint8_t *host; /* NULL: the address in |slot| plus |offset| */
    uint32_t slot;
    size_t offset;
};

struct hal_cpu_dispatch {
    hal_cpu_kernel_f *fn;
    const char *label;
    const void *constants;
    const struct hal_cpu_binding *bindings;
    const size_t *lengths;
    uint32_t binding_count;
    uint32_t number;            /* of the command: hal_command_describe() */
    uint32_t tile_first, tiles; /* within the region */
    uint32_t grid[3];
    bool keeps_rows; /* the order of its tiles: see struct hal_kernel */
    size_t scratch_bytes;
};

struct hal_cpu_region {
    const struct hal_cpu_dispatch *dispatches;
    uint32_t dispatch_count;
    uint32_t tiles;
    uint32_t batch; /* tiles that a worker takes at once */
    uint32_t batches;
    uint32_t helpers; /* further workers that may take some */
    uint32_t wake;    /* helpers that are worth waking for it */
    uint64_t cost;
};

#define HAL_CPU_ROUTINE_MAGIC 0xc9b9065bu

struct hal_cpu_routine {
    uint32_t magic;
    const struct hal_cpu_region *regions;
    uint32_t region_count;
    bool needs_scratch;
    /* The slot that may lie in a thread's workspace, and its length; 0 bytes: there is none. */
    uint32_t workspace_slot;
    size_t workspace_bytes;
    bool is_for_one; /* no region is worth a second worker */
};

/* Allocates the routine in |command|'s arena, for a pool of |workers| > 0 threads. */
MUST_CHECK enum status hal_cpu_routine_new(struct hal_command *command, uint32_t workers,
                                           const struct hal_cpu_routine **out_routine,
                                           struct error *err);

/* The arguments that all tiles of a submission share. */
struct hal_cpu_run {
    uint8_t *const *slots;          /* addresses */
    const atomic_bool *cancel;      /* NULL: it cannot be cancelled */
    struct hal_fault_record *fault; /* never NULL */
    void *scratch;                  /* the thread's own */
    struct hal_profile *profile;    /* NULL: nothing is timed */
    const struct hal_command *command;
    uint32_t thread; /* see struct hal_span */
};

/*
 * Runs |count| tiles of |region| from number |first| on; all of them exist. ST_CANCELLED, or
 * ST_INVALID after a fault: the remaining tiles were not run.
 */
MUST_CHECK enum status hal_cpu_run_tiles(const struct hal_cpu_region *region, uint32_t first,
                                         uint32_t count, const struct hal_cpu_run *run);

/* Runs a tile of a copy: its kernel, and its grid (copy.c). */
void hal_cpu_copy(const struct hal_args *args, struct hal_tile tile);
void hal_cpu_copy_grid(const struct hal_record *record, uint32_t out_grid[3]);

#endif
