/* SPDX-License-Identifier: MIT */
/*
 * The sums of a tile of bfloat16 products on aarch64, by products of matrices: four numbers of two
 * rows of A times four of two columns of B are added to four sums. Two words of a panel, which have
 * two neighbours in k each, become such columns for all rows at once. Sums lie in pairs of rows
 * meanwhile: see turn_pairs() of gemm_f32.h. A row without a partner is multiplied twice, so that
 * its bits are the same in every tile.
 */
#ifndef PTED_HAL_CPU_UK_GEMM_BF16_NEON_H
#define PTED_HAL_CPU_UK_GEMM_BF16_NEON_H

#include "hal/cpu/uk/gemm_f32.h"

#define PAIRS_OF(rows) (((rows) + 1) / 2)

/* acc += four numbers of each pair of rows times columns of the words |one| and |two|. */
UK_INLINE void multiply_columns(vf acc[][UK_NV], const bfloat16x8_t x[], vf one, vf two,
                                const int j, const int rows)
{
    bfloat16x8_t low = (bfloat16x8_t)vzip1q_f32((float32x4_t)one, (float32x4_t)two);
    bfloat16x8_t high = (bfloat16x8_t)vzip2q_f32((float32x4_t)one, (float32x4_t)two);
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        acc[2 * p][j] = (vf)vbfmmlaq_f32((float32x4_t)acc[2 * p][j], x[p], low);
        acc[2 * p + 1][j] = (vf)vbfmmlaq_f32((float32x4_t)acc[2 * p + 1][j], x[p], high);
    }
}

/* Does the same with the words at |b| + |offset|; the second one is zero if |is_single|. */
UK_INLINE void multiply_words(vf acc[][UK_NV], const bfloat16x8_t x[], const uint16_t *b,
                              const int offset, const int rows, const int vectors,
                              const bool is_single)
{
    UK_UNROLL
    for (int j = 0; j < vectors; j += 2) {
        vf one[2], two[2] = {{0}};
        v_load_pair(one, b, offset + j * 16, j + 1 < vectors);
        if (!is_single) {
            v_load_pair(two, b, offset + UK_NR * 4 + j * 16, j + 1 < vectors);
        }
        multiply_columns(acc, x, one[0], two[0], j, rows);
        if (j + 1 < vectors) {
            multiply_columns(acc, x, one[1], two[1], j + 1, rows);
        }
    }
}

/* Loads eight numbers of each row: the first four of a pair of rows, and the last four. */
UK_INLINE void load_rows(bfloat16x8_t low[], bfloat16x8_t high[], const uint16_t *at[],
                         const int rows)
{
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        int64x2_t one = (int64x2_t)vld1q_u16(at[2 * p]);
        int64x2_t two = 2 * p + 1 < rows ? (int64x2_t)vld1q_u16(at[2 * p + 1]) : one;
        low[p] = (bfloat16x8_t)vzip1q_s64(one, two);
        high[p] = (bfloat16x8_t)vzip2q_s64(one, two);
    }
}

/* Loads as many as a run has left, two or four: the others are zeros. */
UK_INLINE void load_rest(bfloat16x8_t x[], const uint16_t *at[], const bool is_single,
                         const int rows)
{
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        uint64_t one = 0, two = 0;
        memcpy(&one, at[2 * p], is_single ? 4 : 8);
        memcpy(&two, at[2 * p + 1 < rows ? 2 * p + 1 : 2 * p], is_single ? 4 : 8);
        x[p] = (bfloat16x8_t)vcombine_u64(vcreate_u64(one), vcreate_u64(two));
    }
}

UK_INLINE void advance(const uint16_t *at[], const int count, const int rows)
{
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        at[i] += count;
    }
}

/* acc += the products of one run. */
UK_INLINE void accumulate(vf acc[][UK_NV], const uint16_t *a, ptrdiff_t stride, const uint16_t *b,
                          size_t run, const int rows, const int vectors)
{
    const uint16_t *at[UK_MR];
    bfloat16x8_t low[PAIRS_OF(UK_MR)], high[PAIRS_OF(UK_MR)];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        at[i] = a + i * stride;
    }
    for (size_t k = run / 8; k > 0; k--, b += 8 * UK_NR) {
        load_rows(low, high, at, rows);
        advance(at, 8, rows);
        multiply_words(acc, low, b, 0, rows, vectors, false);
        multiply_words(acc, high, b, UK_NR * 8, rows, vectors, false);
    }
    if (run & 4) {
        load_rest(low, at, false, rows);
        advance(at, 4, rows);
        multiply_words(acc, low, b, 0, rows, vectors, false);
        b += 4 * UK_NR;
    }
    if (run & 2) {
        load_rest(low, at, true, rows);
        multiply_words(acc, low, b, 0, rows, vectors, true);
    }
}

#endif
