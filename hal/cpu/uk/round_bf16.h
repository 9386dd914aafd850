/* SPDX-License-Identifier: MIT */
/* Floats to bfloat16, to the nearest and of two as near to the even one, and back. Numbers below
 * the smallest normal float become zero. */
#ifndef PTED_HAL_CPU_UK_ROUND_BF16_H
#define PTED_HAL_CPU_UK_ROUND_BF16_H

#include "hal/cpu/uk/simd.h"

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
