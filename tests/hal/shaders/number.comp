/* SPDX-License-Identifier: MIT */
/* cts_number: see tests/hal/cts.h. */
#include "hal/vulkan/shaders/kernel.glsl"

void main()
{
    uint i = tile_number();
    if (lane() == 0u) {
        U32 constants = U32(push.constants);
        U32(binding(0)).at[i] = i * constants.at[0] + constants.at[1];
    }
}
