/* SPDX-License-Identifier: MIT */
/*
 * gather, scatter and scatter_reduce: each element of an index tensor names a place along one dim
 * of a table. The index and the list (the tensor that is gathered or scattered) have the table's
 * rank; along the other dims they are at most as long as the table.
 *
 * A place outside the table, also a negative one, is a fault, as in PyTorch. A tile of a scatter
 * owns a part of the other dims and walks its index in order, so that the last of several values
 * for one place stays and sums have a fixed order.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/table.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/element.h"
#include "runtime/ops/index.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"
#include "runtime/ops/view_priv.h"

#define SEARCHES_MAX (1 << 20) /* of a column: reducing it needs no further memory */

/* A part of a row: columns [begin, begin + count) of the inner dim. */
struct along_row {
    const struct hal_args *args;
    const void *index;
    char *table;
    char *list;
    int64_t begin, count;
};

static int64_t read_place(const struct rt_along_constants *c, const struct along_row *row,
                          int64_t at)
{
    const void *from = (const char *)row->index + at * (c->is_i32 ? 4 : 8);
    int64_t place = c->is_i32 ? *(const int32_t *)from : *(const int64_t *)from;
    if (place < 0 || place >= c->along.table_size) {
        hal_fault(row->args, HAL_FAULT_INDEX,
                  &(struct hal_fault_number){from, place, 0, c->along.table_size - 1});
        return -1;
    }
    return place;
}

/* ---- gather ---------------------------------------------------------------------------------- */

