/* SPDX-License-Identifier: MIT */
/*
 * Stored values and the numbers they represent. Quantized values stay as stored between nodes that
 * only move them. A node that computes reads dequantized numbers, and its result is quantized
 * again; both are nodes of the graph. A pass turns these patterns into integer kernels; without it
 * the float kernels give the same result to within one quantization step.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/import/xnnpack.h"
#include "runtime/ops/op.h"

const struct rt_xnnpack_type_info rt_xnnpack_types[XNN_TYPE_COUNT] = {
    [XNN_F32] = {"fp32", DT_F32, false, XNN_PLAIN, 0, 0},
    [XNN_F16] = {"fp16", DT_F16, false, XNN_PLAIN, 0, 0},
    [XNN_BF16] = {"bf16", DT_BF16, false, XNN_PLAIN, 0, 0},
    [XNN_INT32] = {"int32", DT_I32, false, XNN_PLAIN, 0, 0},
    [XNN_QINT8] = {"qint8", DT_I8, false, XNN_PER_TENSOR, -128, 127},
    [XNN_QUINT8] = {"quint8", DT_U8, false, XNN_PER_TENSOR, 0, 255},
    [XNN_QINT32] = {"qint32", DT_I32, false, XNN_PER_TENSOR, INT32_MIN, INT32_MAX},
    [XNN_QCINT8] = {"qcint8", DT_I8, false, XNN_PER_CHANNEL, -128, 127},
    [XNN_QCINT32] = {"qcint32", DT_I32, false, XNN_PER_CHANNEL, INT32_MIN, INT32_MAX},
    [XNN_QCINT4] = {"qcint4", DT_I8, true, XNN_PER_CHANNEL, -8, 7},
    [XNN_QBINT4] = {"qbint4", DT_I8, true, XNN_PER_GROUP, -8, 7},
    [XNN_QDINT8] = {"qdint8", DT_I8, false, XNN_PER_ROW, -128, 127},
};

/* The exporter rounds scales of groups to bf16 by adding almost half a step and truncating. */
#define GROUP_SCALE_ROUNDING 1.00389105f

bool rt_xnnpack_same_form(const struct rt_xnnpack_value *a, const struct rt_xnnpack_value *b)
{
    return a->type == b->type && (rt_xnnpack_types[a->type].quant == XNN_PLAIN ||
                                  (rt_xnnpack_types[a->type].quant == XNN_PER_TENSOR &&
                                   a->scale == b->scale && a->zero_point == b->zero_point));
}

