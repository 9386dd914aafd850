/* SPDX-License-Identifier: MIT */
/*
 * Micro-kernels: the inner loops of kernels on the CPU, as plain functions on plain pointers, with
 * one table of them for each instruction set level. hal_cpu_uk() is the table in use.
 *
 * All of them may be called by any thread, keep no state, allocate nothing and cannot fail. They
 * report no errors: shapes are checked when a dispatch is recorded, and a call only asserts what
 * its caller guarantees. Float pointers need only the alignment of a float unless a comment says
 * more. The output of an elementwise function, softmax or norm may be its input, but must not
 * partly overlap it; other outputs overlap no input.
 *
 * An output element depends only on its own inputs and their order, never on its position, on how
 * the work was divided into calls, or on the thread that ran it. Levels may differ in the last
 * bits. All functions propagate NaN, including clamps, max and relu.
 */
#ifndef PTED_HAL_CPU_UK_H
#define PTED_HAL_CPU_UK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/cpu/isa.h"
#include "hal/cpu/uk_u8.h"
#include "hal/cpu/uk_winograd.h"

/*
 * C[i][j] = clamp(bias[j] + sum over k of A[i][k] * B[k][j] + residual[i][j], min, max), where row
 * i of A consists of runs of |run| contiguous floats. This is a matrix product (one run, segments
 * NULL) or, without an im2col copy, a convolution (a run is the channels of one tap, or of a whole
 * kernel row if that is contiguous).
 *
 * The rows are |lines| lines of |m| rows each, so that one call can compute a block of an output
 * image. All strides are in floats. Columns are panels of a matrix packed by pack_f32: to compute
 * only panels [p, q), advance b by p * f32_nr * k and bias, residual, c by p * f32_nr, and set n
 * accordingly. A tap in the padding is omitted from |segments|; this does not change the k of the
 * others.
 */
struct uk_segment {
    ptrdiff_t a; /* start of the run, relative to the start of the row */
    size_t k;    /* its first row in the panels of B */
};

/* The first, or the last, row of a line has no such run: that tap is in the padding. */
enum uk_skip {
    UK_SKIP_FIRST = 1,
    UK_SKIP_LAST = 2,
};

struct uk_gemm_f32 {
    const float *a;
    ptrdiff_t a_line, a_row;
    const struct uk_segment *segments; /* |segment_count| of them; NULL: one, {0, 0} */
    uint32_t segment_count, run;
    /* For gemm_bf16 if bf16_skips: of each segment 0, UK_SKIP_FIRST or UK_SKIP_LAST; NULL: all 0. A
     * run that is skipped is not read. */
    const uint8_t *skips;
    const void *b;         /* packed by pack_f32 or pack_bf16, 64-byte aligned */
    size_t k;              /* rows of a packed panel of B, including those that |segments| omits */
    const void *next_b;    /* B of the next call, with panels like these; NULL: it is not known */
    const float *bias;     /* n; NULL: none */
    const float *residual; /* NULL: none. May be c, with c's strides and type */
    ptrdiff_t residual_line, residual_row;
    float *c;
    ptrdiff_t c_line, c_row;
    uint32_t lines, m, n;
    float min, max; /* -INFINITY, INFINITY: no clamp */
    /* Applied to results after the bounds, in the thread's mode for subnormals; may be NULL. */
    void (*activation)(float *y, const float *x, size_t n);
    void *scratch; /* for gemm_bf16: uk_gemm_bf16_scratch() bytes */
    /* For gemm_bf16: |a|, |residual| or |c| points to bfloat16 numbers, which strides count. */
    bool a_is_bf16, residual_is_bf16, c_is_bf16;
    bool is_odd; /* for gemm_bf16 with one segment: rows of A lack the last of |run|, which is 0 */
    bool asks_ahead; /* for gemm_f32: a single row asks for B ahead of its use */
};

