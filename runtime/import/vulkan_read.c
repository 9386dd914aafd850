/* SPDX-License-Identifier: MIT */
/* Decodes a payload into struct rt_vulkan_graph: header, values, calls. */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>

#include "base/check.h"
#include "runtime/import/payload.h"
#include "runtime/import/vulkan.h"
#include "runtime/pte/flatbuf.h"

/* Limits of a payload; the exporter's own limits are lower. */
#define RANK_MAX 8
#define ARGUMENTS_MAX 4096

#define NO_OFFSET UINT64_MAX /* the offset of a constant that is stored under a name */

/* Field ids, from the schema. */
#define FIELD(name_, id_, text_) static const struct flatbuf_field name_ = {id_, text_}
FIELD(graph_chain, 1, "chain");
FIELD(graph_values, 2, "values");
FIELD(graph_inputs, 3, "input_ids");
FIELD(graph_outputs, 4, "output_ids");
FIELD(graph_constants, 5, "constants");
FIELD(call_handle, 0, "node_id");
FIELD(call_name, 1, "name");
FIELD(call_args, 2, "args");
FIELD(value_union, 0, "value");
FIELD(tensor_datatype, 0, "datatype");
FIELD(tensor_dims, 1, "dims");
FIELD(tensor_constant, 2, "constant_id");
FIELD(bytes_offset, 0, "offset");
FIELD(bytes_length, 1, "length");
FIELD(bytes_key, 2, "named_key");
FIELD(only, 0, "value");
#undef FIELD

struct reader {
    struct rt_delegate_call *call;
    struct flatbuf fb;
    struct span behind; /* the constants that are found by offset */
    struct arena *arena;
    struct rt_vulkan_graph *graph;
    struct flatbuf_vector constants;
    struct error *err;
};

static void *take(struct reader *r, size_t count, size_t size)
{
    void *mem = arena_array(r->arena, count, size);
    if (!mem) {
        arena_fail(r->arena, "the payload", r->err);
    }
    return mem;
}

/* ---- framing --------------------------------------------------------------------------------- */

