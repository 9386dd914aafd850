/* SPDX-License-Identifier: MIT */
/* AVX-512 (F, BW, DQ and VL): vectors of 64 bytes (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_AVX512_H
#define PTED_HAL_CPU_UK_SIMD_AVX512_H

#include <immintrin.h>

#define UK_LEVEL_AVX512
#define UK_VECTOR_BYTES 64
#define UK_MR 14

#include "hal/cpu/uk/simd_types.h"

UK_INLINE vf v_widen_upper(v_shorts x)
{
    return (vf)((vu)_mm512_cvtepu16_epi32((__m256i)x) << 16);
}

UK_INLINE vf v_load_part(const float *p, size_t n)
{
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

UK_INLINE void v_store_part(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
}

UK_INLINE vf v_multiply_add(vf a, vf b, vf c)
{
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

UK_INLINE vf v_lesser(vf a, vf b)
{
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
}

UK_INLINE vf v_greater(vf a, vf b)
{
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
}

#define UK_PICKS
UK_INLINE vf v_pick(vf x, vi lanes)
{
    return (vf)_mm512_permutexvar_ps((__m512i)lanes, (__m512)x);
}

/* Returns the lower half of a vector. Its instructions take half the time on processors that split
 * whole ones. */
typedef float vf_half __attribute__((vector_size(UK_VECTOR_BYTES / 2)));

UK_INLINE vf_half v_low(vf x)
{
    return (vf_half)_mm512_castps512_ps256((__m512)x);
}

UK_INLINE vf_half v_low_splat(float x)
{
    return x - (vf_half){0};
}

UK_INLINE vf_half v_low_load(const float *p)
{
    return (vf_half)_mm256_loadu_ps(p);
}

UK_INLINE void v_low_store(float *p, vf_half v)
{
    _mm256_storeu_ps(p, (__m256)v);
}

/* Leaves anything in the other half. */
UK_INLINE vf v_from_low(vf_half x)
{
    return (vf)_mm512_castps256_ps512((__m256)x);
}

#endif
