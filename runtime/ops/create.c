/* SPDX-License-Identifier: MIT */
/*
 * Tensors made from nothing: constants, ranges, triangle indices, and tensors with unspecified
 * content. The last are filled with zeros, because the bytes of a workspace may belong to another
 * request.
 *
 * Ends and step of a range may depend on symbols, and be floats that only a run knows. The run may
 * read the start of a range and an integer that fills a tensor: such a fill is a range with step 0.
 */
#include "config.h"

#include "runtime/ops/create.h"
#include "runtime/ops/fill.h"

#include <math.h>
#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define RANGE_CHUNK 256
#define RANGE_MAX ((int64_t)1 << 40)
#define TRIANGLE_MAX ((int64_t)1 << 16) /* rows and columns: each is counted by a loop */

/* ---- shapes -------------------------------------------------------------------------------- */

enum status rt_create_size_shape(struct rt_shape_call *call)
{
    const struct rt_value *size = rt_shape_arg(call, 0);

    if (size->count > SHAPE_RANK_MAX) {
        return rt_shape_refuse(call, "%u dims, expected at most %d", size->count, SHAPE_RANK_MAX);
    }
    for (uint32_t d = 0; d < size->count; d++) {
        if (size->ints[d].value < 0) {
            return rt_shape_refuse(call, "dim %u is %lld, expected 0 or more", d,
                                   (long long)size->ints[d].value);
        }
    }
    return rt_shape_set_out(call, 0, (uint8_t)size->count, size->ints);
}

static enum status like_shape(struct rt_shape_call *call)
{
    return rt_shape_set_out_like(call, 0, 0);
}

static enum status scalar_shape(struct rt_shape_call *call)
{
    return rt_shape_set_out(call, 0, 0, NULL);
}

/* Arguments of both forms. */
enum { START, END, STEP, RANGE_ARGS };

struct range {
    const struct rt_value *args[RANGE_ARGS]; /* NULL: absent */
    bool is_int;
};

static struct range read_range(const struct rt_shape_call *call)
{
    bool is_short = call->node->arg_count == 1;
    struct range range = {.is_int = true};
    range.args[END] = rt_shape_arg(call, is_short ? 0 : END);
    if (!is_short) {
        range.args[START] = rt_shape_arg(call, START);
        range.args[STEP] = rt_shape_arg(call, STEP);
    }
    for (uint32_t i = 0; i < RANGE_ARGS; i++) {
        range.is_int &= !range.args[i] || range.args[i]->kind != RT_FLOAT;
    }
    return range;
}

/* The bits of a double. */
static struct rt_dim double_of(struct rt_shape_call *call, const struct range *range, uint32_t as)
{
    return range->args[as] ? rt_graph_double(call->graph, range->args[as])
                           : rt_dim_of_double(as == STEP);
}

/* Without a fraction. */
static struct rt_dim int_of(struct rt_shape_call *call, const struct range *range, uint32_t as)
{
    if (range->args[as] && range->args[as]->kind == RT_INT) {
        return range->args[as]->i;
    }
    struct rt_dim bits = double_of(call, range, as);
    return rt_dim_is_const(bits) ? rt_dim_of(rt_convert_to_i64(rt_dim_to_double(bits.value)))
                                 : rt_dim_trunc(&call->graph->dims, bits);
}

/* A length by division of doubles; a negative one has steps that lead away from the end. */
static enum status quotient(struct rt_shape_call *call, struct rt_dim span, struct rt_dim step,
                            struct rt_dim *out_length)
{
    *out_length = rt_dim_steps(&call->graph->dims, span, step);
    TRY(rt_graph_check(call->graph, call->err));
    return rt_shape_need_at_least(call, *out_length, rt_dim_of(0), "length of a range");
}

static enum status int_range(struct rt_shape_call *call, const struct range *range,
                             struct rt_dim *out_length)
{
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim start = int_of(call, range, START), end = int_of(call, range, END);
    struct rt_dim step = int_of(call, range, STEP), span = rt_dim_sub(dims, end, start);

