/* SPDX-License-Identifier: MIT */
/*
 * Device memory for data that lives longer than a submission: bodies, inputs, results and
 * workspaces of calls in flight. The memory has a fixed size. A reservation is a hal_buffer. Its
 * bytes are free again when its last reference is dropped; reservations end in any order.
 *
 * Several pools may share one memory, a pool for each use that must not starve the others: the
 * inputs of one model, memory that clients hold, calls that run. One rule keeps them apart: after a
 * pool has taken memory, at least as much must be free as the pool holds. So one busy pool takes at
 * most half, two take a third each, and some memory is always free for a pool that has none. (A.
 * Choudhury and E. Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
 * 1998.)
 *
 * If several parties, such as requests, use a pool, each takes memory through a member of it. The
 * rule does not apply to a party while the others hold next to nothing: a party that is alone may
 * take all free memory, and one of several large parties always makes progress.
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
    size_t used_bytes;      /* reserved or charged by all pools */
    size_t used_peak_bytes; /* the maximum of used_bytes so far */
    size_t held_bytes;      /* by this pool */
    size_t held_peak_bytes;
    size_t reserved_count; /* live reservations of all pools */
};

/*
 * Makes a pool with a memory of |size| bytes, rounded up to buffer_align. The memory is reserved as
 * address space and touched only as used.
 */
MUST_CHECK enum status hal_pool_new(struct hal_device *device, size_t size,
                                    struct hal_pool **out_pool, struct error *err);

/*
 * Does the same with at most |size_max| bytes, and at most half of what the device could give or of
 * the addresses that the process may have (ulimit -v); a quarter and so on, if these are not there.
 */
MUST_CHECK enum status hal_pool_new_up_to(struct hal_device *device, size_t size_max,
                                          struct hal_pool **out_pool, struct error *err);

/* Gives another pool of the same memory, with a share of its own. */
MUST_CHECK enum status hal_pool_share(struct hal_pool *pool, struct hal_pool **out_pool,
                                      struct error *err);

/*
 * Gives a part of |pool|, which is itself no part: a pool with a share of its own, whose bytes also
 * count in the statistics of |pool|. For calls that run, a part for each model: otherwise the rule
 * would take them for one pool, and a small call would wait for all the large ones.
 */
MUST_CHECK enum status hal_pool_part(struct hal_pool *pool, struct hal_pool **out_part,
                                     struct error *err);

/*
 * Makes a member, which at first belongs to no pool and can join one pool after the other. Between
 * hal_pool_join() and hal_pool_leave() it may be used like the pool that it joined; |pool| may be a
 * member of that pool itself. A member holds nothing when it leaves. Neither function mallocs.
 */
MUST_CHECK enum status hal_pool_member_new(struct hal_pool **out_member, struct error *err);
void hal_pool_join(struct hal_pool *member, struct hal_pool *pool);
void hal_pool_leave(struct hal_pool *member);

/*
 * |pool| holds nothing; if it is a member, it has left its pool; if not, it has no members and no
 * parts. Only a part may still have members that hold something: it goes with the last of them. The
 * last pool frees the memory. NULL is fine.
 */
void hal_pool_free(struct hal_pool *pool);

/* Fails with ST_TOO_LARGE: |size| exceeds the whole memory, so it can never be reserved. */
MUST_CHECK enum status hal_pool_verify(const struct hal_pool *pool, size_t size, struct error *err);

/*
 * |size| bytes (0 allowed) aligned to the device's buffer_align, contents undefined. ST_EXHAUSTED:
 * not now; ST_TOO_LARGE: never, as above.
 */
MUST_CHECK enum status hal_pool_reserve(struct hal_pool *pool, size_t size,
                                        struct hal_buffer **out_buffer, struct error *err);

/*
 * Does as hal_pool_reserve(), for bytes that only commands of the device touch
 * (hal_command_set_transient()). A device with memory of its own has a second memory of the same
 * size for them.
 */
MUST_CHECK enum status hal_pool_reserve_transient(struct hal_pool *pool, size_t size,
                                                  struct hal_buffer **out_buffer,
                                                  struct error *err);

/*
 * Charges |bytes| to |pool|, as hal_pool_charge() does, if the rule permits it: for a reservation
 * that is going to grow, for example. False: the rule refuses, or the charges of |pool| would
 * exceed the whole memory, even if nobody else has any.
 */
MUST_CHECK bool hal_pool_try_charge(struct hal_pool *pool, size_t bytes);

/*
 * Does as hal_pool_reserve(), when hal_pool_resize() is going to ask for |growth| more bytes: room
 * is kept behind the reservation as long as others find memory elsewhere. The rule does not apply
 * to |excused| of the |size| bytes, because they are charged already or replace memory that is
 * about to be given back. The caller discharges them when it has the memory.
 */
MUST_CHECK enum status hal_pool_reserve_growing(struct hal_pool *pool, size_t size, size_t growth,
                                                size_t excused, struct hal_buffer **out_buffer,
                                                struct error *err);

/*
 * Changes the length of |buffer|, a reservation of more than 0 bytes, to |size| > 0 bytes without
 * moving it; |excused| as above. ST_EXHAUSTED: the memory behind it is in use, or the rule refuses;
 * nothing has changed. The caller is the only user of the buffer.
 */
MUST_CHECK enum status hal_pool_resize(struct hal_buffer *buffer, size_t size, size_t excused,
                                       struct error *err);

/* From now on |pool|, of the same memory, holds the bytes of |buffer|. No effect if |buffer| is no
 * reservation. ST_EXHAUSTED: the rule refuses, and nothing has changed. */
MUST_CHECK enum status hal_pool_move(struct hal_buffer *buffer, struct hal_pool *pool,
                                     struct error *err);

/*
 * Counts |bytes| of memory outside of the pool as held by |pool|, or ends that. They leave |pool|
 * less to reserve and take nothing from other pools. Never refused: see hal_pool_is_over().
 */
void hal_pool_charge(struct hal_pool *pool, size_t bytes);
void hal_pool_discharge(struct hal_pool *pool, size_t bytes);

/* Does |pool|, with its members, hold more than the rule would give it now? */
bool hal_pool_is_over(struct hal_pool *pool);

/* Returns the bytes that have been reserved from |pool| itself so far, also if they are free again.
 * No lock. */
size_t hal_pool_taken(const struct hal_pool *pool);

/* Returns the size of |pool|'s memory, in bytes. */
size_t hal_pool_size(const struct hal_pool *pool);

void hal_pool_stats(struct hal_pool *pool, struct hal_pool_stats *out_stats);

/*
 * Gives memory that has been free for |idle_ms| back to the system, at most |bytes_max| in this
 * call. |now_ms| is the time on any clock, the same one for all calls. Memory that becomes free
 * gets the time of the last call, so call this regularly. True: there is more to give back.
 */
bool hal_pool_trim(struct hal_pool *pool, uint64_t now_ms, uint64_t idle_ms, size_t bytes_max);

#endif