#define DEFINE_GATHER(name, type)                                                                  \
    static void name(const struct rt_along_constants *c, const struct along_row *row)              \
    {                                                                                              \
        const type *table = (const type *)row->table;                                              \
        type *list = (type *)row->list;                                                            \
        for (int64_t k = 0; k < c->along.index_size; k++) {                                        \
            for (int64_t i = row->begin; i < row->begin + row->count; i++) {                       \
                int64_t place = read_place(c, row, k * c->along.index + i * c->inner.index);       \
                list[k * c->along.list + i * c->inner.list] =                                      \
                    place < 0 ? 0 : table[place * c->along.table + i * c->inner.table];            \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_GATHER(gather_1, uint8_t)
DEFINE_GATHER(gather_2, uint16_t)
DEFINE_GATHER(gather_4, uint32_t)
DEFINE_GATHER(gather_8, uint64_t)

static void gather_row(const struct rt_along_constants *c, const struct along_row *row)
{
    switch (dtype_bytes(c->dtype)) {
    case 1:
        gather_1(c, row);
        break;
    case 2:
        gather_2(c, row);
        break;
    case 4:
        gather_4(c, row);
        break;
    default:
        gather_8(c, row);
        break;
    }
}

/* Finds row |r|; false when the index does not have that row. Offsets in elements. */
static bool find_row(const struct rt_along_constants *c, int64_t r, int64_t *table, int64_t *index,
                     int64_t *list)
{
    bool is_indexed = true;

    *table = *index = *list = 0;
    for (uint32_t d = c->rank; d-- > 0;) {
        const struct rt_along_dim *dim = &c->dims[d];
        int64_t size = c->mode == RT_ALONG_GATHER ? dim->index_size : dim->table_size;
        int64_t at = r % size;
        r /= size;
        *table += at * dim->table;
        *index += at * dim->index;
        *list += at * dim->list;
        is_indexed = is_indexed && at < dim->index_size;
    }
    return is_indexed;
}

static const void *index_at(const struct rt_along_constants *c, const void *index, int64_t offset)
{
    return (const char *)index + offset * (c->is_i32 ? 4 : 8);
}

/* Bindings: list, table, index. */
static void along_gather(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_along_constants *c = args->constants;
    int64_t width = (int64_t)dtype_bytes(c->dtype), table, index, list;
    int64_t first = tile.y * c->tile_rows, behind = rt_min(first + c->tile_rows, c->rows);
    struct along_row row = {.args = args, .begin = tile.x * c->tile_columns};

    row.count = rt_min(c->tile_columns, c->inner.index_size - row.begin);
    for (int64_t r = first; r < behind; r++) {
        find_row(c, r, &table, &index, &list);
        row.list = (char *)args->bindings[0] + list * width;
        row.table = (char *)args->bindings[1] + table * width;
        row.index = index_at(c, args->bindings[2], index);
        gather_row(c, &row);
    }
}

static const struct hal_kernel kernel_gather = {
    .name = "gather", .cpu = along_gather, .spirv = HAL_SPIRV(gather_spirv)};

/* ---- scatter --------------------------------------------------------------------------------- */

static void scatter_row(const struct rt_along_constants *c, const struct along_row *row)
{
    size_t width = dtype_bytes(c->dtype);

    for (int64_t k = 0; k < c->along.index_size; k++) {
        for (int64_t i = row->begin; i < row->begin + row->count; i++) {
            int64_t place = read_place(c, row, k * c->along.index + i * c->inner.index);
            if (place < 0) {
                continue;
            }
            char *dst = row->table + (place * c->along.table + i * c->inner.table) * (int64_t)width;
            const char *src =
                c->mode == RT_ALONG_FILL
                    ? (const char *)c->value.bytes
                    : row->list + (k * c->along.list + i * c->inner.list) * (int64_t)width;
            if (c->mode == RT_ALONG_ADD) {
                rt_element_add(dst, src, 1, c->dtype);
            } else {
                memcpy(dst, src, width);
            }
        }
    }
}

/* Columns of a row that are reduced together: memory is read in its order. So many, or as many as
 * have room; at least one. */
#define COLUMNS_MAX 64
#define COLUMNS_BYTES (2 * 1024 * 1024)

static int64_t class_bytes(enum dtype dtype)
{
    return rt_convert_class(dtype) == RT_CLASS_F32 ? 4 : 8;
}

/* Scratch memory for |columns| of them. */
static int64_t columns_bytes(const struct rt_along_constants *c, int64_t columns)
{
    return c->along.table_size * columns * (class_bytes(c->dtype) + (int64_t)sizeof(uint32_t));
}

static int64_t columns_together(const struct rt_along_constants *c)
{
    int64_t most = rt_min(COLUMNS_MAX, c->inner.table_size);
    return rt_max(1, rt_min(most, COLUMNS_BYTES / columns_bytes(c, 1)));
}

/* Columns [first, first + count) of a row, in the class that the reduction computes in: a place has
 * |count| neighbours. |counts| says how many values each has received. */
struct along_columns {
    int64_t first, count;
    union {
        float *f32;
        double *f64;
        int64_t *i64;
        void *any;
    } at;
    uint32_t *counts;
};

/* Some numbers of the list: for each the slot among the columns that takes it, -1 if there is none.
 */
struct along_values {
    int64_t count, slots[COLUMNS_MAX];
    union {
        float f32[COLUMNS_MAX];
        double f64[COLUMNS_MAX];
        int64_t i64[COLUMNS_MAX];
    } at;
};

#define EACH(type, result)                                                                         \
    for (int64_t i = 0; i < count; i++) {                                                          \
        if (slots[i] >= 0) {                                                                       \
            type *at = &sums[slots[i]], value = list[i];                                           \
            *at = result;                                                                          \
        }                                                                                          \
    }

/* a NaN wins and stays */
#define DEFINE_REDUCE(class, type, is_nan, low, high)                                              \
    static void begin_##class(const struct rt_along_constants *c, type *at)                        \
    {                                                                                              \
        *at = c->mode == RT_ALONG_PROD   ? 1                                                       \
              : c->mode == RT_ALONG_AMAX ? (low)                                                   \
              : c->mode == RT_ALONG_AMIN ? (high)                                                  \
                                         : 0;                                                      \
    }                                                                                              \
    static void reduce_##class(const struct rt_along_constants *c,                                 \
                               const struct along_columns *columns,                                \
                               const struct along_values *restrict values)                         \
    {                                                                                              \
        const int64_t count = values->count, *restrict slots = values->slots;                      \
        const type *restrict list = values->at.class;                                              \
        type *restrict sums = columns->at.class;                                                   \
        switch (c->mode) {                                                                         \
        case RT_ALONG_PROD:                                                                        \
            EACH(type, MULTIPLY_##class(*at, value))                                               \
            break;                                                                                 \
        case RT_ALONG_AMAX:                                                                        \
            EACH(type, (is_nan) || *at < value ? value : *at)                                      \
            break;                                                                                 \
        case RT_ALONG_AMIN:                                                                        \
            EACH(type, (is_nan) || value < *at ? value : *at)                                      \
            break;                                                                                 \
        default:                                                                                   \
            EACH(type, ADD_##class(*at, value))                                                    \
            break;                                                                                 \
        }                                                                                          \
    }

#define ADD_f32(a, b) ((a) + (b))
#define ADD_f64(a, b) ((a) + (b))
#define ADD_i64(a, b) (int64_t)((uint64_t)(a) + (uint64_t)(b))
#define MULTIPLY_f32(a, b) ((a) * (b))
#define MULTIPLY_f64(a, b) ((a) * (b))
#define MULTIPLY_i64(a, b) (int64_t)((uint64_t)(a) * (uint64_t)(b))
DEFINE_REDUCE(f32, float, value != value, -INFINITY, INFINITY)
DEFINE_REDUCE(f64, double, value != value, -(double)INFINITY, (double)INFINITY)
DEFINE_REDUCE(i64, int64_t, false, INT64_MIN, INT64_MAX)

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0); /* counts are positive */
}

static void divide(const struct rt_along_constants *c, enum rt_class class,
                   const struct along_columns *columns)
{
    for (int64_t n = 0; n < c->along.table_size * columns->count; n++) {
        int64_t count = (int64_t)columns->counts[n] + c->has_self;
        if (count == 0) {
            continue; /* no value came: the table keeps its content */
        }
        if (class == RT_CLASS_F32) {
            columns->at.f32[n] /= (float)count;
        } else if (class == RT_CLASS_F64) {
            columns->at.f64[n] /= (double)count;
        } else {
            columns->at.i64[n] = floor_divide(columns->at.i64[n], count);
        }
    }
}

/* Loads the columns from the table or stores them there. */
static void move_columns(const struct rt_along_constants *c, enum rt_class class,
                         const struct along_columns *columns, char *table, bool loads)
{
    int64_t width = (int64_t)dtype_bytes(c->dtype), step = c->inner.table * width;
    int64_t bytes = columns->count * (class_bytes(c->dtype));
    char *at = columns->at.any;
    table += columns->first * step;
    for (int64_t n = 0; n < c->along.table_size; n++, at += bytes) {
        char *place = table + n * c->along.table * width;
        if (loads) {
            rt_convert_load(c->dtype, class)(at, place, step, columns->count);
        } else {
            rt_convert_store(class, c->dtype)(place, step, at, columns->count);
        }
    }
}

/* Finds the slots of |count| values of a single column, whose places are at |at| and behind. */
static void find_slots(const struct rt_along_constants *c, const struct along_row *row, int64_t at,
                       int64_t count, int64_t *restrict slots)
{
    const int64_t step = c->along.index, size = c->along.table_size;
    const int64_t *places = c->is_i32 ? NULL : (const int64_t *)row->index + at;
    for (int64_t i = 0; i < count; i++) {
        int64_t place = places ? places[i * step] : -1;
        slots[i] = place >= 0 && place < size ? place : read_place(c, row, at + i * step);
    }
}

/* Reads rows [k, k + rows) of the list's columns, and where they belong. */
static void read_values(const struct rt_along_constants *c, const struct along_row *row,
                        const struct along_columns *columns, int64_t k, int64_t rows,
                        struct along_values *restrict values)
{
    int64_t width = (int64_t)dtype_bytes(c->dtype), count = columns->count;
    rt_load_f *load = rt_convert_load(c->dtype, rt_convert_class(c->dtype));
    const char *from = row->list + (k * c->along.list + columns->first * c->inner.list) * width;
    int64_t index = k * c->along.index + columns->first * c->inner.index;
    char *to = (char *)&values->at;

    values->count = rows * count;
    if (count == 1) {
        load(to, from, c->along.list * width, rows);
        find_slots(c, row, index, rows, values->slots);
        return;
    }
    for (int64_t line = 0, n = 0; line < rows; line++) {
        int64_t at = index + line * c->along.index;
        load(to + n * class_bytes(c->dtype), from + line * c->along.list * width,
             c->inner.list * width, count);
        for (int64_t i = 0; i < count; i++, n++, at += c->inner.index) {
            int64_t place = read_place(c, row, at);
            values->slots[n] = place < 0 ? -1 : place * count + i;
        }
    }
}

/* Counts what each slot receives. A place that receives a value first forgets its own, unless the
 * reduction includes it. */
static void count_values(const struct rt_along_constants *c, enum rt_class class,
                         const struct along_columns *columns, const struct along_values *values)
{
    for (int64_t i = 0; i < values->count; i++) {
        int64_t slot = values->slots[i];
        if (slot < 0 || columns->counts[slot]++ > 0 || c->has_self) {
            continue;
        }
        if (class == RT_CLASS_F32) {
            begin_f32(c, &columns->at.f32[slot]);
        } else if (class == RT_CLASS_F64) {
            begin_f64(c, &columns->at.f64[slot]);
        } else {
            begin_i64(c, &columns->at.i64[slot]);
        }
    }
}

static void reduce_columns(const struct rt_along_constants *c, const struct along_row *row,
                           const struct along_columns *columns)
{
    enum rt_class class = rt_convert_class(c->dtype);
    size_t slots = (size_t)(c->along.table_size * columns->count);
    bool counts = c->mode == RT_ALONG_MEAN || !c->has_self;
    struct along_values values;

    move_columns(c, class, columns, row->table, true);
    memset(columns->counts, 0, counts ? slots * sizeof(*columns->counts) : 0);
    for (int64_t k = 0, n; k < c->along.index_size; k += n) {
        n = rt_min(COLUMNS_MAX / columns->count, c->along.index_size - k);
        read_values(c, row, columns, k, n, &values);
        if (counts) {
            count_values(c, class, columns, &values);
        }
        if (class == RT_CLASS_F32) {
            reduce_f32(c, columns, &values);
        } else if (class == RT_CLASS_F64) {
            reduce_f64(c, columns, &values);
        } else {
            reduce_i64(c, columns, &values);
        }
    }
    if (c->mode == RT_ALONG_MEAN) {
        divide(c, class, columns);
    }
    move_columns(c, class, columns, row->table, false);
}

static void reduce_row(const struct rt_along_constants *c, const struct along_row *row)
{
    int64_t together = columns_together(c), behind = row->begin + row->count;
    char *scratch = row->args->scratch;
    int64_t values = c->along.table_size * together * class_bytes(c->dtype);
    for (int64_t i = row->begin; i < behind; i += together) {
        struct along_columns columns = {
            .first = i,
            .count = rt_min(together, behind - i),
            .at = {.any = scratch},
            .counts = (uint32_t *)(void *)(scratch + values),
        };
        reduce_columns(c, row, &columns);
    }
}

static void keep_row(const struct rt_along_constants *c, char *dst, const char *src, int64_t begin,
                     int64_t count)
{
    int64_t width = (int64_t)dtype_bytes(c->dtype);

    for (int64_t k = 0; k < c->along.table_size; k++) {
        int64_t offset = (k * c->along.table + begin * c->inner.table) * width;
        rt_copy_run(dst + offset, c->inner.table * width, src + offset, c->inner.table * width,
                    count, (uint32_t)width);
    }
}

/* Bindings: output, table, index, list. */
static void along_scatter(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_along_constants *c = args->constants;
    int64_t width = (int64_t)dtype_bytes(c->dtype), table, index, list;
    int64_t first = tile.y * c->tile_rows, behind = rt_min(first + c->tile_rows, c->rows);
    int64_t begin = tile.x * c->tile_columns;
    int64_t kept = rt_min(c->tile_columns, c->inner.table_size - begin);
    char *out = args->bindings[0], *self = args->bindings[1];

    for (int64_t r = first; r < behind; r++) {
        bool is_indexed = find_row(c, r, &table, &index, &list);
        if (out != self) {
            keep_row(c, out + table * width, self + table * width, begin, kept);
        }
        if (is_indexed) {
            struct along_row row = {.args = args,
                                    .index = index_at(c, args->bindings[2], index),
                                    .table = out + table * width,
                                    .list = (char *)args->bindings[3] + list * width,
                                    .begin = begin,
                                    .count = rt_min(kept, c->inner.index_size - begin)};
            (c->mode >= RT_ALONG_SUM ? reduce_row : scatter_row)(c, &row);
        }
    }
}

static const struct hal_kernel kernel_scatter = {
    .name = "scatter", .cpu = along_scatter, .spirv = HAL_SPIRV(scatter_spirv)};
static const struct hal_kernel kernel_scatter_host = {.name = "scatter", .cpu = along_scatter};
static const struct hal_kernel kernel_reduce = {
    .name = "scatter_reduce", .cpu = along_scatter, .spirv = HAL_SPIRV(scatter_reduce_spirv)};
static const struct hal_kernel kernel_reduce_host = {.name = "scatter_reduce",
                                                     .cpu = along_scatter};

/* Shaders do not add doubles or complex numbers. */
static const struct hal_kernel *scatter_kernel(enum rt_along_mode mode, enum dtype dtype)
{
    bool is_wide = dtype == DT_F64 || dtype_infos[dtype].kind == DTYPE_COMPLEX;
    if (mode >= RT_ALONG_SUM) {
        return is_wide ? &kernel_reduce_host : &kernel_reduce;
    }
    return mode == RT_ALONG_ADD && is_wide ? &kernel_scatter_host : &kernel_scatter;
}

/* For each element of the table a shader searches a column's index: only short ones. */
static bool is_too_deep(const struct rt_along_constants *c)
{
    return c->mode >= RT_ALONG_SUM &&
           c->along.index_size > SEARCHES_MAX / rt_max(c->along.table_size, 1);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* A tensor of rank 0 is treated as one of rank 1 here. */
static uint8_t rank_of(const struct rt_value *value)
{
    return value->rank ? value->rank : 1;
}

static enum status along_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *index = rt_shape_arg(call, 2);
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_need_dim(call, 1, &dim));
    if (rt_dim_is(rt_value_numel(call->graph, index), 0)) {
        return ST_OK; /* of any type and rank */
    }
    TRY(rt_shape_need_dtype(call, 2, 1u << DT_I32 | 1u << DT_I64));
    if (rank_of(index) != rank_of(self)) {
        return rt_shape_refuse(call, "the index has rank %u, expected %u (the tensor's)",
                               index->rank, self->rank);
    }
    return ST_OK;
}

static enum status gather_shape(struct rt_shape_call *call)
{
    TRY(along_shape(call));
    return rt_shape_set_out_like(call, 0, 2);
}

static enum status scatter_value_shape(struct rt_shape_call *call)
{
    TRY(along_shape(call));
    return rt_shape_set_out_like(call, 0, 0);
}

static enum status scatter_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *list = rt_shape_arg(call, 3);

    TRY(along_shape(call));
    TRY(rt_shape_need_dtype(call, 3, 1u << self->dtype));
    if (rank_of(list) != rank_of(self)) {
        return rt_shape_refuse(call, "the source has rank %u, expected %u (the tensor's)",
                               list->rank, self->rank);
    }
    return rt_shape_set_out_like(call, 0, 0);
}

