/* SPDX-License-Identifier: MIT */
/*
 * Integer micro-kernels: what hal/cpu/uk.h says holds for them too, and every level gives the same
 * integers.
 *
 * Activations are u8 everywhere in here: the instructions multiply u8 by s8, and a signed tensor is
 * an unsigned one with 128 added to its values and its zero point. Weights are s8 with zero point
 * 0, or 4 bits of it.
 */
#ifndef PTED_HAL_CPU_UK_U8_H
#define PTED_HAL_CPU_UK_U8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Products of 8 bits of one output that are sure to fit its 32-bit sum. */
#define UK_DEPTH_U8_MAX 65536

/* Runs are read whole multiples of this; 4-bit weights want twice as much. */
#define UK_RUN_U8 4

/*
 * What becomes of the sum s of row i, column j: with t = s + offset[j] - row_zeros[i] * sum[j],
 *     y = clamp(t * scale[j] * row_scales[i] + bias[j], min, max)
 * in float; then, for u8, round(y) + zero. Without rows their terms are not there. |sum| holds the
 * sums of the weights of each column, |offset| the -zero * sum of an x with one zero point for all.
 *
 * The arrays of one panel follow each other, u8_nr entries each: UK_COLUMN_ARRAYS times that.
 */
enum uk_column {
    UK_COLUMN_SUM,
    UK_COLUMN_OFFSET,
    UK_COLUMN_SCALE,
    UK_COLUMN_BIAS,
    UK_COLUMN_ARRAYS
};

#ifndef HAL_SHADER
struct uk_segment;

union uk_number {
    int32_t i;
    float f;
};

/*
 * C = A * B as struct uk_gemm_f32 says, with u8 for A, packed weights for B and the epilogue above.
 *
 * |run| and the k of segments are multiples of UK_RUN_U8, and B's rows beyond a run that is not are
 * zero: A is read, but does not count, there. With |group| not 0, group |k / group| of a column has
 * a scale of its own: |group_scales| [panels][groups][u8_nr] go with the sums of each group, sum
 * and offset then are floats, of weights times their scales, and |scale| still is a factor of all.
 * Groups are for one run only and multiples of 8.
 */
struct uk_gemm_u8 {
    const uint8_t *a;
    ptrdiff_t a_line, a_row;
    const struct uk_segment *segments; /* |segment_count|; NULL: one, {0, 0} */
    uint32_t segment_count, run;
    const uint8_t *b; /* packed */
    size_t k;         /* rows of a panel as packed */
    bool is_4bit;
    uint32_t group;
    const float *group_scales;
    const union uk_number *columns;
    const float *row_scales;  /* of line 0, row 0, one after the other; NULL: none */
    const int32_t *row_zeros; /* likewise, both or none */
    ptrdiff_t rows_line;
    uint8_t *c_u8; /* one of the two */
    float *c_f32;
    ptrdiff_t c_line, c_row;
    uint32_t lines, m, n;
    float min, max; /* of y before |zero| is added */
    int32_t zero;
    void *scratch; /* uk_gemm_u8_scratch() bytes */
};

/*
 * Weights into panels: B[k][j] for k = (outer * run) + (mid * inner_count + inner), with |run| the
 * next multiple of UK_RUN_U8 (or, for 4 bits, twice that) after mid_count * inner_count, is
 *     src[j * column + outer * outer_stride + mid * mid_stride + inner * inner_stride]
 */
struct uk_pack_u8 {
    const int8_t *src;
    ptrdiff_t column, outer_stride, mid_stride, inner_stride;
    uint32_t n, outer_count, mid_count, inner_count;
    bool is_4bit;
    uint8_t *packed;
};

/*
 * Depthwise convolution of one band of an image whose borders are there already, as zero points,
 * and whose pixels are padded to blocks of uk->u8_block channels. Weights are packed for each block
 * by pack_dw_u8; a panel of |columns| is a block with its channels in the order of
 * uk_dw_u8_place().
 */
struct uk_dw_u8 {
    const uint8_t *x; /* of the first tap of output 0, 0 */
    ptrdiff_t x_line, x_pixel;
    const uint8_t *w;
    const union uk_number *columns;
    uint8_t *y;
    ptrdiff_t y_line, y_pixel;
    uint32_t channels, rows, width; /* of y */
    uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    float min, max;
    int32_t zero;
};

/* y = clamp(round(a * a_scale + b * b_scale + bias), min, max) as u8; b NULL: only a. */
struct uk_add_u8 {
    uint8_t *y;
    const uint8_t *a, *b;
    size_t n;
    float a_scale, b_scale, bias, min, max;
};

/* y = clamp(round((a - a_zero) * (b - b_zero) * scale + bias), min, max) as u8. */
struct uk_mul_u8 {
    uint8_t *y;
    const uint8_t *a, *b;
    size_t n;
    float a_zero, b_zero, scale, bias, min, max;
};

/* As struct uk_window_f32. */
struct uk_window_u8 {
    const uint8_t *x;
    ptrdiff_t line, row;
    size_t lines, rows, n;
};

/* Where channel |c| of a block stands in the panels of a depthwise convolution. */
static inline uint32_t uk_dw_u8_place(uint32_t block, uint32_t c)
{
    return c % 16 / 4 * (block / 4) + c / 16 * 4 + c % 4;
}
#endif

#endif
