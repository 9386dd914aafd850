/* SPDX-License-Identifier: MIT */
/* AVX2 with FMA and F16C: vectors of 32 bytes (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_AVX2_H
#define PTED_HAL_CPU_UK_SIMD_AVX2_H

#include <immintrin.h>

#define UK_LEVEL_AVX2
#define UK_VECTOR_BYTES 32
#define UK_MR 6

#include "hal/cpu/uk/simd_types.h"

UK_INLINE vf v_widen_upper(v_shorts x)
{
    return (vf)((vu)_mm256_cvtepu16_epi32((__m128i)x) << 16);
}

UK_INLINE __m256i v_part(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

UK_INLINE vf v_load_part(const float *p, size_t n)
{
    return (vf)_mm256_maskload_ps(p, v_part(n));
}

UK_INLINE void v_store_part(float *p, vf v, size_t n)
{
    _mm256_maskstore_ps(p, v_part(n), (__m256)v);
}

UK_INLINE vf v_multiply_add(vf a, vf b, vf c)
{
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

UK_INLINE vf v_lesser(vf a, vf b)
{
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
}

UK_INLINE vf v_greater(vf a, vf b)
{
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
}

#define UK_PICKS
UK_INLINE vf v_pick(vf x, vi lanes)
{
    return (vf)_mm256_permutevar8x32_ps((__m256)x, (__m256i)lanes);
}

#endif
