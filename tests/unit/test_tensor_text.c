/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/tensor_text.h"
#include "tests/unit/unit.h"

/* Shapes as their rank and dims, for calls: SHAPE(2, 3, 4) is [3,4]. */
#define SHAPE(...) (&(const struct shape){__VA_ARGS__})
#define RANK0 SHAPE(.rank = 0)
#define RANK1(a) SHAPE(.rank = 1, .dims = {a})
#define RANK2(a, b) SHAPE(.rank = 2, .dims = {a, b})
#define RANK3(a, b, c) SHAPE(.rank = 3, .dims = {a, b, c})

/* Text and elements are in blocks of exactly their size, at odd addresses, for the sanitizers. */
static enum status parse(const char *text, enum dtype dtype, const struct shape *shape, void *out,
                         struct error *err)
{
    size_t len = strlen(text), bytes = (size_t)shape_numel(shape) * dtype_bytes(dtype);
    uint8_t *copy = malloc(len + 1), *dst = malloc(bytes + 1);
    assert_non_null(copy);
    assert_non_null(dst);
    memcpy(copy + 1, text, len);
    struct tensor_nan nan = {.takes_null = false};
    enum status status =
        tensor_text_parse(span_of(copy + 1, len), dtype, shape, &nan, dst + 1, bytes, err);
    if (status == ST_OK && bytes) {
        memcpy(out, dst + 1, bytes);
    }
    free(copy);
    free(dst);
    return status;
}

static void check_refused(const char *text, enum dtype dtype, const struct shape *shape,
                          const char *expected)
{
    uint8_t out[256];
    struct error err = {.text = ""};
    if (parse(text, dtype, shape, out, &err) != ST_INVALID || strcmp(err.text, expected) != 0) {
        fail_msg("'%s': text is '%s', expected '%s'", text, err.text, expected);
    }
}

static void test_floats(void **state)
{
    (void)state;
    struct error err;
    float f[6];
    double d[2];
    assert_ok(err, parse("[1,-2.5,0.1,1e-3,16777217,-0]", DT_F32, RANK2(2, 3), f, &err));
    assert_true(f[0] == 1 && f[1] == -2.5f && f[2] == 0.1f && f[3] == 1e-3f && f[4] == 16777216);
    assert_true(f[5] == 0 && signbit(f[5]));
    assert_ok(err, parse(" [ [ NaN , Infinity ,\n-Infinity ] , [1 , 2,\t3 ] ] ", DT_F32,
                         RANK2(2, 3), f, &err));
    assert_true(isnan(f[0]) && f[1] == INFINITY && f[2] == -INFINITY && f[5] == 3);
    assert_ok(err, parse("[0.1,1.7976931348623157e308]", DT_F64, RANK1(2), d, &err));
    assert_true(d[0] == 0.1 && d[1] == DBL_MAX);
    assert_ok(err, parse("[2.5]", DT_F32, RANK0, f, &err));
    assert_true(f[0] == 2.5f);
    check_refused("[1e39]", DT_F32, RANK1(1),
                  "[0]: 1e39 is out of the range of FP32 (up to 3.4028235e38)");
    check_refused("[1,1e309]", DT_F64, RANK1(2),
                  "[1]: 1e309 is out of the range of FP64 (up to 1.7976931348623157e308)");
}

static void test_narrow_floats(void **state)
{
    (void)state;
    struct error err;
    uint16_t h[4];
    assert_ok(err, parse("[1,-0.1,65504,-Infinity]", DT_F16, RANK1(4), h, &err));
    assert_true(h[0] == 0x3c00 && h[1] == 0xae66 && h[2] == 0x7bff && h[3] == 0xfc00);
    assert_ok(err, parse("[1,-0.1,3.0e38,NaN]", DT_BF16, RANK1(4), h, &err));
    assert_true(h[0] == 0x3f80 && h[1] == 0xbdcd && h[2] == 0x7f62 && (h[3] & 0x7fff) > 0x7f80);
    check_refused("[65520]", DT_F16, RANK1(1),
                  "[0]: 65520 is out of the range of FP16 (up to 65504)");
    check_refused("[3.4e38]", DT_BF16, RANK1(1),
                  "[0]: 3.4e38 is out of the range of BF16 (up to 3.3895314e38)");
}

