/* SPDX-License-Identifier: MIT */
/* y = x * scale + shift for each channel of pixels, whose channels may be turned round: pixels.c. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/pixels.h"

CONSTANTS(rt_pixels_constants);
#include "runtime/kernels/shaders/loop.glsl"

void main()
{
    EACH_POSITION(i)
    {
        float x = float(U8(loop_address(1u, i)).at[0]);
        float scale = F32(loop_address(2u, i)).at[0], shift = F32(loop_address(3u, i)).at[0];
        F32(loop_address(0u, i)).at[0] = x * scale + shift;
    }
}
