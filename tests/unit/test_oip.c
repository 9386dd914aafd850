/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/oip.h"
#include "protocol/oip_config.h"
#include "protocol/oip_reply.h"
#include "tests/unit/unit.h"

/* The linker replaces malloc() by this function. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static bool heap_refuses;

void *__wrap_malloc(size_t size)
{
    return heap_refuses ? NULL : __real_malloc(size);
}

static const struct oip_limits limits = {
    .inputs_max = 8,
    .outputs_max = 8,
    .parameters_max = 8,
    .name_bytes_max = 64,
    .tensor_bytes_max = 1 << 20,
};

/* A request, the memory behind it and a copy of its body in a block of exactly its size. */
struct fixture {
    struct arena arena;
    struct oip_request request;
    struct error err;
    uint8_t *body;
};

static enum status parse_parts(struct fixture *f, const char *json, const void *binary,
                               size_t binary_bytes)
{
    size_t json_bytes = strlen(json);
    char header[32];
    struct oip_body body;
    arena_init(&f->arena, 1 << 16);
    f->err.text[0] = '\0';
    f->body = malloc(json_bytes + binary_bytes + 1);
    assert_non_null(f->body);
    memcpy(f->body, json, json_bytes);
    if (binary_bytes) {
        memcpy(f->body + json_bytes, binary, binary_bytes);
    }
    snprintf(header, sizeof(header), "%zu", json_bytes);
    struct span value = span_str(header);
    TRY(oip_split_body(span_of(f->body, json_bytes + binary_bytes), binary ? &value : NULL, &body,
                       &f->err));
    return oip_parse_infer(&body, &limits, &f->arena, &f->request, NULL, &f->err);
}

static void clear(struct fixture *f)
{
    arena_fini(&f->arena);
    free(f->body);
}

static void check_refused(const char *json, enum status status, const char *part)
{
    struct fixture f;
    enum status got = parse_parts(&f, json, NULL, 0);
    if (got != status || !strstr(f.err.text, part)) {
        fail_msg("%s\nstatus %s, text '%s', expected '%s' in it", json, status_text(got),
                 f.err.text, part);
    }
    clear(&f);
}

static void check_binary_refused(const char *json, size_t bytes, const char *part)
{
    static const uint8_t binary[100];
    struct fixture f;
    assert_int_equal(parse_parts(&f, json, binary, bytes), ST_INVALID);
    if (!strstr(f.err.text, part)) {
        fail_msg("%s\ntext '%s', expected '%s' in it", json, f.err.text, part);
    }
    clear(&f);
}

/* Requests as clients of the protocol send them, one of each kind. */
static void test_json_request(void **state)
{
    (void)state;
    struct tensor_nan nan = {.takes_null = false};
    struct fixture f;
    float values[4];
    assert_ok(f.err,
              parse_parts(&f,
                          "{\"id\":\"a\\u00e9\",\"inputs\":[{\"name\":\"IN\",\"shape\":[1,4],"
                          "\"datatype\":\"FP32\",\"data\":[1,2.5,NaN,-4]}],\"outputs\":[{\"name\":"
                          "\"OUT\",\"parameters\":{\"binary_data\":false}}],\"model_name\":\"m\","
                          "\"x\":{\"y\":[1,{\"z\":null}]}}",
                          NULL, 0));
    assert_true(f.request.has_id && span_is(f.request.id, "a\xc3\xa9"));
    assert_int_equal(f.request.input_count, 1);
    const struct oip_request_input *input = &f.request.inputs[0];
    assert_true(span_is(input->name, "IN"));
    assert_true(!input->is_binary && !input->type.is_bytes && input->type.dtype == DT_F32);
    assert_true(input->shape.rank == 2 && input->shape.dims[0] == 1 && input->shape.dims[1] == 4);
    assert_int_equal(input->bytes, 16);
    assert_false(oip_input_is_direct(input));
    assert_ok(f.err, oip_decode_input(input, &nan, values, sizeof(values), &f.err));
    assert_true(values[0] == 1 && values[1] == 2.5f && isnan(values[2]) && values[3] == -4);
    assert_int_equal(f.request.outputs.count, 1);
    assert_true(span_is(f.request.outputs.items[0].name, "OUT") &&
                !f.request.outputs.items[0].is_binary);
    clear(&f);
}

static void test_binary_request(void **state)
{
    (void)state;
    struct tensor_nan nan = {.takes_null = false};
    struct fixture f;
    static const uint8_t binary[] = {1, 2, 3, 0, 2, 0, 3, 0, 0, 0, 'a', 0, 'b', 0, 0, 0, 0};
    uint8_t bools[3];
    struct span *strings;
    assert_ok(f.err,
              parse_parts(&f,
                          "{\"inputs\":[{\"name\":\"A\",\"shape\":[3],\"datatype\":\"UINT8\","
                          "\"parameters\":{\"binary_data_size\":3}},"
                          "{\"name\":\"J\",\"shape\":[1],\"datatype\":\"INT64\",\"data\":[5]},"
                          "{\"name\":\"B\",\"shape\":[3],\"datatype\":\"BOOL\","
                          "\"parameters\":{\"binary_data_size\":3}},"
                          "{\"name\":\"Z\",\"shape\":[0,2],\"datatype\":\"FP32\","
                          "\"parameters\":{\"binary_data_size\":0}},"
                          "{\"name\":\"S\",\"shape\":[2,1],\"datatype\":\"BYTES\","
                          "\"parameters\":{\"binary_data_size\":11}}],"
                          "\"parameters\":{\"binary_data_output\":true}}",
                          binary, sizeof(binary)));
    const struct oip_request_input *inputs = f.request.inputs;
    assert_int_equal(f.request.input_count, 5);
    assert_true(f.request.parameters.binary_data_output);
    assert_memory_equal(inputs[0].data.ptr, binary, 3);
    assert_true(oip_input_is_direct(&inputs[0]));
    assert_false(oip_input_is_direct(&inputs[2]));
    assert_ok(f.err, oip_decode_input(&inputs[2], &nan, bools, 3, &f.err));
    assert_memory_equal(bools, "\0\1\0", 3);
    assert_ok(f.err, oip_decode_input(&inputs[3], &nan, NULL, 0, &f.err));
    assert_ok(f.err, oip_decode_strings(&inputs[4], &f.arena, &strings, &f.err));
    assert_true(span_equal(strings[0], span_of("a\0b", 3)) && strings[1].len == 0);
    clear(&f);
}