/* NaN and the infinities in the default form, as bare words, and as null on request. */
static void test_nan(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[\"NaN\",\"Infinity\",\"-Infinity\",1]", "[ \"NaN\" , \"Infinity\" , \"-Infinity\" , 1 ]",
        "[\"\\u004eaN\",\"Infinit\\u0079\",\"\\u002dInfinity\",1]", "[NaN,Infinity,-Infinity,1]"};
    struct error err;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        float f[4];
        double d[4];
        uint16_t h[4], b[4];
        struct span text = span_str(texts[i]);
        struct tensor_nan nan = {.takes_null = i % 2};
        assert_ok(err, tensor_text_parse(text, DT_F32, RANK1(4), &nan, f, sizeof(f), &err));
        assert_ok(err, tensor_text_parse(text, DT_F64, RANK1(4), &nan, d, sizeof(d), &err));
        assert_ok(err, tensor_text_parse(text, DT_F16, RANK1(4), &nan, h, sizeof(h), &err));
        assert_ok(err, tensor_text_parse(text, DT_BF16, RANK1(4), &nan, b, sizeof(b), &err));
        assert_true(isnan(f[0]) && f[1] == INFINITY && f[2] == -INFINITY && f[3] == 1);
        assert_true(isnan(d[0]) && d[1] == INFINITY && d[2] == -INFINITY && d[3] == 1);
        assert_true((h[0] & 0x7fff) > 0x7c00 && h[1] == 0x7c00 && h[2] == 0xfc00 && h[3] == 0x3c00);
        assert_true((b[0] & 0x7fff) > 0x7f80 && b[1] == 0x7f80 && b[2] == 0xff80 && b[3] == 0x3f80);
        assert_int_equal(nan.has_tokens, i == 3);
    }
    float f[2];
    struct tensor_nan nan = {.takes_null = true};
    struct span text = span_str("[null,2]");
    assert_ok(err, tensor_text_parse(text, DT_F32, RANK1(2), &nan, f, sizeof(f), &err));
    assert_true(isnan(f[0]) && f[1] == 2 && !nan.has_tokens);
    assert_fails(err, tensor_text_parse(text, DT_I32, RANK1(2), &nan, f, sizeof(f), &err),
                 ST_INVALID, "[0]: expected an integer, got null");
    nan.takes_null = false;
    assert_fails(err, tensor_text_parse(text, DT_F32, RANK1(2), &nan, f, sizeof(f), &err),
                 ST_INVALID, "[0]: expected a number, got null");
    check_refused("[nan]", DT_F32, RANK1(1), "[0]: expected a number, got 'nan'");
    check_refused("[\"nan\"]", DT_F32, RANK1(1), "[0]: expected a number, got a string");
    check_refused("[\"1\"]", DT_F32, RANK1(1), "[0]: expected a number, got a string");
    check_refused("[\"NaN]", DT_F32, RANK1(1), "[0]: expected a number, got a string");
    check_refused("[\"NaN\"]", DT_I64, RANK1(1), "[0]: expected an integer, got a string");
    check_refused("[\"NaN\"]", DT_BOOL, RANK1(1), "[0]: expected a boolean, got a string");
    check_refused("[-Infinity]", DT_U8, RANK1(1), "[0]: expected an integer, got -Infinity");
    check_refused("[\"NaN\"1]", DT_F32, RANK1(2), "[1]: expected ',' or ']', got a number");
}

