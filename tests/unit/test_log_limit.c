/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "server/process/file.h"
#include "server/process/log.h"
#include "server/process/log_limit.h"

#define S 1000000000u

static uint64_t now_ns;
static struct log_limits limits;
static char path[] = "/tmp/pted-test-log-limit-XXXXXX";

static uint64_t look_at_clock(void)
{
    return now_ns;
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static int begin(void **state)
{
    (void)state;
    struct error err;
    now_ns = 1000 * (uint64_t)S;
    if (limits.magic) {
        log_limits_fini(&limits); /* of the test before */
    }
    log_limits_init(&limits, look_at_clock);
    return truncate(path, 0) < 0 || log_open(path, LOG_INFO, &err) != ST_OK ? -1 : 0;
}

/* The lines of the log without their times. */
static void assert_log(const char *expected)
{
    struct buf content, text;
    struct error err;
    buf_init(&content, 1 << 16);
    buf_init(&text, 1 << 16);
    assert_ok(err, file_read(path, &content, &err));
    buf_add_char(&content, '\0');
    char *rest = (char *)content.ptr;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        buf_add_str(&text, strchr(line, ' ') + 1);
        buf_add_char(&text, '\n');
    }
    buf_add_char(&text, '\0');
    assert_string_equal((const char *)text.ptr, expected);
    buf_fini(&text);
    buf_fini(&content);
}

static uint32_t admit(enum log_kind kind, uint32_t count)
{
    uint32_t admitted = 0;
    for (uint32_t i = 0; i < count; i++) {
        admitted += log_limits_admit(&limits, kind, SHARE_NOBODY);
    }
    return admitted;
}

static void beyond_so_many_lines_are_counted(void **state)
{
    (void)state;
    assert_int_equal(admit(LOG_KIND_REFUSED, 1254), LOG_LIMIT_LINES);
    assert_log("");
    assert_true(log_limits_flush(&limits, false)); /* the window is open */
    assert_log("");
    now_ns += (uint64_t)LOG_LIMIT_S * S;
    assert_false(log_limits_flush(&limits, false));
    assert_log("info: 1234 similar lines suppressed in 10 s: requests answered 4xx\n");
    assert_false(log_limits_flush(&limits, false)); /* once */
    assert_false(log_limits_flush(&limits, true));
    assert_log("info: 1234 similar lines suppressed in 10 s: requests answered 4xx\n");
}

static void the_next_line_ends_a_window_too(void **state)
{
    (void)state;
    assert_int_equal(admit(LOG_KIND_FAILED, LOG_LIMIT_LINES + 1), LOG_LIMIT_LINES);
    now_ns += (uint64_t)LOG_LIMIT_S * S - 1;
    assert_int_equal(admit(LOG_KIND_FAILED, 1), 0);
    now_ns++;
    assert_int_equal(admit(LOG_KIND_FAILED, LOG_LIMIT_LINES), LOG_LIMIT_LINES);
    assert_log("warning: 2 similar lines suppressed in 10 s: requests answered 5xx\n");
    assert_int_equal(admit(LOG_KIND_FAILED, 1), 0);
}

static void a_window_begins_with_its_first_line(void **state)
{
    (void)state;
    assert_int_equal(admit(LOG_KIND_ACCEPT, 1), 1);
    now_ns += 25 * (uint64_t)S;
    assert_int_equal(admit(LOG_KIND_ACCEPT, LOG_LIMIT_LINES), LOG_LIMIT_LINES);
    now_ns += 9 * (uint64_t)S;
    assert_int_equal(admit(LOG_KIND_ACCEPT, 1), 0);
    assert_log("");
}

/* One client leaves some lines of each kind to the others. */
static void clients_do_not_crowd_each_other_out(void **state)
{
    (void)state;
    uint32_t first = 0, second = 0;
    for (uint32_t i = 0; i < 100; i++) {
        first += log_limits_admit(&limits, LOG_KIND_REFUSED, 1);
    }
    assert_true(first > LOG_LIMIT_LINES / 2 && first < LOG_LIMIT_LINES);
    for (uint32_t i = 0; i < 100; i++) {
        second += log_limits_admit(&limits, LOG_KIND_REFUSED, 2);
    }
    assert_true(second > 0);
    assert_int_equal(log_limits_stats(&limits).most_held, first);
    assert_int_equal(log_limits_stats(&limits).used, first + second);
    now_ns += (uint64_t)LOG_LIMIT_S * S;
    for (uint32_t i = 0; i < first; i++) {
        assert_true(log_limits_admit(&limits, LOG_KIND_REFUSED, 1));
    }
    assert_int_equal(log_limits_stats(&limits).client_count, 1);
    assert_int_equal(log_limits_stats(&limits).refused_count, 200 - first - second);
}

static void kinds_do_not_share(void **state)
{
    (void)state;
    assert_int_equal(admit(LOG_KIND_REFUSED, LOG_LIMIT_LINES + 5), LOG_LIMIT_LINES);
    assert_int_equal(admit(LOG_KIND_ACCEPT, LOG_LIMIT_LINES + 7), LOG_LIMIT_LINES);
    log_limits_flush(&limits, true);
    assert_log("info: 5 similar lines suppressed in 10 s: requests answered 4xx\n"
               "warning: 7 similar lines suppressed in 10 s: connections not taken\n");
}

static void debugging_shows_all(void **state)
{
    (void)state;
    struct error err;
    assert_ok(err, log_open(path, LOG_DEBUG, &err));
    assert_int_equal(admit(LOG_KIND_REFUSED, 1000), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(beyond_so_many_lines_are_counted, begin),
        cmocka_unit_test_setup(the_next_line_ends_a_window_too, begin),
        cmocka_unit_test_setup(a_window_begins_with_its_first_line, begin),
        cmocka_unit_test_setup(clients_do_not_crowd_each_other_out, begin),
        cmocka_unit_test_setup(kinds_do_not_share, begin),
        cmocka_unit_test_setup(debugging_shows_all, begin),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
