/* SPDX-License-Identifier: MIT */
/* Images: tensors of channels, height and width, with or without a batch dim before them. */
#ifndef PTED_RUNTIME_OPS_POOL_H
#define PTED_RUNTIME_OPS_POOL_H

#include "runtime/ops/op.h"

/* Strides in elements. */
struct rt_image {
    int64_t n, c, h, w;
};

static inline struct rt_image rt_image_of(const struct rt_tensor *tensor)
{
    const int64_t *strides = tensor->strides + tensor->rank - 3;
    return (struct rt_image){tensor->rank > 3 ? tensor->strides[0] : 0, strides[0], strides[1],
                             strides[2]};
}

static inline int64_t rt_image_count(const struct rt_tensor *tensor)
{
    return tensor->rank > 3 ? tensor->dims[0] : 1;
}

#endif
