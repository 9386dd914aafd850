/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/prom.h"

static const struct prom_family counter = {"a_seconds_total", PROM_COUNTER, "seconds", "What."};

/* Ends the page; returns its text, which is the buffer's. */
static const char *finish(struct prom *prom)
{
    prom_end(prom);
    buf_add_char(prom->out, '\0');
    assert_false(buf_failed(prom->out));
    return (const char *)prom->out->ptr;
}

static void formats_differ_in_comments_only(void **state)
{
    (void)state;
    static const struct prom_family info = {"a_info", PROM_INFO, "", "Is."};
    static const struct {
        enum prom_format format;
        const char *text;
    } cases[] = {
        {PROM_TEXT, "# HELP a_seconds_total What.\n# TYPE a_seconds_total counter\n"
                    "a_seconds_total{b=\"c\",d=\"\"} 1.5\n"
                    "# HELP a_info Is.\n# TYPE a_info gauge\na_info 1\n"},
        {PROM_OPENMETRICS, "# HELP a_seconds What.\n# TYPE a_seconds counter\n"
                           "# UNIT a_seconds seconds\na_seconds_total{b=\"c\",d=\"\"} 1.5\n"
                           "# HELP a Is.\n# TYPE a info\na_info 1\n# EOF\n"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct buf out;
        struct prom prom;
        buf_init(&out, 4096);
        prom_init(&prom, cases[i].format, &out);
        prom_family(&prom, &counter);
        prom_label(&prom, "b", span_str("c"));
        prom_label(&prom, "d", span_str(""));
        prom_number(&prom, 1500000000, 9);
        prom_family(&prom, &info);
        prom_number(&prom, 1, 0);
        assert_string_equal(finish(&prom), cases[i].text);
        buf_fini(&out);
    }
}

static void numbers_lose_nothing(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        unsigned decimals;
        const char *text;
    } cases[] = {
        {0, 0, "0"},
        {0, 9, "0"},
        {7, 0, "7"},
        {1, 9, "0.000000001"},
        {10, 9, "0.00000001"},
        {1000000000, 9, "1"},
        {123456789012, 9, "123.456789012"},
        {120, 1, "12"},
        {UINT64_MAX, 0, "18446744073709551615"},
        {UINT64_MAX, 9, "18446744073.709551615"},
        {UINT64_MAX, 19, "1.8446744073709551615"},
        {5, 19, "0.0000000000000000005"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf out;
        struct prom prom;
        char end[64];
        buf_init(&out, 4096);
        prom_init(&prom, PROM_TEXT, &out);
        prom_family(&prom, &counter);
        prom_number(&prom, cases[i].value, cases[i].decimals);
        const char *text = finish(&prom);
        snprintf(end, sizeof(end), "\na_seconds_total %s\n", cases[i].text);
        assert_non_null(strstr(text, end));
        buf_fini(&out);
    }
}

/* Prints one series whose label has |value|; compares the text between the quotes. */
static void check_label(struct span value, const char *shown)
{
    struct buf out;
    struct prom prom;
    char line[PROM_LABELS_BYTES_MAX];
    buf_init(&out, 8192);
    prom_init(&prom, PROM_TEXT, &out);
    prom_family(&prom, &counter);
    prom_label(&prom, "a", value);
    prom_number(&prom, 1, 0);
    const char *text = finish(&prom);
    snprintf(line, sizeof(line), "\na_seconds_total{a=\"%s\"} 1\n", shown);
    assert_non_null(strstr(text, line));
    buf_fini(&out);
}

static void labels_are_escaped(void **state)
{
    (void)state;
    check_label(span_str("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    check_label(span_str("\"} 2\npted_ready 0"), "\\\"} 2\\npted_ready 0");
    check_label(span_str("gr\xc3\xb6\xc3\x9f\x65"), "gr\xc3\xb6\xc3\x9f\x65");
    check_label(span_str("a\xff\xc3"), "a\xef\xbf\xbd\xef\xbf\xbd");
    check_label(span_str(""), "");
}

/* However long values are, the labels stay whole: each has its closing quote. */
static void labels_are_bounded(void **state)
{
    (void)state;
    char value[4096];
    memset(value, '\n', sizeof(value));
    for (size_t len = 0; len < sizeof(value); len += 61) {
        struct buf out;
        struct prom prom;
        buf_init(&out, 16384);
        prom_init(&prom, PROM_TEXT, &out);
        prom_family(&prom, &counter);
        for (int i = 0; i < 4; i++) {
            prom_label(&prom, "label", span_of(value, len));
        }
        size_t mark = prom_label_mark(&prom);
        assert_between(mark, 4 * 8, PROM_LABELS_BYTES_MAX);
        prom_number(&prom, 1, 0);
        const char *text = finish(&prom);
        assert_non_null(strstr(text, "\"} 1\n"));
        assert_int_equal(out.len, strlen(text) + 1);
        buf_fini(&out);
    }
}

static void labels_can_be_taken_back(void **state)
{
    (void)state;
    struct buf out;
    struct prom prom;
    buf_init(&out, 4096);
    prom_init(&prom, PROM_TEXT, &out);
    prom_family(&prom, &counter);
    prom_label(&prom, "a", span_str("b"));
    size_t mark = prom_label_mark(&prom);
    prom_label(&prom, "c", span_str("d"));
    prom_unlabel_to(&prom, mark);
    prom_number(&prom, 1, 0);
    prom_unlabel(&prom);
    prom_number(&prom, 2, 0);
    assert_non_null(strstr(finish(&prom), "\na_seconds_total{a=\"b\"} 1\na_seconds_total 2\n"));
    buf_fini(&out);
}

static void histograms_are_cumulative(void **state)
{
    (void)state;
    static const struct prom_family family = {"h_seconds", PROM_HISTOGRAM, "seconds", "How long."};
    struct histogram histogram = {0};
    struct buf out;
    struct prom prom;
    /* A bound belongs to its bucket. */
    static const uint64_t values[] = {0, 10000, 10001, 60000000000, 60000000001};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        histogram_add(&histogram, &histogram_times, values[i]);
    }
    assert_int_equal(histogram_count(&histogram, &histogram_times), 5);
    buf_init(&out, 8192);
    prom_init(&prom, PROM_OPENMETRICS, &out);
    prom_family(&prom, &family);
    prom_label(&prom, "m", span_str("x"));
    prom_histogram(&prom, &histogram, &histogram_times);
    const char *text = finish(&prom);
    assert_non_null(strstr(text, "\nh_seconds_bucket{m=\"x\",le=\"1e-05\"} 2\n"
                                 "h_seconds_bucket{m=\"x\",le=\"2e-05\"} 3\n"));
    assert_non_null(strstr(text, ",le=\"20.0\"} 3\nh_seconds_bucket{m=\"x\",le=\"60.0\"} 4\n"
                                 "h_seconds_bucket{m=\"x\",le=\"+Inf\"} 5\n"
                                 "h_seconds_sum{m=\"x\"} 120.000020002\n"
                                 "h_seconds_count{m=\"x\"} 5\n# EOF\n"));
    buf_fini(&out);
}

