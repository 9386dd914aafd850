/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "server/cli/target.h"

/* |text| means these parts. */
static void expect_target(const char *text, const char *base, const char *socket, const char *model,
                          const char *version)
{
    struct target target;
    struct error err;
    if (target_parse(text, &target, &err) != ST_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    assert_string_equal(target.base, base);
    assert_string_equal(target.socket, socket);
    assert_string_equal(target.model, model);
    assert_string_equal(target.version, version);
}

static void test_servers(void **state)
{
    (void)state;
    expect_target("http://h", "http://h", "", "", "");
    expect_target("http://h/", "http://h", "", "", "");
    expect_target("http://h/v2", "http://h", "", "", "");
    expect_target("http://h/v2/", "http://h", "", "", "");
    expect_target("http://h/v2/models", "http://h", "", "", "");
    expect_target("https://h.example:8443", "https://h.example:8443", "", "", "");
    expect_target("http://127.0.0.1:65535", "http://127.0.0.1:65535", "", "", "");
    expect_target("http://[::1]", "http://[::1]", "", "", "");
    expect_target("http://[fe80::1%25eth0]:8000", "http://[fe80::1%25eth0]:8000", "", "", "");
    expect_target("http://h/ml/v2", "http://h/ml", "", "", "");
    expect_target("http://h/a/b%20c//v2/models/", "http://h/a/b%20c", "", "", "");
    expect_target("unix:/run/pted.sock", "http://localhost", "/run/pted.sock", "", "");
    expect_target("unix:s", "http://localhost", "s", "", "");
    expect_target("unix:/a:b", "http://localhost", "/a:b", "", "");
    expect_target("unix:/a:/", "http://localhost", "/a", "", "");
    expect_target("unix:@name", "http://localhost", "name", "", "");
    expect_target("unix:./@name", "http://localhost", "./@name", "", "");
}

static void test_models(void **state)
{
    (void)state;
    expect_target("http://h/m", "http://h", "", "m", "");
    expect_target("http://h/m/", "http://h", "", "m", "");
    expect_target("http://h/m/versions/3", "http://h", "", "m", "3");
    expect_target("http://h:1/v2/models/m", "http://h:1", "", "m", "");
    expect_target("http://h/v2/models/m/infer", "http://h", "", "m", "");
    expect_target("http://h/v2/models/m/versions/12/call", "http://h", "", "m", "12");
    expect_target("http://h/p/v2/models/v2", "http://h/p", "", "v2", "");
    expect_target("http://h/a%20b%2e", "http://h", "", "a b.", "");
    expect_target("http://h/m.encode", "http://h", "", "m.encode", "");
    expect_target("http://h/\xc3\xa9", "http://h", "", "\xc3\xa9", "");
    expect_target("unix:/s:/m", "http://localhost", "/s", "m", "");
    expect_target("unix:/a:/b:/m", "http://localhost", "/a:/b", "m", "");
    expect_target("unix:@n:/v2/models/m", "http://localhost", "n", "m", "");
}

static void test_texts(void **state)
{
    (void)state;
    struct target target;
    struct error err;
    assert_int_equal(target_parse("http://h:8000/p/v2/models/m", &target, &err), ST_OK);
    assert_string_equal(target.text, "http://h:8000/p");
    assert_int_equal(target_parse("unix:@n:/m", &target, &err), ST_OK);
    assert_string_equal(target.text, "unix:@n");
    assert_true(target.is_abstract);
    assert_true(target_is_one("unix:x") && target_is_one("http://") && target_is_one("https://x"));
    assert_true(target_is_one("localhost:8000") && target_is_one("[::1]:80/m"));
    assert_false(target_is_one("localhost") || target_is_one("[::1]") || target_is_one("./a:1") ||
                 target_is_one("a:x") || target_is_one("a:99999") || target_is_one("x.pte"));
    struct target bare;
    assert_ok(err, target_parse_model("localhost:8000/add", &bare, &err));
    assert_string_equal(bare.base, "http://localhost:8000");
    assert_string_equal(bare.model, "add");
    assert_false(target_is_one("http:/x") || target_is_one("./unix:x") || target_is_one(""));
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "h",
        "ftp://h",
        "http:/h",
        "HTTP",
        "http://",
        "http:///",
        "http://:80",
        "http://h:",
        "http://h:0",
        "http://h:65536",
        "http://h:-1",
        "http://h:8x",
        "http://h:000001",
        "http://h:99999999999999999999",
        "http://h:80:80",
        "http://[",
        "http://[]",
        "http://[::1",
        "http://[::1]x",
        "http://[::1]:",
        "http://[g h]",
        "http://::1",
        "http://h_\xc3\xa9",
        "http://a b",
        "http://h/a b",
        "http://h\n",
        "http://h/\x7f",
        "http://h/m?q",
        "http://h?q",
        "http://h#f",
        "http://h/m#f",
        "http://u@h",
        "http://u:p@h/m",
        "http://h/a/b",
        "http://h/m/versions",
        "http://h/m/versions/",
        "http://h/m/version/1",
        "http://h/m/versions/1/infer",
        "http://h/m/infer",
        "http://h/%",
        "http://h/%4",
        "http://h/%4g",
        "http://h/%00",
        "http://h/%0a",
        "http://h/%2f",
        "http://h/.",
        "http://h/..",
        "http://h/%2e%2e",
        "http://h/v2/m",
        "http://h/v2/models/m/nope",
        "http://h/v2/models/m/infer/x",
        "http://h/v2/models/m/versions",
        "http://h/<>/v2",
        "unix:",
        "unix:@",
        "unix::/m",
        "unix:@:/m",
        "unix:/s:/a/b",
        "unix:/s:/..",
        "unix:/s:/m?q",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct target target;
        struct error err = {.text = ""};
        if (target_parse(texts[i], &target, &err) != ST_INVALID) {
            fail_msg("'%s' is taken: %s %s %s", texts[i], target.base, target.socket, target.model);
        }
        assert_true(err.text[0] != '\0');
    }
}

