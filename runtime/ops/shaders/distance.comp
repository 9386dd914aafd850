/* SPDX-License-Identifier: MIT */
/* Distances between vectors, like distance.c in float. A lane computes one pair at a time.
 * Bindings: out, rows, columns. Tile y is the batch. */
#include "runtime/ops/distance.h"
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/kernels/shaders/group.glsl"
#include "runtime/kernels/shaders/math.glsl"

CONSTANTS(rt_distance_constants);

float part_of(float d, float p)
{
    switch (K.norm) {
    case RT_DISTANCE_NONZERO:
        return d != 0 ? 1.0 : 0.0;
    case RT_DISTANCE_2:
        return d * d;
    case RT_DISTANCE_P:
        return pow_f32(d, p);
    }
    return d;
}

float distance_of(uint64_t a, uint64_t b, float p)
{
    uint width = dtype_width(K.dtype);
    float sum = 0.0, lost = 0.0;
    for (int64_t i = 0l; i < K.coordinates; i++) {
        uint64_t at = uint64_t(i * width);
        float d = abs(load_float(a + at, K.dtype) - load_float(b + at, K.dtype));
        if (K.norm == RT_DISTANCE_MAX) {
            sum = d > sum || is_nan(d) ? d : sum;
        } else {
            add_exactly(sum, lost, part_of(d, p));
        }
    }
    return K.norm == RT_DISTANCE_2   ? sqrt(sum)
           : K.norm == RT_DISTANCE_P ? pow_f32(sum, 1.0 / p)
                                     : sum;
}

/* Number of vectors before batch |batch| of operand |side|. */
int64_t batch_offset(uint side, int64_t batch)
{
    int64_t offset = 0l;
    for (uint d = K.batch_rank; d-- > 0u;) {
        offset += batch % K.batch[d] * K.strides[side][d];
        batch /= K.batch[d];
    }
    return offset;
}

void main()
{
    int64_t first = int64_t(tile().x) * K.tile, batch = int64_t(tile().y);
    int64_t count = min(K.tile, K.rows - first) * K.columns, width = int64_t(dtype_width(K.dtype));
    int64_t vector = K.coordinates * width;
    uint64_t a = binding(1) + uint64_t(batch_offset(0u, batch) * vector);
    uint64_t b = binding(2) + uint64_t(batch_offset(1u, batch) * vector);
    for (int64_t i = lane(); i < count; i += lanes()) {
        int64_t r = first + i / K.columns, column = i % K.columns;
        int64_t at = (batch * K.rows + r) * K.columns + column;
        if (K.is_pairs == 1u) {
            at = r * (2l * K.rows - r - 1l) / 2l + column - r - 1l;
        }
        if (K.is_pairs == 0u || column > r) {
            float d = distance_of(a + uint64_t(r * vector), b + uint64_t(column * vector),
                                  f64_to_f32(K.p));
            store_float(binding(0) + uint64_t(at * width), K.dtype, d);
        }
    }
}