/* Which bucket a value belongs to does not depend on the value before. */
static void values_fall_into_their_buckets(void **state)
{
    (void)state;
    const struct histogram_scale *scale = &histogram_rows;
    for (uint64_t before = 0; before < 1030; before += 3) {
        for (uint64_t value = 0; value < 1030; value++) {
            struct histogram histogram = {0};
            uint32_t bucket = 0;
            while (bucket < scale->bound_count && value > scale->bounds[bucket]) {
                bucket++;
            }
            histogram_add(&histogram, scale, before);
            uint64_t count = counter_get(&histogram.buckets[bucket]);
            histogram_add(&histogram, scale, value);
            assert_int_equal(counter_get(&histogram.buckets[bucket]), count + 1);
        }
    }
}

/* Bounds ascend, and their texts say the same. */
static void scales_ascend(void **state)
{
    (void)state;
    static const struct histogram_scale *const scales[] = {&histogram_times, &histogram_rows};
    for (size_t i = 0; i < 2; i++) {
        double unit = 1;
        for (unsigned d = 0; d < scales[i]->decimals; d++) {
            unit *= 10;
        }
        assert_between(scales[i]->bound_count, 1, HISTOGRAM_BOUNDS_MAX);
        for (uint32_t b = 0; b < scales[i]->bound_count; b++) {
            double bound = (double)scales[i]->bounds[b] / unit,
                   said = strtod(scales[i]->texts[b], NULL);
            assert_true(said == bound);
            assert_true(b == 0 || scales[i]->bounds[b] > scales[i]->bounds[b - 1]);
        }
    }
}

static void clients_choose_the_format(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        enum prom_format format;
    } cases[] = {
        {"", PROM_TEXT},
        {"*/*", PROM_TEXT},
        {"text/plain", PROM_TEXT},
        {"application/openmetrics-text", PROM_OPENMETRICS},
        {"Application/OpenMetrics-Text ; Version=1.0.0", PROM_OPENMETRICS},
        {"application/openmetrics-text;version=0.0.1", PROM_TEXT},
        {"application/openmetrics-text; version=1.0.0; q=0.5, text/plain;version=0.0.4;q=0.3",
         PROM_OPENMETRICS},
        {"application/openmetrics-text;q=0.2,text/plain;q=0.3", PROM_TEXT},
        {"application/openmetrics-text;q=0", PROM_TEXT},
        {"application/openmetrics-text;q=,", PROM_TEXT},
        {"application/openmetrics-text;q=1.0000000000000000000000", PROM_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
         "application/openmetrics-text;version=0.0.1;q=0.5,"
         "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,"
         "*/*;q=0.2",
         PROM_OPENMETRICS},
        {",,;;==,q=1,application/openmetrics-textual", PROM_TEXT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(prom_accept(span_str(cases[i].accept)), cases[i].format);
    }
    assert_string_equal(prom_media_type(PROM_TEXT), "text/plain; version=0.0.4; charset=utf-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_differ_in_comments_only),
        cmocka_unit_test(numbers_lose_nothing),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(labels_are_bounded),
        cmocka_unit_test(labels_can_be_taken_back),
        cmocka_unit_test(histograms_are_cumulative),
        cmocka_unit_test(values_fall_into_their_buckets),
        cmocka_unit_test(scales_ascend),
        cmocka_unit_test(clients_choose_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
