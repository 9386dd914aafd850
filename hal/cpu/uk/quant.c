/* SPDX-License-Identifier: MIT */
/*
 * Converts between floats and quantised integers. The product with the inverse scale is rounded to
 * a float and then, once, to the nearest even integer. Numbers that do not fit saturate; a NaN
 * becomes the least value.
 */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/math_f32.h"

/*
 * Up to here, the low bits of v + MAGIC contain the integer; larger zero points need the slow path.
 */
#define ZERO_POINT_MAX (1 << 21)

struct bounds {
    vf scale, low, high; /* the bounds before the zero point is added */
    int32_t offset;      /* from the bits of v + MAGIC to the integer */
};

static inline bool is_short(const struct uk_quant *p)
{
    return p->zero_point >= -ZERO_POINT_MAX && p->zero_point <= ZERO_POINT_MAX;
}

static inline struct bounds bounds_of(const struct uk_quant *p)
{
    const float magic = MAGIC;
    uint32_t bits;
    memcpy(&bits, &magic, sizeof(bits));
    return (struct bounds){
        .scale = v_splat(p->scale),
        .low = v_splat((float)(p->min - p->zero_point)),
        .high = v_splat((float)(p->max - p->zero_point)),
        .offset = p->zero_point - (int32_t)bits,
    };
}

UK_INLINE vi quantize_vector(vf x, const struct bounds *b)
{
    vf v = v_lesser(v_greater(x * b->scale, b->low), b->high);
    return (vi)((vu)(v + MAGIC) + (uint32_t)b->offset);
}

/* One element of the slow path, for integers with more bits than a float. Adds in float, as PyTorch
 * does. */
static inline int32_t quantize_one(float rounded, const struct uk_quant *p)
{
    double v = (double)(rounded + (float)p->zero_point), min = p->min, max = p->max;
    v = v > min ? v : min;
    return (int32_t)(v < max ? v : max);
}

UK_INLINE vf dequantize_vector(vi q, const struct uk_quant *p)
{
    vi centred = (vi)((vu)q - (uint32_t)p->zero_point);
    return __builtin_convertvector(centred, vf) * v_splat(p->scale);
}

/* Converts between a vector of ints and as many elements of a type; ints to be stored fit the type.
 * gcc would compile the portable version element by element. */
#if defined UK_LEVEL_AVX512
#define LOAD_STORE(name, type, half, load, widen, store, narrow)                                   \
    UK_INLINE vi load_##name(const type *p)                                                        \
    {                                                                                              \
        return (vi)widen(load((const half *)(const void *)p));                                     \
    }                                                                                              \
    UK_INLINE void store_##name(type *p, vi v)                                                     \
    {                                                                                              \
        store((half *)(void *)p, narrow((__m512i)v));                                              \
    }
LOAD_STORE(i8, int8_t, __m128i, _mm_loadu_si128, _mm512_cvtepi8_epi32, _mm_storeu_si128,
           _mm512_cvtepi32_epi8)
LOAD_STORE(u8, uint8_t, __m128i, _mm_loadu_si128, _mm512_cvtepu8_epi32, _mm_storeu_si128,
           _mm512_cvtepi32_epi8)
LOAD_STORE(i16, int16_t, __m256i, _mm256_loadu_si256, _mm512_cvtepi16_epi32, _mm256_storeu_si256,
           _mm512_cvtepi32_epi16)
LOAD_STORE(u16, uint16_t, __m256i, _mm256_loadu_si256, _mm512_cvtepu16_epi32, _mm256_storeu_si256,
           _mm512_cvtepi32_epi16)
#elif defined UK_LEVEL_AVX2
UK_INLINE __m128i low_half(vi v)
{
    return _mm256_castsi256_si128((__m256i)v);
}

UK_INLINE __m128i high_half(vi v)
{
    return _mm256_extracti128_si256((__m256i)v, 1);
}

#define LOAD_STORE(name, type, load, widen, store, narrowed)                                       \
    UK_INLINE vi load_##name(const type *p)                                                        \
    {                                                                                              \
        return (vi)widen(load((const __m128i *)(const void *)p));                                  \
    }                                                                                              \
    UK_INLINE void store_##name(type *p, vi v)                                                     \
    {                                                                                              \
        store((__m128i *)(void *)p, narrowed);                                                     \
    }
LOAD_STORE(i8, int8_t, _mm_loadl_epi64, _mm256_cvtepi8_epi32, _mm_storel_epi64,
           _mm_packs_epi16(_mm_packs_epi32(low_half(v), high_half(v)), _mm_setzero_si128()))
LOAD_STORE(u8, uint8_t, _mm_loadl_epi64, _mm256_cvtepu8_epi32, _mm_storel_epi64,
           _mm_packus_epi16(_mm_packs_epi32(low_half(v), high_half(v)), _mm_setzero_si128()))
LOAD_STORE(i16, int16_t, _mm_loadu_si128, _mm256_cvtepi16_epi32, _mm_storeu_si128,
           _mm_packs_epi32(low_half(v), high_half(v)))
LOAD_STORE(u16, uint16_t, _mm_loadu_si128, _mm256_cvtepu16_epi32, _mm_storeu_si128,
           _mm_packus_epi32(low_half(v), high_half(v)))