/* The reduction that argument |index| names; without the argument, RT_ALONG_GATHER. */
static enum rt_along_mode find_reduction(const struct rt_value *name)
{
    static const char *const names[] = {[RT_ALONG_SUM] = "sum",
                                        [RT_ALONG_PROD] = "prod",
                                        [RT_ALONG_MEAN] = "mean",
                                        [RT_ALONG_AMAX] = "amax",
                                        [RT_ALONG_AMIN] = "amin"};
    TABLE_ENDS_WITH(names, RT_ALONG_AMIN);

    for (enum rt_along_mode mode = RT_ALONG_SUM; mode <= RT_ALONG_AMIN; mode++) {
        if (span_is(name->bytes, names[mode])) {
            return mode;
        }
    }
    return RT_ALONG_GATHER;
}

static enum status scatter_reduce_shape(struct rt_shape_call *call)
{
    const struct rt_value *name = rt_shape_arg(call, 4);

    if (find_reduction(name) == RT_ALONG_GATHER) {
        return rt_shape_refuse(call, "reduction '%.*s', expected sum, prod, mean, amax or amin",
                               (int)rt_min((int64_t)name->bytes.len, 32),
                               (const char *)name->bytes.ptr);
    }
    return scatter_shape(call);
}

/* ---- recording ------------------------------------------------------------------------------- */

