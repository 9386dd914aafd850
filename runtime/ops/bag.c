/* SPDX-License-Identifier: MIT */
/*
 * Bags of rows of a table: embedding_bag. Offsets cut a list of places into bags, and each bag
 * gives one row: the sum, the mean or the largest elements of its rows. An empty bag gives zeros. A
 * row whose place is the padding is skipped, and not counted.
 *
 * The list has no dim of bags, so each bag is found in the offsets when the kernel runs. As in
 * PyTorch the first offset is 0. Offsets that go back or beyond the list are faults here; PyTorch
 * says nothing of them. A tile is some bags.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"
#include "runtime/ops/view_priv.h"

#define CHUNK 256
#define NO_PADDING (-1)

enum { BAG_SUM, BAG_MEAN, BAG_MAX, BAG_MODES };

struct bag_constants {
    int64_t bags, places, rows, width;
    int64_t padding; /* a place, or NO_PADDING */
    int64_t tile;    /* bags of a tile */
    uint32_t mode;
    enum dtype dtype, places_dtype, offsets_dtype; /* of the table; i32 or i64 */
    int64_t offset_count;
    int64_t size_count, max_count; /* of the last outputs with one dim; bags, or one more */
};

enum { OUT, PLACE_BAGS, SIZES, MAX_PLACES, TABLE, PLACES, OFFSETS, FACTORS, BINDINGS };

/* A bag: some of the places. */
struct bag {
    const struct bag_constants *c;
    const struct hal_args *args;
    int64_t number, begin, end;
    int64_t size; /* without padding */
};

static int64_t read_int(enum dtype dtype, const void *from, int64_t at, const void **out_at)
{
    *out_at = (const char *)from + at * (dtype == DT_I32 ? 4 : 8);
    return dtype == DT_I32 ? *(const int32_t *)*out_at : *(const int64_t *)*out_at;
}

static void write_int(enum dtype dtype, void *to, int64_t at, int64_t value)
{
    if (to && dtype == DT_I32) {
        ((int32_t *)to)[at] = (int32_t)value;
    } else if (to) {
        ((int64_t *)to)[at] = value;
    }
}

/* An int of a tensor that has to be in a range; |least| otherwise, with a fault. */
static int64_t read_in(const struct hal_args *args, enum dtype dtype, const void *from, int64_t at,
                       int64_t least, int64_t most)
{
    const void *address;
    int64_t number = read_int(dtype, from, at, &address);
    if (number < least || number > most) {
        hal_fault(args, HAL_FAULT_INDEX, &(struct hal_fault_number){address, number, least, most});
        return least;
    }
    return number;
}

/* The row at place |i| of the list; false: it is padding. */
static bool find_row(const struct bag *b, int64_t i, int64_t *out_row)
{
    const struct bag_constants *c = b->c;
    if (c->rows == 0) {
        hal_fault(b->args, HAL_FAULT_INDEX,
                  &(struct hal_fault_number){b->args->bindings[PLACES], 0, 0, -1});
        return false;
    }
    *out_row = read_in(b->args, c->places_dtype, b->args->bindings[PLACES], i, 0, c->rows - 1);
    return *out_row != c->padding;
}

