/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base64.h"
#include "protocol/call.h"
#include "protocol/tensor_text.h"
#include "tests/unit/unit.h"

/* [{"bar": r1, "foo": r0}, None, r2, {"kw": r3}] -> [None, r0, None, {"t": r1, "u": r2}]; the last
 * argument is the dict of the keyword arguments. */
#define SIGNATURE "I43!S39!k0D17!K4!bar_1K4!foo_0k2_2k3D8!K3!kw_3R27!S23!k1_0k3D13!K2!t_1K2!u_2"

static const struct call_io inputs[] = {
    {.kind = CALL_TENSOR, .dtype = DT_F32, .shape = {2, {-1, 3}}},
    {.kind = CALL_TENSOR, .dtype = DT_I64, .shape = {0, {0}}},
    {.kind = CALL_SCALAR, .dtype = DT_I64, .fixed = "5"},
    {.kind = CALL_STRING},
};

static const struct call_io results[] = {
    {.kind = CALL_TENSOR, .dtype = DT_F32, .shape = {2, {-1, 3}}},
    {.kind = CALL_SCALAR, .dtype = DT_BOOL},
    {.kind = CALL_NONE},
};

static const struct call_limits limits = {.oip = {.tensor_bytes_max = 1 << 20,
                                                  .json_depth_max = 64,
                                                  .name_bytes_max = 64,
                                                  .parameters_max = 2},
                                          .element_count_max = 1000};

struct fixture {
    struct arena arena;
    struct sip sip;
    struct call_method method;
    struct call_request request;
    struct error err;
};

static void set_up(struct fixture *f)
{
    arena_init(&f->arena, 1 << 16);
    assert_ok(f->err, sip_parse(span_str(SIGNATURE), &f->arena, &f->sip, &f->err));
    f->sip.has_kwargs = true;
    f->method = (struct call_method){&f->sip, inputs, results, 4, 3};
}

static enum status parse(struct fixture *f, const char *json, const char *binary)
{
    struct oip_body body = {.json = span_str(json), .binary = span_str(binary)};
    return call_parse(&body, &f->method, &limits, &f->arena, &f->request, NULL, &f->err);
}

static void leaves_are_found(void **state)
{
    (void)state;
    struct tensor_nan nan = {.takes_null = false};
    struct fixture f;
    float floats[6];
    int64_t number;
    set_up(&f);
    assert_ok(f.err, parse(&f,
                           "{\"kwargs\":{\"kw\":\"a\\u0062\"},"
                           "\"args\":[{\"foo\":[[1,2,3],[4,5,6]],\"b\\u0061r\":7},null,null]}",
                           ""));
    assert_int_equal(f.request.leaves[0].shape.dims[0], 2);
    assert_int_equal(f.request.leaves[0].bytes, 24);
    assert_ok(f.err, call_decode_leaf(&f.request.leaves[0], DT_F32, &nan, floats, &f.err));
    assert_true(floats[0] == 1 && floats[5] == 6);
    assert_ok(f.err, call_decode_leaf(&f.request.leaves[1], DT_I64, &nan, &number, &f.err));
    assert_int_equal(number, 7);
    assert_int_equal(f.request.leaves[2].encoding, CALL_ABSENT);
    assert_true(span_is(f.request.leaves[3].data, "ab"));
    arena_fini(&f.arena);
}