static struct rt_tensor with_dims(const struct rt_tensor *tensor)
{
    struct rt_tensor copy = *tensor;

    if (copy.rank == 0) {
        copy.rank = 1;
        copy.dims[0] = copy.strides[0] = 1;
    }
    return copy;
}

static struct rt_along_dim dim_of(const struct rt_tensor *table, const struct rt_tensor *index,
                                  const struct rt_tensor *list, uint8_t d)
{
    return (struct rt_along_dim){table->dims[d], index->dims[d], table->strides[d],
                                 index->strides[d], list->strides[d]};
}

/* The index fits into the table, except along |dim|, and into the list. */
static enum status check_sizes(const struct rt_tensor *table, const struct rt_tensor *index,
                               const struct rt_tensor *list, uint8_t dim, struct error *err)
{
    for (uint8_t d = 0; d < index->rank; d++) {
        int64_t most = d == dim || table->dims[d] > list->dims[d] ? list->dims[d] : table->dims[d];
        if (index->dims[d] > most) {
            return error_set(err, ST_INVALID,
                             "the index has size %" PRId64
                             " along dim %u, expected at most %" PRId64,
                             index->dims[d], d, most);
        }
    }
    return ST_OK;
}

static void fill_constants(struct rt_along_constants *c, const struct rt_tensor *table,
                           const struct rt_tensor *index, const struct rt_tensor *list, uint8_t dim)
{
    c->dtype = table->dtype;
    c->is_i32 = index->dtype == DT_I32;
    c->rows = 1;
    c->along = c->inner = (struct rt_along_dim){.table_size = 1, .index_size = 1};
    for (uint8_t d = 0; d < table->rank; d++) {
        struct rt_along_dim one = dim_of(table, index, list, d);
        if (d == dim) {
            c->along = one;
        } else if (d == table->rank - 1) {
            c->inner = one;
        } else {
            c->rows *= c->mode == RT_ALONG_GATHER ? one.index_size : one.table_size;
            c->dims[c->rank++] = one;
        }
    }
}

