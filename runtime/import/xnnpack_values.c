/* SPDX-License-Identifier: MIT */
/* A payload's values: types, dims, quantization, and the bytes of constants. Depending on its age,
 * a file has these inside the flatbuffer, after it, or in the program's named data. */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "runtime/import/xnnpack_read.h"

/* Field ids, from runtime_schema.fbs. */
XNN_FIELD(buffer_storage, 0, "storage");
XNN_FIELD(constant_offset, 0, "offset");
XNN_FIELD(constant_size, 1, "size");
XNN_FIELD(constant_key, 2, "named_key");
XNN_FIELD(value_union, 0, "xvalue_union");
XNN_FIELD(quantized_tensor, 0, "tensor_value");
XNN_FIELD(quantized_params, 1, "quant_params");
XNN_FIELD(tensor_type, 0, "datatype");
XNN_FIELD(tensor_rank, 1, "num_dims");
XNN_FIELD(tensor_dims, 2, "dims");
XNN_FIELD(tensor_buffer, 3, "constant_buffer_idx");
XNN_FIELD(tensor_external, 4, "external_id");
XNN_FIELD(tensor_flags, 5, "flags");
XNN_FIELD(tensor_id, 6, "id_out");
XNN_FIELD(tensor_dq_type, 7, "dq_datatype");
XNN_FIELD(tensor_scale, 0, "scale");
XNN_FIELD(tensor_zero_point, 1, "zero_point");
XNN_FIELD(scales_inline, 0, "scale");
XNN_FIELD(scales_dim, 1, "channel_dim");
XNN_FIELD(channel_buffer, 2, "scale_buffer_idx");
XNN_FIELD(channel_count, 3, "num_scales");
XNN_FIELD(group_size, 2, "group_size");
XNN_FIELD(group_buffer, 4, "scale_buffer_idx");
XNN_FIELD(group_count, 5, "num_scales");
XNN_FIELD(row_dims, 0, "num_nonbatch_dims");

enum { VALUE_TENSOR = 1, VALUE_QUANTIZED = 2 };

/* ---- constants ------------------------------------------------------------------------------- */

static enum status read_inline(struct rt_xnnpack_reader *r, uint32_t index, struct span *out)
{
    struct flatbuf_table table;
    TRY(flatbuf_table_at(&r->fb, r->buffers, index, &table, r->err));
    return flatbuf_bytes(&r->fb, &table, buffer_storage, out, r->err);
}

static enum status read_behind(struct rt_xnnpack_reader *r, uint32_t index, struct span *out)
{
    struct flatbuf_table table;
    uint64_t offset = 0, size = 0;
    struct span key;
    TRY(flatbuf_table_at(&r->fb, r->constants, index, &table, r->err));
    TRY(flatbuf_string(&r->fb, &table, constant_key, &key, r->err));
    if (key.ptr && key.len > 0) {
        return rt_delegate_data(r->call, key, out);
    }
    TRY(flatbuf_u64(&r->fb, &table, constant_offset, &offset, r->err));
    TRY(flatbuf_u64(&r->fb, &table, constant_size, &size, r->err));
    if (!in_range(offset, size, r->behind.len)) {
        return error_set(r->err, ST_CORRUPT,
                         "constant %" PRIu32 ": %" PRIu64 " bytes at byte %" PRIu64
                         " do not fit into %zu bytes",
                         index, size, offset, r->behind.len);
    }
    *out = span_of(r->behind.ptr + offset, (size_t)size);
    return ST_OK;
}

static enum status read_constant(struct rt_xnnpack_reader *r, uint32_t index, struct span *out)
{
    uint32_t count = r->constants.count > 0 ? r->constants.count : r->buffers.count;
    *out = (struct span){0};
    if (index >= count) {
        return error_set(r->err, ST_CORRUPT,
                         "constant %" PRIu32 " does not exist, there are %" PRIu32, index, count);
    }
    return r->constants.count > 0 ? read_behind(r, index, out) : read_inline(r, index, out);
}

