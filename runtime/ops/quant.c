/* SPDX-License-Identifier: MIT */
/*
 * Quantisation: floats to integers and back, with a scale and a zero point for the whole tensor,
 * for each channel or for each row; computing these parameters; and the packed forms of weights. A
 * program without a delegate calls them as quantized_decomposed; the import of a delegate's payload
 * makes the same nodes.
 *
 * quantised = clamp(round(x / scale) + zero point, min, max), rounding halves to even, with the
 * quotient as a product with the inverse scale. The reverse is (quantised - zero point) * scale.
 * The bounds in a dequantisation are checked but have no effect.
 */
#include "config.h"

#include "runtime/ops/quant.h"

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"

/* The set of elements that share a scale. */
enum spread { SPREAD_ALL, SPREAD_CHANNELS, SPREAD_ROWS };

struct row {
    enum spread spread;
    bool is_tensor; /* scale and zero point are tensors */
    uint8_t bounds; /* index of the argument with the least value; the greatest value and the type
                       follow it */
};

enum { ARG_X, ARG_SCALES, ARG_ZERO_POINTS, ARG_AXIS };

/* ---- checks -------------------------------------------------------------------------------- */

static int64_t least_of(enum dtype dtype)
{
    bool has_sign = dtype_infos[dtype].kind == DTYPE_INT;
    return has_sign ? -((int64_t)1 << (8 * dtype_bytes(dtype) - 1)) : 0;
}

static int64_t greatest_of(enum dtype dtype)
{
    return least_of(dtype) + ((int64_t)1 << 8 * dtype_bytes(dtype)) - 1;
}

/* The argument names the element type of a tensor. */
static enum status need_type(struct rt_shape_call *call, uint32_t index, enum dtype dtype)
{
    int64_t number;

    if (rt_shape_arg_is_none(call, index)) {
        return ST_OK;
    }
    TRY(rt_shape_need_const(call, index, &number));
    return number == dtype_infos[dtype].executorch
               ? ST_OK
               : rt_shape_refuse(call, "argument %u is type %lld, but the tensor is %s", index,
                                 (long long)number, dtype_text(dtype));
}

static enum status need_bounds(struct rt_shape_call *call, uint32_t index, enum dtype dtype)
{
    int64_t min, max;

    TRY(rt_shape_need_const(call, index, &min));
    TRY(rt_shape_need_const(call, index + 1, &max));
    if (min > max || min < least_of(dtype) || max > greatest_of(dtype)) {
        return rt_shape_refuse(call, "values from %lld to %lld do not fit %s", (long long)min,
                               (long long)max, dtype_text(dtype));
    }
    return need_type(call, index + 2, dtype);
}

/* One parameter for each row: a tensor of the same rank with dims of 1, or a list with one entry a
 * row. */
static enum status need_rows(struct rt_shape_call *call, uint32_t index)
{
    const struct rt_value *x = rt_shape_arg(call, ARG_X), *list = rt_shape_arg(call, index);
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim rows = rt_dim_of(1);

    if (x->rank == list->rank) {
        for (uint8_t d = 0; d < x->rank; d++) {
            if (!rt_dim_is(list->dims[d], 1)) {
                TRY(rt_dim_require_equal(dims, list->dims[d], x->dims[d],
                                         "parameters of rows (one for each row)", call->err));
            }
        }
        return ST_OK;
    }
    for (uint8_t d = 0; d + 1 < x->rank; d++) {
        rows = rt_dim_mul(dims, rows, x->dims[d]);
    }
    return rt_dim_require_equal(dims, rt_value_numel(call->graph, list), rows,
                                "parameters of rows (one for each row)", call->err);
}

static enum status need_channels(struct rt_shape_call *call, uint32_t index)
{
    const struct rt_value *x = rt_shape_arg(call, ARG_X), *list = rt_shape_arg(call, index);
    int64_t axis;
    uint8_t d;

    TRY(rt_shape_need_const(call, ARG_AXIS, &axis));
    TRY(rt_shape_need_dim(call, axis, x->rank, &d));
    return rt_dim_require_equal(&call->graph->dims, rt_value_numel(call->graph, list),
                                x->rank ? x->dims[d] : rt_dim_of(1),
                                "parameters of channels (one for each channel)", call->err);
}

