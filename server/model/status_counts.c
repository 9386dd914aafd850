/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/status_counts.h"

void status_counts_add(struct status_counts *counts, int status)
{
    uint32_t used = atomic_load_explicit(&counts->used, memory_order_relaxed), i = 0;
    while (i < used && counts->rows[i].status != status && i < STATUS_COUNTS_MAX - 1) {
        i++;
    }
    if (i == used) {
        counts->rows[i].status = status;
        atomic_store_explicit(&counts->used, used + 1, memory_order_release);
    }
    counter_add(&counts->rows[i].count, 1);
}
