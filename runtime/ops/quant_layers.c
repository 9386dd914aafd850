/* SPDX-License-Identifier: MIT */
/*
 * Layers over quantised weights: embeddings of 8, 4 and 2 bits, which have a kernel here, and
 * products and sums, which the lower pass replaces with the operators of quant.c and others.
 *
 * The rows of an embedding's weights are contiguous. Weights of 4 bits are packed two to a byte,
 * the first in the high nibble; weights of 2 bits four to a byte, the first in the lowest bits. A
 * row has one scale, or one for each of its equal groups; zero points are floats in the same form.
 * A place outside the table is a fault.
 */
#include "config.h"

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "hal/fault.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"
#include "runtime/ops/quant.h"
#include "runtime/ops/shaders/generated/spirv.h"

enum { EMBED_WEIGHTS, EMBED_SCALES, EMBED_ZERO_POINTS, EMBED_MIN, EMBED_MAX, EMBED_PLACES };

#define HALF_TYPES (1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16)

/* ---- embeddings: the kernel ---------------------------------------------------------------- */

/* Elements [first, first + n) of a row as integers of 8 bits; |first| is a multiple of 4. */
static const void *unpack(const struct rt_quant_embed *k, const uint8_t *row, int64_t first,
                          int64_t n, int8_t *buffer)
{
    const uint8_t *from = row + first * k->bits / 8;

    if (k->bits == 8) {
        return from;
    }
    for (int64_t i = 0; i < n && k->bits == 4; i++) {
        buffer[i] = (int8_t)((from[i / 2] >> (i % 2 ? 0 : 4) & 15) - 8);
    }
    for (int64_t i = 0; i < n && k->bits == 2; i++) {
        buffer[i] = (int8_t)((from[i / 4] >> 2 * (i % 4) & 3) - 2);
    }
    return buffer;
}

static float number_at(const void *list, enum dtype dtype, int64_t index)
{
    float number;
    rt_convert_load(dtype, RT_CLASS_F32)(
        &number, (const char *)list + index * (int64_t)dtype_bytes(dtype), 0, 1);
    return number;
}

/* Converts |n| elements of group |group| (counted over all rows) to floats. */
static void widen(const struct hal_args *args, const void *q, float *y, int64_t n, int64_t group)
{
    const struct rt_quant_embed *k = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    struct uk_quant quant = {.scale = number_at(args->bindings[2], k->scales, group)};
    uk_dequantize_f *dequantize =
        uk->dequantize[k->weights == DT_I8 || k->bits < 8 ? UK_I8 : UK_U8];

    if (!k->has_zero_points) {
        dequantize(y, q, &quant, (size_t)n);
        return;
    }
    float scale = quant.scale;
    quant.scale = 1;
    dequantize(y, q, &quant, (size_t)n);
    uk->scalar_f32[UK_SUB](y, y, number_at(args->bindings[3], k->zero_points, group), (size_t)n);
    uk->scalar_f32[UK_MUL](y, y, scale, (size_t)n);
}

static void embed_row(const struct hal_args *args, int64_t place, char *out)
{
    const struct rt_quant_embed *k = args->constants;
    const uint8_t *row = (const uint8_t *)args->bindings[1] + place * k->bytes;
    int64_t group = k->width / k->groups, width = (int64_t)dtype_bytes(k->out);
    int8_t ints[RT_QUANT_CHUNK + 4];
    float floats[RT_QUANT_CHUNK];

    for (int64_t done = 0, n; done < k->width; done += n) {
        int64_t begin = done & ~(int64_t)3, left = group - done % group;
        n = left < RT_QUANT_CHUNK ? left : RT_QUANT_CHUNK;
        float *y = k->out == DT_F32 ? (float *)(void *)(out + done * width) : floats;
        const char *q = unpack(k, row, begin, done - begin + n, ints);
        widen(args, q + (done - begin), y, n, place * k->groups + done / group);
        if (k->out != DT_F32) {
            rt_convert_store(RT_CLASS_F32, k->out)(out + done * width, width, y, n);
        }
    }
}

