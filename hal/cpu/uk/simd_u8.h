/* SPDX-License-Identifier: MIT */
/*
 * The basis of the integer micro-kernels, in addition to simd.h. An integer product takes a 32-bit
 * word from each side: UK_WORD neighbours in k. They are bytes if there are 8-bit dot products, and
 * 16 bits wide otherwise, which is exact: pairs of 8-bit products may saturate 16 bits. Where they
 * do not, gemm_u8_sorted.h adds bytes.
 *
 * The dot products of aarch64 without I8MM take signed bytes on both sides. There UK_A_SHIFT, which
 * is 0 elsewhere, is subtracted from the unsigned ones first, and the sums begin with what makes up
 * for it: UK_A_SHIFT times UK_COLUMN_SUM.
 */
#ifndef PTED_HAL_CPU_UK_SIMD_U8_H
#define PTED_HAL_CPU_UK_SIMD_U8_H

#include "hal/cpu/uk/simd.h"

#if defined __SSE2__
#include <emmintrin.h>
#endif

#if defined UK_LEVEL_AVX512_VNNI || defined UK_LEVEL_AVX_VNNI || defined UK_LEVEL_DOTPROD
#define UK_WORD 4
#else
#define UK_WORD 2
#endif
/* Has the level products of bytes whose sums saturate, and no dot products? Then panels of weights
 * may be sorted: see gemm_u8_sorted.h. */
#if UK_WORD == 2 && (defined UK_LEVEL_AVX2 || defined UK_LEVEL_AVX512)
#define UK_SORTS 1
#else
#define UK_SORTS 0
#endif
#if defined UK_LEVEL_DOTPROD && !defined UK_LEVEL_I8MM
#define UK_A_SHIFT 128
#else
#define UK_A_SHIFT 0
#endif

/* Bytes of UK_VL words of weights in memory. */
#define UK_WORDS_BYTES (UK_VL * UK_WORD)
/* Bytes of the packed weights of UK_VL channels for one window of a depthwise convolution. */
#define UK_DW_WINDOW_BYTES (UK_VECTOR_BYTES * (4 / UK_WORD))

typedef uint8_t vb __attribute__((vector_size(UK_VECTOR_BYTES)));
typedef uint16_t vh __attribute__((vector_size(UK_VECTOR_BYTES)));
typedef int16_t vs __attribute__((vector_size(UK_VECTOR_BYTES)));
typedef int8_t v_half_signed __attribute__((vector_size(UK_VECTOR_BYTES / 2)));
typedef uint8_t v_half __attribute__((vector_size(UK_VECTOR_BYTES / 2)));
typedef uint8_t v_words __attribute__((vector_size(UK_WORDS_BYTES)));

/* Unaligned loads and stores of any vector type. */
#define V_GET(type, p)                                                                             \
    __extension__({                                                                                \
        type v_;                                                                                   \
        memcpy(&v_, p, sizeof(v_));                                                                \
        v_;                                                                                        \
    })
#define V_PUT(p, v) memcpy(p, &(v), sizeof(v))

#ifndef V_APART
#define V_APART(v) ((void)(v)) /* see simd_neon.h */
#endif

/* Loads the first |n| <= UK_VECTOR_BYTES bytes, with zeros in the other lanes; and stores them. */
#if defined UK_LEVEL_AVX512
UK_INLINE vb v_load_bytes(const uint8_t *p, size_t n)
{
    return (vb)_mm512_maskz_loadu_epi8(n < 64 ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0, p);
}

UK_INLINE void v_store_bytes(uint8_t *p, vb v, size_t n)
{
    _mm512_mask_storeu_epi8(p, n < 64 ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0, (__m512i)v);
}
#else
UK_INLINE vb v_load_bytes(const uint8_t *p, size_t n)
{
    vb v = {0};
    if (n == UK_VECTOR_BYTES) {
        return V_GET(vb, p);
    }
    memcpy(&v, p, n);
    return v;
}

UK_INLINE void v_store_bytes(uint8_t *p, vb v, size_t n)
{
    if (n == UK_VECTOR_BYTES) {
        V_PUT(p, v);
    } else {
        memcpy(p, &v, n);
    }
}
#endif

