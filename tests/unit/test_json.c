/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/json.h"
#include "tests/unit/unit.h"

/* Skips a copy of |text| without a terminator, so that a read beyond its end is found. */
static enum status skip_text(const char *text, size_t len, struct error *err)
{
    uint8_t *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    struct json in;
    json_init(&in, span_of(copy, len));
    enum status status = json_skip(&in, err);
    if (status == ST_OK) {
        status = json_end(&in, err);
    }
    free(copy);
    return status;
}

static void check_refused(const char *text, const char *part)
{
    struct error err = {.text = ""};
    if (skip_text(text, strlen(text), &err) != ST_INVALID || !strstr(err.text, part)) {
        fail_msg("'%s': text is '%s', expected '%s' in it", text, err.text, part);
    }
}

static void test_accepted(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "0",
        "-1.5e+3",
        "\"\"",
        "true",
        "false",
        "null",
        " \t\r\n[ ] \n",
        "[[],{}]",
        "{\"a\":1,\"b\":[true,null,{\"a\":\"x\"}],\"\":0}",
        "[NaN,Infinity,-Infinity]",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\uD834\\udd1e\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e\"",
        "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"",
        "123456789012345678901234567890e-5",
        "{\"a\":{\"a\":{\"a\":1}},\"A\":1}",
        "[{\"k\":1},{\"k\":1}]",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct error err;
        assert_ok(err, skip_text(texts[i], strlen(texts[i]), &err));
    }
}

/* The whole message: its path names keys and items that have begun, and nothing else. */
static void check_message(const char *text, const char *whole)
{
    struct error err;
    assert_int_equal(skip_text(text, strlen(text), &err), ST_INVALID);
    assert_string_equal(err.text, whole);
}

static void test_paths_of_errors(void **state)
{
    (void)state;
    check_message("{", "expected a key, got the end of the text (byte 1)");
    check_message("{\"x\":{", "x: expected a key, got the end of the text (byte 6)");
    check_message("[{", "[0]: expected a key, got the end of the text (byte 2)");
    check_message("{\"x\":[1,", "x[1]: expected a value, got the end of the text (byte 8)");
}

