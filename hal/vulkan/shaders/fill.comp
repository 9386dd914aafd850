/* SPDX-License-Identifier: MIT */
/*
 * The constants, 8 bytes, again and again into binding 0; 65536 bytes a tile, so that every tile
 * begins with the first of the 8.
 */
#include "hal/vulkan/shaders/kernel.glsl"

const uint64_t tile_bytes = 65536ul;

void main()
{
    uint64_t begin = uint64_t(tile().x) * tile_bytes;
    uint bytes = uint(min(tile_bytes, binding_bytes(0) - begin)), done = 0;
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
