/* SPDX-License-Identifier: MIT */
/* fast_hadamard_transform of llm.c: each workgroup transforms a row in shared memory. Bindings:
 * output, x. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/llm.h"

CONSTANTS(rt_hadamard);

shared float x[RT_HADAMARD_SHARED_MAX];

void main()
{
    int64_t first = int64_t(tile().x) * K.tile, end = min(first + K.tile, K.rows);
    uint width = dtype_width(K.dtype), length = uint(K.length);
    for (int64_t row = first; row < end; row++) {
        uint64_t at = uint64_t(row * K.length * width);
        for (uint i = lane(); i < length; i += lanes()) {
            x[i] = load_float(binding(1) + at + uint64_t(i * width), K.dtype);
        }
        barrier();
        for (uint half_ = 1u; half_ < length; half_ *= 2u) {
            for (uint pair = lane(); pair < length / 2u; pair += lanes()) {
                uint i = pair / half_ * 2u * half_ + pair % half_;
                float a = x[i], b = x[i + half_];
                x[i] = a + b;
                x[i + half_] = a - b;
            }
            barrier();
        }
        for (uint i = lane(); i < length; i += lanes()) {
            store_float(binding(0) + at + uint64_t(i * width), K.dtype, x[i] * K.scale);
        }
        barrier();
    }
}
