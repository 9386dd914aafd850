/* SPDX-License-Identifier: MIT */
/* The kernel of keep.c; lanes share the bytes of a tile. */
#include "hal/vulkan/shaders/kernel.glsl"
#include "runtime/kernels/keep.h"

CONSTANTS(rt_keep);

/* Copies |unit| bytes, 4 or 1. */
void move(uint64_t to, uint64_t from, uint unit)
{
    if (unit == 4u) {
        U32(to).at[0] = U32(from).at[0];
    } else {
        U8(to).at[0] = U8(from).at[0];
    }
}

void keep_range(int64_t begin, int64_t end)
{
    int64_t run = (end - begin) * K.row_bytes, tiles = int64_t(push.grid.x);
    if (run <= 0l) {
        return;
    }
    uint64_t bits = binding(RT_KEEP_OUT) | binding(RT_KEEP_BASE) | uint64_t(K.row_bytes);
    uint unit = (uint(bits) & 3u) == 0u ? 4u : 1u;
    int64_t share = (run * K.outer + tiles - 1l) / tiles;
    share = (share + 3l) / 4l * 4l;
    int64_t first = int64_t(tile().x) * share, behind = min(first + share, run * K.outer);
    for (int64_t at = first + int64_t(lane() * unit); at < behind; at += int64_t(lanes() * unit)) {
        int64_t place = (at / run * K.rows + begin) * K.row_bytes + at % run;
        move(binding(RT_KEEP_OUT) + uint64_t(place), binding(RT_KEEP_BASE) + uint64_t(place), unit);
    }
}

void main()
{
    uint64_t words = binding(RT_KEEP_WORDS), place = binding(RT_KEEP_FIRST);
    int64_t first = place == 0ul ? K.first : int64_t(U64(place).at[0]);
    int64_t behind = first + K.count, begin = 0l, end = K.rows;
    if (words != 0ul) {
        begin = int64_t(U64(words).at[RT_UPDATE_STALE]);
        end = int64_t(U64(words).at[RT_UPDATE_STALE_END]);
    }
    if (words != 0ul && tile().x == 0u && lane() == 0u) {
        U64(words).at[RT_UPDATE_WRITTEN] = uint64_t(first);
        U64(words).at[RT_UPDATE_WRITTEN_END] = uint64_t(behind);
    }
    if (binding(RT_KEEP_OUT) != binding(RT_KEEP_BASE)) {
        keep_range(begin, min(end, first));
        keep_range(max(begin, behind), end);
    }
}
