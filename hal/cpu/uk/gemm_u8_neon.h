/* SPDX-License-Identifier: MIT */
/*
 * The sums of an integer tile on aarch64. Its products take their second factor from any lane of a
 * vector, so sixteen bytes of each row of A are loaded at a time, and none is broadcast. A copied
 * tile has them row by row side by side: copy_tile().
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

/* MULTIPLY_WORD: acc += a word of each row times words of vector |j| of the columns, |w|. ROWS says
 * where the rows' words are: it calls its first argument with each row and a vector of A. */
#if UK_WORD == 4
#define B_VECTORS vectors /* of sixteen bytes, for one word of all columns */

#define MULTIPLY_WORD(w, j, ROWS, lane) ROWS(ADD_PRODUCTS, w, j, lane, 0)
#define ADD_PRODUCTS(i, x, w, j, lane, half)                                                       \
    acc[i][j] = (vi)vdotq_laneq_s32((int32x4_t)acc[i][j], w, (int8x16_t)(x), lane);
#else
#define B_VECTORS (vectors + 1) / 2

/* Vector |j| has pairs of weights, a number of 16 bits each; the first one is the lower byte. */
#define MULTIPLY_WORD(w, j, ROWS, lane)                                                            \
    int16x8_t pairs = vreinterpretq_s16_s8(w);                                                     \
    MULTIPLY_NUMBER(vshrq_n_s16(vshlq_n_s16(pairs, 8), 8), j, ROWS, lane, 0)                       \
    MULTIPLY_NUMBER(vshrq_n_s16(pairs, 8), j, ROWS, lane, 1)
#define MULTIPLY_NUMBER(of_b, j, ROWS, lane, half)                                                 \
    {                                                                                              \
        int16x8_t n = of_b;                                                                        \
        ROWS(ADD_PRODUCTS, n, j, lane, half)                                                       \
    }
#define ADD_PRODUCTS(i, x, n, j, lane, half)                                                       \
    acc[i][2 * (j)] = (vi)vmlal_laneq_s16((int32x4_t)acc[i][2 * (j)], vget_low_s16(n),             \
                                          (int16x8_t)(x), 2 * (lane) + (half));                    \
    if (2 * (j) + 1 < vectors) {                                                                   \
        acc[i][2 * (j) + 1] = (vi)vmlal_high_laneq_s16((int32x4_t)acc[i][2 * (j) + 1], n,          \
                                                       (int16x8_t)(x), 2 * (lane) + (half));       \
    }
#endif

/* Row i's words are in x[i]. */
#define IN_BLOCKS(F, w, j, lane, half)                                                             \
    UK_UNROLL                                                                                      \
    for (int i = 0; i < rows; i++) {                                                               \
        F(i, x[i], w, j, lane, half)                                                               \
    }

/* Row i's only word is in x[i / 4]. */
#define IN_LANES(F, w, j, lane, half)                                                              \
    IN_LANE(F, 0, w, j, 0, half)                                                                   \
    IN_LANE(F, 1, w, j, 1, half)                                                                   \
    IN_LANE(F, 2, w, j, 2, half)                                                                   \
    IN_LANE(F, 3, w, j, 3, half)                                                                   \
    IN_LANE(F, 4, w, j, 0, half)                                                                   \
    IN_LANE(F, 5, w, j, 1, half)
#define IN_LANE(F, i, w, j, lane, half)                                                            \
    if (i < rows) {                                                                                \
        F(i, x[i / 4], w, j, lane, half)                                                           \
    }