/* Argument |index|, scales or zero points, matches the input. */
static enum status need_params(struct rt_shape_call *call, const struct row *row, uint32_t index)
{
    if (rt_shape_arg_is_none(call, index)) {
        return ST_OK;
    }
    TRY(rt_shape_need_dtype(call, index, index == ARG_SCALES ? RT_DTYPES_FLOAT : RT_DTYPES_INT));
    switch (row->spread) {
    case SPREAD_ALL:
        return rt_dim_require_equal(&call->graph->dims,
                                    rt_value_numel(call->graph, rt_shape_arg(call, index)),
                                    rt_dim_of(1), "elements of a scale or zero point", call->err);
    case SPREAD_CHANNELS:
        return need_channels(call, index);
    case SPREAD_ROWS:
        return need_rows(call, index);
    }
    unreachable();
}

static enum status need_all_params(struct rt_shape_call *call, const struct row *row)
{
    int64_t zero_point;

    if (row->is_tensor) {
        TRY(need_params(call, row, ARG_SCALES));
        return need_params(call, row, ARG_ZERO_POINTS);
    }
    if (!rt_value_is_fixed(rt_shape_arg(call, ARG_SCALES))) {
        return rt_shape_unsupported(call, "the scale must not depend on the inputs' dims");
    }
    TRY(rt_shape_need_const(call, ARG_ZERO_POINTS, &zero_point));
    return zero_point >= INT32_MIN && zero_point <= INT32_MAX
               ? ST_OK
               : rt_shape_refuse(call, "zero point %lld is out of range", (long long)zero_point);
}

static enum status quantize_shape(struct rt_shape_call *call)
{
    const struct row *row = call->node->op->detail;

    TRY(rt_shape_need_out_dtype(call, 0, RT_DTYPES_QUANT));
    TRY(need_bounds(call, row->bounds, rt_shape_out_dtype(call, 0)));
    TRY(need_all_params(call, row));
    return rt_shape_set_out_like(call, 0, ARG_X);
}

static enum status dequantize_shape(struct rt_shape_call *call)
{
    const struct row *row = call->node->op->detail;

    TRY(rt_shape_need_out_dtype(call, 0, RT_DTYPES_FLOAT));
    TRY(need_bounds(call, row->bounds, rt_shape_arg(call, ARG_X)->dtype));
    TRY(need_type(call, row->bounds + 3u, rt_shape_out_dtype(call, 0)));
    TRY(need_all_params(call, row));
    return rt_shape_set_out_like(call, 0, ARG_X);
}

/* ---- recording ----------------------------------------------------------------------------- */

/*
 * Bytes from one position of |x| to the next in a list with one parameter for each channel or row.
 */
static void list_strides(const struct rt_emit *emit, const struct rt_tensor *x, enum spread spread,
                         int64_t width, int64_t strides[SHAPE_RANK_MAX])
{
    int64_t rows = 1;

    for (uint8_t d = 0; d < x->rank; d++) {
        strides[d] = 0;
    }
    if (spread == SPREAD_CHANNELS && x->rank > 0) {
        strides[rt_dim_from_first(rt_emit_int(emit, ARG_AXIS), x->rank)] = width;
    }
    for (uint8_t d = x->rank; spread == SPREAD_ROWS && d-- > 0;) {
        if (d + 1 < x->rank) {
            strides[d] = rows * width;
            rows *= x->dims[d];
        }
    }
}

/* Adds a list of parameters to the nest, and to |bindings|. */
static void add_params(struct rt_emit *emit, struct rt_loop *loop, enum spread spread,
                       uint32_t index, struct hal_binding *bindings)
{
    const struct rt_tensor *x = rt_emit_arg(emit, ARG_X), *list = rt_emit_arg(emit, index);
    int64_t strides[SHAPE_RANK_MAX];

    bindings[loop->operands] = list->binding;
    if (spread == SPREAD_ROWS && list->rank == x->rank) {
        rt_loop_add(loop, list);
        return;
    }
    list_strides(emit, x, spread, (int64_t)dtype_bytes(list->dtype), strides);
    rt_loop_add_strides(loop, strides, 0);
}

