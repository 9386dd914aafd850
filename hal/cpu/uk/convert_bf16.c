/* SPDX-License-Identifier: MIT */
/* Floats to bfloat16 by the instruction for it, for levels that have it. It takes numbers below the
 * smallest normal float for zero; a vector with such a number is rounded as other levels do. */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/round_bf16.h"

/* Is there a number other than 0 below the smallest normal float? Whatever the thread's mode. */
UK_INLINE bool has_subnormal(vf x)
{
    vu magnitude = (vu)x & 0x7fffffffu;
    return _mm512_cmplt_epu32_mask((__m512i)(magnitude - 1u), _mm512_set1_epi32(0x007fffff)) != 0;
}

/* Stores the first |n| <= UK_VL numbers of |x|. */
UK_INLINE void round_vector(uint16_t *y, vf x, size_t n)
{
    if (has_subnormal(x)) {
        float one[UK_VL];
        v_store(one, x);
        UK_BASE(f32_to_bf16)(y, one, n);
        return;
    }
    __m256bh half = _mm512_cvtneps_pbh((__m512)x);
    _mm256_mask_storeu_epi16(y, (__mmask16)((1u << n) - 1), (__m256i)half);
}

void UK_NAME(f32_to_bf16)(uint16_t *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; n - i >= UK_VL; i += UK_VL) {
        round_vector(y + i, v_load(x + i), UK_VL);
    }
    if (i < n) {
        round_vector(y + i, v_load_part(x + i, n - i), n - i);
    }
}

/* By the instruction alone: where small numbers are zero. */
void UK_NAME(rows_to_bf16)(uint16_t *y, ptrdiff_t y_row, const float *x, size_t rows, size_t n)
{
    for (size_t i = 0; i < rows; i++) {
        round_run(y + (ptrdiff_t)i * y_row, x + i * n, n);
    }
}
