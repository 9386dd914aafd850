/* SPDX-License-Identifier: MIT */
/* Both kernels of copy.c, by variant. Elements are moved in units to which all addresses are
 * aligned, because a wide element may be a run of narrow ones. */
#include "hal/vulkan/shaders/kernel.glsl"
#include "runtime/kernels/copy.h"

CONSTANTS(rt_copy_constants);
#include "runtime/kernels/shaders/loop.glsl"

/* The distance in bytes that operand |o| moves in this run. */
int64_t moved(uint o)
{
    return K.steps[o] == 0l ? 0l : int64_t(U64(binding(2)).at[0]) * K.steps[o];
}

/* Combines the bits of all numbers that are added to form an address. */
uint alignment()
{
    uint64_t bits = binding(0) | binding(1) | uint64_t(K.width);
    for (uint o = 0u; o < 2u; o++) {
        bits |= uint64_t(K.loop.offsets[o]) | uint64_t(K.steps[o]);
        for (uint d = 0u; d < K.loop.rank; d++) {
            bits |= uint64_t(K.loop.strides[o][d]);
        }
    }
    return uint(bits) & 15u;
}

void move(uint64_t to, uint64_t from, uint align)
{
    if (align == 0u) {
        U32x4(to).at[0] = U32x4(from).at[0];
    } else if ((align & 7u) == 0u) {
        for (uint i = 0u; i < K.width / 8u; i++) {
            U64(to).at[i] = U64(from).at[i];
        }
    } else if ((align & 3u) == 0u) {
        for (uint i = 0u; i < K.width / 4u; i++) {
            U32(to).at[i] = U32(from).at[i];
        }
    } else if ((align & 1u) == 0u) {
        for (uint i = 0u; i < K.width / 2u; i++) {
            U16(to).at[i] = U16(from).at[i];
        }
    } else {
        for (uint i = 0u; i < K.width; i++) {
            U8(to).at[i] = U8(from).at[i];
        }
    }
}

void copy_runs(uint align)
{
    uint64_t to = uint64_t(moved(0u)), from = uint64_t(moved(1u));
    EACH_POSITION(i)
    {
        move(loop_address(0u, i) + to, loop_address(1u, i) + from, align);
    }
}

/* Lanes go along i, the target's contiguous dim, so that they write contiguously. */
void copy_transpose(uint align)
{
    uint i = K.loop.rank - 1u, j = K.loop.rank - 2u;
    int64_t begin_i = int64_t(tile().x) * K.tile_i, begin_j = int64_t(tile().y) * K.tile_j;
    uint n_i = uint(min(K.tile_i, K.loop.dims[i] - begin_i));
    uint n_j = uint(min(K.tile_j, K.loop.dims[j] - begin_j));
    int64_t planes = K.loop.numel / (K.loop.dims[i] * K.loop.dims[j]);
    int64_t first = int64_t(tile().z) * K.tile_outer;
    for (int64_t outer = first; outer < min(first + K.tile_outer, planes); outer++) {
        int64_t to = moved(0u) + K.loop.offsets[0] + begin_j * K.loop.strides[0][j] + begin_i * K.width;
        int64_t from = moved(1u) + K.loop.offsets[1] + begin_i * K.loop.strides[1][i] + begin_j * K.width;
        int64_t rest = outer;
        for (uint d = j; d-- > 0u;) {
            int64_t index = rest % K.loop.dims[d];
            rest /= K.loop.dims[d];
            to += index * K.loop.strides[0][d];
            from += index * K.loop.strides[1][d];
        }
        for (uint at = lane(); at < n_i * n_j; at += lanes()) {
            uint x = at % n_i, y = at / n_i;
            move(binding(0) + uint64_t(to + y * K.loop.strides[0][j] + x * K.width),
                 binding(1) + uint64_t(from + x * K.loop.strides[1][i] + y * K.width), align);
        }
    }
}

void main()
{
    uint align = alignment();
    if (variant == RT_COPY_RUNS) {
        copy_runs(align);
    } else {
        copy_transpose(align);
    }
}