/* Positional arguments that have names: [a, {"b": ...}], with and without keyword arguments. */
static void arguments_by_name(void **state)
{
    static const struct call_io named[] = {
        {.kind = CALL_TENSOR, .dtype = DT_I64, .shape = {0, {0}}, .name = "left"},
        {.kind = CALL_TENSOR, .dtype = DT_I64, .shape = {0, {0}}, .name = "right"},
        {.kind = CALL_TENSOR, .dtype = DT_I64, .shape = {0, {0}}},
    };
    static const char *const good[] = {
        "{\"args\":[1,2],\"kwargs\":{\"kw\":3}}",
        "{\"args\":[1],\"kwargs\":{\"kw\":3,\"right\":2}}",
        "{\"kwargs\":{\"right\":2,\"kw\":3},\"args\":[1]}",
        "{\"kwargs\":{\"right\":2,\"left\":1,\"kw\":3}}",
    };
    static const char *const bad[][2] = {
        {"{\"args\":[1,2],\"kwargs\":{\"kw\":3,\"left\":1}}",
         "args[0]: given twice, at its place and as \"left\""},
        {"{\"kwargs\":{\"right\":2,\"left\":1,\"kw\":3},\"args\":[1]}",
         "args[0]: given twice, at its place and as \"left\""},
        {"{\"args\":[1],\"kwargs\":{\"kw\":3}}", "args[1]: missing"},
        {"{\"args\":[1],\"kwargs\":{\"kw\":3,\"right\":\"x\"}}",
         "kwargs[\"right\"]: expected int64[], got a string"},
        {"{\"args\":[1,\"x\"],\"kwargs\":{\"kw\":3}}",
         "args[1]: expected int64[], got a string"},
        {"{\"args\":[1,2],\"kwargs\":{\"kw\":3,\"Left\":1}}",
         "kwargs[\"Left\"]: unknown member, expected \"kw\", \"left\", \"right\""},
    };
    struct fixture f;
    (void)state;
    for (int i = 0; i < 8; i++) {
        set_up(&f);
        assert_ok(f.err, sip_parse(span_str("I25!S21!k0_0k1_1k2D8!K3!kw_2R3!_0"), &f.arena, &f.sip,
                                   &f.err));
        f.sip.has_kwargs = true;
        f.method = (struct call_method){&f.sip, named, results, 3, 1};
        if (i < 4) {
            assert_ok(f.err, parse(&f, good[i], ""));
            for (int k = 0; k < 3; k++) {
                assert_int_equal(f.request.leaves[k].data.ptr[0], '1' + k);
            }
        } else {
            assert_int_equal(parse(&f, bad[i - 4][0], ""), ST_INVALID);
            assert_non_null(strstr(f.err.text, bad[i - 4][1]));
        }
        arena_fini(&f.arena);
    }
}

static void bytes_follow_the_text(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_ok(f.err,
              parse(&f,
                    "{\"kwargs\":{\"kw\":\"\"},\"args\":[{"
                    "\"foo\":{\"dtype\":\"float32\",\"shape\":[1,3],\"binary_data_size\":12},"
                    "\"bar\":{\"binary_data_size\":8,\"shape\":[],\"dtype\":\"int64\"}}]}",
                    "aaaabbbbccccdddddddd"));
    assert_true(span_is(f.request.leaves[0].data, "aaaabbbbcccc"));
    assert_true(span_is(f.request.leaves[1].data, "dddddddd"));
    arena_fini(&f.arena);
}

static void empty_arrays_keep_the_other_dims_of_their_shape(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_ok(f.err, parse(&f, "{\"args\":[{\"foo\":[],\"bar\":0}],\"kwargs\":{\"kw\":\"\"}}", ""));
    assert_int_equal(f.request.leaves[0].shape.rank, 2);
    assert_int_equal(f.request.leaves[0].shape.dims[0], 0);
    assert_int_equal(f.request.leaves[0].shape.dims[1], 3);
    assert_int_equal(f.request.leaves[0].bytes, 0);
    arena_fini(&f.arena);
}

#define BAR_KW "\"bar\":0}],\"kwargs\":{\"kw\":\"\"}}"

