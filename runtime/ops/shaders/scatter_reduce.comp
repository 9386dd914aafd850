/* SPDX-License-Identifier: MIT */
/*
 * scatter_reduce of gather.c: a lane owns an element of the table, and searches the index of its
 * column in order for the values of this element. Places outside the table are skipped. Bindings:
 * output, table, index, list.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/index.h"

CONSTANTS(rt_along_constants);

/* Elements of a column are |along| apart. */
struct Column {
    int64_t table, index, list; /* elements */
    bool is_indexed;
};

Column find_column(int64_t row, int64_t column)
{
    Column c = Column(column * K.inner.table, column * K.inner.index, column * K.inner.list,
                      column < K.inner.index_size);
    for (uint d = K.rank; d-- > 0u;) {
        int64_t at = row % K.dims[d].table_size;
        row /= K.dims[d].table_size;
        c.table += at * K.dims[d].table;
        c.index += at * K.dims[d].index;
        c.list += at * K.dims[d].list;
        c.is_indexed = c.is_indexed && at < K.dims[d].index_size;
    }
    return c;
}

bool is_taken(Column c, int64_t k, int64_t place)
{
    uint dtype = K.is_i32 == 1u ? DT_I32 : DT_I64;
    int64_t at = c.index + k * K.along.index;
    return load_int(binding(2) + uint64_t(at * dtype_width(dtype)), dtype) == place;
}

/* A NaN wins and stays. */
float add_float(float sum, float v)
{
    switch (K.mode) {
    case RT_ALONG_PROD:
        return sum * v;
    case RT_ALONG_AMAX:
        return is_nan(v) || sum < v ? v : sum;
    case RT_ALONG_AMIN:
        return is_nan(v) || v < sum ? v : sum;
    }
    return sum + v;
}

int64_t add_int(int64_t sum, int64_t v)
{
    switch (K.mode) {
    case RT_ALONG_PROD:
        return sum * v;
    case RT_ALONG_AMAX:
        return max(sum, v);
    case RT_ALONG_AMIN:
        return min(sum, v);
    }
    return sum + v;
}

/* Reduces the values for this element, including the table's own if |has_self|. A mean of integers
 * is rounded down. */
void reduce_float(Column c, int64_t place, uint64_t own, uint64_t to)
{
    uint width = dtype_width(K.dtype), count = K.has_self;
    float sum = load_float(own, K.dtype);
    for (int64_t k = 0l; k < K.along.index_size; k++) {
        if (is_taken(c, k, place)) {
            int64_t at = c.list + k * K.along.list;
            float v = load_float(binding(3) + uint64_t(at * width), K.dtype);
            sum = count == 0u ? v : add_float(sum, v);
            count++;
        }
    }
    store_float(to, K.dtype, K.mode == RT_ALONG_MEAN && count > 0u ? sum / float(count) : sum);
}

void reduce_int(Column c, int64_t place, uint64_t own, uint64_t to)
{
    uint width = dtype_width(K.dtype), count = K.has_self;
    int64_t sum = load_int(own, K.dtype);
    for (int64_t k = 0l; k < K.along.index_size; k++) {
        if (is_taken(c, k, place)) {
            int64_t at = c.list + k * K.along.list;
            int64_t v = load_int(binding(3) + uint64_t(at * width), K.dtype);
            sum = count == 0u ? v : add_int(sum, v);
            count++;
        }
    }
    if (K.mode == RT_ALONG_MEAN && count > 0u) {
        int64_t whole = sum / int64_t(count);
        sum = whole - (whole * int64_t(count) > sum ? 1l : 0l);
    }
    store_int(to, K.dtype, sum);
}

/* An element as it is. load_int() would read 8 bytes of a float, and GPUs read these only where 8
 * divides the address. */
void copy_element(uint64_t to, uint64_t from)
{
    if (is_float(K.dtype)) {
        store_float(to, K.dtype, load_float(from, K.dtype));
    } else {
        store_int(to, K.dtype, load_int(from, K.dtype));
    }
}

void main()
{
    uint width = dtype_width(K.dtype);
    int64_t begin = int64_t(tile().x) * K.tile_columns, first = int64_t(tile().y) * K.tile_rows;
    int64_t columns = min(K.tile_columns, K.inner.table_size - begin);
    int64_t rows = min(K.tile_rows, K.rows - first), line = columns * K.along.table_size;
    for (int64_t i = lane(); i < rows * line; i += lanes()) {
        Column c = find_column(first + i / line, begin + i % columns);
        int64_t place = i % line / columns;
        uint64_t at = uint64_t((c.table + place * K.along.table) * width);
        uint64_t own = binding(1) + at, to = binding(0) + at;
        if (!c.is_indexed) {
            copy_element(to, own);
        } else if (is_float(K.dtype)) {
            reduce_float(c, place, own, to);
        } else {
            reduce_int(c, place, own, to);
        }
    }
}
