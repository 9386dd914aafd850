/* SPDX-License-Identifier: MIT */
/*
 * Attention of a few query rows that share their keys: scores, and sums of values. Each row of keys
 * or values is read from memory once, for up to ROWS queries at a time. Four keys at a time make
 * one fold of partial sums for all of them. The order of sums depends on the depth and on the order
 * of the keys alone, so a query's result is the same whatever other queries are beside it.
 *
 * Rows of bytes become floats in registers, and their scale is a factor of the score or of the
 * weight.
 */
#include "config.h"

#include "hal/cpu/uk/level.h"

/* What rows of keys and values consist of. */
enum rows_of { FLOATS, BYTES };

#define ROWS 4 /* queries at a time */
#define KEYS 4 /* keys at a time */

/* Vectors of a row of values that are summed at a time: the sums of all queries stay in registers.
 */
#if UK_VECTOR_BYTES == 64
#define VECTORS 4
#else
#define VECTORS 2
#endif

/* ---- rows of keys and values ----------------------------------------------------------------- */

typedef int8_t v_bytes __attribute__((vector_size(UK_VL)));

/* UK_VL bytes as floats. The last form would do for every level, but gcc 12 converts byte by byte.
 */
UK_INLINE vf widen(v_bytes x)
{
#if defined UK_LEVEL_AVX512
    return (vf)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)x));
#elif defined UK_LEVEL_AVX2
    int64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return (vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bits)));
#elif defined UK_LEVEL_NEON
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    int16x8_t shorts = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(bits)));
    return (vf)vcvtq_f32_s32(vmovl_s16(vget_low_s16(shorts)));
#else
    return __builtin_convertvector(x, vf);
#endif
}

/* Numbers [i, i + UK_VL) of a row, without its scale; with |part| only that many of them. */
UK_INLINE vf load(const char *row, size_t i, size_t part, const enum rows_of of)
{
    if (of == FLOATS) {
        const float *from = (const float *)(const void *)row + i;
        return part ? v_load_part(from, part) : v_load(from);
    }
    v_bytes bytes = {0};
    memcpy(&bytes, row + i, part ? part : sizeof(bytes));
    return widen(bytes);
}

