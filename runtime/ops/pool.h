/* SPDX-License-Identifier: MIT */
/* Images: tensors of channels, height and width with an optional batch dim in front; and the parts
 * that pooling over images and over volumes share. */
#ifndef PTED_RUNTIME_OPS_POOL_H
#define PTED_RUNTIME_OPS_POOL_H

#include "base/dtype.h"
#ifndef HAL_SHADER
#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#endif

/* Strides in elements. */
struct rt_image {
    int64_t n, c, h, w;
};

/* The windows of the last two follow from the size of the output. */
enum rt_pool_mode { RT_POOL_MAX, RT_POOL_AVERAGE, RT_POOL_ADAPTIVE, RT_POOL_ADAPTIVE_MAX };

/* One of the two spatial dims. */
struct rt_pool_dim {
    int64_t in, out;
    int64_t kernel, stride, pad, dilation; /* if windows are adaptive: only a dilation of 1 */
};

struct rt_pool_constants {
    enum rt_pool_mode mode;
    enum dtype dtype;
    uint32_t counts_padding;
    int64_t divisor; /* 0: divide by the number of the window's elements */
    int64_t images, channels;
    int64_t tile; /* output rows of a tile */
    struct rt_pool_dim h, w;
    struct rt_image x, y;
    struct rt_image indices; /* elements (i64), not bytes */
};

/* Variants of the SPIR-V form: without and with a binding for indices. */
enum rt_pool_variant { RT_POOL_PIXELS, RT_POOL_ELEMENTS };

#ifndef HAL_SHADER
static inline bool rt_pool_is_adaptive(enum rt_pool_mode mode)
{
    return mode == RT_POOL_ADAPTIVE || mode == RT_POOL_ADAPTIVE_MAX;
}

static inline bool rt_pool_is_max(enum rt_pool_mode mode)
{
    return mode == RT_POOL_MAX || mode == RT_POOL_ADAPTIVE_MAX;
}

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

#define RT_POOL_AXES_MAX 3

/* The part of a window inside the image, in units of the dilation. */
struct rt_pool_window {
    int64_t begin, count;
    int64_t padded; /* distance to the end of the padding, in elements */
};

struct rt_pool_window rt_pool_window(enum rt_pool_mode mode, const struct rt_pool_dim *dim,
                                     int64_t at);

/* Entries by axis. */
struct rt_pool_lists {
    int64_t kernel[RT_POOL_AXES_MAX], stride[RT_POOL_AXES_MAX];
    int64_t pad[RT_POOL_AXES_MAX], dilation[RT_POOL_AXES_MAX];
};

/* Argument |index|: one number for all axes or one for each. An empty list leaves |out_items|
 * unchanged. */
MUST_CHECK enum status rt_pool_need_list(struct rt_shape_call *call, uint32_t index, uint32_t axes,
                                         int64_t least, int64_t *out_items);
/* Checks the arguments that all pooling operators begin with: kernel, stride (absent: the kernel's
 * size), pad. |dilation|: the index of that argument, or 0 without one. */
MUST_CHECK enum status rt_pool_need_lists(struct rt_shape_call *call, uint32_t axes,
                                          uint32_t dilation, struct rt_pool_lists *lists);
/* Checks that a divisor is absent or differs from 0. */
MUST_CHECK enum status rt_pool_need_divisor(struct rt_shape_call *call, uint32_t index);
/* Counts the windows along |axis|. |ceil| adds one partial window, unless it would begin in the
 * padding behind the image. */
MUST_CHECK enum status rt_pool_count(struct rt_shape_call *call, const struct rt_pool_lists *lists,
                                     uint32_t axes, uint32_t axis, bool ceil,
                                     struct rt_dim *out_count);
/* Reads the same lists at the time of recording. */
void rt_pool_read_window(const struct rt_emit *emit, struct rt_pool_dim *dim, uint32_t axis,
                         uint32_t dilation);
#endif

#endif
