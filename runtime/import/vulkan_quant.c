/* SPDX-License-Identifier: MIT */
/*
 * Quantized operators. Each is imported as its definition: integers are dequantized, the operator
 * computes on numbers, and its result is quantized if it is stored so. As for all dialects,
 * runtime/passes/quantize.c later finds the integer arithmetic in this.
 *
 * Packed weights have rows and columns padded to the size that a shader wants: the activations and
 * the result tell their real size. Sums over weights, which shaders need for zero points, are
 * ignored.
 */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "runtime/import/vulkan.h"

#define I8_MIN (-128)
#define I8_MAX 127

static uint32_t whole(struct rt_vulkan_import *v, int64_t number)
{
    return rt_graph_int(v->graph, rt_dim_of(number));
}

static uint32_t i8_type(struct rt_vulkan_import *v)
{
    return whole(v, dtype_infos[DT_I8].executorch);
}

/* ---- numbers and integers -------------------------------------------------------------------- */

/* Dequantizes |stored|; scale and zero point are arguments of the call. */
static enum status decode(struct rt_vulkan_import *v, uint32_t stored, double scale,
                          int64_t zero_point, uint32_t *out_value)
{
    uint32_t args[] = {stored,
                       rt_graph_float(v->graph, scale),
                       whole(v, zero_point),
                       whole(v, I8_MIN),
                       whole(v, I8_MAX),
                       i8_type(v),
                       rt_graph_none(v->graph)};
    return rt_vulkan_apply(v, RT_OP(dequantize), args, 7, DT_F32, out_value);
}

static enum status encode(struct rt_vulkan_import *v, uint32_t numbers, double scale,
                          int64_t zero_point, uint32_t *out_value)
{
    uint32_t args[] = {numbers,
                       rt_graph_float(v->graph, scale),
                       whole(v, zero_point),
                       whole(v, I8_MIN),
                       whole(v, I8_MAX),
                       i8_type(v)};
    return rt_vulkan_apply(v, RT_OP(quantize), args, 6, DT_I8, out_value);
}

enum status rt_vulkan_decode_arg(struct rt_vulkan_import *v, uint32_t tensor, uint32_t scale,
                                 uint32_t *out_value)
{
    double factor;
    int64_t zero_point;
    uint32_t stored;
    TRY(rt_vulkan_tensor(v, tensor, &stored));
    TRY(rt_vulkan_number(v, scale, &factor));
    TRY(rt_vulkan_whole(v, scale + 1, &zero_point));
    return decode(v, stored, factor, zero_point, out_value);
}

enum status rt_vulkan_define_encoded(struct rt_vulkan_import *v, uint32_t numbers, uint32_t scale)
{
    double factor;
    int64_t zero_point;
    uint32_t stored;
    TRY(rt_vulkan_number(v, scale, &factor));
    TRY(rt_vulkan_whole(v, scale + 1, &zero_point));
    TRY(encode(v, numbers, factor, zero_point, &stored));
    return rt_vulkan_define(v, 0, stored);
}

/* The tensor, its scale and zero point, the least and the greatest stored number. */
static enum status quantized_arguments(struct rt_vulkan_import *v, uint32_t args[5])
{
    static const char letters[] = "TFIII";
    for (uint32_t i = 0; i < 5; i++) {
        TRY(rt_vulkan_argument(v, i, letters[i], false, &args[i]));
    }
    return ST_OK;
}

enum status rt_vulkan_import_quantize(struct rt_vulkan_import *v)
{
    uint32_t args[6], value;
    TRY(quantized_arguments(v, args));
    const struct rt_vulkan_value *result = rt_vulkan_result(v, 0);
    enum dtype dtype = result && result->kind == VK_TENSOR ? result->dtype : DT_I8;
    args[5] = whole(v, dtype_infos[dtype].executorch);
    TRY(rt_vulkan_apply(v, RT_OP(quantize), args, 6, dtype, &value));
    return rt_vulkan_define(v, 0, value);
}