static void check_form(enum number_nan form, const char *expected)
{
    struct buf out;
    buf_init(&out, 1 << 10);
    const float f[] = {1, NAN, INFINITY, -INFINITY};
    tensor_text_print(&out, DT_F32, f, 4, form);
    tensor_text_print_nested(&out, DT_F32, RANK0, f + 1, form);
    tensor_text_print_nested(&out, DT_F64, RANK2(1, 1), &(double){-INFINITY}, form);
    tensor_text_print(&out, DT_F16, &(uint16_t){0x7c00}, 1, form);
    tensor_text_print(&out, DT_BF16, &(uint16_t){0x7fc0}, 1, form);
    tensor_text_print(&out, DT_I32, &(int32_t){7}, 1, form);
    buf_add_char(&out, '\0');
    assert_false(buf_failed(&out));
    assert_string_equal((const char *)out.ptr, expected);
    buf_fini(&out);
}

static void test_print_nan(void **state)
{
    (void)state;
    check_form(NUMBER_NAN_STRING, "[1.0,\"NaN\",\"Infinity\",\"-Infinity\"]\"NaN\"[[\"-Infinity\"]]"
                                  "[\"Infinity\"][\"NaN\"][7]");
    check_form(NUMBER_NAN_TOKEN, "[1.0,NaN,Infinity,-Infinity]NaN[[-Infinity]][Infinity][NaN][7]");
    check_form(NUMBER_NAN_NULL, "[1.0,null,null,null]null[[null]][null][null][7]");
}

/* The two ends of each type, and one step beyond either. */
static void check_range(enum dtype dtype, const char *low, const char *high, const char *below,
                        const char *above)
{
    char text[100], expected[160];
    uint8_t got[16], bytes[16] = {0};
    struct error err;
    size_t size = dtype_bytes(dtype);
    snprintf(text, sizeof(text), "[%s,%s]", low, high);
    assert_ok(err, parse(text, dtype, RANK1(2), got, &err));
    bool is_signed = dtype_infos[dtype].kind == DTYPE_INT;
    memset(bytes + size, 0xff, size);
    if (is_signed) {
        bytes[size - 1] = 0x80;
        bytes[2 * size - 1] = 0x7f;
    }
    assert_memory_equal(got, bytes, 2 * size);
    const char *const beyond[] = {below, above};
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "[%s]", beyond[i]);
        snprintf(expected, sizeof(expected), "[0]: %s is out of the range of %s (%s to %s)",
                 beyond[i], dtype_infos[dtype].oip, low, high);
        check_refused(text, dtype, RANK1(1), expected);
    }
}

static void test_integers(void **state)
{
    (void)state;
    check_range(DT_I8, "-128", "127", "-129", "128");
    check_range(DT_I16, "-32768", "32767", "-32769", "32768");
    check_range(DT_I32, "-2147483648", "2147483647", "-2147483649", "2147483648");
    check_range(DT_I64, "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
                "9223372036854775808");
    check_range(DT_U8, "0", "255", "-1", "256");
    check_range(DT_U16, "0", "65535", "-1", "65536");
    check_range(DT_U32, "0", "4294967295", "-1", "4294967296");
    check_range(DT_U64, "0", "18446744073709551615", "-1", "18446744073709551616");
    check_refused("[1.0]", DT_I32, RANK1(1), "[0]: expected an integer, got 1.0");
    check_refused("[7,1e2]", DT_U8, RANK1(2), "[1]: expected an integer, got 1e2");
    check_refused("[NaN]", DT_I32, RANK1(1), "[0]: expected an integer, got NaN");
    check_refused("[01]", DT_I32, RANK1(1), "[0]: malformed number 01");
    check_refused("[true]", DT_I32, RANK1(1), "[0]: expected an integer, got a boolean");
    check_refused("[99999999999999999999999]", DT_I64, RANK1(1),
                  "[0]: 99999999999999999999999 is out of the range of INT64 "
                  "(-9223372036854775808 to 9223372036854775807)");
}

static void test_booleans(void **state)
{
    (void)state;
    struct error err;
    uint8_t b[4];
    assert_ok(err, parse("[true, false,1 ,0]", DT_BOOL, RANK1(4), b, &err));
    assert_memory_equal(b, "\1\0\1\0", 4);
    check_refused("[2]", DT_BOOL, RANK1(1), "[0]: 2 is out of the range of BOOL (0 to 1)");
    check_refused("[1.0]", DT_BOOL, RANK1(1), "[0]: expected an integer, got 1.0");
    check_refused("[tru]", DT_BOOL, RANK1(1), "[0]: expected true or false, got another word");
    check_refused("[truefalse]", DT_BOOL, RANK1(1), ": expected ']', got a boolean");
    check_refused("[\"true\"]", DT_BOOL, RANK1(1), "[0]: expected a boolean, got a string");
}

