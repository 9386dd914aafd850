/* SPDX-License-Identifier: MIT */
/* Vectors of UK_VECTOR_BYTES, as the level's header has defined it, and what every level does with
 * them in the same way. */
#ifndef PTED_HAL_CPU_UK_SIMD_TYPES_H
#define PTED_HAL_CPU_UK_SIMD_TYPES_H

#include <stdint.h>
#include <string.h>

#define UK_INLINE static inline __attribute__((always_inline))

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define UK_SANITIZED
#elif defined __clang__
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(undefined_behavior_sanitizer)
#define UK_SANITIZED
#endif
#endif

/* Unrolls the following loop completely: its count is a constant up to 32. Not with sanitizers, nor
 * without vectors, where straight code of checks, or of elements, takes minutes to compile. */
#if defined(UK_SANITIZED) || !(defined(__SSE2__) || defined(__ARM_NEON))
#define UK_UNROLL
#elif defined __clang__
#define UK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define UK_UNROLL _Pragma("GCC unroll 32")
#endif

#ifndef UK_NV
#define UK_NV 2
#endif
#define UK_VL (UK_VECTOR_BYTES / 4) /* floats in a vector */
#define UK_NR (UK_NV * UK_VL)

typedef float vf __attribute__((vector_size(UK_VECTOR_BYTES)));
typedef int32_t vi __attribute__((vector_size(UK_VECTOR_BYTES)));
typedef uint32_t vu __attribute__((vector_size(UK_VECTOR_BYTES)));
typedef float vf_unaligned __attribute__((vector_size(UK_VECTOR_BYTES), aligned(4), may_alias));

UK_INLINE vf v_load(const float *p)
{
    return *(const vf_unaligned *)p;
}

UK_INLINE vf v_load_aligned(const float *p)
{
    return *(const vf *)(const void *)p;
}

UK_INLINE void v_store(float *p, vf v)
{
    *(vf_unaligned *)p = v;
}

UK_INLINE vf v_splat(float x)
{
    return x - (vf){0};
}

UK_INLINE vu v_splat_bits(uint32_t x)
{
    return x - (vu){0};
}

/* Holds as many numbers of 16 bits as a vector has floats. */
typedef uint16_t v_shorts __attribute__((vector_size(UK_VECTOR_BYTES / 2)));

/* mask ? a : b; a mask is all ones or all zeros in each lane, as comparisons make it. */
UK_INLINE vf v_select(vi mask, vf a, vf b)
{
#if defined UK_LEVEL_NEON
    return (vf)vbslq_f32((uint32x4_t)mask, (float32x4_t)a, (float32x4_t)b);
#else
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
#endif
}

#endif
