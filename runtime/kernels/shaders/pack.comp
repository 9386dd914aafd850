/* SPDX-License-Identifier: MIT */
/* The packing of gemm.c: panels of columns, with zeros after the last column. Bindings: packed,
 * source. */
#include "hal/vulkan/shaders/kernel.glsl"
#include "runtime/kernels/gemm.h"

CONSTANTS(rt_pack);

void main()
{
    int64_t rows = K.outer_count * K.inner_count, first = int64_t(tile().x) * K.panels;
    int64_t panels = min((K.n + K.width - 1l) / K.width - first, int64_t(K.panels));
    int64_t panel = rows * K.width;
    uint64_t from = binding(1) + uint64_t(4l * int64_t(tile().y) * K.source);
    uint64_t to = binding(0) + uint64_t(4l * (int64_t(tile().y) * K.packed + first * panel));
    for (int64_t i = lane(); i < panels * panel; i += lanes()) {
        int64_t k = i % panel / K.width, column = (first + i / panel) * K.width + i % K.width;
        float v = 0.0;
        if (column < K.n) {
            int64_t at = column * K.column + k / K.inner_count * K.outer_stride +
                         k % K.inner_count * K.inner_stride;
            v = F32(from + uint64_t(4l * at)).at[0];
        }
        F32(to + uint64_t(4l * i)).at[0] = v;
    }
}