    if (!rt_dim_is_const(step)) {
        return quotient(call, rt_dim_double(dims, span), rt_dim_double(dims, step), out_length);
    }
    if (step.value == 0 || step.value == INT64_MIN) {
        return rt_shape_refuse(call, "step %lld is not valid", (long long)step.value);
    }
    if (step.value > 0) {
        *out_length = rt_dim_ceildiv(dims, span, step);
    } else {
        span = rt_dim_sub(dims, start, end);
        *out_length = rt_dim_ceildiv(dims, span, rt_dim_of(-step.value));
    }
    *out_length = rt_dim_max(dims, *out_length, rt_dim_of(0));
    return ST_OK;
}

static enum status float_range(struct rt_shape_call *call, const struct range *range,
                               struct rt_dim *out_length)
{
    struct rt_dim start = double_of(call, range, START), end = double_of(call, range, END);
    struct rt_dim step = double_of(call, range, STEP);

    if (!rt_dim_is_const(start) || !rt_dim_is_const(end) || !rt_dim_is_const(step)) {
        return quotient(call, rt_dim_difference(&call->graph->dims, end, start), step, out_length);
    }
    double from = rt_dim_to_double(start.value), to = rt_dim_to_double(end.value);
    double by = rt_dim_to_double(step.value), length = ceil((to - from) / by);
    if (!(length >= 0 && length <= (double)RANGE_MAX)) {
        return rt_shape_refuse(call, "there is no range from %g to %g in steps of %g", from, to,
                               by);
    }
    *out_length = rt_dim_of((int64_t)length);
    return ST_OK;
}

static enum status range_shape(struct rt_shape_call *call)
{
    struct range range = read_range(call);
    struct rt_dim length = {0};

    range.is_int |=
        rt_shape_out_dtype(call, 0) == DT_I64; /* The values are truncated, whatever they are. */
    TRY(range.is_int ? int_range(call, &range, &length) : float_range(call, &range, &length));
    return rt_shape_set_out(call, 0, 1, &length);
}

/* ---- one value everywhere ------------------------------------------------------------------ */

static void fill_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_fill *fill = args->constants;
    size_t share = rt_fill_share(args->lengths[0], args->grid[0]), begin = tile.x * share;
    size_t left = begin < args->lengths[0] ? args->lengths[0] - begin : 0;
    uint8_t *to = (uint8_t *)args->bindings[0] + begin;

    left = left < share ? left : share;
    for (; left >= sizeof(fill->pattern); left -= sizeof(fill->pattern)) {
        memcpy(to, fill->pattern, sizeof(fill->pattern));
        to += sizeof(fill->pattern);
    }
    memcpy(to, fill->pattern, left);
}

static const struct hal_kernel fill_kernel = {
    .name = "fill", .cpu = fill_tile, .spirv = HAL_SPIRV(fill_pattern_spirv)};

