/* SPDX-License-Identifier: MIT */
/* Shared by both shaders of index.c: places, and copies of parts of a run. Include this after
 * CONSTANTS(). */
/* The place of index tensor |k| for the index dims' coordinates in |position|; -1: none. */
int64_t read_place(uint k, int64_t position)
{
    int64_t at = 0l, stride = 1l;
    for (uint d = K.rank; d-- > uint(K.rest);) {
        int64_t coordinate = position % K.dims[d];
        position /= K.dims[d];
        if ((uint(K.masks[k]) >> d & 1u) == 1u) {
            at += coordinate * stride;
            stride *= K.dims[d];
        }
    }
    uint64_t tensor = binding(K.first + k);
    int64_t place = (K.i32 >> k & 1u) == 1u ? int64_t(int32_t(U32(tensor + uint64_t(4l * at)).at[0]))
                                            : int64_t(U64(tensor + uint64_t(8l * at)).at[0]);
    place += place < 0l && K.wraps != uint8_t(0) ? K.sizes[k] : 0l;
    return place < 0l || place >= K.sizes[k] ? -1l : place;
}

/* The largest unit, up to 16 bytes, to which bindings 0, 1 and the one at |other| are aligned. */
uint find_unit(uint64_t other)
{
    uint64_t bits = binding(0) | binding(1) | other | uint64_t(K.run | K.piece | 16l);
    for (uint d = 0u; d < K.rank; d++) {
        bits |= uint64_t(K.list[d]) | (d < K.rest ? uint64_t(K.table[d]) : 0ul);
    }
    for (uint k = 0u; k < K.count; k++) {
        bits |= uint64_t(K.steps[k]);
    }
    return uint(bits) & (0u - uint(bits));
}

void move(uint64_t to, uint64_t from, bool exists, uint unit)
{
    switch (unit) {
    case 1:
        U8(to).at[0] = exists ? U8(from).at[0] : uint8_t(0);
        break;
    case 2:
        U16(to).at[0] = exists ? U16(from).at[0] : uint16_t(0);
        break;
    case 4:
        U32(to).at[0] = exists ? U32(from).at[0] : 0u;
        break;
    case 8:
        U64(to).at[0] = exists ? U64(from).at[0] : 0ul;
        break;
    default:
        U32x4(to).at[0] = exists ? U32x4(from).at[0] : uvec4(0u);
    }
}
