/* SPDX-License-Identifier: MIT */
/*
 * The sums of an integer tile by products of matrices: eight numbers of two rows of A times eight
 * of two columns of B are four sums. A panel has eight neighbours in k of a column side by side,
 * see pack_u8.c, and a copied tile those of a pair of rows, see copy_pair(). A row without a
 * partner is multiplied twice.
 *
 * While products are added, acc[2 * p][j] has columns 4 * j and 4 * j + 1 of rows 2 * p and
 * 2 * p + 1, and acc[2 * p + 1][j] the next two columns: settle() brings them in order.
 */
#ifndef PTED_HAL_CPU_UK_GEMM_U8_I8MM_H
#define PTED_HAL_CPU_UK_GEMM_U8_I8MM_H

#include "hal/cpu/uk/gemm_u8.h"
#include "hal/cpu/uk/load_neon.h"

#define PAIRS_OF(rows) (((rows) + 1) / 2)

/* acc += eight numbers of each pair of rows times those of two columns: of vector |j| the first
 * two, or with |half| the others. */
UK_INLINE void multiply_columns(vi acc[UK_MR][UK_NV], const int8x16_t x[], int8x16_t w, const int j,
                                const int half, const int rows)
{
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        int32x4_t *sum = (int32x4_t *)&acc[2 * p + half][j];
        *sum = vusmmlaq_s32(*sum, vreinterpretq_u8_s8(x[p]), w);
    }
}

/* Multiplies by 4-bit weights: the low halves are the first two columns, the high ones, times 16,
 * the others. */
UK_INLINE void multiply_halves(vi acc[UK_MR][UK_NV], const int8x16_t x[], int8x16_t raw,
                               const int j, const int rows)
{
    const int8x16_t low = vshlq_n_s8(raw, 4), high = vandq_s8(raw, vdupq_n_s8(-16));
    multiply_columns(acc, x, low, j, 0, rows);
    multiply_columns(acc, x, high, j, 1, rows);
}

/* acc += eight numbers of each row times the weights of as many. */
UK_INLINE void multiply_eight(vi acc[UK_MR][UK_NV], const uint8_t **a, const uint8_t **b,
                              const int rows, const int vectors, const bool is_4bit)
{
    int8x16_t x[4], w[4];
    load_next(x, a, PAIRS_OF(rows));
    if (is_4bit) {
        load_next(w, b, vectors);
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            multiply_halves(acc, x, w[j], j, rows);
        }
        *b += (UK_NV - vectors) * 16;
        return;
    }
    UK_UNROLL
    for (int j = 0; j < vectors; j += 2) {
        const int count = vectors - j < 2 ? 2 : 4;
        load_next(w, b, count);
        UK_UNROLL
        for (int i = 0; i < count; i++) {
            multiply_columns(acc, x, w[i], j + i / 2, i % 2, rows);
        }
    }
    *b += (UK_NV - vectors) * 32;
}

/* acc += the last word of a run, whose weights have no neighbours: zeros take their place. */
UK_INLINE void multiply_word(vi acc[UK_MR][UK_NV], const uint8_t *a, const uint8_t *b,
                             const int rows, const int vectors)
{
    const int32x4_t zero = vdupq_n_s32(0);
    int8x16_t x[PAIRS_OF(UK_MR)];
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        int32x2_t pair = vld1_s32((const int32_t *)(const void *)(a + p * 8));
        int32x4_t both = vcombine_s32(pair, pair);
        x[p] = vreinterpretq_s8_s32(vzip1q_s32(both, both));
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
    (void)stride;
    for (size_t k = words / 4; k > 0; k--) {
        multiply_eight(acc, &a, &b, rows, vectors, is_4bit);
        multiply_eight(acc, &a, &b, rows, vectors, is_4bit);
    }
    if (words & 2) {
        multiply_eight(acc, &a, &b, rows, vectors, is_4bit);
    }
    if (words & 1) {
        multiply_word(acc, a, b, rows, vectors);
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

UK_INLINE void unsettle(vi acc[UK_MR][UK_NV], const int rows, const int vectors)
{
    settle(acc, rows, vectors); /* is its own inverse */
}

#endif
