/* SPDX-License-Identifier: MIT */
/* Parts that all forms of requests share: stored strings, parameters, promised results. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/table.h"
#include "protocol/json_priv.h"
#include "protocol/number.h"
#include "protocol/oip_classes.h"
#include "protocol/oip_priv.h"

/* Makes room for one more item after |count|: doubles at powers of two. NULL: the arena is full. */
void *oip_grow(struct arena *arena, void *items, size_t count, size_t size)
{
    if (count != 0 && (count < 4 || (count & (count - 1)) != 0)) {
        return items;
    }
    void *grown = arena_array(arena, count ? count * 2 : 4, size);
    if (grown && count) {
        memcpy(grown, items, count * size);
    }
    return grown;
}

static enum status keep_string(const struct oip_reader *r, const struct json_string *string,
                               struct span *out)
{
    if (string->bytes > r->limits->name_bytes_max) {
        return json_fail(r->in, r->err, ST_TOO_LARGE, "string of %zu bytes, at most %zu are taken",
                         string->bytes, r->limits->name_bytes_max);
    }
    return json_string_take(string, r->arena, "the request", out, r->err);
}

enum status oip_read_string(const struct oip_reader *r, struct span *out)
{
    struct json_string string;
    TRY(json_read_string(r->in, &string, r->err));
    return keep_string(r, &string, out);
}

bool oip_take_null(const struct oip_reader *r)
{
    return json_peek(r->in) == JSON_NULL && json_read_null(r->in, r->err) == ST_OK;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static enum status read_number(const struct oip_reader *r, struct oip_parameter *parameter)
{
    const uint8_t *at = r->in->at;
    enum number_result result = number_parse_i64(&at, r->in->end, &parameter->i);
    if (result == NUMBER_OK) {
        parameter->type = OIP_INT;
    } else if (result == NUMBER_RANGE &&
               number_parse_u64(&at, r->in->end, &parameter->u) == NUMBER_OK) {
        parameter->type = OIP_UINT;
    } else {
        parameter->type = OIP_FLOAT;
        return json_read_f64(r->in, &parameter->f, r->err);
    }
    r->in->at = at;
    return ST_OK;
}

static enum status read_value(const struct oip_reader *r, struct oip_parameter *parameter)
{
    char next[JSON_NEXT_TEXT_MAX];
    switch (json_peek(r->in)) {
    case JSON_STRING:
        parameter->type = OIP_STRING;
        return oip_read_string(r, &parameter->s);
    case JSON_BOOL:
        parameter->type = OIP_BOOL;
        return json_read_bool(r->in, &parameter->b, r->err);
    case JSON_NUMBER:
        return read_number(r, parameter);
    default:
        return json_fail(r->in, r->err, ST_INVALID,
                         "expected a string, a number or a boolean, got %s",
                         json_next_text(r->in, next));
    }
}

static enum status add_other(const struct oip_reader *r, const struct json_string *key,
                             struct oip_parameters *out)
{
    struct oip_parameter parameter;
    TRY(keep_string(r, key, &parameter.name));
    if (r->in->is_derived && span_is(parameter.name, "triton_enable_empty_final_response")) {
        bool ignored; /* the last answer of a request has its outputs, and says that it is the last
                       */
        return json_read_bool(r->in, &ignored, r->err);
    }
    if (parameter.name.len >= 7 && memcmp(parameter.name.ptr, "triton_", 7) == 0) {
        return json_fail(r->in, r->err, ST_INVALID, "names that begin with triton_ are reserved");
    }
    TRY(read_value(r, &parameter));
    if (out->other_count == r->limits->parameters_max) {
        return json_fail(r->in, r->err, ST_TOO_LARGE, "more than %zu parameters",
                         r->limits->parameters_max);
    }
    struct oip_parameter *grown = oip_grow(r->arena, out->others, out->other_count, sizeof(*grown));
    if (!grown) {
        return arena_fail(r->arena, "the request", r->err);
    }
    out->others = grown;
    out->others[out->other_count++] = parameter;
    return ST_OK;
}

/* How NaN and the infinities are written, in the request's data and in the answer's. */
static enum status read_nan(const struct oip_reader *r, struct oip_parameters *out)
{
    static const char *const names[] = {
        [NUMBER_NAN_STRING] = "string", [NUMBER_NAN_TOKEN] = "token", [NUMBER_NAN_NULL] = "null"};
    TABLE_ENDS_WITH(names, NUMBER_NAN_NULL);
    struct json_string text;
    TRY(json_read_string(r->in, &text, r->err));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (json_string_is(&text, names[i])) {
            out->has_nan = true;
            out->nan = (enum number_nan)i;
            return ST_OK;
        }
    }
    return json_fail(r->in, r->err, ST_INVALID,
                     "expected \"string\", \"token\" or \"null\", got \"%.*s\"",
                     text.raw.len > 32 ? 32 : (int)text.raw.len, (const char *)text.raw.ptr);
}