#define DEFINE_FOLD(suffix, type)                                                                  \
    static void add_rows_##suffix(const struct bag *b, int64_t column, int64_t count, type *sums)  \
    {                                                                                              \
        const struct bag_constants *c = b->c;                                                      \
        int64_t width = (int64_t)dtype_bytes(c->dtype), row;                                       \
        rt_load_f *load = rt_convert_load(c->dtype, rt_convert_class(c->dtype));                   \
        const char *table = b->args->bindings[TABLE], *factors = b->args->bindings[FACTORS];       \
        type values[CHUNK], factor = 1;                                                            \
        for (int64_t i = b->begin; i < b->end; i++) {                                              \
            if (!find_row(b, i, &row)) {                                                           \
                continue;                                                                          \
            }                                                                                      \
            load(values, table + (row * c->width + column) * width, width, count);                 \
            if (factors) {                                                                         \
                load(&factor, factors + i * width, width, 1);                                      \
            }                                                                                      \
            for (int64_t j = 0; j < count; j++) {                                                  \
                sums[j] += values[j] * factor;                                                     \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = 0; c->mode == BAG_MEAN && b->size > 0 && j < count; j++) {                \
            sums[j] /= (type)b->size;                                                              \
        }                                                                                          \
    }                                                                                              \
    static void take_largest_##suffix(const struct bag *b, int64_t column, int64_t count,          \
                                      type *best)                                                  \
    {                                                                                              \
        const struct bag_constants *c = b->c;                                                      \
        int64_t width = (int64_t)dtype_bytes(c->dtype), row;                                       \
        rt_load_f *load = rt_convert_load(c->dtype, rt_convert_class(c->dtype));                   \
        const char *table = b->args->bindings[TABLE];                                              \
        void *max_places = b->args->bindings[MAX_PLACES];                                          \
        bool is_first = true;                                                                      \
        type values[CHUNK];                                                                        \
        for (int64_t i = b->begin; i < b->end; i++) {                                              \
            if (!find_row(b, i, &row)) {                                                           \
                continue;                                                                          \
            }                                                                                      \
            load(values, table + (row * c->width + column) * width, width, count);                 \
            for (int64_t j = 0; j < count; j++) {                                                  \
                if (is_first || values[j] > best[j]) {                                             \
                    best[j] = values[j];                                                           \
                    write_int(c->offsets_dtype, max_places, b->number * c->width + column + j,     \
                              row);                                                                \
                }                                                                                  \
            }                                                                                      \
            is_first = false;                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void fold_##suffix(const struct bag *b, int64_t column, int64_t count)                  \
    {                                                                                              \
        const struct bag_constants *c = b->c;                                                      \
        int64_t width = (int64_t)dtype_bytes(c->dtype);                                            \
        type folded[CHUNK] = {0};                                                                  \
        if (c->mode == BAG_MAX) {                                                                  \
            take_largest_##suffix(b, column, count, folded);                                       \
        } else {                                                                                   \
            add_rows_##suffix(b, column, count, folded);                                           \
        }                                                                                          \
        rt_convert_store(rt_convert_class(c->dtype), c->dtype)(                                    \
            (char *)b->args->bindings[OUT] + (b->number * c->width + column) * width, width,       \
            folded, count);                                                                        \
    }

DEFINE_FOLD(f32, float)
DEFINE_FOLD(f64, double)

/* The numbers beside the rows, which a model seldom uses. */
static void describe_bag(struct bag *b)
{
    const struct bag_constants *c = b->c;
    int64_t row;
    for (int64_t i = b->begin; i < b->end; i++) {
        b->size += find_row(b, i, &row);
        write_int(c->offsets_dtype, b->args->bindings[PLACE_BAGS], i, b->number);
    }
    write_int(c->offsets_dtype, b->args->bindings[SIZES], b->number, b->size);
    int64_t count = c->mode == BAG_MAX ? c->width : 1;
    for (int64_t j = 0; j < count; j++) {
        write_int(c->offsets_dtype, b->args->bindings[MAX_PLACES], b->number * count + j, 0);
    }
}

/* Behind the last bag. */
static void end_numbers(const struct bag_constants *c, const struct hal_args *args)
{
    for (int64_t i = c->bags; i < c->size_count; i++) {
        write_int(c->offsets_dtype, args->bindings[SIZES], i, 0);
    }
    for (int64_t i = c->bags; i < c->max_count; i++) {
        write_int(c->offsets_dtype, args->bindings[MAX_PLACES], i, 0);
    }
}

static void bag_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct bag_constants *c = args->constants;
    const void *offsets = args->bindings[OFFSETS];
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->bags);
    for (int64_t i = first; i < behind; i++) {
        struct bag bag = {.c = c, .args = args, .number = i};
        bag.begin = read_in(args, c->offsets_dtype, offsets, i, 0, i == 0 ? 0 : c->places);
        bag.end = i + 1 < c->offset_count
                      ? read_in(args, c->offsets_dtype, offsets, i + 1, bag.begin, c->places)
                      : c->places;
        describe_bag(&bag);
        for (int64_t column = 0; column < c->width; column += CHUNK) {
            int64_t count = rt_min(CHUNK, c->width - column);
            if (c->dtype == DT_F64) {
                fold_f64(&bag, column, count);
            } else {
                fold_f32(&bag, column, count);
            }
        }
    }
    if (behind == c->bags) {
        end_numbers(c, args);
    }
}

static const struct hal_kernel kernel_bag = {.name = "embedding_bag", .cpu = bag_tile};

/* ---- the operator ---------------------------------------------------------------------------- */

#define PLACE_DTYPES (1u << DT_I32 | 1u << DT_I64)

static enum status need_inputs(struct rt_shape_call *call, int64_t mode)
{
    const struct rt_value *table = rt_shape_arg(call, 0), *places = rt_shape_arg(call, 1);
    const struct rt_value *offsets = rt_shape_arg(call, 2), *factors = rt_shape_arg(call, 6);
    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_dtype(call, 1, PLACE_DTYPES));
    TRY(rt_shape_need_dtype(call, 2, PLACE_DTYPES));
    if (table->rank != 2 || places->rank != 1 || offsets->rank != 1) {
        return rt_shape_refuse(call, "ranks %u, %u and %u, expected 2, 1 and 1", table->rank,
                               places->rank, offsets->rank);
    }
    if (factors->kind == RT_NONE) {
        return ST_OK;
    }
    if (mode != BAG_SUM || factors->rank != 1 || factors->dtype != table->dtype) {
        return rt_shape_refuse(call, "weights for each place, which only sums have, with the "
                                     "element type of the table");
    }
    return rt_dim_require_equal(&call->graph->dims, factors->dims[0], places->dims[0],
                                "weights (one for each place)", call->err);
}

