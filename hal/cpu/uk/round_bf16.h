/* SPDX-License-Identifier: MIT */
/* Floats to bfloat16, to the nearest and of two as near to the even one, and back. Numbers below
 * the smallest normal float become zero. */
#ifndef PTED_HAL_CPU_UK_ROUND_BF16_H
#define PTED_HAL_CPU_UK_ROUND_BF16_H

#include "hal/cpu/uk/simd.h"

#if defined UK_LEVEL_NEON
/* Rounds to the numbers of a vector of half the size. */
UK_INLINE uint16x4_t round_vector_bf16(vf x)
{
    vi is_tiny = (vf)((vu)x & 0x7fffffffu) < v_splat(1.17549435e-38f);
    x = v_select(is_tiny, (vf)((vu)x & 0x80000000u), x);
    return (uint16x4_t)vcvt_bf16_f32((float32x4_t)x);
}

UK_INLINE void store_bf16(uint16_t *to, vf x, size_t n)
{
    uint16x4_t half = round_vector_bf16(x);
    if (n == UK_VL) {
        vst1_u16(to, half);
    } else {
        memcpy(to, &half, n * sizeof(*to));
    }
}

/* Returns the first |n| <= UK_VL numbers as floats, then zeros. */
UK_INLINE vf load_bf16(const uint16_t *from, size_t n)
{
    v_shorts half = {0};
    memcpy(&half, from, n < UK_VL ? n * sizeof(*from) : sizeof(half));
    return v_widen_upper(half);
}

UK_INLINE void round_run(uint16_t *to, const float *from, size_t count)
{
    size_t i = 0;
    for (; count - i >= UK_VL; i += UK_VL) {
        store_bf16(to + i, v_load(from + i), UK_VL);
    }
    if (i < count) {
        store_bf16(to + i, v_load_part(from + i, count - i), count - i);
    }
}
#else
/* Stores the first |n| <= UK_VL numbers. */
UK_INLINE void store_bf16(uint16_t *to, vf x, size_t n)
{
    __m256bh half = _mm512_cvtneps_pbh((__m512)x);
    _mm256_mask_storeu_epi16(to, (__mmask16)((1u << n) - 1), (__m256i)half);
}

/* Returns the first |n| <= UK_VL numbers as floats, then zeros. */
UK_INLINE vf load_bf16(const uint16_t *from, size_t n)
{
    __m256i half = _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), from);
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}

static void round_run(uint16_t *to, const float *from, size_t count)
{
    size_t i = 0;
    for (; count - i >= 2 * UK_VL; i += 2 * UK_VL) {
        __m512bh pair =
            _mm512_cvtne2ps_pbh((__m512)v_load(from + i + UK_VL), (__m512)v_load(from + i));
        memcpy(to + i, &pair, sizeof(pair));
    }
    for (; i < count; i += UK_VL) {
        size_t n = count - i < UK_VL ? count - i : UK_VL;
        store_bf16(to + i, v_load_part(from + i, n), n);
    }
}
#endif

#endif
