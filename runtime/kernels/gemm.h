/* SPDX-License-Identifier: MIT */
/*
 * The dispatch for f32 matrix products and convolutions: images of pixels times packed weights. A
 * matrix product is an image one pixel high. A convolution gathers each output pixel from several
 * input pixels, its taps, without copying the input.
 *
 * Each axis of the image is described by itself: output position i reads input positions i * step +
 * first + t * spread for its taps t; positions outside [0, in) are padding. A transposed
 * convolution is one such dispatch for every phase of its stride.
 */
#ifndef PTED_RUNTIME_KERNELS_GEMM_H
#define PTED_RUNTIME_KERNELS_GEMM_H

#include "runtime/emit/block.h"
#ifndef HAL_SHADER
#include "runtime/emit/emit.h"
#endif

struct rt_axis {
    int64_t out, in; /* positions */
    int64_t step;    /* input positions from one output position to the next */
    int64_t taps;
    int64_t first, spread;     /* tap t of output 0 reads input position first + t * spread */
    int64_t k_first, k_spread; /* number of that tap in the packed weights */
};

/* All elements are floats; the pixels of an image row are contiguous. */
struct rt_gemm {
    struct rt_axis y, x;
    int64_t images, groups;
    int64_t channels;            /* channels of an input pixel, all groups */
    int64_t outs;                /* channels of an output pixel, all groups */
    int64_t kernel_w;            /* taps in a row of the packed weights */
    int64_t k;                   /* rows of a packed panel: all taps * channels of a group */
    int64_t image_in, image_out; /* floats from one image to the next */
    int64_t line_in;             /* floats from one input line to the next */
    int64_t line_out, pixel_out; /* the same for the output, whose pixels need not be contiguous */
    int64_t offset_out;          /* offset of the first output pixel */
    int64_t image_b, group_b;    /* floats of packed weights from one image / group to the next */
    float min, max;
    int64_t is_rounded; /* results are rounded to halves but stored as floats */
    /* rt_gemm_emit() chooses these: the packing and the tiles. */
    int64_t width;                               /* columns of a panel */
    int64_t band_images, band_y, band_x, panels; /* of a tile */
    int64_t bands_y, bands_x; /* tiles in each direction; panels are the grid's z */
#ifndef HAL_SHADER
    uint32_t activation; /* behind the clamp, only on the CPU: an enum uk_unary + 1; 0: none */
    /* rt_gemm_emit() chooses: output lines whose input is copied with its padding at a time; 0:
     * none is. */
    uint32_t padded_lines;
#endif
};

/*
 * Packs |matrices| matrices of |n| columns each. B[k][j] of one matrix is at j * column + outer *
 * outer_stride + inner * inner_stride of its source, where k = outer * inner_count + inner (see
 * struct uk_pack_f32).
 */
struct rt_pack {
    int64_t column, outer_stride, inner_stride;
    int64_t n, outer_count, inner_count;
    int64_t source, packed; /* floats from one matrix to the next */
    /* rt_gemm_emit_pack() chooses these. */
    uint32_t width, panels; /* columns of a panel, panels of a tile */
};

#ifndef HAL_SHADER
struct rt_gemm_tensors {
    struct hal_binding out, in, weights;
    struct hal_binding bias, residual; /* with length 0 there is none */
    bool are_halves;                   /* storage of each multiplied number: see struct rt_value */
    bool is_bf16; /* the weights are packed as bfloat16, and |in| is rounded to it */
    bool in_is_bf16, residual_is_bf16, out_is_bf16; /* only if the weights are */
};

/* Records the dispatch. */
MUST_CHECK enum status rt_gemm_emit(struct rt_emit *emit, struct rt_gemm *gemm,
                                    const struct rt_gemm_tensors *tensors, struct error *err);

/* Packs argument 0 into output 0: as bfloat16 if that is its type, else as floats. */
MUST_CHECK enum status rt_gemm_emit_pack(struct rt_emit *emit, struct rt_pack *pack,
                                         int64_t matrices, struct error *err);

/* Fills in the dims of a packed value: [matrices, panels, k, width]. The CPU level gives the width,
 * because weights are packed on the machine that uses them. */
void rt_gemm_packed_dims(struct rt_dims *dims, struct rt_dim matrices, struct rt_dim k,
                         struct rt_dim n, struct rt_dim out[4]);

/* Products, products of halves, and the packing of their right-hand sides. */
extern const struct hal_kernel rt_gemm_kernel, rt_gemm_halves_kernel, rt_pack_kernel;
#endif

#endif
