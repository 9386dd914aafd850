/* SPDX-License-Identifier: MIT */
/*
 * Finds the float nearest to a decimal of any length by comparing whole numbers.
 *
 * This code runs only if a decimal is so close to the middle of two floats that the 128 bit tables
 * cannot decide. That almost never happens by chance, but an attacker can cause it. So the code is
 * bounded rather than fast: digits after DIGITS_MAX count only as "and a bit more" (no middle of
 * two floats has that many; the longest, of doubles, has 767), and every number here is below
 * 2^(32 x LIMBS_MAX).
 */
#include "config.h"

#include <stddef.h>

#include "base/check.h"
#include "protocol/number_priv.h"

#define DIGITS_MAX 769
#define LIMBS_MAX 160

/* Magnitudes beyond these are infinity and zero in every format here. */
#define MAGNITUDE_MAX 310
#define MAGNITUDE_MIN (-330)

struct whole {
    size_t count;
    uint32_t limbs[LIMBS_MAX]; /* lowest first; the highest is not 0 */
};

static void multiply_add(struct whole *n, uint32_t factor, uint32_t addend)
{
    uint64_t carry = addend;
    for (size_t i = 0; i < n->count; i++) {
        carry += (uint64_t)n->limbs[i] * factor;
        n->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) {
        must(n->count < LIMBS_MAX);
        n->limbs[n->count++] = (uint32_t)carry;
    }
}

static void multiply_pow5(struct whole *n, int64_t power)
{
    for (; power >= 13; power -= 13) {
        multiply_add(n, 1220703125, 0); /* 5^13, the last that fits */
    }
    for (; power > 0; power--) {
        multiply_add(n, 5, 0);
    }
}

static void shift_left(struct whole *n, int64_t bits)
{
    size_t whole_limbs = (size_t)bits / 32;
    must(n->count + whole_limbs <= LIMBS_MAX);
    for (size_t i = n->count; i-- > 0;) {
        n->limbs[i + whole_limbs] = n->limbs[i];
    }
    for (size_t i = 0; i < whole_limbs; i++) {
        n->limbs[i] = 0;
    }
    n->count += whole_limbs;
    multiply_add(n, (uint32_t)1 << (bits % 32), 0);
}

static int compare(const struct whole *a, const struct whole *b)
{
    if (a->count != b->count) {
        return a->count < b->count ? -1 : 1;
    }
    for (size_t i = a->count; i-- > 0;) {
        if (a->limbs[i] != b->limbs[i]) {
            return a->limbs[i] < b->limbs[i] ? -1 : 1;
        }
    }
    return 0;
}

/* The digits as a whole number and the power of ten that goes with it; 0 has no limbs. */
static int64_t read_whole(const struct decimal *decimal, struct whole *out)
{
    const uint8_t *p = decimal->digits.ptr;
    size_t kept = 0, dropped = 0;
    bool has_more = false;
    out->count = 0;
    for (size_t i = 0; i < decimal->digits.len; i++) {
        if (p[i] == '.' || (p[i] == '0' && kept == 0)) {
            continue;
        }
        if (kept < DIGITS_MAX) {
            if (kept == 0) {
                out->limbs[out->count++] = (uint32_t)(p[i] - '0');
            } else {
                multiply_add(out, 10, (uint32_t)(p[i] - '0'));
            }
            kept++;
        } else {
            dropped++;
            has_more |= p[i] != '0';
        }
    }
    int64_t exponent = decimal->exponent + (int64_t)dropped;
    if (has_more) {
        multiply_add(out, 10, 1);
        exponent--;
    }
    return exponent;
}

/* Is digits x 10^exponent below, at or above the middle between the float |bits| and the next? */
static int compare_to_middle(const struct whole *digits, int64_t exponent, uint64_t bits,
                             const struct float_format *format)
{
    uint64_t hidden = (uint64_t)1 << format->mantissa_bits;
    int64_t field = (int64_t)(bits >> format->mantissa_bits);
    uint64_t mantissa = (bits & (hidden - 1)) | (field ? hidden : 0);
    uint64_t middle = mantissa * 2 + 1;
    int64_t middle_exponent =
        (field ? field : 1) + format->exponent_min - format->mantissa_bits - 1;

    struct whole a = *digits;
    struct whole b = {.count = 1, .limbs = {(uint32_t)middle}};
    if (middle >> 32) {
        b.limbs[b.count++] = (uint32_t)(middle >> 32);
    }
    multiply_pow5(exponent >= 0 ? &a : &b, exponent >= 0 ? exponent : -exponent);
    int64_t twos = exponent - middle_exponent;
    shift_left(twos >= 0 ? &a : &b, twos >= 0 ? twos : -twos);
    return compare(&a, &b);
}

uint64_t number_parse_exact(const struct decimal *decimal, const struct float_format *format,
                            uint64_t guess)
{
    uint64_t infinity = (uint64_t)format->exponent_infinite << format->mantissa_bits;
    struct whole digits;
    int64_t exponent = read_whole(decimal, &digits);
    if (digits.count == 0 || exponent < MAGNITUDE_MIN - DIGITS_MAX - 1) {
        return 0;
    }
    if (exponent > MAGNITUDE_MAX) {
        return infinity;
    }
    /* The guess is at most a few floats away; a tie goes to the even neighbour. */
    uint64_t bits = guess < infinity ? guess : infinity - 1;
    while (bits < infinity) {
        int order = compare_to_middle(&digits, exponent, bits, format);
        if (order < 0 || (order == 0 && (bits & 1) == 0)) {
            break;
        }
        bits++;
    }
    while (bits > 0) {
        int order = compare_to_middle(&digits, exponent, bits - 1, format);
        if (order > 0 || (order == 0 && (bits & 1) == 0)) {
            break;
        }
        bits--;
    }
    return bits;
}
