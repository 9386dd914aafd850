/* SPDX-License-Identifier: MIT */
/* gRPC's messages, prefixes, timeouts and statuses. Messages in hexadecimal are those that Python's
 * package tritonclient 2.73 makes. */
#include "config.h"

#include "protocol/grpc.h"

#include <stdio.h>
#include <string.h>

#include "protocol/grpc_infer.h"
#include "protocol/grpc_json.h"
#include "protocol/grpc_stream.h"
#include "tests/unit/unit.h"

#define BYTES_MAX 1024

/* Requests: two raw tensors, parameters, classes; typed numbers of four types. Answers: a tensor
 * and a string. */
static const char raw_request[] =
    "0a036164641201311a0137220d0a046e6f746512051a0361226222110a0b73657175656e63655f696412021005"
    "22140a0e73657175656e63655f7374617274120208012a0d0a01781204465033321a0201022a0d0a0179120446"
    "5033321a020102321b0a036f757412140a0e636c617373696669636174696f6e120210033a080000803f000000"
    "403a080000404000008040";
static const char typed_request[] =
    "0a016d2a1c0a01611204494e54381a01032a0e120c80ffffffffffffffff01007f2a180a01621204465036341a"
    "01012a0a3a08000000000000e03f2a160a0163120542595445531a01022a074200420378797a2a120a01641204"
    "424f4f4c1a01022a040a020100";
static const char answer[] =
    "0a036164641201311a01372a0f0a036f75741204465033321a0201022a0d0a0174120542595445531a01013208"
    "000080400000c0403206020000006f6b";
static const char trace_request[] =
    "0a140a0b74726163655f6c6576656c12050a034f46460a0e0a0a74726163655f7261746512000a0b0a01781206"
    "0a01610a0162";
static const char config_answer[] =
    "0a1d0a016d1a02120020042a120a0178100b220bffffffffffffffffff0103";
static const char regions_answer[] = "0a0f0a0172120a0a017212022f6b20ac02";
static const char log_answer[] =
    "0a0e0a086c6f675f696e666f120208000a170a116c6f675f766572626f73655f6c6576656c12021001";

static const struct oip_limits limits = {
    .inputs_max = 8,
    .outputs_max = 8,
    .parameters_max = 8,
    .name_bytes_max = 64,
    .tensor_bytes_max = 1 << 16,
};

struct bytes {
    uint8_t at[BYTES_MAX];
    size_t len;
};

static struct bytes from_hex(const char *hex)
{
    struct bytes out = {.len = strlen(hex) / 2};
    assert_true(out.len <= BYTES_MAX);
    for (size_t i = 0; i < out.len; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        out.at[i] = (uint8_t)byte;
    }
    return out;
}

static struct span span_of_bytes(const struct bytes *bytes)
{
    return span_of(bytes->at, bytes->len);
}

/* ---- prefixes, fields, statuses -------------------------------------------------------------- */

static void test_types(void **state)
{
    struct error err;
    (void)state;
    assert_true(grpc_is_type(span_str("application/grpc")));
    assert_true(grpc_is_type(span_str("application/grpc+proto")));
    assert_true(grpc_is_type(span_str("application/grpc; charset=x")));
    assert_false(grpc_is_type(span_str("application/json")));
    assert_false(grpc_is_type(span_str("application/grpc-web")));
    assert_false(grpc_is_type(span_str("application/grpc+json")));
    assert_true(grpc_is_foreign_type(span_str("application/grpc-web+proto"), &err));
    assert_non_null(strstr(err.text, "grpc-web needs a proxy"));
    assert_true(grpc_is_foreign_type(span_str("application/grpc+json"), &err));
    assert_false(grpc_is_foreign_type(span_str("application/json"), &err));
    assert_false(grpc_is_foreign_type(span_str(""), &err));
}