enum status rt_vulkan_import_dequantize(struct rt_vulkan_import *v)
{
    uint32_t args[7], value;
    TRY(quantized_arguments(v, args));
    args[5] = whole(v, dtype_infos[v->graph->values[args[0]].dtype].executorch);
    args[6] = rt_graph_none(v->graph);
    TRY(rt_vulkan_apply(v, RT_OP(dequantize), args, 7, DT_F32, &value));
    return rt_vulkan_define(v, 0, value);
}

/* Applies an operator with several outputs of the given types. */
static enum status apply_outs(struct rt_vulkan_import *v, const struct rt_op *op,
                              const uint32_t *args, uint32_t arg_count, const enum dtype *dtypes,
                              uint32_t *outs, uint32_t out_count)
{
    for (uint32_t i = 0; i < out_count; i++) {
        outs[i] = rt_graph_tensor(v->graph, dtypes[i], 0, NULL);
    }
    uint32_t node = rt_graph_node(v->graph, op, args, arg_count, outs, out_count);
    TRY(rt_graph_check(v->graph, v->err));
    return rt_graph_infer(v->graph, node, v->err);
}

enum status rt_vulkan_matrix(struct rt_vulkan_import *v, uint32_t index, enum dtype dtype,
                             uint32_t *out_value)
{
    TRY(rt_vulkan_tensor(v, index, out_value));
    const struct rt_value *tensor = &v->graph->values[*out_value];
    struct shape shape;
    if (tensor->rank != 2 || tensor->dtype != dtype || !rt_value_shape(tensor, &shape)) {
        return error_set(v->err, ST_UNSUPPORTED, "argument %" PRIu32 " is not a matrix of %s",
                         index, dtype_text(dtype));
    }
    return ST_OK;
}

/* Like the graph's operator, except for types that the payload does not store. */
enum status rt_vulkan_import_dequantize_channels(struct rt_vulkan_import *v)
{
    uint32_t args[8], value;
    TRY(rt_vulkan_tensor(v, 0, &args[0]));
    TRY(rt_vulkan_tensor(v, 1, &args[1]));
    TRY(rt_vulkan_argument(v, 2, 'T', true, &args[2]));
    TRY(rt_vulkan_argument(v, 3, 'I', false, &args[3]));
    TRY(rt_vulkan_argument(v, 4, 'I', false, &args[4]));
    TRY(rt_vulkan_argument(v, 5, 'I', false, &args[5]));
    if (v->graph->values[args[2]].kind == RT_TENSOR) {
        TRY(rt_vulkan_convert(v, args[2], DT_I64, &args[2]));
    }
    args[6] = whole(v, dtype_infos[v->graph->values[args[0]].dtype].executorch);
    args[7] = rt_graph_none(v->graph);
    TRY(rt_vulkan_apply(v, RT_OP(dequantize_channels), args, 8, DT_F32, &value));
    return rt_vulkan_define(v, 0, value);
}

/* Checks that argument |index| is null or a constant of zeros. */
static enum status need_zeros(struct rt_vulkan_import *v, uint32_t index)
{
    uint32_t value;
    if (rt_vulkan_is_null(v, index)) {
        return ST_OK;
    }
    TRY(rt_vulkan_tensor(v, index, &value));
    const struct rt_value *tensor = &v->graph->values[value];
    bool is_zero = tensor->is_constant;
    for (size_t i = 0; is_zero && i < tensor->bytes.len; i++) {
        is_zero = tensor->bytes.ptr[i] == 0;
    }
    return is_zero ? ST_OK
                   : error_set(v->err, ST_UNSUPPORTED,
                               "argument %" PRIu32 ": the zero points are not all 0", index);
}

/* Arguments: a matrix of bytes, the size of the block that shares a scale, scales, zero points, and
 * types and bounds that are implied. A block is a part of a row, or a whole row. */
