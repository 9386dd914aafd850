/* SPDX-License-Identifier: MIT */
/*
 * Rows that share a mean and a variance, like norm_kernels.c except for doubles.
 *
 * form norm_subgroups: -DSUBGROUPS GL_KHR_shader_subgroup_arithmetic
 * form norm:
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/norm.h"
#include "runtime/kernels/shaders/group.glsl"

CONSTANTS(rt_norm_constants);

float read_at(uint index, int64_t at)
{
    uint dtype = K.dtypes[index];
    return load_float(binding(index) + uint64_t(at * dtype_width(dtype)), dtype);
}

void write_at(uint index, int64_t at, float v)
{
    uint dtype = K.dtypes[index];
    if (binding(index) != 0ul) {
        store_float(binding(index) + uint64_t(at * dtype_width(dtype)), dtype, v);
    }
}

int64_t place_of(int64_t row, int64_t i)
{
    return row * K.row_stride + i / K.run * K.run_stride + i % K.run;
}

float find_mean(int64_t row, int64_t count)
{
    float sum = 0.0, lost = 0.0;
    EACH_ELEMENT(i, count)
    {
        add_exactly(sum, lost, read_at(RT_NORM_INPUT, place_of(row, i)));
    }
    return all_sum(sum) / float(count);
}

float find_variance(int64_t row, int64_t count, float mean)
{
    float sum = 0.0, lost = 0.0;
    EACH_ELEMENT(i, count)
    {
        float d = read_at(RT_NORM_INPUT, place_of(row, i)) - mean;
        add_exactly(sum, lost, d * d);
    }
    return all_sum(sum) / float(count);
}

void main()
{
    int64_t count = K.runs * K.run;
    int64_t first = int64_t(tile().x) * K.tile, end = min(first + K.tile, K.rows);
    form_teams_for(count, end - first);
    EACH_ROW(row, first, end)
    {
        float mean, variance;
        if (K.is_given == 1u) {
            mean = read_at(RT_NORM_MEAN, row);
            variance = read_at(RT_NORM_VARIANCE, row);
        } else {
            mean = find_mean(row, count);
            variance = find_variance(row, count, mean);
        }
        float inverse = 1.0 / sqrt(variance + f64_to_f32(K.epsilon));
        if (K.is_given == 0u && team.lane == 0u && K.is_plain == 0u) {
            write_at(RT_NORM_MEAN, row, mean);
            write_at(RT_NORM_VARIANCE, row, inverse);
        }
        EACH_ELEMENT(i, count)
        {
            int64_t at = place_of(row, i), weight = i % K.run;
            if (K.weights_by_element == 0u) {
                weight = row % K.weight_rows * K.weights_a_row + i / K.run % K.weights_a_row;
            }
            float y = (read_at(RT_NORM_INPUT, at) - mean) * inverse;
            y *= K.has_weight == 1u ? read_at(RT_NORM_WEIGHT, weight) : 1.0;
            y += K.has_bias == 1u ? read_at(RT_NORM_BIAS, weight) : 0.0;
            write_at(RT_NORM_OUTPUT, at, y);
        }
    }
}