static enum status open_payload(struct reader *r, struct flatbuf_table *out_root)
{
    struct rt_payload payload;
    TRY(rt_payload_parse(r->call->delegate->payload, "VH00", &payload, r->err));
    if (!payload.has_header || !rt_payload_is(&payload, "VK00")) {
        return error_set(r->err, ST_CORRUPT,
                         "the payload is not a VH00 header with a VK00 flatbuffer");
    }
    r->behind = payload.behind;
    TRY(flatbuf_init(&r->fb, payload.flatbuffer, r->err));
    return flatbuf_root(&r->fb, out_root, r->err);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static enum status read_dtype(struct reader *r, const struct flatbuf_table *table,
                              enum dtype *out_dtype)
{
    static const enum dtype dtypes[] = {DT_BOOL, DT_U8,  DT_I8,  DT_I32,
                                        DT_F16,  DT_F32, DT_F64, DT_I64};
    int8_t number = 0;
    TRY(flatbuf_i8(&r->fb, table, tensor_datatype, &number, r->err));
    if (number < 0 || (size_t)number >= sizeof(dtypes) / sizeof(dtypes[0])) {
        return error_set(r->err, ST_UNSUPPORTED, "datatype %d is not known", number);
    }
    *out_dtype = dtypes[number];
    return ST_OK;
}

static enum status read_constant(struct reader *r, uint32_t index, struct span *out_bytes)
{
    struct flatbuf_table table;
    struct span key;
    uint64_t offset = 0, length = 0;
    TRY(flatbuf_table_at(&r->fb, r->constants, index, &table, r->err));
    TRY(flatbuf_u64(&r->fb, &table, bytes_offset, &offset, r->err));
    TRY(flatbuf_u64(&r->fb, &table, bytes_length, &length, r->err));
    TRY(flatbuf_string(&r->fb, &table, bytes_key, &key, r->err));
    if (offset == NO_OFFSET && key.len > 0) {
        return rt_delegate_data(r->call, key, out_bytes);
    }
    if (!in_range(offset, length, r->behind.len)) {
        return error_set(r->err, ST_CORRUPT,
                         "constant %" PRIu32 ": %" PRIu64 " bytes at byte %" PRIu64
                         " do not fit into %zu bytes",
                         index, length, offset, r->behind.len);
    }
    *out_bytes = span_of(r->behind.ptr + offset, (size_t)length);
    return ST_OK;
}

static enum status read_shape(struct reader *r, const struct flatbuf_table *table,
                              struct rt_vulkan_value *value)
{
    struct flatbuf_vector dims;
    size_t bytes;
    TRY(flatbuf_vector(&r->fb, table, tensor_dims, 4, &dims, r->err));
    if (dims.count > RANK_MAX) {
        return error_set(r->err, ST_UNSUPPORTED, "rank %" PRIu32 ", expected at most %d",
                         dims.count, RANK_MAX);
    }
    value->shape.rank = (uint8_t)dims.count;
    for (uint32_t i = 0; i < dims.count; i++) {
        value->shape.dims[i] = flatbuf_u32_at(&r->fb, dims, i);
    }
    return shape_bytes(&value->shape, value->dtype, &bytes, r->err);
}

static enum status read_tensor(struct reader *r, const struct flatbuf_table *table,
                               struct rt_vulkan_value *value)
{
    int32_t constant = 0;
    TRY(read_dtype(r, table, &value->dtype));
    TRY(read_shape(r, table, value));
    TRY(flatbuf_i32(&r->fb, table, tensor_constant, &constant, r->err));
    if (constant < 0) {
        return ST_OK;
    }
    if ((uint32_t)constant >= r->constants.count) {
        return error_set(r->err, ST_CORRUPT, "constant %d does not exist, there are %" PRIu32,
                         constant, r->constants.count);
    }
    value->is_constant = true;
    return read_constant(r, (uint32_t)constant, &value->bytes);
}

/* ---- other values ---------------------------------------------------------------------------- */

static enum status read_int_list(struct reader *r, const struct flatbuf_table *table,
                                 struct rt_vulkan_value *value)
{
    struct flatbuf_vector items;
    TRY(flatbuf_vector(&r->fb, table, only, 8, &items, r->err));
    value->count = items.count;
    value->ints = take(r, items.count, sizeof(*value->ints));
    for (uint32_t i = 0; value->ints && i < items.count; i++) {
        value->ints[i] = flatbuf_i64_at(&r->fb, items, i);
    }
    return value->ints ? ST_OK : r->err->code;
}

static enum status read_double_list(struct reader *r, const struct flatbuf_table *table,
                                    struct rt_vulkan_value *value)
{
    struct flatbuf_vector items;
    TRY(flatbuf_vector(&r->fb, table, only, 8, &items, r->err));
    value->count = items.count;
    value->floats = take(r, items.count, sizeof(*value->floats));
    for (uint32_t i = 0; value->floats && i < items.count; i++) {
        value->floats[i] = flatbuf_f64_at(&r->fb, items, i);
    }
    return value->floats ? ST_OK : r->err->code;
}

static enum status read_bool_list(struct reader *r, const struct flatbuf_table *table,
                                  struct rt_vulkan_value *value)
{
    struct flatbuf_vector items;
    TRY(flatbuf_vector(&r->fb, table, only, 1, &items, r->err));
    value->count = items.count;
    value->bools = take(r, items.count, sizeof(*value->bools));
    for (uint32_t i = 0; value->bools && i < items.count; i++) {
        value->bools[i] = flatbuf_u8_at(&r->fb, items, i) != 0;
    }
    return value->bools ? ST_OK : r->err->code;
}

static enum status read_value_list(struct reader *r, const struct flatbuf_table *table,
                                   struct rt_vulkan_value *value)
{
    struct flatbuf_vector items;
    TRY(flatbuf_vector(&r->fb, table, only, 4, &items, r->err));
    value->count = items.count;
    value->values = take(r, items.count, sizeof(*value->values));
    for (uint32_t i = 0; value->values && i < items.count; i++) {
        value->values[i] = flatbuf_u32_at(&r->fb, items, i);
        if (value->values[i] >= r->graph->value_count) {
            return error_set(r->err, ST_CORRUPT,
                             "item %" PRIu32 " is value %" PRIu32 ", there are only %" PRIu32, i,
                             value->values[i], r->graph->value_count);
        }
    }
    return value->values ? ST_OK : r->err->code;
}

/* The exporter writes the largest float for infinity. */
static double unbounded(double number)
{
    return fabs(number) >= (double)3.4028234663852886e38f ? copysign(INFINITY, number) : number;
}

static enum status read_union(struct reader *r, const struct flatbuf_table *table,
                              struct rt_vulkan_value *value)
{
    uint8_t truth = 0;
    int32_t initial = 0;
    switch (value->kind) {
    case VK_NULL:
        return ST_OK;
    case VK_INT:
        value->i = 0;
        return flatbuf_i64(&r->fb, table, only, &value->i, r->err);
    case VK_DOUBLE:
        value->f = 0;
        TRY(flatbuf_f64(&r->fb, table, only, &value->f, r->err));
        value->f = unbounded(value->f);
        return ST_OK;
    case VK_BOOL:
        TRY(flatbuf_u8(&r->fb, table, only, &truth, r->err));
        value->b = truth != 0;
        return ST_OK;
    case VK_TENSOR:
        return read_tensor(r, table, value);
    case VK_INT_LIST:
        return read_int_list(r, table, value);
    case VK_DOUBLE_LIST:
        return read_double_list(r, table, value);
    case VK_BOOL_LIST:
        return read_bool_list(r, table, value);
    case VK_VALUE_LIST:
        return read_value_list(r, table, value);
    case VK_STRING:
        return flatbuf_string(&r->fb, table, only, &value->bytes, r->err);
    case VK_SYMINT:
        TRY(flatbuf_i32(&r->fb, table, only, &initial, r->err));
        value->i = initial;
        return ST_OK;
    case VK_NONE:
    case VK_KIND_COUNT:
        break;
    }
    return error_set(r->err, ST_UNSUPPORTED, "a value has the unknown type %d", value->kind);
}

static enum status read_value(struct reader *r, struct flatbuf_vector vector, uint32_t index)
{
    struct flatbuf_table outer, inner;
    uint8_t tag = 0;
    TRY(flatbuf_table_at(&r->fb, vector, index, &outer, r->err));
    TRY(flatbuf_union(&r->fb, &outer, value_union, &tag, &inner, r->err));
    r->graph->values[index].kind = tag < VK_KIND_COUNT ? (enum rt_vulkan_kind)tag : VK_NONE;
    return read_union(r, &inner, &r->graph->values[index]);
}

/* Lists do not nest: the items of a list are tensors, ints or null. */
static enum status check_lists(struct reader *r)
{
    for (uint32_t i = 0; i < r->graph->value_count; i++) {
        const struct rt_vulkan_value *list = &r->graph->values[i];
        for (uint32_t k = 0; list->kind == VK_VALUE_LIST && k < list->count; k++) {
            enum rt_vulkan_kind kind = r->graph->values[list->values[k]].kind;
            if (kind != VK_TENSOR && kind != VK_INT && kind != VK_SYMINT && kind != VK_NULL) {
                return error_set(
                    r->err, ST_UNSUPPORTED,
                    "value %" PRIu32 ": item %" PRIu32 " is neither a tensor nor an int", i, k);
            }
        }
    }
    return ST_OK;
}

static enum status read_values(struct reader *r, const struct flatbuf_table *root)
{
    struct flatbuf_vector vector;
    TRY(flatbuf_vector(&r->fb, root, graph_values, 4, &vector, r->err));
    r->graph->value_count = vector.count;
    r->graph->values = take(r, vector.count, sizeof(*r->graph->values));
    if (!r->graph->values) {
        return r->err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        if (read_value(r, vector, i) != ST_OK) {
            return error_prefix(r->err, "value %" PRIu32 ": ", i);
        }
    }
    return check_lists(r);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static enum status read_ids(struct reader *r, struct flatbuf_vector vector, uint32_t max,
                            uint32_t **out_ids)
{
    uint32_t *ids = NULL;
    if (vector.count > max) {
        return error_set(r->err, ST_UNSUPPORTED,
                         "%s: %" PRIu32 " values, expected at most %" PRIu32, vector.name,
                         vector.count, max);
    }
    ids = take(r, vector.count, sizeof(*ids));
    for (uint32_t i = 0; ids && i < vector.count; i++) {
        ids[i] = flatbuf_u32_at(&r->fb, vector, i);
        if (ids[i] >= r->graph->value_count) {
            return error_set(r->err, ST_CORRUPT, "%s: value %" PRIu32 ", there are only %" PRIu32,
                             vector.name, ids[i], r->graph->value_count);
        }
    }
    *out_ids = ids;
    return ids ? ST_OK : r->err->code;
}

static enum status read_call(struct reader *r, struct flatbuf_vector vector, uint32_t index)
{
    struct rt_vulkan_call *call = &r->graph->calls[index];
    struct flatbuf_table table;
    struct flatbuf_vector args;
    TRY(flatbuf_table_at(&r->fb, vector, index, &table, r->err));
    TRY(flatbuf_u32(&r->fb, &table, call_handle, &call->handle, r->err));
    TRY(flatbuf_string(&r->fb, &table, call_name, &call->name, r->err));
    TRY(flatbuf_vector(&r->fb, &table, call_args, 4, &args, r->err));
    call->arg_count = args.count;
    if (args.count == 0) {
        return error_set(r->err, ST_CORRUPT, "the call has no arguments and no result");
    }
    return read_ids(r, args, VK_ARGS_MAX, &call->args);
}

static enum status read_calls(struct reader *r, const struct flatbuf_table *root)
{
    struct flatbuf_vector vector;
    TRY(flatbuf_vector(&r->fb, root, graph_chain, 4, &vector, r->err));
    r->graph->call_count = vector.count;
    r->graph->calls = take(r, vector.count, sizeof(*r->graph->calls));
    if (!r->graph->calls) {
        return r->err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        if (read_call(r, vector, i) != ST_OK) {
            return error_prefix(r->err, "call %" PRIu32 ": ", i);
        }
    }
    return ST_OK;
}

static enum status read_arguments(struct reader *r, const struct flatbuf_table *root)
{
    struct flatbuf_vector inputs, outputs;
    TRY(flatbuf_vector(&r->fb, root, graph_inputs, 4, &inputs, r->err));
    TRY(flatbuf_vector(&r->fb, root, graph_outputs, 4, &outputs, r->err));
    TRY(read_ids(r, inputs, ARGUMENTS_MAX, &r->graph->inputs));
    TRY(read_ids(r, outputs, ARGUMENTS_MAX, &r->graph->outputs));
    r->graph->input_count = inputs.count;
    r->graph->output_count = outputs.count;
    if (inputs.count + outputs.count != r->call->arg_count) {
        return error_set(r->err, ST_CORRUPT,
                         "%" PRIu32 " inputs and %" PRIu32 " outputs, the call has %" PRIu32
                         " arguments",
                         inputs.count, outputs.count, r->call->arg_count);
    }
    return ST_OK;
}

enum status rt_vulkan_read(struct rt_delegate_call *call, struct arena *arena,
                           struct rt_vulkan_graph *out_graph)
{
    struct reader r = {.call = call, .arena = arena, .graph = out_graph, .err = call->err};
    struct flatbuf_table root;
    TRY(open_payload(&r, &root));
    TRY(flatbuf_vector(&r.fb, &root, graph_constants, 4, &r.constants, r.err));
    TRY(read_values(&r, &root));
    TRY(read_calls(&r, &root));
    return read_arguments(&r, &root);
}
