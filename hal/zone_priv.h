/* SPDX-License-Identifier: MIT */
/*
 * A zone is one buffer of a device, divided by hal/suballoc.h. The pools of a store share it
 * (hal/pool.h).
 *
 * If memory can go back to the system, a zone has more addresses than bytes. So a large reservation
 * nearly always finds a place, even beside small reservations that last long. Each granule records
 * when a reservation in it last began or ended, or that it takes no memory. Whole granules inside
 * free ranges go back to the system when they have been idle for long, or when the zone would
 * otherwise use more memory than its size.
 *
 * The caller holds the lock of the store.
 */
#ifndef PTED_HAL_ZONE_PRIV_H
#define PTED_HAL_ZONE_PRIV_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "hal/buffer.h"
#include "hal/device_priv.h"
#include "hal/suballoc.h"

#define HAL_ZONE_CLEAN UINT64_MAX

struct hal_zone {
    struct hal_buffer *memory; /* owned; NULL: there is no such zone */
    struct hal_suballoc suballoc;
    size_t size_bytes;      /* that may be reserved at a time */
    size_t used_bytes;      /* reserved */
    size_t charged_bytes;   /* by all pools */
    size_t used_peak_bytes; /* of both together */
    size_t granule_bytes;
    size_t resident_count; /* granules that are not HAL_ZONE_CLEAN */
    uint64_t *touched_ms;  /* owned; by granule: when it was used last, or HAL_ZONE_CLEAN */
    size_t marked_bytes;   /* of the beginning: behind them AddressSanitizer has nothing marked */
};

/* Makes a zone of |size| bytes that may be reserved. |zone| is zeroed but for the empty list of
 * unused ranges. hal_zone_fini() also after a failure: ST_EXHAUSTED. */
MUST_CHECK enum status hal_zone_init(struct hal_zone *zone, struct hal_device *device, size_t size,
                                     enum hal_memory memory, struct error *err);
void hal_zone_fini(struct hal_zone *zone);

/* Notes that [begin, begin + size) is about to be used, or was used until now. */
void hal_zone_touch(struct hal_zone *zone, size_t begin, size_t size, uint64_t now_ms);

/* Notes that |range| is used from now on. If the zone then uses too many granules, free ones go
 * back to the system. */
void hal_zone_take(struct hal_zone *zone, const struct hal_range *range, uint64_t now_ms);

/* Gives at most |count_max| granules back that were last used at |until_ms| or before; returns how
 * many. */
size_t hal_zone_discard(struct hal_zone *zone, uint64_t until_ms, size_t count_max);

#endif
