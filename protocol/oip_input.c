/* SPDX-License-Identifier: MIT */
/* Inputs of a request: finds their sizes and their bytes, and decodes them to tensors. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "protocol/grpc_contents.h"
#include "protocol/oip_priv.h"
#include "protocol/tensor_text.h"

#define STRING_PREFIX_BYTES 4

/* Computes the bytes from the shape; the product is checked for every type, BYTES too. What has
 * more bytes than a size can say is refused as what has more than the limit: how large sizes are
 * depends on the processor. */
static enum status measure_input(struct oip_request_input *input, const struct oip_limits *limits,
                                 struct error *err)
{
    enum dtype dtype = input->type.is_bytes ? DT_U8 : input->type.dtype;
    size_t bytes;
    char shape[SHAPE_TEXT_MAX];
    if (shape_bytes(&input->shape, dtype, &bytes, NULL) != ST_OK) {
        return error_set(err, ST_TOO_LARGE,
                         "inputs[%zu]: shape %.200s has too many elements, expected at most "
                         "%zu bytes",
                         input->index, shape_print(&input->shape, shape), limits->tensor_bytes_max);
    }
    if (bytes > limits->tensor_bytes_max) {
        return error_set(
            err, ST_TOO_LARGE, "inputs[%zu]: shape %.80s takes %zu bytes, expected at most %zu",
            input->index, shape_print(&input->shape, shape), bytes, limits->tensor_bytes_max);
    }
    input->bytes = input->type.is_bytes ? 0 : bytes;
    return ST_OK;
}

/* Refuses a shape with more elements than the text can hold, before memory is reserved. */
static enum status verify_text(const struct oip_request_input *input, struct error *err)
{
    int64_t count = shape_numel(&input->shape);
    if (input->data.len < tensor_text_bytes_min(count)) {
        char shape[SHAPE_TEXT_MAX];
        return error_set(err, ST_INVALID,
                         "inputs[%zu].data: expected %" PRId64 " elements (shape %.80s), got %zu",
                         input->index, count, shape_print(&input->shape, shape),
                         tensor_text_count(input->data));
    }
    return ST_OK;
}

/* A tensor that is not packed may have more bytes than it has elements for. */
static enum status check_layout(struct oip_request_input *input, struct error *err)
{
    enum status status =
        oip_settle_layout(&input->layout, &input->shape, input->type.dtype, input->data.len, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "inputs[%zu]", input->index);
}

static enum status check_size(const struct oip_request_input *input, struct error *err)
{
    size_t bytes = input->data.len;
    int64_t count = shape_numel(&input->shape);
    if (input->type.is_bytes ? bytes / STRING_PREFIX_BYTES < (uint64_t)count
                             : bytes != input->bytes) {
        char shape[SHAPE_TEXT_MAX];
        return error_set(err, ST_INVALID, "inputs[%zu]: %s is %zu, expected %s%zu for %s %.80s",
                         input->index,
                         input->shared.is_given ? "shared_memory_byte_size"
                         : input->is_message    ? "the size of its raw_input_contents"
                                                : "binary_data_size",
                         bytes, input->type.is_bytes ? "at least " : "",
                         input->type.is_bytes ? STRING_PREFIX_BYTES * (size_t)count : input->bytes,
                         oip_type_name(input->type), shape_print(&input->shape, shape));
    }
    return ST_OK;
}

/* Takes the input's bytes, data.len of them, from the front of |binary|, unless they lie in shared
 * memory. */
static enum status take_binary(struct oip_request_input *input, struct span *binary,
                               struct error *err)
{
    size_t bytes = input->data.len;
    TRY(input->layout.is_given ? check_layout(input, err) : check_size(input, err));
    if (input->shared.is_given) {
        return ST_OK;
    }
    if (bytes > binary->len) {
        return error_set(err, ST_INVALID,
                         "inputs[%zu]: expected %zu bytes of binary data, got %zu: %zu are missing",
                         input->index, bytes, binary->len, bytes - binary->len);
    }
    input->data.ptr = binary->ptr;
    *binary = span_of(binary->ptr + bytes, binary->len - bytes);
    if (input->layout.is_given) {
        oip_drop_layout(&input->layout, &input->shape, input->type.dtype, &input->data);
    }
    return ST_OK;
}

/* An input without "data" and without "binary_data_size" takes the binary data, if there is any. */
static enum status settle_source(struct oip_request *request, struct oip_request_input *input,
                                 size_t binary_bytes, struct error *err)
{
    size_t others = 0, unsized_count = 0;
    for (size_t i = 0; i < request->input_count; i++) {
        const struct oip_request_input *other = &request->inputs[i];
        if (other->is_binary && !other->shared.is_given &&
            !add_size(others, other->data.len, &others)) {
            others = SIZE_MAX;
        }
        unsized_count += !other->is_binary && !other->data.ptr && !other->is_promise;
    }
    if (binary_bytes == 0 || unsized_count > 1) {
        return error_set(err, ST_INVALID,
                         "inputs[%zu]: expected \"data\" or \"binary_data_size\", got neither",
                         input->index);
    }
    input->is_binary = true;
    input->data.len = !input->type.is_bytes    ? input->bytes
                      : others <= binary_bytes ? binary_bytes - others
                                               : 0;
    return ST_OK;
}