/* ---- values: how they are quantized ---------------------------------------------------------- */

typedef enum status read_quant_f(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                                 struct rt_xnnpack_value *value);

/* Is each of |count| scales of 2 or 4 bytes a finite number above 0? A language model has millions.
 * Such numbers are ordered as their bits are, from 1 to the bits of infinity. */
static bool are_scales(struct span bytes, bool are_f32, uint32_t count)
{
    const uint32_t above = are_f32 ? 0x7f800000 : 0x7f80;
    uint32_t wrong = 0;
    for (uint32_t i = 0; are_f32 && i < count; i++) {
        wrong |= load_le32(bytes.ptr + 4 * (size_t)i) - 1 >= above - 1;
    }
    for (uint32_t i = 0; !are_f32 && i < count; i++) {
        wrong |= (uint32_t)load_le16(bytes.ptr + 2 * (size_t)i) - 1 >= above - 1;
    }
    return !wrong;
}

static enum status check_scale(struct rt_xnnpack_reader *r, uint32_t i, double scale)
{
    if (!(scale > 0) || !isfinite(scale)) {
        return error_set(r->err, ST_CORRUPT,
                         "scale %" PRIu32 " is %g, expected a finite number above 0", i, scale);
    }
    return ST_OK;
}

static enum status read_per_tensor(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                                   struct rt_xnnpack_value *value)
{
    const struct rt_xnnpack_type_info *type = &rt_xnnpack_types[value->type];
    TRY(flatbuf_f32(&r->fb, table, tensor_scale, &value->scale, r->err));
    TRY(flatbuf_i32(&r->fb, table, tensor_zero_point, &value->zero_point, r->err));
    if (value->zero_point < type->min || value->zero_point > type->max) {
        return error_set(r->err, ST_CORRUPT,
                         "zero point %" PRId32 ", expected %" PRId32 " to %" PRId32,
                         value->zero_point, type->min, type->max);
    }
    return check_scale(r, 0, (double)value->scale);
}

static enum status read_per_row(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                                struct rt_xnnpack_value *value)
{
    int32_t dims = 0;
    TRY(flatbuf_i32(&r->fb, table, row_dims, &dims, r->err));
    if (dims < 1 || dims > XNN_RANK_MAX) {
        return error_set(r->err, ST_UNSUPPORTED, "rows of %" PRId32 " dims, expected 1 to %d", dims,
                         XNN_RANK_MAX);
    }
    value->row_dims = (uint8_t)dims;
    return ST_OK;
}

static double scale_at(const struct rt_xnnpack_value *value, size_t i)
{
    uint32_t bits = value->scales_are_f32 ? load_le32(value->scales.ptr + 4 * i)
                                          : (uint32_t)load_le16(value->scales.ptr + 2 * i) << 16;
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    return (double)scale;
}

/* Reads |wanted| scales: inline, or from the constant number |buffer|, which has |count|. */
static enum status read_scales(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                               struct flatbuf_field buffer_field, struct flatbuf_field count_field,
                               int64_t wanted, struct rt_xnnpack_value *value)
{
    struct flatbuf_vector inlined;
    uint32_t buffer = 0, count = 0;
    TRY(flatbuf_vector(&r->fb, table, scales_inline, 4, &inlined, r->err));
    TRY(flatbuf_u32(&r->fb, table, buffer_field, &buffer, r->err));
    TRY(flatbuf_u32(&r->fb, table, count_field, &count, r->err));
    if (buffer == 0) {
        count = inlined.count;
        value->scales_are_f32 = true;
        value->scales = span_of(r->fb.bytes.ptr + inlined.pos, (size_t)count * 4);
    } else {
        TRY(read_constant(r, buffer, &value->scales));
    }
    if (count != wanted || value->scales.len / (value->scales_are_f32 ? 4 : 2) < count) {
        return error_set(r->err, ST_CORRUPT, "%" PRIu32 " scales in %zu bytes, expected %" PRId64,
                         count, value->scales.len, wanted);
    }
    if (count > r->scales_left) {
        return error_set(r->err, ST_TOO_LARGE, "more than %" PRIu64 " scales", XNN_SCALES_MAX);
    }
    r->scales_left -= count;
    bool are = are_scales(value->scales, value->scales_are_f32, count);
    for (uint32_t i = 0; !are && i < count; i++) {
        TRY(check_scale(r, i, scale_at(value, i)));
    }
    return ST_OK;
}

