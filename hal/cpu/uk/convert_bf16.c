/* SPDX-License-Identifier: MIT */
/* Floats to bfloat16 by the instruction for it, for levels that have it. It takes numbers below the
 * smallest normal float for zero; a vector with such a number is rounded as other levels do. */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/round_bf16.h"

#if defined UK_LEVEL_NEON
void UK_NAME(f32_to_bf16)(uint16_t *y, const float *x, size_t n)
{
    UK_BASE(f32_to_bf16)(y, x, n);
}
#else
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
#endif

/* By the instruction alone: where small numbers are zero. */
void UK_NAME(rows_to_bf16)(uint16_t *y, ptrdiff_t y_row, const float *x, size_t rows, size_t n)
{
    for (size_t i = 0; i < rows; i++) {
        round_run(y + (ptrdiff_t)i * y_row, x + i * n, n);
    }
}

#if defined UK_LEVEL_NEON
_Static_assert(UK_PLANES_MAX == 4, "planes are stored together");

void UK_NAME(planes_to_bf16)(uint16_t *y, const float *x, ptrdiff_t plane, uint32_t planes,
                             size_t n)
{
    for (size_t i = 0; i < n; i += UK_VL) {
        size_t count = n - i < UK_VL ? n - i : UK_VL;
        uint16_t pixels[UK_VL * UK_PLANES_MAX];
        uint16x4x4_t rounded;
        for (uint32_t p = 0; p < UK_PLANES_MAX; p++) {
            const float *from = x + (ptrdiff_t)p * plane + i;
            vf in = p >= planes ? (vf){0} : count < UK_VL ? v_load_part(from, count) : v_load(from);
            rounded.val[p] = round_vector_bf16(in);
        }
        vst4_u16(pixels, rounded);
        memcpy(y + i * UK_PLANES_MAX, pixels, count * UK_PLANES_MAX * sizeof(*y));
    }
}
#else
/* A vector of pixels of plane |first| and of the next one, rounded. */
UK_INLINE __m512i two_planes(const float *x, ptrdiff_t plane, uint32_t planes, uint32_t first,
                             size_t n)
{
    vf one = first < planes ? v_load_part(x + first * plane, n) : (vf){0};
    vf two = first + 1 < planes ? v_load_part(x + (first + 1) * plane, n) : (vf){0};
    return (__m512i)_mm512_cvtne2ps_pbh((__m512)two, (__m512)one);
}

_Static_assert(UK_PLANES_MAX == 4, "two pairs of planes");

void UK_NAME(planes_to_bf16)(uint16_t *y, const float *x, ptrdiff_t plane, uint32_t planes,
                             size_t n)
{
    uint16_t places[2 * UK_VL]; /* of numbers in both pairs of planes */
    for (uint16_t i = 0; i < 2 * UK_VL; i++) {
        /* 0 and 1: a number of the first pair; 2 and 3: of the second pair, which is behind it */
        uint16_t pair = i % 4 / 2, in_pair = i % 2, pixel = i / 4;
        places[i] = (uint16_t)(pair * 2 * UK_VL + in_pair * UK_VL + pixel);
    }
    const __m512i low = _mm512_loadu_si512(places);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(UK_VL / 2));
    for (size_t i = 0; i < n; i += UK_VL) {
        size_t count = n - i < UK_VL ? n - i : UK_VL;
        __m512i first = two_planes(x + i, plane, planes, 0, count);
        __m512i second = two_planes(x + i, plane, planes, 2, count);
        uint64_t mask = count == UK_VL ? UINT64_MAX : (UINT64_C(1) << count * UK_PLANES_MAX) - 1;
        uint16_t *to = y + i * UK_PLANES_MAX;
        __m512i half = _mm512_permutex2var_epi16(first, low, second);
        _mm512_mask_storeu_epi16(to, (__mmask32)mask, half);
        half = _mm512_permutex2var_epi16(first, high, second);
        _mm512_mask_storeu_epi16(to + 2 * UK_VL, (__mmask32)(mask >> 32), half);
    }
}
#endif
