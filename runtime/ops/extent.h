/* SPDX-License-Identifier: MIT */
/* Constants for the kernels of extent.c. */
#ifndef PTED_RUNTIME_OPS_EXTENT_H
#define PTED_RUNTIME_OPS_EXTENT_H

#include <stdint.h>

#include "base/shape.h"
#ifndef HAL_SHADER
#include "hal/kernel.h"
#endif

struct rt_extent {
    int64_t numel, tile; /* elements in all, and of a tile */
    uint32_t rank;
    uint32_t width;               /* bytes of a chosen element */
    uint32_t mask_width;          /* bytes of an element that is tested */
    uint32_t is_float;            /* the sign bit is ignored: -0 is zero */
    uint32_t mask_is_dense;       /* the mask's elements are contiguous */
    int64_t dims[SHAPE_RANK_MAX]; /* dims of the walk */
    int64_t mask_steps[SHAPE_RANK_MAX], steps[SHAPE_RANK_MAX]; /* in elements, 0: repeated */
};

_Static_assert(sizeof(struct rt_extent) <= HAL_CONSTANTS_MAX, "constants are copied whole");

/* Variants of the SPIR-V form. */
enum rt_extent_variant { RT_NONZERO, RT_MASKED_SELECT };

#endif
