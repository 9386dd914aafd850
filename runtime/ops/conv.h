/* SPDX-License-Identifier: MIT */
/* Arguments of the file's convolutions, for the operators and for the pass that lowers them. */
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
