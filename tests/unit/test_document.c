/* SPDX-License-Identifier: MIT */
/* Documents: which texts are accepted, the values read from them, and the positions in errors. */
#include "config.h"

#include "server/process/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static const struct document_limits limits = {.bytes_max = 1 << 16, .values_max = 100};

static enum status parse(const char *text, struct document *out, struct error *err)
{
    return document_parse(span_str(text), &limits, out, err);
}

/* The text is refused with exactly this message. */
static void check_refused(struct span text, enum status status, const char *message)
{
    struct document document;
    struct error err = {0};
    assert_int_equal(document_parse(text, &limits, &document, &err), status);
    assert_string_equal(err.text, message);
}

static void test_grammar(void **state)
{
    static const char *const rows[][2] = {
        {"", "expected a value, got the end of the file (line 1, column 1)"},
        {" \n ", "expected a value, got the end of the file (line 2, column 2)"},
        {"[1 2]", "expected ',' or ']', got '2' (line 1, column 4)"},
        {"[1/2]", "expected ',' or ']', got '/' (line 1, column 3)"},
        {"[1]/", "expected the end of the file, got '/' (line 1, column 4)"},
        {"[1] x", "expected the end of the file, got 'x' (line 1, column 5)"},
        {"{} {}", "expected the end of the file, got '{' (line 1, column 4)"},
        {"[1,]", "trailing comma: JSON has none before ']' (line 1, column 4)"},
        {"[,1]", "expected a value, got ',' (line 1, column 2)"},
        {"{\"a\":1,}", "trailing comma: JSON has none before '}' (line 1, column 8)"},
        {"{a:1}", "expected a key, got 'a' (line 1, column 2)"},
        {"{\"a\" 1}", "expected ':', got '1' (line 1, column 6)"},
        {"{\"a\":}", "expected a value, got '}' (line 1, column 6)"},
        {"{\"a\":1\n\"b\":2}", "expected ',' or '}', got '\"' (line 2, column 1)"},
        {"{\"a\":[1}", "expected ',' or ']', got '}' (line 1, column 8)"},
        {"[1", "expected ',' or ']', got the end of the file (line 1, column 3)"},
        {"]", "expected a value, got ']' (line 1, column 1)"},
        {"[tr ue]", "expected true, false or null, got another word (line 1, column 2)"},
        {"[nul]", "expected true, false or null, got another word (line 1, column 2)"},
        {"[truex]", "expected ',' or ']', got 'x' (line 1, column 6)"},
        {"'a'", "expected a value, got ''' (line 1, column 1)"},
        {"\xef\xbb\xbf[]", "expected a value, got 0xef (line 1, column 1)"},
        {"[\x0b]", "expected a value, got 0x0b (line 1, column 2)"},
        {"[\x01\"a\"]", "expected a value, got 0x01 (line 1, column 2)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_refused(span_str(rows[i][0]), ST_INVALID, rows[i][1]);
    }
}

static void test_strings(void **state)
{
    static const char *const rows[][2] = {
        {"[\"abc", "the text ends in a string (line 1, column 6)"},
        {"[\"abc\\", "unknown escape in a string (line 1, column 6)"},
        {"[\"\\uZZZZ\"]", "malformed \\u escape or lone surrogate in a string (line 1, column 3)"},
        {"[\"\\ud800\"]", "malformed \\u escape or lone surrogate in a string (line 1, column 3)"},
        {"[\"\\udc00\\ud800\"]",
         "malformed \\u escape or lone surrogate in a string (line 1, column 3)"},
        {"[\"\\x41\"]", "unknown escape in a string (line 1, column 3)"},
        {"[\"a\x01\"]", "control character in a string (line 1, column 4)"},
        {"[\"a\n\"]", "control character in a string (line 1, column 4)"},
        {"[\"a\\u0000\"]", "expected text without NUL (line 1, column 2)"},
        {"{\"a\\u0000\":1}", "expected text without NUL (line 1, column 2)"},
        {"[\"\xc3\xa9\xff\"]", "invalid UTF-8 (line 1, column 4)"},
        {"[\"\xed\xa0\x80\"]", "invalid UTF-8 (line 1, column 3)"},
        {"[\"\xc0\x80\"]", "invalid UTF-8 (line 1, column 3)"},
        {"[] // \xff", "invalid UTF-8 (line 1, column 7)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_refused(span_str(rows[i][0]), ST_INVALID, rows[i][1]);
    }
    check_refused(span_of("[1,\0 2]", 7), ST_INVALID, "NUL in the text (line 1, column 4)");
    check_refused(span_of("[\"\0\"]", 5), ST_INVALID, "NUL in the text (line 1, column 3)");
    check_refused(span_of("[]\0", 3), ST_INVALID, "NUL in the text (line 1, column 3)");
}

static void test_numbers(void **state)
{
    static const char *const malformed[] = {"01",  "1.",  "-.5",  "-",         "1e",
                                            "1e+", "-01", "-NaN", "-Infinity", "1.e5"};
    char text[128];
    (void)state;
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        struct document document;
        struct error err = {0};
        snprintf(text, sizeof(text), "[%s]", malformed[i]);
        assert_int_equal(parse(text, &document, &err), ST_INVALID);
    }
    check_refused(span_str("[-.5]"), ST_INVALID, "malformed number (line 1, column 2)");
    check_refused(span_str("[NaN]"), ST_INVALID, "expected a value, got 'N' (line 1, column 2)");
    check_refused(span_str("[1e999]"), ST_INVALID, "the number is out of range (line 1, column 2)");
    snprintf(text, sizeof(text), "[%064d]", 0);
    text[1] = '1';
    check_refused(span_str(text), ST_TOO_LARGE,
                  "the number has more than 63 characters (line 1, column 2)");
}

static void test_bounds(void **state)
{
    struct document document;
    struct error err = {0};
    char text[512];
    (void)state;
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    check_refused(span_of(text, 130), ST_TOO_LARGE,
                  "the values are nested deeper than 64 (line 1, column 65)");
    assert_ok(err, document_parse(span_of(text + 1, 128), &limits, &document, &err));
    document_close(&document);
    memset(text, '[', 500);
    check_refused(span_of(text, 500), ST_TOO_LARGE,
                  "the values are nested deeper than 64 (line 1, column 65)");
    text[0] = '[';
    for (int i = 0; i < 100; i++) {
        memcpy(text + 1 + 2 * i, "0,", 2);
    }
    text[200] = ']'; /* room for the last comma: the array and 100 numbers */
    check_refused(span_of(text, 201), ST_TOO_LARGE,
                  "the file has more than 100 values (line 1, column 200)");
    text[198] = ']';
    assert_ok(err, document_parse(span_of(text, 199), &limits, &document, &err));
    document_close(&document);
    char *large = malloc(limits.bytes_max + 1);
    assert_non_null(large);
    memset(large, ' ', limits.bytes_max + 1);
    large[0] = '1';
    assert_ok(err, document_parse(span_of(large, limits.bytes_max), &limits, &document, &err));
    document_close(&document);
    assert_int_equal(document_parse(span_of(large, limits.bytes_max + 1), &limits, &document, &err),
                     ST_TOO_LARGE);
    free(large);
}

/* cJSON_Minify() of cJSON 1.7.15 turns each of these into another document or an invalid one. */
static void test_comments(void **state)
{
    static const char text[] = "// first\n"
                               "{ \"path\": \"C:\\\\\", /* a */ \"url\" /**/ : // b \"\n"
                               "  \"http://x /* y */\", \"n\":[1,/*,*/2]}//";
    struct document document;
    struct error err = {0};
    const char *value;
    (void)state;
    assert_ok(err, parse(text, &document, &err));
    const struct cJSON *member = document_first(document.root);
    assert_ok(err, document_text(&document, member, &value, &err));
    assert_string_equal(value, "C:\\");
    member = document_next(member);
    assert_true(document_is(member, "url"));
    assert_ok(err, document_text(&document, member, &value, &err));
    assert_string_equal(value, "http://x /* y */");
    const struct cJSON *list = document_next(member);
    assert_null(document_next(list));
    assert_null(document_next(document_next(document_first(list))));
    document_close(&document);
    check_refused(span_str("[1]\n /* open"), ST_INVALID,
                  "the comment has no end (line 2, column 2)");
    check_refused(span_str("[1] /*/"), ST_INVALID, "the comment has no end (line 1, column 5)");
    check_refused(span_str("[1/**/2]"), ST_INVALID,
                  "expected ',' or ']', got '2' (line 1, column 7)");
    check_refused(span_str("/*\xc3\xa9\n*/ // \n  ]"), ST_INVALID,
                  "expected a value, got ']' (line 3, column 3)");
    check_refused(span_str("// all"), ST_INVALID,
                  "expected a value, got the end of the file (line 1, column 7)");
    check_refused(span_str("/"), ST_INVALID, "expected a value, got '/' (line 1, column 1)");
    check_refused(span_str("# x"), ST_INVALID, "expected a value, got '#' (line 1, column 1)");
}

static void test_members(void **state)
{
    (void)state;
    check_refused(span_str("{\"a\":1,\"b\":2,\"a\":3}"), ST_INVALID,
                  "a: the key repeats in its object (line 1, column 18)");
    check_refused(span_str("{\"x\":[{\"a\":1,\n \"\\u0061\":3}]}"), ST_INVALID,
                  "x[0].a: the key repeats in its object (line 2, column 11)");
    check_refused(span_str("{\"\":1,\"\":2}"), ST_INVALID,
                  "[\"\"]: the key repeats in its object (line 1, column 10)");
}

static void test_values(void **state)
{
    static const char text[] = "{\"i\": 18446744073709551615, \"f\": 1.0, \"e\": 1e2,\n"
                               " \"n\": -1, \"s\": \"\\u00e9\\n\", \"l\": [true, null, {}],\n"
                               " \"odd key\": {\"b\\u0007\": 9007199254740993}}";
    struct document document;
    struct error err = {0};
    const char *string;
    uint64_t number;
    (void)state;
    assert_ok(err, parse(text, &document, &err));
    const struct cJSON *at = document_first(document.root);
    assert_ok(err, document_u64(&document, at, UINT64_MAX, &number, &err));
    assert_true(number == UINT64_MAX);
    assert_fails(err, document_u64(&document, at, 100, &number, &err), ST_INVALID,
                 "i: expected a whole number from 0 to 100, got 18446744073709551615 (line 1, "
                 "column 7)");
    assert_fails(err, document_text(&document, at, &string, &err), ST_INVALID,
                 "i: expected a string, got a number (line 1, column 7)");
    at = document_next(at);
    assert_fails(err, document_u64(&document, at, 5, &number, &err), ST_INVALID,
                 "f: expected a whole number from 0 to 5, got 1.0 (line 1, column 34)");
    at = document_next(at);
    assert_fails(err, document_u64(&document, at, 500, &number, &err), ST_INVALID, "got 1e2");
    at = document_next(at);
    assert_fails(err, document_u64(&document, at, 5, &number, &err), ST_INVALID, "got -1 (line 2");
    at = document_next(at);
    assert_ok(err, document_text(&document, at, &string, &err));
    assert_string_equal(string, "\xc3\xa9\n");
    assert_fails(err, document_u64(&document, at, 5, &number, &err), ST_INVALID,
                 "s: expected a whole number, got a string");
    at = document_next(at);
    assert_int_equal(document_type(at), JSON_ARRAY);
    const struct cJSON *item = document_first(at);
    assert_int_equal(document_type(item), JSON_BOOL);
    item = document_next(item);
    assert_fails(err, document_need(&document, item, JSON_OBJECT, &err), ST_INVALID,
                 "l[1]: expected an object, got null (line 2, column 40)");
    item = document_next(item);
    assert_ok(err, document_need(&document, item, JSON_OBJECT, &err));
    assert_null(document_first(item));
    at = document_next(at);
    item = document_first(at);
    assert_ok(err, document_u64(&document, item, UINT64_MAX, &number, &err));
    assert_true(number == 9007199254740993); /* no double has this value */
    assert_fails(
        err, document_refuse_member(&document, item, "nothing", &err), ST_INVALID,
        "[\"odd key\"][\"b\\u0007\"]: unknown member, expected nothing (line 3, column 25)");
    document_close(&document);
}

/* A message has room for a part of a path. */
static void test_long_path(void **state)
{
    struct document document;
    struct error err = {0};
    char text[4096], *end = text;
    (void)state;
    for (int i = 0; i < 40; i++) {
        end += snprintf(end, 80, "{\"%070d\":", i);
    }
    *end++ = '1';
    memset(end, '}', 40);
    end += 40;
    assert_ok(err, document_parse(span_of(text, (size_t)(end - text)), &limits, &document, &err));
    const struct cJSON *at = document.root;
    while (document_first(at)) {
        at = document_first(at);
    }
    document_fail(&document, at, &err, ST_INVALID, "wrong");
    assert_non_null(strstr(err.text, ": wrong (line 1, column "));
    document_close(&document);
}

static void test_files(void **state)
{
    const char *folder = getenv("TMPDIR");
    struct document document;
    struct error err = {0};
    char path[1024];
    (void)state;
    assert_int_equal(document_open("nowhere.json", &limits, &document, &err), ST_NOT_FOUND);
    assert_int_not_equal(document_open("/", &limits, &document, &err), ST_OK);
    assert_fails(err, document_open("/dev/zero", &limits, &document, &err), ST_TOO_LARGE, "65536");
    snprintf(path, sizeof(path), "%s/test_document.XXXXXX", folder ? folder : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "[1] // one\n", 11), 11);
    close(fd);
    assert_ok(err, document_open(path, &limits, &document, &err));
    assert_int_equal(document_type(document.root), JSON_ARRAY);
    document_close(&document);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar),  cmocka_unit_test(test_strings),
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_comments), cmocka_unit_test(test_members),
        cmocka_unit_test(test_values),   cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
