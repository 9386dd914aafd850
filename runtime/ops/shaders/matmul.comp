/* SPDX-License-Identifier: MIT */
/* "matmul" of matmul.c for integers, which wrap. A lane computes one output element at a time.
 * Bindings: out, a, b. Grid: blocks of rows, products. */
#include "runtime/ops/matmul.h"
#include "runtime/kernels/shaders/element.glsl"

CONSTANTS(rt_matmul_constants);

void main()
{
    int64_t first = int64_t(tile().x) * K.tile, product = int64_t(tile().y);
    int64_t rows = min(K.tile, K.m - first), width = dtype_width(K.dtype);
    for (int64_t i = lane(); i < rows * K.n; i += lanes()) {
        int64_t row = product * K.m + first + i / K.n, column = i % K.n, sum = 0l;
        uint64_t a = binding(1) + uint64_t(row * K.k * width);
        uint64_t b = binding(2) + uint64_t((product * K.matrix + column) * width);
        for (int64_t p = 0l; p < K.k; p++) {
            sum += load_int(a + uint64_t(p * width), K.dtype) *
                   load_int(b + uint64_t(p * K.n * width), K.dtype);
        }
        store_int(binding(0) + uint64_t((row * K.n + column) * width), K.dtype, sum);
    }
}
