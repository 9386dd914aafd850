/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/status_counts.h"

static void add(struct status_counts *counts, int status, uint64_t amount)
{
    uint32_t used = atomic_load_explicit(&counts->used, memory_order_relaxed), i = 0;
    while (i < used && counts->rows[i].status != status && i < STATUS_COUNTS_MAX - 1) {
        i++;
    }
    if (i == used) {
        counts->rows[i].status = status;
        atomic_store_explicit(&counts->used, used + 1, memory_order_release);
    }
    counter_add(&counts->rows[i].count, amount);
}

void status_counts_add(struct status_counts *counts, int status)
{
    add(counts, status, 1);
}

void status_counts_add_all(struct status_counts *counts, const struct status_counts *others)
{
    uint32_t used = status_counts_used(others);
    for (uint32_t i = 0; i < used; i++) {
        add(counts, others->rows[i].status, counter_get(&others->rows[i].count));
    }
}
