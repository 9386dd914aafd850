/* SPDX-License-Identifier: MIT */
/*
 * The envelope of an inference request. Members may come in any order, so everything that depends
 * on two of them (sizes, binary spans, forms of outputs, repeated names) is settled in oip_input.c
 * and finish_outputs() after the text has been read. A null counts as an absent member where the
 * member is optional, because some client libraries write their unset fields so.
 */
#include "config.h"

#include "protocol/oip.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/oip_priv.h"

const char *oip_type_name(struct oip_type type)
{
    return type.is_bytes ? "BYTES" : dtype_infos[type.dtype].oip;
}

enum status oip_split_body(struct span body, const struct span *json_bytes, struct oip_body *out,
                           struct error *err)
{
    if (!json_bytes) {
        *out = (struct oip_body){.json = body};
        return ST_OK;
    }
    const uint8_t *at = json_bytes->ptr, *end = at + json_bytes->len;
    uint64_t len;
    if (number_parse_u64(&at, end, &len) != NUMBER_OK || at != end) {
        return error_set(err, ST_INVALID, "Inference-Header-Content-Length is no whole number");
    }
    if (len > body.len) {
        return error_set(err, ST_INVALID,
                         "Inference-Header-Content-Length is %" PRIu64
                         ", expected at most %zu, the length of the body",
                         len, body.len);
    }
    *out = (struct oip_body){
        .is_raw = len == 0,
        .json = span_of(body.ptr, (size_t)len),
        .binary = span_of(body.ptr + len, body.len - (size_t)len),
    };
    return ST_OK;
}

enum status oip_fail_memory(const struct oip_parser *p)
{
    return error_set(p->err, ST_TOO_LARGE, "the request has more members than %zu bytes can hold",
                     p->arena->max_bytes);
}

/* Room for one more behind |count| items: doubles at powers of two, NULL when the arena is full. */
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

bool oip_take_null(struct oip_parser *p)
{
    return json_peek(&p->in) == JSON_NULL && json_read_null(&p->in, p->err) == ST_OK;
}

static enum status keep_string(struct oip_parser *p, const struct json_string *string,
                               struct span *out)
{
    if (string->bytes > p->limits->name_bytes_max) {
        return json_fail(&p->in, p->err, ST_TOO_LARGE, "string of %zu bytes, at most %zu are taken",
                         string->bytes, p->limits->name_bytes_max);
    }
    if (string->raw.len == string->bytes) {
        *out = string->raw;
        return ST_OK;
    }
    uint8_t *copy = arena_alloc(p->arena, string->bytes);
    if (!copy) {
        return oip_fail_memory(p);
    }
    json_string_decode(string, copy);
    *out = span_of(copy, string->bytes);
    return ST_OK;
}

enum status oip_read_string(struct oip_parser *p, struct span *out)
{
    struct json_string string;
    TRY(json_read_string(&p->in, &string, p->err));
    return keep_string(p, &string, out);
}

static enum status read_number_parameter(struct oip_parser *p, struct oip_parameter *parameter)
{
    const uint8_t *at = p->in.at;
    enum number_result result = number_parse_i64(&at, p->in.end, &parameter->i);
    if (result == NUMBER_OK) {
        parameter->type = OIP_INT;
    } else if (result == NUMBER_RANGE &&
               number_parse_u64(&at, p->in.end, &parameter->u) == NUMBER_OK) {
        parameter->type = OIP_UINT;
    } else {
        parameter->type = OIP_FLOAT;
        return json_read_f64(&p->in, &parameter->f, p->err);
    }
    p->in.at = at;
    return ST_OK;
}

static enum status read_parameter(struct oip_parser *p, struct oip_parameter *parameter)
{
    switch (json_peek(&p->in)) {
    case JSON_STRING:
        parameter->type = OIP_STRING;
        return oip_read_string(p, &parameter->s);
    case JSON_BOOL:
        parameter->type = OIP_BOOL;
        return json_read_bool(&p->in, &parameter->b, p->err);
    case JSON_NUMBER:
        return read_number_parameter(p, parameter);
    default:
        return json_fail(&p->in, p->err, ST_INVALID,
                         "a parameter is a string, a number or a boolean");
    }
}

static enum status add_parameter(struct oip_parser *p, const struct json_string *key)
{
    struct oip_request *request = p->request;
    struct oip_parameter parameter;
    TRY(keep_string(p, key, &parameter.name));
    if (parameter.name.len >= 7 && memcmp(parameter.name.ptr, "triton_", 7) == 0) {
        return json_fail(&p->in, p->err, ST_INVALID, "names that begin with triton_ are reserved");
    }
    TRY(read_parameter(p, &parameter));
    if (request->parameter_count == p->limits->parameters_max) {
        return json_fail(&p->in, p->err, ST_TOO_LARGE, "more than %zu parameters",
                         p->limits->parameters_max);
    }
    struct oip_parameter *grown =
        oip_grow(p->arena, request->parameters, request->parameter_count, sizeof(*grown));
    if (!grown) {
        return oip_fail_memory(p);
    }
    request->parameters = grown;
    request->parameters[request->parameter_count++] = parameter;
    return ST_OK;
}