/* Wide rows are cut across when there are too few rows. */
static void cut(struct rt_along_constants *c, const struct rt_machine *machine,
                struct hal_dispatch *dispatch)
{
    bool is_gather = c->mode == RT_ALONG_GATHER;
    int64_t columns = is_gather ? c->inner.index_size : c->inner.table_size;
    int64_t deep =
        c->along.index_size > c->along.table_size ? c->along.index_size : c->along.table_size;

    deep = is_gather ? c->along.index_size : deep;
    int64_t elements =
        rt_cut_units(machine, RT_WORK_ELEMENTS, c->rows * deep * columns, is_gather ? 1 : deep);
    c->tile_columns = columns;
    if (deep * columns > elements && columns > 64) {
        c->tile_columns = elements / deep > 64 ? elements / deep : 64;
    }
    c->tile_rows = elements / (deep * c->tile_columns);
    c->tile_rows = c->tile_rows ? c->tile_rows : 1;
    int64_t across = (columns - 1) / c->tile_columns + 1;
    int64_t down = (c->rows - 1) / c->tile_rows + 1;
    must(across <= UINT32_MAX && down <= UINT32_MAX);
    dispatch->grid[0] = (uint32_t)across;
    dispatch->grid[1] = (uint32_t)down;
    dispatch->grid[2] = 1;
    dispatch->cost = (uint64_t)(c->rows * deep * columns) * 2;
}

