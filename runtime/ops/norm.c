/* SPDX-License-Identifier: MIT */
/*
 * Normalisations: layer, group and batch norm, with their statistics as further outputs, and the
 * per-channel affine map that replaces a batch norm with fixed statistics. Passes make the affine
 * map and its two coefficients; files cannot name them.
 */
#include "config.h"

#include "runtime/ops/norm.h"

#include <math.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"

#define COEFFICIENTS_TILE 1024

/* ---- shapes -------------------------------------------------------------------------------- */

static enum status need_equal(struct rt_shape_call *call, struct rt_dim a, struct rt_dim b,
                              const char *what)
{
    return rt_dim_require_equal(&call->graph->dims, a, b, what, call->err);
}

/* Argument |index|, if present, is a list of |count| floats. */
static enum status need_channels(struct rt_shape_call *call, uint32_t index, struct rt_dim count)
{
    const struct rt_value *value = rt_shape_arg(call, index);

    if (value->kind == RT_NONE) {
        return ST_OK;
    }
    TRY(rt_shape_need_dtype(call, index, RT_DTYPES_FLOAT));
    if (value->rank != 1) {
        return rt_shape_refuse(call, "argument %u has rank %u, expected 1", index, value->rank);
    }
    return need_equal(call, value->dims[0], count, "weights (one for each channel)");
}

/* Input and all outputs have float types; the input has at least |rank| dims. */
static enum status need_floats(struct rt_shape_call *call, uint8_t rank)
{
    if (rt_shape_arg(call, 0)->rank < rank) {
        return rt_shape_refuse(call, "the input has rank %u, expected at least %u",
                               rt_shape_arg(call, 0)->rank, rank);
    }
    for (uint32_t o = 0; o < call->node->out_count; o++) {
        if ((RT_DTYPES_FLOAT >> rt_shape_out_dtype(call, o) & 1) == 0) {
            return rt_shape_refuse(call, "output %u is %s, expected a float type", o,
                                   dtype_text(rt_shape_out_dtype(call, o)));
        }
    }
    return ST_OK;
}

static enum status layer_norm_shape(struct rt_shape_call *call)
{
    const struct rt_value *in = rt_shape_arg(call, 0), *shape = rt_shape_arg(call, 1);
    struct rt_dim dims[SHAPE_RANK_MAX];

    TRY(need_floats(call, 1));
    if (shape->count == 0 || shape->count > in->rank) {
        return rt_shape_refuse(call, "%u normalised dims, but the input has rank %u", shape->count,
                               in->rank);
    }
    uint8_t kept = (uint8_t)(in->rank - shape->count);
    for (uint8_t d = 0; d < in->rank; d++) {
        dims[d] = d < kept ? in->dims[d] : rt_dim_of(1);
    }
    for (uint32_t i = 0; i < shape->count; i++) {
        TRY(need_equal(call, in->dims[kept + i], shape->ints[i], "size of a normalised dim"));
    }
    for (uint32_t arg = 2; arg <= 3; arg++) {
        const struct rt_value *weight = rt_shape_arg(call, arg);
        if (weight->kind == RT_NONE) {
            continue;
        }
        TRY(rt_shape_need_dtype(call, arg, RT_DTYPES_FLOAT));
        if (weight->rank != shape->count) {
            return rt_shape_refuse(call, "argument %u has rank %u, expected %u", arg, weight->rank,
                                   shape->count);
        }
        for (uint32_t i = 0; i < shape->count; i++) {
            TRY(need_equal(call, weight->dims[i], shape->ints[i],
                           "size of the weights (must equal the normalised dim's)"));
        }
    }
    TRY(rt_shape_set_out_like(call, 0, 0));
    TRY(rt_shape_set_out(call, 1, in->rank, dims));
    return rt_shape_set_out(call, 2, in->rank, dims);
}

static enum status group_norm_shape(struct rt_shape_call *call)
{
    struct rt_dims *dims = &call->graph->dims;
    const struct rt_value *in = rt_shape_arg(call, 0);
    struct rt_dim batch = rt_shape_arg(call, 3)->i, channels = rt_shape_arg(call, 4)->i;
    struct rt_dim pixels = rt_dim_of(1);
    int64_t groups;

