/* SPDX-License-Identifier: MIT */
/* A depthwise convolution and the product in front of it, for the operator and the pass that makes
 * it. */
#ifndef PTED_RUNTIME_OPS_EXPAND_DW_H
#define PTED_RUNTIME_OPS_EXPAND_DW_H

/*
 * Arguments of "expand_dw": first the arguments of "conv" for the 1x1 convolution, then of
 * "conv_dw". Each has bounds and then perhaps an activation, the name of a loop with one operand
 * (chain.h).
 */
enum rt_expand_arg {
    RT_EXPAND_X,
    RT_EXPAND_W, /* none: there is no product */
    RT_EXPAND_BIAS,
    RT_EXPAND_MIN,
    RT_EXPAND_MAX,
    RT_EXPAND_ACTIVATION,
    RT_EXPAND_DW_W,
    RT_EXPAND_DW_BIAS,
    RT_EXPAND_KERNEL,
    RT_EXPAND_STRIDE,
    RT_EXPAND_PADDING, /* at most half a kernel */
    RT_EXPAND_DW_MIN,
    RT_EXPAND_DW_MAX,
    RT_EXPAND_DW_ACTIVATION,
    RT_EXPAND_ARGS
};

#endif
