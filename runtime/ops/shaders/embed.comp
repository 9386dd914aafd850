/* SPDX-License-Identifier: MIT */
/* Rows of a quantised table, like quant_layers.c. A place outside the table gives 0. Bindings:
 * output, weights, scales, zero points, places. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/quant.h"

CONSTANTS(rt_quant_embed);

float weight(uint64_t row, int64_t i)
{
    uint bits = K.bits;
    uint byte = uint(U8(row + uint64_t(i * bits / 8l)).at[0]);
    switch (bits) {
    case 4:
        return float(int(byte >> (i % 2l == 0l ? 4 : 0) & 15u) - 8);
    case 2:
        return float(int(byte >> 2u * uint(i % 4l) & 3u) - 2);
    }
    return K.weights == DT_I8 ? float(int(int8_t(byte))) : float(byte);
}

void main()
{
    int64_t first = int64_t(tile().x) * K.tile, count = min(K.tile, K.places - first);
    for (int64_t at = lane(); at < count * K.width; at += lanes()) {
        int64_t i = at % K.width, index = first + at / K.width;
        int64_t place = load_int(binding(4) + uint64_t(index * dtype_width(K.places_type)),
                                 K.places_type);
        float y = 0.0;
        if (place >= 0l && place < K.rows) {
            int64_t group = place * K.groups + i / (K.width / K.groups);
            y = weight(binding(1) + uint64_t(place * K.bytes), i);
            if (K.has_zero_points == 1u) {
                y -= load_f32(binding(3) + uint64_t(group * dtype_width(K.zero_points)),
                              K.zero_points);
            }
            y *= load_f32(binding(2) + uint64_t(group * dtype_width(K.scales)), K.scales);
        }
        store_float(binding(0) + uint64_t((index * K.width + i) * dtype_width(K.out)), K.out, y);
    }
}
