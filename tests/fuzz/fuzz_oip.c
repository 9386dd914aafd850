/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the body of an inference request; the first NUL, if any, separates the JSON from the
 * binary data. An accepted request is decoded and sent back as a reply, which must be JSON, and
 * whose numbers must read back to the same tensor.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/oip.h"
#include "protocol/oip_reply.h"
#include "protocol/tensor_text.h"

#define ARENA_BYTES (1u << 18)
#define REPLY_BYTES (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct oip_limits limits = {
    .inputs_max = 16,
    .outputs_max = 16,
    .parameters_max = 16,
    .name_bytes_max = 256,
    .tensor_bytes_max = 1 << 16,
};

static void check_json(struct span text)
{
    struct json in;
    struct error err;
    json_init(&in, text);
    must(json_skip(&in, &err) == ST_OK && json_end(&in, &err) == ST_OK);
}

/* Prints {"id": ..., the members}, and the data after it. */
static enum status print_reply(const struct oip_reply *reply, struct span id, struct buf *out,
                               struct oip_encoded *encoded, struct error *err)
{
    oip_encode_begin(encoded);
    buf_add_char(out, '{');
    oip_print_id(out, id);
    oip_print_members(reply, out, encoded);
    buf_add_char(out, '}');
    oip_encode_end_json(out, encoded);
    for (size_t i = 0; i < reply->result_count; i++) {
        oip_print_strings(&reply->results[i], out);
    }
    return oip_encode_end(out, encoded, err);
}

static void check_reply(const struct oip_request *request, const struct oip_result *result)
{
    const struct oip_reply reply = {
        .model_name = "m",
        .model_version = "1",
        .results = result,
        .result_count = 1,
    };
    struct span spans[2];
    struct oip_encoded encoded = {.spans = spans};
    struct error err;
    struct buf out;
    buf_init(&out, REPLY_BYTES);
    if (print_reply(&reply, request->id, &out, &encoded, &err) == ST_OK) {
        size_t total = 0;
        for (size_t i = 0; i < encoded.span_count; i++) {
            total += encoded.spans[i].len;
        }
        must(total == encoded.total_bytes);
        check_json(encoded.spans[0]);
    }
    buf_fini(&out);
}

static bool has_nan(enum dtype dtype, struct span text)
{
    return dtype_is_float(dtype) && memchr(text.ptr, 'a', text.len);
}

/* A tensor that is printed and read again is the same; a NaN may have other bits. */
static void check_text(const struct oip_request_input *input, const uint8_t *bytes)
{
    struct buf out;
    struct error err;
    uint8_t *again = malloc(input->bytes + 1);
    must(again);
    buf_init(&out, REPLY_BYTES);
    struct tensor_nan nan = {.takes_null = false};
    tensor_text_print(&out, input->type.dtype, bytes, (size_t)shape_numel(&input->shape),
                      NUMBER_NAN_STRING);
    if (!buf_failed(&out)) {
        must(tensor_text_parse(buf_span(&out), input->type.dtype, &input->shape, &nan, again,
                               input->bytes, &err) == ST_OK);
        must(!nan.has_tokens);
        must(memcmp(again, bytes, input->bytes) == 0 || has_nan(input->type.dtype, buf_span(&out)));
    }
    buf_fini(&out);
    free(again);
}

static void check_input(const struct oip_request *request, const struct oip_request_input *input,
                        struct arena *arena)
{
    struct tensor_nan nan = oip_request_nan(&request->parameters);
    struct error err = {0};
    struct span *strings;
    struct oip_result result = {.name = input->name,
                                .type = input->type,
                                .shape = input->shape,
                                .is_binary = request->parameters.binary_data_output};
    if (input->type.is_bytes) {
        if (oip_decode_strings(input, arena, &strings, &err) == ST_OK) {
            result.strings = strings;
            check_reply(request, &result);
        }
        return;
    }
    uint8_t *bytes = malloc(input->bytes + 1);
    must(bytes);
    if (oip_decode_input(input, &nan, bytes, input->bytes, &err) == ST_OK) {
        result.data = span_of(bytes, input->bytes);
        check_reply(request, &result);
        check_text(input, bytes);
    } else {
        must(strncmp(err.text, "inputs[", 7) == 0);
    }
    free(bytes);
}

/* The daemon reads such an input from shared memory; here that has zeros. */
static void check_shared(const struct oip_request *request, const struct oip_request_input *input,
                         struct arena *arena)
{
    struct oip_request_input here = *input;
    must(input->is_binary && !input->data.ptr && input->data.len == input->shared.bytes);
    must(input->type.is_bytes || input->data.len == input->bytes);
    here.data.ptr = arena_alloc(arena, input->data.len);
    if (here.data.ptr) {
        check_input(request, &here, arena);
    }
}

static void check_error(const char *text)
{
    struct buf out;
    must(text[0] != '\0');
    buf_init(&out, REPLY_BYTES);
    oip_print_error(&out, text);
    check_json(buf_span(&out));
    buf_fini(&out);
}

/*
 * |is_listed|: as an item of a list, where inputs may be promised and binary data may be left over.
 */
static void check_request(const struct oip_body *body, bool is_listed)
{
    struct oip_limits own = limits;
    struct arena arena;
    struct oip_request request;
    struct span rest = {NULL, 0};
    struct error err = {0};
    own.is_listed = is_listed;
    arena_init(&arena, ARENA_BYTES);
    if (oip_parse_infer(body, &own, &arena, &request, is_listed ? &rest : NULL, &err) == ST_OK) {
        must(rest.len <= body->binary.len);
        for (size_t i = 0; i < request.input_count; i++) {
            must(is_listed || !request.inputs[i].is_promise);
            if (request.inputs[i].shared.is_given) {
                check_shared(&request, &request.inputs[i], &arena);
            } else if (!request.inputs[i].is_promise) {
                check_input(&request, &request.inputs[i], &arena);
            }
        }
    } else {
        check_error(err.text);
    }
    arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
    size_t json_bytes = nul ? (size_t)(nul - data) : size;
    struct oip_body body = {.json = span_of(data, json_bytes)};
    if (nul) {
        body.binary = span_of(nul + 1, size - json_bytes - 1);
    }
    check_request(&body, false);
    check_request(&body, true);
    return 0;
}