static void test_prefix(void **state)
{
    struct error err;
    struct grpc_frame frame;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    (void)state;
    assert_ok(err, grpc_take_only(span_of("\0\0\0\0\2ab", 7), &frame, &err));
    assert_true(span_is(frame.message, "ab") && !frame.is_compressed);
    assert_ok(err, grpc_take_only(span_of("\1\0\0\0\0", 5), &frame, &err));
    assert_true(frame.message.len == 0 && frame.is_compressed);
    assert_fails(err, grpc_take_only(span_of("\0\0\0\0", 4), &frame, &err), ST_INVALID, "got 4");
    assert_fails(err, grpc_take_only(span_of("\2\0\0\0\0", 5), &frame, &err), ST_INVALID, "2");
    assert_fails(err, grpc_take_only(span_of("\0\0\0\0\1", 5), &frame, &err), ST_INVALID,
                 "of 1 bytes as its prefix says");
    assert_fails(err, grpc_take_only(span_of("\0\0\0\0\0\0", 6), &frame, &err), ST_INVALID,
                 "one message, got 1");
    assert_fails(err, grpc_take_only(span_of("\0\xff\xff\xff\xff", 5), &frame, &err), ST_INVALID,
                 "4294967295");
    assert_ok(err, grpc_print_prefix(prefix, true, 0x01020304, &err));
    assert_memory_equal(prefix, "\1\1\2\3\4", 5);
#if SIZE_MAX > UINT32_MAX
    assert_fails(err, grpc_print_prefix(prefix, false, (size_t)UINT32_MAX + 1, &err), ST_TOO_LARGE,
                 "4294967296");
#endif
}

