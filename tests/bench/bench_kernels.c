/* SPDX-License-Identifier: MIT */
/*
 * The speed of the micro-kernels at each level of this machine, on one thread. Floating point cases
 * are compared with the rate of multiply-adds that this process reaches, cases of bfloat16 with
 * that of its dot products, integer cases with that of the level's 8-bit (or else 16-bit) dot
 * products, memory cases with the rate of reads. A level without bfloat16 skips its cases. Both
 * probes run before each slice of each case, and the best slices are compared, so a busy machine
 * slows both sides of a ratio.
 *
 * usage: bench_kernels [part of a level's name [part of a case's name]]
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hal/cpu/uk.h"

#define SLICES 12
#define SLICE_NS 8e6
#define STREAM_FLOATS (48u << 20)

static volatile float sink;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static float *new_floats(size_t n)
{
    float *x = aligned_alloc(64, (n * sizeof(float) + 64) / 64 * 64);
    if (!x) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(i % 31) / 31.0f - 0.5f;
    }
    return x;
}

static double peak(const struct hal_cpu_uk *uk)
{
    float sum;
    double macs = (double)uk->probe_f32(&sum);
    sink = sum;
    return 2 * macs;
}

static double bf16_peak(const struct hal_cpu_uk *uk)
{
    float sum;
    double macs = (double)uk->probe_bf16(&sum);
    sink = sum;
    return 2 * macs;
}

/* 8-bit multiplications and additions. */
static double int_peak(const struct hal_cpu_uk *uk)
{
    int32_t sum;
    double macs = (double)uk->probe_u8(&sum);
    sink = (float)sum;
    return 2 * macs;
}

static float *stream; /* STREAM_FLOATS: more than any cache */

static double read_stream(const struct hal_cpu_uk *uk)
{
    static size_t at;
    size_t n = STREAM_FLOATS / 16;
    sink = uk->max_f32(stream + at, n);
    at = (at + n) % STREAM_FLOATS;
    return (double)n * sizeof(float);
}

/* The probe for a case: run() returns operations, or bytes for a memory case. */
enum probe { FLOATS, BFLOATS, INTEGERS, MEMORY };

static const struct {
    double (*run)(const struct hal_cpu_uk *uk);
    const char *unit;
} probes[] = {
    [FLOATS] = {peak, "GFLOP/s"},
    [BFLOATS] = {bf16_peak, "GFLOP/s"},
    [INTEGERS] = {int_peak, "GOP/s  "},
    [MEMORY] = {read_stream, "GB/s   "},
};

struct bench {
    const char *name;
    double (*run)(const struct hal_cpu_uk *uk, const uint32_t *p);
    uint32_t p[6];
    enum probe probe;
};

/* Operands, as large as any case needs; their contents do not matter. */
static float *left, *right, *out;
static uint16_t *left_bf16; /* |left| rounded, twice */
#define OPERAND_FLOATS (26u << 20)

static struct uk_gemm_f32 gemm_of(const uint32_t *p)
{
    return (struct uk_gemm_f32){.a = left,
                                .a_row = p[2],
                                .run = p[2],
                                .b = right,
                                .k = p[2],
                                .bias = left,
                                .c = out,
                                .c_row = p[1],
                                .lines = 1,
                                .m = p[0],
                                .n = p[1],
                                .min = 0.0f,
                                .max = INFINITY,
                                .scratch = stream};
}

/* Rows, columns, depth. */
static double run_gemm(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    struct uk_gemm_f32 g = gemm_of(p);
    uk->gemm_f32(&g);
    return 2.0 * p[0] * p[1] * p[2];
}

