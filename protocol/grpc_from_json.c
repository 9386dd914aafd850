/* SPDX-License-Identifier: MIT */
/* From JSON to messages. The JSON is printed by pted, so what does not suit the table is a fault of
 * ours, which becomes an error of the request. */
#include "config.h"

#include <math.h>

#include "base/check.h"
#include "protocol/grpc_json.h"
#include "protocol/json.h"
#include "protocol/number.h"

/* Bytes of a text that has escapes; names and reasons are shorter. */
#define TEXT_BYTES_MAX 4096

struct reader {
    struct json in;
    struct buf *out;
    struct error *err;
};

static enum status read_message(struct reader *r, enum grpc_message id);

static enum status put_string(struct reader *r, uint32_t number, const struct json_string *text)
{
    uint8_t decoded[TEXT_BYTES_MAX];
    if (text->bytes == text->raw.len) {
        protobuf_put_bytes(r->out, number, text->raw);
        return ST_OK;
    }
    if (text->bytes > sizeof(decoded)) {
        return json_fail(&r->in, r->err, ST_TOO_LARGE, "expected at most %d bytes", TEXT_BYTES_MAX);
    }
    json_string_decode(text, decoded);
    protobuf_put_bytes(r->out, number, span_of(decoded, text->bytes));
    return ST_OK;
}

static enum status put_text(struct reader *r, uint32_t number)
{
    struct json_string text;
    TRY(json_read_string(&r->in, &text, r->err));
    return put_string(r, number, &text);
}

static enum status read_enum(struct reader *r, const struct grpc_field_info *field,
                             uint64_t *out_number)
{
    const struct grpc_enum_info info = grpc_enum_info((enum grpc_enum)field->ref);
    struct json_string name;
    TRY(json_read_string(&r->in, &name, r->err));
    for (uint32_t i = 0; i < info.value_count; i++) {
        if (json_string_is(&name, info.values[i].name)) {
            *out_number = info.values[i].number;
            return ST_OK;
        }
    }
    return json_fail(&r->in, r->err, ST_INVALID, "expected a %s", info.name);
}

/* Numbers may be texts. */
static enum status read_number(struct reader *r, const struct grpc_field_info *field, uint64_t *out)
{
    struct json_string text;
    bool value, is_signed = field->type == GRPC_INT32 || field->type == GRPC_INT64;
    if (field->type == GRPC_ENUM) {
        return read_enum(r, field, out);
    }
    if (field->type == GRPC_BOOL) {
        TRY(json_read_bool(&r->in, &value, r->err));
        *out = value;
        return ST_OK;
    }
    if (json_peek(&r->in) != JSON_STRING) {
        return is_signed ? json_read_i64(&r->in, (int64_t *)out, r->err)
                         : json_read_u64(&r->in, out, r->err);
    }
    TRY(json_read_string(&r->in, &text, r->err));
    const uint8_t *at = text.raw.ptr, *end = at + text.raw.len;
    enum number_result result =
        is_signed ? number_parse_i64(&at, end, (int64_t *)out) : number_parse_u64(&at, end, out);
    return result == NUMBER_OK && at == end
               ? ST_OK
               : json_fail(&r->in, r->err, ST_INVALID, "expected a number");
}

static enum status put_item(struct reader *r, const struct grpc_field_info *field)
{
    uint64_t number;
    double value;
    if (field->type == GRPC_STRING) {
        return put_text(r, field->number);
    }
    if (field->type == GRPC_MESSAGE) {
        size_t begun = protobuf_begin(r->out, field->number);
        TRY(read_message(r, (enum grpc_message)field->ref));
        protobuf_end(r->out, begun);
        return ST_OK;
    }
    must(field->type != GRPC_BYTES && field->type != GRPC_FLOAT); /* no answer of JSON has any */
    if (field->type == GRPC_DOUBLE) {
        TRY(json_read_f64(&r->in, &value, r->err));
        protobuf_put_double(r->out, field->number, value);
        return ST_OK;
    }
    TRY(read_number(r, field, &number));
    if (number != 0 || field->label == GRPC_CHOICE) {
        protobuf_put_number(r->out, field->number, number);
    }
    return ST_OK;
}

/* ---- lists and maps -------------------------------------------------------------------------- */

static enum status put_packed(struct reader *r, const struct grpc_field_info *field)
{
    size_t begun = protobuf_begin(r->out, field->number);
    TRY(json_array(&r->in, r->err));
    while (true) {
        uint64_t number;
        TRY(json_element(&r->in, r->err));
        if (r->in.is_closed) {
            break;
        }
        TRY(read_number(r, field, &number));
        protobuf_put_varint(r->out, number);
    }
    protobuf_end(r->out, begun);
    return ST_OK;
}

