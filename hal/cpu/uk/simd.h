/* SPDX-License-Identifier: MIT */
/*
 * The basis of the micro-kernels: GCC vector extensions with the width of the level. Each file of
 * this folder is compiled once for each level, with the level's own -m flags and -DUK_LEVEL_...; so
 * everything in this header is static, and everything else that a file defines is named with
 * UK_NAME().
 */
#ifndef PTED_HAL_CPU_UK_SIMD_H
#define PTED_HAL_CPU_UK_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined __AVX2__
#include <immintrin.h>
#elif defined __SSE2__
#include <xmmintrin.h>
#endif

/* The register tile of the matrix product has UK_MR rows of two vectors: as many as leave room for
 * two vectors of B and one broadcast. */
#if defined UK_LEVEL_AMX_BF16
#define UK_LEVEL amx_bf16
#define UK_BASE_LEVEL avx512
#define UK_DOT_LEVEL avx512_vnni
#define UK_BYTES_LEVEL amx_int8
#define UK_BF16_LEVEL amx_bf16
#define UK_PAIRS_LEVEL avx512_bf16
#define UK_LEVEL_AVX512_VNNI
#define UK_LEVEL_AVX512
#define UK_VECTOR_BYTES 64
#define UK_MR 14
#define UK_U8_MR 32
#define UK_U8_SPEED 8
#define UK_BF16_MR 32
#define UK_BF16_SPEED 8
#define UK_F32_PER_READ 35
#define UK_F32_ASKS_AHEAD true
#define UK_BF16_SKIPS false
#elif defined UK_LEVEL_AMX_INT8
#define UK_LEVEL amx_int8
#define UK_F32_PER_READ 35
#define UK_F32_ASKS_AHEAD true
#define UK_BASE_LEVEL avx512
#define UK_DOT_LEVEL avx512_vnni
#define UK_BF16_LEVEL avx512_bf16
#define UK_LEVEL_AVX512_VNNI
#define UK_LEVEL_AVX512
#define UK_VECTOR_BYTES 64
#define UK_MR 14
#define UK_U8_MR 32
#define UK_U8_SPEED 8
#elif defined UK_LEVEL_AVX512_BF16
#define UK_LEVEL avx512_bf16
#define UK_BASE_LEVEL avx512
#define UK_DOT_LEVEL avx512_vnni
#define UK_BYTES_LEVEL avx512_vnni
#define UK_BF16_LEVEL avx512_bf16
#define UK_LEVEL_AVX512_VNNI
#define UK_LEVEL_AVX512
#define UK_VECTOR_BYTES 64
#define UK_MR 14
#elif defined UK_LEVEL_AVX512_VNNI
#define UK_LEVEL avx512_vnni
#define UK_BASE_LEVEL avx512
#define UK_LEVEL_AVX512
#define UK_VECTOR_BYTES 64
#define UK_MR 14
#elif defined UK_LEVEL_AVX512
#define UK_LEVEL avx512
#define UK_VECTOR_BYTES 64
#define UK_MR 14
#elif defined UK_LEVEL_AVX_VNNI
#define UK_LEVEL avx_vnni
#define UK_BASE_LEVEL avx2
#define UK_LEVEL_AVX2
#define UK_VECTOR_BYTES 32
#define UK_MR 6
#elif defined UK_LEVEL_AVX2
#define UK_LEVEL avx2
#define UK_VECTOR_BYTES 32
#define UK_MR 6
#elif defined UK_LEVEL_GENERIC
#define UK_LEVEL generic
#define UK_VECTOR_BYTES 16
#ifdef __aarch64__
#define UK_MR 12
#else
#define UK_MR 6
#endif
#else
#error "compile with -DUK_LEVEL_GENERIC or another level"
#endif

#define UK_CAT_(a, b) a##_##b
#define UK_CAT(a, b) UK_CAT_(a, b)
#define UK_NAME(name) UK_CAT(name, UK_LEVEL)
/* The name of a function that the level inherits from its base. */
#ifndef UK_BASE_LEVEL
#define UK_BASE_LEVEL UK_LEVEL
#endif
#define UK_BASE(name) UK_CAT(name, UK_BASE_LEVEL)
/* The name of a function on integers that it inherits. */
#ifndef UK_DOT_LEVEL
#define UK_DOT_LEVEL UK_LEVEL
#endif
#define UK_DOT(name) UK_CAT(name, UK_DOT_LEVEL)
/* The name of one of the functions that multiply bytes and that levels seldom inherit. */
#ifndef UK_BYTES_LEVEL
#define UK_BYTES_LEVEL UK_LEVEL
#endif
#define UK_BYTES(name) UK_CAT(name, UK_BYTES_LEVEL)
/* The name of a function on bfloat16, where UK_BF16_LEVEL says that there are any. */
#define UK_BF16(name) UK_CAT(name, UK_BF16_LEVEL)
/* The name of a function that makes or packs them. */
#ifndef UK_PAIRS_LEVEL
#define UK_PAIRS_LEVEL UK_BF16_LEVEL
#endif
#define UK_PAIRS(name) UK_CAT(name, UK_PAIRS_LEVEL)
/* Rows of a tile of the integer matrix product, and of that of bfloat16 numbers. */
#ifndef UK_U8_MR
#define UK_U8_MR UK_MR
#endif
/* Products of bytes in the time of one with dot products, about: tiles reach 16 at most. */
#ifndef UK_U8_SPEED
#define UK_U8_SPEED 1
#endif
#ifndef UK_BF16_MR
#define UK_BF16_MR UK_MR
#endif
/* Multiply-adds that take as long as one float from memory, about: processors with AMX have two
 * ports for 512-bit ones. */
