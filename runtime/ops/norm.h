/* SPDX-License-Identifier: MIT */
/* Shared by norm.c (the operators of normalisation) and norm_kernels.c (their kernels). Positions
 * count elements; all tensors of rt_norm_kernel are row-major. */
#ifndef PTED_RUNTIME_OPS_NORM_H
#define PTED_RUNTIME_OPS_NORM_H

#include "runtime/kernels/convert.h"
#include "runtime/kernels/loop.h"

/* Elements converted and centred at a time. */
#define RT_NORM_CHUNK 1024
#define RT_NORM_SCRATCH_BYTES ((size_t)RT_NORM_CHUNK * RT_CLASS_BYTES_MAX * 3)

/* Bindings of rt_norm_kernel. An absent weight or bias has a binding that is not read. */
enum rt_norm_binding {
    RT_NORM_OUTPUT,
    RT_NORM_MEAN,     /* written, one for each row; read when is_given */
    RT_NORM_VARIANCE, /* the same; written as 1 / sqrt(variance + epsilon), read as a variance */
    RT_NORM_INPUT,
    RT_NORM_WEIGHT,
    RT_NORM_BIAS,
    RT_NORM_BINDINGS,
};

struct rt_norm_constants {
    int64_t rows, row_stride;      /* layout of the elements that share a mean */
    int64_t runs, run_stride, run; /* for each row: |runs| runs of |run| elements */
    /* Run r of row w has weight w % weight_rows * weights_a_row + r % weights_a_row. */
    int64_t weight_rows, weights_a_row;
    int64_t tile; /* rows of a tile */
    uint32_t is_given, has_weight, has_bias;
    uint32_t weights_by_element; /* one weight for each element of a run instead */
    uint32_t is_plain; /* the micro-kernel takes a whole row, and no node reads its moments */
    enum rt_class class;
    enum dtype dtypes[RT_NORM_BINDINGS];
    double epsilon;
};

/* Operands: output, input, scale and shift (f32; along dim 1, repeated along the others). */
struct rt_affine_constants {
    struct rt_loop loop;
    enum dtype dtype; /* of output and input */
};

#ifndef HAL_SHADER
/* The second kernel of each pair is for doubles. */
extern const struct hal_kernel rt_norm_kernel, rt_norm_f64_kernel;
extern const struct hal_kernel rt_affine_kernel;
#endif

#endif
