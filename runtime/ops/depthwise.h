/* SPDX-License-Identifier: MIT */
/* Constants for the kernel of a depthwise convolution; see struct uk_dw_f32. */
#ifndef PTED_RUNTIME_OPS_DEPTHWISE_H
#define PTED_RUNTIME_OPS_DEPTHWISE_H

#include <stdint.h>

/* Floats, channels innermost. A tile is a band of output rows and columns of one image; images are
 * the grid's y. */
struct rt_depthwise {
    int64_t image_in, image_out;
    int64_t x_line, y_line, y_pixel;
    uint32_t out_h, band_y, band_x, bands_x;
    uint32_t channels, height, width; /* of the input */
    uint32_t out_width, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    uint32_t pad_top, pad_left;
    float min, max;
};

#endif