static void test_nesting(void **state)
{
    (void)state;
    struct error err;
    int32_t v[12];
    assert_ok(err, parse("[[[1,2],[3,4],[5,6]],[[7,8],[9,10],[11,12]]]", DT_I32, RANK3(2, 3, 2), v,
                         &err));
    for (int i = 0; i < 12; i++) {
        assert_int_equal(v[i], i + 1);
    }
    assert_ok(err, parse("[12,11,10,9,8,7,6,5,4,3,2,1]", DT_I32, RANK3(2, 3, 2), v, &err));
    assert_int_equal(v[11], 1);
    assert_ok(err,
              parse("[[[[[[[[[[[[[[[[7]]]]]]]]]]]]]]]]", DT_I32,
                    SHAPE(.rank = 16, .dims = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), v,
                    &err));
    assert_int_equal(v[0], 7);
    check_refused("[[1,2],[3,4,5]]", DT_I32, RANK2(2, 2),
                  "[1]: expected 2 elements (shape [2,2]), got 3");
    check_refused("[[1,2],[3]]", DT_I32, RANK2(2, 2),
                  "[1]: expected 2 elements (shape [2,2]), got 1");
    check_refused("[[1,2]]", DT_I32, RANK2(2, 2), ": expected 2 elements (shape [2,2]), got 1");
    check_refused("[[1,2],[3,4],[5,6]]", DT_I32, RANK2(2, 2),
                  ": expected 2 elements (shape [2,2]), got 3");
    check_refused("[[1,2],3,4]", DT_I32, RANK2(2, 2), "[1]: expected an array, got a number");
    check_refused("[1,2,[3,4]]", DT_I32, RANK2(2, 2), "[2]: expected an integer, got an array");
    check_refused("[[1,2],[3,[4]]]", DT_I32, RANK2(2, 2),
                  "[1][1]: expected an integer, got an array");
    check_refused("[[[1,2],[3,4]]]", DT_I32, RANK2(2, 2),
                  "[0][0]: expected an integer, got an array");
    check_refused("[[1,2] [3,4]]", DT_I32, RANK2(2, 2), ": expected ',' or ']', got an array");
    check_refused("[[1,2],[3,\"x\"]]", DT_I32, RANK2(2, 2),
                  "[1][1]: expected an integer, got a string");
}

static void test_counts(void **state)
{
    (void)state;
    check_refused("[]", DT_F32, RANK1(2), ": expected 2 elements (shape [2]), got 0");
    check_refused("[1]", DT_F32, RANK2(1, 2), ": expected 2 elements (shape [1,2]), got 1");
    check_refused("[1,2,3]", DT_F32, RANK1(2), ": expected 2 elements (shape [2]), got 3");
    check_refused("[1,2, \"],\" ,[4,[5]],{\"a\":1}, 7 ]", DT_F32, RANK1(2),
                  ": expected 2 elements (shape [2]), got 6");
    check_refused("[1,2, ]", DT_F32, RANK1(2), ": trailing comma: JSON has none before ']'");
    check_refused("[1,]", DT_F32, RANK1(2), "[1]: trailing comma: JSON has none before ']'");
    check_refused("[[1,2],]", DT_F32, RANK2(2, 2), "[1]: trailing comma: JSON has none before ']'");
    check_refused("[,1]", DT_F32, RANK1(2), "[0]: expected a number, got ','");
    check_refused("[1 2]", DT_F32, RANK1(2), "[1]: expected ',' or ']', got a number");
    check_refused("[1,2 3]", DT_F32, RANK1(2), ": expected ']', got a number");
    check_refused("[1,2", DT_F32, RANK1(2), ": expected ']', got the end of the text");
    check_refused("[1,", DT_F32, RANK1(2), "[1]: expected a number, got the end of the text");
    check_refused("[1", DT_F32, RANK1(2), "[1]: expected ',' or ']', got the end of the text");
    check_refused("[", DT_F32, RANK1(2), "[0]: expected a number, got the end of the text");
    check_refused("", DT_F32, RANK1(2), ": expected an array, got the end of the text");
    check_refused("5", DT_F32, RANK0, ": expected an array, got a number");
    check_refused("[1,2]]", DT_F32, RANK1(2), ": expected the end of the array, got ']'");
    check_refused("[1,null]", DT_F32, RANK1(2), "[1]: expected a number, got null");
    check_refused("[1,1.]", DT_F32, RANK1(2), "[1]: malformed number 1.");
}

