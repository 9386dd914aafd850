/* SPDX-License-Identifier: MIT */
/*
 * Softmax and log-softmax along a dim: both kernels of softmax.c except the one for doubles.
 *
 * form softmax_subgroups: -DSUBGROUPS GL_KHR_shader_subgroup_arithmetic
 * form softmax:
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/along.h"
#include "runtime/kernels/shaders/math.glsl"
#include "runtime/kernels/shaders/group.glsl"

CONSTANTS(rt_along);

void main()
{
    uint width = dtype_width(K.in), dtype = K.in;
    int64_t first = int64_t(tile().x) * K.tile, end = min(first + K.tile, K.outer * K.inner);
    if (K.inner > 1l) {
        form_teams(TEAM_LANE);
    } else {
        form_teams_for(K.length, end - first);
    }
    EACH_ROW(row, first, end)
    {
        int64_t begin = row / K.inner * K.length * K.inner + row % K.inner;
        uint64_t step = uint64_t(K.inner * width);
        uint64_t from = binding(1) + uint64_t(begin * width);
        uint64_t to = binding(0) + uint64_t(begin * width);
        float highest = -INF, sum = 0.0, lost = 0.0;
        EACH_ELEMENT(i, K.length)
        {
            float v = load_float(from + i * step, dtype);
            highest = is_nan(v) || v > highest ? v : highest;
        }
        highest = all_max(highest);
        bool is_masked = K.gives_zeros == 1u && highest == -INF;
        EACH_ELEMENT(i, K.length)
        {
            add_exactly(sum, lost, exp_f32(load_float(from + i * step, dtype) - highest));
        }
        sum = all_sum(sum);
        float log_sum = log_f32(sum);
        EACH_ELEMENT(i, K.length)
        {
            float v = load_float(from + i * step, dtype) - highest;
            v = K.is_log == 1u ? v - log_sum : exp_f32(v) / sum;
            store_float(to + i * step, dtype, is_masked ? 0.0 : v);
        }
    }
}