    TRY(need_floats(call, 2));
    TRY(need_equal(call, in->dims[0], batch, "samples"));
    TRY(need_equal(call, in->dims[1], channels, "channels"));
    for (uint8_t d = 2; d < in->rank; d++) {
        pixels = rt_dim_mul(dims, pixels, in->dims[d]);
    }
    TRY(need_equal(call, pixels, rt_shape_arg(call, 5)->i, "pixels"));
    TRY(rt_shape_need_const(call, 6, &groups));
    if (groups <= 0) {
        return rt_shape_refuse(call, "%lld groups, expected at least 1", (long long)groups);
    }
    TRY(need_equal(call, rt_dim_mod(dims, channels, rt_dim_of(groups)), rt_dim_of(0),
                   "channels modulo groups"));
    TRY(need_channels(call, 1, channels));
    TRY(need_channels(call, 2, channels));
    TRY(rt_shape_set_out_like(call, 0, 0));
    struct rt_dim statistics[2] = {batch, rt_dim_of(groups)};
    TRY(rt_shape_set_out(call, 1, 2, statistics));
    return rt_shape_set_out(call, 2, 2, statistics);
}

static enum status batch_norm_shape(struct rt_shape_call *call)
{
    const struct rt_value *in = rt_shape_arg(call, 0);
    struct rt_dim nothing = rt_dim_of(0);

    TRY(need_floats(call, 2));
    for (uint32_t arg = 1; arg <= 4; arg++) {
        TRY(need_channels(call, arg, in->dims[1]));
    }
    TRY(rt_shape_set_out_like(call, 0, 0));
    TRY(rt_shape_set_out(call, 1, 1, &nothing));
    return rt_shape_set_out(call, 2, 1, &nothing);
}

/* The variant with a training flag; without training both are the same. */
static enum status batch_norm_training_shape(struct rt_shape_call *call)
{
    if (rt_shape_arg(call, 5)->b) {
        return rt_shape_unsupported(call, "training");
    }
    return batch_norm_shape(call);
}

static enum status batch_statistics_shape(struct rt_shape_call *call)
{
    const struct rt_value *in = rt_shape_arg(call, 0);

    TRY(need_floats(call, 2));
    TRY(need_channels(call, 1, in->dims[1]));
    TRY(need_channels(call, 2, in->dims[1]));
    if (!rt_shape_arg(call, 3)->b) {
        return rt_shape_refuse(call, "expected training, or statistics");
    }
    TRY(rt_shape_set_out_like(call, 0, 0));
    TRY(rt_shape_set_out(call, 1, 1, &in->dims[1]));
    return rt_shape_set_out(call, 2, 1, &in->dims[1]);
}

static enum status affine_shape(struct rt_shape_call *call)
{
    TRY(need_floats(call, 2));
    for (uint32_t arg = 1; arg <= 2; arg++) {
        TRY(need_channels(call, arg, rt_shape_arg(call, 0)->dims[1]));
        TRY(rt_shape_need_dtype(call, arg, 1u << DT_F32));
    }
    if (rt_shape_out_dtype(call, 0) != rt_shape_arg(call, 0)->dtype) {
        return rt_shape_refuse(call, "input and output differ in type");
    }
    return rt_shape_set_out_like(call, 0, 0);
}

/* A list as long as argument 1, which is always there. */
static enum status coefficients_shape(struct rt_shape_call *call)
{
    const struct rt_value *list = rt_shape_arg(call, 1);

    if (list->rank != 1) {
        return rt_shape_refuse(call, "the statistics have rank %u, expected 1", list->rank);
    }
    for (uint32_t arg = 0; arg < call->node->arg_count; arg++) {
        if (rt_shape_arg(call, arg)->kind == RT_TENSOR) {
            TRY(need_channels(call, arg, list->dims[0]));
        }
    }
    if (rt_shape_out_dtype(call, 0) != DT_F32) {
        return rt_shape_refuse(call, "the coefficients must be f32");
    }
    return rt_shape_set_out_like(call, 0, 1);
}

/* ---- recording rows ------------------------------------------------------------------------ */

static bool is_f32(const struct rt_tensor *tensor)
{
    return tensor->dtype == DT_F32;
}

