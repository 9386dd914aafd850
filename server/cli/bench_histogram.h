/* SPDX-License-Identifier: MIT */
/*
 * Latencies of any number of requests in a fixed amount of memory, for percentiles. The buckets are
 * as wide as 1 ns below 512 ns, and above that each power of two is cut into 256 of them, so a
 * percentile is at most 0.4 % above the exact one. The smallest value, the largest one and the mean
 * are exact.
 *
 * The histograms of base/histogram.h have the few buckets that Prometheus reads, and counters that
 * other threads look at. This one belongs to one thread.
 */
#ifndef PTED_SERVER_CLI_BENCH_HISTOGRAM_H
#define PTED_SERVER_CLI_BENCH_HISTOGRAM_H

#include <stdint.h>

#define BENCH_STEPS 256         /* buckets of a power of two */
#define BENCH_VALUE_BITS_MAX 43 /* values from 2^43 ns on, more than two hours, share a bucket */
#define BENCH_BUCKETS (BENCH_STEPS * (BENCH_VALUE_BITS_MAX - 7))

/* Shares are given as parts of 100,000: 50000 is the median, 99990 the 99.99th percentile. */
#define BENCH_SHARE_ALL 100000

/* Zeroed at first. */
struct bench_histogram {
    uint64_t count, sum_ns, min_ns, max_ns;
    uint64_t buckets[BENCH_BUCKETS];
};

void bench_histogram_add(struct bench_histogram *histogram, uint64_t ns);

/* Returns the smallest value that at least |share| of all values do not exceed, up to the width of
 * its bucket; 0 without values. */
uint64_t bench_histogram_at(const struct bench_histogram *histogram, uint32_t share);

/* Returns the mean in ns; 0 without values. */
double bench_histogram_mean(const struct bench_histogram *histogram);

/* Returns the number of values from |from_ns| up to, but not including, |to_ns|. A bucket that has
 * a bound in it counts where its largest value is. */
uint64_t bench_histogram_between(const struct bench_histogram *histogram, uint64_t from_ns,
                                 uint64_t to_ns);

#endif
