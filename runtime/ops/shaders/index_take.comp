/* SPDX-License-Identifier: MIT */
/*
 * index, index_select and embedding of index.c. A place outside the table gives 0. Bindings: list,
 * table, then the index tensors. A lane moves units of a run: as many bytes as all addresses are
 * aligned to.
 */
#include "hal/vulkan/shaders/kernel.glsl"
#include "runtime/ops/index.h"

CONSTANTS(rt_index_constants);
#include "runtime/ops/shaders/index.glsl"

void main()
{
    uint unit = find_unit(0ul);
    int64_t begin = int64_t(tile().x) * K.tile_places, first = int64_t(tile().y) * K.tile_rows;
    int64_t places = min(K.tile_places, K.places - begin), rows = min(K.tile_rows, K.rows - first);
    int64_t offset = int64_t(tile().z) * K.piece;
    int64_t units = min(K.piece, K.run - offset) / unit;
    for (int64_t i = lane(); i < rows * places * units; i += lanes()) {
        int64_t place = begin + i / units % places, row = first + i / units / places;
        int64_t table = offset + i % units * unit, list = table;
        bool exists = true;
        for (uint k = 0u; k < K.count; k++) {
            int64_t at = read_place(k, place);
            exists = exists && at >= 0l;
            table += max(at, 0l) * K.steps[k];
        }
        for (uint d = K.rank; d-- > uint(K.rest);) {
            list += place % K.dims[d] * K.list[d];
            place /= K.dims[d];
        }
        for (uint d = K.rest; d-- > 0u;) {
            table += row % K.dims[d] * K.table[d];
            list += row % K.dims[d] * K.list[d];
            row /= K.dims[d];
        }
        move(binding(0) + uint64_t(list), binding(1) + uint64_t(table), exists, unit);
    }
}
