/* SPDX-License-Identifier: MIT */
/*
 * Copies binding 0 to binding 1, which has the same length. All tiles have the same number of
 * 16-byte units. Copies 16 bytes at a time if both are aligned to 16 bytes, else 4 bytes or single
 * bytes.
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