static enum status record(struct rt_emit *emit, const struct hal_kernel *kernel,
                          const struct hal_kernel *f64_kernel, enum dtype real, enum dtype whole,
                          struct error *err)
{
    const struct row *row = rt_emit_op(emit)->detail;
    const struct rt_tensor *x = rt_emit_arg(emit, ARG_X), *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[RT_LOOP_OPERANDS_MAX] = {out->binding, x->binding};
    struct rt_quant_constants k = {
        .real = real,
        .whole = whole,
        .has_scales = row->is_tensor,
        .has_zero_points = row->is_tensor && rt_emit_arg(emit, ARG_ZERO_POINTS),
        .min = (int32_t)rt_emit_int(emit, row->bounds),
        .max = (int32_t)rt_emit_int(emit, row->bounds + 1),
    };
    rt_loop_init(&k.loop, x->rank, x->dims);
    rt_loop_add(&k.loop, out);
    rt_loop_add(&k.loop, x);
    if (k.has_scales) {
        k.scales = rt_emit_arg(emit, ARG_SCALES)->dtype;
        add_params(emit, &k.loop, row->spread, ARG_SCALES, bindings);
    } else {
        k.scale = (float)rt_emit_number(emit, ARG_SCALES);
        k.zero_point = (int32_t)rt_emit_int(emit, ARG_ZERO_POINTS);
    }
    if (k.has_zero_points) {
        k.zero_points = rt_emit_arg(emit, ARG_ZERO_POINTS)->dtype;
        add_params(emit, &k.loop, row->spread, ARG_ZERO_POINTS, bindings);
    }
    const struct hal_kernel *runs = real == DT_F64 ? f64_kernel : kernel;
    rt_loop_cut(&k.loop, rt_emit_machine(emit, runs), RT_WORK_ELEMENTS);
    struct hal_dispatch dispatch = {
        .kernel = runs,
        .grid = {rt_loop_tiles(&k.loop), 1, 1},
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = k.loop.operands,
        .scratch_bytes = RT_QUANT_SCRATCH_BYTES,
        .cost = (uint64_t)x->numel,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

static enum status quantize_emit(struct rt_emit *emit, struct error *err)
{
    return record(emit, &rt_quantize_kernel, &rt_quantize_f64_kernel,
                  rt_emit_arg(emit, ARG_X)->dtype, rt_emit_out(emit, 0)->dtype, err);
}

static enum status dequantize_emit(struct rt_emit *emit, struct error *err)
{
    return record(emit, &rt_dequantize_kernel, &rt_dequantize_f64_kernel,
                  rt_emit_out(emit, 0)->dtype, rt_emit_arg(emit, ARG_X)->dtype, err);
}

/* ---- finding parameters -------------------------------------------------------------------- */

/* Scale and zero point in output |first| and the next one, one pair for each row of |trailing|
 * dims. */
static enum status set_params(struct rt_shape_call *call, uint32_t first, int64_t trailing)
{
    const struct rt_value *x = rt_shape_arg(call, ARG_X);
    struct rt_dim dims[SHAPE_RANK_MAX];

    for (uint8_t d = 0; d < x->rank; d++) {
        dims[d] = d < x->rank - trailing ? x->dims[d] : rt_dim_of(1);
    }
    TRY(rt_shape_set_out(call, first, x->rank, dims));
    return rt_shape_set_out(call, first + 1, x->rank, dims);
}

static enum status need_choice(struct rt_shape_call *call)
{
    TRY(rt_shape_need_out_dtype(call, 0, RT_DTYPES_FLOAT));
    return rt_shape_need_out_dtype(call, 1, RT_DTYPES_INT);
}

/* One element, of the rank that the file declares. */
static enum status set_single(struct rt_shape_call *call, uint32_t index)
{
    const struct rt_value *out = rt_node_out(call->graph, call->node, index);
    const struct rt_dim dims[SHAPE_RANK_MAX] = {rt_dim_of(1), rt_dim_of(1), rt_dim_of(1),
                                                rt_dim_of(1)};

    if (out->declared && out->rank > 4) {
        return rt_shape_refuse(call, "output %u has rank %u, expected at most 4", index, out->rank);
    }
    return rt_shape_set_out(call, index, out->declared ? out->rank : 1, dims);
}

static enum status choose_qparams_shape(struct rt_shape_call *call)
{
    int64_t min, max;