static enum status read_channel_dim(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                                    struct rt_xnnpack_value *value)
{
    int32_t dim = 0;
    TRY(flatbuf_i32(&r->fb, table, scales_dim, &dim, r->err));
    if (dim < 0 || dim >= value->shape.rank) {
        return error_set(r->err, ST_CORRUPT,
                         "channel_dim %" PRId32 ", expected 0 or more and less than the rank %u",
                         dim, value->shape.rank);
    }
    value->channel_dim = (uint8_t)dim;
    return ST_OK;
}

static enum status read_per_channel(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                                    struct rt_xnnpack_value *value)
{
    TRY(read_channel_dim(r, table, value));
    value->scales_are_f32 = true;
    return read_scales(r, table, channel_buffer, channel_count,
                       value->shape.dims[value->channel_dim], value);
}

static enum status read_per_group(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                                  struct rt_xnnpack_value *value)
{
    int32_t group = 0;
    TRY(read_channel_dim(r, table, value));
    TRY(flatbuf_i32(&r->fb, table, group_size, &group, r->err));
    if (value->shape.rank != 2 || value->channel_dim != 0) {
        return error_set(r->err, ST_UNSUPPORTED,
                         "channel_dim %u and rank %u of a value with groups, expected 0 and 2",
                         value->channel_dim, value->shape.rank);
    }
    if (group <= 0 || value->shape.dims[1] % group != 0) {
        return error_set(r->err, ST_CORRUPT,
                         "groups of %" PRId32 " elements, expected a divisor of %" PRId64, group,
                         value->shape.dims[1]);
    }
    value->group = group;
    return read_scales(r, table, group_buffer, group_count,
                       value->shape.dims[0] * (value->shape.dims[1] / group), value);
}

static read_quant_f *const quant_readers[XNN_QUANT_COUNT] = {
    [XNN_PER_CHANNEL] = read_per_channel,
    [XNN_PER_TENSOR] = read_per_tensor,
    [XNN_PER_ROW] = read_per_row,
    [XNN_PER_GROUP] = read_per_group,
};

/* ---- values ---------------------------------------------------------------------------------- */

static enum status read_shape(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                              struct shape *out_shape)
{
    struct flatbuf_vector dims;
    uint32_t rank = 0;
    TRY(flatbuf_u32(&r->fb, table, tensor_rank, &rank, r->err));
    TRY(flatbuf_vector(&r->fb, table, tensor_dims, 4, &dims, r->err));
    if (rank > XNN_RANK_MAX || dims.count != rank) {
        return error_set(r->err, ST_CORRUPT,
                         "num_dims is %" PRIu32 ", but there are %" PRIu32
                         " dims; expected the same number, at most %d",
                         rank, dims.count, XNN_RANK_MAX);
    }
    out_shape->rank = (uint8_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        out_shape->dims[i] = flatbuf_u32_at(&r->fb, dims, i);
    }
    return ST_OK;
}

static enum status read_type(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                             struct flatbuf_field field, enum rt_xnnpack_type *out_type)
{
    int16_t number = 0;
    TRY(flatbuf_i16(&r->fb, table, field, &number, r->err));
    if (number < 0 || number >= XNN_TYPE_COUNT ||
        (number != XNN_INVALID && !rt_xnnpack_types[number].name)) {
        return error_set(r->err, ST_UNSUPPORTED, "%s %d is not known", field.name, number);
    }
    *out_type = (enum rt_xnnpack_type)number;
    return ST_OK;
}

