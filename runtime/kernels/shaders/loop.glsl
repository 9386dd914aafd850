/* SPDX-License-Identifier: MIT */
/* The loop nest K.loop of runtime/kernels/loop.h. Include this after CONSTANTS(). The lanes share a
 * tile's positions: EACH_POSITION(i) { ... loop_address(operand, i) ... } */
#define EACH_POSITION(i)                                                                           \
    for (int64_t i = int64_t(tile().x) * K.loop.tile + lane(),                                     \
                 end = min(int64_t(tile().x + 1u) * K.loop.tile, K.loop.numel);                    \
         i < end; i += lanes())

/* The address of position |position| of operand |operand|. Divides in 32 bits if they suffice. */
uint64_t loop_address(uint operand, int64_t position)
{
    int64_t offset = K.loop.offsets[operand];
    uint d = K.loop.rank - 1u;
    if (K.loop.numel <= 0xffffffffl) {
        uint rest = uint(position);
        for (; d > 0u; d--) {
            uint dim = uint(K.loop.dims[d]);
            offset += int64_t(rest % dim) * K.loop.strides[operand][d];
            rest /= dim;
        }
        position = int64_t(rest);
    }
    for (; d > 0u; d--) {
        int64_t rest = position / K.loop.dims[d];
        offset += (position - rest * K.loop.dims[d]) * K.loop.strides[operand][d];
        position = rest;
    }
    offset += position * K.loop.strides[operand][0];
    return binding(operand) + uint64_t(offset);
}
