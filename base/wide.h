/* SPDX-License-Identifier: MIT */
/* What 64-bit numbers need where a size, or a product, has another width. */
#ifndef PTED_BASE_WIDE_H
#define PTED_BASE_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stores |n| as a size and returns true, or returns false if sizes have 32 bits and it has more. */
static inline bool wide_to_size(uint64_t n, size_t *out)
{
    *out = (size_t)n;
    return *out == n;
}

/* A number of 128 bits. */
struct wide_product {
    uint64_t high, low;
};

/* Returns the product from those of the halves, as a processor without 128-bit numbers has to. */
static inline struct wide_product wide_multiply_halves(uint64_t a, uint64_t b)
{
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t low = a_low * b_low;
    uint64_t middle = a_high * b_low + (low >> 32); /* cannot wrap: (2^32 - 1)^2 + 2^32 - 1 */
    uint64_t carried = a_low * b_high + (uint32_t)middle;
    return (struct wide_product){.high = a_high * b_high + (middle >> 32) + (carried >> 32),
                                 .low = carried << 32 | (uint32_t)low};
}

static inline struct wide_product wide_multiply(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    unsigned __int128 product = (unsigned __int128)a * b;
    return (struct wide_product){.high = (uint64_t)(product >> 64), .low = (uint64_t)product};
#else
    return wide_multiply_halves(a, b);
#endif
}

#endif
