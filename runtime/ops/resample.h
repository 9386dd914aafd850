/* SPDX-License-Identifier: MIT */
/*
 * Resampling of images of bytes by two passes of integer arithmetic: bilinear, and with a triangle
 * filter as wide as the input pixels that an output pixel covers (antialias.c does the same for
 * floats).
 */
#ifndef PTED_RUNTIME_OPS_RESAMPLE_H
#define PTED_RUNTIME_OPS_RESAMPLE_H

#include "runtime/ops/pool.h"

/* One of the two spatial dims. */
struct rt_resample_dim {
    int64_t in, out;
    double scale;   /* input pixels for one output pixel */
    double support; /* half of the filter's width, in input pixels */
    int64_t taps;   /* at most */
};

/* Parameters for resampling an image of bytes. Without antialiasing |support| and |taps| are
 * unused. */
struct rt_resample {
    uint32_t antialiases, align_corners;
    struct rt_resample_dim h, w;
};

/* Constants for the kernel of bytes. */
struct rt_resample_constants {
    struct rt_resample how;
    int32_t h_places, w_places; /* fraction bits of the weights */
    int64_t channels, tile;     /* columns of a tile */
    struct rt_image x, y;
};

#ifndef HAL_SHADER
/* An output pixel's neighbours along one dim. */
struct rt_resample_window {
    int64_t begin, count;
};

/* Returns the triangle filter of output pixel |at|: its window, its normalised |weights| (room for
 * |taps| of them; NULL if not wanted) and the largest weight. */
struct rt_resample_window rt_antialias_triangle_f64(const struct rt_resample_dim *dim, int64_t at,
                                                    double *weights, double *out_largest);

/* Records the dispatch from |self| to |out|, u8 of rank 4 in any memory order, neither empty.
 * ST_UNSUPPORTED: the filters do not fit into a kernel's scratch. */
MUST_CHECK enum status rt_resample_emit_u8(struct rt_emit *emit, const struct rt_tensor *self,
                                           const struct rt_tensor *out,
                                           const struct rt_resample *resample, struct error *err);
#endif

#endif
