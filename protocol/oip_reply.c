/* SPDX-License-Identifier: MIT */
/*
 * Prints replies. A binary tensor stays where it is and is sent as a span. Strings have no memory
 * in wire format: they are appended, with their lengths, behind the JSON in the same buffer. The
 * spans of the JSON and of the strings get their addresses at the end, because the buffer may move
 * until then.
 */
#include "config.h"

#include "protocol/oip_reply.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/oip_priv.h"
#include "protocol/tensor_text.h"

/* buf_add_str() of a constant, whose length is one then. */
#define ADD(out, text) buf_add(out, text, sizeof(text) - 1)

static void print_text(struct buf *out, const char *text)
{
    json_print_string(out, span_str(text));
}

static void print_key(struct buf *out, const char *name)
{
    buf_add_char(out, '"');
    buf_add_str(out, name);
    buf_add_str(out, "\":");
}

void oip_print_member(struct buf *out, const char *name, const char *text)
{
    print_key(out, name);
    print_text(out, text);
}

static void print_dims(struct buf *out, const struct shape *shape)
{
    uint8_t *room = buf_reserve(out, 2 + shape->rank * (size_t)(NUMBER_TEXT_MAX + 1)), *text = room;
    if (!room) {
        return;
    }
    *text++ = '[';
    for (uint8_t i = 0; i < shape->rank; i++) {
        text += number_print_i64(text, shape->dims[i]);
        *text++ = ',';
    }
    text -= shape->rank > 0; /* no comma behind the last */
    *text++ = ']';
    buf_commit(out, (size_t)(text - room));
}

static void print_shape(struct buf *out, const char *name, const struct shape *shape)
{
    print_key(out, name);
    print_dims(out, shape);
}

static void print_u64(struct buf *out, uint64_t value)
{
    uint8_t *text = buf_reserve(out, NUMBER_TEXT_MAX);
    if (text) {
        buf_commit(out, number_print_u64(text, value));
    }
}

static size_t string_count(const struct oip_result *result)
{
    return (size_t)shape_numel(&result->shape);
}

size_t oip_result_bytes(const struct oip_result *result)
{
    if (!result->type.is_bytes) {
        return result->data.len;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < string_count(result); i++) {
        bytes += oip_string_bytes(result->strings[i]);
    }
    return bytes;
}

static void print_shared(struct buf *out, const struct oip_shared *shared)
{
    buf_add_str(out, ",\"parameters\":{\"shared_memory_region\":");
    json_print_string(out, shared->region);
    if (shared->offset) {
        buf_printf(out, ",\"shared_memory_offset\":%" PRIu64, shared->offset);
    }
    buf_printf(out, ",\"shared_memory_byte_size\":%" PRIu64 "}", shared->bytes);
}

/* A parameter of results that are not row-major. */
#define ORDER "\"order\":\"channels_last\""

void oip_print_reply_head(struct buf *out, const char *model_name, const char *model_version)
{
    ADD(out, "\"model_name\":");
    print_text(out, model_name);
    ADD(out, ",\"model_version\":");
    print_text(out, model_version);
    ADD(out, ",\"outputs\":[");
}

void oip_print_result_head(struct buf *out, struct span name, struct oip_type type)
{
    ADD(out, "{\"name\":");
    json_print_string(out, name);
    ADD(out, ",\"datatype\":\"");
    buf_add_str(out, oip_type_name(type));
    ADD(out, "\",\"shape\":");
}

static void print_result(struct buf *out, const struct oip_result *result, enum number_nan nan,
                         struct oip_encoded *encoded)
{
    if (result->head.len) {
        buf_add(out, result->head.ptr, result->head.len);
    } else {
        oip_print_result_head(out, result->name, result->type);
    }
    print_dims(out, &result->shape);
    if (result->is_shared) {
        print_shared(out, &result->shared);
    } else if (result->is_binary) {
        size_t bytes = oip_result_bytes(result);
        ADD(out, ",\"parameters\":{\"binary_data_size\":");
        print_u64(out, bytes);
        buf_add_str(out, result->is_channels_last ? "," ORDER "}" : "}");
        oip_encode_blob(encoded, span_of(result->type.is_bytes ? NULL : result->data.ptr, bytes));
    } else if (result->type.is_bytes) {
        ADD(out, ",\"data\":");
        tensor_text_print_strings(out, result->strings, string_count(result));
    } else {
        buf_add_str(out, result->is_channels_last ? ",\"parameters\":{" ORDER "}" : "");
        ADD(out, ",\"data\":");
        tensor_text_print(out, result->type.dtype, result->data.ptr,
                          result->data.len / dtype_bytes(result->type.dtype), nan);
    }
    buf_add_char(out, '}');
}

