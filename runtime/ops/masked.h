/* SPDX-License-Identifier: MIT */
/* Constants for the kernel of masked.c. */
#ifndef PTED_RUNTIME_OPS_MASKED_H
#define PTED_RUNTIME_OPS_MASKED_H

#ifndef HAL_SHADER
#include "hal/kernel.h"
#endif
#include "runtime/kernels/loop.h"

struct rt_masked {
    struct rt_loop loop; /* output, tensor, mask */
    uint32_t width;
    int64_t source; /* elements */
};
_Static_assert(sizeof(struct rt_masked) <= HAL_CONSTANTS_MAX, "constants are copied whole");

#endif
