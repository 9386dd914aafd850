/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/grpc_stream.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "protocol/grpc.h"
#include "protocol/grpc_infer.h"
#include "protocol/grpc_schema.h"
#include "protocol/json.h"
#include "protocol/protobuf.h"

#define REQUEST(name) GRPC_NUMBER_ModelInferRequest_##name
#define REPLY(name) GRPC_NUMBER_ModelInferResponse_##name
#define STREAM(name) GRPC_NUMBER_ModelStreamInferResponse_##name
#define PARAMETER(name) GRPC_NUMBER_InferParameter_##name

/* Of an entry of a map. */
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

/* ---- requests -------------------------------------------------------------------------------- */

static uint64_t hash_text(struct span text)
{
    uint64_t hash = text.len;
    for (size_t i = 0; i < text.len; i++) {
        hash = hash_mix(hash, text.ptr[i]);
    }
    return hash | 1; /* not 0, which means none */
}

/* The number 0 and the empty text are no sequence. */
static uint64_t hash_value(struct span value)
{
    struct protobuf in;
    struct protobuf_field field;
    uint64_t hash = 0;
    for (protobuf_init(&in, value); protobuf_next(&in, &field);) {
        if (field.type == PROTOBUF_BYTES) {
            hash = field.bytes.len ? hash_text(field.bytes) : 0;
        } else if (field.type == PROTOBUF_VARINT) {
            hash = field.value ? hash_mix(1, field.value) | 1 : 0;
        }
    }
    return hash;
}

static void look_at_parameter(struct span entry, struct grpc_order *order)
{
    struct protobuf in;
    struct protobuf_field field;
    struct span name = span_str(""), value = span_str("");
    for (protobuf_init(&in, entry); protobuf_next(&in, &field);) {
        if (field.number == ENTRY_KEY && field.type == PROTOBUF_BYTES) {
            name = field.bytes;
        } else if (field.number == ENTRY_VALUE && field.type == PROTOBUF_BYTES) {
            value = field.bytes;
        }
    }
    if (span_is(name, "sequence_id")) {
        order->sequence = hash_value(value);
    }
}

struct grpc_order grpc_read_order(struct span message)
{
    struct grpc_order order = {.id = span_str("")};
    struct protobuf in;
    struct protobuf_field field;
    int left = GRPC_FIELDS_MAX;
    size_t parameters = 0; /* bytes */
    for (protobuf_init(&in, message); left > 0 && protobuf_next(&in, &field); left--) {
        if (field.type == PROTOBUF_BYTES && field.number == REQUEST(id)) {
            order.id = field.bytes;
        } else if (field.type == PROTOBUF_BYTES && field.number == REQUEST(parameters)) {
            parameters += field.bytes.len;
            if (parameters > GRPC_PARAMETERS_BYTES_MAX) {
                break; /* the call will be refused */
            }
            look_at_parameter(field.bytes, &order);
        }
    }
    order.is_unknown = in.is_wrong || left == 0 || parameters > GRPC_PARAMETERS_BYTES_MAX;
    return order;
}

static const uint8_t prefix[GRPC_PREFIX_BYTES];

/* ---- answers --------------------------------------------------------------------------------- */

/* The entry triton_final_response of the parameters: its key, and a value that is a message. */
static size_t put_final(uint8_t *out, bool is_final)
{
    static const char name[] = "triton_final_response";
    const size_t name_len = sizeof(name) - 1;
    const uint8_t value[] = {ENTRY_VALUE << 3 | PROTOBUF_BYTES, 2, PARAMETER(bool_param) << 3,
                             is_final};
    uint8_t *at = out;
    *at++ = REPLY(parameters) << 3 | PROTOBUF_BYTES;
    *at++ = (uint8_t)(2 + name_len + sizeof(value));
    *at++ = ENTRY_KEY << 3 | PROTOBUF_BYTES;
    *at++ = (uint8_t)name_len;
    memcpy(at, name, name_len);
    at += name_len;
    memcpy(at, value, sizeof(value));
    return (size_t)(at - out) + sizeof(value);
}

enum status grpc_print_stream_head(uint8_t out[GRPC_STREAM_HEAD_BYTES_MAX], size_t bytes,
                                   bool is_final, size_t *out_len, struct error *err)
{
    uint8_t entry[GRPC_STREAM_HEAD_BYTES_MAX];
    size_t entry_len = put_final(entry, is_final);
    uint8_t *at = out + GRPC_PREFIX_BYTES;
    *at++ = STREAM(infer_response) << 3 | PROTOBUF_BYTES;
    at += protobuf_print_varint(at, entry_len + bytes);
    must((size_t)(at - out) + entry_len <= GRPC_STREAM_HEAD_BYTES_MAX);
    memcpy(at, entry, entry_len);
    *out_len = (size_t)(at - out) + entry_len;
    return grpc_print_prefix(out, false, *out_len - GRPC_PREFIX_BYTES + bytes, err);
}

static void end_message(struct buf *out, size_t begin)
{
    struct error err;
    if (!buf_failed(out)) {
        enum status status =
            grpc_print_prefix(out->ptr + begin, false, out->len - begin - GRPC_PREFIX_BYTES, &err);
        must(status == ST_OK);
    }
}

struct grpc_stream_answer grpc_begin_stream_answer(struct buf *out, bool is_final)
{
    uint8_t entry[GRPC_STREAM_HEAD_BYTES_MAX];
    struct grpc_stream_answer answer = {.begin = out->len};
    buf_add(out, prefix, sizeof(prefix));
    answer.fields = protobuf_begin(out, STREAM(infer_response));
    buf_add(out, entry, put_final(entry, is_final));
    return answer;
}

void grpc_end_stream_answer(struct buf *out, const struct grpc_stream_answer *answer)
{
    protobuf_end(out, answer->fields);
    end_message(out, answer->begin);
}

/* A field for text holds UTF-8 alone, and what an error repeats of a request need not be. */
static void put_plain(struct buf *out, uint32_t number, struct span text)
{
    if (json_is_utf8(text)) {
        protobuf_put_bytes(out, number, text);
        return;
    }
    protobuf_put_head(out, number, text.len);
    for (size_t i = 0; i < text.len; i++) {
        buf_add_char(out, text.ptr[i] < 0x80 ? (char)text.ptr[i] : '?');
    }
}

void grpc_print_stream_error(struct span id, const char *text, struct buf *out)
{
    size_t begin = out->len;
    buf_add(out, prefix, sizeof(prefix));
    put_plain(out, STREAM(error_message), span_str(text));
    if (id.len > 0) {
        size_t answer = protobuf_begin(out, STREAM(infer_response));
        put_plain(out, REPLY(id), id);
        protobuf_end(out, answer);
    }
    end_message(out, begin);
}