static enum status emit_fill(struct rt_emit *emit, struct rt_number number, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    size_t width = dtype_bytes(out->dtype);
    _Alignas(16) struct rt_fill fill;

    for (size_t at = 0; at < sizeof(fill.pattern); at += width) {
        rt_convert_store_number(number, out->dtype, fill.pattern + at);
    }
    int64_t bytes = rt_cut_units(rt_emit_machine(emit, &fill_kernel), RT_WORK_FILL,
                                 (int64_t)out->bytes, sizeof(fill.pattern));
    return rt_emit_tiles(emit, (int64_t)out->bytes, bytes,
                         &(struct hal_dispatch){
                             .kernel = &fill_kernel,
                             .constants = &fill,
                             .constants_bytes = sizeof(fill),
                             .bindings = &out->binding,
                             .binding_count = 1,
                             .cost = out->bytes / 16,
                         },
                         err);
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* Element i is start + i * step, in double or in wrapping integers, independent of the tile. */
static void range_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_range *k = args->constants;
    struct rt_number start = k->start;
    bool is_float = dtype_is_float(k->dtype);
    size_t width = dtype_bytes(k->dtype);
    rt_store_f *store = rt_convert_store(is_float ? RT_CLASS_F64 : RT_CLASS_I64, k->dtype);
    int64_t share = (k->length - 1) / args->grid[0] + 1, first = tile.x * share;
    int64_t end = k->length - first < share ? k->length : first + share;
    union {
        double f[RANGE_CHUNK];
        int64_t i[RANGE_CHUNK];
    } values;

    if (k->is_start_read) {
        start.i = *(const int64_t *)args->bindings[1];
        start.f = (double)start.i;
    }
    while (first < end) {
        int64_t count = end - first < RANGE_CHUNK ? end - first : RANGE_CHUNK;
        for (int64_t n = 0; n < count; n++) {
            if (is_float) {
                values.f[n] = start.f + (double)(first + n) * k->step.f;
            } else {
                values.i[n] =
                    (int64_t)((uint64_t)start.i + (uint64_t)(first + n) * (uint64_t)k->step.i);
            }
        }
        store((char *)args->bindings[0] + (size_t)first * width, (int64_t)width, &values, count);
        first += count;
    }
}

static const struct hal_kernel range_kernel = {
    .name = "range", .cpu = range_tile, .spirv = HAL_SPIRV(range_spirv)};
static const struct hal_kernel range_host_kernel = {.name = "range", .cpu = range_tile};

/* A number of any kind: a constant of the plan, or one that each run gives. */
struct source {
    struct rt_number known;
    struct rt_place place;
};

static struct source find_source(const struct rt_emit *emit, uint32_t arg)
{
    if (rt_emit_value(emit, arg)->kind != RT_INT) {
        return (struct source){.known = rt_convert_arg(emit, arg)};
    }
    struct rt_place place = rt_emit_place(emit, arg);
    return (struct source){{(double)place.known, place.known}, place};
}

static enum status emit_range(struct rt_emit *emit, struct source start, struct rt_number step,
                              struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    const struct hal_binding bindings[] = {out->binding, rt_emit_word(emit, start.place)};
    struct rt_range k = {start.known, step, out->numel, out->dtype, start.place.is_read};

    bool is_host_only = out->dtype == DT_F64 || dtype_infos[out->dtype].kind == DTYPE_COMPLEX;
    const struct hal_kernel *kernel = is_host_only ? &range_host_kernel : &range_kernel;
    int64_t tile = rt_cut_things(rt_emit_machine(emit, kernel), RT_WORK_EXP, out->numel, 1, 1);
    return rt_emit_tiles(emit, out->numel, tile,
                         &(struct hal_dispatch){
                             .kernel = kernel,
                             .constants = &k,
                             .constants_bytes = sizeof(k),
                             .bindings = bindings,
                             .binding_count = start.place.is_read ? 2 : 1,
                             .cost = (uint64_t)out->numel,
                         },
                         err);
}

static enum status arange_emit(struct rt_emit *emit, struct error *err)
{
    return emit_range(emit, (struct source){0}, (struct rt_number){1, 1}, err);
}

static enum status arange_start_emit(struct rt_emit *emit, struct error *err)
{
    return emit_range(emit, find_source(emit, 0), rt_convert_arg(emit, 2), err);
}

/* Reads the ends of a range; the length already implies the rest. */
static enum status start_place(struct rt_shape_call *call, uint32_t arg, struct rt_dim *out_place)
{
    *out_place = arg == 0 ? rt_shape_arg(call, arg)->i : rt_dim_of(0);
    return ST_OK;
}

/* ---- triangles ----------------------------------------------------------------------------- */

/* The positions of a matrix's elements on a diagonal and above it, or on it and below it. */
struct triangle {
    int64_t rows, columns, offset; /* offset of the diagonal to the right */
    int64_t count;
    enum dtype dtype;
    bool is_upper;
};

