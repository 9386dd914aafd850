/* SPDX-License-Identifier: MIT */
/* Constants for the kernels of upsample.c. */
#ifndef PTED_RUNTIME_OPS_UPSAMPLE_H
#define PTED_RUNTIME_OPS_UPSAMPLE_H

#include "runtime/ops/pool.h"

struct rt_upsample_dim {
    int64_t in, out;
    float scale; /* input pixels for one output pixel */
};

struct rt_upsample_constants {
    enum dtype dtype;
    uint32_t align_corners;
    int64_t images, channels;
    int64_t tile; /* output rows of a tile */
    struct rt_upsample_dim h, w;
    struct rt_image x, y;
};

/* Variants of the SPIR-V form. */
enum rt_upsample_variant { RT_UPSAMPLE_NEAREST, RT_UPSAMPLE_BILINEAR };

#endif
