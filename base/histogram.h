/* SPDX-License-Identifier: MIT */
/*
 * How often values fell into each of a few fixed buckets, and their sum. A scale has the bounds of
 * the buckets; all histograms of a kind share one scale. One thread at a time adds values; any
 * thread may look.
 */
#ifndef PTED_BASE_HISTOGRAM_H
#define PTED_BASE_HISTOGRAM_H

#include <stdint.h>

#include "base/counter.h"

#define HISTOGRAM_BOUNDS_MAX 21

/* Bounds are inclusive and ascend. |texts| has them in the unit that people see. */
struct histogram_scale {
    uint32_t bound_count;
    unsigned
        decimals; /* a value is divided by ten to that power to have the unit that people see */
    uint64_t bounds[HISTOGRAM_BOUNDS_MAX];
    const char *texts[HISTOGRAM_BOUNDS_MAX];
};

/* Times in ns, from 10 us to 60 s; rows of a batch, from 1 to 1024. */
extern const struct histogram_scale histogram_times, histogram_rows;

/* Zeroed at first. */
struct histogram {
    struct counter buckets[HISTOGRAM_BOUNDS_MAX + 1]; /* the last one used: above all bounds */
    struct counter sum;
    uint32_t last; /* bucket of the last value; of the adding thread */
};

void histogram_add(struct histogram *histogram, const struct histogram_scale *scale,
                   uint64_t value);

/* Returns the number of values in all buckets. */
uint64_t histogram_count(const struct histogram *histogram, const struct histogram_scale *scale);

#endif