/* Bindings: output, weights, scales, zero points, places. */
static void embed_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_quant_embed *k = args->constants;
    int64_t first = tile.x * k->tile, bytes = k->width * (int64_t)dtype_bytes(k->out);
    int64_t end = k->places - first < k->tile ? k->places : first + k->tile;

    for (int64_t i = first; i < end; i++) {
        int64_t place;
        const char *from =
            (const char *)args->bindings[4] + i * (int64_t)dtype_bytes(k->places_type);
        rt_convert_load(k->places_type, RT_CLASS_I64)(&place, from, 0, 1);
        if (place < 0 || place >= k->rows) {
            hal_fault(args, HAL_FAULT_INDEX,
                      &(struct hal_fault_number){from, place, 0, k->rows - 1});
            continue;
        }
        embed_row(args, place, (char *)args->bindings[0] + i * bytes);
    }
}

static const struct hal_kernel embed_kernel = {
    .name = "embedding_quantized", .cpu = embed_tile, .spirv = HAL_SPIRV(embed_spirv)};

/* ---- embeddings: the operator -------------------------------------------------------------- */

struct layer {
    uint8_t bits;
    uint8_t dtype_arg; /* 0: none */
};

/* Scales or zero points: one for each row, or one for each group of each row. */
static enum status need_groups(struct rt_shape_call *call, uint32_t index, struct rt_dim width)
{
    const struct rt_value *w = rt_shape_arg(call, EMBED_WEIGHTS), *list = rt_shape_arg(call, index);
    struct rt_dims *dims = &call->graph->dims;

    if (list->kind == RT_NONE) {
        return ST_OK;
    }
    TRY(rt_shape_need_dtype(call, index, HALF_TYPES));
    if (list->rank < 1 || list->rank > 2 || list->rank != rt_shape_arg(call, EMBED_SCALES)->rank) {
        return rt_shape_refuse(call, "argument %u has rank %u, expected 1 or 2", index, list->rank);
    }
    TRY(rt_dim_require_equal(dims, list->dims[0], w->dims[0],
                             "rows of parameters (must equal those of weights)", call->err));
    if (list->rank == 1) {
        return ST_OK;
    }
    TRY(rt_dim_require_equal(dims, list->dims[1], rt_shape_arg(call, EMBED_SCALES)->dims[1],
                             "parameters of a row (must equal its scales)", call->err));
    if (!rt_dim_is_const(list->dims[1]) || !rt_dim_is_const(width) || list->dims[1].value < 1 ||
        width.value % list->dims[1].value != 0) {
        return rt_shape_refuse(call, "elements of a row modulo groups");
    }
    return ST_OK;
}

static enum status need_float_type(struct rt_shape_call *call, uint32_t index)
{
    int64_t number;

    if (index == 0 || rt_shape_arg_is_none(call, index)) {
        return ST_OK;
    }
    TRY(rt_shape_need_const(call, index, &number));
    return number == dtype_infos[rt_shape_out_dtype(call, 0)].executorch
               ? ST_OK
               : rt_shape_refuse(call, "the output's type differs from the requested one");
}

static enum status embed_shape(struct rt_shape_call *call)
{
    const struct layer *layer = call->node->op->detail;
    const struct rt_value *w = rt_shape_arg(call, EMBED_WEIGHTS),
                          *places = rt_shape_arg(call, EMBED_PLACES);
    struct rt_dim dims[SHAPE_RANK_MAX], width;

    TRY(rt_shape_need_dtype(call, EMBED_PLACES, 1u << DT_I64 | 1u << DT_I32));
    TRY(rt_shape_need_out_dtype(call, 0, HALF_TYPES));
    TRY(need_float_type(call, layer->dtype_arg));
    if (w->rank != 2 || places->rank >= SHAPE_RANK_MAX) {
        return rt_shape_refuse(
            call, "weights of rank %u and places of rank %u, expected 2 and less than 16", w->rank,
            places->rank);
    }
    width = rt_dim_mul(&call->graph->dims, w->dims[1], rt_dim_of(8 / layer->bits));
    TRY(need_groups(call, EMBED_SCALES, width));
    TRY(need_groups(call, EMBED_ZERO_POINTS, width));
    for (uint8_t d = 0; d < places->rank; d++) {
        dims[d] = places->dims[d];
    }
    dims[places->rank] = width;
    return rt_shape_set_out(call, 0, (uint8_t)(places->rank + 1), dims);
}

