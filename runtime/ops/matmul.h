/* SPDX-License-Identifier: MIT */
/* Constants for the kernel of "matmul" in matmul.c. */
#ifndef PTED_RUNTIME_OPS_MATMUL_H
#define PTED_RUNTIME_OPS_MATMUL_H

#include "base/dtype.h"
#include "runtime/kernels/convert.h"

#define RT_MATMUL_ROWS 8 /* of a tile, at most */

struct rt_matmul_constants {
    int64_t m, k, n; /* of one product */
    int64_t tile;    /* rows of a tile */
    int64_t matrix;  /* elements of b from one product to the next */
    enum dtype dtype;
    enum rt_class class; /* F64 or I64 */
};

#endif