static void mistakes_have_a_path(void **state)
{
    (void)state;
    static const struct {
        const char *json, *binary, *text;
    } cases[] = {
        {"{\"args\":[{\"foo\":\"x\"," BAR_KW, "",
         "args[0][\"foo\"]: expected float32[?,3], got a string"},
        {"{\"args\":[{\"foo\":[[1,2]]," BAR_KW, "",
         "args[0][\"foo\"]: expected float32[?,3], got shape [1,2]"},
        {"{\"args\":[{\"foo\":[[1,2,3],[1]]," BAR_KW, "", "args[0][\"foo\"][1]: ragged at depth 1"},
        {"{\"args\":[{\"foo\":[[1,2,3],[[1]]]," BAR_KW, "",
         "args[0][\"foo\"][1][0]: ragged at depth 2: expected a number, got an array"},
        {"{\"args\":[{\"foo\":[[1,{},3]]," BAR_KW, "",
         "args[0][\"foo\"][0][1]: expected a number, got an object"},
        {"{\"args\":[{\"foo\":[[1,2,3]],\"baz\":1," BAR_KW, "",
         "args[0][\"baz\"]: unknown member, expected \"bar\", \"foo\""},
        {"{\"args\":[{\"foo\":[[1,2,3]],\"bar\":[]}]}", "",
         "args[0][\"bar\"]: expected int64[], got shape [0]"},
        {"{\"args\":[{\"foo\":true,", "", "args[0][\"foo\"]: expected float32[?,3], got a boolean"},
        {"{\"args\":[{\"foo\":{\"a\":1}", "", "args[0][\"foo\"].a: unknown member, expected dtype"},
        {"{\"args\":[{\"foo\":[[1,2,3]],\"bar\":1,\"foo\":1", "",
         "args[0][\"foo\"]: the key repeats in its object (byte 34)"},
        {"{\"kwargs\":{},\"args\":[],\"kwargs\":1}", "", "kwargs: the key repeats in its object"},
        {"{\"args\":[3]}", "", "args[0]: expected an object of 2, got a number"},
        {"{\"args\":{}}", "", "args: expected an array of 3, got an object"},
        {"{\"args\":[{\"foo\":[],\"bar\":0},4]}", "", "args[1]: expected null"},
        {"{\"args\":[{\"foo\":[],\"bar\":0},null,5,{\"kw\":\"\"}]}", "",
         "args[3]: unexpected, the method takes 3 here"},
        {"{\"args\":[{\"foo\":[],\"bar\":0}]}", "", "kwargs[\"kw\"]: missing, expected string"},
        {"{\"kwargs\":{\"kw\":1}}", "", "kwargs[\"kw\"]: expected string, got a number"},
        {"{\"args\":[{\"foo\":{\"dtype\":\"float32\",\"shape\":[9223372036854775807,3],"
         "\"base64\":\"\"}," BAR_KW,
         "", "args[0][\"foo\"]: shape "},
        {"{\"args\":[{\"foo\":{\"dtype\":\"float32\",\"shape\":[1,3],\"binary_data_size\":11}"
         "," BAR_KW,
         "aaaabbbbccc", "args[0][\"foo\"]: binary_data_size is 11, expected 12"},
        {"{\"args\":[{\"foo\":[]," BAR_KW, "x", "1 bytes behind the last tensor's binary data"},
        {"{\"args\":[{\"foo\":[]," BAR_KW "x", "", "expected the end of the text"},
        {"{\"args\":[{\"foo\":[1", "", "the text ends in an array"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f;
        set_up(&f);
        if (parse(&f, cases[i].json, cases[i].binary) == ST_OK ||
            !strstr(f.err.text, cases[i].text)) {
            fail_msg("%s: '%s', expected '%s'", cases[i].json, f.err.text, cases[i].text);
        }
        arena_fini(&f.arena);
    }
}

/* A method with only keyword arguments: the dict is the root. */
static void all_arguments_may_be_keywords(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_ok(f.err, sip_parse(span_str("I11!D8!K3!kw_0R1!"), &f.arena, &f.sip, &f.err));
    f.sip.has_kwargs = false;
    f.method = (struct call_method){&f.sip, inputs + 3, results, 1, 0};
    assert_ok(f.err, parse(&f, "{\"args\":[],\"kwargs\":{\"kw\":\"x\"}}", ""));
    assert_true(span_is(f.request.leaves[0].data, "x"));
    assert_fails(f.err, parse(&f, "{\"args\":[1]}", ""), ST_INVALID,
                 "args: the method takes none, expected kwargs: \"kw\"");
    assert_fails(f.err, parse(&f, "{\"kwargs\":[]}", ""), ST_INVALID,
                 "kwargs: expected an object of 1, got an array");
    assert_fails(f.err, parse(&f, "{}", ""), ST_INVALID,
                 "kwargs[\"kw\"]: missing, expected string");
    arena_fini(&f.arena);
}

static void elements_are_read_strictly(void **state)
{
    (void)state;
    struct tensor_nan nan = {.takes_null = false};
    struct fixture f;
    float floats[3];
    set_up(&f);
    assert_ok(f.err, parse(&f, "{\"args\":[{\"foo\":[[1,2 3]]," BAR_KW, ""));
    assert_fails(f.err, call_decode_leaf(&f.request.leaves[0], DT_F32, &nan, floats, &f.err),
                 ST_INVALID, "[0][2]: expected ',' or ']', got a number");
    arena_fini(&f.arena);
    set_up(&f);
    assert_ok(f.err, parse(&f, "{\"args\":[{\"foo\":[[1,2,true]]," BAR_KW, ""));
    assert_fails(f.err, call_decode_leaf(&f.request.leaves[0], DT_F32, &nan, floats, &f.err),
                 ST_INVALID, "[0][2]: expected a number, got a boolean");
    assert_fails(f.err, call_prefix(&f.method, NULL, 0, "", &f.err), ST_INVALID,
                 "args[0][\"foo\"][0][2]: expected a number");
    arena_fini(&f.arena);
}

static enum status print(struct fixture *f, const struct call_result *given, bool is_binary,
                         struct buf *out, struct oip_encoded *encoded)
{
    oip_encode_begin(encoded);
    TRY(call_print(&f->method, given, is_binary, NUMBER_NAN_STRING, out, encoded, &f->err));
    oip_encode_end_json(out, encoded);
    return oip_encode_end(out, encoded, &f->err);
}

static void answers_have_the_structure(void **state)
{
    (void)state;
    static const float floats[3] = {1, 2, 3};
    static const bool yes = true;
    const struct call_result given[3] = {
        {.shape = {2, {1, 3}}, .bytes = span_of(floats, sizeof(floats))},
        {.bytes = span_of(&yes, 1)},
        {.classes = NULL}};
    struct fixture f;
    struct buf out;
    struct span spans[4];
    struct oip_encoded encoded = {.spans = spans};
    set_up(&f);
    buf_init(&out, 4096);
    assert_ok(f.err, print(&f, given, false, &out, &encoded));
    assert_true(
        span_is(buf_span(&out), "\"result\":[null,[[1.0,2.0,3.0]],null,{\"t\":true,\"u\":null}]"));
    assert_int_equal(encoded.span_count, 1);
    assert_false(encoded.has_binary);
    buf_reset(&out);
    assert_ok(f.err, print(&f, given, true, &out, &encoded));
    assert_int_equal(encoded.span_count, 2);
    assert_ptr_equal(spans[1].ptr, floats);
    assert_int_equal(encoded.json_bytes % OIP_BLOB_ALIGN, 0);
    assert_int_equal(encoded.total_bytes, encoded.json_bytes + 12);
    buf_fini(&out);
    arena_fini(&f.arena);
}

/* Fills one element, and then all elements of a shape. Nothing is written outside of them. */
static void parameters_stand_beside_the_arguments(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_ok(f.err, parse(&f,
                           "{\"parameters\":{\"priority\":2,\"timeout\":1500,\"sequence_id\":\"s\","
                           "\"sequence_start\":true,\"binary_data_output\":true,\"own\":1},"
                           "\"args\":[{\"foo\":[[1,2,3]],\"bar\":4}],\"kwargs\":{\"kw\":\"\"}}",
                           ""));
    const struct oip_parameters *p = &f.request.parameters;
    assert_true(p->priority == 2 && p->timeout_us == 1500 && span_is(p->sequence_name, "s"));
    assert_true(p->sequence_start && !p->sequence_end && p->binary_data_output);
    assert_int_equal(p->other_count, 1);
    assert_fails(f.err, parse(&f, "{\"parameters\":{\"priority\":\"x\"}}", ""), ST_INVALID,
                 "parameters.priority: expected a whole number, got a string");
    assert_fails(f.err, parse(&f, "{\"parameters\":{\"a\":1,\"b\":1,\"c\":1}}", ""), ST_TOO_LARGE,
                 "more than 2 parameters");
    assert_ok(f.err, parse(&f,
                           "{\"args\":[{\"foo\":[[1,2,3]],\"bar\":4}],\"kwargs\":{\"kw\":\"\"},"
                           "\"parameters\":null}",
                           ""));
    arena_fini(&f.arena);
}

/* In a list of requests a leaf may be the result of another one. */
static void leaves_may_be_promised(void **state)
{
#define REST "\"bar\":{\"$from\":{\"id\":\"b\"}}}],\"kwargs\":{\"kw\":{\"$from\":{\"id\":\"c\"}}}"
    static const char *const refused[][2] = {
        {"{\"id\":1,\"output\":\"y\"}",
         "args[0][\"foo\"].$from.id: expected a string, got a number"},
        {"{\"output\":\"y\"}", "args[0][\"foo\"].$from: member \"id\" is missing"},
        {"{\"id\":\"a\",\"out\":\"y\"}", "args[0][\"foo\"].$from.out: unknown member"},
        {"{\"id\":\"a\"},\"shape\":[4,2]",
         "args[0][\"foo\"]: expected float32[?,3], got float32[4,2]"},
        {"{\"id\":\"a\"},\"dtype\":\"int32\"",
         "args[0][\"foo\"]: expected float32[?,3], got int32"},
        {"{\"id\":\"a\"},\"fill\":1", "args[0][\"foo\"]: has both \"$from\" and data of its own"},
    };
    struct call_limits listed = limits;
    struct fixture f;
    struct span rest;
    (void)state;
    set_up(&f);
    listed.oip.is_listed = true;
    struct oip_body body = {
        .json = span_str(
            "{\"id\":\"me\",\"model_name\":\"m\",\"args\":[{\"foo\":{\"$from\":{\"id\":\"a\","
            "\"output\":\"y\"},\"dtype\":\"float32\",\"shape\":[4,3]}," REST "}"),
        .binary = span_str("rest"),
    };
    assert_ok(f.err, call_parse(&body, &f.method, &listed, &f.arena, &f.request, &rest, &f.err));
    const struct call_leaf *leaves = f.request.leaves;
    assert_true(span_is(rest, "rest"));
    assert_true(leaves[0].encoding == CALL_PROMISE && leaves[1].encoding == CALL_PROMISE &&
                leaves[3].encoding == CALL_PROMISE);
    const struct oip_promise *foo = &leaves[0].promise, *bar = &leaves[1].promise;
    assert_true(span_is(foo->id, "a") && span_is(foo->output.name, "y"));
    assert_true(foo->has_type && foo->has_shape && leaves[0].shape.dims[0] == 4);
    assert_true(span_is(bar->id, "b") && bar->output.kind == PICK_ONLY && !bar->has_type &&
                !bar->has_shape);
    assert_fails(f.err, call_parse(&body, &f.method, &limits, &f.arena, &f.request, &rest, &f.err),
                 ST_INVALID, "id: unknown member");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "{\"args\":[{\"foo\":{\"$from\":%s}," REST "}", refused[i][0]);
        body = (struct oip_body){.json = span_str(text)};
        assert_fails(f.err,
                     call_parse(&body, &f.method, &listed, &f.arena, &f.request, NULL, &f.err),
                     ST_INVALID, refused[i][1]);
        assert_fails(f.err,
                     call_parse(&body, &f.method, &limits, &f.arena, &f.request, NULL, &f.err),
                     ST_INVALID, "can take each other's results");
    }
    arena_fini(&f.arena);