void oip_print_members(const struct oip_reply *reply, struct buf *out, struct oip_encoded *encoded)
{
    if (reply->head.len) {
        buf_add(out, reply->head.ptr, reply->head.len);
    } else {
        oip_print_reply_head(out, reply->model_name, reply->model_version);
    }
    for (size_t i = 0; i < reply->result_count; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        print_result(out, &reply->results[i], reply->nan, encoded);
    }
    buf_add_char(out, ']');
}

void oip_print_strings(const struct oip_result *result, struct buf *out)
{
    bool is_behind = result->is_binary && result->type.is_bytes;
    for (size_t i = 0; is_behind && i < string_count(result); i++) {
        struct span string = result->strings[i];
        uint32_t len = (uint32_t)string.len;
        must(len == string.len);
        uint8_t prefix[4] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16),
                             (uint8_t)(len >> 24)};
        buf_add(out, prefix, sizeof(prefix));
        buf_add(out, string.ptr, string.len);
    }
}

void oip_encode_begin(struct oip_encoded *encoded)
{
    encoded->has_binary = encoded->is_message = false;
    encoded->span_count = 1; /* the JSON's own */
}

void oip_encode_blob(struct oip_encoded *encoded, struct span bytes)
{
    encoded->has_binary = true;
    if (bytes.len > 0) {
        encoded->spans[encoded->span_count++] = bytes;
    }
}

void oip_encode_end_json(struct buf *out, struct oip_encoded *encoded)
{
    if (encoded->has_binary && !encoded->is_message) {
        buf_add_fill(out, ' ', -out->len % OIP_BLOB_ALIGN);
    }
    encoded->json_bytes = out->len;
}

enum status oip_encode_end(struct buf *out, struct oip_encoded *encoded, struct error *err)
{
    if (buf_failed(out)) {
        return error_set(err, ST_TOO_LARGE, "the answer has more than %zu bytes of text",
                         out->max_bytes);
    }
    const uint8_t *strings = out->ptr + encoded->json_bytes;
    encoded->spans[0] = span_of(out->ptr, encoded->json_bytes);
    encoded->total_bytes = encoded->json_bytes;
    for (size_t i = 1; i < encoded->span_count; i++) {
        struct span *span = &encoded->spans[i];
        if (!span->ptr) {
            span->ptr = strings;
            strings += span->len;
        }
        encoded->total_bytes += span->len;
    }
    must(strings == out->ptr + out->len);
    return ST_OK;
}

