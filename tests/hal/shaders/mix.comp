/* SPDX-License-Identifier: MIT */
/* cts_mix: see tests/hal/cts.h. The dispatch has five bindings, those without bytes at the end. */
#include "hal/vulkan/shaders/kernel.glsl"

void main()
{
    uint64_t h = U64(constants()).at[0];
    for (uint i = 1; i < 5 && binding(i) != 0; i++) {
        h = (h ^ U64(binding(i)).at[0]) * 0x9E3779B97F4A7C15ul;
        h ^= h >> 29;
    }
    if (lane() == 0u) {
        U64(binding(0)).at[0] = h + 1;
    }
}
