/* SPDX-License-Identifier: MIT */
/*
 * Operators that compute along one dim and keep the shape (softmax, running sums): argument 1 is
 * the dim, and all tensors are row-major, so that they are [outer][length][inner].
 */
#ifndef PTED_RUNTIME_OPS_ALONG_H
#define PTED_RUNTIME_OPS_ALONG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* Constants of operators that reduce along a dim and keep it, [outer][length][inner]. */
struct rt_along {
    int64_t outer, length, inner;
    int64_t tile; /* rows or columns of a tile */
    enum dtype in, out;
    uint32_t is_log;
    uint32_t gives_zeros; /* where all of [length] is -inf, softmax gives zeros instead of NaN */
};

#define RT_ALONG_COLUMNS 128 /* of a block, at most */
#define RT_ALONG_SCRATCH_FLOATS (4 * RT_ALONG_COLUMNS)
#define RT_ALONG_ROW_MAX ((int64_t)1 << 20)

#ifndef HAL_SHADER
#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"

/* Checks that the dim is in range; gives output 0 the input's dims and one of the types in
 * |out_dtypes|. */
MUST_CHECK enum status rt_along_shape(struct rt_shape_call *call, uint32_t out_dtypes);

/* Finds argument 0 and output 0 of the node; the others are not set. */
struct rt_along rt_along_of(struct rt_emit *emit);

/*
 * Dispatches |kernel| over |count| rows or columns, and sets |along|'s tile. Binding 0 is the
 * output, 1 the input. Scratch has room for blocks of columns, and for a row of halves as floats
 * unless that is longer than RT_ALONG_ROW_MAX.
 */
MUST_CHECK enum status rt_along_dispatch(struct rt_emit *emit, const struct hal_kernel *kernel,
                                         struct rt_along *along, int64_t count, struct error *err);
#endif

#endif