static enum status gather_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor table = with_dims(rt_emit_arg(emit, 0));
    const struct rt_tensor index = with_dims(rt_emit_arg(emit, 2));
    const struct rt_tensor out = with_dims(rt_emit_out(emit, 0));
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), table.rank);
    struct rt_along_constants c = {.mode = RT_ALONG_GATHER};
    struct hal_dispatch dispatch = {
        .kernel = &kernel_gather,
        .constants = &c,
        .constants_bytes = sizeof(c),
        .bindings = (struct hal_binding[]){out.binding, table.binding, index.binding},
        .binding_count = 3,
    };

    if (out.numel == 0) {
        return ST_OK;
    }
    TRY(check_sizes(&table, &index, &out, dim, err));
    fill_constants(&c, &table, &index, &out, dim);
    cut(&c, rt_emit_machine(emit, dispatch.kernel), &dispatch);
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* When a single value is scattered |source| is the index itself and is not read. */
static enum status emit_scatter(struct rt_emit *emit, struct rt_along_constants *c,
                                const struct rt_tensor *source, struct error *err)
{
    const struct rt_tensor table = with_dims(rt_emit_arg(emit, 0));
    const struct rt_tensor index = with_dims(rt_emit_arg(emit, 2));
    const struct rt_tensor *out = rt_emit_out(emit, 0), list = with_dims(source);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), table.rank);
    struct hal_dispatch dispatch = {
        .kernel = scatter_kernel(c->mode, table.dtype),
        .constants = c,
        .constants_bytes = sizeof(*c),
        .bindings =
            (struct hal_binding[]){out->binding, table.binding, index.binding, list.binding},
        .binding_count = 4,
    };

    if (out->numel == 0) {
        return ST_OK;
    }
    if (index.numel == 0) {
        /* Only the table is kept: an index without elements has no row to find. */
        fill_constants(c, &table, &table, &table, dim);
        c->along.index_size = 0;
    } else {
        TRY(check_sizes(&table, &index, &list, dim, err));
        fill_constants(c, &table, &index, &list, dim);
    }
    if (c->mode >= RT_ALONG_SUM) {
        dispatch.scratch_bytes = (size_t)columns_bytes(c, columns_together(c));
    }
    if (is_too_deep(c)) {
        dispatch.kernel = &kernel_reduce_host;
    }
    cut(c, rt_emit_machine(emit, dispatch.kernel), &dispatch);
    return rt_emit_dispatch(emit, &dispatch, err);
}

