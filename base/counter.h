/* SPDX-License-Identifier: MIT */
/*
 * A number that only grows. One thread at a time adds to it; any thread may look. Neither waits for
 * the other, and adding costs no more than adding to a plain number.
 */
#ifndef PTED_BASE_COUNTER_H
#define PTED_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

struct counter {
    _Atomic uint64_t value;
};

static inline uint64_t counter_get(const struct counter *counter)
{
    return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

static inline void counter_add(struct counter *counter, uint64_t amount)
{
    atomic_store_explicit(&counter->value, counter_get(counter) + amount, memory_order_relaxed);
}

#endif
