/* SPDX-License-Identifier: MIT */
/* tril of pad.c, in units of up to 8 bytes. Bindings: output, input. */
#include "hal/vulkan/shaders/kernel.glsl"
#include "runtime/ops/pad.h"

CONSTANTS(rt_tril);

void main()
{
    uint unit = min(K.bytes, 8u), parts = K.bytes / unit;
    int64_t first = int64_t(tile().x) * K.tile, units = K.width * parts;
    int64_t rows = min(K.tile, K.rows - first);
    for (int64_t i = lane(); i < rows * units; i += lanes()) {
        int64_t row = first + i / units;
        bool is_kept = i % units / parts <= row % K.height + K.diagonal;
        uint64_t offset = uint64_t((first * units + i) * unit);
        uint64_t to = binding(0) + offset, from = binding(1) + offset;
        switch (unit) {
        case 1:
            U8(to).at[0] = is_kept ? U8(from).at[0] : uint8_t(0);
            break;
        case 2:
            U16(to).at[0] = is_kept ? U16(from).at[0] : uint16_t(0);
            break;
        case 4:
            U32(to).at[0] = is_kept ? U32(from).at[0] : 0u;
            break;
        default:
            U64(to).at[0] = is_kept ? U64(from).at[0] : 0ul;
        }
    }
}