static void test_count(void **state)
{
    static const struct {
        const char *text;
        size_t count;
    } cases[] = {
        {"[]", 0},           {"[ ]", 0},        {"[1]", 1}, {"[[1, 2],[3]]", 3}, {"[[[]],[[]]]", 0},
        {"[\"a,b]\",2]", 2}, {"[true,null", 2}, {"", 0},    {"[1,2,]", 2},       {"[1],[2]", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tensor_text_count(span_str(cases[i].text)), cases[i].count);
    }
}

/* |rest|: what stands behind the array. */
static void check_passed(const char *text, const char *rest, const struct shape *expected)
{
    struct error err = {0};
    struct shape shape, measured;
    size_t len = strlen(text);
    char *copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy + 1, text, len); /* no NUL behind it, at an odd address */
    const uint8_t *from = (const uint8_t *)copy + 1, *end = from + len;
    const uint8_t *behind = tensor_text_pass(from, end, &shape);
    if (!expected) {
        assert_null(behind);
    } else {
        assert_non_null(behind);
        assert_int_equal(end - behind, strlen(rest));
        assert_true(shape_equal(&shape, expected));
        assert_ok(err,
                  tensor_text_measure(span_of(from, (size_t)(behind - from)), &measured, &err));
        assert_true(shape_equal(&shape, &measured));
    }
    free(copy);
}

static void test_pass(void **state)
{
    (void)state;
    check_passed("[1,2,3]", "", RANK1(3));
    check_passed("[1,2,3],\"x\":[4]", ",\"x\":[4]", RANK1(3));
    check_passed("[ -1.5e+3 ,\n2 ]", "", RANK1(2));
    check_passed("[[1,2,3],[4,5,6]]]", "]", RANK2(2, 3));
    check_passed("[ [ [1] , [2] ] ]", "", RANK3(1, 2, 1));
    check_passed("[]", "", RANK1(0));
    check_passed("[[],[]]", "", RANK2(2, 0));
    check_passed("[[1,2],[3]]", NULL, NULL);
    check_passed("[[1],2]", NULL, NULL);
    check_passed("[1,[2]]", NULL, NULL);
    check_passed("[[[1]],[2]]", NULL, NULL);
    check_passed("[[1],[[2]]]", NULL, NULL);
    check_passed("[1,\"NaN\"]", NULL, NULL);
    check_passed("[1,NaN]", NULL, NULL);
    check_passed("[{}]", NULL, NULL);
    check_passed("[1,2", NULL, NULL);
    check_passed("[[1],[2]", NULL, NULL);
    check_passed("[", NULL, NULL);
    check_passed("", NULL, NULL);
    check_passed("1", NULL, NULL);
    char deep[2 * SHAPE_RANK_MAX + 4] = "";
    memset(deep, '[', SHAPE_RANK_MAX + 1);
    memset(deep + SHAPE_RANK_MAX + 1, ']', SHAPE_RANK_MAX + 1);
    check_passed(deep, NULL, NULL);
}