/*
 * The source of B: B[k][j] = src[j * column + outer * outer_stride + inner * inner_stride] with k =
 * outer * inner_count + inner.
 *
 *     [K][N] with rows of |ld|:        column 1, inner_count K, inner_stride ld, outer_count 1
 *     [N][K], the weights of a linear: column K, inner_count K, inner_stride 1, outer_count 1
 *     OIHW, a group of a convolution:  column I*H*W, outer_count H*W, outer_stride 1,
 *                                      inner_count I, inner_stride H*W; k is tap * I + channel
 *     OHWI:                            column H*W*I, inner_count H*W*I, inner_stride 1,
 *                                      outer_count 1
 */
struct uk_pack_f32 {
    const float *src;
    ptrdiff_t column, outer_stride, inner_stride;
    uint32_t n, outer_count, inner_count;
    bool is_odd; /* for pack_bf16, outer_count 1: the source lacks the last inner row, which is 0 */
    void *packed; /* uk_packed_f32_floats() floats or bfloat16 numbers, 64-byte aligned */
};

/* Depthwise convolution of one image with pixels of |channels| floats. Taps in the padding are
 * skipped. The sum begins with the bias; the taps follow in row order. */
struct uk_dw_f32 {
    const float *x;
    ptrdiff_t x_line, x_pixel;
    const float *w; /* [kernel_h][kernel_w][channels]; group_f32: [kernel_h][group][kernel_w][..] */
    const float *bias; /* channels; NULL: none */
    float *y;          /* of output row 0, column 0 */
    ptrdiff_t y_line, y_pixel;
    uint32_t channels, height, width;       /* of x */
    uint32_t out_width, row_begin, row_end; /* output columns, and rows to compute */
    uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top;
    ptrdiff_t pad_left; /* negative: the first output column begins inside of x */
    uint32_t group;     /* only for group_f32: inputs, and outputs, of a group */
    float min, max;
};

/* clang-format off */
#define UK_UNARY_F32(XX) \
    XX(ABS, abs) XX(NEG, neg) XX(RELU, relu) XX(SQRT, sqrt) XX(RSQRT, rsqrt) \
    XX(RECIPROCAL, reciprocal) XX(SQUARE, square) XX(FLOOR, floor) XX(CEIL, ceil) \
    XX(TRUNC, trunc) XX(ROUND, round) /* half to even */ XX(SIGN, sign) \
    XX(EXP, exp) XX(LOG, log) XX(SIN, sin) XX(COS, cos) XX(TANH, tanh) XX(ERF, erf) \
    XX(SIGMOID, sigmoid) XX(SILU, silu) XX(GELU, gelu) XX(GELU_TANH, gelu_tanh) \
    XX(HARDSIGMOID, hardsigmoid) XX(HARDSWISH, hardswish)
#define UK_BINARY_F32(XX) \
    XX(ADD, add) XX(SUB, sub) XX(MUL, mul) XX(DIV, div) XX(MIN, min) XX(MAX, max)
/* clang-format on */

#define XX(upper, lower) UK_##upper,
enum uk_unary { UK_UNARY_F32(XX) UK_UNARY_COUNT };
enum uk_binary { UK_BINARY_F32(XX) UK_BINARY_COUNT };
#undef XX

/* y[r][j] = clamp(x[r][j] * scale[j] + shift[j], min, max) */
struct uk_affine_f32 {
    float *y;
    const float *x, *scale, *shift; /* shift NULL: 0 */
    ptrdiff_t y_row, x_row;
    size_t rows, n;
    float min, max;
};

typedef void uk_unary_f32_f(float *y, const float *x, size_t n);
/* y[i] = a[i] op b[i] */
typedef void uk_binary_f32_f(float *y, const float *a, const float *b, size_t n);
/* y[i] = x[i] op s; the reversed function computes y[i] = s op x[i] */
typedef void uk_scalar_f32_f(float *y, const float *x, float s, size_t n);
typedef float uk_reduce_f32_f(const float *x, size_t n);

/* Integer types for quantised floats. */
enum uk_int { UK_I8, UK_U8, UK_I16, UK_U16, UK_I32, UK_INT_COUNT };

/* Quantised: clamp(round(x * scale) + zero_point, min, max), where the scale is the inverse of the
 * quantisation step. Dequantised: (q - zero_point) * scale. min and max are values of the type. */
struct uk_quant {
    float scale;
    int32_t zero_point, min, max;
};

