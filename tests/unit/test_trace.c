/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/daemon/request/trace.h"

#define ID "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

static void a_valid_field_is_continued(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "00-" ID "-" PARENT "-01",
        "01-" ID "-" PARENT "-01",
        "cc-" ID "-" PARENT "-01-what the future brings",
    };
    struct trace_source source;
    trace_source_init(&source);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct trace trace;
        char text[TRACE_PARENT_CHARS];
        trace_begin(&source, span_str(fields[i]), &trace);
        assert_true(trace.has_parent);
        assert_memory_equal(trace.id, ID, TRACE_ID_CHARS);
        assert_memory_equal(trace.parent, PARENT, TRACE_SPAN_CHARS);
        trace_print(&trace, text);
        assert_memory_equal(text, "00-" ID "-", 36);
        assert_memory_equal(text + 36, trace.span, TRACE_SPAN_CHARS);
        assert_memory_not_equal(trace.span, PARENT, TRACE_SPAN_CHARS);
        assert_memory_equal(text + 52, "-01", 3);
    }
}

static void a_malformed_field_is_replaced(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "",
        "00",
        "00-" ID "-" PARENT "-0",
        "00-" ID "-" PARENT "-01-",
        "00-" ID "-" PARENT "-010",
        "01-" ID "-" PARENT "-010",
        "ff-" ID "-" PARENT "-01",
        "0g-" ID "-" PARENT "-01",
        "00_" ID "-" PARENT "-01",
        "00-" ID "_" PARENT "-01",
        "00-" ID "-" PARENT "_01",
        "00-" ID "-" PARENT "-0A",
        "00-0AF7651916cd43dd8448eb211c80319c-" PARENT "-01",
        "00-" ID "-b7ad6b716920333\"-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" ID "-0000000000000000-01",
    };
    struct trace_source source;
    trace_source_init(&source);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct trace trace, again;
        char text[TRACE_PARENT_CHARS];
        trace_begin(&source, span_str(fields[i]), &trace);
        assert_false(trace.has_parent);
        assert_memory_not_equal(trace.id, ID, TRACE_ID_CHARS);
        trace_print(&trace, text);
        /* the text that we print is valid */
        trace_begin(&source, span_of(text, sizeof(text)), &again);
        assert_true(again.has_parent);
        assert_memory_equal(again.id, trace.id, TRACE_ID_CHARS);
        assert_memory_equal(text + 53, "00", 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_field_is_continued),
        cmocka_unit_test(a_malformed_field_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
