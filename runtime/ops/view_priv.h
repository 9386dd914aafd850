/* SPDX-License-Identifier: MIT */
/* Shared by the shape and emit functions of operators that move elements. */
#ifndef PTED_RUNTIME_OPS_VIEW_PRIV_H
#define PTED_RUNTIME_OPS_VIEW_PRIV_H

#include "runtime/ops/op.h"

/* Output 0, if it is a tensor, must have the element type of argument 0. */
MUST_CHECK enum status rt_view_same_dtype(struct rt_shape_call *call);

/* |rank| must be a rank that a tensor can have. */
MUST_CHECK enum status rt_view_rank(struct rt_shape_call *call, uint32_t rank);

/* Argument |index| lists constant dim numbers of argument 0 without repetition; also returns their
 * bit set. */
MUST_CHECK enum status rt_view_dims(struct rt_shape_call *call, uint32_t index,
                                    uint8_t dims[SHAPE_RANK_MAX], uint32_t *out_mask);

/* Argument |index| as a dim number of argument 0. */
MUST_CHECK enum status rt_view_need_dim(struct rt_shape_call *call, uint32_t index,
                                        uint8_t *out_dim);

/* |dim| is |size|, or it is 1 and broadcast. An unknown dim that is at most 1 is broadcast. */
MUST_CHECK enum status rt_view_fits(struct rt_shape_call *call, struct rt_dim dim,
                                    struct rt_dim size, const char *what);

/* Wraps: a negative |index| counts from the end. */
struct rt_dim rt_view_wrap(struct rt_dims *dims, struct rt_dim index, struct rt_dim size);

#endif