typedef void uk_quantize_f(void *q, const float *x, const struct uk_quant *p, size_t n);
typedef void uk_dequantize_f(float *y, const void *q, const struct uk_quant *p, size_t n);

/* y = (x - mean) * (1 / sqrt(variance + epsilon)) * scale + shift; computes the mean first, then
 * the variance. */
struct uk_norm_f32 {
    float *y;
    const float *x;
    const float *scale, *shift; /* n; NULL: 1, 0 */
    size_t n;
    float epsilon;
};

/* A pooling window: y[j] is the sum or the maximum of x[l * line + r * row + j] over its lines and
 * rows, in that order; 0 or -INFINITY if the window is empty. */
struct uk_window_f32 {
    const float *x;
    ptrdiff_t line, row;
    size_t lines, rows, n;
};

/* The same of bfloat16 numbers, for maxima. */
struct uk_window_bf16 {
    const uint16_t *x;
    ptrdiff_t line, row;
    size_t lines, rows, n;
};

/*
 * Attention of a few rows: scores[r][j] = q[r] . k[j], or sums[r] += scores[r][j] * v[j] for all j
 * in order. |kv| are the keys or the values: floats, or bytes with the float behind each row by
 * which they are multiplied. The rows of |q| and |sums| are |depth| apart. A row of the result is
 * the same whatever other rows are beside it.
 */
struct uk_attend_f32 {
    const float *q;
    float *scores, *sums;
    const void *kv;
    ptrdiff_t scores_row;  /* from one row to the next */
    ptrdiff_t kv_row;      /* likewise, in bytes */
    size_t rows, n, depth; /* n: keys or values */
};

#define UK_PLANES_MAX 4

struct hal_cpu_uk {
    const char *name;      /* the level's */
    uint32_t f32_nr;       /* columns of a packed panel */
    uint32_t f32_mr;       /* rows of a register tile: fastest when m is a multiple of this */
    uint32_t f32_per_read; /* multiply-adds that take as long as one float from memory, about */
    bool f32_asks_ahead;   /* gemm_f32 is faster with |asks_ahead| if B comes from memory */

    void (*gemm_f32)(const struct uk_gemm_f32 *g);
    void (*pack_f32)(const struct uk_pack_f32 *p, uint32_t panel_begin, uint32_t panel_end);
    void (*dw_f32)(const struct uk_dw_f32 *d);
    /* NULL: the level has no instructions for it. Groups have a power of two of channels, up to
     * group_max, and there are at least group_max channels in all. */
    void (*group_f32)(const struct uk_dw_f32 *d);
    uint32_t group_max;
    void (*winograd_f32)(const struct uk_winograd_f32 *w);
    void (*winograd_pack_f32)(const struct uk_winograd_pack *p, uint32_t panel_begin,
                              uint32_t panel_end);

    /*
     * NULL: the level has no instructions for it. The numbers that are multiplied are rounded to
     * bfloat16; |run| and k are even, and so is the inner_count of a packed source. Sums and
     * everything else are floats.
     */
    uint32_t bf16_mr;    /* like f32_mr */
    uint32_t bf16_speed; /* products in the time of one of floats, about */
    bool bf16_skips;     /* gemm_bf16 takes |skips| */
    void (*gemm_bf16)(const struct uk_gemm_f32 *g);
    void (*pack_bf16)(const struct uk_pack_f32 *p, uint32_t panel_begin, uint32_t panel_end);
    /* Rounds rows of |n| floats, one behind the other, to rows |y_row| apart, as gemm_bf16 rounds
     * what it multiplies. */
    void (*rows_to_bf16)(uint16_t *y, ptrdiff_t y_row, const float *x, size_t rows, size_t n);
    /* The same of |n| pixels whose numbers lie in |planes| planes, |plane| floats apart. A pixel of
     * y has UK_PLANES_MAX numbers: 0 for planes that are not there. */
    void (*planes_to_bf16)(uint16_t *y, const float *x, ptrdiff_t plane, uint32_t planes, size_t n);
    /* Like window_max_f32, but 0 is larger than -0. */
    void (*window_max_bf16)(uint16_t *y, const struct uk_window_bf16 *w);