void oip_print_id(struct buf *out, struct span id)
{
    buf_add_str(out, "\"id\":");
    json_print_string(out, id);
    buf_add_char(out, ',');
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

static void print_description(struct buf *out, const char *text)
{
    if (text) {
        buf_add_char(out, ',');
        oip_print_member(out, "description", text);
    }
}

static void print_sizes(struct buf *out, const char *name, const struct shape *sizes)
{
    if (sizes) {
        buf_add_char(out, ',');
        print_shape(out, name, sizes);
    }
}

/* |examples| and |maxima|, which inputs have and outputs do not, have NULL where there is none. */
static void print_tensors(struct buf *out, const char *name, const struct oip_tensor_meta *metas,
                          const struct shape *const *examples, const struct shape *const *maxima,
                          size_t count)
{
    print_text(out, name);
    buf_add_str(out, ":[");
    for (size_t i = 0; i < count; i++) {
        buf_add_str(out, i > 0 ? ",{" : "{");
        oip_print_member(out, "name", metas[i].name);
        buf_add_char(out, ',');
        oip_print_member(out, "datatype", oip_type_name(metas[i].type));
        buf_add_char(out, ',');
        print_shape(out, "shape", &metas[i].shape);
        print_sizes(out, "example_shape", examples ? examples[i] : NULL);
        print_sizes(out, "max_shape", maxima ? maxima[i] : NULL);
        buf_add_str(out, examples && metas[i].is_optional ? ",\"optional\":true" : "");
        print_description(out, metas[i].description);
        if (metas[i].media) {
            buf_add_char(out, ',');
            oip_print_member(out, "media", metas[i].media);
        }
        if (metas[i].media_form) {
            buf_printf(out, ",\"%s\":%s", metas[i].media, metas[i].media_form);
        }
        if (metas[i].answer) {
            buf_add_char(out, ',');
            oip_print_member(out, "answer", metas[i].answer);
        }
        if (metas[i].answer_form) {
            buf_printf(out, ",\"%s\":%s", metas[i].answer, metas[i].answer_form);
        }
        if (metas[i].label_count) {
            buf_printf(out, ",\"label_count\":%" PRIu32, metas[i].label_count);
        }
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

void oip_print_server(struct buf *out, const struct oip_server_meta *meta)
{
    buf_add_char(out, '{');
    oip_print_member(out, "name", meta->name);
    buf_add_char(out, ',');
    oip_print_member(out, "version", meta->version);
    buf_add_char(out, ',');
    print_texts(out, "extensions", meta->extensions, meta->extension_count);
    if (meta->scope_count > 0) {
        buf_add_char(out, ',');
        print_texts(out, "scopes", meta->scopes, meta->scope_count);
    }
    buf_add_char(out, '}');
}

/* What would make it faster, and why it has not got that. */
static void print_lacks(struct buf *out, const char *lacks)
{
    if (lacks) {
        buf_printf(out, ",\"lacks\":%s", lacks);
    }
}

void oip_print_model(struct buf *out, const struct oip_model_meta *meta)
{
    buf_add_char(out, '{');
    oip_print_member(out, "name", meta->name);
    buf_add_char(out, ',');
    print_texts(out, "versions", meta->versions, meta->version_count);
    buf_add_char(out, ',');
    oip_print_member(out, "platform", meta->platform);
    buf_add_char(out, ',');
    print_tensors(out, "inputs", meta->inputs, meta->examples, meta->maxima, meta->input_count);
    buf_add_char(out, ',');
    print_tensors(out, "outputs", meta->outputs, NULL, NULL, meta->output_count);
    print_description(out, meta->description);
    if (meta->precision) {
        buf_add_char(out, ',');
        oip_print_member(out, "precision", meta->precision);
    }
    if (meta->cache) {
        buf_add_char(out, ',');
        oip_print_member(out, "cache", meta->cache);
    }
    if (meta->constants) {
        buf_printf(out, ",\"constants\":%s", meta->constants);
    }
    if (meta->placement) {
        buf_printf(out, ",\"placement\":%s", meta->placement);
    }
    print_lacks(out, meta->lacks);
    buf_add_char(out, '}');
}

void oip_print_model_ready(struct buf *out, const char *name, bool is_ready)
{
    buf_add_char(out, '{');
    oip_print_member(out, "name", name);
    buf_add_str(out, is_ready ? ",\"ready\":true}" : ",\"ready\":false}");
}

static void print_row(struct buf *out, const struct oip_index_row *row)
{
    const char *const members[][2] = {{"version", row->version},
                                      {"state", row->state},
                                      {"reason", row->reason},
                                      {"kind", row->kind},
                                      {"id", row->id}};
    buf_add_char(out, '{');
    oip_print_member(out, "name", row->name);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (members[i][1]) {
            buf_add_char(out, ',');
            oip_print_member(out, members[i][0], members[i][1]);
        }
    }
    print_lacks(out, row->lacks);
    buf_add_str(out, row->is_constant ? ",\"constant\":true}" : "}");
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

void oip_print_error_member(struct buf *out, const char *text)
{
    oip_print_member(out, "error", text);
}

void oip_print_error(struct buf *out, const char *text)
{
    buf_add_char(out, '{');
    oip_print_error_member(out, text);
    buf_add_char(out, '}');
}
