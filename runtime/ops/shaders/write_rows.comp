/* SPDX-License-Identifier: MIT */
/*
 * write_rows_at of llm.c: a lane owns the same bytes of all rows, so that the last of several rows
 * for one place stays. Places outside the cache are skipped. Bindings: output, cache, rows, places,
 * words.
 */
#include "hal/vulkan/shaders/kernel.glsl"
#include "runtime/ops/llm.h"
#include "runtime/kernels/keep.h"

CONSTANTS(rt_write_rows);

/* Copies |unit| bytes, 4 or 1. */
void move(uint64_t to, uint64_t from, uint unit)
{
    if (unit == 4u) {
        U32(to).at[0] = U32(from).at[0];
    } else {
        U8(to).at[0] = U8(from).at[0];
    }
}

void note_written(uint64_t words)
{
    int64_t first = 0x7fffffffffffffffl, end = 0l, count = K.count * int64_t(push.grid.y);
    for (int64_t i = 0l; i < count; i++) {
        int64_t place = int64_t(U64(binding(3) + uint64_t(8l * i)).at[0]);
        first = min(first, place);
        end = max(end, place + 1l);
    }
    U64(words).at[RT_UPDATE_WRITTEN] = uint64_t(count > 0l ? first : 0l);
    U64(words).at[RT_UPDATE_WRITTEN_END] = uint64_t(end);
}

void main()
{
    int64_t slice = ((K.row_bytes - 1l) / RT_SLICE_UNIT / push.grid.x + 1l) * RT_SLICE_UNIT;
    int64_t first = min(tile().x * slice, K.row_bytes), batch = int64_t(tile().y);
    int64_t bytes = min(K.row_bytes - first, slice);
    uint64_t cache = uint64_t(batch * K.rows * K.row_bytes + first);
    uint64_t bits = binding(0) | binding(1) | binding(2) | uint64_t(K.row_bytes);
    uint unit = (uint(bits) & 3u) == 0u ? 4u : 1u;
    uint64_t words = binding(4);
    int64_t stale = 0l, stale_end = K.rows;
    if (words != 0ul) {
        stale = int64_t(U64(words).at[RT_UPDATE_STALE]);
        stale_end = int64_t(U64(words).at[RT_UPDATE_STALE_END]);
    }
    if (words != 0ul && tile_number() == 0u && lane() == 0u) {
        note_written(words);
    }
    for (int64_t at = int64_t(lane() * unit); at < bytes; at += lanes() * unit) {
        for (int64_t r = stale; binding(0) != binding(1) && r < stale_end; r++) {
            uint64_t offset = cache + uint64_t(r * K.row_bytes + at);
            move(binding(0) + offset, binding(1) + offset, unit);
        }
        for (int64_t i = batch * K.count; i < (batch + 1l) * K.count; i++) {
            int64_t place = int64_t(U64(binding(3) + uint64_t(8l * i)).at[0]);
            if (place >= 0l && place < K.rows) {
                move(binding(0) + cache + uint64_t(place * K.row_bytes + at),
                     binding(2) + uint64_t(i * K.row_bytes + first + at), unit);
            }
        }
    }
}