enum status rt_vulkan_import_dequantize_affine(struct rt_vulkan_import *v)
{
    const struct rt_vulkan_value *block = rt_vulkan_arg(v, 1);
    uint32_t args[3], value;
    TRY(rt_vulkan_matrix(v, 0, DT_I8, &args[0]));
    if (block->kind != VK_INT_LIST || block->count != 2 || block->ints[0] != 1 ||
        block->ints[1] < 1) {
        return error_set(v->err, ST_UNSUPPORTED, "argument 1: expected blocks of 1 x n");
    }
    TRY(need_zeros(v, 3));
    TRY(rt_vulkan_tensor(v, 2, &args[1]));
    const struct rt_value *weights = &v->graph->values[args[0]];
    struct rt_dim dims[] = {
        weights->dims[0],
        rt_dim_floordiv(&v->graph->dims, weights->dims[1], rt_dim_of(block->ints[1])),
    };
    uint32_t viewed[] = {args[1], rt_graph_ints(v->graph, dims, 2)};
    TRY(rt_vulkan_apply(v, RT_OP(view), viewed, 2, v->graph->values[args[1]].dtype, &args[1]));
    args[2] = whole(v, block->ints[1]);
    TRY(rt_vulkan_apply(v, RT_OP(dequantize_groups), args, 3, DT_F32, &value));
    return rt_vulkan_define(v, 0, value);
}

