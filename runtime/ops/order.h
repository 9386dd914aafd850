/* SPDX-License-Identifier: MIT */
/* Constants for the kernel of order.c. */
#ifndef PTED_RUNTIME_OPS_ORDER_H
#define PTED_RUNTIME_OPS_ORDER_H

#include "base/dtype.h"
#include "base/shape.h"
#ifndef HAL_SHADER
#include "hal/kernel.h"
#endif

#define RT_TOPK_SHARED 1024 /* entries that the SPIR-V form has room for */

struct rt_topk_constants {
    enum dtype dtype;
    uint32_t is_smallest, is_sorted;
    uint32_t
        is_few; /* few of many: a heap of k entries; otherwise all n are sorted as far as needed */
    uint32_t is_stable; /* sorts all n; equal entries keep their order */
    uint32_t rank;      /* the dims other than the searched one */
    int64_t n, k;
    int64_t rows, tile;                      /* rows of a tile */
    int64_t in_step, value_step, index_step; /* bytes, along the searched dim */
    int64_t dims[SHAPE_RANK_MAX], in[SHAPE_RANK_MAX], out[SHAPE_RANK_MAX]; /* elements */
};

_Static_assert(sizeof(struct rt_topk_constants) <= HAL_CONSTANTS_MAX, "constants of topk");

#endif
