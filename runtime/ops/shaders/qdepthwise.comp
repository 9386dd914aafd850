/* SPDX-License-Identifier: MIT */
/* Depthwise convolution of 8-bit integers, like qproduct.c: each lane computes one channel of a
 * pixel, neighbouring lanes neighbouring channels. Bindings: out, in, weights, columns. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/kernels/qgemm.h"

CONSTANTS(rt_qdepthwise);

/* A weight as packed by pack_dw_u8(), of the output without a shift. */
int weight(uint channel, uint y, uint x)
{
    uint width = K.g.width, lane = channel % width, tap = x % UK_DW_U8_TAPS;
    uint windows = UK_DW_U8_WINDOWS(uint(K.g.x.kernel));
    uint row = (channel / width * uint(K.g.y.kernel) + y) * windows + x / UK_DW_U8_TAPS;
    uint parts = 4u / K.g.word; /* words of a window, and bytes of a tap */
    uint64_t at = uint64_t(row * UK_DW_U8_SHIFTS * parts + tap % parts) * width + lane;
    uint64_t word = binding(2) + at * 4ul;
    return parts == 1u ? int(int8_t(U8(word).at[tap])) : int(int16_t(U16(word).at[tap / 2u]));
}

/* Sums the products of all taps of a pixel; tap 0 reads (y, x) of the image at |from|. */
int multiply(uint64_t from, int y, int x, uint channel)
{
    int sum = 0;
    for (uint ky = 0u; ky < uint(K.g.y.kernel); ky++) {
        int at_y = y + int(ky) * int(K.g.y.dilation);
        for (uint kx = 0u; kx < uint(K.g.x.kernel); kx++) {
            int at_x = x + int(kx) * int(K.g.x.dilation), v = K.g.x_zero;
            if (at_y >= 0 && at_y < int(K.g.y.in) && at_x >= 0 && at_x < int(K.g.x.in)) {
                int64_t pixel = int64_t(at_y) * K.g.x.in + at_x;
                v = int(uint(U8(from + uint64_t(pixel * K.g.channels)).at[channel]));
            }
            sum += v * weight(channel, ky, kx);
        }
    }
    return sum;
}

uint requantize(int sum, uint channel)
{
    uint width = K.g.width, place = channel % width;
    uint64_t columns = binding(3) + uint64_t(channel / width * UK_COLUMN_ARRAYS * width) * 4ul;
    precise float scale = F32(columns).at[UK_COLUMN_SCALE * width + place];
    precise float bias = F32(columns).at[UK_COLUMN_BIAS * width + place];
    sum += int(U32(columns).at[UK_COLUMN_OFFSET * width + place]);
    precise float v = float(sum) * scale + bias;
    int least = int(K.g.min) + K.g.zero;
    return uint(clamp(int(roundEven(min(max(v, -65536.0), K.g.max))) + K.g.zero, least, 255));
}

void main()
{
    int64_t image = int64_t(tile().y);
    int y = int(int64_t(tile().x) / K.bands_x * K.band_y);
    int x = int(int64_t(tile().x) % K.bands_x * K.band_x);
    uint rows = uint(min(K.band_y, K.g.y.out - y)), width = uint(min(K.band_x, K.g.x.out - x));
    uint channels = uint(K.g.channels);
    uint64_t from = binding(1) + uint64_t(image * K.g.y.in * K.g.x.in * K.g.channels);
    for (uint i = lane(); i < rows * width * channels; i += lanes()) {
        uint channel = i % channels, pixel = i / channels;
        int out_y = y + int(pixel / width), out_x = x + int(pixel % width);
        int sum = multiply(from, out_y * int(K.g.y.stride) - int(K.g.y.padding),
                           out_x * int(K.g.x.stride) - int(K.g.x.padding), channel);
        int64_t to = (image * K.g.y.out + out_y) * K.g.x.out + out_x;
        U8(binding(0) + uint64_t(to * K.g.channels)).at[channel] =
            uint8_t(requantize(sum, channel));
    }
}
