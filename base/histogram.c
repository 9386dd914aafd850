/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/histogram.h"

#include <stdbool.h>

#include "base/check.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* Texts are written as OpenMetrics wants them: the shortest form, with a point or an exponent. */
const struct histogram_scale histogram_times = {
    .bound_count = 21,
    .decimals = 9,
    .bounds = {10 * US,  20 * US, 50 * US, 100 * US, 200 * US, 500 * US, 1 * MS,
               2 * MS,   5 * MS,  10 * MS, 20 * MS,  50 * MS,  100 * MS, 200 * MS,
               500 * MS, 1 * S,   2 * S,   5 * S,    10 * S,   20 * S,   60 * S},
    .texts = {"1e-05", "2e-05", "5e-05", "0.0001", "0.0002", "0.0005", "0.001",
              "0.002", "0.005", "0.01",  "0.02",   "0.05",   "0.1",    "0.2",
              "0.5",   "1.0",   "2.0",   "5.0",    "10.0",   "20.0",   "60.0"},
};

const struct histogram_scale histogram_rows = {
    .bound_count = 11,
    .bounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024},
    .texts = {"1.0", "2.0", "4.0", "8.0", "16.0", "32.0", "64.0", "128.0", "256.0", "512.0",
              "1024.0"},
};

static bool is_in_bucket(const struct histogram_scale *scale, uint32_t bucket, uint64_t value)
{
    return (bucket == 0 || value > scale->bounds[bucket - 1]) &&
           (bucket == scale->bound_count || value <= scale->bounds[bucket]);
}

static uint32_t find_bucket(const struct histogram_scale *scale, uint64_t value)
{
    uint32_t low = 0, high = scale->bound_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (value <= scale->bounds[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The bucket of a value is often that of the value before. */
void histogram_add(struct histogram *histogram, const struct histogram_scale *scale, uint64_t value)
{
    must(scale->bound_count <= HISTOGRAM_BOUNDS_MAX && histogram->last <= scale->bound_count);
    if (!is_in_bucket(scale, histogram->last, value)) {
        histogram->last = find_bucket(scale, value);
    }
    counter_add(&histogram->buckets[histogram->last], 1);
    counter_add(&histogram->sum, value);
}

uint64_t histogram_count(const struct histogram *histogram, const struct histogram_scale *scale)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i <= scale->bound_count; i++) {
        count += counter_get(&histogram->buckets[i]);
    }
    return count;
}