/* Rows, columns, depth; are A and C bfloat16; a residual; gelu. */
static double run_gemm_bf16(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    struct uk_gemm_f32 g = gemm_of(p);
    g.a_is_bf16 = g.c_is_bf16 = p[3] != 0;
    g.a = p[3] ? (const float *)(const void *)left_bf16 : left;
    g.residual = p[4] ? stream + STREAM_FLOATS / 2 : NULL;
    g.residual_row = g.c_row;
    g.activation = p[5] ? uk->gelu_short_f32 : NULL;
    uk->gemm_bf16(&g);
    return 2.0 * p[0] * p[1] * p[2];
}

/* Reads every weight once. */
static double run_gemv(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    static size_t at;
    size_t floats = (size_t)p[1] * p[2];
    at = at + floats <= STREAM_FLOATS ? at : 0;
    struct uk_gemm_f32 g = {.a = left,
                            .run = p[2],
                            .b = stream + at,
                            .k = p[2],
                            .c = out,
                            .lines = 1,
                            .m = p[0],
                            .n = p[1],
                            .min = -INFINITY,
                            .max = INFINITY,
                            .asks_ahead = uk->f32_asks_ahead};
    at += floats;
    uk->gemm_f32(&g);
    return (double)floats * sizeof(float);
}

/* Output extent, input and output channels, kernel, stride; on a padded image, where a kernel row
 * is a run. */
static double multiply_conv(const uint32_t *p, void (*multiply)(const struct uk_gemm_f32 *g))
{
    uint32_t extent = p[0], in = p[1], width = (extent - 1) * p[4] + p[3], depth = p[3] * p[3] * in;
    struct uk_segment segments[11];
    for (uint32_t i = 0; i < p[3]; i++) {
        segments[i] = (struct uk_segment){(ptrdiff_t)i * width * in, (size_t)i * p[3] * in};
    }
    struct uk_gemm_f32 g = {.a = left,
                            .a_line = (ptrdiff_t)p[4] * width * in,
                            .a_row = (ptrdiff_t)p[4] * in,
                            .segments = segments,
                            .segment_count = p[3],
                            .run = p[3] * in,
                            .b = right,
                            .k = depth,
                            .bias = left,
                            .c = out,
                            .c_line = (ptrdiff_t)extent * p[2],
                            .c_row = p[2],
                            .lines = extent,
                            .m = extent,
                            .n = p[2],
                            .min = 0.0f,
                            .max = INFINITY,
                            .scratch = stream};
    multiply(&g);
    return 2.0 * extent * extent * p[2] * depth;
}

static double run_conv(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    return multiply_conv(p, uk->gemm_f32);
}

static double run_conv_bf16(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    return multiply_conv(p, uk->gemm_bf16);
}

/* Extent, input and output channels, side of a tile, tiles at a time. Counts the multiply-adds that
 * run_conv does, so that the rates compare. */
static double run_winograd(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    uint32_t extent = p[0], in = p[1], outs = p[2], across = (extent + p[3] - 1) / p[3];
    struct uk_winograd_f32 w = {.side = p[3],
                                .x = left,
                                .x_line = (ptrdiff_t)extent * in,
                                .x_pixel = in,
                                .height = extent,
                                .width = extent,
                                .channels = in,
                                .pad_top = 1,
                                .pad_left = 1,
                                .u = right,
                                .u_element = (size_t)in * outs,
                                .bias = left,
                                .y = out,
                                .y_line = (ptrdiff_t)extent * outs,
                                .y_pixel = outs,
                                .out_height = extent,
                                .out_width = extent,
                                .n = outs,
                                .scratch = stream,
                                .min = 0.0f,
                                .max = INFINITY};
    for (uint64_t tiles = (uint64_t)across * across; w.begin < tiles; w.begin = w.end) {
        w.end = w.begin + p[4] < tiles ? w.begin + p[4] : tiles;
        uk->winograd_f32(&w);
    }
    return 2.0 * extent * extent * outs * 9 * in;
}

