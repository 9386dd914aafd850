/* SPDX-License-Identifier: MIT */
/*
 * scatter of gather.c: a lane owns a column of a row, copies the table's column and then goes
 * through its index in order. Places outside the table are skipped. Bindings: output, table, index,
 * list.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/index.h"

CONSTANTS(rt_along_constants);

int64_t read_place(int64_t at)
{
    uint dtype = K.is_i32 == 1u ? DT_I32 : DT_I64;
    return load_int(binding(2) + uint64_t(at * dtype_width(dtype)), dtype);
}

/* Copies |width| bytes from |from|, or from |value| if |from| is 0. */
void move(uint64_t to, uint64_t from, uint64_t value, uint width)
{
    switch (width) {
    case 1:
        U8(to).at[0] = from != 0ul ? U8(from).at[0] : uint8_t(value);
        break;
    case 2:
        U16(to).at[0] = from != 0ul ? U16(from).at[0] : uint16_t(value);
        break;
    case 4:
        U32(to).at[0] = from != 0ul ? U32(from).at[0] : uint32_t(value);
        break;
    default:
        U64(to).at[0] = from != 0ul ? U64(from).at[0] : value;
    }
}

void put(uint64_t to, uint64_t from)
{
    if (K.mode != RT_ALONG_ADD) {
        move(to, K.mode == RT_ALONG_FILL ? 0ul : from, K.value, dtype_width(K.dtype));
    } else if (is_float(K.dtype)) {
        store_float(to, K.dtype, load_float(to, K.dtype) + load_float(from, K.dtype));
    } else {
        store_int(to, K.dtype, load_int(to, K.dtype) + load_int(from, K.dtype));
    }
}

void main()
{
    uint width = dtype_width(K.dtype);
    int64_t begin = int64_t(tile().x) * K.tile_columns, first = int64_t(tile().y) * K.tile_rows;
    int64_t count = min(K.tile_columns, K.inner.table_size - begin);
    int64_t rows = min(K.tile_rows, K.rows - first);
    for (int64_t i = lane(); i < rows * count; i += lanes()) {
        int64_t row = first + i / count, column = begin + i % count;
        int64_t table = column * K.inner.table, list = column * K.inner.list;
        int64_t index = column * K.inner.index;
        bool is_indexed = column < K.inner.index_size;
        for (uint d = K.rank; d-- > 0u;) {
            int64_t at = row % K.dims[d].table_size;
            row /= K.dims[d].table_size;
            table += at * K.dims[d].table;
            index += at * K.dims[d].index;
            list += at * K.dims[d].list;
            is_indexed = is_indexed && at < K.dims[d].index_size;
        }
        for (int64_t k = 0l; binding(0) != binding(1) && k < K.along.table_size; k++) {
            uint64_t offset = uint64_t((table + k * K.along.table) * width);
            move(binding(0) + offset, binding(1) + offset, 0ul, width);
        }
        for (int64_t k = 0l; is_indexed && k < K.along.index_size; k++) {
            int64_t place = read_place(index + k * K.along.index);
            if (place >= 0l && place < K.along.table_size) {
                put(binding(0) + uint64_t((table + place * K.along.table) * width),
                    binding(3) + uint64_t((list + k * K.along.list) * width));
            }
        }
    }
}
