/* SPDX-License-Identifier: MIT */
/* Floats to bfloat16, to the nearest and of two as near to the even one. Numbers below the smallest
 * normal float become zero. */
#ifndef PTED_HAL_CPU_UK_ROUND_BF16_H
#define PTED_HAL_CPU_UK_ROUND_BF16_H

#include "hal/cpu/uk/simd.h"

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
        __m256bh half = _mm512_cvtneps_pbh((__m512)v_load_part(from + i, n));
        memcpy(to + i, &half, n * sizeof(*to));
    }
}

#endif
