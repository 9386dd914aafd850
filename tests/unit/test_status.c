/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

static void test_prefix(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(error_set(&err, ST_CORRUPT, "table %d", 7), ST_CORRUPT);
    assert_int_equal(error_prefix(&err, "plan \"%s\": ", "forward"), ST_CORRUPT);
    assert_string_equal(err.text, "plan \"forward\": table 7");
    assert_int_equal(error_set(NULL, ST_INVALID, "nobody listens"), ST_INVALID);
}

static void test_cut_not_overrun(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct error err;
    error_set(&err, ST_INVALID, "%s", text);
    assert_int_equal(strlen(err.text), ERROR_TEXT_MAX - 1);
    error_prefix(&err, "p: ");
    assert_int_equal(strlen(err.text), ERROR_TEXT_MAX - 1);
    assert_memory_equal(err.text, "p: xx", 5);
    error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.text), ERROR_TEXT_MAX - 1);
}

/* Logs have what stands in front of a client's words, also if these are cut. */
static void test_hidden(void **state)
{
    (void)state;
    char text[ERROR_TEXT_MAX], long_prefix[ERROR_TEXT_MAX];
    struct error err;
    error_set(&err, ST_INVALID, "my secret");
    assert_string_equal(error_log_text(&err, text), "my secret");
    assert_int_equal(error_hide(&err), ST_INVALID);
    assert_string_equal(error_log_text(&err, text), "(only the client is told)");
    error_prefix(&err, "line %d: ", 7);
    assert_string_equal(err.text, "line 7: my secret");
    assert_string_equal(error_log_text(&err, text), "line 7: (only the client is told)");
    memset(long_prefix, 'p', sizeof(long_prefix));
    long_prefix[sizeof(long_prefix) - 4] = '\0';
    error_prefix(&err, "%s", long_prefix);
    assert_int_equal(err.hidden_len, 0); /* nothing is left of them */
    assert_string_equal(error_log_text(&err, text), err.text);
    error_set(&err, ST_INVALID, "plain");
    assert_string_equal(error_log_text(&err, text), "plain");
}

static void test_every_status_has_words(void **state)
{
    (void)state;
    for (int code = 0; code < STATUS_COUNT; code++) {
        assert_true(strlen(status_text(code)) > 0);
    }
    assert_string_equal(status_text(STATUS_COUNT), "unknown status");
}

static void test_errno(void **state)
{
    (void)state;
    assert_int_equal(status_of_errno(ENOENT), ST_NOT_FOUND);
    assert_int_equal(status_of_errno(EACCES), ST_UNAVAILABLE);
    assert_int_equal(status_of_errno(ENOMEM), ST_EXHAUSTED);
    assert_int_equal(status_of_errno(EIO), ST_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix), cmocka_unit_test(test_cut_not_overrun),
        cmocka_unit_test(test_hidden), cmocka_unit_test(test_every_status_has_words),
        cmocka_unit_test(test_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
