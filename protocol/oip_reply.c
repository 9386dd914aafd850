/* SPDX-License-Identifier: MIT */
/*
 * Printing of replies. A binary tensor stays where it is and goes out as a span. Strings have no
 * such memory: their prefixed form is appended behind the JSON in the same buffer, and the spans
 * are made at the end, when the buffer does not move any more.
 */
#include "config.h"

#include "protocol/oip_reply.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/tensor_text.h"

static void print_text(struct buf *out, const char *text)
{
    json_print_string(out, span_str(text));
}

/* "name":"text" */
static void print_member(struct buf *out, const char *name, const char *text)
{
    print_text(out, name);
    buf_add_char(out, ':');
    print_text(out, text);
}

static void print_shape(struct buf *out, const struct shape *shape)
{
    buf_add_str(out, "\"shape\":");
    tensor_text_print(out, DT_I64, shape->dims, shape->rank);
}

static size_t string_count(const struct oip_result *result)
{
    return (size_t)shape_numel(&result->shape);
}

static size_t binary_bytes(const struct oip_result *result)
{
    if (!result->type.is_bytes) {
        return result->data.len;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < string_count(result); i++) {
        bytes += 4 + result->strings[i].len;
    }
    return bytes;
}

static void print_result(struct buf *out, const struct oip_result *result)
{
    buf_add_str(out, "{\"name\":");
    json_print_string(out, result->name);
    buf_add_char(out, ',');
    print_member(out, "datatype", oip_type_name(result->type));
    buf_add_char(out, ',');
    print_shape(out, &result->shape);
    if (result->is_binary) {
        buf_printf(out, ",\"parameters\":{\"binary_data_size\":%zu}", binary_bytes(result));
    } else if (result->type.is_bytes) {
        buf_add_str(out, ",\"data\":");
        tensor_text_print_strings(out, result->strings, string_count(result));
    } else {
        buf_add_str(out, ",\"data\":");
        tensor_text_print(out, result->type.dtype, result->data.ptr,
                          result->data.len / dtype_bytes(result->type.dtype));
    }
    buf_add_char(out, '}');
}

static void print_envelope(struct buf *out, const struct oip_reply *reply)
{
    buf_add_char(out, '{');
    if (reply->has_id) {
        buf_add_str(out, "\"id\":");
        json_print_string(out, reply->id);
        buf_add_char(out, ',');
    }
    print_member(out, "model_name", reply->model_name);
    buf_add_char(out, ',');
    print_member(out, "model_version", reply->model_version);
    buf_add_str(out, ",\"outputs\":[");
    for (size_t i = 0; i < reply->result_count; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        print_result(out, &reply->results[i]);
    }
    buf_add_str(out, "]}");
}

static void print_prefixed_strings(struct buf *out, const struct oip_result *result)
{
    for (size_t i = 0; i < string_count(result); i++) {
        struct span string = result->strings[i];
        uint32_t len = (uint32_t)string.len;
        must(len == string.len);
        uint8_t prefix[4] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16),
                             (uint8_t)(len >> 24)};
        buf_add(out, prefix, sizeof(prefix));
        buf_add(out, string.ptr, string.len);
    }
}

/* The JSON and the blobs as spans; |at| walks over what print_prefixed_strings() appended. */
static void list_spans(const struct oip_reply *reply, const struct buf *out,
                       struct oip_encoded *encoded)
{
    const uint8_t *at = out->ptr + encoded->json_bytes;
    encoded->spans[0] = span_of(out->ptr, encoded->json_bytes);
    encoded->span_count = 1;
    encoded->total_bytes = encoded->json_bytes;
    for (size_t i = 0; i < reply->result_count; i++) {
        const struct oip_result *result = &reply->results[i];
        size_t bytes = result->is_binary ? binary_bytes(result) : 0;
        if (bytes == 0) {
            continue;
        }
        encoded->spans[encoded->span_count++] =
            span_of(result->type.is_bytes ? at : result->data.ptr, bytes);
        at += result->type.is_bytes ? bytes : 0;
        encoded->total_bytes += bytes;
    }
}