static void test_refused(void **state)
{
    (void)state;
    check_refused("", "expected a value, got the end of the text (byte 0)");
    check_refused("  ", "(byte 2)");
    check_refused("{", "expected a key, got the end of the text (byte 1)");
    check_refused("[", "[0]: expected a value, got the end of the text (byte 1)");
    check_refused("]", "got ']'");
    check_refused("[1,]", "[1]: trailing comma: JSON has none before ']' (byte 3)");
    check_refused("[,1]", "[0]: expected a value, got ','");
    check_refused("[1 2]", "[0]: expected ',' or ']', got a number (byte 3)");
    check_refused("{\"a\":1, \n}", "a: trailing comma: JSON has none before '}' (byte 9)");
    check_refused("[,]", "[0]: expected a value, got ','");
    check_refused("{\"a\" 1}", "a: expected ':', got a number");
    check_refused("{\"a\":}", "a: expected a value, got '}'");
    check_refused("{\"a\":1 \"b\":2}", "expected ',' or '}', got a string");
    check_refused("{a:1}", "expected a key, got 'a'");
    check_refused("{'a':1}", "got '''");
    check_refused("{\"a\":1,\"a\":2}", "a: the key repeats");
    check_refused("{\"a\":1,\"\\u0061\":2}", "repeats in its object");
    check_refused("{\"x\":{\"\\u00e9\":1,\"\xc3\xa9\":2}}", "repeats in its object");
    check_refused("[1]]", "expected the end of the text, got ']' (byte 3)");
    check_refused("{} x", "got 'x' (byte 3)");
    check_refused("01", "malformed number");
    check_refused("1.", "malformed number");
    check_refused(".5", "got '.'");
    check_refused("+1", "got '+'");
    check_refused("-", "malformed number");
    check_refused("1e999", "1e999, which is out of range");
    check_refused("nul", "expected null, got another word");
    check_refused("tru", "expected true or false");
    check_refused("trueish", "got 'ish'");
    check_refused("Nan", "malformed number");
    check_refused("/* c */ 1", "got '/'");
    check_refused("\"a", "the text ends in a string (byte 2)");
    check_refused("\"a\\\"", "the text ends in a string");
    check_refused("\"\\", "unknown escape");
    check_refused("\"\\x\"", "unknown escape in a string (byte 1)");
    check_refused("\"\\u12\"", "malformed \\u escape");
    check_refused("\"\\u12G4\"", "malformed \\u escape");
    check_refused("\"\\ud800\"", "lone surrogate");
    check_refused("\"\\ud800\\u0041\"", "lone surrogate");
    check_refused("\"\\udc00\"", "lone surrogate");
    check_refused("\"\\ud834\\ud834\"", "lone surrogate");
    check_refused("\"a\nb\"", "control character");
    check_refused("[\"abcdefgh\x1f\"]", "[0]: control character in a string (byte 10)");
    check_refused("\x01", "got byte 0x01");
    check_refused("\"\x80\"", "invalid UTF-8");
    check_refused("\"\xc0\xaf\"", "invalid UTF-8");
    check_refused("\"\xc3\"", "invalid UTF-8");
    check_refused("\"\xe0\x80\xaf\"", "invalid UTF-8");
    check_refused("\"\xed\xa0\x80\"", "invalid UTF-8");
    check_refused("\"\xf0\x80\x80\x80\"", "invalid UTF-8");
    check_refused("\"\xf4\x90\x80\x80\"", "invalid UTF-8");
    check_refused("\"\xf5\x80\x80\x80\"", "invalid UTF-8");
    check_refused("\"\xe2\x82", "invalid UTF-8");
    check_refused("\xef\xbb\xbf{}", "got byte 0xef");
    struct error err;
    assert_fails(err, skip_text("1\0", 2, &err), ST_INVALID, "got byte 0x00");
    assert_fails(err, skip_text("\"a\0b\"", 5, &err), ST_INVALID, "control character");
}

/* Every proper prefix of a valid text is refused, and never read beyond its end. */
static void test_truncated(void **state)
{
    (void)state;
    static const char text[] =
        "{\"inputs\":[{\"name\":\"\\u00e9x\\n\",\"shape\":[1,2.5e-3],"
        "\"t\":true,\"n\":null,\"data\":[[NaN],-Infinity,\"\xe2\x82\xac\"]}]}";
    struct error err;
    assert_ok(err, skip_text(text, sizeof(text) - 1, &err));
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        assert_int_equal(skip_text(text, len, &err), ST_INVALID);
    }
}

static void test_limits(void **state)
{
    (void)state;
    static char text[100000];
    struct error err;
    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    assert_ok(err, skip_text(text, (size_t)2 * JSON_DEPTH_MAX, &err));
    memset(text, '[', sizeof(text));
    assert_fails(err, skip_text(text, sizeof(text), &err), ST_TOO_LARGE, "nested deeper than 64");

    size_t len = 0;
    for (int i = 0; i <= JSON_KEYS_MAX; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"k%d\":0", i ? "," : "{", i);
        if (i == JSON_KEYS_MAX - 1) {
            text[len] = '}';
            assert_ok(err, skip_text(text, len + 1, &err));
        }
    }
    assert_fails(err, skip_text(text, len, &err), ST_TOO_LARGE, "more than 320 keys");

    /* The keys of an object count toward the limit only while it is open. */
    len = 0;
    for (int i = 0; i < 1000; i++) {
        len +=
            (size_t)snprintf(text + len, sizeof(text) - len, "%s{\"a\":{\"b\":0}}", i ? "," : "[");
    }
    text[len++] = ']';
    assert_ok(err, skip_text(text, len, &err));
}