/* Reads whether the value is an input or output of the call; each argument of the call may be taken
 * once. */
static enum status read_external(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                                 struct rt_xnnpack_value *value)
{
    uint32_t flags = 0;
    TRY(flatbuf_u32(&r->fb, table, tensor_flags, &flags, r->err));
    TRY(flatbuf_u32(&r->fb, table, tensor_external, &value->external_id, r->err));
    if (flags > 3) {
        return error_set(r->err, ST_UNSUPPORTED, "flags %" PRIx32 ", expected at most 3", flags);
    }
    value->is_input = flags & 1;
    value->is_output = flags & 2;
    if (flags == 0) {
        return ST_OK;
    }
    if (value->external_id >= r->external_count || r->is_taken[value->external_id]) {
        return error_set(r->err, ST_CORRUPT,
                         "external id %" PRIu32 ", the call has %" PRIu32 " arguments%s",
                         value->external_id, r->external_count,
                         value->external_id < r->external_count ? "; the id is used twice" : "");
    }
    r->is_taken[value->external_id] = true;
    return ST_OK;
}

static enum status stored_bytes(struct rt_xnnpack_reader *r, const struct rt_xnnpack_value *value,
                                size_t *out_bytes)
{
    struct shape shape = value->shape;
    if (rt_xnnpack_types[value->type].is_packed && shape.rank > 0) {
        int64_t *row = &shape.dims[shape.rank - 1];
        *row = *row / 2 + *row % 2;
    }
    return shape_bytes(&shape, rt_xnnpack_types[value->type].dtype, out_bytes, r->err);
}

static enum status read_content(struct rt_xnnpack_reader *r, uint32_t index,
                                struct rt_xnnpack_value *value)
{
    size_t wanted;
    if (value->is_input || value->is_output) {
        return error_set(r->err, ST_CORRUPT, "a constant is also an argument");
    }
    TRY(stored_bytes(r, value, &wanted));
    TRY(read_constant(r, index, &value->bytes));
    if (value->bytes.len < wanted) {
        return error_set(r->err, ST_CORRUPT, "%zu bytes, expected at least %zu", value->bytes.len,
                         wanted);
    }
    value->is_constant = true;
    return ST_OK;
}

static enum status read_tensor(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                               struct rt_xnnpack_value *value)
{
    enum rt_xnnpack_type dq_type = XNN_INVALID;
    uint32_t buffer = 0;
    TRY(flatbuf_u32(&r->fb, table, tensor_id, &value->id, r->err));
    TRY(read_type(r, table, tensor_type, &value->type));
    TRY(read_type(r, table, tensor_dq_type, &dq_type));
    TRY(read_shape(r, table, &value->shape));
    TRY(read_external(r, table, value));
    TRY(flatbuf_u32(&r->fb, table, tensor_buffer, &buffer, r->err));
    if (value->type == XNN_INVALID) {
        return error_set(r->err, ST_CORRUPT, "the datatype is missing");
    }
    if (dq_type != XNN_INVALID) {
        value->quantizes_rows = value->is_input && dq_type == XNN_QINT8;
        if (!value->quantizes_rows || value->type != XNN_F32) {
            return error_set(r->err, ST_UNSUPPORTED,
                             "dq_datatype %d of a %s value%s, expected %d of an fp32 input",
                             dq_type, rt_xnnpack_types[value->type].name,
                             value->is_input ? "" : " that is not an input", XNN_QINT8);
        }
        value->row_dims = 1;
    }
    return buffer ? read_content(r, buffer, value) : ST_OK;
}