double rt_xnnpack_quantize(const struct rt_xnnpack_value *value, double number)
{
    const struct rt_xnnpack_type_info *type = &rt_xnnpack_types[value->type];
    double q = number;
    if (type->quant == XNN_PER_TENSOR) {
        q = rint(number / (double)value->scale) + value->zero_point;
        q = fmin(fmax(q, type->min), type->max);
    }
    return q;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* The scales of |value|, as a constant with one or two dims. */
static enum status scale_constant(struct rt_xnnpack_import *x, const struct rt_xnnpack_value *value,
                                  const struct shape *shape, uint32_t *out_value)
{
    enum dtype dtype = value->scales_are_f32 ? DT_F32 : DT_BF16;
    return rt_delegate_constant(x->call, dtype, shape, value->scales, out_value);
}

/* Rounds the f32 scales of groups in an old file to bf16, as the exporter does today. */
static enum status round_group_scales(struct rt_xnnpack_import *x, uint32_t *scales)
{
    struct hal_buffer *buffer;
    struct rt_value *v = &x->graph->values[*scales];
    size_t bytes = v->bytes.len;
    struct shape shape;
    must(rt_value_shape(v, &shape));
    TRY(hal_buffer_new(x->call->device, bytes, &buffer, x->err));
    uint8_t *to = hal_buffer_map(buffer);
    for (size_t i = 0; i < bytes; i += sizeof(float)) {
        float scale;
        uint32_t bits;
        memcpy(&scale, x->graph->values[*scales].bytes.ptr + i, sizeof(scale));
        scale *= GROUP_SCALE_ROUNDING;
        memcpy(&bits, &scale, sizeof(bits));
        bits &= 0xffff0000u;
        memcpy(to + i, &bits, sizeof(bits));
    }
    uint32_t rounded = rt_graph_constant(x->graph, DT_F32, &shape, (struct span){0});
    if (rounded == 0) {
        hal_buffer_unref(buffer);
        return rt_graph_check(x->graph, x->err);
    }
    rt_graph_set_constant(x->graph, rounded, buffer);
    *scales = rounded;
    return ST_OK;
}

/* 4-bit numbers are unpacked here: the rest of the importer does not know about them. */
static enum status rt_import_constant(struct rt_xnnpack_import *x, struct rt_xnnpack_value *value)
{
    struct shape shape = value->shape;
    const struct rt_xnnpack_type_info *type = &rt_xnnpack_types[value->type];
    if (!type->is_packed) {
        return rt_delegate_constant(x->call, type->dtype, &shape, value->bytes, &value->stored);
    }
    uint32_t packed;
    shape.dims[1] = shape.dims[1] / 2 + shape.dims[1] % 2;
    TRY(rt_delegate_constant(x->call, DT_U8, &shape, value->bytes, &packed));
    uint32_t args[] = {packed, rt_xnnpack_int(x, value->shape.dims[1]), rt_xnnpack_int(x, 0)};
    return rt_xnnpack_apply(x, RT_OP(unpack_int4), args, 3, type->dtype, &value->stored);
}

enum status rt_xnnpack_stored(struct rt_xnnpack_import *x, uint32_t index, uint32_t *out_value)
{
    struct rt_xnnpack_value *value = &x->payload.values[index];
    if (value->stored == 0 && value->is_constant) {
        TRY(rt_import_constant(x, value));
    }
    if (value->stored == 0) {
        return error_set(x->err, ST_UNSUPPORTED, "id %" PRIu32 " is read before it is written",
                         value->id);
    }
    *out_value = value->stored;
    return ST_OK;
}

/* ---- from stored to numbers ------------------------------------------------------------------ */

static uint32_t dtype_arg(struct rt_xnnpack_import *x, enum dtype dtype)
{
    return rt_xnnpack_int(x, dtype_infos[dtype].executorch);
}

static enum status decode_tensor(struct rt_xnnpack_import *x, const struct rt_xnnpack_value *value,
                                 uint32_t stored, uint32_t *out_value)
{
    const struct rt_xnnpack_type_info *type = &rt_xnnpack_types[value->type];
    uint32_t args[] = {
        stored,
        rt_graph_float(x->graph, (double)value->scale),
        rt_xnnpack_int(x, value->zero_point),
        rt_xnnpack_int(x, type->min),
        rt_xnnpack_int(x, type->max),
        dtype_arg(x, type->dtype),
        rt_graph_none(x->graph),
    };
    return rt_xnnpack_apply(x, RT_OP(dequantize), args, 7, DT_F32, out_value);
}

static enum status decode_rows(struct rt_xnnpack_import *x, const struct rt_xnnpack_value *value,
                               uint32_t stored, uint32_t *out_value)
{
    const struct rt_xnnpack_type_info *type =
        &rt_xnnpack_types[XNN_QDINT8]; /* |value| may be floats in the file */
    uint32_t args[] = {
        stored,
        value->row_scales,
        value->row_offsets,
        rt_xnnpack_int(x, type->min),
        rt_xnnpack_int(x, type->max),
        dtype_arg(x, type->dtype),
        dtype_arg(x, DT_F32),
    };
    return rt_xnnpack_apply(x, RT_OP(dequantize_rows), args, 7, DT_F32, out_value);
}

static enum status decode_channels(struct rt_xnnpack_import *x,
                                   const struct rt_xnnpack_value *value, uint32_t stored,
                                   uint8_t axis, uint32_t *out_value)
{
    const struct rt_xnnpack_type_info *type = &rt_xnnpack_types[value->type];
    struct shape shape = {.rank = 1, .dims = {value->shape.dims[value->channel_dim]}};
    uint32_t scales;
    TRY(scale_constant(x, value, &shape, &scales));
    uint32_t args[] = {
        stored,
        scales,
        rt_graph_none(x->graph),
        rt_xnnpack_int(x, axis),
        rt_xnnpack_int(x, type->min),
        rt_xnnpack_int(x, type->max),
        dtype_arg(x, type->dtype),
        rt_graph_none(x->graph),
    };
    return rt_xnnpack_apply(x, RT_OP(dequantize_channels), args, 8, DT_F32, out_value);
}

static enum status decode_groups(struct rt_xnnpack_import *x, const struct rt_xnnpack_value *value,
                                 uint32_t stored, uint32_t *out_value)
{
    struct shape shape = {.rank = 2,
                          .dims = {value->shape.dims[0], value->shape.dims[1] / value->group}};
    uint32_t scales;
    TRY(scale_constant(x, value, &shape, &scales));
    if (value->scales_are_f32) {
        TRY(round_group_scales(x, &scales));
    } else {
        TRY(rt_xnnpack_convert(x, scales, DT_F32, &scales));
    }
    uint32_t args[] = {stored, scales, rt_xnnpack_int(x, value->group)};
    return rt_xnnpack_apply(x, RT_OP(dequantize_groups), args, 3, DT_F32, out_value);
}

enum status rt_xnnpack_decode(struct rt_xnnpack_import *x, uint32_t index, uint32_t stored,
                              uint8_t axis, uint32_t *out_value)
{
    const struct rt_xnnpack_value *value = &x->payload.values[index];
    switch (value->quantizes_rows ? XNN_PER_ROW : rt_xnnpack_types[value->type].quant) {
    case XNN_PER_TENSOR:
        return decode_tensor(x, value, stored, out_value);
    case XNN_PER_CHANNEL:
        return decode_channels(x, value, stored, axis, out_value);
    case XNN_PER_ROW:
        return decode_rows(x, value, stored, out_value);
    case XNN_PER_GROUP:
        return decode_groups(x, value, stored, out_value);
    default:
        return rt_xnnpack_convert(x, stored, DT_F32, out_value);
    }
}

enum status rt_xnnpack_real(struct rt_xnnpack_import *x, uint32_t index, uint32_t *out_value)
{
    struct rt_xnnpack_value *value = &x->payload.values[index];
    uint32_t stored;
    TRY(rt_xnnpack_stored(x, index, &stored));
    bool is_plain = rt_xnnpack_types[value->type].quant == XNN_PLAIN && !value->quantizes_rows;
    if (value->real == 0 && is_plain && value->type != XNN_BF16) {
        value->real = stored;
    } else if (value->real == 0) {
        TRY(rt_xnnpack_decode(x, index, stored, value->channel_dim, &value->real));
    }
    *out_value = value->real;
    return ST_OK;
}

/* ---- from numbers to stored ------------------------------------------------------------------ */

static enum status encode_tensor(struct rt_xnnpack_import *x, const struct rt_xnnpack_value *value,
                                 uint32_t numbers, uint32_t *out_value)
{
    const struct rt_xnnpack_type_info *type = &rt_xnnpack_types[value->type];
    TRY(rt_xnnpack_convert(x, numbers, DT_F32, &numbers));
    uint32_t args[] = {
        numbers,
        rt_graph_float(x->graph, (double)value->scale),
        rt_xnnpack_int(x, value->zero_point),
        rt_xnnpack_int(x, type->min),
        rt_xnnpack_int(x, type->max),
        dtype_arg(x, type->dtype),
    };
    return rt_xnnpack_apply(x, RT_OP(quantize), args, 6, type->dtype, out_value);
}

/* Quantizes rows of the last dims: the stored numbers, and a scale and zero point for each row. */
static enum status encode_rows(struct rt_xnnpack_import *x, struct rt_xnnpack_value *value,
                               uint32_t numbers, uint32_t *out_value)
{
    struct rt_graph *graph = x->graph;
    const struct rt_op *op = rt_op_known(RT_KNOWN_quantize_dynamic);
    must(op);
    TRY(rt_xnnpack_convert(x, numbers, DT_F32, &numbers));
    if (value->row_dims > graph->values[numbers].rank) {
        return error_set(x->err, ST_UNSUPPORTED, "rows of %u dims, but the value has rank %u",
                         value->row_dims, graph->values[numbers].rank);
    }
    uint32_t args[] = {numbers, rt_xnnpack_int(x, value->row_dims)};
    uint32_t outs[] = {
        rt_graph_tensor(graph, DT_I8, 0, NULL),
        rt_graph_tensor(graph, DT_F32, 0, NULL),
        rt_graph_tensor(graph, DT_I32, 0, NULL),
    };
    uint32_t node = rt_graph_node(graph, op, args, 2, outs, 3);
    TRY(rt_graph_check(graph, x->err));
    TRY(rt_graph_infer(graph, node, x->err));
    value->row_scales = outs[1];
    value->row_offsets = outs[2];
    *out_value = outs[0];
    return ST_OK;
}

enum status rt_xnnpack_encode(struct rt_xnnpack_import *x, uint32_t index, uint32_t numbers,
                              uint32_t *out_value)
{
    struct rt_xnnpack_value *value = &x->payload.values[index];
    const struct rt_xnnpack_type_info *type = &rt_xnnpack_types[value->type];
    switch (value->quantizes_rows ? XNN_PER_ROW : type->quant) {
    case XNN_PLAIN:
        return rt_xnnpack_convert(x, numbers, type->dtype, out_value);
    case XNN_PER_TENSOR:
        return encode_tensor(x, value, numbers, out_value);
    case XNN_PER_ROW:
        return encode_rows(x, value, numbers, out_value);
    default:
        return error_set(x->err, ST_UNSUPPORTED, "an output cannot be of type %s", type->name);
    }
}

enum status rt_xnnpack_define(struct rt_xnnpack_import *x, uint32_t index, uint32_t stored)
{
    struct rt_xnnpack_value *value = &x->payload.values[index];
    if (value->is_constant || value->is_input) {
        return error_set(x->err, ST_UNSUPPORTED, "id %" PRIu32 " is written, but is %s", value->id,
                         value->is_constant ? "a constant" : "an input");
    }
    if (value->stored != 0) {
        return error_set(x->err, ST_UNSUPPORTED, "id %" PRIu32 " is written a second time",
                         value->id);
    }
    value->stored = stored;
    return ST_OK;
}

/* ---- the end of a node ----------------------------------------------------------------------- */

enum status rt_xnnpack_clamp(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                             uint32_t numbers, uint32_t *out_value)
{
    enum dtype dtype = x->graph->values[numbers].dtype;
    bool has_min = isfinite(node->min), has_max = isfinite(node->max);
    *out_value = numbers;
    if (!has_min && !has_max) {
        return ST_OK;
    }
    if (node->min == 0 && !has_max) {
        return rt_xnnpack_apply(x, RT_OP(relu), &numbers, 1, dtype, out_value);
    }
    uint32_t args[] = {
        numbers,
        has_min ? rt_graph_float(x->graph, (double)node->min) : rt_graph_none(x->graph),
        has_max ? rt_graph_float(x->graph, (double)node->max) : rt_graph_none(x->graph),
    };
    return rt_xnnpack_apply(x, RT_OP(clamp), args, 3, dtype, out_value);
}

enum status rt_xnnpack_finish(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                              uint32_t numbers)
{
    uint32_t stored;
    TRY(rt_xnnpack_clamp(x, node, numbers, &numbers));
    TRY(rt_xnnpack_encode(x, node->outputs[0], numbers, &stored));
    return rt_xnnpack_define(x, node->outputs[0], stored);
}