/* Bags, or offsets if the file declares so many numbers: then the last one is 0. */
static struct rt_dim count_numbers(const struct rt_shape_call *call, uint32_t index,
                                   struct rt_dim bags)
{
    const struct rt_value *out = rt_node_out(call->graph, call->node, index);
    struct rt_dim offsets = rt_shape_arg(call, 2)->dims[0];
    bool is_more = out->declared && out->rank == 1 && out->declared[0].value == offsets.value;
    return is_more ? offsets : bags;
}

/* Output 1 is empty or has a number for each place: the file knows why. */
static enum status set_numbers(struct rt_shape_call *call, struct rt_dim bags, int64_t mode)
{
    const struct rt_value *first = rt_node_out(call->graph, call->node, 1);
    bool is_empty = first->declared && first->rank == 1 && rt_dim_is(first->declared[0], 0);
    struct rt_dim count = is_empty ? rt_dim_of(0) : rt_shape_arg(call, 1)->dims[0];
    struct rt_dim sizes = count_numbers(call, 2, bags), width = rt_shape_arg(call, 0)->dims[1];
    struct rt_dim largest[] = {mode == BAG_MAX ? bags : count_numbers(call, 3, bags), width};
    for (uint32_t i = 1; i < 4; i++) {
        if (rt_shape_out_dtype(call, i) != rt_shape_arg(call, 2)->dtype) {
            return rt_shape_refuse(call, "output %u is not of the type of the offsets", i);
        }
    }
    TRY(rt_shape_set_out(call, 1, 1, &count));
    TRY(rt_shape_set_out(call, 2, 1, &sizes));
    return rt_shape_set_out(call, 3, mode == BAG_MAX ? 2 : 1, largest);
}

static enum status bag_shape(struct rt_shape_call *call)
{
    int64_t mode, padding;
    TRY(rt_shape_need_const(call, 4, &mode));
    TRY(rt_shape_need_const(call, 8, &padding));
    if (mode < 0 || mode >= BAG_MODES) {
        return rt_shape_refuse(call, "mode %lld, expected 0 to 2", (long long)mode);
    }
    TRY(need_inputs(call, mode));
    struct rt_dim bags = rt_shape_arg(call, 2)->dims[0];
    if (rt_shape_arg(call, 7)->b) { /* the last offset is the end of the last bag */
        TRY(rt_shape_need_at_least(call, bags, rt_dim_of(1), "number of offsets"));
        bags = rt_dim_sub(&call->graph->dims, bags, rt_dim_of(1));
    }
    struct rt_dim out[] = {bags, rt_shape_arg(call, 0)->dims[1]};
    TRY(set_numbers(call, bags, mode));
    return rt_shape_set_out(call, 0, 2, out);
}

static void bind(struct hal_binding *binding, const struct rt_tensor *tensor)
{
    if (tensor && tensor->numel > 0) {
        *binding = tensor->binding;
    }
}

static enum status bag_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *table = rt_emit_arg(emit, 0), *places = rt_emit_arg(emit, 1);
    const struct rt_tensor *offsets = rt_emit_arg(emit, 2), *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[BINDINGS] = {out->binding};
    int64_t padding = rt_emit_int(emit, 8);
    struct bag_constants c = {
        .bags = out->dims[0],
        .places = places->dims[0],
        .rows = table->dims[0],
        .width = table->dims[1],
        .padding = padding < 0 ? NO_PADDING : padding,
        .mode = (uint32_t)rt_emit_int(emit, 4),
        .dtype = table->dtype,
        .places_dtype = places->dtype,
        .offsets_dtype = offsets->dtype,
        .offset_count = offsets->dims[0],
    };
    for (uint32_t i = 1; i < 4; i++) {
        const struct rt_tensor *numbers = rt_emit_out(emit, i);
        bind(&bindings[i], numbers);
        if (i > 1 && numbers && numbers->rank == 1) {
            *(i == 2 ? &c.size_count : &c.max_count) = numbers->dims[0];
        }
    }
    bind(&bindings[TABLE], table);
    bind(&bindings[PLACES], places);
    bind(&bindings[OFFSETS], offsets);
    bind(&bindings[FACTORS], rt_emit_arg(emit, 6));
    int64_t each = rt_max(1, c.width * (c.places / rt_max(1, c.bags) + 1));
    c.tile = rt_cut_things(rt_emit_machine(emit, &kernel_bag), RT_WORK_ELEMENTS, c.bags, each,
                           rt_max(1, c.width));
    return rt_emit_tiles(emit, c.bags, c.tile,
                         &(struct hal_dispatch){
                             .kernel = &kernel_bag,
                             .constants = &c,
                             .constants_bytes = sizeof(c),
                             .bindings = bindings,
                             .binding_count = BINDINGS,
                             .cost = (uint64_t)(c.bags * each),
                         },
                         err);
}

const struct rt_op rt_ops_bag[] = {
    {.name = "embedding_bag",
     .kernels = "aten::_embedding_bag_forward_only.out aten::_embedding_bag.out",
     .args = "TTTBIBT?BI>TTTT",
     .shape = bag_shape,
     .emit = bag_emit,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &kernel_bag},
    {.name = NULL},
};
