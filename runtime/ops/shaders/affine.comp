/* SPDX-License-Identifier: MIT */
/* y = x * scale + shift for each channel: a batch norm with fixed statistics. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/norm.h"

CONSTANTS(rt_affine_constants);
#include "runtime/kernels/shaders/loop.glsl"

void main()
{
    EACH_POSITION(i)
    {
        float x = load_float(loop_address(1u, i), K.dtype);
        float scale = F32(loop_address(2u, i)).at[0], shift = F32(loop_address(3u, i)).at[0];
        store_float(loop_address(0u, i), K.dtype, x * scale + shift);
    }
}