#elif defined UK_LEVEL_NEON
#define LOAD_STORE_1(name, type, letter)                                                           \
    UK_INLINE vi load_##name(const type *p)                                                        \
    {                                                                                              \
        uint32_t bits;                                                                             \
        memcpy(&bits, p, sizeof(bits));                                                            \
        return (vi)vmovl_##letter##16(vget_low_##letter##16(                                       \
            vmovl_##letter##8(vreinterpret_##letter##8_u32(vdup_n_u32(bits)))));                   \
    }                                                                                              \
    UK_INLINE void store_##name(type *p, vi v)                                                     \
    {                                                                                              \
        int16x4_t shorts = vmovn_s32((int32x4_t)v);                                                \
        int8x8_t bytes = vmovn_s16(vcombine_s16(shorts, shorts));                                  \
        uint32_t bits = vget_lane_u32(vreinterpret_u32_s8(bytes), 0);                              \
        memcpy(p, &bits, sizeof(bits));                                                            \
    }
#define LOAD_STORE_2(name, type, letter)                                                           \
    UK_INLINE vi load_##name(const type *p)                                                        \
    {                                                                                              \
        return (vi)vmovl_##letter##16(vld1_##letter##16(p));                                       \
    }                                                                                              \
    UK_INLINE void store_##name(type *p, vi v)                                                     \
    {                                                                                              \
        int16x4_t shorts = vmovn_s32((int32x4_t)v);                                                \
        memcpy(p, &shorts, sizeof(shorts));                                                        \
    }
LOAD_STORE_1(i8, int8_t, s)
LOAD_STORE_1(u8, uint8_t, u)
LOAD_STORE_2(i16, int16_t, s)
LOAD_STORE_2(u16, uint16_t, u)
#else
#define LOAD_STORE(name, type)                                                                     \
    typedef type name##_lanes __attribute__((vector_size(UK_VL * sizeof(type))));                  \
                                                                                                   \
    UK_INLINE vi load_##name(const type *p)                                                        \
    {                                                                                              \
        name##_lanes lanes;                                                                        \
        memcpy(&lanes, p, sizeof(lanes));                                                          \
        return __builtin_convertvector(lanes, vi);                                                 \
    }                                                                                              \
    UK_INLINE void store_##name(type *p, vi v)                                                     \
    {                                                                                              \
        name##_lanes lanes = __builtin_convertvector(v, name##_lanes);                             \
        memcpy(p, &lanes, sizeof(lanes));                                                          \
    }
LOAD_STORE(i8, int8_t)
LOAD_STORE(u8, uint8_t)
LOAD_STORE(i16, int16_t)
LOAD_STORE(u16, uint16_t)
#endif

UK_INLINE vi load_i32(const int32_t *p)
{
    vi v;
    memcpy(&v, p, sizeof(v));
    return v;
}

UK_INLINE void store_i32(int32_t *p, vi v)
{
    memcpy(p, &v, sizeof(v));
}

#define DEFINE(name, type)                                                                         \
    static void quantize_long_##name(type *q, const float *x, const struct uk_quant *p, size_t n)  \
    {                                                                                              \
        for (size_t i = 0; i < n; i += UK_VL) {                                                    \
            size_t count = n - i < UK_VL ? n - i : UK_VL;                                          \
            vf v = {0};                                                                            \
            memcpy(&v, x + i, count * sizeof(float));                                              \
            v = v_round(v_hold(v * v_splat(p->scale)));                                            \
            for (size_t j = 0; j < count; j++) {                                                   \
                q[i + j] = (type)quantize_one(v[j], p);                                            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    void UK_NAME(quantize_##name)(void *to, const float *x, const struct uk_quant *p, size_t n)    \
    {                                                                                              \
        type *q = to, rest[UK_VL];                                                                 \
        size_t i = 0;                                                                              \
        if (sizeof(type) > 2 || !is_short(p)) {                                                    \
            quantize_long_##name(q, x, p, n);                                                      \
            return;                                                                                \
        }                                                                                          \
        const struct bounds b = bounds_of(p);                                                      \
        for (; n - i >= UK_VL; i += UK_VL) {                                                       \
            store_##name(q + i, quantize_vector(v_load(x + i), &b));                               \
        }                                                                                          \
        if (i < n) {                                                                               \
            store_##name(rest, quantize_vector(v_load_part(x + i, n - i), &b));                    \
            memcpy(q + i, rest, (n - i) * sizeof(type));                                           \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    void UK_NAME(dequantize_##name)(float *y, const void *from, const struct uk_quant *p,          \
                                    size_t n)                                                      \
    {                                                                                              \
        const type *q = from;                                                                      \
        const struct uk_quant quant = *p; /* a copy, which stores cannot alias */                  \
        type rest[UK_VL] = {0};                                                                    \
        size_t i = 0;                                                                              \
        for (; n - i >= UK_VL; i += UK_VL) {                                                       \
            v_store(y + i, dequantize_vector(load_##name(q + i), &quant));                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            memcpy(rest, q + i, (n - i) * sizeof(type));                                           \
            v_store_part(y + i, dequantize_vector(load_##name(rest), &quant), n - i);              \
        }                                                                                          \
    }

DEFINE(i8, int8_t)
DEFINE(u8, uint8_t)
DEFINE(i16, int16_t)
DEFINE(u16, uint16_t)
DEFINE(i32, int32_t)

void UK_NAME(range_f32)(const float *x, size_t n, float *out_min, float *out_max)
{
    vf min = v_splat(INFINITY), max = v_splat(-INFINITY);
    float least = INFINITY, greatest = -INFINITY;
    size_t i = 0;

    for (; n - i >= UK_VL; i += UK_VL) {
        vf v = v_load(x + i);
        min = v_lesser(v, min);
        max = v_greater(v, max);
    }
    for (int j = 0; j < UK_VL; j++) {
        least = min[j] < least ? min[j] : least;
        greatest = max[j] > greatest ? max[j] : greatest;
    }
    for (; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        greatest = x[i] > greatest ? x[i] : greatest;
    }
    *out_min = least;
    *out_max = greatest;
}