/* One scale and zero point for each row: exporters use no other granularity. */
enum status rt_vulkan_import_choose_qparams(struct rt_vulkan_import *v)
{
    static const enum dtype dtypes[] = {DT_F64, DT_I64};
    uint32_t args[2], outs[2];
    TRY(rt_vulkan_tensor(v, 0, &args[0]));
    args[1] = i8_type(v);
    TRY(apply_outs(v, RT_OP(choose_rows), args, 2, dtypes, outs, 2));
    TRY(rt_vulkan_define(v, 0, outs[0]));
    return rt_vulkan_define(v, 1, outs[1]);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* The last dim of argument |index|, which must be known now. */
static enum status last_dim(struct rt_vulkan_import *v, uint32_t index, int64_t *out_dim)
{
    uint32_t value;
    TRY(rt_vulkan_tensor(v, index, &value));
    const struct rt_value *tensor = &v->graph->values[value];
    if (tensor->rank == 0 || !rt_dim_is_const(tensor->dims[tensor->rank - 1])) {
        return error_set(v->err, ST_UNSUPPORTED, "argument %" PRIu32 ": its last dim must be known",
                         index);
    }
    *out_dim = tensor->dims[tensor->rank - 1].value;
    return ST_OK;
}

/* The last dim of the result as the file declares it. */
static enum status result_features(struct rt_vulkan_import *v, int64_t *out_count)
{
    const struct rt_vulkan_value *result = rt_vulkan_result(v, 0);
    if (!result || result->kind != VK_TENSOR || result->shape.rank == 0) {
        return error_set(v->err, ST_UNSUPPORTED, "the result has rank 0, expected at least 1");
    }
    *out_count = result->shape.dims[result->shape.rank - 1];
    return ST_OK;
}

/* Unpacks the two 4-bit numbers of each byte; |first| as in "unpack_int4". */
static enum status unpack(struct rt_vulkan_import *v, uint32_t bytes, int64_t first,
                          uint32_t *out_value)
{
    const struct rt_value *tensor = &v->graph->values[bytes];
    uint32_t args[] = {bytes, whole(v, 2 * tensor->dims[tensor->rank - 1].value), whole(v, first)};
    return rt_vulkan_apply(v, RT_OP(unpack_int4), args, 3, DT_I8, out_value);
}

/* 4-bit weights at argument |index| as [N, K] numbers; the scales after them are [K / group, N]. */
static enum status grouped_weights(struct rt_vulkan_import *v, uint32_t index,
                                   uint32_t scales_index, int64_t k, int64_t n, uint32_t *out_value)
{
    int64_t group;
    uint32_t weights, scales;
    TRY(rt_vulkan_matrix(v, index, DT_U8, &weights));
    TRY(rt_vulkan_matrix(v, scales_index, DT_F32, &scales));
    TRY(rt_vulkan_whole(v, scales_index + 1, &group));
    TRY(unpack(v, weights, 0, &weights));
    TRY(rt_vulkan_front(v, weights, 1, k, &weights));
    TRY(rt_vulkan_front(v, weights, 0, n, &weights));
    uint32_t turned[] = {scales};
    TRY(rt_vulkan_apply(v, RT_OP(t), turned, 1, DT_F32, &scales));
    TRY(rt_vulkan_front(v, scales, 0, n, &scales));
    uint32_t args[] = {weights, scales, whole(v, group)};
    return rt_vulkan_apply(v, RT_OP(dequantize_groups), args, 3, DT_F32, out_value);
}

enum status rt_vulkan_channel_weights(struct rt_vulkan_import *v, uint32_t weights,
                                      uint32_t scales_index, uint32_t *out_value)
{
    uint32_t scales;
    TRY(rt_vulkan_tensor(v, scales_index, &scales));
    TRY(rt_vulkan_front(v, scales, 0, v->graph->values[weights].dims[0].value, &scales));
    uint32_t none = rt_graph_none(v->graph);
    uint32_t args[] = {weights,          scales,           none,       whole(v, 0),
                       whole(v, I8_MIN), whole(v, I8_MAX), i8_type(v), none};
    return rt_vulkan_apply(v, RT_OP(dequantize_channels), args, 8, DT_F32, out_value);
}

/* x times the transposed weights, plus the first elements of the bias if there is one. */
static enum status linear(struct rt_vulkan_import *v, uint32_t x, uint32_t weights,
                          uint32_t bias_index, uint32_t *out_value)
{
    uint32_t args[] = {x, weights, rt_graph_none(v->graph)};
    if (bias_index < v->current->arg_count - 1 && !rt_vulkan_is_null(v, bias_index)) {
        TRY(rt_vulkan_tensor(v, bias_index, &args[2]));
        TRY(rt_vulkan_front(v, args[2], 0, v->graph->values[weights].dims[0].value, &args[2]));
    }
    return rt_vulkan_apply(v, RT_OP(linear), args, 3, DT_F32, out_value);
}

/* ---- linear ---------------------------------------------------------------------------------- */

/* Arguments: x, weights [N, K / 2], scales, group, bias. */
enum status rt_vulkan_import_q4gsw(struct rt_vulkan_import *v)
{
    uint32_t x, weights, value;
    int64_t k, n;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(last_dim(v, 0, &k));
    TRY(result_features(v, &n));
    TRY(grouped_weights(v, 1, 2, k, n, &weights));
    TRY(linear(v, x, weights, 4, &value));
    return rt_vulkan_define(v, 0, value);
}

/*
 * Arguments: x, its scales and zero points, weights, sums, scales, group, bias. Each row of
 * activations is quantized with the scale that the preceding call chose for the same row; choosing
 * it again here gives the same scale.
 */
enum status rt_vulkan_import_dq8ca_q4gsw(struct rt_vulkan_import *v)
{
    static const enum dtype dtypes[] = {DT_I8, DT_F32, DT_I32};
    uint32_t x, rows[3], weights, value;
    int64_t k, n;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(last_dim(v, 0, &k));
    TRY(result_features(v, &n));
    TRY(grouped_weights(v, 3, 5, k, n, &weights));
    uint32_t quantized[] = {x, whole(v, 1)};
    TRY(apply_outs(v, RT_OP(quantize_dynamic), quantized, 2, dtypes, rows, 3));
    uint32_t decoded[] = {rows[0],
                          rows[1],
                          rows[2],
                          whole(v, I8_MIN),
                          whole(v, I8_MAX),
                          i8_type(v),
                          whole(v, dtype_infos[DT_F32].executorch)};
    TRY(rt_vulkan_apply(v, RT_OP(dequantize_rows), decoded, 7, DT_F32, &x));
    TRY(linear(v, x, weights, 7, &value));
    return rt_vulkan_define(v, 0, value);
}

/* The first N rows and K columns of weights that have one scale for each row: 8-bit numbers, or
 * packed pairs of 4-bit numbers. */
static enum status row_weights(struct rt_vulkan_import *v, uint32_t index, uint32_t scales_index,
                               bool is_packed, uint32_t *out_value)
{
    uint32_t weights;
    int64_t k, n;
    TRY(last_dim(v, 0, &k));
    TRY(result_features(v, &n));
    TRY(rt_vulkan_matrix(v, index, is_packed ? DT_U8 : DT_I8, &weights));
    if (is_packed) {
        TRY(unpack(v, weights, 1, &weights));
    }
    TRY(rt_vulkan_front(v, weights, 1, k, &weights));
    TRY(rt_vulkan_front(v, weights, 0, n, &weights));
    return rt_vulkan_channel_weights(v, weights, scales_index, out_value);
}

/* Arguments: x, weights [N, K / 2] with the even places in the high four bits, a scale for each
 * row. */
enum status rt_vulkan_import_qcs4w(struct rt_vulkan_import *v)
{
    uint32_t x, weights, value;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(row_weights(v, 1, 2, true, &weights));
    TRY(linear(v, x, weights, UINT32_MAX, &value));
    return rt_vulkan_define(v, 0, value);
}

/* Arguments: x, weights [N, K], scales, and in one variant a bias. */
enum status rt_vulkan_import_q8csw(struct rt_vulkan_import *v)
{
    uint32_t x, weights, value;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(row_weights(v, 1, 2, false, &weights));
    TRY(linear(v, x, weights, 3, &value));
    return rt_vulkan_define(v, 0, value);
}

/* A gradient of results [.., N] times the weights of q4gsw: [.., K]. */
enum status rt_vulkan_import_q4gsw_backward(struct rt_vulkan_import *v)
{
    uint32_t x, weights, value;
    int64_t k, n;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(last_dim(v, 0, &n));
    TRY(result_features(v, &k));
    TRY(grouped_weights(v, 1, 2, k, n, &weights));
    uint32_t turned[] = {weights, whole(v, 0), whole(v, 1)};
    TRY(rt_vulkan_apply(v, RT_OP(transpose), turned, 3, DT_F32, &weights));
    TRY(linear(v, x, weights, UINT32_MAX, &value));
    return rt_vulkan_define(v, 0, value);
}

/* Arguments: x as numbers to be quantized, scale, zero point, weights, sums, scales, bias. */
enum status rt_vulkan_import_q8ta_q8csw(struct rt_vulkan_import *v)
{
    uint32_t x, weights, value;
    double scale;
    int64_t zero_point;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(rt_vulkan_number(v, 1, &scale));
    TRY(rt_vulkan_whole(v, 2, &zero_point));
    TRY(encode(v, x, scale, zero_point, &x));
    TRY(decode(v, x, scale, zero_point, &x));
    TRY(row_weights(v, 3, 5, false, &weights));
    TRY(linear(v, x, weights, 6, &value));
    return rt_vulkan_define(v, 0, value);
}

enum status rt_vulkan_activate(struct rt_vulkan_import *v, uint32_t index, uint32_t *value)
{
    const struct rt_vulkan_value *name = rt_vulkan_arg(v, index);
    if (name->kind == VK_STRING && span_is(name->bytes, "relu")) {
        return rt_vulkan_apply(v, RT_OP(relu), value, 1, DT_F32, value);
    }
    if (name->kind != VK_STRING || !span_is(name->bytes, "none")) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "argument %" PRIu32
                         " is not the name of an activation, expected 'none' or 'relu'",
                         index);
    }
    return ST_OK;
}

