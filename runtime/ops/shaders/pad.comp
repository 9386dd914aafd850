/* SPDX-License-Identifier: MIT */
/* Pads, rolls and similar; pad.c defines the source of each element. Bindings: out, in. */
#include "hal/vulkan/shaders/kernel.glsl"
#include "runtime/ops/pad.h"

CONSTANTS(rt_pad_constants);

int64_t place_of(uint d, int64_t at)
{
    int64_t place = at - K.dims[d].before, size = K.dims[d].in;
    if (place >= 0l && place < size) {
        return place;
    }
    switch (K.outside) {
    case RT_OUTSIDE_REFLECT:
        return place < 0l ? -place : 2l * (size - 1l) - place;
    case RT_OUTSIDE_NEAREST:
        return place < 0l ? 0l : size - 1l;
    case RT_OUTSIDE_WRAP:
        return place < 0l ? place + size : place - size;
    }
    return -1l;
}

void move(uint64_t to, uint64_t from)
{
    switch (K.width) {
    case 1:
        U8(to).at[0] = from != 0ul ? U8(from).at[0] : uint8_t(K.value);
        break;
    case 2:
        U16(to).at[0] = from != 0ul ? U16(from).at[0] : uint16_t(K.value);
        break;
    case 4:
        U32(to).at[0] = from != 0ul ? U32(from).at[0] : uint32_t(K.value);
        break;
    default:
        U64(to).at[0] = from != 0ul ? U64(from).at[0] : K.value;
    }
}

void main()
{
    uint last = K.rank - 1u;
    int64_t begin = int64_t(tile().x) * K.row_tile, first = int64_t(tile().y) * K.tile;
    int64_t line = min(K.row_tile, K.dims[last].out - begin), rows = min(K.tile, K.rows - first);
    for (int64_t i = lane(); i < rows * line; i += lanes()) {
        int64_t row = first + i / line, at = begin + i % line, place = place_of(last, at);
        int64_t to = at * K.dims[last].dst, from = place * K.dims[last].src;
        bool inside = place >= 0l;
        for (uint d = last; d-- > 0u;) {
            at = row % K.dims[d].out;
            row /= K.dims[d].out;
            place = place_of(d, at);
            to += at * K.dims[d].dst;
            from += place * K.dims[d].src;
            inside = inside && place >= 0l;
        }
        move(binding(0) + uint64_t(to), inside ? binding(1) + uint64_t(from) : 0ul);
    }
}