static void test_zero_size(void **state)
{
    (void)state;
    struct error err;
    float none;
    assert_ok(err, parse("[]", DT_F32, RANK1(0), &none, &err));
    assert_ok(err, parse("[ ]", DT_F32, RANK2(0, 3), &none, &err));
    assert_ok(err, parse("[[],[]]", DT_F32, RANK2(2, 0), &none, &err));
    assert_ok(err, parse("[]", DT_F32, RANK3(2, 0, 3), &none, &err));
    assert_ok(err, parse("[[],[]]", DT_F32, RANK3(2, 0, 3), &none, &err));
    check_refused("[1]", DT_F32, RANK1(0), ": expected 0 elements (shape [0]), got 1");
    check_refused("[[1]]", DT_F32, RANK2(1, 0), "[0]: expected 0 elements (shape [1,0]), got 1");
    check_refused("[[1,2,3]]", DT_F32, RANK2(0, 3), ": expected 0 elements (shape [0,3]), got 1");
    check_refused("[[]]", DT_F32, RANK2(2, 0), ": expected 2 elements (shape [2,0]), got 1");
}

static void test_bytes_min(void **state)
{
    (void)state;
    assert_int_equal(tensor_text_bytes_min(0), 2);
    assert_int_equal(tensor_text_bytes_min(1), 3);
    assert_int_equal(tensor_text_bytes_min(3), 7);
    assert_true(tensor_text_bytes_min(INT64_MAX) == SIZE_MAX);
}

static void test_strings(void **state)
{
    (void)state;
    struct arena arena;
    struct error err;
    struct span *s;
    const char *text = "[[\"plain\",\"\"],[\"a\\u0000b\",\"\xc3\xa9]\"]]";
    arena_init(&arena, 1000);
    assert_ok(err, tensor_text_parse_strings(span_str(text), RANK2(2, 2), &arena, &s, &err));
    assert_true(span_is(s[0], "plain") && s[1].len == 0 && span_equal(s[2], span_of("a\0b", 3)) &&
                span_is(s[3], "\xc3\xa9]"));
    assert_ptr_equal(s[0].ptr, text + 3);
    assert_fails(err, tensor_text_parse_strings(span_str("[\"a\",5]"), RANK1(2), &arena, &s, &err),
                 ST_INVALID, "[1]: expected a string, got a number");
    assert_fails(err, tensor_text_parse_strings(span_str("[\"a\\q\"]"), RANK1(1), &arena, &s, &err),
                 ST_INVALID, "[0]: unknown escape in a string");
    assert_fails(err, tensor_text_parse_strings(span_str("[\"\xff\"]"), RANK1(1), &arena, &s, &err),
                 ST_INVALID, "[0]: invalid UTF-8");
    assert_fails(err, tensor_text_parse_strings(span_str("[\"a\"]"), RANK1(2), &arena, &s, &err),
                 ST_INVALID, "expected 2 elements (shape [2]), got 1");
    assert_fails(err, tensor_text_parse_strings(span_str("[]"), RANK1(1 << 30), &arena, &s, &err),
                 ST_INVALID, ": expected 1073741824 strings, got 0");
    arena_fini(&arena);
    arena_init(&arena, 40);
    assert_fails(err,
                 tensor_text_parse_strings(span_str("[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]"),
                                           RANK1(8), &arena, &s, &err),
                 ST_TOO_LARGE, ": the request needs more than 40 bytes");
    arena_fini(&arena);
    arena_init(&arena, 32);
    assert_fails(err,
                 tensor_text_parse_strings(span_str("[\"\\n0123456789012345678901234\"]"), RANK1(1),
                                           &arena, &s, &err),
                 ST_TOO_LARGE, "[0]: the request needs more than");
    arena_fini(&arena);
}

static void check_print(enum dtype dtype, const void *src, size_t count, const char *expected)
{
    struct buf out;
    buf_init(&out, 10000);
    tensor_text_print(&out, dtype, src, count, NUMBER_NAN_STRING);
    assert_false(buf_failed(&out));
    buf_add_char(&out, '\0');
    assert_string_equal((const char *)out.ptr, expected);
    buf_fini(&out);
}

