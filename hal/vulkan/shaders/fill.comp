/* SPDX-License-Identifier: MIT */
/* Fills binding 0 with the 8 bytes of the constants, repeated. All tiles have the same number of
 * 16-byte units, so each tile begins with the first of the 8 bytes. */
#include "hal/vulkan/shaders/kernel.glsl"

void main()
{
    uint64_t all = binding_bytes(0), share = ((all - 1ul) / push.grid.x / 16ul + 1ul) * 16ul;
    uint64_t begin = min(tile().x * share, all);
    uint bytes = uint(min(share, all - begin)), done = 0;
    uint64_t to = binding(0) + begin;
    if ((uint(to) & 7u) == 0u) {
        uint64_t pattern = U64(constants()).at[0];
        done = bytes / 8 * 8;
        for (uint i = lane(); i < done / 8; i += lanes()) {
            U64(to).at[i] = pattern;
        }
    }
    for (uint i = done + lane(); i < bytes; i += lanes()) {
        U8(to).at[i] = U8(constants()).at[i % 8];
    }
}
