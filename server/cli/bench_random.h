/* SPDX-License-Identifier: MIT */
/* Random numbers that a seed repeats, for arrivals and for the values of inputs: xorshift64* of
 * Sebastiano Vigna ("An experimental exploration of Marsaglia's xorshift generators", 2016). */
#ifndef PTED_SERVER_CLI_BENCH_RANDOM_H
#define PTED_SERVER_CLI_BENCH_RANDOM_H

#include <stdint.h>

struct bench_random {
    uint64_t state; /* never 0 */
};

/* Seeds that differ in one bit are spread by a multiplication, since neighbours would begin
 * alike. */
static inline struct bench_random bench_random_of(uint64_t seed)
{
    uint64_t state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (struct bench_random){state ? state : 1};
}

static inline uint64_t bench_random_bits(struct bench_random *random)
{
    random->state ^= random->state >> 12;
    random->state ^= random->state << 25;
    random->state ^= random->state >> 27;
    return random->state * UINT64_C(2685821657736338717);
}

/* Above 0, at most 1. */
static inline double bench_random_unit(struct bench_random *random)
{
    return (double)((bench_random_bits(random) >> 11) + 1) * 0x1p-53;
}

#endif
