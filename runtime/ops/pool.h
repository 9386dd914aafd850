/* SPDX-License-Identifier: MIT */
/* Images: tensors of channels, height and width, with or without a batch dim before them. */
#ifndef PTED_RUNTIME_OPS_POOL_H
#define PTED_RUNTIME_OPS_POOL_H

#include "base/dtype.h"
#ifndef HAL_SHADER
#include "runtime/ops/op.h"
#endif

/* Strides in elements. */
struct rt_image {
    int64_t n, c, h, w;
};

enum rt_pool_mode { RT_POOL_MAX, RT_POOL_AVERAGE, RT_POOL_ADAPTIVE };

/* One of the two spatial dims. */
struct rt_pool_dim {
    int64_t in, out;
    int64_t kernel, stride, pad, dilation; /* not for RT_POOL_ADAPTIVE */
};

struct rt_pool_constants {
    enum rt_pool_mode mode;
    enum dtype dtype;
    uint32_t counts_padding;
    int64_t divisor; /* 0: as many elements as the window has */
    int64_t images, channels;
    int64_t tile; /* output rows of a tile */
    struct rt_pool_dim h, w;
    struct rt_image x, y;
    struct rt_image indices; /* elements of i64 */
};

/* Variants of the SPIR-V form: without and with a binding of indices. */
enum rt_pool_variant { RT_POOL_PIXELS, RT_POOL_ELEMENTS };

#ifndef HAL_SHADER
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

#endif
