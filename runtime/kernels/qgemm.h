/* SPDX-License-Identifier: MIT */
/*
 * The dispatch for matrix products and convolutions of 8-bit integers: images of u8 pixels times
 * packed s8 weights, as runtime/kernels/gemm.h for floats. A matrix product is an image one pixel
 * high.
 *
 * Padding is a number here, the input's zero point; one correction accounts for the zero point in
 * the sums of all weights. No tap is left out, therefore. If a tile's pixels reach into the
 * padding, or its runs are not whole words, the tile multiplies a copy of its part of the input
 * that includes the padding.
 */
#ifndef PTED_RUNTIME_KERNELS_QGEMM_H
#define PTED_RUNTIME_KERNELS_QGEMM_H

#ifdef HAL_SHADER
#include "hal/cpu/uk_u8.h"
#else
#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#endif

struct rt_qaxis {
    int64_t in, out, kernel, stride, padding, dilation;
};

struct rt_qgemm {
    struct rt_qaxis y, x;
    int64_t images, groups;
    int64_t channels, outs; /* channels of a pixel, all groups */
    int64_t k;              /* rows of a packed panel */
    int64_t panel_bytes;    /* bytes of a packed panel */
    uint32_t merges; /* do the taps of a line form one run? The weights are packed accordingly */
    uint32_t is_4bit, is_f32;
    uint32_t group; /* number of weights that share a scale: see struct uk_gemm_u8 */
    int32_t x_zero, zero;
    float min, max;
    /* rt_qgemm_emit() chooses these. */
    uint32_t is_direct; /* the tile reads the input in place */
    uint32_t width;     /* columns of a panel */
    uint32_t word;      /* neighbours in k that are contiguous in a panel */
    /* Given: the panels have scales of groups in them, which are bfloat16; never on a GPU. Here,
     * because shaders know where the others are. */
    uint32_t has_short_scales;
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

/* Variants of the SPIR-V form: one scale for a column, or one for each of its groups. */
enum rt_qgemm_variant { RT_QGEMM_PLAIN, RT_QGEMM_GROUPED };

/* A depthwise convolution; |width| in |g| is the width of a block of channels. */
struct rt_qdepthwise {
    struct rt_qgemm g;
    int64_t band_y, band_x, bands_x;
};

#ifndef HAL_SHADER

/* With length 0 a binding is absent. On the CPU the panels of weights with groups have the columns
 * and the scales of groups in them: see struct uk_gemm_u8. */
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

/* |n| rounded up to whole runs. */
static inline int64_t rt_qgemm_run(int64_t n, bool is_4bit)
{
    int64_t unit = is_4bit ? 2 * UK_RUN_U8 : UK_RUN_U8;
    return (n + unit - 1) / unit * unit;
}

/* Bytes of the smallest part of an input that a tile may have to copy. A convolution with more than
 * RT_QGEMM_REACH_MAX cannot use this dispatch. */
#define RT_QGEMM_REACH_MAX (1 << 20)

/* A tile's copy of lines of one image, including the padding around it. */
struct rt_qcopy {
    const uint8_t *image;
    int64_t height, width, line, pixel; /* size of the image; its strides in bytes */
    int64_t bytes;                      /* bytes that are copied from each pixel */
    int64_t y, x, lines, columns;       /* the part, which may begin in front of the image */
    int64_t to_pixel;                   /* stride of the copy, whose lines are contiguous */
    uint8_t zero;
};

/* Makes an image of each block of |to_pixel| channels, |plane| bytes apart. */
void rt_qgemm_copy_planes(const struct rt_qcopy *copy, uint8_t *to, int64_t plane);

/* Returns the number of input positions that |count| output positions read. */
static inline int64_t rt_qaxis_reach(const struct rt_qaxis *a, int64_t count)
{
    return (count - 1) * a->stride + (a->kernel - 1) * a->dilation + 1;
}

/* Products of bytes. */
extern const struct hal_kernel rt_qgemm_kernel;
#endif

#endif