/* Input extent, channels, kernel, stride. */
static double run_dw(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    uint32_t extent = (p[0] + 2 * (p[2] / 2) - p[2]) / p[3] + 1;
    struct uk_dw_f32 d = {.x = left,
                          .x_line = (ptrdiff_t)p[0] * p[1],
                          .x_pixel = p[1],
                          .w = right,
                          .bias = right,
                          .y = out,
                          .y_line = (ptrdiff_t)extent * p[1],
                          .y_pixel = p[1],
                          .channels = p[1],
                          .height = p[0],
                          .width = p[0],
                          .out_width = extent,
                          .row_end = extent,
                          .kernel_h = p[2],
                          .kernel_w = p[2],
                          .stride_h = p[3],
                          .stride_w = p[3],
                          .dilation_h = 1,
                          .dilation_w = 1,
                          .pad_top = p[2] / 2,
                          .pad_left = p[2] / 2,
                          .min = 0.0f,
                          .max = 6.0f};
    uk->dw_f32(&d);
    return 2.0 * extent * extent * p[1] * p[2] * p[2];
}

/* Function, length; returns bytes moved. */
static double run_unary(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    uk->unary_f32[p[0]](out, left, p[1]);
    return 8.0 * p[1];
}

static double run_add(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    uk->binary_f32[UK_ADD](out, left, right, p[1]);
    return 12.0 * p[1];
}

static double run_softmax(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    for (uint32_t i = 0; i < p[0]; i++) {
        uk->softmax_f32(out + i * p[1], left + i * p[1], p[1]);
    }
    return 8.0 * p[0] * p[1];
}

static double run_layer_norm(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    for (uint32_t i = 0; i < p[0]; i++) {
        struct uk_norm_f32 l = {.y = out + i * p[1],
                                .x = left + i * p[1],
                                .scale = right,
                                .shift = right,
                                .n = p[1],
                                .epsilon = 1e-5f};
        uk->layer_norm_f32(&l);
    }
    return 8.0 * p[0] * p[1];
}

/* Rows, columns, depth, f32 results with row scales, 4 bits, group. */
static double run_gemm_u8(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    static float row_scales[1024];
    static int32_t row_zeros[1024];
    struct uk_gemm_u8 g = {.a = (const uint8_t *)left,
                           .a_row = p[2],
                           .run = p[2],
                           .b = (const uint8_t *)right,
                           .k = p[2],
                           .is_4bit = p[4] != 0,
                           .group = p[5],
                           .group_scales = left,
                           .columns = (const union uk_number *)(const void *)left,
                           .row_scales = p[3] ? row_scales : NULL,
                           .row_zeros = row_zeros,
                           .c_u8 = p[3] ? NULL : (uint8_t *)out,
                           .c_f32 = p[3] ? out : NULL,
                           .c_row = p[1],
                           .lines = 1,
                           .m = p[0],
                           .n = p[1],
                           .min = -128,
                           .max = 127,
                           .zero = 128,
                           .scratch = stream};
    uk->gemm_u8(&g);
    return 2.0 * p[0] * p[1] * p[2];
}

/* Columns, depth, 4 bits, group, rows, bytes of a scale: bytes of weights; with groups, also those
 * of the scales and columns, which are in the panels. */
static double run_gemv_u8(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    static size_t at;
    static float row_scales[8];
    static int32_t row_zeros[8];
    size_t bytes = (size_t)p[0] * p[1] / (p[2] ? 2 : 1);
    if (p[3]) {
        bytes = uk_panels_u8(uk, p[0]) * uk_panel_bytes_u8(uk->u8_nr, p[1], p[3], p[2] != 0, p[5]);
    }
    at = at + bytes / 4 <= STREAM_FLOATS ? at : 0;
    struct uk_gemm_u8 g = {.a = (const uint8_t *)left,
                           .a_row = p[1],
                           .run = p[1],
                           .b = (const uint8_t *)(stream + at),
                           .k = p[1],
                           .is_4bit = p[2] != 0,
                           .group = p[3],
                           .has_short_scales = p[5] == 2,
                           .columns = p[3] ? NULL : (const union uk_number *)(const void *)left,
                           .row_scales = row_scales,
                           .row_zeros = row_zeros,
                           .c_f32 = out,
                           .c_row = p[0],
                           .lines = 1,
                           .m = p[4],
                           .n = p[0],
                           .min = -INFINITY,
                           .max = INFINITY,
                           .scratch = out + (8u << 20)};
    at += bytes / 4;
    uk->gemm_u8(&g);
    return (double)bytes;
}