static enum status put_many(struct reader *r, const struct grpc_field_info *field)
{
    if (field->type != GRPC_STRING && field->type != GRPC_MESSAGE) {
        return put_packed(r, field);
    }
    TRY(json_array(&r->in, r->err));
    while (true) {
        TRY(json_element(&r->in, r->err));
        if (r->in.is_closed) {
            return ST_OK;
        }
        TRY(put_item(r, field));
    }
}

/* An entry of a map: a key 1 and a value 2. */
static enum status put_entry(struct reader *r, const struct grpc_field_info *field,
                             const struct json_string *key)
{
    size_t entry = protobuf_begin(r->out, field->number);
    TRY(put_string(r, 1, key));
    size_t value = protobuf_begin(r->out, 2);
    TRY(read_message(r, (enum grpc_message)field->ref));
    protobuf_end(r->out, value);
    protobuf_end(r->out, entry);
    return ST_OK;
}

/* The member "name" of the object that comes next. */
static enum status find_name(struct reader *r, struct json_string *out)
{
    struct json ahead = r->in;
    struct json_string key;
    TRY(json_object(&ahead, r->err));
    while (true) {
        TRY(json_member(&ahead, &key, r->err));
        if (ahead.is_closed) {
            return json_fail(&r->in, r->err, ST_INVALID, "member \"name\" is missing");
        }
        if (json_string_is(&key, "name")) {
            return json_read_string(&ahead, out, r->err);
        }
        TRY(json_skip(&ahead, r->err));
    }
}

static enum status put_map_of_array(struct reader *r, const struct grpc_field_info *field)
{
    TRY(json_array(&r->in, r->err));
    while (true) {
        struct json_string name;
        TRY(json_element(&r->in, r->err));
        if (r->in.is_closed) {
            return ST_OK;
        }
        TRY(find_name(r, &name));
        TRY(put_entry(r, field, &name));
    }
}

static enum status put_map(struct reader *r, const struct grpc_field_info *field)
{
    if (json_peek(&r->in) == JSON_ARRAY) {
        return put_map_of_array(r, field);
    }
    TRY(json_object(&r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(&r->in, &key, r->err));
        if (r->in.is_closed) {
            return ST_OK;
        }
        TRY(put_entry(r, field, &key));
    }
}

static enum status put_field(struct reader *r, const struct grpc_field_info *field)
{
    if (json_peek(&r->in) == JSON_NULL) {
        return json_read_null(&r->in, r->err);
    }
    return field->label == GRPC_MANY  ? put_many(r, field)
           : field->label == GRPC_MAP ? put_map(r, field)
                                      : put_item(r, field);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool suits(enum grpc_type type, enum json_type next)
{
    switch (type) {
    case GRPC_BOOL:
        return next == JSON_BOOL;
    case GRPC_STRING:
        return next == JSON_STRING;
    case GRPC_INT64:
    case GRPC_UINT32:
        return next == JSON_NUMBER;
    default:
        return false;
    }
}

/* A value instead of an object: the field that takes such a value. */
static enum status read_value(struct reader *r, const struct grpc_message_info *info)
{
    enum json_type next = json_peek(&r->in);
    for (uint32_t i = 0; i < info->field_count; i++) {
        const struct grpc_field_info *field = &info->fields[i];
        if (field->label == GRPC_MANY && next == JSON_ARRAY) {
            return put_many(r, field);
        }
        if (suits(field->type, next)) {
            return put_item(r, field);
        }
    }
    return json_fail(&r->in, r->err, ST_INVALID, "expected a %s", info->name);
}

static enum status read_member(struct reader *r, const struct grpc_message_info *info,
                               const struct json_string *key)
{
    for (uint32_t i = 0; i < info->field_count; i++) {
        if (json_string_is(key, info->fields[i].name)) {
            return put_field(r, &info->fields[i]);
        }
    }
    return json_skip(&r->in, r->err);
}

static enum status read_message(struct reader *r, enum grpc_message id)
{
    const struct grpc_message_info info = grpc_message_info(id);
    if (json_peek(&r->in) != JSON_OBJECT) {
        return read_value(r, &info);
    }
    TRY(json_object(&r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(&r->in, &key, r->err));
        if (r->in.is_closed) {
            return ST_OK;
        }
        TRY(read_member(r, &info, &key));
    }
}

enum status grpc_from_json(struct span json, enum grpc_message id, bool is_wrapped, struct buf *out,
                           struct error *err)
{
    struct reader r; /* no initialiser: it would clear the reader's tables, too */
    json_init(&r.in, json);
    r.in.may_repeat = true; /* the text is ours */
    r.out = out;
    r.err = err;
    TRY(is_wrapped ? put_field(&r, grpc_message_info(id).fields) : read_message(&r, id));
    TRY(json_end(&r.in, err));
    return buf_check(out, "the answer", err);
}