static int64_t clamp(int64_t value, int64_t max)
{
    return value < 0 ? 0 : value > max ? max : value;
}

/* The columns of a row, from *out_begin up to *out_end. */
static void triangle_row(const struct triangle *t, int64_t row, int64_t *out_begin,
                         int64_t *out_end)
{
    *out_begin = t->is_upper ? clamp(row + t->offset, t->columns) : 0;
    *out_end = t->is_upper ? t->columns : clamp(row + t->offset + 1, t->columns);
}

static enum status triangle_shape(struct rt_shape_call *call, bool is_upper)
{
    struct triangle t = {.is_upper = is_upper};
    int64_t begin, end;

    TRY(rt_shape_need_const(call, 0, &t.rows));
    TRY(rt_shape_need_const(call, 1, &t.columns));
    TRY(rt_shape_need_const(call, 2, &t.offset));
    if (t.rows < 0 || t.rows > TRIANGLE_MAX || t.columns < 0 || t.columns > TRIANGLE_MAX) {
        return rt_shape_refuse(call, "a matrix of %lldx%lld, expected at most %lld of each",
                               (long long)t.rows, (long long)t.columns, (long long)TRIANGLE_MAX);
    }
    if (t.offset < -TRIANGLE_MAX || t.offset > TRIANGLE_MAX) {
        return rt_shape_refuse(call, "diagonal %lld, expected at most %lld", (long long)t.offset,
                               (long long)TRIANGLE_MAX);
    }
    for (int64_t row = 0; row < t.rows; row++) {
        triangle_row(&t, row, &begin, &end);
        t.count += end - begin;
    }
    const struct rt_dim dims[] = {rt_dim_of(2), rt_dim_of(t.count)};
    return rt_shape_set_out(call, 0, 2, dims);
}

static enum status tril_shape(struct rt_shape_call *call)
{
    return triangle_shape(call, false);
}

static enum status triu_shape(struct rt_shape_call *call)
{
    return triangle_shape(call, true);
}

/* All row numbers, then all column numbers, in row-major order. The arguments are constants, so
 * that only folding runs this kernel. */
static void triangle_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct triangle *t = args->constants;
    size_t width = dtype_bytes(t->dtype);
    rt_store_f *store = rt_convert_store(RT_CLASS_I64, t->dtype);
    char *to = args->bindings[0];
    int64_t begin, end;
    (void)tile;

    for (int64_t row = 0; row < t->rows; row++) {
        triangle_row(t, row, &begin, &end);
        for (int64_t column = begin; column < end; column++) {
            store(to, (int64_t)width, &row, 1);
            store(to + (size_t)t->count * width, (int64_t)width, &column, 1);
            to += width;
        }
    }
}

static const struct hal_kernel triangle_kernel = {.name = "triangle", .cpu = triangle_tile};

static enum status triangle_emit(struct rt_emit *emit, bool is_upper, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    struct triangle t = {.rows = rt_emit_int(emit, 0),
                         .columns = rt_emit_int(emit, 1),
                         .offset = rt_emit_int(emit, 2),
                         .count = out->numel / 2,
                         .dtype = out->dtype,
                         .is_upper = is_upper};

    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = &triangle_kernel,
                                .constants = &t,
                                .constants_bytes = sizeof(t),
                                .bindings = &out->binding,
                                .binding_count = 1,
                                .grid = {1, 1, 1},
                                .cost = (uint64_t)out->numel + (uint64_t)t.rows,
                            },
                            err);
}

static enum status tril_emit(struct rt_emit *emit, struct error *err)
{
    return triangle_emit(emit, false, err);
}

static enum status triu_emit(struct rt_emit *emit, struct error *err)
{
    return triangle_emit(emit, true, err);
}

/* ---- fills --------------------------------------------------------------------------------- */