    uk_unary_f32_f *unary_f32[UK_UNARY_COUNT];
    /* gelu for results that are rounded to bfloat16: the relative error is below 3.4e-4, a sixth of
     * the rounding's at most, down to -5.5; further down results are between -3e-7 and 0. */
    uk_unary_f32_f *gelu_short_f32;
    uk_binary_f32_f *binary_f32[UK_BINARY_COUNT];
    uk_scalar_f32_f *scalar_f32[UK_BINARY_COUNT];
    uk_scalar_f32_f *reversed_f32[UK_BINARY_COUNT];
    void (*clamp_f32)(float *y, const float *x, float min, float max, size_t n);
    void (*leaky_relu_f32)(float *y, const float *x, float slope, size_t n);
    /* y = a + alpha * b */
    void (*add_scaled_f32)(float *y, const float *a, const float *b, float alpha, size_t n);
    void (*affine_f32)(const struct uk_affine_f32 *a);

    /* The order of summation depends only on n. Without elements the result is 0, or -INFINITY for
     * max. */
    uk_reduce_f32_f *sum_f32, *sum_squares_f32, *max_f32;
    float (*dot_f32)(const float *a, const float *b, size_t n);
    void (*attend_scores_f32)(const struct uk_attend_f32 *a);
    void (*attend_sums_f32)(const struct uk_attend_f32 *a);
    void (*attend_scores_i8)(const struct uk_attend_f32 *a);
    void (*attend_sums_i8)(const struct uk_attend_f32 *a);
    void (*softmax_f32)(float *y, const float *x, size_t n);
    void (*log_softmax_f32)(float *y, const float *x, size_t n);
    void (*layer_norm_f32)(const struct uk_norm_f32 *l);
    /* acc[j] += x[i * row + j], rows in order: column sums */
    void (*rows_add_f32)(float *acc, const float *x, size_t rows, ptrdiff_t row, size_t n);
    void (*window_sum_f32)(float *y, const struct uk_window_f32 *w);
    void (*window_max_f32)(float *y, const struct uk_window_f32 *w);

    /* Round to nearest even; NaN stays NaN. */
    void (*f16_to_f32)(float *y, const uint16_t *x, size_t n);
    void (*f32_to_f16)(uint16_t *y, const float *x, size_t n);
    void (*bf16_to_f32)(float *y, const uint16_t *x, size_t n);
    void (*f32_to_bf16)(uint16_t *y, const float *x, size_t n);

    /* Some microseconds of multiply-adds at the highest rate that the level has, and how many they
     * were. |out| keeps the compiler from leaving them out. */
    uint64_t (*probe_f32)(float *out);
    uint64_t (*probe_u8)(int32_t *out);
    uint64_t (*probe_bf16)(float *out); /* NULL where gemm_bf16 is */

    uk_quantize_f *quantize[UK_INT_COUNT];
    uk_dequantize_f *dequantize[UK_INT_COUNT];
    /* The least and the greatest number, ignoring NaN; INFINITY and -INFINITY if there is none. */
    void (*range_f32)(const float *x, size_t n, float *out_min, float *out_max);
    uint32_t u8_nr;      /* columns of a packed panel of 8-bit weights */
    uint32_t u8_mr;      /* like f32_mr */
    uint32_t u8_speed;   /* products in the time of one with dot products, about */
    uint32_t u8_block;   /* channels of a block in a depthwise convolution */
    uint32_t u8_word;    /* neighbours in k whose weights share a word */
    bool u8_sorts;       /* are sorted words faster? */
    uint32_t u8_widened; /* bytes for each element of A in the copy of a tile */
    void (*gemm_u8)(const struct uk_gemm_u8 *g);
    void (*pack_u8)(const struct uk_pack_u8 *p, uint32_t panel_begin, uint32_t panel_end);
    void (*dw_u8)(const struct uk_dw_u8 *d);
    /* w: [kernel_h][kernel_w][channels]. |packed| has uk_dw_u8_bytes() bytes. */
    void (*pack_dw_u8)(uint8_t *packed, const int8_t *w, uint32_t kernel_h, uint32_t kernel_w,
                       uint32_t channels);
    void (*add_u8)(const struct uk_add_u8 *a);
    void (*mul_u8)(const struct uk_mul_u8 *m);
    /* Like window_max_f32; 0 if the window is empty. */
    void (*window_max_u8)(uint8_t *y, const struct uk_window_u8 *w);
    void (*lookup_u8)(uint8_t *y, const uint8_t *x, const uint8_t table[256], size_t n);
    /* acc[j] += x[i * row + j], rows in order */
    void (*rows_add_u8)(int32_t *acc, const uint8_t *x, size_t rows, ptrdiff_t row, size_t n);
};

