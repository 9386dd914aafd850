/* SPDX-License-Identifier: MIT */
/* Chains of pointwise loops over floats (chain.h): each lane takes an element through all steps. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/chain.h"
#include "runtime/ops/shaders/loops.glsl"

CONSTANTS(rt_chain_constants);
#include "runtime/kernels/shaders/loop.glsl"

/* A tensor that has one row for many repeats this row along the innermost dim; one that has a
 * number for each row repeats that. */
float read_tensor(uint tensor, int64_t position)
{
    uint64_t at = loop_address(tensor + 1u, position);
    int64_t place = position % K.loop.dims[K.loop.rank - 1u];
    if ((K.repeated >> (tensor + 1u) & 1u) == 1u) {
        at += uint64_t(place % K.period * 4l);
    } else if ((K.spread >> (tensor + 1u) & 1u) == 1u) {
        at += uint64_t(place / K.period * K.row_strides[tensor + 1u]);
    }
    return F32(at).at[0];
}

void main()
{
    EACH_POSITION(i)
    {
        float values[RT_CHAIN_VALUES_MAX], y = 0.0;
        for (uint t = 0u; t < K.tensors; t++) {
            values[t] = read_tensor(t, i);
        }
        for (uint s = 0u; s < K.step_count; s++) {
            uint form = K.steps[s].form, first = K.steps[s].params;
            float a = values[K.steps[s].in[0]], b = values[K.steps[s].in[1]];
            float c = values[K.steps[s].in[2]];
            vec3 params = vec3(1.0, 0.0, 0.0); /* in a chain, a sum has no factor */
            if (form == RT_CHAIN_SCALAR) {
                b = K.numbers[first];
            } else if (form == RT_CHAIN_REVERSED) {
                b = a;
                a = K.numbers[first];
            } else if (form == RT_CHAIN_LOOP) {
                for (uint p = 0u; p < 3u && first + p < RT_CHAIN_NUMBERS_MAX; p++) {
                    params[p] = K.numbers[first + p];
                }
            }
            y = loop_f32(K.steps[s].op, a, b, c, false, params);
            values[K.steps[s].out] = y;
        }
        F32(loop_address(0u, i)).at[0] = y;
    }
}