/* The layout of a packed tensor counts as none. Any other layout is kept, with all of the bytes. */
static void test_layouts(void **state)
{
    (void)state;
    static const struct {
        const char *layout;
        bool is_given;
        size_t at, stored;
    } cases[] = {
        {"\"offset\":4", false, 4, 24},
        {"\"strides\":[12,4]", false, 0, 24},
        {"\"offset\":0,\"strides\":[4,8]", true, 0, 32},
        {"\"offset\":20,\"strides\":[12,-4]", false, 0, 0}, /* beyond 32 bytes */
        {"\"offset\":19,\"strides\":[-4,4]", true, 0, 32},
        {"\"offset\":28,\"strides\":[0,0]", true, 0, 32},
    };
    static const uint8_t binary[32];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f;
        char json[200];
        snprintf(
            json, sizeof(json),
            "{\"inputs\":[{\"name\":\"x\",\"shape\":[2,3],\"datatype\":\"FP32\",\"parameters\":"
            "{\"binary_data_size\":32,%s}}]}",
            cases[i].layout);
        enum status status = parse_parts(&f, json, binary, sizeof(binary));
        const struct oip_request_input *input = f.request.inputs;
        if (cases[i].stored == 0) {
            assert_int_equal(status, ST_INVALID);
            clear(&f);
            continue;
        }
        assert_ok(f.err, status);
        assert_int_equal(input->layout.is_given, cases[i].is_given);
        assert_ptr_equal(input->data.ptr, f.body + strlen(json) + cases[i].at);
        assert_int_equal(oip_input_stored_bytes(input), cases[i].stored);
        clear(&f);
    }
}

/* Outputs of a request for shapes may have extents too. In an inference request extents mean
 * nothing. */
static void test_extents(void **state)
{
    (void)state;
    static const char json[] =
        "{\"outputs\":[{\"name\":\"a\",\"shape\":[5,2],\"datatype\":\"INT64\",\"data\":[1]},"
        "{\"name\":\"a\"},{\"shape\":null,\"name\":\"b\"}],"
        "\"inputs\":[{\"name\":\"x\",\"shape\":[3]}]}";
    struct fixture f = {.body = NULL};
    arena_init(&f.arena, 1 << 16);
    assert_ok(f.err, oip_parse_shapes(span_str(json), &limits, &f.arena, &f.request, &f.err));
    assert_int_equal(f.request.outputs.count, 2);
    const struct oip_request_output *outputs = f.request.outputs.items;
    assert_true(outputs[0].has_shape && outputs[0].shape.rank == 2 && outputs[0].index == 0);
    assert_true(outputs[0].shape.dims[0] == 5 && outputs[0].shape.dims[1] == 2);
    assert_true(!outputs[1].has_shape && outputs[1].index == 2);
    assert_fails(f.err,
                 oip_parse_shapes(span_str("{\"inputs\":[],\"outputs\":[{\"name\":\"a\","
                                           "\"shape\":[-2]}]}"),
                                  &limits, &f.arena, &f.request, &f.err),
                 ST_INVALID, "outputs[0].shape[0]: expected 0 or more, got -2");
    clear(&f);
    assert_ok(f.err, parse_parts(&f, "{\"inputs\":[],\"outputs\":[{\"name\":\"a\",\"shape\":7}]}",
                                 NULL, 0));
    assert_false(f.request.outputs.items[0].has_shape);
    clear(&f);
}

/* The forms of NaN that a request may use, and the form that its answer prints. */
static void test_nan_parameter(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool takes_null;
        enum number_nan answer, answer_to_tokens;
    } cases[] = {
        {"", false, NUMBER_NAN_STRING, NUMBER_NAN_TOKEN},
        {"\"nan\":\"string\"", false, NUMBER_NAN_STRING, NUMBER_NAN_STRING},
        {"\"nan\":\"token\"", false, NUMBER_NAN_TOKEN, NUMBER_NAN_TOKEN},
        {"\"nan\":\"null\"", true, NUMBER_NAN_NULL, NUMBER_NAN_NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f;
        char json[100];
        snprintf(json, sizeof(json), "{\"inputs\":[],\"parameters\":{%s}}", cases[i].value);
        assert_ok(f.err, parse_parts(&f, json, NULL, 0));
        const struct oip_parameters *parameters = &f.request.parameters;
        struct tensor_nan nan = oip_request_nan(parameters);
        assert_int_equal(nan.takes_null, cases[i].takes_null);
        assert_int_equal(oip_answer_nan(parameters, &nan), cases[i].answer);
        nan.has_tokens = true;
        assert_int_equal(oip_answer_nan(parameters, &nan), cases[i].answer_to_tokens);
        assert_int_equal(parameters->other_count, 0);
        clear(&f);
    }
}

static void test_parameters(void **state)
{
    (void)state;
    struct fixture f;
    assert_ok(f.err,
              parse_parts(&f,
                          "{\"id\":null,\"outputs\":null,\"parameters\":{\"sequence_id\":42,"
                          "\"sequence_start\":true,\"sequence_end\":false,\"priority\":3,"
                          "\"timeout\":1500,\"s\":\"text\",\"i\":-7,\"f\":0.5,\"b\":true,"
                          "\"u\":18446744073709551615},"
                          "\"inputs\":[{\"parameters\":null,\"data\":[1],\"datatype\":\"FP16\","
                          "\"shape\":[],\"name\":\"x\"}]}",
                          NULL, 0));
    assert_false(f.request.has_id);
    assert_true(f.request.parameters.sequence_id == 42 && f.request.parameters.sequence_start &&
                !f.request.parameters.sequence_end);
    assert_true(f.request.parameters.priority == 3 && f.request.parameters.timeout_us == 1500);
    const struct oip_parameter *p = f.request.parameters.others;
    assert_int_equal(f.request.parameters.other_count, 5);
    assert_true(p[0].type == OIP_STRING && span_is(p[0].s, "text") && span_is(p[0].name, "s"));
    assert_true(p[1].type == OIP_INT && p[1].i == -7);
    assert_true(p[2].type == OIP_FLOAT && p[2].f == 0.5);
    assert_true(p[3].type == OIP_BOOL && p[3].b);
    assert_true(p[4].type == OIP_UINT && p[4].u == UINT64_MAX);
    clear(&f);
    assert_ok(f.err,
              parse_parts(&f, "{\"inputs\":[],\"parameters\":{\"sequence_id\":\"s\"}}", NULL, 0));
    assert_true(f.request.parameters.sequence_id == 0 &&
                span_is(f.request.parameters.sequence_name, "s"));
    clear(&f);
}