/* Stores half |i| of a vector. */
UK_INLINE void v_store_half(uint8_t *p, vb v, const int i)
{
#if defined UK_LEVEL_AVX512
    __m256i half =
        i == 0 ? _mm512_castsi512_si256((__m512i)v) : _mm512_extracti64x4_epi64((__m512i)v, 1);
    _mm256_storeu_si256((__m256i_u *)p, half);
#elif defined UK_LEVEL_AVX2
    __m128i half =
        i == 0 ? _mm256_castsi256_si128((__m256i)v) : _mm256_extracti128_si256((__m256i)v, 1);
    _mm_storeu_si128((__m128i_u *)p, half);
#else
    memcpy(p, (const uint8_t *)&v + i * (UK_VECTOR_BYTES / 2), UK_VECTOR_BYTES / 2);
#endif
}

/* Stores quarter |i| of a vector. */
UK_INLINE void v_store_quarter(uint8_t *p, vb v, const int i)
{
#if defined UK_LEVEL_AVX512
    __m128i quarter = i == 0   ? _mm512_extracti32x4_epi32((__m512i)v, 0)
                      : i == 1 ? _mm512_extracti32x4_epi32((__m512i)v, 1)
                      : i == 2 ? _mm512_extracti32x4_epi32((__m512i)v, 2)
                               : _mm512_extracti32x4_epi32((__m512i)v, 3);
    _mm_storeu_si128((__m128i_u *)p, quarter);
#else
    memcpy(p, (const uint8_t *)&v + i * UK_VL, UK_VL);
#endif
}

/* Returns a vector of four quarters. Loaded through memory it would wait for all four stores. */
UK_INLINE vb v_load_quarters(const uint8_t *const p[4])
{
#if defined UK_LEVEL_AVX512
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i_u *)p[0]));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i_u *)p[1]), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i_u *)p[2]), 2);
    return (vb)_mm512_inserti32x4(v, _mm_loadu_si128((const __m128i_u *)p[3]), 3);
#elif defined UK_LEVEL_AVX2
    __m128i a = _mm_loadl_epi64((const __m128i_u *)p[0]),
            b = _mm_loadl_epi64((const __m128i_u *)p[1]);
    __m128i c = _mm_loadl_epi64((const __m128i_u *)p[2]),
            d = _mm_loadl_epi64((const __m128i_u *)p[3]);
    return (vb)_mm256_setr_m128i(_mm_unpacklo_epi64(a, b), _mm_unpacklo_epi64(c, d));
#else
    uint32_t words[4];
    memcpy(&words[0], p[0], UK_VL);
    memcpy(&words[1], p[1], UK_VL);
    memcpy(&words[2], p[2], UK_VL);
    memcpy(&words[3], p[3], UK_VL);
    return (vb)(vu){words[0], words[1], words[2], words[3]};
#endif
}

UK_INLINE vi v_splat_int(int32_t x)
{
    return x - (vi){0};
}

/* Wraps around: in a malformed model sums may overflow, which gives a wrong number. */
UK_INLINE vi v_add(vi a, vi b)
{
    return (vi)((vu)a + (vu)b);
}

/* Subtracts UK_A_SHIFT from unsigned bytes, which makes signed ones of them. */
UK_INLINE vb v_shift_bytes(vb x)
{
    return x ^ (uint8_t)UK_A_SHIFT;
}

/* Without its prefix, the assembler takes the form of AVX-512. A test has the instruction as a
 * function: tests/hal/vnni_soft.h. */
#ifndef UK_DOT_BYTES
#define UK_DOT_BYTES(acc, a, b) __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(a), "x"(b))
#endif

/* acc + the products of the words of a and b; a is unsigned, or shifted, and b signed. */
UK_INLINE vi v_dot(vi acc, vi a, vi b)
{
#if defined UK_LEVEL_AVX512_VNNI
    /* An asm statement, because gcc 12 spills registers around the intrinsic. */
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
#elif defined UK_LEVEL_AVX_VNNI
    UK_DOT_BYTES(acc, a, b);
    return acc;
#elif defined UK_LEVEL_AVX512
    return v_add(acc, (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b));
#elif defined UK_LEVEL_AVX2
    return v_add(acc, (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b));
#elif defined __SSE2__
    return v_add(acc, (vi)_mm_madd_epi16((__m128i)a, (__m128i)b));
#elif defined UK_LEVEL_I8MM
    return (vi)vusdotq_s32((int32x4_t)acc, (uint8x16_t)a, (int8x16_t)b);
#elif defined UK_LEVEL_DOTPROD
    return (vi)vdotq_s32((int32x4_t)acc, (int8x16_t)a, (int8x16_t)b);
#elif defined UK_LEVEL_NEON
    int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
    int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y)), high = vmull_high_s16(x, y);
    return v_add(acc, (vi)vpaddq_s32(low, high));