/* Arguments of run_conv. */
static double run_conv_u8(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    uint32_t extent = p[0], in = p[1], width = (extent - 1) * p[4] + p[3], depth = p[3] * p[3] * in;
    struct uk_segment segments[11];
    for (uint32_t i = 0; i < p[3]; i++) {
        segments[i] = (struct uk_segment){(ptrdiff_t)i * width * in, (size_t)i * p[3] * in};
    }
    struct uk_gemm_u8 g = {.a = (const uint8_t *)left,
                           .a_line = (ptrdiff_t)p[4] * width * in,
                           .a_row = (ptrdiff_t)p[4] * in,
                           .segments = segments,
                           .segment_count = p[3],
                           .run = p[3] * in,
                           .b = (const uint8_t *)right,
                           .k = depth,
                           .columns = (const union uk_number *)(const void *)left,
                           .c_u8 = (uint8_t *)out,
                           .c_line = (ptrdiff_t)extent * p[2],
                           .c_row = p[2],
                           .lines = extent,
                           .m = extent,
                           .n = p[2],
                           .min = -128,
                           .max = 127,
                           .zero = 128,
                           .scratch = stream};
    uk->gemm_u8(&g);
    return 2.0 * extent * extent * p[2] * depth;
}

/* Input extent, channels, kernel, stride. */
static double run_dw_u8(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    uint32_t extent = (p[0] - 1) / p[3] + 1;
    struct uk_dw_u8 d = {.x = (const uint8_t *)left,
                         .x_line = (ptrdiff_t)(p[0] + p[2] - 1) * uk->u8_block,
                         .x_block = (ptrdiff_t)(p[0] + p[2] - 1) * (p[0] + p[2] - 1) * uk->u8_block,
                         .w = (const uint8_t *)right,
                         .columns = (const union uk_number *)(const void *)right,
                         .y = (uint8_t *)out,
                         .y_line = (ptrdiff_t)extent * p[1],
                         .y_pixel = p[1],
                         .channels = p[1],
                         .rows = extent,
                         .width = extent,
                         .kernel_h = p[2],
                         .kernel_w = p[2],
                         .stride_h = p[3],
                         .stride_w = p[3],
                         .dilation_h = 1,
                         .dilation_w = 1,
                         .min = -128,
                         .max = 127,
                         .zero = 128};
    uk->dw_u8(&d);
    return 2.0 * extent * extent * p[1] * p[2] * p[2];
}

static double run_add_u8(const struct hal_cpu_uk *uk, const uint32_t *p)
{
    uk->add_u8(&(struct uk_add_u8){(uint8_t *)out, (const uint8_t *)left, (const uint8_t *)right,
                                   p[0], 0.3f, 0.7f, 1.0f, 0, 255});
    return 3.0 * p[0];
}