/* The form of an output: its own parameter, or that of the request, anywhere in the text. */
static void test_outputs(void **state)
{
    (void)state;
    struct fixture f;
    assert_ok(
        f.err,
        parse_parts(&f,
                    "{\"inputs\":[],\"outputs\":[{\"name\":\"a\"},{\"name\":\"b\",\"parameters\":"
                    "{\"binary_data\":false}},{\"name\":\"a\",\"parameters\":{\"binary_data\":"
                    "false}},{\"parameters\":{\"classification\":3},\"name\":\"c\"}],"
                    "\"parameters\":{\"binary_data_output\":true}}",
                    NULL, 0));
    const struct oip_request_output *outputs = f.request.outputs.items;
    assert_int_equal(f.request.outputs.count, 3);
    assert_true(span_is(outputs[0].name, "a") && outputs[0].is_binary);
    assert_true(span_is(outputs[1].name, "b") && !outputs[1].is_binary);
    assert_true(span_is(outputs[2].name, "c") && outputs[2].is_binary &&
                outputs[2].class_count == 3);
    clear(&f);
}

#define INPUT(members) "{\"inputs\":[{" members "}]}"
#define REST "\"name\":\"x\",\"datatype\":\"FP32\""

static void test_refused_envelopes(void **state)
{
    (void)state;
    check_refused("", ST_INVALID, "expected an object, got the end of the text");
    check_refused("[]", ST_INVALID, "expected an object, got an array");
    check_refused("{}", ST_INVALID, "member \"inputs\" is missing");
    check_refused("{\"inputs\":{}}", ST_INVALID, "inputs: expected an array, got an object");
    check_refused("{\"inputs\":[]} {}", ST_INVALID, "expected the end of the text");
    check_refused("{\"inputs\":[],\"inputs\":[]}", ST_INVALID, "inputs: the key repeats");
    check_refused("{\"id\":5,\"inputs\":[]}", ST_INVALID, "id: expected a string, got a number");
    check_refused("{\"inputs\":[5]}", ST_INVALID, "inputs[0]: expected an object, got a number");
    check_refused("{\"inputs\":[],\"outputs\":[{}]}", ST_INVALID,
                  "outputs[0]: member \"name\" is missing");
    check_refused("{\"inputs\":[],\"outputs\":[{\"name\":1}]}", ST_INVALID,
                  "outputs[0].name: expected a string, got a number");
    check_refused("{\"inputs\":[],\"parameters\":[]}", ST_INVALID,
                  "parameters: expected an object, got an array");
    check_refused("{\"inputs\":[],\"parameters\":{\"a\":{}}}", ST_INVALID,
                  "parameters.a: expected a string, a number or a boolean, got ");
    check_refused("{\"inputs\":[],\"parameters\":{\"triton_x\":1}}", ST_INVALID, "are reserved");
    check_refused("{\"inputs\":[],\"parameters\":{\"timeout\":-1}}", ST_INVALID,
                  "parameters.timeout: expected a whole number, got -1, which is out of range");
    check_refused("{\"inputs\":[],\"parameters\":{\"priority\":1.5}}", ST_INVALID, "got 1.5");
    check_refused("{\"inputs\":[],\"parameters\":{\"x\":1e999}}", ST_INVALID, "out of range");
    check_refused("{\"inputs\":[],\"x\":[[[[\"\xff\"]]]]}", ST_INVALID,
                  "x[0][0][0][0]: invalid UTF-8");
}

#define SHARED(bytes) "\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":" #bytes

static void test_refused_inputs(void **state)
{
    (void)state;
    check_refused(INPUT(""), ST_INVALID, "inputs[0]: member \"name\" is missing");
    check_refused(INPUT("\"name\":\"x\""), ST_INVALID, "member \"shape\" is missing");
    check_refused(INPUT("\"name\":\"x\",\"shape\":[1]"), ST_INVALID,
                  "member \"datatype\" is missing");
    check_refused(INPUT(REST ",\"shape\":[1]"), ST_INVALID,
                  "inputs[0]: expected \"data\" or \"binary_data_size\", got neither");
    check_refused(INPUT(REST ",\"shape\":[1,\"2\"],\"data\":[1]"), ST_INVALID,
                  "inputs[0].shape[1]: expected an integer, got a string");
    check_refused(INPUT(REST ",\"shape\":[1.0],\"data\":[1]"), ST_INVALID,
                  "inputs[0].shape[0]: expected an integer, got 1.0");
    check_refused(INPUT(REST ",\"shape\":[-1],\"data\":[1]"), ST_INVALID,
                  "inputs[0].shape[0]: expected 0 or more, got -1");
    check_refused(INPUT(REST ",\"shape\":[9223372036854775807,4],\"data\":[1]"), ST_TOO_LARGE,
                  "inputs[0]: shape [9223372036854775807,4] has too many elements, expected at "
                  "most 1048576 bytes");
    check_refused(INPUT(REST ",\"shape\":[9223372036854775807,9223372036854775807,0],\"data\":[]"),
                  ST_TOO_LARGE, "has too many elements");
    check_refused(INPUT(REST ",\"shape\":[1073741824,1073741824],\"data\":[1]"), ST_TOO_LARGE,
                  "inputs[0]: shape [1073741824,1073741824] ");
    check_refused(INPUT(REST ",\"shape\":[9223372036854775808],\"data\":[1]"), ST_INVALID,
                  "which is out of range");
    check_refused(INPUT(REST ",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data\":[1]"),
                  ST_TOO_LARGE, "inputs[0].shape[16]: more than 16 dims");
    check_refused(INPUT(REST ",\"shape\":[262145],\"data\":[1]"), ST_TOO_LARGE,
                  "inputs[0]: shape [262145] takes 1048580 bytes, expected at most 1048576");
    check_refused(INPUT(REST ",\"shape\":[5],\"data\":[1,2]"), ST_INVALID,
                  "inputs[0].data: expected 5 elements (shape [5]), got 2");
    check_refused(INPUT(REST ",\"shape\":[1],\"data\":5"), ST_INVALID,
                  "inputs[0].data: expected an array, got a number");
    check_refused(INPUT(REST ",\"shape\":[1],\"data\":[1],\"parameters\":{\"binary_data_size\":4}"),
                  ST_INVALID, "inputs[0]: has both \"data\" and \"binary_data_size\"");
    check_refused(INPUT(REST ",\"shape\":[1],\"parameters\":{\"shared_memory_region\":\"r\"}"),
                  ST_INVALID, "inputs[0]: parameter \"shared_memory_byte_size\" is missing");
    check_refused(INPUT(REST ",\"shape\":[1],\"parameters\":{\"shared_memory_offset\":0}"),
                  ST_INVALID, "inputs[0]: parameter \"shared_memory_region\" is missing");
    check_refused(INPUT(REST ",\"shape\":[1],\"parameters\":{" SHARED(3) "}"), ST_INVALID,
                  "inputs[0]: shared_memory_byte_size is 3, expected 4 for FP32 [1]");
    check_refused(INPUT(REST ",\"shape\":[1],\"data\":[1],\"parameters\":{" SHARED(4) "}"),
                  ST_INVALID, "has both \"shared_memory_region\" and data of its own");
    check_refused(
        INPUT(REST ",\"shape\":[1],\"parameters\":{\"binary_data_size\":4," SHARED(4) "}"),
        ST_INVALID, "has both \"shared_memory_region\" and data of its own");
    check_refused(INPUT(REST ",\"shape\":[1],\"parameters\":{" SHARED(18446744073709551616) "}"),
                  ST_INVALID, "which is out of range");
    check_refused(
        "{\"inputs\":[],\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":1," SHARED(
            4) "}}]}",
        ST_INVALID, "outputs[0]: has both");
    check_refused("{\"inputs\":[],\"outputs\":[{\"name\":\"y\",\"parameters\":{"
                  "\"shared_memory_region\":\"\"}}]}",
                  ST_INVALID, "expected a region's name");
    check_refused(INPUT(REST ",\"shape\":[1],\"parameters\":{\"binary_data_size\":4}"), ST_INVALID,
                  "expected 4 bytes of binary data, got 0: 4 are missing");
    check_refused(INPUT("\"name\":\"x\",\"shape\":[1],\"datatype\":\"FP33\",\"data\":[1]"),
                  ST_INVALID, "inputs[0].datatype: unknown datatype \"FP33\"");
    check_refused("{\"inputs\":[{" REST ",\"shape\":[1],\"data\":[1]},{" REST
                  ",\"shape\":[1],\"data\":[1]}]}",
                  ST_INVALID, "inputs[1]: repeats the name of inputs[0]");
}

