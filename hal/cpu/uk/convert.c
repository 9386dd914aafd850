/* SPDX-License-Identifier: MIT */
/*
 * Converts between floats and 16-bit floats, rounding to nearest even. Numbers that are too large
 * become infinity; NaN stays NaN and becomes quiet. On machines with instructions for binary16, a
 * vector at a time.
 */
#include "config.h"

#include "hal/cpu/uk/level.h"

#if defined UK_LEVEL_GENERIC
#define HALVES 1 /* converted at a time */

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline void widen(float *y, const uint16_t *x)
{
    /* Moves exponent and fraction to the places of a float, then corrects the exponent's bias by
     * 127 - 15. */
    uint32_t magnitude = (uint32_t)(*x & 0x7fff) << 13, sign = (uint32_t)(*x & 0x8000) << 16;
    uint32_t bits = bits_of(float_of(magnitude) * 0x1p112f);
    if (magnitude >= 0x0f800000u) {
        bits = magnitude | 0x7f800000u; /* infinity, or a NaN that is made quiet */
        bits |= magnitude > 0x0f800000u ? 0x00400000u : 0;
    }
    *y = float_of(bits | sign);
}

static inline void narrow(uint16_t *y, const float *x)
{
    uint32_t bits = bits_of(*x), magnitude = bits & 0x7fffffffu, half;
    if (magnitude > 0x7f800000u) {
        half = 0x7e00u | (magnitude >> 13 & 0x01ffu);
    } else if (magnitude >= 0x477ff000u) { /* 65520 and more */
        half = 0x7c00u;
    } else if (magnitude < 0x38800000u) {
        /* Subnormal: adding 0.5 rounds to a multiple of 2^-24. */
        half = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
    } else {
        half = (magnitude - 0x38000000u + 0x0fffu + (magnitude >> 13 & 1u)) >> 13;
    }
    *y = (uint16_t)(half | (bits >> 16 & 0x8000u));
}
#elif defined UK_LEVEL_AVX512
#define HALVES 16

static inline void widen(float *y, const uint16_t *x)
{
    _mm512_storeu_ps(y, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)x)));
}

static inline void narrow(uint16_t *y, const float *x)
{
    _mm256_storeu_si256((__m256i *)(void *)y,
                        _mm512_cvtps_ph(_mm512_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
}
#elif defined UK_LEVEL_NEON
#define HALVES 4

static inline void widen(float *y, const uint16_t *x)
{
    vst1q_f32(y, vcvt_f32_f16((float16x4_t)vld1_u16(x)));
}

static inline void narrow(uint16_t *y, const float *x)
{
    vst1_u16(y, (uint16x4_t)vcvt_f16_f32(vld1q_f32(x)));
}
#else
#define HALVES 8

static inline void widen(float *y, const uint16_t *x)
{
    _mm256_storeu_ps(y, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)x)));
}

static inline void narrow(uint16_t *y, const float *x)
{
    _mm_storeu_si128((__m128i *)(void *)y,
                     _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
}
#endif

void UK_NAME(f16_to_f32)(float *y, const uint16_t *x, size_t n)
{
    size_t i = 0;
    for (; n - i >= HALVES; i += HALVES) {
        widen(y + i, x + i);
    }
    if (i < n) {
        uint16_t from[HALVES] = {0};
        float to[HALVES];
        memcpy(from, x + i, (n - i) * sizeof(*x));
        widen(to, from);
        memcpy(y + i, to, (n - i) * sizeof(*y));
    }
}

void UK_NAME(f32_to_f16)(uint16_t *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; n - i >= HALVES; i += HALVES) {
        narrow(y + i, x + i);
    }
    if (i < n) {
        float from[HALVES] = {0};
        uint16_t to[HALVES];
        memcpy(from, x + i, (n - i) * sizeof(*x));
        narrow(to, from);
        memcpy(y + i, to, (n - i) * sizeof(*y));
    }
}

/* A bfloat16 number is the upper half of a float. Compilers that optimise for size and speed alike
 * leave plain loops over unknown counts scalar, so these are vectors, too. */
UK_INLINE v_shorts round_upper(vf x)
{
    vu bits = (vu)x;
    vu rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    vu quiet = bits >> 16 | 0x0040u;
    return __builtin_convertvector((vu)v_select(x == x, (vf)rounded, (vf)quiet), v_shorts);
}

void UK_NAME(bf16_to_f32)(float *y, const uint16_t *x, size_t n)
{
    size_t i = 0;
    v_shorts halves = {0};
    for (; n - i >= UK_VL; i += UK_VL) {
        memcpy(&halves, x + i, sizeof(halves));
        v_store(y + i, v_widen_upper(halves));
    }
    if (i < n) {
        memcpy(&halves, x + i, (n - i) * sizeof(*x));
        v_store_part(y + i, v_widen_upper(halves), n - i);
    }
}

void UK_NAME(f32_to_bf16)(uint16_t *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; n - i >= UK_VL; i += UK_VL) {
        v_shorts halves = round_upper(v_load(x + i));
        memcpy(y + i, &halves, sizeof(halves));
    }
    if (i < n) {
        v_shorts halves = round_upper(v_load_part(x + i, n - i));
        memcpy(y + i, &halves, (n - i) * sizeof(*y));
    }
}
