/* SPDX-License-Identifier: MIT */
/* A concatenation and the batch norm behind it, for the operator and the pass that makes it. */
#ifndef PTED_RUNTIME_OPS_CAT_AFFINE_H
#define PTED_RUNTIME_OPS_CAT_AFFINE_H

/* Arguments of "cat_affine": first the arguments of "cat" along dim 1, then of "conv_dw" with one
 * tap. */
enum rt_cat_affine_arg {
    RT_CAT_AFFINE_LIST,
    RT_CAT_AFFINE_DIM,
    RT_CAT_AFFINE_SCALE, /* a number for each channel */
    RT_CAT_AFFINE_SHIFT, /* likewise, or none */
    RT_CAT_AFFINE_MIN,
    RT_CAT_AFFINE_MAX,
    RT_CAT_AFFINE_ARGS
};

#endif
