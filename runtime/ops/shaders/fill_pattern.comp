/* SPDX-License-Identifier: MIT */
/* Fills a tensor with one value: 16 bytes, repeated. Each tile begins with the first of them: see
 * rt_fill_share(). */
#include "hal/vulkan/shaders/kernel.glsl"
#include "runtime/ops/fill.h"

CONSTANTS(rt_fill);

void main()
{
    uint64_t all = binding_bytes(0), share = ((all - 1ul) / push.grid.x / 16ul + 1ul) * 16ul;
    uint64_t begin = min(tile().x * share, all);
    uint bytes = uint(min(share, all - begin)), done = 0u;
    uint64_t to = binding(0) + begin;
    if ((uint(to) & 3u) == 0u) {
        done = bytes / 4u * 4u;
        for (uint i = lane(); i < done / 4u; i += lanes()) {
            U32(to).at[i] = U32(constants()).at[i % 4u];
        }
    }
    for (uint i = done + lane(); i < bytes; i += lanes()) {
        U8(to).at[i] = K.pattern[i % 16u];
    }
}