static enum status parse_parameter(struct oip_parser *p, const struct json_string *key)
{
    struct oip_request *request = p->request;
    if (json_string_is(key, "binary_data_output")) {
        return json_read_bool(&p->in, &request->binary_data_output, p->err);
    }
    if (json_string_is(key, "sequence_id")) {
        return json_peek(&p->in) == JSON_STRING
                   ? oip_read_string(p, &request->sequence_name)
                   : json_read_u64(&p->in, &request->sequence_id, p->err);
    }
    if (json_string_is(key, "sequence_start")) {
        return json_read_bool(&p->in, &request->sequence_start, p->err);
    }
    if (json_string_is(key, "sequence_end")) {
        return json_read_bool(&p->in, &request->sequence_end, p->err);
    }
    if (json_string_is(key, "priority")) {
        return json_read_u64(&p->in, &request->priority, p->err);
    }
    if (json_string_is(key, "timeout")) {
        return json_read_u64(&p->in, &request->timeout_us, p->err);
    }
    return add_parameter(p, key);
}

static enum status parse_parameters(struct oip_parser *p)
{
    if (oip_take_null(p)) {
        return ST_OK;
    }
    TRY(json_object(&p->in, p->err));
    while (true) {
        struct json_string key;
        TRY(json_member(&p->in, &key, p->err));
        if (p->in.is_closed) {
            return ST_OK;
        }
        TRY(parse_parameter(p, &key));
    }
}

static void finish_outputs(struct oip_request *request)
{
    for (size_t i = 0; i < request->output_count; i++) {
        if (!request->outputs[i].has_form) {
            request->outputs[i].is_binary = request->binary_data_output;
        }
    }
}

static enum status parse_member(struct oip_parser *p, const struct json_string *key,
                                bool *has_inputs)
{
    struct oip_request *request = p->request;
    if (json_string_is(key, "inputs")) {
        *has_inputs = true;
        return oip_parse_inputs(p);
    }
    if (json_string_is(key, "outputs")) {
        return oip_parse_outputs(p);
    }
    if (json_string_is(key, "parameters")) {
        return parse_parameters(p);
    }
    if (json_string_is(key, "id")) {
        if (oip_take_null(p)) {
            return ST_OK;
        }
        request->has_id = true;
        return oip_read_string(p, &request->id);
    }
    return json_skip(&p->in, p->err);
}

static enum status parse_envelope(struct oip_parser *p)
{
    bool has_inputs = false;
    TRY(json_object(&p->in, p->err));
    while (true) {
        struct json_string key;
        TRY(json_member(&p->in, &key, p->err));
        if (p->in.is_closed) {
            break;
        }
        TRY(parse_member(p, &key, &has_inputs));
    }
    TRY(json_end(&p->in, p->err));
    return has_inputs ? ST_OK : error_set(p->err, ST_INVALID, "member \"inputs\" is missing");
}

static void init_parser(struct oip_parser *p, struct span json, const struct oip_limits *limits,
                        struct arena *arena, struct oip_request *request, struct error *err)
{
    json_init(&p->in, json);
    p->limits = limits;
    p->arena = arena;
    p->request = request;
    p->err = err;
    p->is_shapes_only = false;
    if (limits->json_depth_max && limits->json_depth_max < JSON_DEPTH_MAX) {
        p->in.depth_max = (uint16_t)limits->json_depth_max;
    }
}

enum status oip_parse_infer(const struct oip_body *body, const struct oip_limits *limits,
                            struct arena *arena, struct oip_request *out, struct error *err)
{
    must(!body->is_raw);
    struct oip_request request = {.has_id = false};
    struct oip_parser p; /* no initialiser: it would clear the reader's tables too */
    init_parser(&p, body->json, limits, arena, &request, err);
    TRY(parse_envelope(&p));
    TRY(oip_finish_inputs(&request, body->binary, limits, err));
    finish_outputs(&request);
    *out = request;
    return ST_OK;
}

enum status oip_parse_shapes(struct span body, const struct oip_limits *limits, struct arena *arena,
                             struct oip_request *out, struct error *err)
{
    struct oip_request request = {.has_id = false};
    struct oip_parser p;
    init_parser(&p, body, limits, arena, &request, err);
    p.is_shapes_only = true;
    TRY(parse_envelope(&p));
    *out = request;
    return ST_OK;
}

enum status oip_parse_index(struct span body, bool *out_ready_only, struct error *err)
{
    struct json in;
    bool ready_only = false;
    if (body.len == 0) {
        *out_ready_only = false;
        return ST_OK;
    }
    json_init(&in, body);
    TRY(json_object(&in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(&in, &key, err));
        if (in.is_closed) {
            break;
        }
        if (json_string_is(&key, "ready")) {
            TRY(json_read_bool(&in, &ready_only, err));
        } else {
            TRY(json_skip(&in, err));
        }
    }
    TRY(json_end(&in, err));
    *out_ready_only = ready_only;
    return ST_OK;
}
