/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <string.h>

#include "base/buf.h"
#include "tests/unit/unit.h"

static void test_append(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 1 << 20);
    for (int i = 0; i < 1000; i++) {
        buf_printf(&buf, "%d,", i);
    }
    buf_add_char(&buf, '.');
    assert_false(buf_failed(&buf));
    assert_int_equal(buf.len, 10 * 2 + 90 * 3 + 900 * 4 + 1);
    assert_memory_equal(buf.ptr, "0,1,2,", 6);
    buf_fini(&buf);
}

static void test_maximum_marks_failed(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 8);
    buf_add_str(&buf, "12345678");
    assert_false(buf_failed(&buf));
    buf_add_str(&buf, "9");
    assert_true(buf_failed(&buf));
    assert_int_equal(buf.len, 8);
    assert_null(buf_reserve(&buf, 0));
    buf_reset(&buf);
    buf_add_str(&buf, "ok");
    assert_true(span_is(buf_span(&buf), "ok"));
    assert_null(buf_reserve(&buf, SIZE_MAX));
    buf_fini(&buf);
    buf_fini(NULL);
}

/* Appends one byte at a time, all at once, or printed: each reaches the maximum and none exceeds
 * it. */
static void test_every_way_to_the_maximum(void **state)
{
    (void)state;
    struct buf buf;
    for (size_t max = 2; max < 300; max += 7) {
        buf_init(&buf, max);
        for (size_t i = 0; i < max; i++) {
            buf_add_char(&buf, 'a');
            assert_false(buf_failed(&buf));
        }
        buf_add_char(&buf, 'b');
        assert_true(buf_failed(&buf));
        assert_int_equal(buf.len, max);
        buf_add_char(&buf, 'c');
        assert_int_equal(buf.len, max);
        buf_reset(&buf);
        buf_add_fill(&buf, ' ', 0);
        buf_add_fill(&buf, 'x', max);
        assert_int_equal(buf.len, max);
        assert_int_equal(buf.ptr[max - 1], 'x');
        buf_add_fill(&buf, 'x', 1);
        assert_true(buf_failed(&buf));
        buf_reset(&buf);
        buf_printf(&buf, "%*d", (int)max - 1, 7); /* and a NUL, which does not count */
        assert_false(buf_failed(&buf));
        buf_printf(&buf, "%s", "ab");
        assert_true(buf_failed(&buf));
        buf_printf(&buf, "%s", "");
        assert_true(buf_failed(&buf));
        buf_fini(&buf);
    }
}

static void test_check_says_why(void **state)
{
    (void)state;
    struct buf buf;
    struct error err = {0};
    buf_init(&buf, 8);
    buf_add_str(&buf, "12345678");
    assert_int_equal(buf_check(&buf, "the list", &err), ST_OK);
    buf_add_char(&buf, '9');
    assert_int_equal(buf_check(&buf, "the list", &err), ST_TOO_LARGE);
    assert_string_equal(err.text, "the list is too long");
    buf_fini(&buf);

    buf_init(&buf, 8);
    buf.failed = buf.lacks_memory = true; /* a sanitizer ends who asks malloc() for too much */
    assert_int_equal(buf_check(&buf, "the list", &err), ST_EXHAUSTED);
    assert_string_equal(err.text, "no memory for the list");
    buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_maximum_marks_failed),
        cmocka_unit_test(test_every_way_to_the_maximum),
        cmocka_unit_test(test_check_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