    TRY(need_choice(call));
    TRY(rt_shape_need_const(call, 1, &min));
    TRY(rt_shape_need_const(call, 2, &max));
    if (min >= max || min < INT32_MIN || max > INT32_MAX) {
        return rt_shape_refuse(call, "values from %lld to %lld are not a range of i32",
                               (long long)min, (long long)max);
    }
    TRY(set_single(call, 0));
    return set_single(call, 1);
}

static enum status choose_rows_shape(struct rt_shape_call *call)
{
    TRY(need_choice(call));
    if (rt_shape_arg(call, ARG_X)->rank == 0) {
        return rt_shape_refuse(call, "the input has rank 0, expected 1 or more");
    }
    return set_params(call, 0, 1);
}

static enum status quantize_dynamic_shape(struct rt_shape_call *call)
{
    int64_t trailing;

    TRY(rt_shape_need_const(call, 1, &trailing));
    if (trailing < 0 || trailing > rt_shape_arg(call, ARG_X)->rank) {
        return rt_shape_refuse(call, "rows of %lld dims, but the input has rank %u",
                               (long long)trailing, rt_shape_arg(call, ARG_X)->rank);
    }
    TRY(rt_shape_need_out_dtype(call, 0, 1u << DT_I8));
    TRY(rt_shape_need_out_dtype(call, 1, RT_DTYPES_FLOAT));
    TRY(rt_shape_need_out_dtype(call, 2, 1u << DT_I32));
    TRY(rt_shape_set_out_like(call, 0, ARG_X));
    return set_params(call, 1, trailing);
}

/* Rows of a tile of |kernel|. */
static int64_t tile_of(struct rt_emit *emit, const struct hal_kernel *kernel, int64_t rows,
                       int64_t length)
{
    const struct rt_machine *machine = rt_emit_machine(emit, kernel);
    return rt_cut_things(machine, RT_WORK_ELEMENTS, rows, length, rt_cut_row(machine, length));
}

/* The input, seen as |rows| rows. */
static struct rt_quant_rows describe_rows(struct rt_emit *emit, int64_t rows)
{
    const struct rt_tensor *x = rt_emit_arg(emit, ARG_X);
    int64_t length = rows > 0 ? x->numel / rows : 0;

    return (struct rt_quant_rows){
        .rows = rows,
        .length = length,
        .real = x->dtype,
        .scale = DT_F64,
        .zero_point = DT_I64,
        .min = INT8_MIN,
        .max = INT8_MAX,
    };
}

/* Product of all dims but the last |trailing|. */
static int64_t count_rows(const struct rt_tensor *x, int64_t trailing)
{
    int64_t rows = 1;

    for (int64_t d = 0; d + trailing < x->rank; d++) {
        rows *= x->dims[d];
    }
    return rows;
}

static enum status record_rows(struct rt_emit *emit, const struct hal_kernel *kernel,
                               struct rt_quant_rows *k, uint32_t first, struct error *err)
{
    struct hal_binding bindings[4];
    uint32_t count = 0;

    for (; count < first + 2; count++) {
        const struct rt_tensor *out = rt_emit_out(emit, count);
        bindings[count] = out ? out->binding : (struct hal_binding){0};
        if (out && count == first) {
            k->scale = out->dtype;
        } else if (out && count == first + 1) {
            k->zero_point = out->dtype;
        }
    }
    bindings[count++] = rt_emit_arg(emit, ARG_X)->binding;
    k->tile = tile_of(emit, kernel, k->rows, k->length);
    struct hal_dispatch dispatch = {
        .kernel = kernel,
        .constants = k,
        .constants_bytes = sizeof(*k),
        .bindings = bindings,
        .binding_count = count,
        .scratch_bytes = RT_QUANT_CHUNK * sizeof(float),
        .cost = (uint64_t)(k->rows * k->length),
    };
    return rt_emit_tiles(emit, k->rows, k->tile, &dispatch, err);
}

static const struct hal_kernel *dynamic_kernel(const struct rt_quant_rows *k)
{
    return k->real == DT_F64 ? &rt_quantize_dynamic_f64_kernel : &rt_quantize_dynamic_kernel;
}

static const struct hal_kernel *choose_kernel(const struct rt_quant_rows *k)
{
    return k->real == DT_F64 ? &rt_choose_f64_kernel : &rt_choose_kernel;
}

static enum status choose_qparams_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_quant_rows k = describe_rows(emit, 1);