#ifndef UK_F32_PER_READ
#define UK_F32_PER_READ 12
#define UK_F32_ASKS_AHEAD false
#endif
/* Products of bfloat16 numbers in the time of one of floats, about: tiles reach 16 at most. */
#ifndef UK_BF16_SPEED
#define UK_BF16_SPEED 2
#endif
/* Do products of bfloat16 numbers leave out runs of single rows? */
#ifndef UK_BF16_SKIPS
#define UK_BF16_SKIPS true
#endif
#define UK_STRING_(a) #a
#define UK_STRING(a) UK_STRING_(a)

#define UK_INLINE static inline __attribute__((always_inline))

/* Unrolls the following loop completely: its count is a constant up to 32. Sanitizers are an
 * exception, because with their checks the long straight code takes minutes to compile. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define UK_UNROLL
#elif defined __clang__
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(undefined_behavior_sanitizer)
#define UK_UNROLL
#else
#define UK_UNROLL _Pragma("clang loop unroll(full)")
#endif
#else
#define UK_UNROLL _Pragma("GCC unroll 32")
#endif

#define UK_VL (UK_VECTOR_BYTES / 4) /* floats in a vector */
#define UK_NR (2 * UK_VL)

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

typedef uint16_t v_shorts __attribute__((vector_size(UK_VECTOR_BYTES / 2)));

/* UK_VL bfloat16 numbers as floats, whose upper halves they are. The last form would do for every
 * level, here and where simd_u8.h widens bytes, but gcc 12 makes five instructions of it. */
UK_INLINE vf v_widen_upper(v_shorts x)
{
#if defined UK_LEVEL_AVX512
    return (vf)((vu)_mm512_cvtepu16_epi32((__m256i)x) << 16);
#elif defined UK_LEVEL_AVX2
    return (vf)((vu)_mm256_cvtepu16_epi32((__m128i)x) << 16);
#else
    return (vf)(__builtin_convertvector(x, vu) << 16);
#endif
}

/* Loads the first |n| < UK_VL floats, with zeros in the other lanes; and stores them. */
#if defined UK_LEVEL_AVX512
UK_INLINE vf v_load_part(const float *p, size_t n)
{
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

UK_INLINE void v_store_part(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
}
#elif defined UK_LEVEL_AVX2
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
#else
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
#endif

#if defined UK_LEVEL_AVX512
/* The lower half of a vector. Its instructions take half the time on processors that split whole
 * ones. */
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

/* The other half is anything. */
UK_INLINE vf v_from_low(vf_half x)
{
    return (vf)_mm512_castps256_ps512((__m256)x);
}
#endif

/* mask ? a : b; a mask is all ones or all zeros in each lane, as comparisons make it. */
UK_INLINE vf v_select(vi mask, vf a, vf b)
{
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

/*
 * a * b + c, rounded once where the processor has such an instruction. A compiler joins a product
 * and a sum by itself only if no branch is between them. Functions for different numbers of rows
 * differ in that, and a row must have the same bits in all of them.
 */
UK_INLINE vf v_multiply_add(vf a, vf b, vf c)
{
#if defined UK_LEVEL_AVX512
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined UK_LEVEL_AVX2
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* a < b ? a : b and a > b ? a : b: b if one of them is a NaN. On x86 this is one instruction, which
 * compilers do not find through v_select. */
UK_INLINE vf v_lesser(vf a, vf b)
{
#if defined UK_LEVEL_AVX512
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined UK_LEVEL_AVX2
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined __SSE__
    return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
    return v_select(a < b, a, b);
#endif
}

UK_INLINE vf v_greater(vf a, vf b)
{
#if defined UK_LEVEL_AVX512
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined UK_LEVEL_AVX2
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined __SSE__
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    return v_select(a > b, a, b);
#endif
}

/* A NaN in x stays; the bounds are not NaN. */
UK_INLINE vf v_clamp(vf x, vf min, vf max)
{
    return v_lesser(max, v_greater(min, x));
}

/* The larger one, or the NaN if one is. */
UK_INLINE vf v_max(vf a, vf b)
{
    return v_select(a == a, v_greater(a, b), a);
}

UK_INLINE vf v_min(vf a, vf b)
{
    return v_select(a == a, v_lesser(a, b), a);
}

#if defined UK_LEVEL_AVX512 || defined UK_LEVEL_AVX2
#define UK_PICKS
/* Lane i is lane lanes[i] of x. */
UK_INLINE vf v_pick(vf x, vi lanes)
{
#ifdef UK_LEVEL_AVX512
    return (vf)_mm512_permutexvar_ps((__m512i)lanes, (__m512)x);
#else
    return (vf)_mm256_permutevar8x32_ps((__m256)x, (__m256i)lanes);
#endif
}
#endif

/* Keeps x in a register: gcc would load it again for each use. */
UK_INLINE vf v_hold(vf x)
{
#if defined __x86_64__
    __asm__("" : "+v"(x));
#elif defined __aarch64__
    __asm__("" : "+w"(x));
#endif
    return x;
}

#endif