static void test_pull(void **state)
{
    (void)state;
    static const char text[] =
        "{\"i\":-9223372036854775808,\"u\":18446744073709551615,\"f\":1e-2,"
        "\"b\":true,\"n\":null,\"s\":\"a\\u0000\\ud834\\udd1e\\/\",\"a\":[1,2]}";
    struct json in;
    struct json_string key, string;
    struct error err;
    int64_t i;
    uint64_t u;
    double f;
    bool b;
    json_init(&in, span_str(text));
    assert_ok(err, json_object(&in, &err));
    assert_ok(err, json_member(&in, &key, &err));
    assert_true(json_string_is(&key, "i") && !json_string_is(&key, "ii") &&
                !json_string_is(&key, ""));
    assert_ok(err, json_read_i64(&in, &i, &err));
    assert_true(i == INT64_MIN);
    assert_ok(err, json_member(&in, &key, &err));
    assert_ok(err, json_read_u64(&in, &u, &err));
    assert_true(u == UINT64_MAX);
    assert_ok(err, json_member(&in, &key, &err));
    assert_int_equal(json_peek(&in), JSON_NUMBER);
    assert_ok(err, json_read_f64(&in, &f, &err));
    assert_true(f == 1e-2);
    assert_ok(err, json_member(&in, &key, &err));
    assert_ok(err, json_read_bool(&in, &b, &err));
    assert_true(b);
    assert_ok(err, json_member(&in, &key, &err));
    assert_ok(err, json_read_null(&in, &err));
    assert_ok(err, json_member(&in, &key, &err));
    assert_ok(err, json_read_string(&in, &string, &err));
    assert_int_equal(string.bytes, 7);
    uint8_t decoded[7];
    json_string_decode(&string, decoded);
    assert_memory_equal(decoded, "a\0\xf0\x9d\x84\x9e/", 7);
    assert_ok(err, json_member(&in, &key, &err));
    assert_ok(err, json_array(&in, &err));
    for (int64_t expected = 1; expected <= 2; expected++) {
        assert_ok(err, json_element(&in, &err));
        assert_false(in.is_closed);
        assert_ok(err, json_read_i64(&in, &i, &err));
        assert_int_equal(i, expected);
    }
    assert_ok(err, json_element(&in, &err));
    assert_true(in.is_closed);
    assert_ok(err, json_member(&in, &key, &err));
    assert_true(in.is_closed);
    assert_ok(err, json_end(&in, &err));
}

/* Reads {"a":[{"b": VALUE as an integer and checks the text of the failure. */
static void check_integer_error(const char *value, const char *expected)
{
    char text[100];
    struct json in;
    struct json_string key;
    struct error err;
    int64_t i = 0;
    snprintf(text, sizeof(text), "{\"a\":[0,{\"b\":%s", value);
    json_init(&in, span_str(text));
    assert_ok(err, json_object(&in, &err));
    assert_ok(err, json_member(&in, &key, &err));
    assert_ok(err, json_array(&in, &err));
    assert_ok(err, json_element(&in, &err));
    assert_ok(err, json_skip(&in, &err));
    assert_ok(err, json_element(&in, &err));
    assert_ok(err, json_object(&in, &err));
    assert_ok(err, json_member(&in, &key, &err));
    assert_int_equal(json_read_i64(&in, &i, &err), ST_INVALID);
    assert_string_equal(err.text, expected);
}

static void test_error_texts(void **state)
{
    (void)state;
    check_integer_error("\"x\"", "a[1].b: expected an integer, got a string (byte 13)");
    check_integer_error(" [1]", "a[1].b: expected an integer, got an array (byte 14)");
    check_integer_error("{}", "a[1].b: expected an integer, got an object (byte 13)");
    check_integer_error("true", "a[1].b: expected an integer, got a boolean (byte 13)");
    check_integer_error("null", "a[1].b: expected an integer, got null (byte 13)");
    check_integer_error("1.5", "a[1].b: expected an integer, got 1.5 (byte 13)");
    check_integer_error("1e3", "a[1].b: expected an integer, got 1e3 (byte 13)");
    check_integer_error("9223372036854775808",
                        "a[1].b: expected an integer, got 9223372036854775808, which is out of "
                        "range (byte 13)");
    check_integer_error("", "a[1].b: expected an integer, got the end of the text (byte 13)");
}