/* Is a row of it computed as floats in scratch memory? */
static bool is_short_bf16(const struct rt_tensor *tensor, int64_t run)
{
    return tensor->dtype == DT_BF16 && (size_t)run <= RT_NORM_SCRATCH_BYTES / sizeof(float);
}

/* Fills in what all rows share: types and bindings. |statistics| are the tensors for RT_NORM_MEAN
 * and RT_NORM_VARIANCE, NULL if the kernel would write them and no node reads them. */
static enum status record(struct rt_emit *emit, struct rt_norm_constants *k, uint32_t weight_arg,
                          const struct rt_tensor *const statistics[2], struct error *err)
{
    const struct rt_tensor *in = rt_emit_arg(emit, 0);
    const struct rt_tensor *weight = rt_emit_arg(emit, weight_arg);
    const struct rt_tensor *bias = rt_emit_arg(emit, weight_arg + 1);
    const struct rt_tensor *tensors[RT_NORM_BINDINGS] = {rt_emit_out(emit, 0), statistics[0],
                                                         statistics[1],        in,
                                                         weight ? weight : in, bias ? bias : in};
    struct hal_binding bindings[RT_NORM_BINDINGS];
    int64_t row = k->runs * k->run;

    for (uint32_t b = 0; b < RT_NORM_BINDINGS; b++) {
        bindings[b] = tensors[b] ? tensors[b]->binding : (struct hal_binding){0};
        k->dtypes[b] = tensors[b] ? tensors[b]->dtype : DT_F32;
    }
    k->class = in->dtype == DT_F64 ? RT_CLASS_F64 : RT_CLASS_F32;
    k->has_weight = weight != NULL;
    k->has_bias = bias != NULL;
    k->is_plain =
        k->weights_by_element && k->run > 0 && !statistics[0] && !statistics[1] &&
        (is_f32(tensors[RT_NORM_OUTPUT]) || is_short_bf16(tensors[RT_NORM_OUTPUT], k->run)) &&
        is_f32(in) && is_f32(tensors[RT_NORM_WEIGHT]) && is_f32(tensors[RT_NORM_BIAS]);
    bool is_f64 = false;
    for (uint32_t b = 0; b < RT_NORM_BINDINGS; b++) {
        is_f64 |= k->dtypes[b] == DT_F64;
    }
    const struct hal_kernel *kernel = is_f64 ? &rt_norm_f64_kernel : &rt_norm_kernel;
    const struct rt_machine *machine = rt_emit_machine(emit, kernel);
    k->tile = rt_cut_things(machine, RT_WORK_ELEMENTS, k->rows, row, rt_cut_row(machine, row));
    return rt_emit_tiles(emit, k->rows, k->tile,
                         &(struct hal_dispatch){
                             .kernel = kernel,
                             .constants = k,
                             .constants_bytes = sizeof(*k),
                             .bindings = bindings,
                             .binding_count = RT_NORM_BINDINGS,
                             .scratch_bytes = RT_NORM_SCRATCH_BYTES,
                             .cost = (uint64_t)(k->rows * row),
                         },
                         err);
}

static enum status layer_norm_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *in = rt_emit_arg(emit, 0);
    const struct rt_tensor *statistics[2] = {rt_emit_out(emit, 1), rt_emit_out(emit, 2)};
    struct rt_norm_constants k = {.rows = 1,
                                  .runs = 1,
                                  .run = 1,
                                  .weight_rows = 1,
                                  .weights_a_row = 1,
                                  .weights_by_element = true,
                                  .epsilon = rt_emit_number(emit, 4)};
    uint32_t kept = in->rank - rt_emit_value(emit, 1)->count;

    for (uint32_t d = 0; d < in->rank; d++) {
        *(d < kept ? &k.rows : &k.run) *= in->dims[d];
    }
    k.row_stride = k.run;
    return record(emit, &k, 2, statistics, err);
}

static enum status group_norm_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *statistics[2] = {rt_emit_out(emit, 1), rt_emit_out(emit, 2)};
    int64_t channels = rt_emit_int(emit, 4), pixels = rt_emit_int(emit, 5);
    int64_t groups = rt_emit_int(emit, 6), members = channels / groups;
    struct rt_norm_constants k = {.rows = rt_emit_int(emit, 3) * groups,
                                  .row_stride = members * pixels,
                                  .runs = members,
                                  .run_stride = pixels,
                                  .run = pixels,
                                  .weight_rows = groups,
                                  .weights_a_row = members,
                                  .epsilon = rt_emit_number(emit, 7)};

    return members == 0 ? ST_OK : record(emit, &k, 1, statistics, err);
}