static enum status read_quant(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                              bool is_quantized, struct rt_xnnpack_value *value)
{
    enum rt_xnnpack_quant wanted = rt_xnnpack_types[value->type].quant;
    struct flatbuf_table params;
    uint8_t tag = 0;
    if (is_quantized) {
        TRY(flatbuf_union(&r->fb, table, quantized_params, &tag, &params, r->err));
    }
    if (tag != (uint8_t)wanted) {
        return error_set(r->err, ST_UNSUPPORTED, "%s with quantization %u, expected %u",
                         rt_xnnpack_types[value->type].name, tag, wanted);
    }
    return wanted == XNN_PLAIN ? ST_OK : quant_readers[wanted](r, &params, value);
}

static enum status check_kind(struct rt_xnnpack_reader *r, const struct rt_xnnpack_value *value)
{
    const struct rt_xnnpack_type_info *type = &rt_xnnpack_types[value->type];
    bool is_external = value->is_input || value->is_output;
    bool needs_content = type->quant == XNN_PER_CHANNEL || type->quant == XNN_PER_GROUP;
    if (needs_content && !value->is_constant) {
        return error_set(r->err, ST_UNSUPPORTED, "a %s value is not a constant", type->name);
    }
    if (type->quant == XNN_PER_ROW && (value->is_constant || is_external)) {
        return error_set(r->err, ST_UNSUPPORTED, "a %s value is a constant or an argument",
                         type->name);
    }
    if (type->is_packed && value->shape.rank != 2) {
        return error_set(r->err, ST_UNSUPPORTED, "a %s value has rank %u, expected 2", type->name,
                         value->shape.rank);
    }
    return ST_OK;
}

static enum status read_value(struct rt_xnnpack_reader *r, uint32_t index,
                              struct flatbuf_vector vector)
{
    struct rt_xnnpack_value *value = &r->graph->values[index];
    struct flatbuf_table outer, inner, tensor;
    uint8_t tag = 0;
    bool found = true;
    TRY(flatbuf_table_at(&r->fb, vector, index, &outer, r->err));
    TRY(flatbuf_union(&r->fb, &outer, value_union, &tag, &inner, r->err));
    if (tag != VALUE_TENSOR && tag != VALUE_QUANTIZED) {
        return error_set(r->err, ST_UNSUPPORTED, "xvalue_union of type %u, expected 1 or 2", tag);
    }
    tensor = inner;
    if (tag == VALUE_QUANTIZED) {
        TRY(flatbuf_table(&r->fb, &inner, quantized_tensor, &tensor, &found, r->err));
    }
    if (!found) {
        return error_set(r->err, ST_CORRUPT, "%s: missing", quantized_tensor.name);
    }
    TRY(read_tensor(r, &tensor, value));
    TRY(check_kind(r, value));
    return read_quant(r, &inner, tag == VALUE_QUANTIZED, value);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/*
 * An argument without a value in the payload must be a constant: exporters leave such arguments
 * behind when they remove their only use, like the scales of weights that are multiplied as floats.
 */
static enum status check_arguments(struct rt_xnnpack_reader *r)
{
    for (uint32_t i = 0; i < r->external_count; i++) {
        const struct pte_value *arg = rt_delegate_arg(r->call, i);
        if (!r->is_taken[i] && arg->kind == PTE_TENSOR && arg->tensor->storage != PTE_CONSTANT) {
            return error_set(
                r->err, ST_CORRUPT,
                "argument %" PRIu32 " is not a constant and has no value in the payload", i);
        }
    }
    return ST_OK;
}

enum status rt_xnnpack_read_values(struct rt_xnnpack_reader *r, struct flatbuf_vector vector)
{
    r->graph->value_count = vector.count;
    r->graph->values = rt_xnnpack_take(r, vector.count, sizeof(*r->graph->values));
    r->is_taken = rt_xnnpack_take(r, r->external_count, sizeof(*r->is_taken));
    if (!r->graph->values || !r->is_taken) {
        return r->err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        if (read_value(r, i, vector) != ST_OK) {
            return error_prefix(r->err, "value %" PRIu32 ": ", i);
        }
    }
    return check_arguments(r);
}