struct tensor_nan oip_request_nan(const struct oip_parameters *parameters)
{
    return (struct tensor_nan){.takes_null =
                                   parameters->has_nan && parameters->nan == NUMBER_NAN_NULL};
}

enum number_nan oip_answer_nan(const struct oip_parameters *parameters,
                               const struct tensor_nan *request)
{
    return parameters->has_nan   ? parameters->nan
           : request->has_tokens ? NUMBER_NAN_TOKEN
                                 : NUMBER_NAN_STRING;
}

static enum status read_top_k(const struct oip_reader *r, struct oip_parameters *out)
{
    uint64_t count;
    TRY(json_read_u64(r->in, &count, r->err));
    if (count > OIP_CLASSES_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected 0 to %d classes, got %" PRIu64,
                         OIP_CLASSES_MAX, count);
    }
    out->has_top_k = true;
    out->top_k = (uint32_t)count;
    return ST_OK;
}

static enum status read_parameter(const struct oip_reader *r, const struct json_string *key,
                                  struct oip_parameters *out)
{
    if (json_string_is(key, "binary_data_output")) {
        return json_read_bool(r->in, &out->binary_data_output, r->err);
    }
    if (json_string_is(key, "sequence_id")) {
        return json_peek(r->in) == JSON_STRING ? oip_read_string(r, &out->sequence_name)
                                               : json_read_u64(r->in, &out->sequence_id, r->err);
    }
    if (json_string_is(key, "sequence_start")) {
        return json_read_bool(r->in, &out->sequence_start, r->err);
    }
    if (json_string_is(key, "sequence_end")) {
        return json_read_bool(r->in, &out->sequence_end, r->err);
    }
    if (json_string_is(key, "priority")) {
        return json_read_u64(r->in, &out->priority, r->err);
    }
    if (json_string_is(key, "timeout")) {
        return json_read_u64(r->in, &out->timeout_us, r->err);
    }
    if (json_string_is(key, "top_k") && r->is_call) {
        return read_top_k(r, out);
    }
    if (json_string_is(key, "answer") && r->is_call) {
        bool wants_answer = true;
        TRY(json_read_bool(r->in, &wants_answer, r->err));
        out->wants_tensors = !wants_answer;
        return ST_OK;
    }
    if (json_string_is(key, "order") && r->is_call) {
        return oip_read_order(r->in, &out->is_channels_last, r->err);
    }
    if (json_string_is(key, "nan")) {
        return read_nan(r, out);
    }
    return add_other(r, key, out);
}

enum status oip_read_parameters(const struct oip_reader *r, struct oip_parameters *out)
{
    if (oip_take_null(r)) {
        return ST_OK;
    }
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        TRY(read_parameter(r, &key, out));
    }
}

/* ---- promises -------------------------------------------------------------------------------- */

enum status oip_read_promise(const struct oip_reader *r, struct oip_promise *out)
{
    bool has_id = false;
    TRY(json_object(r->in, r->err));
    if (!r->limits->is_listed) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "only the requests of a POST /v2/batch can take each other's results");
    }
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            break;
        }
        if (json_string_is(&key, "id")) {
            has_id = true;
            TRY(oip_read_string(r, &out->id));
        } else if (json_string_is(&key, "output")) {
            TRY(pick_read(r->in, r->limits->name_bytes_max, r->arena, &out->output, r->err));
        } else {
            return json_fail(r->in, r->err, ST_INVALID, "unknown member, expected id or output");
        }
    }
    return has_id ? ST_OK : json_fail(r->in, r->err, ST_INVALID, "member \"id\" is missing");
}
