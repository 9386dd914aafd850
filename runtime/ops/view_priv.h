/* SPDX-License-Identifier: MIT */
/* What the families of operators that move elements share in their shape and emit functions. */
#ifndef PTED_RUNTIME_OPS_VIEW_PRIV_H
#define PTED_RUNTIME_OPS_VIEW_PRIV_H

#include "runtime/ops/op.h"

/* Output 0, if it is a tensor, has the element type of argument 0. */
MUST_CHECK enum status rt_view_same_dtype(struct rt_shape_call *call);

/* |rank| is one that a tensor can have. */
MUST_CHECK enum status rt_view_rank(struct rt_shape_call *call, uint32_t rank);

/* Argument |index|, constant dim numbers of argument 0 without repetition, and their bit set. */
MUST_CHECK enum status rt_view_dims(struct rt_shape_call *call, uint32_t index,
                                    uint8_t dims[SHAPE_RANK_MAX], uint32_t *out_mask);

/* Argument |index| as a dim number of argument 0. */
MUST_CHECK enum status rt_view_need_dim(struct rt_shape_call *call, uint32_t index,
                                        uint8_t *out_dim);

/* |dim| is |size|, or 1 and repeated. One that is not known but at most 1 is the latter. */
MUST_CHECK enum status rt_view_fits(struct rt_shape_call *call, struct rt_dim dim,
                                    struct rt_dim size, const char *what);

/* A dim number that the shape function has checked, made non-negative. */
static inline uint8_t rt_view_dim(int64_t dim, uint8_t rank)
{
    return (uint8_t)(dim < 0 ? dim + (rank ? rank : 1) : dim);
}

/* |index| < 0 counts from the end. */
struct rt_dim rt_view_wrap(struct rt_dims *dims, struct rt_dim index, struct rt_dim size);

#endif