/* Arguments: x, scale, zero point, weights, sums, scales, scale, zero point, bias, activation. */
enum status rt_vulkan_import_q8ta_linear(struct rt_vulkan_import *v)
{
    uint32_t x, weights, value;
    TRY(rt_vulkan_decode_arg(v, 0, 1, &x));
    TRY(row_weights(v, 3, 5, false, &weights));
    TRY(linear(v, x, weights, 8, &value));
    TRY(rt_vulkan_activate(v, 9, &value));
    return rt_vulkan_define_encoded(v, value, 6);
}

/* ---- pointwise ------------------------------------------------------------------------------- */

/* Arguments: a, b, scale and zero point of a, of b and of the result, a factor for b. */
enum status rt_vulkan_import_q8ta_add(struct rt_vulkan_import *v)
{
    uint32_t args[3], value;
    TRY(rt_vulkan_decode_arg(v, 0, 2, &args[0]));
    TRY(rt_vulkan_decode_arg(v, 1, 4, &args[1]));
    TRY(rt_vulkan_argument(v, 8, 'S', false, &args[2]));
    TRY(rt_vulkan_apply(v, RT_OP(add), args, 3, DT_F32, &value));
    return rt_vulkan_define_encoded(v, value, 6);
}

enum status rt_vulkan_import_q8ta_relu(struct rt_vulkan_import *v)
{
    uint32_t value;
    TRY(rt_vulkan_decode_arg(v, 0, 1, &value));
    TRY(rt_vulkan_apply(v, RT_OP(relu), &value, 1, DT_F32, &value));
    return rt_vulkan_define_encoded(v, value, 3);
}