static void test_limits(void **state)
{
    (void)state;
    char text[4000];
    size_t len = (size_t)snprintf(text, sizeof(text), "{\"inputs\":[");
    for (int i = 0; i < 9; i++) {
        len += (size_t)snprintf(
            text + len, sizeof(text) - len,
            "%s{\"name\":\"x%d\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}", i ? "," : "",
            i);
    }
    snprintf(text + len, sizeof(text) - len, "]}");
    check_refused(text, ST_TOO_LARGE, "inputs[8]: more than 8 inputs");

    len = (size_t)snprintf(text, sizeof(text), "{\"inputs\":[],\"outputs\":[");
    for (int i = 0; i < 9; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s{\"name\":\"x\"}", i ? "," : "");
    }
    snprintf(text + len, sizeof(text) - len, "]}");
    check_refused(text, ST_TOO_LARGE, "more than 8 outputs");

    len = (size_t)snprintf(text, sizeof(text), "{\"inputs\":[],\"parameters\":{");
    for (int i = 0; i < 9; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"p%d\":0", i ? "," : "", i);
    }
    snprintf(text + len, sizeof(text) - len, "}}");
    check_refused(text, ST_TOO_LARGE, "more than 8 parameters");

    snprintf(text, sizeof(text), "{\"inputs\":[],\"id\":\"%065d\"}", 0);
    check_refused(text, ST_TOO_LARGE, "id: string of 65 bytes, at most 64 are taken");

    /* Depth also counts inside ignored values. */
    struct oip_limits shallow = limits;
    struct oip_body nested = {.json = span_str("{\"x\":[[[]]],\"inputs\":[]}")};
    struct fixture g;
    arena_init(&g.arena, 1000);
    shallow.json_depth_max = 4;
    assert_ok(g.err, oip_parse_infer(&nested, &shallow, &g.arena, &g.request, NULL, &g.err));
    shallow.json_depth_max = 3;
    assert_int_equal(oip_parse_infer(&nested, &shallow, &g.arena, &g.request, NULL, &g.err),
                     ST_TOO_LARGE);
    assert_non_null(strstr(g.err.text, "nested deeper than 3"));
    arena_fini(&g.arena);

    /* An arena that is too small causes a refusal, not a crash. */
    struct fixture f;
    struct oip_request request;
    struct oip_body body = {.json =
                                span_str("{\"inputs\":[{" REST ",\"shape\":[1],\"data\":[1]}]}")};
    arena_init(&f.arena, 100);
    assert_int_equal(oip_parse_infer(&body, &limits, &f.arena, &request, NULL, &f.err),
                     ST_TOO_LARGE);
    arena_fini(&f.arena);

    /* If the heap refuses memory, the request is valid and may be repeated. */
    arena_init(&f.arena, 1 << 16);
    heap_refuses = true;
    enum status status = oip_parse_infer(&body, &limits, &f.arena, &request, NULL, &f.err);
    heap_refuses = false;
    assert_fails(f.err, status, ST_EXHAUSTED, "no memory for the request");
    arena_fini(&f.arena);
}

#define BINARY(name, shape, type, bytes)                                                           \
    "{\"name\":\"" name "\",\"shape\":" shape ",\"datatype\":\"" type                              \
    "\",\"parameters\":{\"binary_data_size\":" bytes "}}"

static void test_refused_binary(void **state)
{
    (void)state;
    check_binary_refused("{\"inputs\":[" BINARY("x", "[3]", "FP32", "8") "]}", 8,
                         "inputs[0]: binary_data_size is 8, expected 12 for FP32 [3]");
    check_binary_refused("{\"inputs\":[" BINARY("x", "[3]", "FP32", "12") "]}", 8,
                         "expected 12 bytes of binary data, got 8: 4 are missing");
    check_binary_refused("{\"inputs\":[" BINARY("x", "[1]", "FP32", "4") "]}", 9,
                         "5 bytes behind the last tensor's binary data");
    check_binary_refused(
        "{\"inputs\":[" BINARY("x", "[2]", "FP32", "8") "," BINARY("y", "[2]", "FP32", "8") "]}",
        12, "inputs[1]: expected 8 bytes of binary data, got 4: 4 are missing");
    check_binary_refused("{\"inputs\":[" BINARY("x", "[3]", "BYTES", "8") "]}", 8,
                         "binary_data_size is 8, expected at least 12 for BYTES [3]");
#if SIZE_MAX > UINT32_MAX /* elsewhere it is too large before it is wrong */
    check_binary_refused("{\"inputs\":[" BINARY("x", "[1]", "FP32", "18446744073709551615") "]}", 8,
                         "binary_data_size is 18446744073709551615, expected 4");
#endif
    check_binary_refused("{\"inputs\":[" BINARY("x", "[1]", "FP32", "18446744073709551616") "]}", 8,
                         "inputs[0].parameters.binary_data_size: expected a whole number");
    check_binary_refused("{\"inputs\":[" BINARY("x", "[1]", "FP32", "-4") "]}", 8, "out of range");
    check_binary_refused("{\"inputs\":[{" REST ",\"shape\":[1]},{\"name\":\"y\",\"datatype\":"
                         "\"FP32\",\"shape\":[1]}]}",
                         8, "got neither");
    check_binary_refused("{\"inputs\":[{" REST ",\"shape\":[1],\"data\":[1]}]}", 1,
                         "1 bytes behind the last tensor's binary data");
}