#else
    vi low = ((vi)((vu)a << 16) >> 16) * ((vi)((vu)b << 16) >> 16);
    return v_add(acc, v_add(low, (a >> 16) * (b >> 16)));
#endif
}

#if UK_SORTS
/* Returns the sums of two products each, as 16 bits, where they fit; a is unsigned and b signed. */
UK_INLINE vs v_multiply_bytes(vi a, vi b)
{
#if defined UK_LEVEL_AVX512
    return (vs)_mm512_maddubs_epi16((__m512i)a, (__m512i)b);
#else
    return (vs)_mm256_maddubs_epi16((__m256i)a, (__m256i)b);
#endif
}
#endif

/* Returns the bytes as numbers of 16 bits. */
UK_INLINE vh v_widen_bytes(v_half x)
{
#if defined UK_LEVEL_AVX512
    return (vh)_mm512_cvtepu8_epi16((__m256i)x);
#elif defined UK_LEVEL_AVX2
    return (vh)_mm256_cvtepu8_epi16((__m128i)x);
#else
    return __builtin_convertvector(x, vh);
#endif
}

/* UK_VL words of 8-bit weights, in the form that v_dot expects. */
UK_INLINE vi v_words_of(v_words w)
{
#if UK_WORD == 4
    return (vi)w;
#elif defined UK_LEVEL_AVX512
    return (vi)_mm512_cvtepi8_epi16((__m256i)w);
#elif defined UK_LEVEL_AVX2
    return (vi)_mm256_cvtepi8_epi16((__m128i)w);
#else
    return (vi) __builtin_convertvector((v_half_signed)w, vs);
#endif
}

/* Returns the low and the high four bits of each byte, as signed numbers times 16: this takes the
 * fewest instructions, and the scale makes up for it. */
UK_INLINE v_words v_low_halves(v_words w)
{
    typedef uint16_t pairs __attribute__((vector_size(UK_WORDS_BYTES)));
    return (v_words)(((pairs)w << 4) & (pairs)(0xf0f0 - (pairs){0}));
}

UK_INLINE v_words v_high_halves(v_words w)
{
    return w & (v_words)(0xf0 - (v_words){0});
}

/* Rounds to nearest even. The result is arbitrary if |x| >= 2^21, but very small x give the least
 * value. */
UK_INLINE vi v_round_int(vf x)
{
#if defined UK_LEVEL_AVX512
    return (vi)_mm512_cvtps_epi32((__m512)x);
#elif defined UK_LEVEL_AVX2
    return (vi)_mm256_cvtps_epi32((__m256)x);
#elif defined __SSE2__
    return (vi)_mm_cvtps_epi32((__m128)x);
#elif defined UK_LEVEL_NEON
    return (vi)vcvtnq_s32_f32((float32x4_t)x);
#else
    x = v_greater(x, v_splat(-65536.0f));
    return (vi)(x + v_splat(12582912.0f)) - v_splat_int(0x4b400000);
#endif
}

/*
 * Operations within lanes of 16 bytes: interleaving the lower or upper halves of both vectors, in
 * units of 1 and 2 bytes; narrowing with saturation, from 4 bytes to 2 and from 2 to 1 unsigned,
 * which undoes the interleaving; saturated addition of 2 bytes; maximum and minimum of bytes.
 */
/* clang-format off */
#if defined UK_LEVEL_AVX512
#define V_PAIR(name, intrinsic) \
    UK_INLINE vb name(vb a, vb b) \
    { \
        return (vb)_mm512_##intrinsic((__m512i)a, (__m512i)b); \
    }
#elif defined UK_LEVEL_AVX2
#define V_PAIR(name, intrinsic) \
    UK_INLINE vb name(vb a, vb b) \
    { \
        return (vb)_mm256_##intrinsic((__m256i)a, (__m256i)b); \
    }
#elif defined __SSE2__
#define V_PAIR(name, intrinsic) \
    UK_INLINE vb name(vb a, vb b) \
    { \
        return (vb)_mm_##intrinsic((__m128i)a, (__m128i)b); \
    }
