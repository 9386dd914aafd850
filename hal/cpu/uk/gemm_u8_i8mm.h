/* SPDX-License-Identifier: MIT */
/*
 * The sums of an integer tile by products of matrices: eight numbers of two rows of A times eight
 * of two columns of B are four sums. A panel has eight neighbours in k of a column side by side:
 * see pack_u8.c. A row without a partner is multiplied twice.
 *
 * While products are added, acc[2 * p][j] has columns 4 * j and 4 * j + 1 of rows 2 * p and
 * 2 * p + 1, and acc[2 * p + 1][j] the next two columns: settle() brings them in order.
 */
#ifndef PTED_HAL_CPU_UK_GEMM_U8_I8MM_H
#define PTED_HAL_CPU_UK_GEMM_U8_I8MM_H

#include "hal/cpu/uk/gemm_u8.h"

#define A_WORDS 4 /* in sixteen bytes of a row */
#define PAIRS_OF(rows) (((rows) + 1) / 2)

/* Pairs of columns in vector |j| of 4-bit weights: the low halves, or the high ones, times 16. */
UK_INLINE int8x16_t half_of(vf raw, const bool is_high)
{
    uint8x16_t x = (uint8x16_t)raw;
    return vreinterpretq_s8_u8(is_high ? vandq_u8(x, vdupq_n_u8(0xf0)) : vshlq_n_u8(x, 4));
}

UK_INLINE void multiply_columns(vi acc[UK_MR][UK_NV], const int8x16_t x[], int8x16_t w, const int j,
                                const int half, const int rows)
{
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        int32x4_t *sum = (int32x4_t *)&acc[2 * p + half][j];
        *sum = vmmlaq_s32(*sum, x[p], w);
    }
}

/* acc += eight numbers of each pair of rows times the weights at |b| + |offset|. */
UK_INLINE void multiply_eight(vi acc[UK_MR][UK_NV], const int8x16_t x[], const uint8_t *b,
                              const int offset, const int rows, const int vectors,
                              const bool is_4bit)
{
    vf raw[2];
    if (is_4bit) {
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            if (j % 2 == 0) {
                v_load_pair(raw, b, offset + j * 16, j + 1 < vectors);
            }
            multiply_columns(acc, x, half_of(raw[j % 2], false), j, 0, rows);
            multiply_columns(acc, x, half_of(raw[j % 2], true), j, 1, rows);
        }
        return;
    }
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        v_load_pair(raw, b, offset + j * 32, true);
        multiply_columns(acc, x, (int8x16_t)raw[0], j, 0, rows);
        multiply_columns(acc, x, (int8x16_t)raw[1], j, 1, rows);
    }
}

/* acc += four words of each row times the weights of as many. */
UK_INLINE void multiply_four(vi acc[UK_MR][UK_NV], const uint8_t *at[UK_MR], const uint8_t *b,
                             const int rows, const int vectors, const bool is_4bit)
{
    int8x16_t low[PAIRS_OF(UK_MR)], high[PAIRS_OF(UK_MR)];
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        int64x2_t one = vld1q_s64((const int64_t *)(const void *)at[2 * p]);
        int64x2_t two =
            2 * p + 1 < rows ? vld1q_s64((const int64_t *)(const void *)at[2 * p + 1]) : one;
        low[p] = vreinterpretq_s8_s64(vzip1q_s64(one, two));
        high[p] = vreinterpretq_s8_s64(vzip2q_s64(one, two));
    }
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        at[i] += 16;
    }
    multiply_eight(acc, low, b, 0, rows, vectors, is_4bit);
    multiply_eight(acc, high, b, UK_NR * (is_4bit ? 4 : 8), rows, vectors, is_4bit);
}

/* acc += two words of each row, if the run has so many left. */
UK_INLINE void multiply_two(vi acc[UK_MR][UK_NV], const uint8_t *at[UK_MR], const uint8_t *b,
                            const int rows, const int vectors, const bool is_4bit)
{
    int8x16_t x[PAIRS_OF(UK_MR)];
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        const uint8_t *two = at[2 * p + 1 < rows ? 2 * p + 1 : 2 * p];
        x[p] = vreinterpretq_s8_u8(vcombine_u8(vld1_u8(at[2 * p]), vld1_u8(two)));
    }
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        at[i] += 8;
    }
    multiply_eight(acc, x, b, 0, rows, vectors, is_4bit);
}

/* acc += the last word of a run, whose weights have no neighbours: zeros take their place. */
UK_INLINE void multiply_one(vi acc[UK_MR][UK_NV], const uint8_t *at[UK_MR], const uint8_t *b,
                            const int rows, const int vectors)
{
    const int32x4_t zero = vdupq_n_s32(0);
    int8x16_t x[PAIRS_OF(UK_MR)];
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        const uint8_t *two = at[2 * p + 1 < rows ? 2 * p + 1 : 2 * p];
        int32x4_t words = vdupq_n_s32(V_GET(int32_t, at[2 * p]));
        x[p] = vreinterpretq_s8_s32(vsetq_lane_s32(V_GET(int32_t, two), words, 2));
    }
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        int32x4_t w = vld1q_s32((const int32_t *)(const void *)(b + j * 16));
        multiply_columns(acc, x, vreinterpretq_s8_s32(vzip1q_s32(w, zero)), j, 0, rows);
        multiply_columns(acc, x, vreinterpretq_s8_s32(vzip2q_s32(w, zero)), j, 1, rows);
    }
}

/* acc += the products of the |words| words of one run. */
UK_INLINE void accumulate(vi acc[UK_MR][UK_NV], const uint8_t *a, ptrdiff_t stride,
                          const uint8_t *b, size_t words, const int rows, const int vectors,
                          const bool is_4bit)
{
    const uint8_t *at[UK_MR];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        at[i] = a + i * stride;
    }
    for (size_t k = words / A_WORDS; k > 0; k--) {
        multiply_four(acc, at, b, rows, vectors, is_4bit);
        b += UK_NR * (is_4bit ? 8 : 16);
    }
    if (words & 2) {
        multiply_two(acc, at, b, rows, vectors, is_4bit);
        b += UK_NR * (is_4bit ? 4 : 8);
    }
    if (words & 1) {
        multiply_one(acc, at, b, rows, vectors);
    }
}

UK_INLINE void settle(vi acc[UK_MR][UK_NV], const int rows, const int vectors)
{
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            int64x2_t low = (int64x2_t)acc[2 * p][j], high = (int64x2_t)acc[2 * p + 1][j];
            acc[2 * p][j] = (vi)vzip1q_s64(low, high);
            acc[2 * p + 1][j] = (vi)vzip2q_s64(low, high);
        }
    }
}

#endif