static enum status embed_emit(struct rt_emit *emit, struct error *err)
{
    const struct layer *layer = rt_emit_op(emit)->detail;
    const struct rt_tensor *w = rt_emit_arg(emit, EMBED_WEIGHTS);
    const struct rt_tensor *scales = rt_emit_arg(emit, EMBED_SCALES);
    const struct rt_tensor *zero_points = rt_emit_arg(emit, EMBED_ZERO_POINTS);
    const struct rt_tensor *places = rt_emit_arg(emit, EMBED_PLACES), *out = rt_emit_out(emit, 0);
    int64_t width = w->dims[1] * (8 / layer->bits);
    int64_t elements = rt_cut_units(rt_emit_machine(emit, &embed_kernel), RT_WORK_ELEMENTS,
                                    places->numel * width, 1);
    int64_t tile = width ? elements / width + 1 : 1;
    struct rt_quant_embed k = {
        .places = width ? places->numel : 0,
        .rows = w->dims[0],
        .width = width,
        .bytes = w->dims[1],
        .groups = scales->rank == 2 ? scales->dims[1] : 1,
        .tile = tile,
        .bits = layer->bits,
        .has_zero_points = zero_points != NULL,
        .weights = w->dtype,
        .scales = scales->dtype,
        .zero_points = zero_points ? zero_points->dtype : DT_F32,
        .places_type = places->dtype,
        .out = out->dtype,
    };
    struct hal_binding bindings[] = {
        out->binding,    w->binding,
        scales->binding, zero_points ? zero_points->binding : (struct hal_binding){0},
        places->binding,
    };
    struct hal_dispatch dispatch = {
        .kernel = &embed_kernel,
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 5,
        .cost = (uint64_t)out->numel,
    };
    return rt_emit_tiles(emit, k.places, tile, &dispatch, err);
}

/* ---- products ------------------------------------------------------------------------------ */

enum { MIXED_X, MIXED_WEIGHTS, MIXED_SCALES, MIXED_ZERO_POINTS, MIXED_DTYPE };

static enum status need_mixed(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, MIXED_X), *w = rt_shape_arg(call, MIXED_WEIGHTS);
    const struct rt_value *scales = rt_shape_arg(call, MIXED_SCALES);

    TRY(rt_shape_need_dtype(call, MIXED_WEIGHTS, 1u << DT_I8));
    TRY(rt_shape_need_dtype(call, MIXED_SCALES, 1u << x->dtype));
    TRY(rt_shape_need_out_dtype(call, 0, HALF_TYPES));
    if (x->rank != 2 || w->rank != 2 || scales->rank < 1 || scales->rank > 2) {
        return rt_shape_refuse(call, "an input of rank %u, weights of rank %u, scales of rank %u",
                               x->rank, w->rank, scales->rank);
    }
    if (!rt_shape_arg_is_none(call, MIXED_ZERO_POINTS)) {
        return rt_shape_unsupported(call, "zero points of weights are not supported");
    }
    return rt_dim_require_equal(&call->graph->dims, scales->dims[0], w->dims[0],
                                "scales (one for each row of weights)", call->err);
}

/* x [m, k], weights [k, n], a scale for each k */
static enum status mixed_mm_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, MIXED_X), *w = rt_shape_arg(call, MIXED_WEIGHTS);

    TRY(need_mixed(call));
    if (rt_shape_arg(call, MIXED_SCALES)->rank != 1) {
        return rt_shape_refuse(call, "the scales have rank 2, expected 1");
    }
    TRY(rt_dim_require_equal(&call->graph->dims, x->dims[1], w->dims[0],
                             "columns of the first matrix (must equal the rows of the second)",
                             call->err));
    return rt_shape_set_out(call, 0, 2, (struct rt_dim[]){x->dims[0], w->dims[1]});
}

