/* SPDX-License-Identifier: MIT */
/*
 * Results that overwrite mutable buffers: a run writes its rows of a state's current generation
 * where they are, and logs what it overwrites. The host logs rows whose place it knows before the
 * run, kernels log the others. The rows of a cache behind those in use need no log, so a step that
 * only appends rows copies nothing.
 *
 *     rt_state_open             for each mutable buffer that the run writes
 *     rt_overwrite_grow         for each of them: adds up what the run may take
 *     rt_overwrite_measure      for each of them: adds up what its logs take
 *     rt_state_charge           once
 *     rt_state_reserve_log      once
 *     rt_overwrite_begin        for each of them
 */
#ifndef PTED_RUNTIME_CALL_OVERWRITE_H
#define PTED_RUNTIME_CALL_OVERWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/program/state_cells.h"

struct rt_plan;

/* Result |result| of |plan| is written to cell |cell| of |state|. */
struct rt_overwrite {
    const struct rt_plan *plan;
    uint32_t result, cell;
    struct rt_state *state;
    const int64_t *words; /* numbers for the run */
    uint8_t *workspace;   /* to begin; rt_messages_put() has run */
};

/* What the runs of one call have been charged for a generation of a cell. */
struct rt_growth {
    struct rt_rows rows; /* that may have content then: those before the call, and known ones */
    size_t bytes;
};

/* Call before the first run of a call. */
struct rt_growth rt_growth_begin(const struct rt_state *state, uint32_t cell);

/* Adds to |*io_bytes| the pages of rows that the run may write and that |*io_growth| does not have
 * yet. All runs of a call together never add more than the generation has. |has_base|: the result
 * is its base but for rows. */
void rt_overwrite_grow(const struct rt_overwrite *overwrite, bool has_base,
                       struct rt_growth *io_growth, size_t *io_bytes);

/* Adds the bytes of the logs to |*io_bytes|, which stops at SIZE_MAX. Nothing unless the current
 * generation is overwritten. */
void rt_overwrite_measure(const struct rt_overwrite *overwrite, size_t *io_bytes);

/* Tells the kernels where they log, or which rows of the memory are stale. */
void rt_overwrite_begin(const struct rt_overwrite *overwrite);

#endif