/* A single input without binary_data_size takes as many bytes as its shape or the body has. */
static void test_unsized_binary(void **state)
{
    (void)state;
    struct fixture f;
    struct span *strings;
    static const uint8_t binary[] = {0, 0, 0x80, 0x3f, 1, 0, 0, 0, 'x'};
    assert_ok(
        f.err,
        parse_parts(&f,
                    "{\"inputs\":[{\"name\":\"s\",\"shape\":[1],\"datatype\":\"BYTES\"}," BINARY(
                        "x", "[1]", "FP32", "4") "]}",
                    (const uint8_t[]){1, 0, 0, 0, 'x', 0, 0, 0x80, 0x3f}, 9));
    assert_ok(f.err, oip_decode_strings(&f.request.inputs[0], &f.arena, &strings, &f.err));
    assert_true(span_is(strings[0], "x"));
    clear(&f);
    assert_ok(f.err, parse_parts(&f, "{\"inputs\":[{" REST ",\"shape\":[1]}]}", binary, 4));
    assert_true(f.request.inputs[0].is_binary && f.request.inputs[0].data.len == 4);
    clear(&f);
    check_binary_refused("{\"inputs\":[{" REST ",\"shape\":[2]}]}", 4,
                         "expected 8 bytes of binary data, got 4");
}

static void check_strings(const void *binary, size_t bytes, const char *part)
{
    struct fixture f;
    struct span *strings;
    char json[200];
    snprintf(json, sizeof(json),
             "{\"inputs\":[{\"name\":\"s\",\"shape\":[2],\"datatype\":\"BYTES\",\"parameters\":"
             "{\"binary_data_size\":%zu}}]}",
             bytes);
    assert_ok(f.err, parse_parts(&f, json, binary, bytes));
    assert_fails(f.err, oip_decode_strings(&f.request.inputs[0], &f.arena, &strings, &f.err),
                 ST_INVALID, part);
    clear(&f);
}

static void test_refused_strings(void **state)
{
    (void)state;
    check_strings("\5\0\0\0abcd", 8, "inputs[0].data[0]: expected a string of 5 bytes, got 4");
    check_strings("\xff\xff\xff\xff....", 8, "expected a string of 4294967295 bytes, got 4");
    check_strings("\4\0\0\0abcd\1\0\0", 11, "inputs[0].data[1]: expected 4 bytes of length, got 3");
    check_strings("\0\0\0\0\0\0\0\0\0", 9, "inputs[0].data: 1 bytes behind the last string");
    struct fixture f;
    struct span *strings;
    assert_ok(f.err, parse_parts(&f,
                                 INPUT("\"name\":\"s\",\"shape\":[2],\"datatype\":\"BYTES\","
                                       "\"data\":[\"a\",7]"),
                                 NULL, 0));
    assert_fails(f.err, oip_decode_strings(&f.request.inputs[0], &f.arena, &strings, &f.err),
                 ST_INVALID, "inputs[0].data[1]: expected a string, got a number");
    clear(&f);
}

static void test_decode_error_path(void **state)
{
    (void)state;
    struct tensor_nan nan = {.takes_null = false};
    struct fixture f;
    float values[4];
    assert_ok(f.err,
              parse_parts(&f, INPUT(REST ",\"shape\":[2,2],\"data\":[[1,2],[3,\"4\"]]"), NULL, 0));
    assert_fails(f.err, oip_decode_input(&f.request.inputs[0], &nan, values, 16, &f.err),
                 ST_INVALID, "inputs[0].data[1][1]: expected a number, got a string");
    clear(&f);
}

static void check_split(const char *header, size_t body_bytes, enum status status,
                        size_t json_bytes, bool is_raw)
{
    static const uint8_t bytes[100];
    struct oip_body body = {.is_raw = false};
    struct error err;
    struct span value = span_str(header ? header : "");
    assert_int_equal(
        oip_split_body(span_of(bytes, body_bytes), header ? &value : NULL, &body, &err), status);
    if (status == ST_OK) {
        assert_int_equal(body.json.len, json_bytes);
        assert_int_equal(body.binary.len, body_bytes - json_bytes);
        assert_int_equal(body.is_raw, is_raw);
    }
}

static void test_split_body(void **state)
{
    (void)state;
    check_split(NULL, 50, ST_OK, 50, false);
    check_split("50", 50, ST_OK, 50, false);
    check_split("20", 50, ST_OK, 20, false);
    check_split("0", 50, ST_OK, 0, true);
    check_split("51", 50, ST_INVALID, 0, false);
    check_split("-1", 50, ST_INVALID, 0, false);
    check_split("", 50, ST_INVALID, 0, false);
    check_split("5x", 50, ST_INVALID, 0, false);
    check_split(" 5", 50, ST_INVALID, 0, false);
    check_split("1e1", 50, ST_INVALID, 0, false);
    check_split("18446744073709551616", 50, ST_INVALID, 0, false);
}

static enum status parse_raw(struct fixture *f, const struct oip_tensor_meta *meta, size_t bytes)
{
    static const uint8_t binary[100];
    arena_init(&f->arena, 1 << 16);
    f->body = NULL;
    return oip_parse_raw(span_of(binary, bytes), meta, &limits, &f->arena, &f->request, &f->err);
}