#endif
/* clang-format on */
/* UK_FITS: on x86 floats that fit no int become the least one, so v_round_bytes() asks whether all
 * fit. */
#ifdef V_PAIR
#define UK_FITS 1
#define V_NARROWS
V_PAIR(v_zip_low_1, unpacklo_epi8)
V_PAIR(v_zip_high_1, unpackhi_epi8)
V_PAIR(v_zip_low_2, unpacklo_epi16)
V_PAIR(v_zip_high_2, unpackhi_epi16)
V_PAIR(v_narrow_4, packs_epi32)
V_PAIR(v_narrow_2, packus_epi16)
V_PAIR(v_add_2, adds_epi16)
V_PAIR(v_max_1, max_epu8)
V_PAIR(v_min_1, min_epu8)
#else
#define UK_FITS 0
#if defined UK_LEVEL_NEON
#define V_NARROWS
UK_INLINE vb v_narrow_4(vb a, vb b)
{
    return (vb)vqmovn_high_s32(vqmovn_s32((int32x4_t)a), (int32x4_t)b);
}

UK_INLINE vb v_narrow_2(vb a, vb b)
{
    return (vb)vqmovun_high_s16(vqmovun_s16((int16x8_t)a), (int16x8_t)b);
}

UK_INLINE vb v_add_2(vb a, vb b)
{
    return (vb)vqaddq_s16((int16x8_t)a, (int16x8_t)b);
}

UK_INLINE vb v_max_1(vb a, vb b)
{
    return (vb)vmaxq_u8((uint8x16_t)a, (uint8x16_t)b);
}

UK_INLINE vb v_min_1(vb a, vb b)
{
    return (vb)vminq_u8((uint8x16_t)a, (uint8x16_t)b);
}
#endif

