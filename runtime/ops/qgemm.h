/* SPDX-License-Identifier: MIT */
/*
 * The dispatch behind matrix products and convolutions of 8-bit integers: images of u8 pixels times
 * packed s8 weights, as runtime/ops/gemm.h has it for floats. A matrix product is an image one
 * pixel high.
 *
 * Padding is a number here, the input's zero point, and sums are corrected by it for all weights at
 * once. So no tap is left out: a tile whose pixels reach into the padding, or whose runs do not
 * come out in whole words, multiplies a copy of its part of the input with everything in place.
 */
#ifndef PTED_RUNTIME_OPS_QGEMM_H
#define PTED_RUNTIME_OPS_QGEMM_H

#ifdef HAL_SHADER
#include "hal/cpu/uk_u8.h"
#else
#include "hal/cpu/uk.h"
#include "runtime/ops/op.h"
#endif

struct rt_qaxis {
    int64_t in, out, kernel, stride, padding, dilation;
};

struct rt_qgemm {
    struct rt_qaxis y, x;
    int64_t images, groups;
    int64_t channels, outs; /* of a pixel, all groups */
    int64_t k;              /* rows of a packed panel */
    int64_t panel_bytes;    /* of a packed panel */
    uint32_t merges;        /* are the taps of a line one run? As the weights were packed */
    uint32_t is_4bit, is_f32;
    uint32_t group; /* of weights with a scale: see struct uk_gemm_u8 */
    int32_t x_zero, zero;
    float min, max;
    /* Chosen by rt_qgemm_emit(). */
    uint32_t is_direct; /* reads the input where it is */
    uint32_t width;     /* columns of a panel */
    uint32_t word;      /* neighbours in k that lie together in it */
    int64_t band_y, band_x, bands_y, bands_x, panels;
};

enum rt_qgemm_binding {
    RT_QGEMM_OUT,
    RT_QGEMM_IN,
    RT_QGEMM_WEIGHTS,
    RT_QGEMM_COLUMNS,
    RT_QGEMM_GROUPS,
    RT_QGEMM_ROW_SCALES,
    RT_QGEMM_ROW_ZEROS,
    RT_QGEMM_BINDINGS
};

/* Variants of the SPIR-V form: with a scale for all of a column, or for groups of it. */
enum rt_qgemm_variant { RT_QGEMM_PLAIN, RT_QGEMM_GROUPED };

/* A depthwise convolution; |width| of |g| is that of a block of channels. */
struct rt_qdepthwise {
    struct rt_qgemm g;
    int64_t band_y, band_x, bands_x;
};

#ifndef HAL_SHADER

/* Lengths 0: none. */
struct rt_qgemm_tensors {
    struct hal_binding out, in, weights, columns, group_scales, row_scales, row_zeros;
};

MUST_CHECK enum status rt_qgemm_emit(struct rt_emit *emit, struct rt_qgemm *gemm,
                                     const struct rt_qgemm_tensors *tensors, struct error *err);

/* Are the taps of a line packed as one run? */
static inline bool rt_qgemm_merges(int64_t dilation)
{
    return dilation == 1;
}

/* The next whole run of |n|. */
static inline int64_t rt_qgemm_run(int64_t n, bool is_4bit)
{
    int64_t unit = is_4bit ? 2 * UK_RUN_U8 : UK_RUN_U8;
    return (n + unit - 1) / unit * unit;
}

/*
 * Bytes of the smallest part of an input that a tile may have to copy; beyond RT_QGEMM_REACH_MAX a
 * convolution is none for this.
 */
#define RT_QGEMM_REACH_MAX (1 << 20)

/* A copy of lines of one image for a tile, the padding around it filled in. */
struct rt_qcopy {
    const uint8_t *image;
    int64_t height, width, line, pixel; /* of the image; strides in bytes */
    int64_t bytes;                      /* of a pixel that are taken */
    int64_t y, x, lines, columns;       /* the part, which may begin before the image */
    int64_t to_pixel;                   /* stride of the copy; its lines follow each other */
    uint8_t zero;
};

void rt_qcopy_run(const struct rt_qcopy *copy, uint8_t *to);

/* How many input positions |count| output positions read. */
static inline int64_t rt_qaxis_reach(const struct rt_qaxis *a, int64_t count)
{
    return (count - 1) * a->stride + (a->kernel - 1) * a->dilation + 1;
}

/* Products of bytes. */
extern const struct hal_kernel rt_qgemm_kernel;
#endif

#endif