static inline uint32_t uk_panels_f32(const struct hal_cpu_uk *uk, uint32_t n)
{
    return n / uk->f32_nr + (n % uk->f32_nr != 0);
}

/* Returns the size of a packed k x n matrix; 0 if its bytes exceed a size_t. */
static inline size_t uk_packed_f32_floats(const struct hal_cpu_uk *uk, size_t k, uint32_t n)
{
    size_t width = (size_t)uk_panels_f32(uk, n) * uk->f32_nr;
    size_t max = SIZE_MAX / sizeof(float);
    return width && k > max / width ? 0 : k * width;
}

/* Numbers from one row of a copied tile of |depth| to the next. */
static inline size_t uk_gemm_bf16_row(size_t depth)
{
    return (depth + 63) / 64 * 64 + 32;
}

/* Do rows of A at this distance, a multiple of a page, evict each other from the first-level cache?
 * gemm_f32 copies such rows if a call has at least UK_GEMM_F32_SKEW_PANELS panels. */
#define UK_GEMM_F32_SKEW_PANELS 4

static inline bool uk_gemm_f32_is_paged(ptrdiff_t a_row)
{
    return a_row % 1024 == 0;
}

/* Bytes of scratch memory that gemm_bf16 needs; |depth| is the sum of all runs. With tiles of AMX a
 * copy may have UK_BF16_COPY_BYTES. */
#define UK_BF16_COPY_BYTES (256 * 1024)

static inline size_t uk_gemm_bf16_scratch(const struct hal_cpu_uk *uk, size_t depth)
{
    size_t bytes = uk->bf16_mr * uk_gemm_bf16_row(depth) * sizeof(uint16_t);
    return uk->bf16_skips || bytes > UK_BF16_COPY_BYTES ? bytes : UK_BF16_COPY_BYTES;
}

static inline uint32_t uk_panels_u8(const struct hal_cpu_uk *uk, uint32_t n)
{
    return n / uk->u8_nr + (n % uk->u8_nr != 0);
}

/* May panels of |k| rows have sorted words? */
static inline bool uk_sorts_u8(const struct hal_cpu_uk *uk, size_t k)
{
    return uk->u8_sorts && k <= UK_DEPTH_U8_MAX;
}

/* Returns their bytes. */
static inline size_t uk_sorted_panel_u8(const struct hal_cpu_uk *uk, size_t k)
{
    return uk->u8_nr / uk->u8_block * uk_sorted_bytes_u8(uk->u8_block, k);
}

/* Returns the bytes of scratch memory that gemm_u8 needs; |depth| is the sum of all runs. */
static inline size_t uk_gemm_u8_scratch(const struct hal_cpu_uk *uk, size_t depth)
{
    return uk->u8_mr * (depth + 64) * (uk->u8_sorts ? 5 : uk->u8_widened);
}

/* Returns the size of packed depthwise weights. */
static inline size_t uk_dw_u8_bytes(const struct hal_cpu_uk *uk, size_t kernel_h, size_t kernel_w,
                                    size_t channels)
{
    size_t blocks = (channels + uk->u8_block - 1) / uk->u8_block;
    size_t windows = kernel_h * UK_DW_U8_WINDOWS(kernel_w);
    return blocks * windows * UK_DW_U8_SHIFTS * UK_DW_U8_TAPS * uk->u8_widened * uk->u8_block;
}

/* Returns the table of the level in use. Any thread. */
const struct hal_cpu_uk *hal_cpu_uk(void);

#endif
