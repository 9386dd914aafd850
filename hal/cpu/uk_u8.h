/* SPDX-License-Identifier: MIT */
/*
 * Integer micro-kernels: the rules of hal/cpu/uk.h apply to them as well, and all levels compute
 * the same integers.
 *
 * Activations are always u8 here: the instructions multiply u8 by s8, and a signed tensor is an
 * unsigned one with 128 added to its values and its zero point. Weights are s8 with zero point 0,
 * or have only 4 bits.
 */
#ifndef PTED_HAL_CPU_UK_U8_H
#define PTED_HAL_CPU_UK_U8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many 8-bit products are sure to fit the 32-bit sum of one output. */
#define UK_DEPTH_U8_MAX 65536

/* Runs are read in multiples of this; with 4-bit weights, in multiples of twice this. */
#define UK_RUN_U8 4

/*
 * The result from the sum s of row i, column j: with t = s + offset[j] - row_zeros[i] * sum[j],
 *
 *     y = clamp(t * scale[j] * row_scales[i] + bias[j], min, max)
 *
 * in float; for u8 then round(y) + zero. Without row_scales, the terms of rows are omitted. |sum|
 * is the sum of the weights of each column; |offset| is -zero * sum if x has a single zero point.
 * A level that multiplies signed bytes needs |sum| with and without row_scales, of all taps: unlike
 * in struct uk_gemm_f32, |segments| omits none.
 *
 * A panel has all arrays one after the other with u8_nr entries each: UK_COLUMN_ARRAYS * u8_nr
 * entries.
 */
enum uk_column {
    UK_COLUMN_SUM,
    UK_COLUMN_OFFSET,
    UK_COLUMN_SCALE,
    UK_COLUMN_BIAS,
    UK_COLUMN_ARRAYS
};

/*
 * Of depthwise convolutions: the taps of a window, the outputs that share one, and the pixels
 * behind an image that are read but have no effect. See struct uk_dw_u8.
 */
#define UK_DW_U8_TAPS 4
#define UK_DW_U8_SHIFTS 2
#define UK_DW_U8_SLACK 16
/* Windows of a kernel row: enough for the output with the largest shift. */
#define UK_DW_U8_WINDOWS(kernel_w) (((kernel_w) + UK_DW_U8_SHIFTS - 2) / UK_DW_U8_TAPS + 1)

#ifndef HAL_SHADER
struct uk_segment;

union uk_number {
    int32_t i;
    float f;
};

/*
 * C = A * B as in struct uk_gemm_f32, with u8 for A, packed weights for B and the epilogue above.
 *
 * |run| and the k of segments are multiples of UK_RUN_U8. If a real run is shorter, B's rows after
 * it are zero, so the elements of A there are read but have no effect.
 *
 * If |group| is not 0, the elements of a column with the same k / group share a scale: a float, or
 * a bfloat16 if |has_short_scales|. |group_scales| is [panels][groups][u8_nr]. Without it, and
 * without |columns|, a panel has the scales of a group behind its weights, and its columns behind
 * the last group. Then a matrix is read as a single stream: uk_panel_bytes_u8(). With groups,
 * UK_COLUMN_SUM and UK_COLUMN_OFFSET are floats, computed from weights times their scales, and
 * UK_COLUMN_SCALE is an additional factor of the whole sum. Groups need a single run and are
 * multiples of 8.
 */
struct uk_gemm_u8 {
    const uint8_t *a;
    ptrdiff_t a_line, a_row;
    const struct uk_segment *segments; /* |segment_count| of them; NULL: one, {0, 0} */
    uint32_t segment_count, run;
    const uint8_t *b;        /* packed */
    size_t k;                /* rows of a packed panel */
    bool is_4bit, is_sorted; /* packed in this way; |segments| are in the order of k if sorted */
    uint32_t group;
    bool has_short_scales;
    const void *group_scales;       /* NULL: in the panels, or none */
    const union uk_number *columns; /* NULL: in the panels */
    const float *row_scales;        /* of line 0, row 0 and following; NULL: none */
    const int32_t *row_zeros;       /* likewise; NULL if |row_scales| is */
    ptrdiff_t rows_line;
    uint8_t *c_u8; /* set either c_u8 or c_f32 */
    float *c_f32;
    ptrdiff_t c_line, c_row;
    uint32_t lines, m, n;
    float min, max; /* of y before |zero| is added */
    int32_t zero;
    void *scratch;   /* uk_gemm_u8_scratch() bytes */
    bool asks_ahead; /* for the weights of later groups; kernels set it for kernels of their base */
};

