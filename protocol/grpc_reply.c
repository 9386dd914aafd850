/* SPDX-License-Identifier: MIT */
/* Answers of inference requests as messages. Large tensors stay where they are: the message is a
 * list of spans. Small ones are copied, which takes less time than a span of their own. */
#include "config.h"

#include "base/check.h"
#include "protocol/grpc.h"
#include "protocol/grpc_infer.h"
#include "protocol/grpc_schema.h"
#include "protocol/protobuf.h"

#define COPY_BYTES_MAX 4096

/* Beyond so many results all tensors are copied: a write takes only so many spans. */
#define SPANS_RESULTS_MAX 127

#define REPLY(name) GRPC_NUMBER_ModelInferResponse_##name
#define RESULT(name) GRPC_NUMBER_ModelInferResponse_InferOutputTensor_##name
#define PARAMETER(name) GRPC_NUMBER_InferParameter_##name

/* ---- fields ---------------------------------------------------------------------------------- */

static size_t begin_parameter(struct buf *out, uint32_t number, size_t *entry, const char *name)
{
    *entry = protobuf_begin(out, number);
    protobuf_put_text(out, 1, name);
    return protobuf_begin(out, 2);
}

void grpc_put_text_parameter(struct buf *out, uint32_t number, const char *name, struct span text)
{
    size_t entry, value = begin_parameter(out, number, &entry, name);
    protobuf_put_bytes(out, PARAMETER(string_param), text);
    protobuf_end(out, value);
    protobuf_end(out, entry);
}

void grpc_put_number_parameter(struct buf *out, uint32_t number, const char *name, uint64_t value)
{
    size_t entry, begun = begin_parameter(out, number, &entry, name);
    protobuf_put_number(out, PARAMETER(int64_param), value);
    protobuf_end(out, begun);
    protobuf_end(out, entry);
}

static void put_shape(struct buf *out, const struct shape *shape)
{
    if (shape->rank == 0) {
        return;
    }
    size_t begun = protobuf_begin(out, RESULT(shape));
    for (uint8_t i = 0; i < shape->rank; i++) {
        protobuf_put_varint(out, (uint64_t)shape->dims[i]);
    }
    protobuf_end(out, begun);
}

static void put_result(struct buf *out, const struct oip_result *result)
{
    size_t begun = protobuf_begin(out, REPLY(outputs));
    protobuf_put_bytes(out, RESULT(name), result->name);
    protobuf_put_text(out, RESULT(datatype), oip_type_name(result->type));
    put_shape(out, &result->shape);
    if (result->is_shared) {
        grpc_put_text_parameter(out, RESULT(parameters), "shared_memory_region",
                                result->shared.region);
        grpc_put_number_parameter(out, RESULT(parameters), "shared_memory_byte_size",
                                  result->shared.bytes);
        if (result->shared.offset) {
            grpc_put_number_parameter(out, RESULT(parameters), "shared_memory_offset",
                                      result->shared.offset);
        }
    }
    if (result->is_channels_last) {
        grpc_put_text_parameter(out, RESULT(parameters), "order", span_str("channels_last"));
    }
    protobuf_end(out, begun);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Bytes in the message; what is in shared memory has none there. */
static size_t bytes_of(const struct oip_result *result)
{
    return result->is_shared ? 0 : oip_result_bytes(result);
}

static bool is_copied(const struct oip_reply *reply, const struct oip_result *result)
{
    return result->type.is_bytes || bytes_of(result) <= COPY_BYTES_MAX ||
           reply->result_count > SPANS_RESULTS_MAX;
}

/* Bytes in the buffer; they follow those that are there already. */
static void add_printed(struct oip_encoded *encoded, size_t bytes)
{
    struct span *last = &encoded->spans[encoded->span_count - 1];
    if (encoded->span_count > 1 && !last->ptr) {
        last->len += bytes;
    } else {
        encoded->spans[encoded->span_count++] = span_of(NULL, bytes);
    }
}

static size_t head_bytes(size_t bytes)
{
    return protobuf_varint_bytes(REPLY(raw_output_contents) << 3) + protobuf_varint_bytes(bytes);
}

static void list_spans(const struct oip_reply *reply, struct oip_encoded *encoded)
{
    for (size_t i = 0; i < reply->result_count; i++) {
        const struct oip_result *result = &reply->results[i];
        size_t bytes = bytes_of(result);
        bool is_here = is_copied(reply, result);
        add_printed(encoded, head_bytes(bytes) + (is_here ? bytes : 0));
        if (!is_here) {
            oip_encode_blob(encoded, span_of(result->data.ptr, bytes));
        }
    }
}

void grpc_print_reply(const struct oip_reply *reply, struct span id, struct buf *out,
                      struct oip_encoded *encoded)
{
    static const uint8_t prefix[GRPC_PREFIX_BYTES];
    must(out->len == 0);
    encoded->is_message = true;
    buf_add(out, prefix, sizeof(prefix));
    protobuf_put_text(out, REPLY(model_name), reply->model_name);
    protobuf_put_text(out, REPLY(model_version), reply->model_version);
    if (id.len > 0) {
        protobuf_put_bytes(out, REPLY(id), id);
    }
    for (size_t i = 0; i < reply->result_count; i++) {
        put_result(out, &reply->results[i]);
    }
    list_spans(reply, encoded);
}

void grpc_print_tail(const struct oip_reply *reply, struct buf *out)
{
    for (size_t i = 0; i < reply->result_count; i++) {
        const struct oip_result *result = &reply->results[i];
        size_t bytes = bytes_of(result);
        protobuf_put_head(out, REPLY(raw_output_contents), bytes);
        if (result->type.is_bytes && !result->is_shared) {
            oip_print_strings(result, out);
        } else if (bytes > 0 && is_copied(reply, result)) {
            buf_add(out, result->data.ptr, bytes);
        }
    }
}

enum status grpc_end_reply(struct buf *out, const struct oip_encoded *encoded, struct error *err)
{
    must(encoded->is_message && out->len >= GRPC_PREFIX_BYTES);
    return grpc_print_prefix(out->ptr, false, encoded->total_bytes - GRPC_PREFIX_BYTES, err);
}
