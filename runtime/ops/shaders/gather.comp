/* SPDX-License-Identifier: MIT */
/* gather of gather.c. A place outside the table gives 0. Bindings: list, table, index. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/index.h"

CONSTANTS(rt_along_constants);

int64_t read_place(int64_t at)
{
    uint dtype = K.is_i32 == 1u ? DT_I32 : DT_I64;
    return load_int(binding(2) + uint64_t(at * dtype_width(dtype)), dtype);
}

void gather_one(int64_t list, int64_t table, bool exists)
{
    uint width = dtype_width(K.dtype);
    uint64_t to = binding(0) + uint64_t(list * width), from = binding(1) + uint64_t(table * width);
    switch (width) {
    case 1:
        U8(to).at[0] = exists ? U8(from).at[0] : uint8_t(0);
        break;
    case 2:
        U16(to).at[0] = exists ? U16(from).at[0] : uint16_t(0);
        break;
    case 4:
        U32(to).at[0] = exists ? U32(from).at[0] : 0u;
        break;
    default:
        U64(to).at[0] = exists ? U64(from).at[0] : 0ul;
    }
}

void main()
{
    int64_t begin = int64_t(tile().x) * K.tile_columns, first = int64_t(tile().y) * K.tile_rows;
    int64_t count = min(K.tile_columns, K.inner.index_size - begin);
    int64_t line = count * K.along.index_size, rows = min(K.tile_rows, K.rows - first);
    for (int64_t i = lane(); i < rows * line; i += lanes()) {
        int64_t row = first + i / line, k = i % line / count, column = begin + i % count;
        int64_t table = column * K.inner.table, list = column * K.inner.list + k * K.along.list;
        int64_t index = column * K.inner.index + k * K.along.index;
        for (uint d = K.rank; d-- > 0u;) {
            int64_t at = row % K.dims[d].index_size;
            row /= K.dims[d].index_size;
            table += at * K.dims[d].table;
            index += at * K.dims[d].index;
            list += at * K.dims[d].list;
        }
        int64_t place = read_place(index);
        bool exists = place >= 0l && place < K.along.table_size;
        gather_one(list, table + (exists ? place * K.along.table : 0l), exists);
    }
}
