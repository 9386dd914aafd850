/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_histogram.h"

#include <stddef.h>

#define LINEAR_BITS 9 /* below 2^9 a bucket has one value */

static uint32_t find_bucket(uint64_t ns)
{
    if (ns >> BENCH_VALUE_BITS_MAX) {
        return BENCH_BUCKETS - 1;
    }
    if (ns >> LINEAR_BITS == 0) {
        return (uint32_t)ns;
    }
    uint32_t shift = 63 - (uint32_t)__builtin_clzll(ns) - (LINEAR_BITS - 1);
    return shift * BENCH_STEPS + (uint32_t)(ns >> shift);
}

/* The largest value of a bucket. */
static uint64_t bucket_end(uint32_t index)
{
    if (index < 2 * BENCH_STEPS) {
        return index;
    }
    uint32_t shift = index / BENCH_STEPS - 1;
    uint64_t step = index - shift * BENCH_STEPS;
    return ((step + 1) << shift) - 1;
}

void bench_histogram_add(struct bench_histogram *histogram, uint64_t ns)
{
    histogram->min_ns = histogram->count == 0 || ns < histogram->min_ns ? ns : histogram->min_ns;
    histogram->max_ns = ns > histogram->max_ns ? ns : histogram->max_ns;
    histogram->count++;
    histogram->sum_ns += ns;
    histogram->buckets[find_bucket(ns)]++;
}

/* Where the value with the number |rank| is, counted from 1. */
static uint64_t find_rank(const struct bench_histogram *histogram, uint64_t rank)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < BENCH_BUCKETS - 1; i++) {
        seen += histogram->buckets[i];
        if (seen >= rank) {
            uint64_t end = bucket_end(i);
            end = end < histogram->max_ns ? end : histogram->max_ns;
            return end > histogram->min_ns ? end : histogram->min_ns;
        }
    }
    return histogram->max_ns;
}

uint64_t bench_histogram_at(const struct bench_histogram *histogram, uint32_t share)
{
    uint64_t count = histogram->count, part = count % BENCH_SHARE_ALL;
    uint64_t rank =
        count / BENCH_SHARE_ALL * share + (part * share + BENCH_SHARE_ALL - 1) / BENCH_SHARE_ALL;
    return count ? find_rank(histogram, rank ? rank : 1) : 0;
}

double bench_histogram_mean(const struct bench_histogram *histogram)
{
    return histogram->count ? (double)histogram->sum_ns / (double)histogram->count : 0;
}

uint64_t bench_histogram_between(const struct bench_histogram *histogram, uint64_t from_ns,
                                 uint64_t to_ns)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < BENCH_BUCKETS; i++) {
        uint64_t end = i == BENCH_BUCKETS - 1 ? histogram->max_ns : bucket_end(i);
        count += end >= from_ns && end < to_ns ? histogram->buckets[i] : 0;
    }
    return count;
}