/* A long key does not make the path longer than an error text. */
static void test_long_path(void **state)
{
    (void)state;
    static char text[20000];
    size_t len = 0;
    for (int i = 0; i < JSON_DEPTH_MAX; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "{\"%0200d\":", i);
    }
    struct error err;
    assert_int_equal(skip_text(text, len, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "got the end of the text (byte "));
}

static void check_array_text(const char *text, size_t expected)
{
    struct json in;
    struct error err;
    struct span array;
    json_init(&in, span_str(text));
    assert_ok(err, json_array_text(&in, &array, &err));
    assert_ptr_equal(array.ptr, text);
    assert_int_equal(array.len, expected);
    assert_ptr_equal(in.at, text + expected);
}

static void test_array_text(void **state)
{
    (void)state;
    check_array_text("[]", 2);
    check_array_text("[1,2],\"x\"]", 5);
    check_array_text("[[1,[2]],[]]]", 12);
    check_array_text("[\"]\",\"\\\"]\"] ", 11);
    char text[400] = "[";
    for (size_t len = 1; len < 300; len++) {
        memset(text + 1, '1', sizeof(text) - 1);
        text[len] = ']';
        text[sizeof(text) - 1] = '\0';
        check_array_text(text, len + 1);
    }
    struct json in;
    struct error err;
    struct span array;
    json_init(&in, span_str("[1,[2],3"));
    assert_fails(err, json_array_text(&in, &array, &err), ST_INVALID, "ends in an array (byte 8)");
    json_init(&in, span_str("[\"\\q\"]"));
    assert_fails(err, json_array_text(&in, &array, &err), ST_INVALID, "unknown escape");
    json_init(&in, span_str("5"));
    assert_fails(err, json_array_text(&in, &array, &err), ST_INVALID,
                 "expected an array, got a number");
}

static void check_print(const char *text, size_t len, const char *expected)
{
    struct buf out;
    struct error err;
    buf_init(&out, 1000);
    json_print_string(&out, span_of(text, len));
    assert_false(buf_failed(&out));
    assert_ok(err, skip_text((const char *)out.ptr, out.len, &err));
    buf_add_char(&out, '\0');
    assert_string_equal((const char *)out.ptr, expected);
    buf_fini(&out);
}

/* A character that needs an escape, at each place of texts of all lengths that are copied in one
 * piece, and some that are not. */
static void test_print_escapes(void **state)
{
    static const char specials[] = "\"\\\n\x7f\xc3";
    (void)state;
    for (size_t len = 1; len < 48; len++) {
        for (size_t place = 0; place < len; place++) {
            for (const char *special = specials; *special; special++) {
                char text[48], expected[64];
                memset(text, 'a', len);
                text[place] = *special;
                const char *shown = *special == '\n'     ? "\\n"
                                    : *special == '"'    ? "\\\""
                                    : *special == '\\'   ? "\\\\"
                                    : *special == '\x7f' ? "\x7f"
                                                         : "\xef\xbf\xbd";
                snprintf(expected, sizeof(expected), "\"%.*s%s%.*s\"", (int)place, text, shown,
                         (int)(len - place - 1), text + place + 1);
                check_print(text, len, expected);
            }
        }
    }
}

static void test_print_string(void **state)
{
    (void)state;
    check_print("", 0, "\"\"");
    check_print("plain text", 10, "\"plain text\"");
    check_print("a\"b\\c/", 6, "\"a\\\"b\\\\c/\"");
    check_print("\b\f\n\r\t\x01\x1f\x7f", 8, "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    check_print("a\0b", 3, "\"a\\u0000b\"");
    check_print("\xc3\xa9\xf0\x9d\x84\x9e", 6, "\"\xc3\xa9\xf0\x9d\x84\x9e\"");
    check_print("a\xff"
                "b",
                3,
                "\"a\xef\xbf\xbd"
                "b\"");
    check_print("\xc3", 1, "\"\xef\xbf\xbd\"");
    check_print("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),      cmocka_unit_test(test_paths_of_errors),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_pull),
        cmocka_unit_test(test_error_texts),   cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_array_text),    cmocka_unit_test(test_print_string),
        cmocka_unit_test(test_print_escapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
