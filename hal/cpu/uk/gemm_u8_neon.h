/* SPDX-License-Identifier: MIT */
/*
 * The sums of an integer tile on aarch64. Its products take their second factor from any lane of a
 * vector, so sixteen bytes of each row of A are loaded at a time, and none is broadcast.
 *
 * Without dot products a product is of one number of 16 bits. Pairs of weights, as they lie in a
 * panel, are taken apart for all rows at once.
 */
#ifndef PTED_HAL_CPU_UK_GEMM_U8_NEON_H
#define PTED_HAL_CPU_UK_GEMM_U8_NEON_H

#include "hal/cpu/uk/gemm_u8.h"

#define A_WORDS 4           /* in sixteen bytes of a row */
#define TIMES (UK_WORD / 2) /* that the loop over them is unrolled */

/* Sixteen bytes of weights of words |k| and following: with |is_4bit| the low halves, or the high
 * ones, times 16. */
UK_INLINE int8x16_t weights_of(uint8x16_t raw, const bool is_4bit, const bool is_high)
{
    if (!is_4bit) {
        return vreinterpretq_s8_u8(raw);
    }
    return vreinterpretq_s8_u8(is_high ? vandq_u8(raw, vdupq_n_u8(0xf0)) : vshlq_n_u8(raw, 4));
}

#if UK_WORD == 4
#define B_VECTORS vectors /* of sixteen bytes, for one word of all columns */

/* acc += word |lane| of each row of x times words of vector |j| of the columns. */
#define MULTIPLY_WORD(w, j, lane)                                                                  \
    UK_UNROLL                                                                                      \
    for (int i = 0; i < rows; i++) {                                                               \
        acc[i][j] = (vi)vdotq_laneq_s32((int32x4_t)acc[i][j], w, (int8x16_t)x[i], lane);           \
    }
#else
#define B_VECTORS (vectors + 1) / 2

/* Vector |j| has pairs of weights, a number of 16 bits each; the first one is the lower byte. */
#define MULTIPLY_WORD(w, j, lane)                                                                  \
    int16x8_t pairs = vreinterpretq_s16_s8(w);                                                     \
    MULTIPLY_NUMBER(vshrq_n_s16(vshlq_n_s16(pairs, 8), 8), j, 2 * lane)                            \
    MULTIPLY_NUMBER(vshrq_n_s16(pairs, 8), j, 2 * lane + 1)
#define MULTIPLY_NUMBER(of_b, j, lane)                                                             \
    {                                                                                              \
        int16x8_t n = of_b;                                                                        \
        UK_UNROLL                                                                                  \
        for (int i = 0; i < rows; i++) {                                                           \
            acc[i][2 * (j)] = (vi)vmlal_laneq_s16((int32x4_t)acc[i][2 * (j)], vget_low_s16(n),     \
                                                  (int16x8_t)x[i], lane);                          \
            if (2 * (j) + 1 < vectors) {                                                           \
                acc[i][2 * (j) + 1] = (vi)vmlal_high_laneq_s16((int32x4_t)acc[i][2 * (j) + 1], n,  \
                                                               (int16x8_t)x[i], lane);             \
            }                                                                                      \
        }                                                                                          \
    }
#endif

/* Multiplies with word |word| of four in x. */
#define MULTIPLY_ALL(word, lane)                                                                   \
    UK_UNROLL                                                                                      \
    for (int j = 0; j < B_VECTORS; j += 2) {                                                       \
        const bool is_pair = j + 1 < B_VECTORS;                                                    \
        vf raw[2];                                                                                 \
        v_load_pair(raw, b, first + (is_4bit ? word / 2 : word) * UK_NR * UK_WORD + j * 16,        \
                    is_pair);                                                                      \
        {                                                                                          \
            int8x16_t w = weights_of((uint8x16_t)raw[0], is_4bit, word % 2);                       \
            MULTIPLY_WORD(w, j, lane)                                                              \
        }                                                                                          \
        if (is_pair) {                                                                             \
            int8x16_t w = weights_of((uint8x16_t)raw[1], is_4bit, word % 2);                       \
            MULTIPLY_WORD(w, j + 1, lane)                                                          \
        }                                                                                          \
    }

/* acc += four words of each row times the weights at |b| + |first| bytes. */
UK_INLINE void multiply_four(vi acc[UK_MR][UK_NV], const void *at[UK_MR], const uint8_t *b,
                             const int first, const int rows, const int vectors, const bool is_4bit)
{
    vf x[UK_MR];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        x[i] = v_load_next(&at[i]);
    }
    MULTIPLY_ALL(0, 0)
    MULTIPLY_ALL(1, 1)
    MULTIPLY_ALL(2, 2)
    MULTIPLY_ALL(3, 3)
}

/* acc += the least that a run has beside fours: one word, or two of 4-bit weights. */
UK_INLINE void multiply_rest(vi acc[UK_MR][UK_NV], const void *at[UK_MR], const uint8_t *b,
                             const int rows, const int vectors, const bool is_4bit)
{
    vf x[UK_MR];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        const float *from = at[i];
        x[i] = (vf)(is_4bit ? vcombine_f32(vld1_f32(from), vdup_n_f32(0)) : vld1q_dup_f32(from));
        at[i] = from + (is_4bit ? 2 : 1);
    }
    const int first = 0;
    MULTIPLY_ALL(0, 0)
    if (is_4bit) {
        MULTIPLY_ALL(1, 1)
    }
}

/* acc += the products of the |words| words of one run. */
UK_INLINE void accumulate(vi acc[UK_MR][UK_NV], const uint8_t *a, ptrdiff_t stride,
                          const uint8_t *b, size_t words, const int rows, const int vectors,
                          const bool is_4bit)
{
    const void *at[UK_MR];
    const int four = (is_4bit ? A_WORDS / 2 : A_WORDS) * UK_NR * UK_WORD;
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        at[i] = a + i * stride;
    }
    for (size_t k = words / (TIMES * A_WORDS); k > 0; k--, b += TIMES * four) {
        UK_UNROLL
        for (int i = 0; i < TIMES; i++) {
            multiply_four(acc, at, b, i * four, rows, vectors, is_4bit);
        }
    }
    if (TIMES == 2 && words & A_WORDS) {
        multiply_four(acc, at, b, 0, rows, vectors, is_4bit);
        b += four;
    }
    for (size_t k = words % A_WORDS; k > 0; k -= is_4bit ? 2 : 1) {
        multiply_rest(acc, at, b, rows, vectors, is_4bit);
        b += UK_NR * UK_WORD;
    }
}

#endif
