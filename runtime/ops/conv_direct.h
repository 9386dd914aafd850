/* SPDX-License-Identifier: MIT */
/* Constants for the kernels of conv_direct.c. */
#ifndef PTED_RUNTIME_OPS_CONV_DIRECT_H
#define PTED_RUNTIME_OPS_CONV_DIRECT_H

#include "runtime/ops/conv.h"

struct rt_direct_axis {
    int64_t in, out, kernel;
    int64_t stride, pad, dilation;
};

struct rt_direct_constants {
    uint32_t class; /* enum rt_class */
    uint32_t is_transposed;
    int64_t ins, outs; /* channels of a group */
    int64_t groups;
    int64_t lines, tile; /* output lines, and lines of a tile; for a gradient, weights */
    int64_t images;
    int64_t in_plane; /* elements of an input channel */
    int64_t out_plane;
    int64_t taps;
    struct rt_direct_axis axes[RT_CONV_AXES_MAX]; /* the last is along a line */
};

/* Variants of the SPIR-V form: the operation, in one of two classes. */
enum rt_direct_variant { RT_DIRECT_LINES, RT_DIRECT_GRADIENT, RT_DIRECT_I64 };

#endif
