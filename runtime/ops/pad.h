/* SPDX-License-Identifier: MIT */
/* Constants for the kernels of pad.c. */
#ifndef PTED_RUNTIME_OPS_PAD_H
#define PTED_RUNTIME_OPS_PAD_H

#include "base/shape.h"
#ifndef HAL_SHADER
#include "runtime/kernels/element.h"
#endif

enum rt_outside { RT_OUTSIDE_VALUE, RT_OUTSIDE_REFLECT, RT_OUTSIDE_NEAREST, RT_OUTSIDE_WRAP };

struct rt_pad_dim {
    int64_t out, in;  /* sizes */
    int64_t before;   /* position of the input's first element */
    int64_t dst, src; /* strides in bytes */
};

struct rt_pad_constants {
    enum rt_outside outside;
    uint32_t rank, width;
    int64_t row_tile, tile; /* elements of a row, rows of a tile */
    int64_t rows;
#ifdef HAL_SHADER
    uint64_t value;
#else
    union rt_element value;
#endif
    struct rt_pad_dim dims[SHAPE_RANK_MAX]; /* outermost first in the output's memory; a row last */
};

struct rt_tril {
    int64_t height, width, diagonal;
    int64_t rows, tile; /* rows of all matrices, and of a tile */
    uint32_t bytes;     /* bytes of an element */
};

#endif