    k.min = (int32_t)rt_emit_int(emit, 1);
    k.max = (int32_t)rt_emit_int(emit, 2);
    return record_rows(emit, choose_kernel(&k), &k, 0, err);
}

static enum status choose_rows_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_quant_rows k = describe_rows(emit, count_rows(rt_emit_arg(emit, ARG_X), 1));
    return record_rows(emit, choose_kernel(&k), &k, 0, err);
}

static enum status quantize_dynamic_emit(struct rt_emit *emit, struct error *err)
{
    int64_t rows = count_rows(rt_emit_arg(emit, ARG_X), rt_emit_int(emit, 1));
    struct rt_quant_rows k = describe_rows(emit, rows);
    return record_rows(emit, dynamic_kernel(&k), &k, 1, err);
}

/* ---- weights ------------------------------------------------------------------------------- */

static enum status dequantize_groups_shape(struct rt_shape_call *call)
{
    const struct rt_value *w = rt_shape_arg(call, 0), *scales = rt_shape_arg(call, 1);
    struct rt_dims *dims = &call->graph->dims;
    int64_t group;

    TRY(rt_shape_need_dtype(call, 0, 1u << DT_I8));
    TRY(rt_shape_need_dtype(call, 1, RT_DTYPES_FLOAT));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << DT_F32));
    TRY(rt_shape_need_const(call, 2, &group));
    if (w->rank != 2 || scales->rank != 2 || group <= 0) {
        return rt_shape_refuse(call,
                               "weights of rank %u, scales of rank %u and groups of %lld elements, "
                               "expected 2, 2 and at least 1",
                               w->rank, scales->rank, (long long)group);
    }
    TRY(rt_dim_require_equal(dims, w->dims[0], scales->dims[0],
                             "rows of weights (must equal those of scales)", call->err));
    TRY(rt_dim_require_equal(dims, w->dims[1], rt_dim_mul(dims, scales->dims[1], rt_dim_of(group)),
                             "columns of weights (groups times their size)", call->err));
    return rt_shape_set_out_like(call, 0, 0);
}

static enum status dequantize_groups_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, 0), *scales = rt_emit_arg(emit, 1);
    struct rt_quant_groups k = {
        .rows = w->dims[0],
        .length = w->dims[1],
        .group = rt_emit_int(emit, 2),
        .tile = tile_of(emit, &rt_dequantize_groups_kernel, w->dims[0], w->dims[1]),
        .scales = scales->dtype,
    };
    struct hal_binding bindings[] = {rt_emit_out(emit, 0)->binding, w->binding, scales->binding};
    struct hal_dispatch dispatch = {
        .kernel = &rt_dequantize_groups_kernel,
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 3,
        .cost = (uint64_t)w->numel,
    };
    return rt_emit_tiles(emit, k.rows, k.tile, &dispatch, err);
}

static enum status unpack_int4_shape(struct rt_shape_call *call)
{
    const struct rt_value *bytes = rt_shape_arg(call, 0);
    struct rt_dim dims[SHAPE_RANK_MAX];
    int64_t length, first;

    TRY(rt_shape_need_dtype(call, 0, 1u << DT_U8));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << DT_I8));
    TRY(rt_shape_need_const(call, 1, &length));
    TRY(rt_shape_need_const(call, 2, &first));
    if (bytes->rank == 0 || length < 0 || (first != 0 && first != 1)) {
        return rt_shape_refuse(call, "bytes of rank %u, rows of %lld, first nibble %lld",
                               bytes->rank, (long long)length, (long long)first);
    }
    TRY(rt_dim_require_equal(&call->graph->dims, bytes->dims[bytes->rank - 1],
                             rt_dim_of(length / 2 + length % 2), "bytes of a row", call->err));
    for (uint8_t d = 0; d < bytes->rank; d++) {
        dims[d] = d + 1 < bytes->rank ? bytes->dims[d] : rt_dim_of(length);
    }
    return rt_shape_set_out(call, 0, bytes->rank, dims);
}