/* |before|, |count| times |c|, |behind|. */
static enum status parse_long(const char *before, char c, size_t count, const char *behind)
{
    struct target target;
    struct error err;
    size_t len = strlen(before);
    char *text = malloc(len + count + strlen(behind) + 1);
    assert_non_null(text);
    memcpy(text, before, len);
    memset(text + len, c, count);
    memcpy(text + len + count, behind, strlen(behind) + 1);
    enum status status = target_parse(text, &target, &err);
    free(text);
    return status;
}

static void test_lengths(void **state)
{
    (void)state;
    assert_int_equal(parse_long("http://h/", 'm', TARGET_NAME_MAX, ""), ST_OK);
    assert_int_equal(parse_long("http://h/", 'm', TARGET_NAME_MAX + 1, ""), ST_INVALID);
    assert_int_equal(parse_long("http://h/m/versions/", '1', TARGET_VERSION_MAX, ""), ST_OK);
    assert_int_equal(parse_long("http://h/m/versions/", '1', TARGET_VERSION_MAX + 1, ""),
                     ST_INVALID);
    assert_int_equal(parse_long("http://", 'h', TARGET_BASE_MAX - 7, ""), ST_OK);
    assert_int_equal(parse_long("http://", 'h', TARGET_BASE_MAX - 6, ""), ST_INVALID);
    assert_int_equal(parse_long("http://h/", 'p', TARGET_BASE_MAX - 9, "/v2"), ST_OK);
    assert_int_equal(parse_long("http://h/", 'p', TARGET_BASE_MAX, "/v2"), ST_INVALID);
    assert_int_equal(parse_long("unix:/", 's', TARGET_SOCKET_MAX - 1, ":/m"), ST_OK);
    assert_int_equal(parse_long("unix:/", 's', TARGET_SOCKET_MAX, ":/m"), ST_INVALID);
    assert_int_equal(parse_long("http://h/", '/', 100000, "m"), ST_OK);
    assert_int_equal(parse_long("http://h/", '%', 100000, ""), ST_INVALID);
}

static void test_kinds(void **state)
{
    (void)state;
    struct target target;
    struct error err;
    assert_int_equal(target_parse_model("http://h/m", &target, &err), ST_OK);
    assert_int_equal(target_parse_model("http://h", &target, &err), ST_INVALID);
    assert_non_null(strstr(err.text, "http://HOST:PORT/MODEL"));
    assert_int_equal(target_parse_server("http://h", &target, &err), ST_OK);
    assert_int_equal(target_parse_server("http://h/m", &target, &err), ST_INVALID);
    assert_int_equal(target_parse("http://u:secret@h", &target, &err), ST_INVALID);
    assert_null(strstr(err.text, "secret"));
}

static void test_paths(void **state)
{
    (void)state;
    struct target target;
    struct error err;
    struct buf out;
    buf_init(&out, 1024);
    assert_int_equal(target_parse("http://h/a%20%2e%c3%a9/versions/1%3f", &target, &err), ST_OK);
    target_print_path(&target, "/infer", &out);
    buf_add(&out, "", 1);
    assert_string_equal((const char *)out.ptr, "/v2/models/a%20.%C3%A9/versions/1%3F/infer");
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers), cmocka_unit_test(test_models),
        cmocka_unit_test(test_texts),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