/* x [m, k], weights [n, k], a scale for each n or for each group of its row */
static enum status mixed_linear_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, MIXED_X), *w = rt_shape_arg(call, MIXED_WEIGHTS);
    const struct rt_value *scales = rt_shape_arg(call, MIXED_SCALES);
    struct rt_dim groups = scales->rank == 2 ? scales->dims[1] : rt_dim_of(1);

    TRY(need_mixed(call));
    TRY(need_float_type(call, MIXED_DTYPE));
    TRY(rt_dim_require_equal(&call->graph->dims, x->dims[1], w->dims[1],
                             "columns of the input (must equal those of the weights)", call->err));
    if (!rt_dim_is_const(w->dims[1]) || !rt_dim_is_const(groups) || groups.value < 1 ||
        w->dims[1].value % groups.value != 0) {
        return rt_shape_unsupported(call, "elements of a row modulo groups");
    }
    return rt_shape_set_out(call, 0, 2, (struct rt_dim[]){x->dims[0], w->dims[0]});
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* a, its scale, zero point and bounds; the same for b; then scale, zero point and bounds of the
 * output */
static enum status add_shape(struct rt_shape_call *call)
{
    const struct rt_value *a = rt_shape_arg(call, 0), *b = rt_shape_arg(call, 5);

    TRY(rt_shape_need_dtype(call, 5, 1u << a->dtype));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << a->dtype));
    if (a->rank != b->rank) {
        return rt_shape_refuse(call, "the summands have ranks %u and %u, expected the same",
                               a->rank, b->rank);
    }
    for (uint8_t d = 0; d < a->rank; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, a->dims[d], b->dims[d],
                                 "size of the summands (must be equal)", call->err));
    }
    return rt_shape_set_out_like(call, 0, 0);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static const struct layer bytes = {8, 0}, bytes_as = {8, 6}, nibbles = {4, 0}, nibbles_as = {4, 6},
                          crumbs = {2, 0}, crumbs_as = {2, 6};

#define Q "quantized_decomposed::"
#define EMBED(name, kernel, detail, dtypes_)                                                       \
    {                                                                                              \
        name, Q kernel ".out", "TTT?IIT>T", embed_shape, embed_emit, 0, RT_LAYOUT_ROW_MAJOR,       \
            &detail, rt_batch_lookup, .dtypes = (dtypes_), .runs = &embed_kernel                   \
    }
#define EMBED_AS(name, kernel, detail, dtypes_)                                                    \
    {                                                                                              \
        name, Q kernel ".dtype_out", "TTT?IITI?>T", embed_shape, embed_emit, 0,                    \
            RT_LAYOUT_ROW_MAJOR, &detail, rt_batch_lookup, .dtypes = (dtypes_),                    \
                                                           .runs = &embed_kernel                   \
    }

const struct rt_op rt_ops_quant_layers[] = {
    EMBED("embedding_i8", "embedding_byte", bytes, 1u << DT_U8 | 1u << DT_I8),
    EMBED_AS("embedding_i8_as", "embedding_byte", bytes_as, 1u << DT_U8 | 1u << DT_I8),
    EMBED("embedding_i4", "embedding_4bit", nibbles, 1u << DT_U8),
    EMBED_AS("embedding_i4_as", "embedding_4bit", nibbles_as, 1u << DT_U8),
    EMBED("embedding_i2", "embedding_2bit", crumbs, 1u << DT_U8),
    EMBED_AS("embedding_i2_as", "embedding_2bit", crumbs_as, 1u << DT_U8),
    {"mixed_mm", Q "mixed_mm.out", "TTTT?>T", mixed_mm_shape, NULL, 0, RT_LAYOUT_ROW_MAJOR, NULL,
     NULL, .dtypes = HALF_TYPES, .becomes = "gemm"},
    {"mixed_linear", Q "mixed_linear.out", "TTTT?I?>T", mixed_linear_shape, NULL, 0,
     RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = HALF_TYPES, .becomes = "gemm"},
    {"add_quantized", Q "add.out", "TFIIITFIIIFIII>T", add_shape, NULL, 0, RT_LAYOUT_ROW_MAJOR,
     NULL, NULL, .dtypes = RT_DTYPES_QUANT, .becomes = "add"},
    {0},
};