static void test_raw_request(void **state)
{
    (void)state;
    struct fixture f;
    struct span *strings;
    struct oip_tensor_meta meta = {
        "x", {.dtype = DT_F32}, {.rank = 2, .dims = {-1, 3}}, .is_optional = false};
    assert_ok(f.err, parse_raw(&f, &meta, 24));
    assert_int_equal(f.request.inputs[0].shape.dims[0], 2);
    assert_true(f.request.parameters.binary_data_output && span_is(f.request.inputs[0].name, "x"));
    assert_ok(f.err, oip_verify_input(&f.request.inputs[0], &meta, &f.err));
    clear(&f);
    assert_fails(f.err, parse_raw(&f, &meta, 25), ST_INVALID, "25 bytes is no multiple of 12");
    clear(&f);
    meta.shape.dims[0] = 2;
    assert_fails(f.err, parse_raw(&f, &meta, 12), ST_INVALID, "takes 24 bytes, the body has 12");
    clear(&f);
    meta.shape.dims[0] = meta.shape.dims[1] = -1;
    assert_fails(f.err, parse_raw(&f, &meta, 12), ST_INVALID, "more than one dim of any size");
    clear(&f);
    meta.shape.dims[0] = 0;
    assert_fails(f.err, parse_raw(&f, &meta, 12), ST_INVALID, "no multiple of 0");
    clear(&f);
    meta = (struct oip_tensor_meta){
        "s", {.is_bytes = true}, {.rank = 1, .dims = {-1}}, .is_optional = false};
    assert_ok(f.err, parse_raw(&f, &meta, 5));
    assert_ok(f.err, oip_decode_strings(&f.request.inputs[0], &f.arena, &strings, &f.err));
    assert_int_equal(strings[0].len, 5);
    clear(&f);
    meta.shape.dims[0] = 2;
    assert_fails(f.err, parse_raw(&f, &meta, 5), ST_INVALID, "takes several strings");
    clear(&f);
}

static void test_verify_input(void **state)
{
    (void)state;
    struct error err;
    struct oip_request_input input = {
        .name = span_str("x"), .type = {.dtype = DT_F32}, .shape = {.rank = 2, .dims = {5, 3}}};
    struct oip_tensor_meta meta = {
        "known as x", {.dtype = DT_F32}, {.rank = 2, .dims = {-1, 3}}, .is_optional = false};
    assert_ok(err, oip_verify_input(&input, &meta, &err));
    input.shape.dims[1] = 4;
    assert_fails(err, oip_verify_input(&input, &meta, &err), ST_INVALID,
                 "inputs[0] 'x': shape is [5,4], expected [-1,3]");
    input.shape.rank = 1;
    assert_fails(err, oip_verify_input(&input, &meta, &err), ST_INVALID, "shape is [5]");
    input.type.dtype = DT_F64;
    assert_fails(err, oip_verify_input(&input, &meta, &err), ST_INVALID,
                 "inputs[0] 'x': datatype is FP64, expected FP32");
    input.type.is_bytes = true;
    assert_fails(err, oip_verify_input(&input, &meta, &err), ST_INVALID, "is BYTES, expected FP32");
}

/* In a list, inputs of a request may be results of other requests, and its binary data is a part of
 * that of the list. */
static void test_promises(void **state)
{
    static const char *const refused[][2] = {
        {"{\"id\":1}", "inputs[0].$from.id: expected a string, got a number (byte 37)"},
        {"{\"output\":\"y\"}", "inputs[0].$from: member \"id\" is missing"},
        {"{\"id\":\"a\",\"path\":[]}",
         "inputs[0].$from.path: unknown member, expected id or output"},
        {"{\"id\":\"a\"},\"data\":[1]", "has both \"$from\" and data of its own"},
        {"\"a\"", "inputs[0].$from: expected an object, got a string"},
    };
    struct oip_limits listed = limits;
    struct fixture f = {.body = NULL};
    struct span rest;
    (void)state;
    listed.is_listed = true;
    arena_init(&f.arena, 1 << 16);
    struct oip_body body = {
        .json = span_str("{\"inputs\":[{\"name\":\"x\",\"$from\":{\"id\":\"a\",\"output\":\"y\"}},"
                         "{\"name\":\"b\",\"shape\":[1],\"datatype\":\"FP32\","
                         "\"parameters\":{\"binary_data_size\":4}},"
                         "{\"$from\":{\"id\":\"a\"},\"name\":\"z\",\"shape\":[2,3],\"datatype\":"
                         "\"INT8\"}]}"),
        .binary = span_str("1234567"),
    };
    assert_ok(f.err, oip_parse_infer(&body, &listed, &f.arena, &f.request, &rest, &f.err));
    const struct oip_request_input *inputs = f.request.inputs;
    assert_true(span_is(rest, "567") && span_is(inputs[1].data, "1234"));
    assert_true(inputs[0].is_promise && !inputs[1].is_promise && inputs[2].is_promise);
    assert_true(span_is(inputs[0].promise.id, "a") && span_is(inputs[0].promise.output.name, "y"));
    assert_true(!inputs[0].promise.has_shape && !inputs[0].promise.has_type);
    assert_true(inputs[2].promise.output.kind == PICK_ONLY && inputs[2].promise.has_shape &&
                inputs[2].promise.has_type);
    assert_true(inputs[2].shape.rank == 2 && inputs[2].type.dtype == DT_I8);
    assert_fails(f.err, oip_parse_infer(&body, &listed, &f.arena, &f.request, NULL, &f.err),
                 ST_INVALID, "3 bytes behind the last tensor's binary data");
    assert_fails(f.err, oip_parse_infer(&body, &limits, &f.arena, &f.request, &rest, &f.err),
                 ST_INVALID, "inputs[0].$from: only the requests of a POST /v2/batch");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "{\"inputs\":[{\"name\":\"x\",\"$from\":%s}]}", refused[i][0]);
        body = (struct oip_body){.json = span_str(text)};
        assert_fails(f.err, oip_parse_infer(&body, &listed, &f.arena, &f.request, NULL, &f.err),
                     ST_INVALID, refused[i][1]);
    }
    /* Errors count bytes from the position of the request in the text of the list. */
    struct span text = span_str("[1, {\"inputs\": 5}");
    body = (struct oip_body){.json = span_of(text.ptr + 4, text.len - 4), .json_offset = 4};
    assert_fails(f.err, oip_parse_infer(&body, &listed, &f.arena, &f.request, NULL, &f.err),
                 ST_INVALID, "inputs: expected an array, got a number (byte 15)");
    arena_fini(&f.arena);
}