#undef REST
}

static void filled_leaves(void **state)
{
    (void)state;
    struct tensor_nan nan = {.takes_null = false};
    static const struct {
        enum dtype dtype;
        const char *text;
        uint64_t element;
    } cases[] = {
        {DT_F32, "0.5", 0x3f000000},       {DT_F16, "1", 0x3c00}, {DT_BF16, "-2", 0xc000},
        {DT_I64, "-1", UINT64_MAX},        {DT_U8, "255", 0xff},  {DT_BOOL, "true", 1},
        {DT_F64, "2", 0x4000000000000000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int64_t count = 0; count < 20; count++) {
            struct error err;
            size_t size = dtype_bytes(cases[i].dtype);
            uint8_t got[168];
            memset(got, 0xa5, sizeof(got));
            const struct call_leaf leaf = {.encoding = CALL_FILL,
                                           .shape = {1, {count}},
                                           .bytes = (size_t)count * size,
                                           .data = span_str(cases[i].text)};
            assert_ok(err, call_decode_leaf(&leaf, cases[i].dtype, &nan, got, &err));
            for (size_t at = 0; at < sizeof(got); at++) {
                uint8_t want = (uint8_t)(cases[i].element >> 8 * (at % size));
                assert_int_equal(got[at], at < leaf.bytes ? want : 0xa5);
            }
        }
    }
    struct error err;
    uint8_t got[4];
    const struct call_leaf wrong = {
        .encoding = CALL_FILL, .shape = {1, {4}}, .bytes = 4, .data = span_str("256")};
    assert_fails(err, call_decode_leaf(&wrong, DT_U8, &nan, got, &err), ST_INVALID, ".fill");
}