static const struct bench benches[] = {
    {"gemm 64x64x64", run_gemm, {64, 64, 64}, FLOATS},
    {"gemm 128x128x128", run_gemm, {128, 128, 128}, FLOATS},
    {"gemm 256x256x256", run_gemm, {256, 256, 256}, FLOATS},
    {"gemm 512x512x512", run_gemm, {512, 512, 512}, FLOATS},
    {"gemm 1024x1024x1024", run_gemm, {1024, 1024, 1024}, FLOATS},
    {"gemm 128x768x3072", run_gemm, {128, 768, 3072}, FLOATS},
    {"gemm 128x3072x768", run_gemm, {128, 3072, 768}, FLOATS},
    {"gemm 512x3072x1536", run_gemm, {512, 3072, 1536}, FLOATS},
    {"gemm 8x3072x768", run_gemm, {8, 3072, 768}, FLOATS},
    {"conv 3x3 64->64 @56", run_conv, {56, 64, 64, 3, 1}, FLOATS},
    {"conv 3x3 128->128 @28", run_conv, {28, 128, 128, 3, 1}, FLOATS},
    {"conv 3x3 256->256 @14", run_conv, {14, 256, 256, 3, 1}, FLOATS},
    {"conv 3x3 512->512 @7", run_conv, {7, 512, 512, 3, 1}, FLOATS},
    {"conv 3x3 64->64 @56 2x2", run_winograd, {56, 64, 64, 2, 98}, FLOATS},
    {"conv 3x3 64->64 @56 4x4", run_winograd, {56, 64, 64, 4, 49}, FLOATS},
    {"conv 3x3 128->128 @28 2x2", run_winograd, {28, 128, 128, 2, 49}, FLOATS},
    {"conv 3x3 128->128 @28 4x4", run_winograd, {28, 128, 128, 4, 25}, FLOATS},
    {"conv 3x3 256->256 @14 2x2", run_winograd, {14, 256, 256, 2, 25}, FLOATS},
    {"conv 3x3 256->256 @14 4x4", run_winograd, {14, 256, 256, 4, 16}, FLOATS},
    {"conv 3x3 512->512 @7 2x2", run_winograd, {7, 512, 512, 2, 16}, FLOATS},
    {"conv 3x3/2 64->128 @28", run_conv, {28, 64, 128, 3, 2}, FLOATS},
    {"conv 7x7/2 3->64 @112", run_conv, {112, 3, 64, 7, 2}, FLOATS},
    {"conv 3x3/2 3->16 @112", run_conv, {112, 3, 16, 3, 2}, FLOATS},
    {"conv 3x3 8->8 @64", run_conv, {64, 8, 8, 3, 1}, FLOATS},
    {"conv 1x1 64->8 @64", run_conv, {64, 64, 8, 1, 1}, FLOATS},
    {"conv 1x1 64->256 @56", run_conv, {56, 64, 256, 1, 1}, FLOATS},
    {"conv 1x1 96->576 @14", run_conv, {14, 96, 576, 1, 1}, FLOATS},
    {"conv 1x1 576->96 @14", run_conv, {14, 576, 96, 1, 1}, FLOATS},
    {"conv 1x1 1024->256 @14", run_conv, {14, 1024, 256, 1, 1}, FLOATS},
    {"depthwise 3x3 144 @56", run_dw, {56, 144, 3, 1}, FLOATS},
    {"depthwise 3x3 144 @14", run_dw, {14, 144, 3, 1}, FLOATS},
    {"depthwise 3x3 576 @14", run_dw, {14, 576, 3, 1}, FLOATS},
    {"depthwise 3x3/2 96 @112", run_dw, {112, 96, 3, 2}, FLOATS},
    {"depthwise 5x5 72 @28", run_dw, {28, 72, 5, 1}, FLOATS},
    {"gemm bf16 64x64x64", run_gemm_bf16, {64, 64, 64}, BFLOATS},
    {"gemm bf16 256x256x256", run_gemm_bf16, {256, 256, 256}, BFLOATS},
    {"gemm bf16 128x768x3072", run_gemm_bf16, {128, 768, 3072}, BFLOATS},
    {"gemm bf16 1024x1024x1024", run_gemm_bf16, {1024, 1024, 1024}, BFLOATS},
    {"gemm bf16 64x64x64 short", run_gemm_bf16, {64, 64, 64, 1}, BFLOATS},
    {"gemm bf16 128x768x3072 short", run_gemm_bf16, {128, 768, 3072, 1}, BFLOATS},
    {"gemm bf16 128x3072x768 short", run_gemm_bf16, {128, 3072, 768, 1}, BFLOATS},
    {"gemm bf16 128x3072x768 gelu", run_gemm_bf16, {128, 3072, 768, 1, 0, 1}, BFLOATS},
    {"gemm bf16 128x32x768 short", run_gemm_bf16, {128, 32, 768, 1}, BFLOATS},
    {"gemm bf16 784x64x64 short", run_gemm_bf16, {784, 64, 64, 1}, BFLOATS},
    {"gemm bf16 784x64x64 residual", run_gemm_bf16, {784, 64, 64, 1, 1}, BFLOATS},
    {"gemm bf16 784x256x64 short", run_gemm_bf16, {784, 256, 64, 1}, BFLOATS},
    {"conv bf16 3x3 64->64 @56", run_conv_bf16, {56, 64, 64, 3, 1}, BFLOATS},
    {"conv bf16 3x3 512->512 @7", run_conv_bf16, {7, 512, 512, 3, 1}, BFLOATS},
    {"conv bf16 1x1 96->576 @14", run_conv_bf16, {14, 96, 576, 1, 1}, BFLOATS},
    {"conv bf16 1x1 576->96 @14", run_conv_bf16, {14, 576, 96, 1, 1}, BFLOATS},
    {"gemm u8 64x64x64", run_gemm_u8, {64, 64, 64}, INTEGERS},
    {"gemm u8 256x256x256", run_gemm_u8, {256, 256, 256}, INTEGERS},
    {"gemm u8 128x768x3072", run_gemm_u8, {128, 768, 3072}, INTEGERS},
    {"gemm u8 1024x1024x1024", run_gemm_u8, {1024, 1024, 1024}, INTEGERS},
    {"gemm u8 12544x96x16", run_gemm_u8, {12544, 96, 16}, INTEGERS},
    {"gemm u8 3136x256x64", run_gemm_u8, {3136, 256, 64}, INTEGERS},
    {"gemm u8 128x768x3072 f32", run_gemm_u8, {128, 768, 3072, 1}, INTEGERS},
    {"gemm u8 4bit 128x768x3072", run_gemm_u8, {128, 768, 3072, 1, 1}, INTEGERS},
    {"gemm u8 4bit/32", run_gemm_u8, {128, 768, 3072, 1, 1, 32}, INTEGERS},
    {"conv u8 3x3 64->64 @56", run_conv_u8, {56, 64, 64, 3, 1}, INTEGERS},
    {"conv u8 3x3 256->256 @14", run_conv_u8, {14, 256, 256, 3, 1}, INTEGERS},
    {"conv u8 3x3 512->512 @7", run_conv_u8, {7, 512, 512, 3, 1}, INTEGERS},
    {"conv u8 1x1 96->576 @14", run_conv_u8, {14, 96, 576, 1, 1}, INTEGERS},
    {"conv u8 1x1 32->16 @112", run_conv_u8, {112, 32, 16, 1, 1}, INTEGERS},
    {"depthwise u8 3x3 64 @56", run_dw_u8, {56, 64, 3, 1}, INTEGERS},
    {"depthwise u8 3x3 576 @14", run_dw_u8, {14, 576, 3, 1}, INTEGERS},
    {"depthwise u8 3x3/2 64 @56", run_dw_u8, {56, 64, 3, 2}, INTEGERS},
    {"gemv u8 768x3072", run_gemv_u8, {3072, 768, 0, 0, 1}, MEMORY},
    {"gemv u8 4096x4096", run_gemv_u8, {4096, 4096, 0, 0, 1}, MEMORY},
    {"gemv 4bit 4096x4096", run_gemv_u8, {4096, 4096, 1, 0, 1}, MEMORY},
    {"gemv 4bit/32 4096x4096", run_gemv_u8, {4096, 4096, 1, 32, 1, 4}, MEMORY},
    {"gemv 4bit/32 short", run_gemv_u8, {4096, 4096, 1, 32, 1, 2}, MEMORY},
    {"gemv 4bit/32 short, 2 rows", run_gemv_u8, {4096, 4096, 1, 32, 2, 2}, MEMORY},
    {"gemv 4bit/32 short, 4 rows", run_gemv_u8, {4096, 4096, 1, 32, 4, 2}, MEMORY},
    {"gemv 4bit/32 short, 8 rows", run_gemv_u8, {4096, 4096, 1, 32, 8, 2}, MEMORY},
    {"add u8, in cache", run_add_u8, {16384}, MEMORY},
    {"gemv 4096x4096", run_gemv, {1, 4096, 4096}, MEMORY},
    {"gemv 768x3072", run_gemv, {1, 3072, 768}, MEMORY},
    {"relu, in cache", run_unary, {UK_RELU, 16384}, MEMORY},
    {"add, in cache", run_add, {0, 16384}, MEMORY},
    {"exp, in cache", run_unary, {UK_EXP, 16384}, MEMORY},
    {"gelu, in cache", run_unary, {UK_GELU, 16384}, MEMORY},
    {"tanh, in cache", run_unary, {UK_TANH, 16384}, MEMORY},
    {"silu, in cache", run_unary, {UK_SILU, 16384}, MEMORY},
    {"sigmoid, in cache", run_unary, {UK_SIGMOID, 16384}, MEMORY},
    {"gelu_tanh, in cache", run_unary, {UK_GELU_TANH, 16384}, MEMORY},
    {"softmax 128x128", run_softmax, {128, 128}, MEMORY},
    {"layer_norm 128x768", run_layer_norm, {128, 768}, MEMORY},
};