/* A row is a channel; a run is that channel's pixels in one image. */
static struct rt_norm_constants channel_rows(const struct rt_tensor *in, double epsilon)
{
    int64_t pixels = 1;

    for (uint32_t d = 2; d < in->rank; d++) {
        pixels *= in->dims[d];
    }
    return (struct rt_norm_constants){.rows = in->dims[1],
                                      .row_stride = pixels,
                                      .runs = in->dims[0],
                                      .run_stride = in->dims[1] * pixels,
                                      .run = pixels,
                                      .weight_rows = in->dims[1],
                                      .weights_a_row = 1,
                                      .epsilon = epsilon};
}

static enum status batch_norm_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *statistics[2] = {rt_emit_arg(emit, 3), rt_emit_arg(emit, 4)};
    uint32_t epsilon = rt_emit_value(emit, 5)->kind == RT_BOOL ? 7 : 6;
    struct rt_norm_constants k = channel_rows(rt_emit_arg(emit, 0), rt_emit_number(emit, epsilon));

    k.is_given = true;
    return record(emit, &k, 1, statistics, err);
}

static enum status batch_statistics_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *statistics[2] = {rt_emit_out(emit, 1), rt_emit_out(emit, 2)};
    struct rt_norm_constants k = channel_rows(rt_emit_arg(emit, 0), rt_emit_number(emit, 5));

    return record(emit, &k, 1, statistics, err);
}

/* ---- affine -------------------------------------------------------------------------------- */

static enum status affine_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0), *in = rt_emit_arg(emit, 0);
    const struct rt_tensor *scale = rt_emit_arg(emit, 1), *shift = rt_emit_arg(emit, 2);
    struct hal_binding bindings[4] = {out->binding, in->binding, scale->binding, shift->binding};
    int64_t by_channel[SHAPE_RANK_MAX] = {[1] = sizeof(float)};
    struct rt_affine_constants k = {.dtype = out->dtype};

    rt_loop_init(&k.loop, out->rank, out->dims);
    rt_loop_add(&k.loop, out);
    rt_loop_add(&k.loop, in);
    rt_loop_add_strides(&k.loop, by_channel, 0);
    rt_loop_add_strides(&k.loop, by_channel, 0);
    rt_loop_cut(&k.loop, rt_emit_machine(emit, &rt_affine_kernel), RT_WORK_ELEMENTS);
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = &rt_affine_kernel,
                                .grid = {rt_loop_tiles(&k.loop), 1, 1},
                                .constants = &k,
                                .constants_bytes = sizeof(k),
                                .bindings = bindings,
                                .binding_count = 4,
                                .scratch_bytes = sizeof(float) * RT_NORM_CHUNK,
                                .cost = (uint64_t)out->numel / 2,
                            },
                            err);
}

/* scale = weight / sqrt(variance + epsilon); shift = bias - mean * scale. A missing weight is 1, a
 * missing bias 0. */
struct coefficients {
    enum dtype dtypes[4]; /* of output, weight or bias, statistic, scale */
    bool has_first;
    bool is_shift;
    double epsilon;
};

static double coefficient(const struct hal_args *args, uint32_t binding, int64_t at)
{
    const struct coefficients *k = args->constants;
    enum dtype dtype = k->dtypes[binding];
    double value;

    rt_convert_load(dtype, RT_CLASS_F64)(
        &value, (const char *)args->bindings[binding] + at * (int64_t)dtype_bytes(dtype), 0, 1);
    return value;
}

static void coefficients_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct coefficients *k = args->constants;
    int64_t count = (int64_t)(args->lengths[0] / sizeof(float));
    int64_t first = (int64_t)tile.x * COEFFICIENTS_TILE;
    int64_t end = count - first < COEFFICIENTS_TILE ? count : first + COEFFICIENTS_TILE;
    float *out = args->bindings[0];

    for (int64_t c = first; c < end; c++) {
        double weight = k->has_first ? coefficient(args, 1, c) : !k->is_shift;
        if (k->is_shift) {
            out[c] = (float)(weight - coefficient(args, 2, c) * coefficient(args, 3, c));
        } else {
            out[c] = (float)(weight / sqrt(coefficient(args, 2, c) + k->epsilon));
        }
    }
}