static void examples_are_requests(void **state)
{
    (void)state;
    static const struct shape shapes[4] = {{2, {2, 3}}};
    struct fixture f;
    struct buf out;
    set_up(&f);
    buf_init(&out, 4096);
    call_print_example(&f.method, shapes, &out);
    assert_true(span_is(buf_span(&out), "{\"args\":[{\"bar\":1,\"foo\":[[0,0,0],[0,0,0]]},null,5],"
                                        "\"kwargs\":{\"kw\":\"\"}}"));
    struct oip_body body = {.json = buf_span(&out)};
    assert_ok(f.err, call_parse(&body, &f.method, &limits, &f.arena, &f.request, NULL, &f.err));
    buf_fini(&out);
    arena_fini(&f.arena);
}

static void results_have_schemas(void **state)
{
    (void)state;
    static const struct call_io named[] = {
        {.kind = CALL_TENSOR,
         .dtype = DT_F32,
         .shape = {2, {-1, 3}},
         .name = "found",
         .answer = CALL_BOXES},
        {.kind = CALL_SCALAR, .dtype = DT_BOOL, .name = "is_sure"},
        {.kind = CALL_NONE},
    };
    struct fixture f;
    struct buf out;
    set_up(&f);
    f.method.results = named;
    buf_init(&out, 4096);
    call_print_result_schema(&f.method, "/o", &out);
    assert_true(span_is(
        buf_span(&out),
        "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"},"
        "{\"title\":\"found\",\"description\":\"float32[?,3]\",\"anyOf\":[{\"type\":\"array\","
        "\"items\":{\"type\":\"array\",\"items\":{\"$ref\":\"/o#/components/schemas/Box\"}}},"
        "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":[\"number\","
        "\"string\","
        "\"null\"]}}}]},{\"type\":\"null\"},{\"type\":\"object\",\"properties\":{\"t\":"
        "{\"title\":\"is_sure\",\"description\":\"bool\",\"anyOf\":[{\"type\":\"boolean\"}]},"
        "\"u\":{\"type\":\"null\"}},\"required\":[\"t\",\"u\"]}]}"));
    buf_fini(&out);
    arena_fini(&f.arena);
}

