/* SPDX-License-Identifier: MIT */
/* Constants for the kernel of pixels.c. */
#ifndef PTED_RUNTIME_OPS_PIXELS_H
#define PTED_RUNTIME_OPS_PIXELS_H

#ifndef HAL_SHADER
#include "hal/kernel.h"
#endif
#include "runtime/kernels/loop.h"

struct rt_pixels_constants {
    struct rt_loop loop; /* output, bytes, scale, shift */
    uint32_t channels;
    uint32_t is_reversed; /* the loop has that in the strides of the bytes */
};
_Static_assert(sizeof(struct rt_pixels_constants) <= HAL_CONSTANTS_MAX,
               "constants are copied whole");

#endif
