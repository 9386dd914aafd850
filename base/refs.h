/* SPDX-License-Identifier: MIT */
/*
 * The count of references to a shared object. The object embeds it; X_new() begins with one
 * reference, X_ref() takes one more, X_unref() drops one and frees the object with the last. Any
 * thread.
 */
#ifndef PTED_BASE_REFS_H
#define PTED_BASE_REFS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/check.h"

struct refs {
    atomic_uint count;
};

static inline void refs_init(struct refs *refs)
{
    atomic_init(&refs->count, 1);
}

/* Takes one more reference than the caller holds. */
static inline void refs_take(struct refs *refs)
{
    unsigned before = atomic_fetch_add_explicit(&refs->count, 1, memory_order_relaxed);
    must(before > 0); /* an object without references is being freed */
}

/* For a table that lists the object and holds no reference: false if the last one was dropped. */
static inline bool refs_try_take(struct refs *refs)
{
    unsigned count = atomic_load_explicit(&refs->count, memory_order_relaxed);
    while (count > 0 &&
           !atomic_compare_exchange_weak_explicit(&refs->count, &count, count + 1,
                                                  memory_order_acquire, memory_order_relaxed)) {
    }
    return count > 0;
}

/* Returns true: this was the last reference, and all writes by threads that held the others are
 * visible. */
static inline bool refs_drop(struct refs *refs)
{
    unsigned before = atomic_fetch_sub_explicit(&refs->count, 1, memory_order_acq_rel);
    must(before > 0);
    return before == 1;
}

/* Are the caller's |count| references all that there are? */
static inline bool refs_are_all(struct refs *refs, unsigned count)
{
    return atomic_load(&refs->count) == count;
}

/* Is the caller's reference the only one? */
static inline bool refs_is_only(struct refs *refs)
{
    return refs_are_all(refs, 1);
}

/* Is no reference left? Then the object lies idle, and refs_init() would bring it back. */
static inline bool refs_are_gone(struct refs *refs)
{
    return atomic_load(&refs->count) == 0;
}

#endif
