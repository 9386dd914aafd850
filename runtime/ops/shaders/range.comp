/* SPDX-License-Identifier: MIT */
/* Element i is start + i * step, like create.c except for doubles. Bindings: the output and, if the
 * start is read, the start. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/create.h"

CONSTANTS(rt_range);

void main()
{
    int64_t share = (K.length - 1l) / push.grid.x + 1l, first = int64_t(tile().x) * share;
    int64_t end = min(first + share, K.length);
    int64_t start_i = K.is_start_read != 0u ? load_int(binding(1), DT_I64) : K.start.i;
    float start = K.is_start_read != 0u ? float(start_i) : f64_to_f32(K.start.f);
    float step_ = f64_to_f32(K.step.f);
    for (int64_t i = first + lane(); i < end; i += lanes()) {
        uint64_t to = binding(0) + uint64_t(i * dtype_width(K.dtype));
        if (is_float(K.dtype)) {
            store_float(to, K.dtype, fma(float(i), step_, start));
        } else {
            store_int(to, K.dtype, start_i + i * K.step.i);
        }
    }
}