static void test_index(void **state)
{
    (void)state;
    struct error err;
    bool ready = true;
    assert_ok(err, oip_parse_index(span_str(""), &ready, &err));
    assert_false(ready);
    assert_ok(err, oip_parse_index(span_str("{\"ready\":true}"), &ready, &err));
    assert_true(ready);
    assert_ok(err, oip_parse_index(span_str("{}"), &ready, &err));
    assert_false(ready);
    assert_fails(err, oip_parse_index(span_str("{\"ready\":1}"), &ready, &err), ST_INVALID,
                 "ready: expected a boolean, got a number");
}

static void test_change(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool has_files, with_dependents;
    } cases[] = {
        {"", false, false},
        {"{}", false, false},
        {"{\"parameters\":{}}", false, false},
        {"{\"parameters\":{\"other\":[1]},\"more\":2}", false, false},
        {"{\"parameters\":{\"unload_dependents\":true}}", false, true},
        {"{\"parameters\":{\"config\":\"{}\"}}", true, false},
        {"{\"parameters\":{\"file:1/model.pte\":\"AA==\"}}", true, false},
        {"{\"parameters\":{\"file\":1}}", false, false},
    };
    struct oip_change change;
    struct error err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_ok(err, oip_parse_change(span_str(cases[i].body), &change, &err));
        assert_int_equal(change.has_files, cases[i].has_files);
        assert_int_equal(change.with_dependents, cases[i].with_dependents);
    }
    assert_fails(
        err,
        oip_parse_change(span_str("{\"parameters\":{\"unload_dependents\":1}}"), &change, &err),
        ST_INVALID, "parameters.unload_dependents: expected a boolean");
    assert_fails(err, oip_parse_change(span_str("[]"), &change, &err), ST_INVALID,
                 "expected an object");
    assert_fails(err, oip_parse_change(span_str("{} {}"), &change, &err), ST_INVALID, "");
}

/* ---- replies --------------------------------------------------------------------------------- */

static void check_text(struct buf *out, const char *expected)
{
    assert_false(buf_failed(out));
    buf_add_char(out, '\0');
    assert_string_equal((const char *)out->ptr, expected);
    buf_fini(out);
}

/* {"id": ..., the members}, and the binary data after it. */
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

static void test_print_json_reply(void **state)
{
    (void)state;
    static const float values[] = {1, 0.1f, -INFINITY};
    const struct span strings[] = {span_str("a\"b")};
    const struct oip_result results[] = {
        {.name = span_str("y"),
         .type = {.dtype = DT_F32},
         .shape = {.rank = 2, .dims = {1, 3}},
         .data = span_of(values, sizeof(values))},
        {.name = span_str("s"),
         .type = {.is_bytes = true},
         .shape = {.rank = 1, .dims = {1}},
         .strings = strings},
    };
    const struct oip_reply reply = {
        .model_name = "m", .model_version = "1", .results = results, .result_count = 2};
    struct span spans[3];
    struct oip_encoded encoded = {.spans = spans};
    struct error err;
    struct buf out;
    buf_init(&out, 1000);
    assert_ok(err, print_reply(&reply, span_str("q\"1"), &out, &encoded, &err));
    assert_false(encoded.has_binary);
    assert_int_equal(encoded.span_count, 1);
    assert_int_equal(encoded.total_bytes, out.len);
    check_text(
        &out,
        "{\"id\":\"q\\\"1\",\"model_name\":\"m\",\"model_version\":\"1\",\"outputs\":["
        "{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1,3],\"data\":[1.0,0.1,\"-Infinity\"]},"
        "{\"name\":\"s\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"a\\\"b\"]}]}");
    buf_init(&out, 50);
    assert_fails(err, print_reply(&reply, span_str("q\"1"), &out, &encoded, &err), ST_TOO_LARGE,
                 "more than 50");
    buf_fini(&out);
}

static void test_print_binary_reply(void **state)
{
    (void)state;
    static const float values[] = {1, 2};
    static const uint8_t bytes[] = {7};
    const struct span strings[] = {span_str("ab"), span_str("")};
    const struct oip_result results[] = {
        {.name = span_str("y"),
         .type = {.dtype = DT_F32},
         .shape = {.rank = 1, .dims = {2}},
         .is_binary = true,
         .data = span_of(values, sizeof(values))},
        {.name = span_str("s"),
         .type = {.is_bytes = true},
         .shape = {.rank = 1, .dims = {2}},
         .is_binary = true,
         .strings = strings},
        {.name = span_str("z"),
         .type = {.dtype = DT_I64},
         .shape = {.rank = 1, .dims = {0}},
         .is_binary = true},
        {.name = span_str("j"),
         .type = {.dtype = DT_U8},
         .shape = {.rank = 1, .dims = {1}},
         .data = span_of(bytes, 1)},
        {.name = span_str("u"),
         .type = {.dtype = DT_U8},
         .shape = {.rank = 1, .dims = {1}},
         .is_binary = true,
         .data = span_of(bytes, 1)},
    };
    const struct oip_reply reply = {
        .model_name = "m", .model_version = "1", .results = results, .result_count = 5};
    struct span spans[6];
    struct oip_encoded encoded = {.spans = spans};
    struct error err;
    struct buf out;
    buf_init(&out, 2000);
    assert_ok(err, print_reply(&reply, span_str("q\"1"), &out, &encoded, &err));
    assert_true(encoded.has_binary);
    assert_int_equal(encoded.json_bytes % OIP_BLOB_ALIGN, 0);
    assert_int_equal(encoded.span_count, 4);
    assert_ptr_equal(spans[1].ptr, values);
    assert_int_equal(spans[1].len, 8);
    assert_true(span_equal(spans[2], span_of("\2\0\0\0ab\0\0\0\0", 10)));
    assert_ptr_equal(spans[3].ptr, bytes);
    assert_int_equal(encoded.total_bytes, encoded.json_bytes + 8 + 10 + 1);
    out.ptr[encoded.json_bytes - 1] = '\0';
    assert_non_null(strstr((const char *)out.ptr, "\"parameters\":{\"binary_data_size\":8}}"));
    assert_non_null(strstr((const char *)out.ptr, "\"parameters\":{\"binary_data_size\":10}}"));
    assert_non_null(
        strstr((const char *)out.ptr, "\"shape\":[0],\"parameters\":{\"binary_data_size\":0}}"));
    assert_non_null(strstr((const char *)out.ptr, "\"data\":[7]}"));
    buf_fini(&out);
}

