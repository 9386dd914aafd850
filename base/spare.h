/* SPDX-License-Identifier: MIT */
/*
 * One object that waits for its next user, taken and put back without a lock: what a table under a
 * lock keeps beside it, because most users come one after the other. Zeroed at first. Any thread.
 */
#ifndef PTED_BASE_SPARE_H
#define PTED_BASE_SPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct spare {
    _Atomic(void *) object; /* owned; NULL: none waits */
};

/* Returns the object, which is the caller's now; NULL: there is none. */
static inline void *spare_take(struct spare *spare)
{
    bool is_there = atomic_load_explicit(&spare->object, memory_order_relaxed) != NULL;
    return is_there ? atomic_exchange_explicit(&spare->object, NULL, memory_order_acquire) : NULL;
}

/* Puts |object| there, so that it is the next to be taken. Returns the one that was there, which is
 * the caller's now, or NULL. */
static inline void *spare_put(struct spare *spare, void *object)
{
    return atomic_exchange_explicit(&spare->object, object, memory_order_acq_rel);
}

#endif
