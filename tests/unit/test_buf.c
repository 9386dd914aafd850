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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_maximum_marks_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
