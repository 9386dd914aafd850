/* SPDX-License-Identifier: MIT */
/* cts_number: see tests/hal/cts.h. */
#include "hal/vulkan/shaders/kernel.glsl"

void main()
{
    uint i = tile_number();
    if (lane() == 0u) {
        U32 k = U32(constants());
        U32(binding(0)).at[i] = i * k.at[0] + k.at[1];
    }
}
