/* SPDX-License-Identifier: MIT */
/*
 * masked_scatter of masked.c: one workgroup walks the whole tensor, PIECE positions for each lane
 * at a time, and its lanes share their counts. Elements for which the source is too short keep
 * their value. Bindings: output, tensor, mask, source.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/masked.h"

CONSTANTS(rt_masked);
#include "runtime/kernels/shaders/loop.glsl"

#define PIECE 8u

shared uint counts[gl_WorkGroupSize.x];

void move(uint64_t to, uint64_t from)
{
    switch (K.width) {
    case 1:
        U8(to).at[0] = U8(from).at[0];
        break;
    case 2:
        U16(to).at[0] = U16(from).at[0];
        break;
    case 4:
        U32(to).at[0] = U32(from).at[0];
        break;
    default:
        for (uint i = 0u; i < K.width / 8u; i++) {
            U64(to).at[i] = U64(from).at[i];
        }
    }
}

/* A bit for each of PIECE positions from |first| on: is the mask true there? */
uint find_set(int64_t first)
{
    uint bits = 0u;
    for (uint i = 0u; i < PIECE && first + i < K.loop.numel; i++) {
        bits |= uint(U8(loop_address(2u, first + i)).at[0] != uint8_t(0)) << i;
    }
    return bits;
}

void main()
{
    int64_t taken = 0l; /* elements of the source, the same for all lanes */
    for (int64_t begin = 0l; begin < K.loop.numel; begin += lanes() * PIECE) {
        int64_t first = begin + lane() * PIECE, own = taken;
        uint bits = find_set(first);
        barrier();
        counts[lane()] = bitCount(bits);
        barrier();
        for (uint l = 0u; l < lanes(); l++) {
            own += l < lane() ? counts[l] : 0u;
            taken += counts[l];
        }
        for (uint i = 0u; i < PIECE && first + i < K.loop.numel; i++) {
            bool is_put = (bits >> i & 1u) == 1u && own < K.source;
            move(loop_address(0u, first + i),
                 is_put ? binding(3) + uint64_t(own * K.width) : loop_address(1u, first + i));
            own += int64_t(bits >> i & 1u);
        }
    }
}
