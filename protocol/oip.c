/* SPDX-License-Identifier: MIT */
/*
 * The envelope of an inference request. Members may come in any order. So whatever depends on two
 * members (sizes, binary spans, forms of outputs, repeated names) is settled after the text has
 * been read, in oip_input.c and finish_outputs(). For an optional member null means absent, because
 * some client libraries write unset fields as null.
 */
#include "config.h"

#include "protocol/oip.h"

#include <inttypes.h>

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
        return error_set(
            err, ST_INVALID, "Inference-Header-Content-Length: expected a whole number, got '%.*s'",
            json_bytes->len > 32 ? 32 : (int)json_bytes->len, (const char *)json_bytes->ptr);
    }
    if (len > body.len) {
        return error_set(err, ST_INVALID,
                         "Inference-Header-Content-Length: expected at most %zu, the length of the "
                         "body, got %" PRIu64,
                         body.len, len);
    }
    *out = (struct oip_body){
        .is_raw = len == 0,
        .json = span_of(body.ptr, (size_t)len),
        .binary = span_of(body.ptr + len, body.len - (size_t)len),
    };
    return ST_OK;
}

static void finish_outputs(struct oip_request *request)
{
    for (size_t i = 0; i < request->outputs.count; i++) {
        struct oip_request_output *output = &request->outputs.items[i];
        if (!output->has_form) {
            output->is_binary = request->parameters.binary_data_output;
        }
        output->is_binary &= !output->shared.is_given;
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
        return oip_read_outputs(&p->reader, &request->outputs);
    }
    if (json_string_is(key, "parameters")) {
        return oip_read_parameters(&p->reader, &request->parameters);
    }
    if (json_string_is(key, "id")) {
        if (oip_take_null(&p->reader)) {
            return ST_OK;
        }
        request->has_id = true;
        return oip_read_string(&p->reader, &request->id);
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

static void init_parser(struct oip_parser *p, const struct oip_body *body,
                        const struct oip_limits *limits, struct arena *arena,
                        struct oip_request *request, struct error *err)
{
    json_init(&p->in, body->json);
    p->in.start -= body->json_offset;
    p->reader = (struct oip_reader){&p->in, limits, arena, err, false, false};
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
                            struct arena *arena, struct oip_request *out, struct span *out_rest,
                            struct error *err)
{
    must(!body->is_raw);
    struct span binary = body->binary;
    struct oip_request request = {.has_id = false};
    struct oip_parser p; /* no initialiser: it would clear the reader's tables too */
    init_parser(&p, body, limits, arena, &request, err);
    TRY(parse_envelope(&p));
    TRY(oip_finish_inputs(&request, &binary, limits, err));
    if (out_rest) {
        *out_rest = binary;
    } else {
        TRY(oip_verify_rest(binary, err));
    }
    finish_outputs(&request);
    *out = request;
    return ST_OK;
}

enum status oip_parse_shapes(struct span body, const struct oip_limits *limits, struct arena *arena,
                             struct oip_request *out, struct error *err)
{
    struct oip_request request = {.has_id = false};
    struct oip_parser p;
    init_parser(&p, &(struct oip_body){.json = body}, limits, arena, &request, err);
    p.is_shapes_only = p.reader.takes_extents = true;
    TRY(parse_envelope(&p));
    *out = request;
    return ST_OK;
}

static enum status read_index_member(struct json *in, const struct json_string *key, void *out,
                                     struct error *err)
{
    return json_string_is(key, "ready") ? json_read_bool(in, out, err) : json_skip(in, err);
}

enum status oip_parse_index(struct span body, bool *out_ready_only, struct error *err)
{
    *out_ready_only = false;
    return body.len ? json_read_members(body, read_index_member, out_ready_only, err) : ST_OK;
}

/* {"unload_dependents": true, "config": "...", "file:1/model.pte": "..."} */
static enum status parse_change_parameters(struct json *in, struct oip_change *out,
                                           struct error *err)
{
    TRY(json_object(in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "unload_dependents")) {
            TRY(json_read_bool(in, &out->with_dependents, err));
        } else {
            const struct span raw = key.raw;
            out->has_files |= json_string_is(&key, "config") ||
                              (raw.len >= 5 && memcmp(raw.ptr, "file:", 5) == 0);
            TRY(json_skip(in, err));
        }
    }
}

static enum status read_change_member(struct json *in, const struct json_string *key, void *out,
                                      struct error *err)
{
    return json_string_is(key, "parameters") ? parse_change_parameters(in, out, err)
                                             : json_skip(in, err);
}

enum status oip_parse_change(struct span body, struct oip_change *out, struct error *err)
{
    *out = (struct oip_change){.has_files = false};
    return body.len ? json_read_members(body, read_change_member, out, err) : ST_OK;
}
