/* SPDX-License-Identifier: MIT */
/* The orders of the bytes of a word that panels with sorted words may have: gemm_u8_sorted.h. */
#ifndef PTED_HAL_CPU_UK_U8_SORTED_H
#define PTED_HAL_CPU_UK_U8_SORTED_H

#include "hal/cpu/uk/simd_u8.h"

/* Each number has once each other one beside it. */
#define UK_SORTED_ORDERS 3

/* Loads the first |n| bytes, which are whole words, with zeros in the lanes behind them. */
UK_INLINE vb v_load_words(const uint8_t *p, size_t n)
{
#if defined UK_LEVEL_AVX512
    return v_load_bytes(p, n);
#else
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n / 4)), lanes);
    return (vb)_mm256_maskload_epi32((const int *)(const void *)p, mask);
#endif
}

/* Returns the bytes of all words in order |order|. */
UK_INLINE vb v_in_order(vb x, const int order)
{
    const __m128i second = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    const __m128i third = _mm_setr_epi8(0, 3, 1, 2, 4, 7, 5, 6, 8, 11, 9, 10, 12, 15, 13, 14);
    if (order == 0) {
        return x;
    }
#if defined UK_LEVEL_AVX512
    return (vb)_mm512_shuffle_epi8((__m512i)x, _mm512_broadcast_i32x4(order == 1 ? second : third));
#else
    return (vb)_mm256_shuffle_epi8((__m256i)x,
                                   _mm256_broadcastsi128_si256(order == 1 ? second : third));
#endif
}

/* Returns the greatest of numbers of 16 bits, which are not negative. */
UK_INLINE uint32_t v_greatest_of_8(__m128i x)
{
    __m128i least = _mm_minpos_epu16(_mm_xor_si128(x, _mm_set1_epi16(-1)));
    return 0xffff - ((uint32_t)_mm_cvtsi128_si32(least) & 0xffff);
}

UK_INLINE uint32_t v_greatest_2(vs x)
{
#if defined UK_LEVEL_AVX512
    __m256i half = _mm256_max_epi16(_mm512_castsi512_si256((__m512i)x),
                                    _mm512_extracti64x4_epi64((__m512i)x, 1));
#else
    __m256i half = (__m256i)x;
#endif
    return v_greatest_of_8(
        _mm_max_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

/* Returns the greatest byte. */
UK_INLINE uint8_t v_greatest_1(vb x)
{
    vh low = 0xff - (vh){0};
    return (uint8_t)v_greatest_2((vs)((vh)v_max_1(x, (vb)((vh)x >> 8)) & low));
}

#endif
