/* SPDX-License-Identifier: MIT */
/*
 * index_put of index.c. A lane owns some bytes in all rows of the rest: it first copies them for
 * all places, then puts in order, so that the last of several puts to one place stays and sums have
 * a fixed order. Places outside the table are skipped, and so are surplus trues of a mask.
 * Bindings: output, table, list, then the index tensors or the mask, then words.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/index.h"
#include "runtime/kernels/keep.h"

CONSTANTS(rt_index_constants);
#include "runtime/ops/shaders/index.glsl"

/*
 * Byte offset in the table of position |position| of the indexed dims, counted in row-major order.
 */
int64_t table_offset(int64_t position)
{
    int64_t offset = 0l;
    for (uint k = K.count; k-- > 0u;) {
        offset += position % K.sizes[k] * K.steps[k];
        position /= K.sizes[k];
    }
    return offset;
}

/* Copies all places; with |words|, which needs a single indexed dim, only those that may differ. */
void keep(uint64_t to, uint64_t from, uint unit, uint64_t words)
{
    int64_t begin = 0l, end = 1l;
    for (uint k = 0u; k < K.count; k++) {
        end *= K.sizes[k];
    }
    if (words != 0ul) {
        begin = int64_t(U64(words).at[RT_UPDATE_STALE]);
        end = int64_t(U64(words).at[RT_UPDATE_STALE_END]);
    }
    for (int64_t i = begin; i < end; i++) {
        uint64_t offset = uint64_t(table_offset(i));
        move(to + offset, from + offset, true, unit);
    }
}

void note_written(uint64_t words)
{
    int64_t first = K.sizes[0], end = 0l;
    for (int64_t i = 0l; i < K.places; i++) {
        int64_t place = max(read_place(0u, i), 0l);
        first = min(first, place);
        end = max(end, place + 1l);
    }
    U64(words).at[RT_UPDATE_WRITTEN] = uint64_t(first);
    U64(words).at[RT_UPDATE_WRITTEN_END] = uint64_t(end);
}

void put(uint64_t to, uint64_t from, uint unit)
{
    if (K.mode == RT_INDEX_PUT) {
        move(to, from, true, unit);
    } else if (is_float(K.dtype)) {
        store_float(to, K.dtype, load_float(to, K.dtype) + load_float(from, K.dtype));
    } else {
        store_int(to, K.dtype, load_int(to, K.dtype) + load_int(from, K.dtype));
    }
}

void put_trues(uint64_t table, uint64_t list, uint unit)
{
    int64_t trues = 0l;
    for (int64_t i = 0l; i < K.places && (K.values < 0l || trues < K.values); i++) {
        if (U8(binding(K.first) + uint64_t(i)).at[0] != uint8_t(0)) {
            put(table + uint64_t(table_offset(i)), list + uint64_t(trues * K.list[uint(K.rest)]),
                unit);
            trues++;
        }
    }
}

void put_places(uint64_t table, uint64_t list, uint unit)
{
    for (int64_t i = 0l; i < K.places; i++) {
        int64_t to = 0l, from = 0l, rest = i;
        bool exists = true;
        for (uint k = 0u; k < K.count; k++) {
            int64_t place = read_place(k, i);
            exists = exists && place >= 0l;
            to += place * K.steps[k];
        }
        for (uint d = K.rank; d-- > uint(K.rest);) {
            from += rest % K.dims[d] * K.list[d];
            rest /= K.dims[d];
        }
        if (exists) {
            put(table + uint64_t(to), list + uint64_t(from), unit);
        }
    }
}

void main()
{
    uint unit = K.mode == RT_INDEX_ADD ? dtype_width(K.dtype) : find_unit(binding(2));
    int64_t first = int64_t(tile().y) * K.tile_rows, rows = min(K.tile_rows, K.rows - first);
    int64_t offset = int64_t(tile().z) * K.piece;
    int64_t units = min(K.piece, K.run - offset) / unit;
    uint64_t words = binding(K.words);
    if (words != 0ul && tile_number() == 0u && lane() == 0u) {
        note_written(words);
    }
    for (int64_t i = lane(); i < rows * units; i += lanes()) {
        int64_t row = first + i / units, table = offset + i % units * unit, list = table;
        for (uint d = K.rest; d-- > 0u;) {
            table += row % K.dims[d] * K.table[d];
            list += row % K.dims[d] * K.list[d];
            row /= K.dims[d];
        }
        uint64_t to = binding(0) + uint64_t(table), from = binding(2) + uint64_t(list);
        if (binding(0) != binding(1)) {
            keep(to, binding(1) + uint64_t(table), unit, words);
        }
        if (K.is_mask != uint8_t(0)) {
            put_trues(to, from, unit);
        } else {
            put_places(to, from, unit);
        }
    }
}
