/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "server/process/file.h"
#include "server/process/log.h"

/* ---- escapes --------------------------------------------------------------------------------- */

static void assert_shown(const char *text, const char *expected)
{
    char out[256];
    size_t len = log_escape(out, sizeof(out), span_str(text));
    out[len] = '\0';
    assert_string_equal(out, expected);
}

static void ordinary_text_stays(void **state)
{
    (void)state;
    assert_shown("", "");
    assert_shown("GET /v2/models/a?b=c \"\\ ~", "GET /v2/models/a?b=c \"\\ ~");
    assert_shown("größe 模型 мод 🚀 é", "größe 模型 мод 🚀 é");
}

static void controls_are_shown(void **state)
{
    (void)state;
    assert_shown("a\nb\r\t\x1b[31m\x7f", "a\\x0ab\\x0d\\x09\\x1b[31m\\x7f");
    assert_shown("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "\\u{80}\\u{9b}\\u{9f}\xc2\xa0");
}

static void directions_and_line_ends_are_shown(void **state)
{
    (void)state;
    assert_shown("a\xe2\x80\xae"
                 "b",
                 "a\\u{202e}b");
    assert_shown("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\u{61c}\\u{200e}\\u{200f}");
    assert_shown("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\x81\xa6\xe2\x81\xa9",
                 "\\u{2028}\\u{2029}\\u{202a}\\u{2066}\\u{2069}");
    assert_shown("\xe2\x80\x8d\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
                 "\xe2\x80\x8d\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa");
}

static void broken_utf8_is_shown_byte_by_byte(void **state)
{
    (void)state;
    assert_shown("\xff\x80z", "\\xff\\x80z");
    assert_shown("\xc3(", "\\xc3(");                          /* a sequence breaks off */
    assert_shown("\xc0\xaf", "\\xc0\\xaf");                   /* overlong */
    assert_shown("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* a surrogate */
    assert_shown("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
    assert_shown("\xe2\x80", "\\xe2\\x80");                   /* cut off */
}

/* Nothing is written beyond |size|, and no UTF-8 sequence or escape is cut in two. */
static void what_does_not_fit_is_left_out_whole(void **state)
{
    (void)state;
    struct span text = span_str("a\xe2\x82\xac\x1b!");
    static const size_t expected[] = {0, 1, 1, 1, 4, 4, 4, 4, 8, 9, 9};
    for (size_t size = 0; size < sizeof(expected) / sizeof(expected[0]); size++) {
        char *out = malloc(size + 1);
        assert_non_null(out);
        out[size] = '#';
        assert_int_equal(log_escape(out, size, text), expected[size]);
        assert_int_equal(out[size], '#');
        free(out);
    }
}

/* Eight characters are looked at in one piece. */
static void each_byte_is_shown_at_each_place(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 20; at++) {
            char text[20], out[32], expected[32];
            bool is_plain = byte >= 0x20 && byte < 0x7f;
            memset(text, '~', sizeof(text));
            text[at] = (char)byte;
            snprintf(expected, sizeof(expected), is_plain ? "%c" : "\\x%02x", (int)byte);
            size_t shown = is_plain ? 1 : 4;
            size_t len = log_escape(out, sizeof(out), span_of(text, sizeof(text)));
            assert_int_equal(len, sizeof(text) - 1 + shown);
            assert_memory_equal(out, text, at);
            assert_memory_equal(out + at, expected, shown);
            assert_memory_equal(out + at + shown, text + at + 1, sizeof(text) - at - 1);
        }
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static char folder[] = "/tmp/pted-test-log-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[64];
    for (const char *const *name = (const char *const[]){"log", "old", NULL}; *name; name++) {
        snprintf(path, sizeof(path), "%s/%s", folder, *name);
        unlink(path);
    }
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char paths[2][64];
    static unsigned next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

/* Checks that the file has |count| lines and that one of them ends with |text|. */
static void assert_logged(const char *path, const char *text, size_t count)
{
    struct buf content;
    struct error err;
    buf_init(&content, 1 << 20);
    assert_ok(err, file_read(path, &content, &err));
    buf_add_char(&content, '\0');
    char wanted[128];
    snprintf(wanted, sizeof(wanted), "%s\n", text);
    if (!strstr((const char *)content.ptr, wanted)) {
        fail_msg("no line ends with '%s': %s", text, (const char *)content.ptr);
    }
    size_t lines = 0;
    for (const uint8_t *p = content.ptr; *p; p++) {
        lines += *p == '\n';
    }
    assert_int_equal(lines, count);
    buf_fini(&content);
}

static void lines_go_to_the_end_of_a_file(void **state)
{
    (void)state;
    struct error err;
    static char path[64];
    snprintf(path, sizeof(path), "%s/log", folder);
    assert_ok(err, log_open(path, LOG_INFO, &err));
    assert_string_equal(log_path(), path);
    log_line(LOG_INFO, "%s", "one\ntwo");
    log_line(LOG_DEBUG, "not this one");
    assert_logged(path, " info: one\\x0atwo", 1);
    assert_int_equal(rename(path, path_of("old")), 0);
    log_line(LOG_WARNING, "to the renamed one");
    assert_ok(err, log_reopen(&err));
    log_line(LOG_ERROR, "to the new one");
    assert_logged(path_of("old"), " warning: to the renamed one", 2);
    assert_logged(path, " error: to the new one", 1);
    char big[5000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    log_line(LOG_INFO, "%s", big);
    assert_logged(path, "xxxxxxxx", 2);
}

static void a_file_that_cannot_be_opened_is_named(void **state)
{
    (void)state;
    struct error err;
    assert_fails(err, log_open("/nonexistent/log", LOG_INFO, &err), ST_NOT_FOUND,
                 "log file /nonexistent/log: No such file");
    assert_ok(err, log_open(NULL, LOG_INFO, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_text_stays),
        cmocka_unit_test(controls_are_shown),
        cmocka_unit_test(directions_and_line_ends_are_shown),
        cmocka_unit_test(each_byte_is_shown_at_each_place),
        cmocka_unit_test(broken_utf8_is_shown_byte_by_byte),
        cmocka_unit_test(what_does_not_fit_is_left_out_whole),
        cmocka_unit_test(lines_go_to_the_end_of_a_file),
        cmocka_unit_test(a_file_that_cannot_be_opened_is_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
