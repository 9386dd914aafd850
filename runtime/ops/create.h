/* SPDX-License-Identifier: MIT */
/* What operators that make tensors out of nothing share, and what the kernel of ranges is told. */
#ifndef PTED_RUNTIME_OPS_CREATE_H
#define PTED_RUNTIME_OPS_CREATE_H

#include "runtime/ops/convert.h"

/* Tiles have as many elements each. */
struct rt_range {
    struct rt_number start, step;
    int64_t length;
    enum dtype dtype;
    uint32_t is_start_read; /* from binding 1, an i64 */
};

#ifndef HAL_SHADER
#include "runtime/ops/op.h"

/* Output 0's dims are argument 0, a list of ints. */
MUST_CHECK enum status rt_create_size_shape(struct rt_shape_call *call);
#endif

#endif