static enum status check_input(const struct oip_request *request,
                               const struct oip_request_input *input, struct error *err)
{
    for (size_t i = 0; i < input->index; i++) {
        if (span_equal(request->inputs[i].name, input->name)) {
            return error_set(err, ST_INVALID, "inputs[%zu]: repeats the name of inputs[%zu]",
                             input->index, i);
        }
    }
    if (input->layout.is_given && (input->type.is_bytes || !input->is_binary)) {
        return error_set(err, ST_INVALID,
                         "inputs[%zu]: strides, order and offset are for tensors with "
                         "binary_data_size%s",
                         input->index, input->type.is_bytes ? ", not for BYTES" : "");
    }
    return ST_OK;
}

enum status oip_verify_rest(struct span binary, struct error *err)
{
    return binary.len == 0
               ? ST_OK
               : error_set(err, ST_INVALID, "%zu bytes behind the last tensor's binary data",
                           binary.len);
}

enum status oip_finish_inputs(struct oip_request *request, struct span *binary,
                              const struct oip_limits *limits, struct error *err)
{
    size_t binary_bytes = binary->len;
    for (size_t i = 0; i < request->input_count; i++) {
        TRY(measure_input(&request->inputs[i], limits, err));
        TRY(check_input(request, &request->inputs[i], err));
        TRY(request->inputs[i].data.ptr ? verify_text(&request->inputs[i], err) : ST_OK);
    }
    for (size_t i = 0; i < request->input_count; i++) {
        struct oip_request_input *input = &request->inputs[i];
        if (!input->is_binary && !input->data.ptr && !input->is_promise) {
            /* In a list of requests, only inputs with "binary_data_size" take binary data. */
            TRY(settle_source(request, input, limits->is_listed ? 0 : binary_bytes, err));
        }
    }
    for (size_t i = 0; i < request->input_count; i++) {
        if (request->inputs[i].is_binary) {
            TRY(take_binary(&request->inputs[i], binary, err));
        }
    }
    return ST_OK;
}

enum status oip_finish_messages(struct oip_request *request, const struct oip_limits *limits,
                                struct error *err)
{
    for (size_t i = 0; i < request->input_count; i++) {
        struct oip_request_input *input = &request->inputs[i];
        TRY(measure_input(input, limits, err));
        TRY(check_input(request, input, err));
        if (input->is_binary) {
            TRY(input->layout.is_given ? check_layout(input, err) : check_size(input, err));
        } else {
            TRY(grpc_check_contents(input, err));
        }
        if (input->layout.is_given && !input->shared.is_given) {
            oip_drop_layout(&input->layout, &input->shape, input->type.dtype, &input->data);
        }
    }
    return ST_OK;
}

/* Finds the one open dim from the number of bytes; the other dims make |unit| bytes. */
static enum status deduce_dim(struct shape *shape, int unknown, size_t bytes, enum dtype dtype,
                              struct error *err)
{
    size_t unit;
    shape->dims[unknown] = 1;
    TRY(shape_bytes(shape, dtype, &unit, err));
    if (unit == 0 || bytes % unit != 0) {
        return error_set(err, ST_INVALID,
                         "a body of %zu bytes is no multiple of %zu, the bytes of one item", bytes,
                         unit);
    }
    shape->dims[unknown] = (int64_t)(bytes / unit);
    return ST_OK;
}

static enum status shape_raw(struct oip_request_input *input, const struct oip_tensor_meta *meta,
                             struct error *err)
{
    int unknown = -1;
    input->shape = meta->shape;
    for (int i = 0; i < meta->shape.rank; i++) {
        if (meta->shape.dims[i] >= 0) {
            continue;
        }
        if (unknown >= 0) {
            return error_set(err, ST_INVALID,
                             "input '%s' has more than one dim of any size: a request without JSON "
                             "cannot say which is which",
                             meta->name);
        }
        unknown = i;
    }
    if (meta->type.is_bytes) {
        input->is_one_string = true;
        if (unknown >= 0) {
            input->shape.dims[unknown] = 1;
        }
        return shape_numel(&input->shape) == 1
                   ? ST_OK
                   : error_set(err, ST_INVALID,
                               "input '%s' takes several strings: a request without JSON has one",
                               meta->name);
    }
    return unknown < 0 ? ST_OK
                       : deduce_dim(&input->shape, unknown, input->data.len, meta->type.dtype, err);
}