static enum status scatter_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_along_constants c = {.mode = RT_ALONG_SCATTER};
    return emit_scatter(emit, &c, rt_emit_arg(emit, 3), err);
}

static enum status scatter_add_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_along_constants c = {.mode = RT_ALONG_ADD};
    return emit_scatter(emit, &c, rt_emit_arg(emit, 3), err);
}

static enum status scatter_reduce_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_along_constants c = {.mode = find_reduction(rt_emit_value(emit, 4)),
                                   .has_self = rt_emit_value(emit, 5)->b};
    return emit_scatter(emit, &c, rt_emit_arg(emit, 3), err);
}

static enum status scatter_value_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_along_constants c = {.mode = RT_ALONG_FILL,
                                   .value = rt_element_of(emit, 3, rt_emit_arg(emit, 0)->dtype)};
    return emit_scatter(emit, &c, rt_emit_arg(emit, 2), err);
}

/* clang-format off */
const struct rt_op rt_ops_gather[] = {
    {.name = "gather", .kernels = "aten::gather.out",
     .args = "TITB>T", .shape = gather_shape, .emit = gather_emit,
     .batch = rt_batch_indices, .dtypes = RT_DTYPES_ALL, .runs = &kernel_gather},
    {.name = "scatter", .kernels = "aten::scatter.src_out",
     .args = "TITT>T", .shape = scatter_shape, .emit = scatter_emit, .flags = RT_OP_IN_PLACE,
     .batch = rt_batch_indices, .dtypes = RT_DTYPES_ALL, .runs = &kernel_scatter},
    {.name = "scatter_value", .kernels = "aten::scatter.value_out",
     .args = "TITS>T", .shape = scatter_value_shape, .emit = scatter_value_emit,
     .flags = RT_OP_IN_PLACE, .batch = rt_batch_indices,
     .dtypes = RT_DTYPES_ALL, .runs = &kernel_scatter},
    {.name = "scatter_add", .kernels = "aten::scatter_add.out",
     .args = "TITT>T", .shape = scatter_shape, .emit = scatter_add_emit, .flags = RT_OP_IN_PLACE,
     .batch = rt_batch_indices, .dtypes = RT_DTYPES_ALL, .runs = &kernel_scatter},
    {.name = "scatter_reduce", .kernels = "aten::scatter_reduce.two_out",
     .args = "TITTZB>T", .shape = scatter_reduce_shape, .emit = scatter_reduce_emit,
     .flags = RT_OP_IN_PLACE, .batch = rt_batch_indices,
     .dtypes = RT_DTYPES_ALL & ~(1u << DT_U64), .runs = &kernel_reduce},
    {0},
};
/* clang-format on */