/* Multiplies with word |word| of four, whose weights are at |b| + |first| bytes. */
#define MULTIPLY_ALL(word, ROWS, lane)                                                             \
    UK_UNROLL                                                                                      \
    for (int j = 0; j < B_VECTORS; j += 2) {                                                       \
        const bool is_pair = j + 1 < B_VECTORS;                                                    \
        vf raw[2];                                                                                 \
        v_load_pair(raw, b, first + (is_4bit ? word / 2 : word) * UK_NR * UK_WORD + j * 16,        \
                    is_pair);                                                                      \
        {                                                                                          \
            int8x16_t w = weights_of((uint8x16_t)raw[0], is_4bit, word % 2);                       \
            MULTIPLY_WORD(w, j, ROWS, lane)                                                        \
        }                                                                                          \
        if (is_pair) {                                                                             \
            int8x16_t w = weights_of((uint8x16_t)raw[1], is_4bit, word % 2);                       \
            MULTIPLY_WORD(w, j + 1, ROWS, lane)                                                    \
        }                                                                                          \
    }

/* acc += four words of each row times the weights at |b| + |first| bytes. */
UK_INLINE void multiply_four(vi acc[UK_MR][UK_NV], const uint8_t *a, const uint8_t *b,
                             const int first, const int rows, const int vectors, const bool is_4bit)
{
    vf x[UK_MR + 1];
    UK_UNROLL
    for (int i = 0; i < rows; i += 2) { /* behind the last row is scratch memory, too */
        v_load_pair(x + i, a, i * 16, true);
    }
    MULTIPLY_ALL(0, IN_BLOCKS, 0)
    MULTIPLY_ALL(1, IN_BLOCKS, 1)
    MULTIPLY_ALL(2, IN_BLOCKS, 2)
    MULTIPLY_ALL(3, IN_BLOCKS, 3)
}

/* Loads a word of each row, and perhaps what is behind them: scratch memory. */
UK_INLINE void load_words(vf x[2], const uint8_t *a, const int rows)
{
    const float *from = (const float *)(const void *)a;
    x[0] = rows > 2 ? (vf)vld1q_f32(from) : (vf)vcombine_f32(vld1_f32(from), vdup_n_f32(0));
    if (rows > 4) {
        x[1] = (vf)vcombine_f32(vld1_f32(from + 4), vdup_n_f32(0));
    }
}

/* acc += the least that a run has beside fours: one word, or two of 4-bit weights. */
UK_INLINE void multiply_rest(vi acc[UK_MR][UK_NV], const uint8_t *a, const uint8_t *b,
                             const int rows, const int vectors, const bool is_4bit)
{
    const int first = 0;
    vf x[2];
    load_words(x, a, rows);
    MULTIPLY_ALL(0, IN_LANES, 0)
    if (is_4bit) {
        load_words(x, a + A_STEP(rows), rows);
        MULTIPLY_ALL(1, IN_LANES, 0)
    }
}

/* acc += the products of the |words| words of one run. */
UK_INLINE void accumulate(vi acc[UK_MR][UK_NV], const uint8_t *a, ptrdiff_t stride,
                          const uint8_t *b, size_t words, const int rows, const int vectors,
                          const bool is_4bit)
{
    const int four = (is_4bit ? A_WORDS / 2 : A_WORDS) * UK_NR * UK_WORD;
    (void)stride;
    for (size_t k = words / (TIMES * A_WORDS); k > 0; k--) {
        UK_UNROLL
        for (int i = 0; i < TIMES; i++) {
            multiply_four(acc, a + i * A_WORDS * A_STEP(rows), b, i * four, rows, vectors, is_4bit);
        }
        a += TIMES * A_WORDS * A_STEP(rows);
        b += TIMES * four;
    }
    if (TIMES == 2 && words & A_WORDS) {
        multiply_four(acc, a, b, 0, rows, vectors, is_4bit);
        a += A_WORDS * A_STEP(rows);
        b += four;
    }
    for (size_t k = words % A_WORDS; k > 0; k -= is_4bit ? 2 : 1) {
        multiply_rest(acc, a, b, rows, vectors, is_4bit);
        a += (is_4bit ? 2 : 1) * A_STEP(rows);
        b += UK_NR * UK_WORD;
    }
}

#endif
