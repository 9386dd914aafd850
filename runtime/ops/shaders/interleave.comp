/* SPDX-License-Identifier: MIT */
/*
 * repeat_interleave of interleave.c. Each lane owns a stretch of the repeats; the counts of the
 * lanes before it tell where its output begins. Negative repeats count as 0, and output beyond the
 * length is dropped. If the length is fixed, missing output is 0. Bindings: output, repeats, number
 * of rows.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/interleave.h"

CONSTANTS(rt_interleave);

shared int64_t ends[gl_WorkGroupSize.x];

int64_t read_repeats(int64_t at)
{
    return clamp(load_int(binding(1) + uint64_t(at * dtype_width(K.dtype)), K.dtype), 0l, K.length);
}

/* The sum over the lanes up to this one, limited to the length. */
int64_t sum_up_to(int64_t count)
{
    int64_t sum = 0l;
    ends[lane()] = count;
    barrier();
    for (uint l = 0u; l <= lane(); l++) {
        sum = min(sum + ends[l], K.length);
    }
    barrier();
    ends[lane()] = sum;
    barrier();
    return sum;
}

void main()
{
    int64_t stretch = (K.count + lanes() - 1l) / lanes(), count = 0l;
    int64_t begin = min(stretch * lane(), K.count), behind = min(begin + stretch, K.count);
    uint width = dtype_width(K.dtype);
    for (int64_t i = begin; i < behind; i++) {
        count = min(count + read_repeats(i), K.length);
    }
    int64_t end = sum_up_to(count), at = lane() == 0u ? 0l : ends[lane() - 1u];
    for (int64_t i = begin; i < behind; i++) {
        for (int64_t last = min(at + read_repeats(i), end); at < last; at++) {
            store_int(binding(0) + uint64_t(at * width), K.dtype, i);
        }
    }
    for (int64_t rest = ends[lanes() - 1u] + lane(); K.has_extent == 0u && rest < K.length;
         rest += lanes()) {
        store_int(binding(0) + uint64_t(rest * width), K.dtype, 0l);
    }
    if (K.has_extent == 1u && lane() == 0u) {
        U64(binding(2)).at[0] = uint64_t(ends[lanes() - 1u]);
    }
}
