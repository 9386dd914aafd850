/* SPDX-License-Identifier: MIT */
/*
 * Device memory for what lives from one submission to another: bodies, inputs, results and arenas
 * of calls in flight. The memory has one size and never grows. A reservation is a hal_buffer; its
 * bytes are free again when the last reference is dropped, in any order.
 *
 * Several pools may share one memory, a pool for each use that must not starve the others: the
 * inputs of one model, what clients hold, what runs. One rule keeps them apart: a pool gets no more
 * than leaves as much free as it then holds. So one busy pool takes at most half, two take a third
 * each, and some memory is always free for a pool that has none. (A. Choudhury and E. Hahne,
 * "Dynamic queue length thresholds for shared-memory packet switches", 1998.)
 *
 * Where several parties, such as requests, use a pool, each takes memory through a member of it.
 * The rule does not bind a party while the others hold next to nothing: who is alone may take all
 * that is free, and of several large parties one gets through.
 *
 * ST_EXHAUSTED is back-pressure and not a failure. After warm-up a reservation does not malloc: all
 * objects are used again. Any thread.
 */
#ifndef PTED_HAL_POOL_H
#define PTED_HAL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct hal_buffer;
struct hal_device;
struct hal_pool;

struct hal_pool_stats {
    size_t size_bytes;      /* of the memory */
    size_t used_bytes;      /* of it, by all pools, and elsewhere by charges */
    size_t used_peak_bytes; /* the most so far */
    size_t held_bytes;      /* by this pool */
    size_t held_peak_bytes;
    size_t reserved_count; /* live reservations of all pools */
};

/*
 * A pool with a memory of |size| bytes, rounded up to buffer_align. The memory is reserved as
 * address space and touched only as used.
 */
MUST_CHECK enum status hal_pool_new(struct hal_device *device, size_t size,
                                    struct hal_pool **out_pool, struct error *err);

/* Another pool of the same memory, with a share of its own. */
MUST_CHECK enum status hal_pool_share(struct hal_pool *pool, struct hal_pool **out_pool,
                                      struct error *err);

/*
 * A member of no pool yet, which can join one after the other. From hal_pool_join() to
 * hal_pool_leave(), when it holds nothing any more, it may be used like the pool that |pool| is, or
 * is a member of. Neither mallocs.
 */
MUST_CHECK enum status hal_pool_member_new(struct hal_pool **out_member, struct error *err);
void hal_pool_join(struct hal_pool *member, struct hal_pool *pool);
void hal_pool_leave(struct hal_pool *member);

/* It holds nothing any more; a member is in no pool, a pool has no members. The last pool takes the
 * memory with it. NULL is fine. */
void hal_pool_free(struct hal_pool *pool);

/* ST_TOO_LARGE: so many bytes can never be reserved, they exceed the memory. */
MUST_CHECK enum status hal_pool_verify(const struct hal_pool *pool, size_t size, struct error *err);

/*
 * |size| bytes (0 allowed) aligned to the device's buffer_align, contents undefined. ST_EXHAUSTED:
 * not now; ST_TOO_LARGE: never, as above.
 */
MUST_CHECK enum status hal_pool_reserve(struct hal_pool *pool, size_t size,
                                        struct hal_buffer **out_buffer, struct error *err);

/*
 * Likewise, for what only commands of the device touch (hal_command_set_transient()): of a second
 * memory of the same size, which is the device's own, where it has such.
 */
MUST_CHECK enum status hal_pool_reserve_transient(struct hal_pool *pool, size_t size,
                                                  struct hal_buffer **out_buffer,
                                                  struct error *err);

/*
 * Makes room for a reservation that is going to grow to |bytes|: they are charged to |pool| until
 * they are reserved or discharged. False: the rule refuses.
 */
MUST_CHECK bool hal_pool_promise(struct hal_pool *pool, size_t bytes);

/*
 * As hal_pool_reserve(), where hal_pool_resize() is going to ask for |growth| bytes more: they are
 * left to it as long as there is other memory for others. The rule is not asked for |excused| of
 * the |size| bytes: they have been promised, or replace what is about to be given back. The caller
 * discharges promises when it has the memory.
 */
MUST_CHECK enum status hal_pool_reserve_growing(struct hal_pool *pool, size_t size, size_t growth,
                                                size_t excused, struct hal_buffer **out_buffer,
                                                struct error *err);

/*
 * Makes |buffer|, a reservation of more than 0 bytes, |size| > 0 bytes long where it lies, of which
 * |excused| as above. ST_EXHAUSTED: what lies behind it is in use, or the rule refuses; then
 * nothing has changed. The caller is the only user of the buffer.
 */
MUST_CHECK enum status hal_pool_resize(struct hal_buffer *buffer, size_t size, size_t excused,
                                       struct error *err);

/* The bytes of |buffer| are held by |pool|, of the same memory, from now on, unless |buffer| is no
 * reservation. ST_EXHAUSTED: the rule refuses that, and nothing has changed. */
MUST_CHECK enum status hal_pool_move(struct hal_buffer *buffer, struct hal_pool *pool,
                                     struct error *err);

/*
 * Counts |bytes| elsewhere as held by |pool|, or no more: they take nothing from other pools, but
 * leave this one less. Never refused: see hal_pool_is_over().
 */
void hal_pool_charge(struct hal_pool *pool, size_t bytes);
void hal_pool_discharge(struct hal_pool *pool, size_t bytes);

/* Does |pool|, with its members, hold more than the rule would give it now? */
bool hal_pool_is_over(struct hal_pool *pool);

/* Of its memory. */
size_t hal_pool_size(const struct hal_pool *pool);

void hal_pool_stats(struct hal_pool *pool, struct hal_pool_stats *out_stats);

/*
 * Gives memory that has been free for |idle_ms| back to the system, at most |bytes_max| in this
 * call. |now_ms| is on any clock, the same for all calls; the one of the last call is the time at
 * which memory becomes free, so calls come regularly. True: there is more to give back.
 */
bool hal_pool_trim(struct hal_pool *pool, uint64_t now_ms, uint64_t idle_ms, size_t bytes_max);

#endif
