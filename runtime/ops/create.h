/* SPDX-License-Identifier: MIT */
/* Shared by the operators that make tensors from nothing, and the constants for the kernel of
 * ranges. */
#ifndef PTED_RUNTIME_OPS_CREATE_H
#define PTED_RUNTIME_OPS_CREATE_H

#include "runtime/kernels/convert.h"

/* Each tile has as many elements. */
struct rt_range {
    struct rt_number start, step;
    int64_t length;
    enum dtype dtype;
    uint32_t is_start_read; /* read from binding 1, an i64 */
};

#ifndef HAL_SHADER
#include "runtime/ops/op.h"

/* Argument 0, a list of ints, gives output 0's dims. */
MUST_CHECK enum status rt_create_size_shape(struct rt_shape_call *call);
#endif

#endif