static const struct hal_kernel coefficients_kernel = {.name = "bn_coefficients",
                                                      .cpu = coefficients_tile};

static enum status emit_coefficients(struct rt_emit *emit, struct coefficients *k,
                                     struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    const struct rt_tensor *first = rt_emit_arg(emit, 0), *statistic = rt_emit_arg(emit, 1);
    const struct rt_tensor *tensors[4] = {out, first ? first : statistic, statistic,
                                          k->is_shift ? rt_emit_arg(emit, 2) : statistic};
    struct hal_binding bindings[4];

    for (uint32_t b = 0; b < 4; b++) {
        bindings[b] = tensors[b]->binding;
        k->dtypes[b] = tensors[b]->dtype;
    }
    k->has_first = first != NULL;
    return rt_emit_tiles(emit, out->numel, COEFFICIENTS_TILE,
                         &(struct hal_dispatch){
                             .kernel = &coefficients_kernel,
                             .constants = k,
                             .constants_bytes = sizeof(*k),
                             .bindings = bindings,
                             .binding_count = 4,
                             .cost = (uint64_t)out->numel * 20,
                         },
                         err);
}

static enum status bn_scale_emit(struct rt_emit *emit, struct error *err)
{
    struct coefficients k = {.epsilon = rt_emit_number(emit, 2)};
    return emit_coefficients(emit, &k, err);
}

static enum status bn_shift_emit(struct rt_emit *emit, struct error *err)
{
    struct coefficients k = {.is_shift = true};
    return emit_coefficients(emit, &k, err);
}

/* ---- the operators ------------------------------------------------------------------------- */

const struct rt_op rt_ops_norm[] = {
    {.name = "layer_norm",
     .kernels = "aten::native_layer_norm.out",
     .args = "TLT?T?F>TTT",
     .shape = layer_norm_shape,
     .emit = layer_norm_emit,
     .flags = RT_OP_IN_PLACE,
     .batch = rt_batch_trailing,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_norm_kernel},
    {.name = "group_norm",
     .kernels = "aten::native_group_norm.out",
     .args = "TT?T?IIIIF>TTT",
     .shape = group_norm_shape,
     .emit = group_norm_emit,
     .flags = RT_OP_IN_PLACE,
     .batch = rt_batch_samples,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_norm_kernel},
    {.name = "batch_norm",
     .kernels = "aten::_native_batch_norm_legit_no_training.out",
     .args = "TT?T?TTFF>TTT",
     .shape = batch_norm_shape,
     .emit = batch_norm_emit,
     .flags = RT_OP_IN_PLACE,
     .batch = rt_batch_each,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_norm_kernel},
    {.name = "batch_norm_training",
     .kernels = "aten::_native_batch_norm_legit.out",
     .args = "TT?T?TTBFF>TTT",
     .shape = batch_norm_training_shape,
     .emit = batch_norm_emit,
     .flags = RT_OP_IN_PLACE,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_norm_kernel},
    {.name = "batch_norm_statistics",
     .kernels = "aten::_native_batch_norm_legit.no_stats_out",
     .args = "TT?T?BFF>TTT",
     .shape = batch_statistics_shape,
     .emit = batch_statistics_emit,
     .flags = RT_OP_IN_PLACE,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_norm_kernel},
    /* x * scale + shift along dim 1 */
    {.name = "affine",
     .args = "TTT>T",
     .shape = affine_shape,
     .emit = affine_emit,
     .flags = RT_OP_IN_PLACE,
     .layout = RT_LAYOUT_ELEMENTWISE,
     .batch = rt_batch_each,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_affine_kernel},
    /* weight, variance, epsilon */
    {.name = "bn_scale",
     .args = "T?TF>T",
     .shape = coefficients_shape,
     .emit = bn_scale_emit,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &coefficients_kernel},
    /* bias, mean, scale */
    {.name = "bn_shift",
     .args = "T?TT>T",
     .shape = coefficients_shape,
     .emit = bn_shift_emit,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &coefficients_kernel},
    {.name = NULL},
};