static enum status zeros_emit(struct rt_emit *emit, struct error *err)
{
    return emit_fill(emit, (struct rt_number){0, 0}, err);
}

static enum status ones_emit(struct rt_emit *emit, struct error *err)
{
    return emit_fill(emit, (struct rt_number){1, 1}, err);
}

static enum status emit_source(struct rt_emit *emit, struct source source, struct error *err)
{
    return source.place.is_read ? emit_range(emit, source, (struct rt_number){0, 0}, err)
                                : emit_fill(emit, source.known, err);
}

/* The value is argument 1. */
static enum status full_emit(struct rt_emit *emit, struct error *err)
{
    return emit_source(emit, find_source(emit, 1), err);
}

static enum status scalar_emit(struct rt_emit *emit, struct error *err)
{
    return emit_source(emit, find_source(emit, 0), err);
}

static enum status value_place(struct rt_shape_call *call, uint32_t arg, struct rt_dim *out_place)
{
    *out_place = rt_shape_arg(call, arg)->i;
    return ST_OK;
}

/* ---- the operators ------------------------------------------------------------------------- */

const struct rt_op rt_ops_create[] = {
    {.name = "full",
     .kernels = "aten::full.out",
     .args = "LS>T",
     .shape = rt_create_size_shape,
     .emit = full_emit,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_ANY,
     .runs = &fill_kernel,
     .read = 1 << 1,
     .place = value_place},
    {.name = "full_like",
     .kernels = "aten::full_like.out",
     .args = "TSI?>T",
     .shape = like_shape,
     .emit = full_emit,
     .batch = rt_batch_each,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_ANY,
     .runs = &fill_kernel,
     .read = 1 << 1,
     .place = value_place},
    {.name = "zeros",
     .kernels = "aten::zeros.out",
     .args = "L>T",
     .shape = rt_create_size_shape,
     .emit = zeros_emit,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_ANY,
     .runs = &fill_kernel},
    {.name = "ones",
     .kernels = "aten::ones.out",
     .args = "L>T",
     .shape = rt_create_size_shape,
     .emit = ones_emit,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_ANY,
     .runs = &fill_kernel},
    {.name = "empty_format",
     .kernels = "aten::empty.out",
     .args = "LI?>T",
     .shape = rt_create_size_shape,
     .emit = zeros_emit,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_ANY,
     .runs = &fill_kernel},
    {.name = "empty",
     .kernels = "dim_order_ops::_empty_dim_order.out",
     .args = "LL?>T",
     .shape = rt_create_size_shape,
     .emit = zeros_emit,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_ANY,
     .runs = &fill_kernel},
    {.name = "scalar_tensor",
     .kernels = "aten::scalar_tensor.out",
     .args = "S>T",
     .shape = scalar_shape,
     .emit = scalar_emit,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_ANY,
     .runs = &fill_kernel,
     .read = 1 << 0,
     .place = value_place},
    {.name = "arange",
     .kernels = "aten::arange.out",
     .args = "S>T",
     .shape = range_shape,
     .emit = arange_emit,
     .dtypes = RT_DTYPES_REAL,
     .runs = &range_kernel},
    {.name = "arange_start",
     .kernels = "aten::arange.start_out",
     .args = "SSS>T",
     .shape = range_shape,
     .emit = arange_start_emit,
     .dtypes = RT_DTYPES_REAL,
     .runs = &range_kernel,
     .read = 1 << 0 | 1 << 1,
     .place = start_place},
    {.name = "tril_indices",
     .kernels = "aten::tril_indices.out",
     .args = "III>T",
     .shape = tril_shape,
     .emit = tril_emit,
     .dtypes = RT_DTYPES_INT,
     .runs = &triangle_kernel},
    {.name = "triu_indices",
     .kernels = "aten::triu_indices.out",
     .args = "III>T",
     .shape = triu_shape,
     .emit = triu_emit,
     .dtypes = RT_DTYPES_INT,
     .runs = &triangle_kernel},
    {.name = NULL},
};