/*
 * Returns the bytes of a panel |nr| columns wide that has the scales of its groups, of
 * |scale_bytes| each, and its columns. Groups begin uk_group_bytes_u8() apart: first the weights.
 */
static inline size_t uk_group_bytes_u8(size_t nr, size_t group, bool is_4bit, size_t scale_bytes)
{
    return group * nr / (is_4bit ? 2 : 1) + nr * scale_bytes;
}

static inline size_t uk_panel_bytes_u8(size_t nr, size_t k, size_t group, bool is_4bit,
                                       size_t scale_bytes)
{
    return k / group * uk_group_bytes_u8(nr, group, is_4bit, scale_bytes) +
           UK_COLUMN_ARRAYS * nr * sizeof(union uk_number);
}

/*
 * A panel with sorted words consists of strips of uk->u8_block columns, see
 * hal/cpu/uk/gemm_u8_sorted.h. The words of a strip are sorted by parts, so that what a tile reads
 * of its rows for one part stays in the first-level cache. The head of a part says how many of its
 * words may be added four, two or one at a time in sums of 16 bits, if no number of A exceeds that
 * of the row: UK_SORTED_STEP * (row + 1) - 1.
 */
#define UK_SORTED_PART 144 /* words: 14 rows in three orders are 24 KiB */
#define UK_SORTED_STEP 64
#define UK_SORTED_ROWS 4
enum uk_sorted { UK_SORTED_FOUR, UK_SORTED_TWO, UK_SORTED_ONE, UK_SORTED_ENDS };

struct uk_sorted_head {
    uint16_t ends[UK_SORTED_ROWS][UK_SORTED_ENDS];
};

static inline size_t uk_sorted_parts_u8(size_t words)
{
    return (words + UK_SORTED_PART - 1) / UK_SORTED_PART;
}

/* Returns the bytes of a strip |width| columns wide; with |width| 0, of what is in front of the
 * words. |k| is at most UK_DEPTH_U8_MAX. */
static inline size_t uk_sorted_bytes_u8(size_t width, size_t k)
{
    size_t heads = uk_sorted_parts_u8(k / 4) * sizeof(struct uk_sorted_head);
    return (heads + k / 4 * sizeof(uint16_t) + 63) / 64 * 64 + k * width;
}

/*
 * Packs weights into panels: B[k][j] for k = (outer * run) + (mid * inner_count + inner) is
 *
 *     src[j * column + outer * outer_stride + mid * mid_stride + inner * inner_stride]
 *
 * where run is mid_count * inner_count, rounded up to a multiple of UK_RUN_U8 (twice that for 4
 * bits). With |is_sorted|, which needs uk_sorts_u8(), panels have uk_sorted_panel_u8() bytes.
 */
struct uk_pack_u8 {
    const int8_t *src;
    ptrdiff_t column, outer_stride, mid_stride, inner_stride;
    uint32_t n, outer_count, mid_count, inner_count;
    bool is_4bit, is_sorted; /* not both */
    uint8_t *packed;
};

/*
 * Depthwise convolution of one band of an image whose borders are already filled with zero points.
 * Each block of uk->u8_block channels is an image of its own, whose pixels are contiguous. Behind
 * the last one UK_DW_U8_SLACK more pixels can be read. A panel of |columns| is a block.
 *
 * pack_dw_u8 packs the weights of each block: [kernel_h][windows][UK_DW_U8_SHIFTS], each with
 * UK_DW_U8_TAPS taps of all channels. A window is UK_DW_U8_TAPS neighbouring pixels. All outputs
 * that begin in a window share its pixels: the taps of output |shift| are moved |shift| pixels to
 * the right, and taps outside the window are zeros. The taps of a channel are a word of bytes; or,
 * with uk->u8_word 2, 16 bits wide, in an order of the level: see pack_u8.c.
 */
struct uk_dw_u8 {
    const uint8_t *x; /* the first tap of output 0, 0 */
    ptrdiff_t x_line, x_block;
    const uint8_t *w;
    const union uk_number *columns;
    uint8_t *y;
    ptrdiff_t y_line, y_pixel;
    uint32_t channels, rows, width; /* of y */
    uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    float min, max;
    int32_t zero;
};

/* y = clamp(round(a * a_scale + b * b_scale + bias), min, max) as u8; without the term of b if b is
 * NULL. */
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

/* Like struct uk_window_f32. */
struct uk_window_u8 {
    const uint8_t *x;
    ptrdiff_t line, row;
    size_t lines, rows, n;
};
#endif

#endif