/* Arguments: x, scale, zero point, the inverse of the result's scale, its zero point, factor. */
enum status rt_vulkan_import_q8ta_pixel_shuffle(struct rt_vulkan_import *v)
{
    uint32_t args[2], value;
    double inverse;
    int64_t zero_point;
    TRY(rt_vulkan_decode_arg(v, 0, 1, &args[0]));
    TRY(rt_vulkan_argument(v, 5, 'I', false, &args[1]));
    TRY(rt_vulkan_apply(v, RT_OP(pixel_shuffle), args, 2, DT_F32, &value));
    TRY(rt_vulkan_number(v, 3, &inverse));
    TRY(rt_vulkan_whole(v, 4, &zero_point));
    TRY(encode(v, value, 1 / inverse, zero_point, &value));
    return rt_vulkan_define(v, 0, value);
}

/* ---- embedding ------------------------------------------------------------------------------- */

/* Arguments: weights [V, D / 2], scales [V, D / group], group, indices, whether the low four bits
 * come first. */
enum status rt_vulkan_import_embedding_q4gsw(struct rt_vulkan_import *v)
{
    uint32_t weights, args[5], value;
    double low_first;
    TRY(rt_vulkan_matrix(v, 0, DT_U8, &weights));
    TRY(rt_vulkan_number(v, 4, &low_first));
    TRY(unpack(v, weights, low_first != 0 ? 0 : 1, &weights));
    uint32_t grouped[] = {weights, 0, 0};
    TRY(rt_vulkan_matrix(v, 1, DT_F32, &grouped[1]));
    TRY(rt_vulkan_argument(v, 2, 'I', false, &grouped[2]));
    TRY(rt_vulkan_apply(v, RT_OP(dequantize_groups), grouped, 3, DT_F32, &args[0]));
    TRY(rt_vulkan_tensor(v, 3, &args[1]));
    args[2] = whole(v, -1);
    args[3] = args[4] = rt_graph_bool(v->graph, false);
    TRY(rt_vulkan_apply(v, RT_OP(embedding), args, 5, DT_F32, &value));
    return rt_vulkan_define(v, 0, value);
}
