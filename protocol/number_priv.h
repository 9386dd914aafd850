/* SPDX-License-Identifier: MIT */
/* Shared by parsing and printing of floats: powers of ten, and the exact but slow parser. */
#ifndef PTED_PROTOCOL_NUMBER_PRIV_H
#define PTED_PROTOCOL_NUMBER_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/wide.h"

#define POW10_MIN (-342)
#define POW10_MAX 324

/* 10^k is between |high:low| and the next 128 bit number, times a power of two. */
struct pow10 {
    uint64_t high, low;
};

extern const struct pow10 number_pow10[POW10_MAX - POW10_MIN + 1];

/* Are the 128 bits of 10^k all there are? 5^55 is the last power of five below 2^128. */
static inline bool pow10_is_exact(int k)
{
    return k >= 0 && k <= 55;
}

/* Returns the 128 bits, rounded up instead of cut. */
static inline struct pow10 pow10_ceil(int k)
{
    struct pow10 g = number_pow10[k - POW10_MIN];
    if (!pow10_is_exact(k)) {
        g.low++;
        g.high += g.low == 0;
    }
    return g;
}

/* Returns floor(log2(10^k)), for |k| <= 1233. */
static inline int floor_log2_pow10(int k)
{
    return (k * 1741647) >> 19;
}

/* A binary float format by its numbers. */
struct float_format {
    int mantissa_bits; /* without the hidden one */
    int exponent_min;  /* of the value that exponent field 0 would have with a hidden one */
    int exponent_infinite;
    int round_even_min, round_even_max; /* powers of ten where exact ties are possible */
};

/* A decimal token taken apart: value = digits x 10^exponent, |digits| in the text may hold a '.'.
 */
struct decimal {
    struct span digits;
    int64_t exponent; /* of the last digit of |digits| */
};

/* Returns the bits of the float nearest to |decimal|, starting from |guess|, which is close to
 * it. */
uint64_t number_parse_exact(const struct decimal *decimal, const struct float_format *format,
                            uint64_t guess);

#endif