/* The scale behind the bytes of a row. */
UK_INLINE float scale_of(const struct uk_attend_f32 *a, const char *row)
{
    float scale;
    memcpy(&scale, row + a->depth, sizeof(scale));
    return scale;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Lane i: the sum of all lanes of x[i], for i < KEYS. */
UK_INLINE void fold(const vf x[KEYS], float sums[KEYS])
{
#if UK_VL == 16
    vf ab = __builtin_shufflevector(x[0], x[1], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22,
                                    23) +
            __builtin_shufflevector(x[0], x[1], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28,
                                    29, 30, 31);
    vf cd = __builtin_shufflevector(x[2], x[3], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22,
                                    23) +
            __builtin_shufflevector(x[2], x[3], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28,
                                    29, 30, 31);
    vf all =
        __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
        __builtin_shufflevector(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    all += __builtin_shufflevector(all, all, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    all += __builtin_shufflevector(all, all, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    static const int place[KEYS] = {0, 4, 8, 12};
#elif UK_VL == 8
    vf ab = __builtin_shufflevector(x[0], x[1], 0, 1, 2, 3, 8, 9, 10, 11) +
            __builtin_shufflevector(x[0], x[1], 4, 5, 6, 7, 12, 13, 14, 15);
    vf cd = __builtin_shufflevector(x[2], x[3], 0, 1, 2, 3, 8, 9, 10, 11) +
            __builtin_shufflevector(x[2], x[3], 4, 5, 6, 7, 12, 13, 14, 15);
    vf all = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
             __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
    all += __builtin_shufflevector(all, all, 1, 0, 3, 2, 5, 4, 7, 6);
    static const int place[KEYS] = {0, 4, 2, 6};
#else
    vf ab = __builtin_shufflevector(x[0], x[1], 0, 1, 4, 5) +
            __builtin_shufflevector(x[0], x[1], 2, 3, 6, 7);
    vf cd = __builtin_shufflevector(x[2], x[3], 0, 1, 4, 5) +
            __builtin_shufflevector(x[2], x[3], 2, 3, 6, 7);
    vf all =
        __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
    static const int place[KEYS] = {0, 1, 2, 3};
#endif
    sums[0] = all[place[0]];
    sums[1] = all[place[1]];
    sums[2] = all[place[2]];
    sums[3] = all[place[3]];
}

/* sums += the products of one vector of each query and each key. */
UK_INLINE void add_products(vf sums[ROWS][KEYS], const vf q[ROWS], const vf k[KEYS], const int rows)
{
    UK_UNROLL
    for (int r = 0; r < rows; r++) {
        UK_UNROLL
        for (int j = 0; j < KEYS; j++) {
            sums[r][j] += q[r] * k[j];
        }
    }
}

/* The products of |rows| queries from |q| on and of the keys that |k| points to. */
UK_INLINE void multiply(const struct uk_attend_f32 *a, const float *q, const char *const k[KEYS],
                        vf sums[ROWS][KEYS], const int rows, const enum rows_of of)
{
    size_t i = 0, depth = a->depth;
    vf vq[ROWS], vk[KEYS];
    UK_UNROLL
    for (int r = 0; r < rows; r++) {
        UK_UNROLL
        for (int j = 0; j < KEYS; j++) {
            sums[r][j] = (vf){0};
        }
    }
    for (; depth - i >= UK_VL; i += UK_VL) {
        UK_UNROLL
        for (int j = 0; j < KEYS; j++) {
            vk[j] = load(k[j], i, 0, of);
        }
        UK_UNROLL
        for (int r = 0; r < rows; r++) {
            vq[r] = v_load(q + (size_t)r * depth + i);
        }
        add_products(sums, vq, vk, rows);
    }
    if (i < depth) {
        UK_UNROLL
        for (int j = 0; j < KEYS; j++) {
            vk[j] = load(k[j], i, depth - i, of);
        }
        UK_UNROLL
        for (int r = 0; r < rows; r++) {
            vq[r] = v_load_part(q + (size_t)r * depth + i, depth - i);
        }
        add_products(sums, vq, vk, rows);
    }
}

/* The scores of |count| <= KEYS keys from |j| on. */
UK_INLINE void score_keys(const struct uk_attend_f32 *a, size_t first, size_t j, size_t count,
                          const int rows, const enum rows_of of)
{
    vf sums[ROWS][KEYS];
    const char *k[KEYS];
    float *scores = a->scores + (ptrdiff_t)first * a->scores_row + j;
    UK_UNROLL
    for (size_t i = 0; i < KEYS; i++) {
        k[i] = (const char *)a->kv + (ptrdiff_t)(j + (i < count ? i : count - 1)) * a->kv_row;
    }
    multiply(a, a->q + first * a->depth, k, sums, rows, of);
    UK_UNROLL
    for (int r = 0; r < rows; r++) {
        float folded[KEYS];
        fold(sums[r], folded);
        if (of == BYTES) {
            UK_UNROLL
            for (int i = 0; i < KEYS; i++) {
                folded[i] *= scale_of(a, k[i]);
            }
        }
        if (count == KEYS) {
            memcpy(scores + r * a->scores_row, folded, sizeof(folded));
        } else {
            memcpy(scores + r * a->scores_row, folded, count * sizeof(float));
        }
    }
}

UK_INLINE void score(const struct uk_attend_f32 *a, size_t first, const int rows,
                     const enum rows_of of)
{
    size_t j = 0;
    for (; a->n - j >= KEYS; j += KEYS) {
        score_keys(a, first, j, KEYS, rows, of);
    }
    if (j < a->n) {
        score_keys(a, first, j, a->n - j, rows, of);
    }
}

UK_INLINE void score_all(const struct uk_attend_f32 *a, const enum rows_of of)
{
    size_t r = 0;
    for (; a->rows - r >= ROWS; r += ROWS) {
        score(a, r, ROWS, of);
    }
    if (a->rows - r == 3) {
        score(a, r, 3, of);
    } else if (a->rows - r == 2) {
        score(a, r, 2, of);
    } else if (a->rows - r == 1) {
        score(a, r, 1, of);
    }
}

void UK_NAME(attend_scores_f32)(const struct uk_attend_f32 *a)
{
    score_all(a, FLOATS);
}

void UK_NAME(attend_scores_i8)(const struct uk_attend_f32 *a)
{
    score_all(a, BYTES);
}

/* ---- sums of values -------------------------------------------------------------------------- */

/* Adds to the sums in columns [at, at + vectors * UK_VL); with |part| only that many columns of one
 * vector. */
UK_INLINE void add_columns(const struct uk_attend_f32 *a, size_t first, size_t at, size_t part,
                           const int rows, const int vectors, const enum rows_of of)
{
    vf sums[ROWS][VECTORS];
    const float *weights = a->scores + (ptrdiff_t)first * a->scores_row;
    const char *values = a->kv;
    float *to = a->sums + first * a->depth + at;
    UK_UNROLL
    for (int r = 0; r < rows; r++) {
        UK_UNROLL
        for (int v = 0; v < vectors; v++) {
            const float *from = to + (size_t)r * a->depth + v * UK_VL;
            sums[r][v] = part ? v_load_part(from, part) : v_load(from);
        }
    }
    for (size_t j = 0; j < a->n; j++, values += a->kv_row) {
        vf value[VECTORS];
        float scale = of == BYTES ? scale_of(a, values) : 1;
        UK_UNROLL
        for (int v = 0; v < vectors; v++) {
            value[v] = load(values, at + (size_t)v * UK_VL, part, of);
        }
        UK_UNROLL
        for (int r = 0; r < rows; r++) {
            float one = weights[r * a->scores_row + (ptrdiff_t)j];
            vf weight = v_splat(of == BYTES ? one * scale : one);
            UK_UNROLL
            for (int v = 0; v < vectors; v++) {
                sums[r][v] += weight * value[v];
            }
        }
    }
    UK_UNROLL
    for (int r = 0; r < rows; r++) {
        UK_UNROLL
        for (int v = 0; v < vectors; v++) {
            float *out = to + (size_t)r * a->depth + v * UK_VL;
            if (part) {
                v_store_part(out, sums[r][v], part);
            } else {
                v_store(out, sums[r][v]);
            }
        }
    }
}

UK_INLINE void add_rows(const struct uk_attend_f32 *a, size_t first, const int rows,
                        const enum rows_of of)
{
    size_t at = 0, depth = a->depth;
    for (; depth - at >= VECTORS * UK_VL; at += VECTORS * UK_VL) {
        add_columns(a, first, at, 0, rows, VECTORS, of);
    }
    for (; depth - at >= UK_VL; at += UK_VL) {
        add_columns(a, first, at, 0, rows, 1, of);
    }
    if (at < depth) {
        add_columns(a, first, at, depth - at, rows, 1, of);
    }
}

UK_INLINE void add_all(const struct uk_attend_f32 *a, const enum rows_of of)
{
    size_t r = 0;
    for (; a->rows - r >= ROWS; r += ROWS) {
        add_rows(a, r, ROWS, of);
    }
    if (a->rows - r == 3) {
        add_rows(a, r, 3, of);
    } else if (a->rows - r == 2) {
        add_rows(a, r, 2, of);
    } else if (a->rows - r == 1) {
        add_rows(a, r, 1, of);
    }
}

void UK_NAME(attend_sums_f32)(const struct uk_attend_f32 *a)
{
    add_all(a, FLOATS);
}

void UK_NAME(attend_sums_i8)(const struct uk_attend_f32 *a)
{
    add_all(a, BYTES);
}