UK_INLINE vb v_zip_low_1(vb a, vb b)
{
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

UK_INLINE vb v_zip_high_1(vb a, vb b)
{
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
}

UK_INLINE vb v_zip_low_2(vb a, vb b)
{
    return __builtin_shufflevector(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
}

UK_INLINE vb v_zip_high_2(vb a, vb b)
{
    return __builtin_shufflevector(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30,
                                   31);
}
#endif

/* Four runs of UK_VL bytes as UK_VL ints: int i holds byte i of each run, in the order of the runs.
 */
UK_INLINE vi v_transpose(vb x)
{
#if defined UK_LEVEL_AVX512
    const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    return (vi)_mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, (__m512i)x), bytes);
#elif defined UK_LEVEL_AVX2
    const __m256i lanes = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    const __m256i bytes = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    return (vi)_mm256_shuffle_epi8(_mm256_permutevar8x32_epi32((__m256i)x, lanes), bytes);
#elif defined __SSE2__
    __m128i even = _mm_unpacklo_epi8((__m128i)x, _mm_unpackhi_epi64((__m128i)x, (__m128i)x));
    return (vi)_mm_unpacklo_epi8(even, _mm_unpackhi_epi64(even, even));
#else
    return (vi)__builtin_shufflevector(x, x, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#endif
}

/* Spreads UK_VECTOR_BYTES bytes to ints. v_gather() is the inverse: adds |zero|, and raises results
 * to |least|. */
UK_INLINE void v_spread(vb x, vi y[4])
{
    vb zero = {0}, low = v_zip_low_1(x, zero), high = v_zip_high_1(x, zero);
    y[0] = (vi)v_zip_low_2(low, zero);
    y[1] = (vi)v_zip_high_2(low, zero);
    y[2] = (vi)v_zip_low_2(high, zero);
    y[3] = (vi)v_zip_high_2(high, zero);
}

UK_INLINE vb v_gather(const vi x[4], int16_t zero, uint8_t least)
{
#ifdef V_NARROWS
    vb add = (vb)(zero - (vs){0}), min = least - (vb){0};
    vb low = v_add_2(v_narrow_4((vb)x[0], (vb)x[1]), add);
    vb high = v_add_2(v_narrow_4((vb)x[2], (vb)x[3]), add);
    return v_max_1(v_narrow_2(low, high), min);
#else
    vb y;
    for (int i = 0; i < 16; i++) {
        int32_t v = x[i / 4][i % 4] + zero;
        y[i] = (uint8_t)(v < least ? least : v > 255 ? 255 : v);
    }
    return y;
#endif
}

/* Does as v_gather(), for vectors whose numbers are in consecutive order. */
UK_INLINE vb v_gather_in_order(const vi x[4], int16_t zero, uint8_t least)
{
    vb y = v_gather(x, zero, least);
#if defined UK_LEVEL_AVX512
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return (vb)_mm512_permutexvar_epi32(order, (__m512i)y);
#elif defined UK_LEVEL_AVX2
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return (vb)_mm256_permutevar8x32_epi32((__m256i)y, order);
#else
    return y;
#endif
}

/* How floats become bytes: |max| bounds them before |zero| is added, |least| and |most| the bytes.
 * Floats that are known to fit an int need no |max|. */
struct v_bounds {
    float max;
    int16_t zero;
    uint8_t least, most;
    bool fit;
};

/* Lanes whose results fit an int, whatever their sums are: the product is at most 2^30. */
UK_INLINE vi v_fit_int(vf scale, vf bias)
{
    const vf far = v_splat(536870912.0f), half = v_splat(0.5f);
    return (scale <= half) & (scale >= -half) & (bias <= far) & (bias >= -far);
}

UK_INLINE bool v_all_fit(vi fit)
{
#if defined UK_LEVEL_AVX512
    return _mm512_movepi32_mask((__m512i)fit) == 0xffff;
#elif defined UK_LEVEL_AVX2
    return _mm256_movemask_ps((__m256)fit) == 0xff;
#elif defined __SSE2__
    return _mm_movemask_epi8((__m128i)fit) == 0xffff;
#else
    (void)fit;
    return false;
#endif
}

/* Returns the bounds for floats of [min, max], which are integers. */
UK_INLINE struct v_bounds v_bounds_of(float min, float max, int32_t zero)
{
    const float low = (float)-zero, high = (float)(UINT8_MAX - zero);
    const float least = min > low ? min : low, most = max < high ? max : high;
    return (struct v_bounds){.max = max,
                             .zero = (int16_t)zero,
                             .least = (uint8_t)((int32_t)(least < high ? least : high) + zero),
                             .most = (uint8_t)((int32_t)(most > low ? most : low) + zero)};
}

/* Is zero the only bound beside those that a byte has anyway, as behind a relu? */
UK_INLINE bool v_bounds_are_zero(const struct v_bounds *b)
{
    return b->zero == b->least && b->most == UINT8_MAX;
}

/* Rounds the numbers of four vectors to bytes in consecutive order. Floats are bounded before. On
 * NEON, whose conversions saturate, and where all numbers fit an int, the bytes are bounded
 * instead, which are fewer vectors. */
UK_INLINE vb v_round_bytes(const vf x[4], const struct v_bounds *b)
{
#if defined UK_LEVEL_NEON
    const bool is_far = false;
#else
    const bool is_far = !UK_FITS || !b->fit;
#endif
    vf near[4];
    vi whole[4];
    UK_UNROLL
    for (int q = 0; q < 4; q++) {
        near[q] = x[q];
    }
    if (is_far) {
        UK_UNROLL
        for (int q = 0; q < 4; q++) {
            near[q] = v_lesser(x[q], v_splat(b->max));
        }
    }
    UK_UNROLL
    for (int q = 0; q < 4; q++) {
        whole[q] = v_round_int(near[q]);
    }
    vb y = v_gather_in_order(whole, b->zero, b->least);
#ifdef V_NARROWS
    return v_min_1(y, b->most - (vb){0});
#else
    return y;
#endif
}

#if defined UK_LEVEL_NEON
/* Does the same if v_bounds_are_zero(): numbers below it vanish where they become unsigned. */
UK_INLINE vb v_round_positive(const vf x[4], uint8_t zero)
{
    uint16x8_t low =
        vqmovun_high_s32(vqmovun_s32((int32x4_t)v_round_int(x[0])), (int32x4_t)v_round_int(x[1]));
    uint16x8_t high =
        vqmovun_high_s32(vqmovun_s32((int32x4_t)v_round_int(x[2])), (int32x4_t)v_round_int(x[3]));
    const uint16x8_t add = vdupq_n_u16(zero);
    return (vb)vqmovn_high_u16(vqmovn_u16(vqaddq_u16(low, add)), vqaddq_u16(high, add));
}
#endif

#endif
