/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "server/http/multipart.h"

#define TYPE "multipart/form-data; boundary=xx"
#define PART(name, data)                                                                           \
    "--xx\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" data "\r\n"

static enum status open_body(struct multipart *m, const char *type, const char *body,
                             struct error *err)
{
    err->text[0] = '\0';
    return multipart_init(m, span_str(type), span_str(body), err);
}

static void expect_part(struct multipart *m, const char *name, const char *data)
{
    struct multipart_part part;
    struct error err;
    bool is_found;
    assert_int_equal(multipart_next(m, &part, &is_found, &err), ST_OK);
    assert_int_equal(is_found, name != NULL);
    if (name) {
        assert_true(span_is(part.name, name));
        assert_true(span_is(part.data, data));
    }
}

static void test_fields(void **state)
{
    struct multipart m;
    struct error err;
    (void)state;
    assert_int_equal(
        open_body(&m, TYPE, PART("a", "1") PART("b", "") PART("c", "y--xx\r\n--x") "--xx--", &err),
        ST_OK);
    expect_part(&m, "a", "1");
    expect_part(&m, "b", "");
    expect_part(&m, "c", "y--xx\r\n--x");
    expect_part(&m, NULL, NULL);
    expect_part(&m, NULL, NULL);
}

static void test_forms(void **state)
{
    struct multipart m;
    struct multipart_part part;
    struct error err;
    bool is_found;
    (void)state;
    assert_int_equal(open_body(&m, "Multipart/Form-Data; a=b; BOUNDARY=\"x y'(z\"",
                               "this is not read\r\n--x y'(z \t\r\ncontent-type: audio/wav \r\n"
                               "CONTENT-DISPOSITION : form-data ; filename=\"a;\\\".wav\" ; name=f"
                               "\r\n\r\nR\r\n--x y'(z--and more",
                               &err),
                     ST_OK);
    assert_int_equal(multipart_next(&m, &part, &is_found, &err), ST_OK);
    assert_true(is_found);
    assert_true(span_is(part.name, "f"));
    assert_true(span_is(part.filename, "a;\\\".wav"));
    assert_true(span_is(part.content_type, "audio/wav"));
    assert_true(span_is(part.data, "R"));
    expect_part(&m, NULL, NULL);
}

/* The error of a body that is wrong at its first part. */
static void expect_refusal(const char *type, const char *body, enum status code, const char *text)
{
    struct multipart m;
    struct multipart_part part;
    struct error err;
    bool is_found;
    enum status status = open_body(&m, type, body, &err);
    if (status == ST_OK) {
        status = multipart_next(&m, &part, &is_found, &err);
    }
    assert_int_equal(status, code);
    assert_string_equal(err.text, text);
}

static void test_refusals(void **state)
{
    (void)state;
    const char *const boundary =
        "Content-Type: expected a boundary of 1 to 70 letters, digits and signs";
    expect_refusal("application/json", "{}", ST_INVALID,
                   "Content-Type: expected multipart/form-data, got 'application/json'");
    expect_refusal("", "", ST_INVALID, "Content-Type: expected multipart/form-data, got ''");
    expect_refusal("multipart/form-data", "", ST_INVALID, boundary);
    expect_refusal("multipart/form-data; boundary=", "", ST_INVALID, boundary);
    expect_refusal("multipart/form-data; boundary=\"a \"", "", ST_INVALID, boundary);
    expect_refusal("multipart/form-data; boundary=\"a\xff\"", "", ST_INVALID, boundary);
    expect_refusal(TYPE, "", ST_INVALID, "multipart: the boundary is not in the body");
    expect_refusal(TYPE, "--xxyy\r\n", ST_INVALID,
                   "multipart: byte 4: expected the end of a line or -- behind a boundary");
    expect_refusal(TYPE, "--xx\r\nContent-Type: a\r\n\r\nb\r\n--xx--", ST_INVALID,
                   "multipart: part 1: expected Content-Disposition: form-data; name=\"...\"");
    expect_refusal(TYPE, "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n", ST_INVALID,
                   "multipart: part 1: the body ends within its head");
    expect_refusal(TYPE, "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb", ST_INVALID,
                   "multipart: part 1: the body ends within it");
}

static void test_limits(void **state)
{
    struct multipart m;
    struct buf body;
    struct error err;
    (void)state;
    buf_init(&body, 1 << 20);
    for (int i = 0; i <= MULTIPART_PARTS_MAX; i++) {
        buf_add_str(&body, PART("a", "1"));
    }
    buf_add_str(&body, "--xx--");
    assert_int_equal(multipart_init(&m, span_str(TYPE), buf_span(&body), &err), ST_OK);
    for (int i = 0; i < MULTIPART_PARTS_MAX; i++) {
        expect_part(&m, "a", "1");
    }
    struct multipart_part part;
    bool is_found;
    assert_int_equal(multipart_next(&m, &part, &is_found, &err), ST_INVALID);
    assert_string_equal(err.text, "multipart: expected at most 64 parts");

    buf_reset(&body);
    buf_add_str(&body, "--xx\r\nX: ");
    buf_add_fill(&body, 'y', MULTIPART_HEAD_BYTES_MAX);
    buf_add_str(&body, "\r\n\r\n--xx--");
    assert_int_equal(multipart_init(&m, span_str(TYPE), buf_span(&body), &err), ST_OK);
    assert_int_equal(multipart_next(&m, &part, &is_found, &err), ST_INVALID);
    assert_string_equal(err.text, "multipart: part 1: its head has more than 4096 bytes");
    buf_fini(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
