/* SPDX-License-Identifier: MIT */
/*
 * gather and scatter: an index tensor says, element by element, which place along one dim of a
 * table is meant. The index, and the list that is gathered or scattered, have the table's rank;
 * along the other dims they are at most as long as the table.
 *
 * A place outside of the table is a fault, negative ones too, as in PyTorch. A tile of a scatter
 * owns a part of the other dims and goes through its index in order, so the last of several to one
 * place stays, and sums have one order.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "runtime/ops/copy.h"
#include "runtime/ops/element.h"
#include "runtime/ops/index.h"
#include "runtime/ops/minmax.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/gather.h"
#include "runtime/ops/shaders/scatter.h"
#include "runtime/ops/view_priv.h"

#define TILE_ELEMENTS (16 * 1024)

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
    int64_t place =
        c->is_i32 ? ((const int32_t *)row->index)[at] : ((const int64_t *)row->index)[at];
    if (place < 0 || place >= c->along.table_size) {
        hal_fault(row->args, HAL_FAULT_INDEX);
        return -1;
    }
    return place;
}

/* ---- gather ------------------------------------------------------------------------------------
 */

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

/* Finds row |r|; false when the index has it not. Offsets in elements. */
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

/* ---- scatter -----------------------------------------------------------------------------------
 */

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
            scatter_row(c, &row);
        }
    }
}

static const struct hal_kernel kernel_scatter = {
    .name = "scatter", .cpu = along_scatter, .spirv = HAL_SPIRV(scatter_spirv)};
static const struct hal_kernel kernel_scatter_host = {.name = "scatter", .cpu = along_scatter};

/* Shaders do not add doubles and complex numbers. */
static const struct hal_kernel *scatter_kernel(enum rt_along_mode mode, enum dtype dtype)
{
    bool is_wide = dtype == DT_F64 || dtype_infos[dtype].kind == DTYPE_COMPLEX;
    return mode == RT_ALONG_ADD && is_wide ? &kernel_scatter_host : &kernel_scatter;
}

/* ---- shapes ------------------------------------------------------------------------------------
 */

/* A tensor of rank 0 is as one of rank 1 here. */
static uint8_t rank_of(const struct rt_value *value)
{
    return value->rank ? value->rank : 1;
}

static enum status along_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_arg(call, 0), *index = rt_arg(call, 2);
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_need_dim(call, 1, &dim));
    if (rt_dim_is(rt_value_numel(call->graph, index), 0)) {
        return ST_OK; /* of any type and rank */
    }
    TRY(rt_need_dtype(call, 2, 1u << DT_I32 | 1u << DT_I64));
    if (rank_of(index) != rank_of(self)) {
        return rt_refuse(call, "an index of rank %u into a tensor of rank %u", index->rank,
                         self->rank);
    }
    return ST_OK;
}

static enum status gather_shape(struct rt_shape_call *call)
{
    TRY(along_shape(call));
    return rt_set_out_like(call, 0, 2);
}

static enum status scatter_value_shape(struct rt_shape_call *call)
{
    TRY(along_shape(call));
    return rt_set_out_like(call, 0, 0);
}

static enum status scatter_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_arg(call, 0), *list = rt_arg(call, 3);

    TRY(along_shape(call));
    TRY(rt_need_dtype(call, 3, 1u << self->dtype));
    if (rank_of(list) != rank_of(self)) {
        return rt_refuse(call, "a source of rank %u for a tensor of rank %u", list->rank,
                         self->rank);
    }
    return rt_set_out_like(call, 0, 0);
}

/* ---- recording ---------------------------------------------------------------------------------
 */

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

/* The index fits into the table but along |dim|, and into the list. */
static enum status check_sizes(const struct rt_tensor *table, const struct rt_tensor *index,
                               const struct rt_tensor *list, uint8_t dim, struct error *err)
{
    for (uint8_t d = 0; d < index->rank; d++) {
        int64_t most = d == dim || table->dims[d] > list->dims[d] ? list->dims[d] : table->dims[d];
        if (index->dims[d] > most) {
            return error_set(err, ST_INVALID,
                             "an index of %" PRId64 " along dim %u, expected at most %" PRId64,
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

/* Wide rows are cut across where there are not rows enough. */
static void cut(struct rt_along_constants *c, struct hal_dispatch *dispatch)
{
    bool is_gather = c->mode == RT_ALONG_GATHER;
    int64_t columns = is_gather ? c->inner.index_size : c->inner.table_size;
    int64_t deep =
        c->along.index_size > c->along.table_size ? c->along.index_size : c->along.table_size;

    deep = is_gather ? c->along.index_size : deep;
    c->tile_columns = columns;
    if (deep * columns > TILE_ELEMENTS && columns > 64) {
        c->tile_columns = TILE_ELEMENTS / deep > 64 ? TILE_ELEMENTS / deep : 64;
    }
    c->tile_rows = TILE_ELEMENTS / (deep * c->tile_columns);
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
    uint8_t dim = rt_view_dim(rt_emit_int(emit, 1), table.rank);
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
    cut(&c, &dispatch);
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* |source| is the index itself where a single value is scattered: it is not read. */
static enum status emit_scatter(struct rt_emit *emit, struct rt_along_constants *c,
                                const struct rt_tensor *source, struct error *err)
{
    const struct rt_tensor table = with_dims(rt_emit_arg(emit, 0));
    const struct rt_tensor index = with_dims(rt_emit_arg(emit, 2));
    const struct rt_tensor *out = rt_emit_out(emit, 0), list = with_dims(source);
    uint8_t dim = rt_view_dim(rt_emit_int(emit, 1), table.rank);
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
        /* Only the table is kept; an index of no elements has no row to find. */
        fill_constants(c, &table, &table, &table, dim);
        c->along.index_size = 0;
    } else {
        TRY(check_sizes(&table, &index, &list, dim, err));
        fill_constants(c, &table, &index, &list, dim);
    }
    cut(c, &dispatch);
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

static enum status scatter_value_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_along_constants c = {.mode = RT_ALONG_FILL,
                                   .value = rt_element_of(emit, 3, rt_emit_arg(emit, 0)->dtype)};
    return emit_scatter(emit, &c, rt_emit_arg(emit, 2), err);
}

/* clang-format off */
const struct rt_op rt_ops_along[] = {
    {.name = "gather", .kernels = "aten::gather.out",
     .args = "TITB>T", .shape = gather_shape, .emit = gather_emit,
     .dtypes = RT_DTYPES_ALL, .runs = &kernel_gather},
    {.name = "scatter", .kernels = "aten::scatter.src_out",
     .args = "TITT>T", .shape = scatter_shape, .emit = scatter_emit, .flags = RT_OP_IN_PLACE,
     .dtypes = RT_DTYPES_ALL, .runs = &kernel_scatter},
    {.name = "scatter_value", .kernels = "aten::scatter.value_out",
     .args = "TITS>T", .shape = scatter_value_shape, .emit = scatter_value_emit,
     .flags = RT_OP_IN_PLACE, .dtypes = RT_DTYPES_ALL, .runs = &kernel_scatter},
    {.name = "scatter_add", .kernels = "aten::scatter_add.out",
     .args = "TITT>T", .shape = scatter_shape, .emit = scatter_add_emit, .flags = RT_OP_IN_PLACE,
     .dtypes = RT_DTYPES_ALL, .runs = &kernel_scatter},
    {0},
};
/* clang-format on */
