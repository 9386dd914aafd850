/* SPDX-License-Identifier: MIT */
/* Depthwise convolution; each lane computes a channel. Bindings: out, in, weights as [taps,
 * channels], bias. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/depthwise.h"

CONSTANTS(rt_depthwise);

float convolve(int64_t row, uint column, uint channel)
{
    uint64_t x = binding(1) + uint64_t(4l * int64_t(tile().y) * K.image_in);
    float sum = binding(3) != 0ul ? F32(binding(3)).at[channel] : 0.0;
    int64_t first_y = row * K.stride_h - K.pad_top;
    int64_t first_x = int64_t(column) * K.stride_w - K.pad_left;
    for (uint i = 0u; i < K.kernel_h; i++) {
        int64_t in_y = first_y + int64_t(i) * K.dilation_h;
        if (in_y < 0l || in_y >= K.height) {
            continue;
        }
        for (uint j = 0u; j < K.kernel_w; j++) {
            int64_t in_x = first_x + int64_t(j) * K.dilation_w;
            if (in_x >= 0l && in_x < K.width) {
                int64_t at = in_y * K.x_line + in_x * K.channels + channel;
                sum += F32(x + uint64_t(4l * at)).at[0] *
                       F32(binding(2)).at[(i * K.kernel_w + j) * K.channels + channel];
            }
        }
    }
    return sum;
}

void main()
{
    uint64_t y = binding(0) + uint64_t(4l * int64_t(tile().y) * K.image_out);
    uint first = tile().x / K.bands_x * K.band_y, rows = min(K.band_y, K.out_h - first);
    uint begin = tile().x % K.bands_x * K.band_x, columns = min(K.band_x, K.out_width - begin);
    uint line = columns * K.channels;
    for (int64_t i = lane(); i < int64_t(rows) * line; i += lanes()) {
        int64_t row = first + i / line;
        uint column = begin + uint(i % line) / K.channels, channel = uint(i % line) % K.channels;
        float v = convolve(row, column, channel);
        int64_t at = row * K.y_line + int64_t(column) * K.y_pixel + channel;
        F32(y + uint64_t(4l * at)).at[0] = is_nan(v) ? v : min(max(v, K.min), K.max);
    }
}
