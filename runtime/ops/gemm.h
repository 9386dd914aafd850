/* SPDX-License-Identifier: MIT */
/*
 * The dispatch behind matrix products and convolutions in f32: images of pixels times packed
 * weights. A matrix product is an image one pixel high; a convolution gathers each output pixel
 * from several input pixels, its taps, without a copy of the input.
 *
 * Each axis of the image is described by itself: output position i reads input positions
 * i * step + first + t * spread for its taps t, those outside of [0, in) being padding. A
 * transposed convolution is one such dispatch for every phase of its stride.
 */
#ifndef PTED_RUNTIME_OPS_GEMM_H
#define PTED_RUNTIME_OPS_GEMM_H

#ifndef HAL_SHADER
#include "runtime/ops/op.h"
#endif

struct rt_axis {
    int64_t out, in; /* positions */
    int64_t step;    /* input positions from one output position to the next */
    int64_t taps;
    int64_t first, spread;     /* input position of tap t for output 0: first + t * spread */
    int64_t k_first, k_spread; /* which tap of the packed weights that is */
};

/* Floats everywhere; pixels of an image row follow each other. */
struct rt_gemm {
    struct rt_axis y, x;
    int64_t images, groups;
    int64_t channels;            /* of an input pixel, all groups */
    int64_t outs;                /* of an output pixel, all groups */
    int64_t kernel_w;            /* taps of a row of the packed weights */
    int64_t k;                   /* rows of a packed panel: all taps * channels of a group */
    int64_t image_in, image_out; /* floats from one image to the next */
    int64_t line_in;             /* floats from one input line to the next */
    int64_t line_out, pixel_out; /* the same for the output, whose pixels may lie apart */
    int64_t offset_out;          /* of the first output pixel */
    int64_t image_b, group_b;    /* floats of packed weights from one image / group to the next */
    float min, max;
    int64_t is_rounded; /* results are rounded to halves; they stay floats */
    /* Chosen by rt_gemm_emit(): the packing, and how the work is cut. */
    int64_t width;                               /* columns of a panel */
    int64_t band_images, band_y, band_x, panels; /* of a tile */
    int64_t bands_y, bands_x; /* tiles in each direction; panels are the grid's z */
};

/*
 * Packing of |matrices| matrices of |n| columns each; B[k][j] of one is at
 * j * column + outer * outer_stride + inner * inner_stride of its source, k = outer * inner_count +
 * inner (see struct uk_pack_f32).
 */
struct rt_pack {
    int64_t column, outer_stride, inner_stride;
    int64_t n, outer_count, inner_count;
    int64_t source, packed; /* floats from one matrix to the next */
    /* Chosen by rt_pack_emit(). */
    uint32_t width, panels; /* columns of a panel, panels of a tile */
};

/*
 * What GPUs multiply at a time where tiles are no smaller: their workgroups then have all of it,
 * with less than the 16 KiB of shared memory that every device has.
 */
#define RT_GEMM_BIG_ROWS 64
#define RT_GEMM_BIG_COLUMNS 128
#define RT_GEMM_BIG_LANES 128 /* 8 x 8 outputs each */

#ifndef HAL_SHADER
struct rt_gemm_tensors {
    struct hal_binding out, in, weights;
    struct hal_binding bias, residual; /* length 0: none */
    bool are_halves;                   /* what is multiplied, each number: see struct rt_value */
};

/* Records the dispatch. */
MUST_CHECK enum status rt_gemm_emit(struct rt_emit *emit, struct rt_gemm *gemm,
                                    const struct rt_gemm_tensors *tensors, struct error *err);

MUST_CHECK enum status rt_pack_emit(struct rt_emit *emit, struct rt_pack *pack, int64_t matrices,
                                    struct error *err);

/*
 * The dims of a packed value: [matrices, panels, k, width]. The width is the CPU level's; weights
 * are packed where they are used.
 */
void rt_packed_dims(struct rt_dims *dims, struct rt_dim matrices, struct rt_dim k, struct rt_dim n,
                    struct rt_dim out[4]);

/* Products, those of halves, and the packing of their right sides. */
extern const struct hal_kernel rt_gemm_kernel, rt_gemm_halves_kernel, rt_pack_kernel;
#endif

#endif