static void nesting_is_printed(void **state)
{
    (void)state;
    static const uint8_t bytes[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static const struct {
        struct shape shape;
        const char *text;
    } cases[] = {
        {{0, {0}}, "0"},
        {{1, {0}}, "[]"},
        {{1, {2}}, "[0,1]"},
        {{2, {0, 3}}, "[]"},
        {{2, {2, 0}}, "[[],[]]"},
        {{3, {2, 0, 3}}, "[[],[]]"},
        {{3, {2, 2, 1}}, "[[[0],[1]],[[2],[3]]]"},
        {{3, {2, 3, 2}}, "[[[0,1],[2,3],[4,5]],[[6,7],[8,9],[10,11]]]"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf out;
        buf_init(&out, 256);
        tensor_text_print_nested(&out, DT_U8, &cases[i].shape, bytes, NUMBER_NAN_STRING);
        if (!span_is(buf_span(&out), cases[i].text)) {
            fail_msg("'%.*s', expected '%s'", SPAN_FMT(buf_span(&out)), cases[i].text);
        }
        buf_fini(&out);
    }
}

static void base64_is_strict(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        const char *decoded; /* NULL: refused */
    } cases[] = {
        {"", 0, ""},
        {"Zg==", 1, "f"},
        {"Zm8=", 2, "fo"},
        {"Zm9v", 3, "foo"},
        {"+/+/", 3, "\xfb\xff\xbf"},
        {"Zm9vYg==", 4, "foob"},
        {"Zh==", 1, NULL},
        {"Zm9=", 2, NULL},
        {"Zg=A", 1, NULL},
        {"Zm9=", 3, NULL},
        {"Z===", 1, NULL},
        {"Zm v", 3, NULL},
        {"Zm-_", 3, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[8] = {0};
        struct error err;
        enum status status = base64_decode(span_str(cases[i].text), bytes, cases[i].bytes, &err);
        assert_int_equal(status == ST_OK, cases[i].decoded != NULL);
        if (cases[i].decoded) {
            assert_memory_equal(bytes, cases[i].decoded, cases[i].bytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_are_found),
        cmocka_unit_test(bytes_follow_the_text),
        cmocka_unit_test(arguments_by_name),
        cmocka_unit_test(empty_arrays_keep_the_other_dims_of_their_shape),
        cmocka_unit_test(mistakes_have_a_path),
        cmocka_unit_test(all_arguments_may_be_keywords),
        cmocka_unit_test(elements_are_read_strictly),
        cmocka_unit_test(answers_have_the_structure),
        cmocka_unit_test(parameters_stand_beside_the_arguments),
        cmocka_unit_test(leaves_may_be_promised),
        cmocka_unit_test(filled_leaves),
        cmocka_unit_test(examples_are_requests),
        cmocka_unit_test(results_have_schemas),
        cmocka_unit_test(nesting_is_printed),
        cmocka_unit_test(base64_is_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