enum status oip_print_infer(const struct oip_reply *reply, struct buf *out,
                            struct oip_encoded *encoded, struct error *err)
{
    must(out->len == 0);
    encoded->has_binary = false;
    print_envelope(out, reply);
    for (size_t i = 0; i < reply->result_count; i++) {
        encoded->has_binary |= reply->results[i].is_binary;
    }
    while (encoded->has_binary && out->len % OIP_BLOB_ALIGN && !buf_failed(out)) {
        buf_add_char(out, ' ');
    }
    encoded->json_bytes = out->len;
    for (size_t i = 0; i < reply->result_count; i++) {
        if (reply->results[i].is_binary && reply->results[i].type.is_bytes) {
            print_prefixed_strings(out, &reply->results[i]);
        }
    }
    if (buf_failed(out)) {
        return error_set(err, ST_TOO_LARGE, "the answer has more than %zu bytes of text",
                         out->max_bytes);
    }
    list_spans(reply, out, encoded);
    return ST_OK;
}

static void print_texts(struct buf *out, const char *name, const char *const *texts, size_t count)
{
    print_text(out, name);
    buf_add_str(out, ":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        print_text(out, texts[i]);
    }
    buf_add_char(out, ']');
}

static void print_tensors(struct buf *out, const char *name, const struct oip_tensor_meta *metas,
                          size_t count)
{
    print_text(out, name);
    buf_add_str(out, ":[");
    for (size_t i = 0; i < count; i++) {
        buf_add_str(out, i > 0 ? ",{" : "{");
        print_member(out, "name", metas[i].name);
        buf_add_char(out, ',');
        print_member(out, "datatype", oip_type_name(metas[i].type));
        buf_add_char(out, ',');
        print_shape(out, &metas[i].shape);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

void oip_print_server(struct buf *out, const struct oip_server_meta *meta)
{
    buf_add_char(out, '{');
    print_member(out, "name", meta->name);
    buf_add_char(out, ',');
    print_member(out, "version", meta->version);
    buf_add_char(out, ',');
    print_texts(out, "extensions", meta->extensions, meta->extension_count);
    buf_add_char(out, '}');
}

void oip_print_model(struct buf *out, const struct oip_model_meta *meta)
{
    buf_add_char(out, '{');
    print_member(out, "name", meta->name);
    buf_add_char(out, ',');
    print_texts(out, "versions", meta->versions, meta->version_count);
    buf_add_char(out, ',');
    print_member(out, "platform", meta->platform);
    buf_add_char(out, ',');
    print_tensors(out, "inputs", meta->inputs, meta->input_count);
    buf_add_char(out, ',');
    print_tensors(out, "outputs", meta->outputs, meta->output_count);
    buf_add_char(out, '}');
}

void oip_print_model_ready(struct buf *out, const char *name, bool is_ready)
{
    buf_add_char(out, '{');
    print_member(out, "name", name);
    buf_add_str(out, is_ready ? ",\"ready\":true}" : ",\"ready\":false}");
}

static void print_row(struct buf *out, const struct oip_index_row *row)
{
    const char *const members[][2] = {
        {"version", row->version}, {"state", row->state}, {"reason", row->reason}};
    buf_add_char(out, '{');
    print_member(out, "name", row->name);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (members[i][1]) {
            buf_add_char(out, ',');
            print_member(out, members[i][0], members[i][1]);
        }
    }
    buf_add_char(out, '}');
}

void oip_print_index(struct buf *out, const struct oip_index_row *rows, size_t count)
{
    buf_add_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        print_row(out, &rows[i]);
    }
    buf_add_char(out, ']');
}

void oip_print_error(struct buf *out, const char *text)
{
    buf_add_char(out, '{');
    print_member(out, "error", text);
    buf_add_char(out, '}');
}
