/* SPDX-License-Identifier: MIT */
/* The level that every processor has: vectors of 16 bytes (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_GENERIC_H
#define PTED_HAL_CPU_UK_SIMD_GENERIC_H

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#define UK_LEVEL_GENERIC
#define UK_VECTOR_BYTES 16
#ifdef __aarch64__
#define UK_MR 12
#else
#define UK_MR 6
#endif

#include "hal/cpu/uk/simd_types.h"

UK_INLINE vf v_widen_upper(v_shorts x)
{
    return (vf)(__builtin_convertvector(x, vu) << 16);
}

UK_INLINE vf v_load_part(const float *p, size_t n)
{
    vf v = {0};
    memcpy(&v, p, n * sizeof(float));
    return v;
}

UK_INLINE void v_store_part(float *p, vf v, size_t n)
{
    memcpy(p, &v, n * sizeof(float));
}

UK_INLINE vf v_multiply_add(vf a, vf b, vf c)
{
    return a * b + c;
}

UK_INLINE vf v_lesser(vf a, vf b)
{
#ifdef __SSE__
    return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
    return v_select(a < b, a, b);
#endif
}

UK_INLINE vf v_greater(vf a, vf b)
{
#ifdef __SSE__
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    return v_select(a > b, a, b);
#endif
}

#endif
