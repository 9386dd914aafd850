/* SPDX-License-Identifier: MIT */
/*
 * Rows of floats that choose their own scale and zero point, like quant_kernels.c, but without
 * doubles: a number halfway between two zero points may go to the other one. Bindings: quantised
 * (RT_QUANTIZE_DYNAMIC), scales, zero points, x.
 *
 * form quantize_rows_subgroups: -DSUBGROUPS GL_KHR_shader_subgroup_arithmetic
 * form quantize_rows:
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/quant.h"
#include "runtime/kernels/shaders/group.glsl"

CONSTANTS(rt_quant_rows);

/* The binding of the scales. */
uint first_params()
{
    if (variant == RT_QUANTIZE_DYNAMIC) {
        return 1u;
    }
    return 0u;
}

DEFINE_ALL(all_highest, float, group_floats, max(a, b), subgroupMax(value))

struct Params {
    float scale, inverse;
    int zero_point;
};

/* XNNPACK's choice: choose_dynamic() in quant_kernels.c. */
Params choose_dynamic(float low, float high)
{
    float inverse = low == high ? 1.0 : 255.0 / (high - low);
    precise float from = low * inverse, to = high * inverse;
    float zero = (-128.0 + from) + (127.0 + to) > 0 ? -128.0 - from : 127.0 - to;
    float point = is_nan(zero) || zero < -128.0 ? -128.0 : min(zero, 127.0);
    return Params(1.0 / inverse, inverse, int(roundEven(point)));
}

/* ExecuTorch's choice: choose() in quant_kernels.c. */
Params choose(float low, float high)
{
    float steps = float(int64_t(K.max) - K.min), least = RT_QUANT_STEP_MIN;
    float step_ = (high - low) / steps;
    float plain = step_ == 0 || is_inf(1.0 / step_) ? 0.1 : step_, factor = 1.0, scale = plain;
    float from = low, to = high;
    if (plain < least) {
        factor = least / plain;
        from = high == 0 && low != 0 ? -least * steps : low * factor;
        to = low == 0 ? least * steps : high * factor;
        scale = least;
    }
    float first = float(K.min), last = float(K.max), down = from / scale, up = to / scale;
    float zero = abs(first) - abs(down) < abs(last) - abs(up) ? first - down : last - up;
    int point = !(zero >= first) ? K.min : zero > last ? K.max : int(roundEven(zero));
    return Params(scale, 1.0 / scale, point);
}

void store_params(int64_t row, Params p)
{
    uint scales = first_params();
    if (binding(scales) != 0ul) {
        uint64_t to = binding(scales) + uint64_t(row * dtype_width(K.scale));
        if (K.scale == DT_F64) {
            U64(to).at[0] = f32_to_f64(p.scale);
        } else {
            store_f32(to, K.scale, p.scale);
        }
    }
    if (binding(scales + 1u) != 0ul) {
        store_i64(binding(scales + 1u) + uint64_t(row * dtype_width(K.zero_point)), K.zero_point,
                  p.zero_point);
    }
}

void main()
{
    uint width = dtype_width(K.real);
    int64_t first = int64_t(tile().x) * K.tile, end = min(first + K.tile, K.rows);
    form_teams_for(K.length, end - first);
    EACH_ROW(row, first, end)
    {
        uint64_t from = binding(first_params() + 2u) + uint64_t(row * K.length * width);
        float low = 0.0, high = 0.0; /* the range always includes 0 */
        EACH_ELEMENT(i, K.length)
        {
            float v = load_float(from + uint64_t(i * width), K.real);
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        low = -all_highest(-low);
        high = all_highest(high);
        if (variant == RT_CHOOSE_PARAMS) {
            if (team.lane == 0u) {
                store_params(row, choose(low, high));
            }
            continue;
        }
        Params p = choose_dynamic(low, high);
        if (team.lane == 0u) {
            store_params(row, p);
        }
        EACH_ELEMENT(i, K.length)
        {
            float v = roundEven(load_float(from + uint64_t(i * width), K.real) * p.inverse);
            float least = float(-128 - p.zero_point), most = float(127 - p.zero_point);
            int q = int(is_nan(v) ? least : clamp(v, least, most)) + p.zero_point;
            U8(binding(0) + uint64_t(row * K.length + i)).at[0] = uint8_t(q);
        }
    }
}
