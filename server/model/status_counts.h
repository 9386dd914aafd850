/* SPDX-License-Identifier: MIT */
/*
 * Requests by the status of their answer. The statuses that have occurred have a row each. One
 * thread at a time adds; any thread may look.
 */
#ifndef PTED_SERVER_MODEL_STATUS_COUNTS_H
#define PTED_SERVER_MODEL_STATUS_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/counter.h"

/* More than there are statuses. If there are ever more, the last row counts the others. */
#define STATUS_COUNTS_MAX 32

struct status_count {
    int status; /* constant once the row is in use */
    struct counter count;
};

/* Zeroed at first. */
struct status_counts {
    _Atomic uint32_t used;
    struct status_count rows[STATUS_COUNTS_MAX];
};

void status_counts_add(struct status_counts *counts, int status);

/* Adds all that |others| has counted. */
void status_counts_add_all(struct status_counts *counts, const struct status_counts *others);

/* Returns the rows in use. Only their counts change afterwards. */
static inline uint32_t status_counts_used(const struct status_counts *counts)
{
    return atomic_load_explicit(&counts->used, memory_order_acquire);
}

#endif
