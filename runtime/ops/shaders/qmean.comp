/* SPDX-License-Identifier: MIT */
/* The mean over an image's pixels, like qpointwise.c: each lane computes a channel. Bindings: out,
 * x. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/qpointwise.h"

CONSTANTS(rt_qmean);

void main()
{
    int64_t first = int64_t(tile().x) * K.tile;
    int64_t end = min(first + K.tile, int64_t(K.channels));
    uint64_t from = binding(1) + uint64_t(int64_t(tile().y) * K.channels * K.pixels);
    for (int64_t c = first + lane(); c < end; c += lanes()) {
        int sum = 0;
        for (int64_t p = 0l; p < K.pixels; p++) {
            sum += int(uint(U8(from + uint64_t(c * K.channel + p * K.pixel)).at[0]));
        }
        precise float v = roundEven(float(sum) * K.scale + K.bias);
        v = v < K.min ? K.min : v > K.max ? K.max : v;
        U8(binding(0) + uint64_t(int64_t(tile().y) * K.channels + c)).at[0] = uint8_t(int(v));
    }
}