static void test_timeout(void **state)
{
    static const struct {
        const char *text;
        uint64_t us; /* 0: refused */
    } rows[] = {
        {"1H", 3600000000u},
        {"2M", 120000000u},
        {"3S", 3000000u},
        {"45m", 45000u},
        {"7u", 7u},
        {"2500n", 2u},
        {"1n", 1u},
        {"0m", 1u},
        {"99999999H", 359999996400000000u},
        {"", 0},
        {"S", 0},
        {"1", 0},
        {"1s", 0},
        {"-1S", 0},
        {"123456789S", 0},
        {"1 S", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t us = 0;
        bool is_taken = grpc_read_timeout(span_str(rows[i].text), &us);
        if (is_taken != (rows[i].us > 0) || us != rows[i].us) {
            fail_msg("%s: %llu us", rows[i].text, (unsigned long long)us);
        }
    }
}

static void assert_text(const char *text, size_t max, const char *expected)
{
    char out[64];
    size_t len = grpc_print_text(text, out, max);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(out, expected, len);
}

static void test_text(void **state)
{
    (void)state;
    assert_text("model 'a': 50%", 64, "model 'a': 50%25");
    assert_text("\xc3\xa4\n", 64, "%C3%A4%0A");
    assert_text("\xff", 64, "%FF");
    assert_text("ab\xc3\xa4", 7, "ab"); /* not half of a character */
    assert_text("ab%", 4, "ab");
    assert_text("abc", 2, "ab");
    assert_text("", 2, "");
}

static void test_status(void **state)
{
    (void)state;
    assert_int_equal(grpc_status_of(200), 0);
    assert_int_equal(grpc_status_of(400), 3);
    assert_int_equal(grpc_status_of(404), 5);
    assert_int_equal(grpc_status_of(429), 14);
    assert_int_equal(grpc_status_of(504), 4);
    assert_int_equal(grpc_status_of(418), 2);
}

/* ---- messages and JSON ----------------------------------------------------------------------- */

static void assert_json(const char *hex, enum grpc_message id, bool is_wrapped, const char *text)
{
    const struct bytes message = from_hex(hex);
    struct error err;
    struct buf out;
    buf_init(&out, BYTES_MAX);
    assert_ok(err, grpc_to_json(span_of_bytes(&message), id, is_wrapped, &out, &err));
    assert_int_equal(out.len, strlen(text));
    assert_memory_equal(out.ptr, text, out.len);
    buf_fini(&out);
}

static void test_to_json(void **state)
{
    struct error err;
    struct buf out;
    const struct bytes damaged = from_hex("0a05"), latin = from_hex("0a01ff");
    (void)state;
    assert_json(trace_request, GRPC_TraceSettingRequest, true,
                "{\"trace_level\":\"OFF\",\"trace_rate\":null,\"x\":[\"a\",\"b\"]}");
    assert_json("", GRPC_TraceSettingRequest, true, "{}");
    assert_json("1001", GRPC_RepositoryIndexRequest, false, "{\"ready\":true}");
    assert_json("", GRPC_RepositoryIndexRequest, false, "{}");
    assert_json("0a0172180520ac02", GRPC_SystemSharedMemoryRegisterRequest, false,
                "{\"name\":\"r\",\"offset\":5,\"byte_size\":300}");
    buf_init(&out, BYTES_MAX);
    assert_fails(err,
                 grpc_to_json(span_of_bytes(&damaged), GRPC_ModelReadyRequest, false, &out, &err),
                 ST_INVALID, "ModelReadyRequest");
    assert_fails(err,
                 grpc_to_json(span_of_bytes(&latin), GRPC_ModelReadyRequest, false, &out, &err),
                 ST_INVALID, "UTF-8");
    buf_fini(&out);
}

static void assert_message(const char *json, enum grpc_message id, bool is_wrapped, const char *hex)
{
    const struct bytes expected = from_hex(hex);
    struct error err;
    struct buf out;
    buf_init(&out, BYTES_MAX);
    assert_ok(err, grpc_from_json(span_str(json), id, is_wrapped, &out, &err));
    assert_int_equal(out.len, expected.len);
    assert_memory_equal(out.ptr, expected.at, out.len);
    buf_fini(&out);
}

static void test_from_json(void **state)
{
    struct error err;
    struct buf out;
    (void)state;
    assert_message(
        "{\"name\":\"m\",\"version_policy\":{\"all\":{}},\"max_batch_size\":4,\"own\":[1],"
        "\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"format\":"
        "\"FORMAT_NONE\",\"dims\":[-1,3],\"optional\":false}]}",
        GRPC_ModelConfigResponse, true, config_answer);
    assert_message("[{\"name\":\"r\",\"key\":\"/k\",\"offset\":0,\"byte_size\":300}]",
                   GRPC_SystemSharedMemoryStatusResponse, true, regions_answer);
    assert_message("{\"log_info\":false,\"log_verbose_level\":1}", GRPC_LogSettingsResponse, true,
                   log_answer);
    assert_message("{\"ready\":true}", GRPC_ModelReadyResponse, false, "0801");
    assert_message("{\"ready\":false}", GRPC_ModelReadyResponse, false, "");
    assert_message("[{\"name\":\"a\\u0062\",\"state\":null}]", GRPC_RepositoryIndexResponse, true,
                   "0a040a026162");
    buf_init(&out, BYTES_MAX);
    assert_fails(err, grpc_from_json(span_str("7"), GRPC_ModelConfigResponse, false, &out, &err),
                 ST_INVALID, "ModelConfigResponse");
    assert_fails(
        err, grpc_from_json(span_str("{\"ready\":1}"), GRPC_ModelReadyResponse, false, &out, &err),
        ST_INVALID, "boolean");
    buf_fini(&out);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void test_raw(void **state)
{
    const struct bytes message = from_hex(raw_request);
    struct arena arena;
    struct error err;
    struct oip_request request;
    struct span model, version;
    (void)state;
    arena_init(&arena, 1 << 16);
    assert_ok(err, grpc_read_model(span_of_bytes(&message), &model, &version, &err));
    assert_true(span_is(model, "add") && span_is(version, "1"));
    assert_int_equal(message.at[grpc_find_tensor(span_of_bytes(&message)) + 2], 0x80); /* of 1.0 */
    assert_int_equal(grpc_find_tensor(span_of(message.at, 40)), 0);
    assert_ok(err, grpc_parse_infer(span_of_bytes(&message), &limits, &arena, &request, &err));
    assert_true(request.has_id && span_is(request.id, "7"));
    assert_int_equal(request.parameters.sequence_id, 5);
    assert_true(request.parameters.sequence_start);
    assert_int_equal(request.parameters.other_count, 1);
    assert_true(span_is(request.parameters.others[0].s, "a\"b"));
    assert_int_equal(request.input_count, 2);
    assert_true(request.inputs[1].is_binary && request.inputs[1].data.len == 8);
    assert_memory_equal(request.inputs[1].data.ptr, "\0\0\x40\x40\0\0\x80\x40", 8);
    assert_true(request.inputs[1].data.ptr > message.at &&
                request.inputs[1].data.ptr < message.at + message.len); /* no copy */
    assert_int_equal(request.outputs.count, 1);
    assert_int_equal(request.outputs.items[0].class_count, 3);
    arena_fini(&arena);
}

static void test_typed(void **state)
{
    const struct bytes message = from_hex(typed_request);
    struct arena arena;
    struct error err;
    struct oip_request request;
    struct span *strings;
    struct tensor_nan nan = {.takes_null = false};
    uint8_t bytes[8];
    (void)state;
    arena_init(&arena, 1 << 16);
    assert_ok(err, grpc_parse_infer(span_of_bytes(&message), &limits, &arena, &request, &err));
    assert_int_equal(request.input_count, 4);
    assert_ok(err, oip_decode_input(&request.inputs[0], &nan, bytes, 3, &err));
    assert_memory_equal(bytes, "\x80\0\x7f", 3);
    assert_true(oip_input_is_direct(&request.inputs[1])); /* packed doubles are the tensor */
    assert_ok(err, oip_decode_strings(&request.inputs[2], &arena, &strings, &err));
    assert_true(strings[0].len == 0 && span_is(strings[1], "xyz"));
    assert_ok(err, oip_decode_input(&request.inputs[3], &nan, bytes, 2, &err));
    assert_memory_equal(bytes, "\1\0", 2);
    arena_fini(&arena);
}

static void assert_refused(const char *hex, enum status status, const char *part)
{
    const struct bytes message = from_hex(hex);
    struct arena arena;
    struct error err;
    struct oip_request request;
    struct span *strings;
    struct tensor_nan nan = {.takes_null = false};
    uint8_t bytes[64];
    arena_init(&arena, 1 << 16);
    enum status got = grpc_parse_infer(span_of_bytes(&message), &limits, &arena, &request, &err);
    if (got == ST_OK && request.inputs[0].type.is_bytes) {
        got = oip_decode_strings(&request.inputs[0], &arena, &strings, &err);
    } else if (got == ST_OK) {
        got = oip_decode_input(&request.inputs[0], &nan, bytes, request.inputs[0].bytes, &err);
    }
    if (got != status || !strstr(err.text, part)) {
        fail_msg("%s: %d '%s', expected '%s'", hex, (int)got, err.text, part);
    }
    arena_fini(&arena);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_refused("2a05", ST_INVALID, "ModelInferRequest");
    assert_refused("2801", ST_INVALID, "another type");
    assert_refused("2a00", ST_INVALID, "inputs[0]: field \"name\" is missing");
    assert_refused("2a030a0161", ST_INVALID, "\"datatype\" is missing");
    assert_refused("2a080a016112034b5033", ST_INVALID, "unknown datatype");
    assert_refused("2a0a0a016112045550333218", ST_INVALID, "inputs[0]");
    /* INT8 [1]: no data; a raw tensor too many; one of two bytes; with contents */
    assert_refused("2a0c0a01611204494e54381a0101", ST_INVALID, "got neither");
    assert_refused("2a0c0a01611204494e54381a01013a01053a0106", ST_INVALID, "expected 1, got 2");
    assert_refused("2a0c0a01611204494e54381a01013a020505", ST_INVALID, "raw_input_contents is 2");
    assert_refused("2a110a01611204494e54381a01012a031201053a0105", ST_INVALID, "beside");
    /* contents: too few, too many, out of range, in another list, of another type */
    assert_refused("2a0e0a01611204494e54381a01012a00", ST_INVALID, "int_contents has less");
    assert_refused("2a120a01611204494e54381a01012a0412020506", ST_INVALID, "int_contents has more");
    assert_refused("2a120a01611204494e54381a01012a041202ff01", ST_INVALID, "out of the range");
    assert_refused("2a110a01611204494e54381a01012a030a0105", ST_INVALID, "int_contents has less");
    assert_refused("2a120a01611204465031361a01012a0412020505", ST_INVALID, "no list for FP16");
    assert_refused("2a130a0161120542595445531a01012a0442050000", ST_INVALID, "damaged");
    assert_refused("2a150a0161120542595445531a01012a06420161420162", ST_INVALID, "has more");
    /* a shape of -1; of 17 dims; too large */
    assert_refused("2a150a01611204494e54381a0affffffffffffffffff01", ST_INVALID, "shape[0]");
    assert_refused("2a1c0a01611204494e54381a11"
                   "0101010101010101010101010101010101",
                   ST_TOO_LARGE, "16 dims");
    assert_refused("2a0f0a01611204494e54381a04808080013a00", ST_TOO_LARGE, "expected at most");
    /* the same name twice; a name that is not UTF-8 */
    assert_refused("2a0c0a01611204494e54381a01012a0c0a01611204494e54381a01013a01053a0106",
                   ST_INVALID, "repeats the name");
    assert_refused("2a030a01ff", ST_INVALID, "UTF-8");
    /* parameters: sequence_id = true; of an output: shared memory without its size */
    assert_refused("22110a0b73657175656e63655f696412020801", ST_INVALID,
                   "parameters.sequence_id: expected");
    assert_refused("321e0a017812190a147368617265645f6d656d6f72795f6f66667365741201"
                   "10",
                   ST_INVALID, "outputs[0]");
}

/* As protocol buffers say: numbers of 32 bits may come without the bits above, a message may come
 * in parts, and of two entries of a map with one key the last counts. */
static void assert_taken(const char *hex, size_t count, const char *expected, uint64_t priority)
{
    const struct bytes message = from_hex(hex);
    struct arena arena;
    struct error err;
    struct oip_request request;
    struct tensor_nan nan = {.takes_null = false};
    uint8_t bytes[8];
    arena_init(&arena, 1 << 16);
    assert_ok(err, grpc_parse_infer(span_of_bytes(&message), &limits, &arena, &request, &err));
    if (count > 0) {
        assert_ok(err, oip_decode_input(&request.inputs[0], &nan, bytes, count, &err));
        assert_memory_equal(bytes, expected, count);
    }
    assert_int_equal(request.parameters.priority, priority);
    arena_fini(&arena);
}

static void test_what_protobuf_allows(void **state)
{
    (void)state;
    assert_taken("2a150a01611204494e54381a01012a071205ffffffff0f", 1, "\xff", 0);
    assert_taken("2a180a01611204494e54381a01022a031201052a031201072a00", 2, "\5\7", 0);
    assert_taken("220e0a087072696f7269747912021009220e0a087072696f7269747912021008", 0, "", 8);
}

/* A message of very many fields is refused before it takes long. */
static void test_many_fields(void **state)
{
    static uint8_t bytes[2 * GRPC_FIELDS_MAX];
    struct arena arena;
    struct error err;
    struct oip_request request;
    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i += 2) {
        bytes[i] = 0x78; /* field 15 */
    }
    arena_init(&arena, 1 << 16);
    assert_ok(err,
              grpc_parse_infer(span_of(bytes, sizeof(bytes) - 2), &limits, &arena, &request, &err));
    assert_fails(err,
                 grpc_parse_infer(span_of(bytes, sizeof(bytes)), &limits, &arena, &request, &err),
                 ST_TOO_LARGE, "fields");
    arena_fini(&arena);
}

/* The fields of a parameter are not counted, but its bytes: entries of zeros in field 15. */
static void test_long_parameters(void **state)
{
    static uint8_t bytes[3 * (4 + GRPC_PARAMETERS_BYTES_MAX / 2)];
    const size_t entry = 4 + GRPC_PARAMETERS_BYTES_MAX / 2;
    struct arena arena;
    struct error err;
    struct oip_request request;
    (void)state;
    for (size_t at = 0, i = 0; i < 3; i++) {
        const uint8_t head[] = {0x22, 0x80, 0x80, 0x02}; /* 32 KiB of field 4 */
        memcpy(bytes + at, head, sizeof(head));
        for (size_t j = sizeof(head); j < entry; j += 2) {
            bytes[at + j] = 0x78;
        }
        at += entry;
    }
    arena_init(&arena, 1 << 16);
    assert_false(grpc_read_order(span_of(bytes, 2 * entry)).is_unknown);
    assert_true(grpc_read_order(span_of(bytes, 3 * entry)).is_unknown);
    assert_fails(err, grpc_parse_infer(span_of(bytes, 3 * entry), &limits, &arena, &request, &err),
                 ST_TOO_LARGE, "parameters: more than 65536 bytes");
    arena_fini(&arena);
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct bytes print_answer(const struct oip_reply *reply, size_t span_count)
{
    struct span spans[8];
    struct oip_encoded encoded = {.spans = spans};
    struct bytes out = {.len = 0};
    struct error err;
    struct buf text;
    buf_init(&text, BYTES_MAX);
    oip_encode_begin(&encoded);
    grpc_print_reply(reply, span_str("7"), &text, &encoded);
    oip_encode_end_json(&text, &encoded);
    grpc_print_tail(reply, &text);
    assert_ok(err, oip_encode_end(&text, &encoded, &err));
    assert_ok(err, grpc_end_reply(&text, &encoded, &err));
    assert_int_equal(encoded.span_count, span_count);
    for (size_t i = 0; i < encoded.span_count; i++) {
        size_t len = encoded.spans[i].len < 64 ? encoded.spans[i].len : 64;
        memcpy(out.at + out.len, encoded.spans[i].ptr, len);
        out.len += len;
    }
    buf_fini(&text);
    return out;
}

static void test_answer(void **state)
{
    static const float sums[] = {4, 6};
    static const uint8_t large[5000] = {1, 2, 3};
    const struct span string = span_str("ok");
    const struct oip_result results[] = {
        {.name = span_str("out"),
         .type = {.dtype = DT_F32},
         .shape = {.rank = 2, .dims = {1, 2}},
         .is_binary = true,
         .data = span_of(sums, sizeof(sums))},
        {.name = span_str("t"),
         .type = {.is_bytes = true},
         .shape = {.rank = 1, .dims = {1}},
         .is_binary = true,
         .strings = &string},
        {.name = span_str("u"),
         .type = {.dtype = DT_U8},
         .shape = {.rank = 1, .dims = {5000}},
         .is_binary = true,
         .data = span_of(large, sizeof(large))},
    };
    const struct bytes expected = from_hex(answer);
    struct oip_reply reply = {
        .model_name = "add", .model_version = "1", .results = results, .result_count = 2};
    struct bytes out = print_answer(&reply, 2);
    (void)state;
    assert_int_equal(out.len, expected.len + GRPC_PREFIX_BYTES);
    assert_memory_equal(out.at, "\0\0\0\0", 4);
    assert_int_equal(out.at[4], expected.len);
    assert_memory_equal(out.at + GRPC_PREFIX_BYTES, expected.at, expected.len);
    reply.result_count = 3; /* the large one stays where it is */
    out = print_answer(&reply, 3);
    assert_memory_equal(out.at + out.len - 64, large, 64);
    assert_memory_equal(out.at + out.len - 67, "\x32\x88\x27", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_to_json),
        cmocka_unit_test(test_from_json),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_typed),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_what_protobuf_allows),
        cmocka_unit_test(test_many_fields),
        cmocka_unit_test(test_long_parameters),
        cmocka_unit_test(test_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
