/* SPDX-License-Identifier: MIT */
/*
 * nonzero and masked_select of extent.c, by variant. First all lanes together count the chosen
 * elements before their tile, then each lane counts those in its own stretch. Bindings: rows, their
 * number, and the tensor (RT_NONZERO), or tensor and mask.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/extent.h"

CONSTANTS(rt_extent);

shared int64_t counts[gl_WorkGroupSize.x];

/* Positions, in elements, of the tested element and of the element to copy. */
void find(int64_t position, inout int64_t mask, inout int64_t from)
{
    mask = from = 0l;
    for (uint d = K.rank; d-- > 0u;) {
        int64_t at = position % K.dims[d];
        position /= K.dims[d];
        mask += at * K.mask_steps[d];
        from += at * K.steps[d];
    }
}

bool is_set(int64_t at)
{
    uint64_t mask = binding(variant == RT_NONZERO ? 2u : 3u) + uint64_t(at * K.mask_width);
    bool is_float = K.is_float == 1u; /* ignore the sign: -0 is zero */
    switch (K.mask_width) {
    case 1:
        return U8(mask).at[0] != uint8_t(0);
    case 2:
        return (uint(U16(mask).at[0]) & (is_float ? 0x7fffu : 0xffffu)) != 0u;
    case 4:
        return (U32(mask).at[0] & (is_float ? 0x7fffffffu : 0xffffffffu)) != 0u;
    }
    return (U64(mask).at[0] & (is_float ? 0x7ffffffffffffffful : ~0ul)) != 0ul;
}

bool is_chosen(int64_t position)
{
    int64_t mask = position, from = 0l;
    if (K.mask_is_dense == 0u) {
        find(position, mask, from);
    }
    return is_set(mask);
}

void put(int64_t position, int64_t row)
{
    if (variant == RT_NONZERO) {
        for (uint d = K.rank; d-- > 0u;) {
            U64(binding(0) + uint64_t(8l * (row * K.rank + d))).at[0] = uint64_t(position % K.dims[d]);
            position /= K.dims[d];
        }
        return;
    }
    int64_t mask = 0l, from = 0l;
    find(position, mask, from);
    uint64_t to = binding(0) + uint64_t(row * K.width);
    uint64_t at = binding(2) + uint64_t(from * K.width);
    switch (K.width) {
    case 1:
        U8(to).at[0] = U8(at).at[0];
        break;
    case 2:
        U16(to).at[0] = U16(at).at[0];
        break;
    case 4:
        U32(to).at[0] = U32(at).at[0];
        break;
    default:
        U64(to).at[0] = U64(at).at[0];
    }
}

/* The sum of |count| over the lanes before |behind|. */
int64_t sum_before(int64_t count, uint behind)
{
    int64_t sum = 0l;
    counts[lane()] = count;
    barrier();
    for (uint l = 0u; l < behind; l++) {
        sum += counts[l];
    }
    barrier();
    return sum;
}

void main()
{
    int64_t first = int64_t(tile().x) * K.tile, end = min(first + K.tile, K.numel);
    int64_t stretch = (K.tile + lanes() - 1l) / lanes(), count = 0l;
    for (int64_t i = lane(); i < first && i < K.numel; i += lanes()) {
        count += is_chosen(i) ? 1l : 0l;
    }
    int64_t row = sum_before(count, lanes());
    int64_t begin = min(first + stretch * lane(), end), behind = min(begin + stretch, end);
    count = 0l;
    for (int64_t i = begin; i < behind; i++) {
        count += is_chosen(i) ? 1l : 0l;
    }
    row += sum_before(count, lane());
    for (int64_t i = begin; i < behind; i++) {
        if (is_chosen(i)) {
            put(i, row++);
        }
    }
    if (tile().x + 1u == push.grid.x && lane() + 1u == lanes()) {
        U64(binding(1)).at[0] = uint64_t(row);
    }
}
