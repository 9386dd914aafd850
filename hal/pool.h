/* SPDX-License-Identifier: MIT */
/*
 * A ring of device memory for what lives from one submission to another: request inputs, results,
 * arenas of invocations. Reservations are contiguous and handed out in ring order; each is a
 * hal_buffer whose memory goes back to the ring when its last reference is dropped. Order of
 * release does not matter: the tail moves over the longest released prefix.
 *
 * The ring never grows. hal_pool_reserve() answers ST_EXHAUSTED when the rest is too small, which
 * is back-pressure and not a failure. After the first lap a reservation does not malloc: the buffer
 * objects are recycled.
 */
#ifndef PTED_HAL_POOL_H
#define PTED_HAL_POOL_H

#include <stddef.h>

#include "base/status.h"

struct hal_buffer;
struct hal_device;
struct hal_pool;

struct hal_pool_stats {
    size_t size_bytes;     /* of the ring */
    size_t used_bytes;     /* reserved now, with gaps that wait for an older release */
    size_t peak_bytes;     /* highest used_bytes so far */
    size_t reserved_count; /* live reservations */
};

/*
 * |size| is rounded up to buffer_align. Memory is reserved as address space and touched only as
 * used: a large ring costs nothing idle.
 */
MUST_CHECK enum status hal_pool_new(struct hal_device *device, size_t size,
                                    struct hal_pool **out_pool, struct error *err);
/* Every reservation has been released. NULL is fine. */
void hal_pool_free(struct hal_pool *pool);

/*
 * |size| bytes (0 allowed) aligned to the device's buffer_align, contents undefined. ST_EXHAUSTED:
 * not now; ST_TOO_LARGE: never, it exceeds the ring. Any thread.
 */
MUST_CHECK enum status hal_pool_reserve(struct hal_pool *pool, size_t size,
                                        struct hal_buffer **out_buffer, struct error *err);

/*
 * Likewise, for what only commands of the device touch (hal_command_set_transient()): of a second
 * ring of the same size in the device's own memory, where it has such.
 */
MUST_CHECK enum status hal_pool_reserve_transient(struct hal_pool *pool, size_t size,
                                                  struct hal_buffer **out_buffer,
                                                  struct error *err);

/* Of the ring that the host sees. */
void hal_pool_stats(struct hal_pool *pool, struct hal_pool_stats *out_stats);

#endif