static double rate(double work, double ns)
{
    return ns > 0 ? work / ns : 0;
}

static void run(const struct hal_cpu_uk *uk, const struct bench *b)
{
    double best = 0, best_probe = 0;
    b->run(uk, b->p);
    for (int slice = 0; slice < SLICES; slice++) {
        double start = now_ns(), work = probes[b->probe].run(uk);
        best_probe = fmax(best_probe, rate(work, now_ns() - start));
        work = 0;
        start = now_ns();
        while (now_ns() - start < SLICE_NS) {
            work += b->run(uk, b->p);
        }
        best = fmax(best, rate(work, now_ns() - start));
    }
    printf("%-11s %-25s %7.1f %s  %5.1f %% of %.1f\n", uk->name, b->name, best,
           probes[b->probe].unit, 100 * best / best_probe, best_probe);
}

int main(int argc, char **argv)
{
    const char *level = argc > 1 ? argv[1] : "", *name = argc > 2 ? argv[2] : "";
    stream = new_floats(STREAM_FLOATS);
    left = new_floats(OPERAND_FLOATS);
    left_bf16 = (uint16_t *)(void *)new_floats(OPERAND_FLOATS);
    hal_cpu_uk()->f32_to_bf16(left_bf16, left, OPERAND_FLOATS);
    memcpy(left_bf16 + OPERAND_FLOATS, left_bf16, OPERAND_FLOATS * sizeof(*left_bf16));
    right = new_floats(OPERAND_FLOATS);
    out = new_floats(OPERAND_FLOATS);
    for (int isa = HAL_CPU_ISA_COUNT - 1; isa >= 0; isa--) {
        const struct hal_cpu_uk *uk = hal_cpu_isa_kernels((enum hal_cpu_isa)isa);
        if (!hal_cpu_isa_supported((enum hal_cpu_isa)isa) || !strstr(uk->name, level)) {
            continue;
        }
        for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
            bool is_here = benches[i].probe != BFLOATS || uk->gemm_bf16;
            if (is_here && strstr(benches[i].name, name)) {
                run(uk, &benches[i]);
            }
        }
    }
    free(stream);
    free(left);
    free(left_bf16);
    free(right);
    free(out);
    return 0;
}
