/* SPDX-License-Identifier: MIT */
/* Quantising and dequantising, by variant; quant_kernels.c says what unusual scales give. On some
 * devices a division may be off in the last place, and then an integer may be off by one. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/quant.h"

CONSTANTS(rt_quant_constants);
#include "runtime/kernels/shaders/loop.glsl"

/* Numbers out of range become the nearer bound, NaN the lower one. */
int64_t saturate(float rounded, int zero_point)
{
    if (is_nan(rounded) || rounded <= -4294967296.0) {
        return K.min;
    }
    return clamp(int64_t(min(rounded, 4294967296.0)) + zero_point, int64_t(K.min), int64_t(K.max));
}

/* The element's own scale as a float, whatever its type. */
float own_scale(uint64_t at)
{
    return K.scales == DT_F64 ? f64_to_f32(U64(at).at[0]) : load_f32(at, K.scales);
}

void main()
{
    EACH_POSITION(i)
    {
        float scale = K.scale;
        int zero_point = K.zero_point;
        if (K.has_scales == 1u) {
            scale = own_scale(loop_address(2u, i));
        }
        if (K.has_zero_points == 1u) {
            zero_point = int(load_i64(loop_address(3u, i), K.zero_points));
        }
        uint64_t from = loop_address(1u, i), to = loop_address(0u, i);
        if (variant == RT_QUANTIZE) {
            precise float inverse = 1.0 / scale;
            precise float scaled = load_float(from, K.real) * inverse;
            store_int(to, K.whole, saturate(roundEven(scaled), zero_point));
        } else {
            store_float(to, K.real, float(load_int(from, K.whole) - zero_point) * scale);
        }
    }
}
