/* SPDX-License-Identifier: MIT */
/*
 * The 16 bit floats. Widening is exact. Narrowing rounds a double to nearest even, as the libraries
 * of clients do, so a text that is read as a double gives the same 16 bits there and here.
 */
#include "config.h"

#include "protocol/number.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

float number_from_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t field = bits >> 10 & 0x1f;
    uint32_t mantissa = bits & 0x3ff;
    uint32_t wide;
    if (field == 0) {
        float value = (float)mantissa * 0x1p-24f;
        memcpy(&wide, &value, sizeof(wide));
    } else {
        wide = (field == 0x1f ? 0xffu : field + 112) << 23 | mantissa << 13;
    }
    wide |= sign;
    float out;
    memcpy(&out, &wide, sizeof(out));
    return out;
}

float number_from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float out;
    memcpy(&out, &wide, sizeof(out));
    return out;
}

/* A 16 bit float with |mantissa_bits| and the smallest normal number 2^exponent_min. */
static uint16_t narrow(double value, int mantissa_bits, int exponent_min)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent_bits = 15 - mantissa_bits;
    uint16_t infinity = (uint16_t)(((1u << exponent_bits) - 1) << mantissa_bits);
    if (isnan(value)) {
        return sign | infinity | (uint16_t)(1u << (mantissa_bits - 1));
    }
    value = fabs(value);
    if (value == 0) {
        return sign;
    }
    if (isinf(value)) {
        return sign | infinity;
    }
    int exponent;
    frexp(value, &exponent);
    exponent--; /* value = 1.x times 2^exponent */
    if (exponent < exponent_min) {
        exponent = exponent_min;
    }
    if (exponent > -exponent_min + 1) {
        return sign | infinity;
    }
    /* In units of the last place the nearest whole number is the mantissa with its hidden bit,
     * which adds one to the exponent field when there is one, as does a carry out of the mantissa.
     */
    double units = rint(ldexp(value, mantissa_bits - exponent));
    uint32_t bits = ((uint32_t)(exponent - exponent_min) << mantissa_bits) + (uint32_t)units;
    return sign | (bits < infinity ? (uint16_t)bits : infinity);
}

uint16_t number_to_f16(double value)
{
    return narrow(value, 10, -14);
}

uint16_t number_to_bf16(double value)
{
    return narrow(value, 7, -126);
}
