/* SPDX-License-Identifier: MIT */
/*
 * The sums of a float tile on aarch64, whose multiply-add takes its second factor from any lane of
 * a vector. So four numbers of each row of A are loaded at a time, and none is broadcast: of the
 * loop's instructions for six rows 96 in 111 are multiply-adds. Nothing is asked for ahead, because
 * the processors notice streams by themselves.
 */
#ifndef PTED_HAL_CPU_UK_GEMM_F32_NEON_H
#define PTED_HAL_CPU_UK_GEMM_F32_NEON_H

/* acc += lane |lane| of each row's numbers times row |first| + |lane| of B. */
#define MULTIPLY_LANE(lane)                                                                        \
    UK_UNROLL                                                                                      \
    for (int j = 0; j < vectors; j += 2) {                                                         \
        vf of_b[2];                                                                                \
        v_load_pair(of_b, b, ((first + lane) * UK_NR + j * UK_VL) * 4, j + 1 < vectors);           \
        UK_UNROLL                                                                                  \
        for (int i = 0; i < rows; i++) {                                                           \
            acc[i][j] = v_add_lane(acc[i][j], of_b[0], x[i], lane);                                \
            if (j + 1 < vectors) {                                                                 \
                acc[i][j + 1] = v_add_lane(acc[i][j + 1], of_b[1], x[i], lane);                    \
            }                                                                                      \
        }                                                                                          \
    }

#define v_add_lane(acc, of_b, x, lane)                                                             \
    (vf) vfmaq_laneq_f32((float32x4_t)(acc), (float32x4_t)(of_b), (float32x4_t)(x), lane)

/* acc += UK_VL numbers of each row times as many rows of B, from |first| behind |b| on. */
UK_INLINE void multiply_four(vf acc[UK_MR][UK_NV], const void *at[UK_MR], const float *b,
                             const int first, const int rows, const int vectors)
{
    vf x[UK_MR];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        x[i] = v_load_next(&at[i]);
    }
    MULTIPLY_LANE(0)
    MULTIPLY_LANE(1)
    MULTIPLY_LANE(2)
    MULTIPLY_LANE(3)
}

/* acc += the products of one run: see accumulate() of gemm_f32.c. */
UK_INLINE void accumulate(vf acc[UK_MR][UK_NV], const float *a, ptrdiff_t row, const float *b,
                          size_t run, const int rows, const int vectors)
{
    const void *at[UK_MR];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        at[i] = a + i * row;
    }
    for (size_t k = run / (2 * UK_VL); k > 0; k--, b += 2 * UK_VL * UK_NR) {
        multiply_four(acc, at, b, 0, rows, vectors);
        multiply_four(acc, at, b, UK_VL, rows, vectors);
    }
    if (run & UK_VL) {
        multiply_four(acc, at, b, 0, rows, vectors);
        b += UK_VL * UK_NR;
    }
    for (size_t k = run % UK_VL; k > 0; k--, b += UK_NR) {
        vf x[UK_MR];
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            const float *from = at[i];
            x[i] = v_splat(*from);
            at[i] = from + 1;
        }
        const int first = 0;
        MULTIPLY_LANE(0)
    }
}

#endif
