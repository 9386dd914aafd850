/* SPDX-License-Identifier: MIT */
/*
 * Binding 0 into binding 1, of the same length; tiles have as many units of 16 bytes each. By 16
 * bytes where both are aligned to it, by 4 or single bytes elsewhere.
 */
#include "hal/vulkan/shaders/kernel.glsl"

void main()
{
    uint64_t all = binding_bytes(1), share = ((all - 1ul) / push.grid.x / 16ul + 1ul) * 16ul;
    uint64_t begin = min(tile().x * share, all);
    uint bytes = uint(min(share, all - begin));
    uint64_t from = binding(0) + begin, to = binding(1) + begin;
    uint align = uint(from | to) & 15u, done = 0;
    if (align == 0u) {
        U32x4 f = U32x4(from), t = U32x4(to);
        done = bytes / 16 * 16;
        for (uint i = lane(); i < done / 16; i += lanes()) {
            t.at[i] = f.at[i];
        }
    } else if ((align & 3u) == 0u) {
        U32 f = U32(from), t = U32(to);
        done = bytes / 4 * 4;
        for (uint i = lane(); i < done / 4; i += lanes()) {
            t.at[i] = f.at[i];
        }
    }
    for (uint i = done + lane(); i < bytes; i += lanes()) {
        U8(to).at[i] = U8(from).at[i];
    }
}
