/* SPDX-License-Identifier: MIT */
/* Functions of bytes, like qpointwise.c, by variant. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/qpointwise.h"

CONSTANTS(rt_qbytes);
#include "runtime/kernels/shaders/loop.glsl"

/* Rounds to nearest even and clamps to [min, max]. */
uint8_t requantize(float v)
{
    return uint8_t(clamp(int(roundEven(min(max(v, -65536.0), K.max))), int(K.min), 255));
}

float byte_at(uint operand, int64_t position)
{
    return float(uint(U8(loop_address(operand, position)).at[0]));
}

void main()
{
    EACH_POSITION(i)
    {
        uint8_t a = U8(loop_address(1u, i)).at[0], y = uint8_t(0);
        bool is_binary = K.loop.operands == 3u;
        if (variant == RT_QBYTES_ADD) {
            precise float v = (is_binary ? byte_at(2u, i) : 0.0) * K.b_scale + K.bias;
            v = float(uint(a)) * K.a_scale + v;
            y = requantize(v);
        } else if (variant == RT_QBYTES_MUL) {
            precise float v = (float(uint(a)) - K.a_zero) * (byte_at(2u, i) - K.b_zero);
            v = v * K.scale + K.bias;
            y = requantize(v);
        } else if (variant == RT_QBYTES_LOOKUP) {
            y = U8(binding(2)).at[uint(a)];
        } else {
            y = a ^ uint8_t(0x80);
        }
        U8(loop_address(0u, i)).at[0] = y;
    }
}
