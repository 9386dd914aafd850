/* SPDX-License-Identifier: MIT */
/* Arguments of convolutions, for the operators and for the passes that make and rewrite them. */
#ifndef PTED_RUNTIME_OPS_CONV_H
#define PTED_RUNTIME_OPS_CONV_H

#ifndef HAL_SHADER
#include "runtime/ops/op.h"
#endif

/* Spatial dims: 1-D, 2-D or 3-D. */
#define RT_CONV_AXES_MAX 3

/* Arguments of "convolution", in the file's order. */
enum rt_conv_arg {
    RT_CONV_X,
    RT_CONV_W,
    RT_CONV_BIAS,
    RT_CONV_STRIDE,
    RT_CONV_PADDING,
    RT_CONV_DILATION,
    RT_CONV_TRANSPOSED,
    RT_CONV_OUTPUT_PADDING,
    RT_CONV_GROUPS,
    RT_CONV_ARGS
};

/* Arguments of "conv", "conv_dw" and "conv_group", whose weights are packed. Lists have 2 entries;
 * for rank 3 the first is unused. */
enum rt_packed_conv_arg {
    RT_PACKED_X,
    RT_PACKED_W,
    RT_PACKED_BIAS,     /* or none */
    RT_PACKED_RESIDUAL, /* or none */
    RT_PACKED_KERNEL,
    RT_PACKED_STRIDE,
    RT_PACKED_PADDING,
    RT_PACKED_DILATION,
    RT_PACKED_OUTPUT_PADDING,
    RT_PACKED_GROUPS,
    RT_PACKED_OUTS, /* output channels */
    RT_PACKED_TRANSPOSED,
    RT_PACKED_MIN,
    RT_PACKED_MAX,
    RT_PACKED_ACTIVATION, /* or none, as always but in "conv" */
    RT_PACKED_ARGS
};

/* Arguments of "convolution_backward". */
enum rt_conv_back_arg {
    RT_CONV_BACK_GRAD,
    RT_CONV_BACK_X,
    RT_CONV_BACK_W,
    RT_CONV_BACK_BIAS_SIZES,
    RT_CONV_BACK_STRIDE,
    RT_CONV_BACK_PADDING,
    RT_CONV_BACK_DILATION,
    RT_CONV_BACK_TRANSPOSED,
    RT_CONV_BACK_OUTPUT_PADDING,
    RT_CONV_BACK_GROUPS,
    RT_CONV_BACK_MASK,
    RT_CONV_BACK_ARGS
};

#endif