static void test_print(void **state)
{
    (void)state;
    check_print(DT_F32, (const float[]){1, 0.1f, NAN, -INFINITY}, 4,
                "[1.0,0.1,\"NaN\",\"-Infinity\"]");
    check_print(DT_F64, (const double[]){0.1, -1e300}, 2, "[0.1,-1e300]");
    check_print(DT_F16, (const uint16_t[]){0x3c00, 0x7c00}, 2, "[1.0,\"Infinity\"]");
    check_print(DT_BF16, (const uint16_t[]){0xbf80, 0x7fc0}, 2, "[-1.0,\"NaN\"]");
    check_print(DT_I8, (const int8_t[]){-128, 127}, 2, "[-128,127]");
    check_print(DT_I16, (const int16_t[]){-32768, 5}, 2, "[-32768,5]");
    check_print(DT_I32, (const int32_t[]){INT32_MIN, 0}, 2, "[-2147483648,0]");
    check_print(DT_I64, (const int64_t[]){INT64_MIN, 9007199254740993}, 2,
                "[-9223372036854775808,9007199254740993]");
    check_print(DT_U8, (const uint8_t[]){255}, 1, "[255]");
    check_print(DT_U16, (const uint16_t[]){65535}, 1, "[65535]");
    check_print(DT_U32, (const uint32_t[]){UINT32_MAX}, 1, "[4294967295]");
    check_print(DT_U64, (const uint64_t[]){UINT64_MAX}, 1, "[18446744073709551615]");
    check_print(DT_BOOL, (const uint8_t[]){0, 1, 2}, 3, "[false,true,true]");
    check_print(DT_F32, NULL, 0, "[]");
}

/* Printed text reads back to the same bytes, also across the chunks of the printer. */
static void test_round_trip(void **state)
{
    (void)state;
    enum { BYTES = 8 * 333 };
    struct tensor_nan nan = {.takes_null = false};
    uint8_t bytes[BYTES], back[BYTES];
    uint32_t seed = 7;
    for (int i = 0; i < BYTES; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24 & (i % 2 ? 0x3f : 0xff)); /* no NaN among the floats */
    }
    for (int dtype = 0; dtype < DTYPE_COUNT && dtype_is_public((enum dtype)dtype); dtype++) {
        int64_t count = BYTES / (int64_t)dtype_bytes((enum dtype)dtype);
        struct buf out;
        struct error err;
        if (dtype == DT_BOOL) {
            for (int i = 0; i < BYTES; i++) {
                bytes[i] &= 1;
            }
        }
        buf_init(&out, 100000);
        tensor_text_print(&out, (enum dtype)dtype, bytes, (size_t)count, NUMBER_NAN_STRING);
        assert_false(buf_failed(&out));
        assert_ok(err, tensor_text_parse(buf_span(&out), (enum dtype)dtype, RANK1(count), &nan,
                                         back, BYTES, &err));
        assert_memory_equal(back, bytes, BYTES);
        buf_fini(&out);
    }
}

static void test_print_limits(void **state)
{
    (void)state;
    struct buf out;
    const float values[100] = {0};
    buf_init(&out, 200);
    tensor_text_print(&out, DT_F32, values, 100, NUMBER_NAN_STRING);
    assert_true(buf_failed(&out));
    buf_fini(&out);
    buf_init(&out, 1000);
    tensor_text_print_strings(&out, (const struct span[]){span_str("a\"b"), span_str("")}, 2);
    assert_true(span_is(buf_span(&out), "[\"a\\\"b\",\"\"]"));
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),     cmocka_unit_test(test_narrow_floats),
        cmocka_unit_test(test_nan),        cmocka_unit_test(test_print_nan),
        cmocka_unit_test(test_integers),   cmocka_unit_test(test_booleans),
        cmocka_unit_test(test_nesting),    cmocka_unit_test(test_counts),
        cmocka_unit_test(test_count),      cmocka_unit_test(test_zero_size),
        cmocka_unit_test(test_pass),       cmocka_unit_test(test_bytes_min),
        cmocka_unit_test(test_strings),    cmocka_unit_test(test_print),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_print_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
