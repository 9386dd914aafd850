/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a message of gRPC. As each message of the table it becomes JSON, which must be JSON,
 * or is refused with a reason. As an inference request it is decoded and sent back as an answer,
 * whose message must be whole.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/grpc.h"
#include "protocol/grpc_infer.h"
#include "protocol/grpc_json.h"
#include "protocol/json.h"

#define ARENA_BYTES (1u << 18)
#define TEXT_BYTES (1u << 20)

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
    in.may_repeat = true; /* the keys of a map may */
    must(json_skip(&in, &err) == ST_OK && json_end(&in, &err) == ST_OK);
}

static void check_message(struct span message)
{
    struct protobuf in;
    struct protobuf_field field;
    for (protobuf_init(&in, message); protobuf_next(&in, &field);) {
    }
    must(!in.is_wrong);
}

static void check_as(struct span message, enum grpc_message id)
{
    struct error err = {0};
    struct buf text;
    buf_init(&text, TEXT_BYTES);
    if (grpc_to_json(message, id, false, &text, &err) != ST_OK) {
        must(err.text[0] != '\0');
    } else if (!buf_failed(&text)) {
        check_json(buf_span(&text));
    }
    buf_fini(&text);
}

static void check_reply(const struct oip_result *result, struct span id)
{
    const struct oip_reply reply = {
        .model_name = "m", .model_version = "1", .results = result, .result_count = 1};
    struct span spans[3];
    struct oip_encoded encoded = {.spans = spans};
    struct error err;
    struct buf out;
    buf_init(&out, TEXT_BYTES);
    oip_encode_begin(&encoded);
    grpc_print_reply(&reply, id, &out, &encoded);
    oip_encode_end_json(&out, &encoded);
    grpc_print_tail(&reply, &out);
    if (oip_encode_end(&out, &encoded, &err) == ST_OK &&
        grpc_end_reply(&out, &encoded, &err) == ST_OK && encoded.span_count == 2) {
        check_message(span_of(out.ptr + GRPC_PREFIX_BYTES, out.len - GRPC_PREFIX_BYTES));
    }
    buf_fini(&out);
}

static void check_input(const struct oip_request *request, const struct oip_request_input *input,
                        struct arena *arena)
{
    struct tensor_nan nan = {.takes_null = false};
    struct error err = {0};
    struct span *strings;
    struct oip_result result = {
        .name = input->name, .type = input->type, .shape = input->shape, .is_binary = true};
    if (input->shared.is_given) {
        return;
    }
    if (input->type.is_bytes) {
        if (oip_decode_strings(input, arena, &strings, &err) == ST_OK) {
            result.strings = strings;
            check_reply(&result, request->id);
        }
        return;
    }
    size_t stored = oip_input_stored_bytes(input);
    uint8_t *bytes = malloc(stored + 1);
    must(bytes);
    if (oip_decode_input(input, &nan, bytes, stored, &err) == ST_OK && stored == input->bytes) {
        result.data = span_of(bytes, stored);
        check_reply(&result, request->id);
    } else {
        must(err.code == ST_OK || strncmp(err.text, "inputs[", 7) == 0);
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct span message = span_of(data, size);
    struct arena arena;
    struct oip_request request;
    struct error err = {0};
    struct grpc_frame frame;
    for (int id = 0; id < GRPC_MESSAGE_COUNT; id++) {
        check_as(message, (enum grpc_message)id);
    }
    (void)!grpc_take_only(message, &frame, &err);
    arena_init(&arena, ARENA_BYTES);
    if (grpc_parse_infer(message, &limits, &arena, &request, &err) == ST_OK) {
        for (size_t i = 0; i < request.input_count; i++) {
            check_input(&request, &request.inputs[i], &arena);
        }
    } else {
        must(err.text[0] != '\0');
    }
    arena_fini(&arena);
    return 0;
}
