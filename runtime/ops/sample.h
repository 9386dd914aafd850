/* SPDX-License-Identifier: MIT */
/* Constants for the kernel of sample.c. */
#ifndef PTED_RUNTIME_OPS_SAMPLE_H
#define PTED_RUNTIME_OPS_SAMPLE_H

#include <stdint.h>

#include "base/dtype.h"

/* Modes, numbered as in PyTorch. */
enum rt_sample_mode { RT_SAMPLE_BILINEAR, RT_SAMPLE_NEAREST, RT_SAMPLE_BICUBIC, RT_SAMPLE_MODES };
enum rt_sample_padding {
    RT_SAMPLE_ZEROS,
    RT_SAMPLE_BORDER,
    RT_SAMPLE_REFLECTION,
    RT_SAMPLE_PADDINGS
};

#define RT_SAMPLE_TAPS_MAX 4 /* neighbours on one axis */

struct rt_sample_axis {
    int64_t size;   /* size of the image in pixels */
    int64_t stride; /* strides of the image's pixels, in elements */
};

struct rt_sample_constants {
    enum dtype dtype;
    enum rt_sample_mode mode;
    enum rt_sample_padding padding;
    uint32_t align_corners;
    int64_t channels, pixels, tile; /* pixels of an output image, and of a tile */
    int64_t out_width;
    struct rt_sample_axis x, y;
    int64_t image, channel; /* strides of the picture, in elements */
    int64_t grid[4];        /* strides of the grid, in elements */
};

#endif
