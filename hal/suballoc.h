/* SPDX-License-Identifier: MIT */
/*
 * Divides a range of addresses. The host may be unable to access the memory, so all bookkeeping is
 * outside of it. Ranges are freed in any order, and a free range merges with its free neighbours.
 *
 * Free ranges are kept in bins by size, two levels deep: a power of two, then an eighth of it (M.
 * Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", 2004). So
 * allocating and freeing take the same short time however many ranges there are.
 *
 * A range may have room to grow: the free range behind it is kept for it, and given to others only
 * when nothing else is free.
 *
 * The caller holds a lock.
 */
#ifndef PTED_HAL_SUBALLOC_H
#define PTED_HAL_SUBALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

enum hal_range_state { HAL_RANGE_FREE, HAL_RANGE_KEPT, HAL_RANGE_USED };

struct hal_range {
    size_t begin, size; /* for the caller to read */
    enum hal_range_state state;
    struct hal_range *before, *behind; /* neighbours by address, or NULL */
    struct list link;                  /* in a bin while it is free or kept */
};

#define HAL_SUBALLOC_ROWS 64
#define HAL_SUBALLOC_COLUMNS 8

struct hal_suballoc_bins {
    uint64_t rows;                      /* bit i: something is in row i */
    uint8_t columns[HAL_SUBALLOC_ROWS]; /* bit j of entry i: bins[i][j] is not empty */
    struct list bins[HAL_SUBALLOC_ROWS][HAL_SUBALLOC_COLUMNS];
};

struct hal_suballoc {
    struct hal_range *first; /* by address */
    struct hal_suballoc_bins free, kept;
    struct list unused; /* struct hal_range, to be used again */
    uint32_t unused_count;
};

/* Begins with all of [0, size) free, size > 0. False: no memory. */
bool hal_suballoc_init(struct hal_suballoc *suballoc, size_t size);
/* Call when all ranges have been freed. May also be called after a failed init, or for a zeroed
 * struct with an empty list of unused objects. */
void hal_suballoc_fini(struct hal_suballoc *suballoc);

/*
 * Allocates a range of |size| > 0 bytes and keeps up to |growth| bytes behind it for it to grow.
 * NULL: no free range is that large, or there is no memory for the bookkeeping.
 */
struct hal_range *hal_suballoc_alloc(struct hal_suballoc *suballoc, size_t size, size_t growth);

/*
 * Changes the size of |range|, which is in use, to |size| > 0 without moving it. False: the memory
 * behind it is in use, or there is no memory for the bookkeeping; nothing has changed then. After a
 * range has shrunk, no room is kept for it.
 */
bool hal_suballoc_resize(struct hal_suballoc *suballoc, struct hal_range *range, size_t size);

void hal_suballoc_free(struct hal_suballoc *suballoc, struct hal_range *range);

#endif