enum status oip_parse_raw(struct span binary, const struct oip_tensor_meta *meta,
                          const struct oip_limits *limits, struct arena *arena,
                          struct oip_request *out, struct error *err)
{
    struct oip_request_input *input = arena_alloc(arena, sizeof(*input));
    if (!input) {
        return arena_fail(arena, "the request", err);
    }
    *input = (struct oip_request_input){
        .name = span_str(meta->name), .type = meta->type, .is_binary = true, .data = binary};
    TRY(shape_raw(input, meta, err));
    TRY(measure_input(input, limits, err));
    if (!input->is_one_string && input->bytes != binary.len) {
        return error_set(err, ST_INVALID, "input '%s' takes %zu bytes, the body has %zu",
                         meta->name, input->bytes, binary.len);
    }
    *out = (struct oip_request){
        .parameters = {.binary_data_output = true},
        .inputs = input,
        .input_count = 1,
    };
    return ST_OK;
}

static bool shape_matches(const struct shape *shape, const struct shape *pattern)
{
    if (shape->rank != pattern->rank) {
        return false;
    }
    for (uint8_t i = 0; i < shape->rank; i++) {
        if (pattern->dims[i] >= 0 && pattern->dims[i] != shape->dims[i]) {
            return false;
        }
    }
    return true;
}

enum status oip_verify_input(const struct oip_request_input *input,
                             const struct oip_tensor_meta *meta, struct error *err)
{
    if (input->type.is_bytes != meta->type.is_bytes ||
        (!meta->type.is_bytes && input->type.dtype != meta->type.dtype)) {
        return error_set(err, ST_INVALID, "inputs[%zu] '%.*s': datatype is %s, expected %s",
                         input->index, SPAN_SHORT(input->name), oip_type_name(input->type),
                         oip_type_name(meta->type));
    }
    if (!shape_matches(&input->shape, &meta->shape)) {
        char got[SHAPE_TEXT_MAX], expected[SHAPE_TEXT_MAX];
        return error_set(err, ST_INVALID, "inputs[%zu] '%.*s': shape is %.100s, expected %.100s",
                         input->index, SPAN_SHORT(input->name), shape_print(&input->shape, got),
                         shape_print(&meta->shape, expected));
    }
    return ST_OK;
}

enum status oip_decode_input(const struct oip_request_input *input, struct tensor_nan *nan,
                             void *dst, size_t bytes, struct error *err)
{
    must(!input->type.is_bytes && bytes == oip_input_stored_bytes(input));
    if (!input->is_binary && input->is_message) {
        return grpc_decode_contents(input, dst, err);
    }
    if (!input->is_binary) {
        enum status status =
            tensor_text_parse(input->data, input->type.dtype, &input->shape, nan, dst, bytes, err);
        return status == ST_OK ? ST_OK : error_prefix(err, "inputs[%zu].data", input->index);
    }
    if (input->type.dtype == DT_BOOL) {
        uint8_t *out = dst;
        for (size_t i = 0; i < bytes; i++) {
            out[i] = input->data.ptr[i] != 0;
        }
    } else if (bytes) {
        memcpy(dst, input->data.ptr, bytes);
    }
    return ST_OK;
}

size_t oip_input_stored_bytes(const struct oip_request_input *input)
{
    return input->layout.is_given ? input->data.len : input->bytes;
}

bool oip_input_is_direct(const struct oip_request_input *input)
{
    return input->is_binary && !input->type.is_bytes && oip_is_direct(input->type.dtype);
}

/* Length-prefixed elements: exactly |count| of them fill |data|. */
static enum status split_strings(struct span data, struct span *strings, size_t count,
                                 struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (data.len < STRING_PREFIX_BYTES) {
            return error_set(err, ST_INVALID, "[%zu]: expected 4 bytes of length, got %zu", i,
                             data.len);
        }
        size_t len = load_le32(data.ptr), left = data.len - STRING_PREFIX_BYTES;
        if (len > left) {
            return error_set(err, ST_INVALID, "[%zu]: expected a string of %zu bytes, got %zu", i,
                             len, left);
        }
        strings[i] = span_of(data.ptr + STRING_PREFIX_BYTES, len);
        data = span_of(strings[i].ptr + len, left - len);
    }
    return data.len == 0
               ? ST_OK
               : error_set(err, ST_INVALID, ": %zu bytes behind the last string", data.len);
}

static enum status decode_strings(const struct oip_request_input *input, struct arena *arena,
                                  struct span **out_strings, struct error *err)
{
    if (!input->is_binary) {
        return tensor_text_parse_strings(input->data, &input->shape, arena, out_strings, err);
    }
    size_t count = (size_t)shape_numel(&input->shape);
    struct span *strings = arena_array(arena, count, sizeof(*strings));
    if (!strings) {
        arena_fail(arena, "the request", err);
        return error_prefix(err, ": ");
    }
    if (input->is_one_string) {
        strings[0] = input->data;
    } else {
        TRY(split_strings(input->data, strings, count, err));
    }
    *out_strings = strings;
    return ST_OK;
}

enum status oip_decode_strings(const struct oip_request_input *input, struct arena *arena,
                               struct span **out_strings, struct error *err)
{
    must(input->type.is_bytes);
    if (!input->is_binary && input->is_message) {
        return grpc_decode_strings(input, arena, out_strings, err);
    }
    enum status status = decode_strings(input, arena, out_strings, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "inputs[%zu].data", input->index);
}