static void test_print_metadata(void **state)
{
    (void)state;
    struct buf out;
    const char *const extensions[] = {"binary_tensor_data", "parameters"};
    const char *const versions[] = {"1", "2"};
    const struct oip_tensor_meta inputs[] = {
        {"a", {.dtype = DT_F32}, {.rank = 2, .dims = {-1, 3}}, .is_optional = false},
        {"b", {.is_bytes = true}, {.rank = 0}, .is_optional = false},
    };
    const struct oip_tensor_meta media[] = {{.name = "c",
                                             .type = {.dtype = DT_U8},
                                             .shape = {.rank = 1, .dims = {3}},
                                             .media = "image",
                                             .media_form = "{\"crop\":[1,3]}"}};
    const struct oip_tensor_meta answers[] = {{.name = "d",
                                               .type = {.dtype = DT_F32},
                                               .shape = {.rank = 1, .dims = {3}},
                                               .answer = "boxes"}};
    buf_init(&out, 1000);
    oip_print_server(&out, &(struct oip_server_meta){.name = "pted",
                                                     .version = "0.1",
                                                     .extensions = extensions,
                                                     .extension_count = 2});
    check_text(&out,
               "{\"name\":\"pted\",\"version\":\"0.1\",\"extensions\":[\"binary_tensor_data\","
               "\"parameters\"]}");
    oip_print_model(&out, &(struct oip_model_meta){.name = "m",
                                                   .platform = "executorch_pte",
                                                   .versions = versions,
                                                   .version_count = 2,
                                                   .inputs = inputs,
                                                   .input_count = 2});
    check_text(&out, "{\"name\":\"m\",\"versions\":[\"1\",\"2\"],\"platform\":\"executorch_pte\","
                     "\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[-1,3]},"
                     "{\"name\":\"b\",\"datatype\":\"BYTES\",\"shape\":[]}],\"outputs\":[]}");
    oip_print_model(&out, &(struct oip_model_meta){.name = "m",
                                                   .platform = "executorch_pte",
                                                   .versions = versions,
                                                   .inputs = media,
                                                   .input_count = 1,
                                                   .outputs = answers,
                                                   .output_count = 1});
    check_text(&out, "{\"name\":\"m\",\"versions\":[],\"platform\":\"executorch_pte\","
                     "\"inputs\":[{\"name\":\"c\",\"datatype\":\"UINT8\",\"shape\":[3],"
                     "\"media\":\"image\",\"image\":{\"crop\":[1,3]}}],"
                     "\"outputs\":[{\"name\":\"d\",\"datatype\":\"FP32\",\"shape\":[3],"
                     "\"answer\":\"boxes\"}]}");
    oip_print_model_ready(&out, "m", true);
    check_text(&out, "{\"name\":\"m\",\"ready\":true}");
    oip_print_error(&out, "no \"x\"\n\xff");
    check_text(&out, "{\"error\":\"no \\\"x\\\"\\n\xef\xbf\xbd\"}");
    oip_print_index(&out,
                    (const struct oip_index_row[]){
                        {.name = "a", .version = "1", .state = "READY", .is_constant = true},
                        {.name = "b", .state = "UNAVAILABLE", .reason = "broken", .lacks = "{}"},
                        {.name = "c", .kind = "speech", .id = "d"}},
                    3);
    check_text(&out, "[{\"name\":\"a\",\"version\":\"1\",\"state\":\"READY\",\"constant\":true},"
                     "{\"name\":\"b\",\"state\":\"UNAVAILABLE\",\"reason\":\"broken\","
                     "\"lacks\":{}},{\"name\":\"c\",\"kind\":\"speech\",\"id\":\"d\"}]");
}

static void check_config(const struct oip_model_config *config, const char *const *parts)
{
    struct buf out;
    buf_init(&out, 4000);
    oip_print_config(&out, config);
    buf_add_char(&out, '\0');
    assert_false(buf_failed(&out));
    for (; *parts; parts++) {
        if (!strstr((const char *)out.ptr, *parts)) {
            fail_msg("no %s in %s", *parts, (const char *)out.ptr);
        }
    }
    buf_fini(&out);
}

static void test_print_config(void **state)
{
    (void)state;
    const struct oip_tensor_meta tensors[] = {
        {"a", {.dtype = DT_BF16}, {.rank = 3, .dims = {-1, 3, -1}}, .is_optional = true},
        {"b", {.is_bytes = true}, {.rank = 1, .dims = {1}}, .is_optional = false},
    };
    struct oip_model_config config = {
        .name = "m",
        .platform = "executorch_pte",
        .backend = "pted",
        .instance_name = "cpu",
        .inputs = tensors,
        .outputs = tensors,
        .input_count = 2,
        .output_count = 1,
        .running_max = 2,
    };
    check_config(&config,
                 (const char *[]){"\"name\":\"a\",\"data_type\":\"TYPE_BF16\",\"dims\":[-1,3,-1],",
                                  "\"optional\":true},{\"name\":\"b\"",
                                  "\"data_type\":\"TYPE_STRING\",\"dims\":[1],",
                                  "\"kind\":\"KIND_CPU\",\"count\":2", NULL});
    config.is_on_gpu = true;
    config.batch_size_max = 8;
    config.is_batched = true;
    config.waiting_max = 9;
    config.timeout_us = 10;
    config.delay_us = 15;
    config.priorities = 11;
    config.priority_default = 12;
    check_config(&config,
                 (const char *[]){"\"max_batch_size\":8,", "\"dims\":[3,-1],", "\"dims\":[],",
                                  "\"kind\":\"KIND_GPU\"", "\"dynamic_batching\":{",
                                  "\"max_queue_delay_microseconds\":15,", "\"max_queue_size\":9}",
                                  "\"default_timeout_microseconds\":10,",
                                  "\"priority_levels\":11,\"default_priority_level\":12,", NULL});
    config.sequence_count_max = 13;
    config.sequence_timeout_us = 14;
    check_config(&config,
                 (const char *[]){"\"sequence_batching\":{", "\"max_candidate_sequences\":13,",
                                  "\"max_sequence_idle_microseconds\":14,", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_request),
        cmocka_unit_test(test_binary_request),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_nan_parameter),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_extents),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_refused_envelopes),
        cmocka_unit_test(test_refused_inputs),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_refused_binary),
        cmocka_unit_test(test_unsized_binary),
        cmocka_unit_test(test_refused_strings),
        cmocka_unit_test(test_decode_error_path),
        cmocka_unit_test(test_split_body),
        cmocka_unit_test(test_raw_request),
        cmocka_unit_test(test_verify_input),
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_print_json_reply),
        cmocka_unit_test(test_print_binary_reply),
        cmocka_unit_test(test_print_metadata),
        cmocka_unit_test(test_print_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
