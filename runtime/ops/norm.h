/* SPDX-License-Identifier: MIT */
/* Between the two halves of the normalisation family: norm.c the operators, norm_kernels.c the
 * kernels. Positions count elements; all tensors of rt_norm_kernel are row-major. */
#ifndef PTED_RUNTIME_OPS_NORM_H
#define PTED_RUNTIME_OPS_NORM_H

#include "runtime/ops/convert.h"
#include "runtime/ops/iter.h"

/* Elements that are converted and centred at a time. */
#define RT_NORM_CHUNK 1024
#define RT_NORM_SCRATCH_BYTES ((size_t)RT_NORM_CHUNK * RT_CLASS_BYTES_MAX * 3)

/* Bindings of rt_norm_kernel. Absent weights have a binding that is not read. */
enum rt_norm_binding {
    RT_NORM_OUTPUT,
    RT_NORM_MEAN,     /* written, one a row; read when is_given */
    RT_NORM_VARIANCE, /* likewise; written as 1 / sqrt(variance + epsilon), read as a variance */
    RT_NORM_INPUT,
    RT_NORM_WEIGHT,
    RT_NORM_BIAS,
    RT_NORM_BINDINGS,
};

struct rt_norm_constants {
    int64_t rows, row_stride;      /* what shares a mean */
    int64_t runs, run_stride, run; /* each row: |runs| runs of |run| elements */
    /* Run r of row w has weight w % weight_rows * weights_a_row + r % weights_a_row. */
    int64_t weight_rows, weights_a_row;
    int64_t tile; /* rows */
    uint32_t is_given, has_weight, has_bias;
    uint32_t weights_by_element; /* one for each element of a run instead */
    uint32_t is_plain; /* a row is what the micro-kernel takes, and nobody reads its moments */
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
/* The second ones are for doubles. */
extern const struct hal_kernel rt_norm_kernel, rt_norm_f64_kernel;
extern const struct hal_kernel rt_affine_kernel;
#endif

#endif