static enum status unpack_int4_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    int64_t length = rt_emit_int(emit, 1);
    int64_t rows = length > 0 ? out->numel / length : 0;
    struct rt_quant_nibbles k = {
        .rows = rows,
        .length = length,
        .tile = tile_of(emit, &rt_unpack_int4_kernel, rows, length),
        .high_first = rt_emit_int(emit, 2) == 1,
    };
    struct hal_binding bindings[] = {out->binding, rt_emit_arg(emit, 0)->binding};
    struct hal_dispatch dispatch = {
        .kernel = &rt_unpack_int4_kernel,
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 2,
        .cost = (uint64_t)out->numel,
    };
    return rt_emit_tiles(emit, k.rows, k.tile, &dispatch, err);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static const struct row by_number = {SPREAD_ALL, false, 3};
static const struct row by_tensor = {SPREAD_ALL, true, 3};
static const struct row by_channel = {SPREAD_CHANNELS, true, 4};
static const struct row by_row = {SPREAD_ROWS, true, 3};

#define Q "quantized_decomposed::"

const struct rt_op rt_ops_quant[] = {
    {"quantize", Q "quantize_per_tensor.out", "TFIIII>T", quantize_shape, quantize_emit,
     RT_OP_POINTWISE, RT_LAYOUT_ELEMENTWISE, &by_number, NULL, .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_quantize_kernel},
    {"quantize_tensor", Q "quantize_per_tensor.Tensor_out", "TTTIII>T", quantize_shape,
     quantize_emit, 0, RT_LAYOUT_ELEMENTWISE, &by_tensor, NULL, .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_quantize_kernel},
    {"quantize_channels", Q "quantize_per_channel.out", "TTTIIII>T", quantize_shape, quantize_emit,
     0, RT_LAYOUT_ELEMENTWISE, &by_channel, NULL, .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_quantize_kernel},
    {"quantize_rows", Q "quantize_per_token.out", "TTTIII>T", quantize_shape, quantize_emit, 0,
     RT_LAYOUT_ELEMENTWISE, &by_row, NULL, .dtypes = RT_DTYPES_FLOAT, .runs = &rt_quantize_kernel},
    {"dequantize", Q "dequantize_per_tensor.out", "TFIIIII?>T", dequantize_shape, dequantize_emit,
     RT_OP_POINTWISE, RT_LAYOUT_ELEMENTWISE, &by_number, NULL, .dtypes = RT_DTYPES_QUANT,
     .runs = &rt_dequantize_kernel},
    {"dequantize_tensor", Q "dequantize_per_tensor.Tensor_out", "TTTIIII?>T", dequantize_shape,
     dequantize_emit, 0, RT_LAYOUT_ELEMENTWISE, &by_tensor, NULL, .dtypes = RT_DTYPES_QUANT,
     .runs = &rt_dequantize_kernel},
    {"dequantize_channels", Q "dequantize_per_channel.out", "TTT?IIIII?>T", dequantize_shape,
     dequantize_emit, 0, RT_LAYOUT_ELEMENTWISE, &by_channel, NULL, .dtypes = RT_DTYPES_QUANT,
     .runs = &rt_dequantize_kernel},
    {"dequantize_rows", Q "dequantize_per_token.out", "TTTIIII>T", dequantize_shape,
     dequantize_emit, 0, RT_LAYOUT_ELEMENTWISE, &by_row, NULL, .dtypes = RT_DTYPES_QUANT,
     .runs = &rt_dequantize_kernel},
    {"choose_qparams", Q "choose_qparams.Tensor_out", "TIIFI>TT", choose_qparams_shape,
     choose_qparams_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_choose_kernel},
    {"choose_rows", Q "choose_qparams_per_token_asymmetric.out", "TI>TT", choose_rows_shape,
     choose_rows_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_choose_kernel},
    {"quantize_dynamic", NULL, "TI>TTT", quantize_dynamic_shape, quantize_dynamic_emit, 0,
     RT_LAYOUT_ROW_MAJOR, NULL, rt_batch_each, .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_quantize_dynamic_kernel},
    {"dequantize_groups", NULL, "TTI>T", dequantize_groups_shape, dequantize_groups_emit, 0,
     RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = 1u << DT_I8, .runs = &rt_dequantize_groups_kernel},
    {"unpack_int4", NULL, "TII>T", unpack_int4_shape, unpack_int4_emit, 0, RT_LAYOUT_ROW_MAJOR,
     NULL, NULL, .dtypes = 1u << DT_U8, .runs = &rt_unpack_int4_kernel},
    {0},
};
