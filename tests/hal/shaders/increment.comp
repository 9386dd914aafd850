/* SPDX-License-Identifier: MIT */
/* cts_increment: see tests/hal/cts.h. */
#include "hal/vulkan/shaders/kernel.glsl"

void main()
{
    if (lane() == 0u) {
        U32(binding(0)).at[tile_number()] += 1u;
    }
}
