/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/cli/top.h"

#define SECOND 1000000000ull

static struct top_sample parse(const char *json, uint64_t at_ns)
{
    struct top_sample sample;
    struct error err;
    if (top_sample_parse(span_str(json), &sample, &err) != ST_OK) {
        fail_msg("%s", err.text);
    }
    sample.at_ns = at_ns;
    return sample;
}

static const char *const early =
    "{\"model_stats\":[{\"name\":\"b\",\"version\":\"1\",\"inference_count\":100,"
    "\"execution_count\":50,\"inference_stats\":{\"success\":{\"count\":50,\"ns\":5000000},"
    "\"fail\":{\"count\":1,\"ns\":1},\"queue\":{\"count\":50,\"ns\":100000},"
    "\"compute_infer\":{\"count\":50,\"ns\":200000}}},"
    "{\"name\":\"c\",\"version\":\"1\",\"inference_count\":9,\"execution_count\":9,"
    "\"inference_stats\":{\"success\":{\"count\":9,\"ns\":900}}}]}";

/* b has had 40 calls with 80 rows in 10 runs and 2 failures; c was loaded again; a is new. */
static const char *const late =
    "{\"model_stats\":[{\"name\":\"c\",\"version\":\"1\",\"inference_count\":4,"
    "\"execution_count\":4,\"inference_stats\":{\"success\":{\"count\":4,\"ns\":8000}}},"
    "{\"name\":\"b\",\"version\":\"1\",\"inference_count\":180,\"execution_count\":60,"
    "\"inference_stats\":{\"success\":{\"count\":90,\"ns\":45000000},"
    "\"fail\":{\"count\":3,\"ns\":1},\"queue\":{\"count\":90,\"ns\":500000},"
    "\"compute_infer\":{\"count\":90,\"ns\":4200000}},"
    "\"load\":{\"waiting\":3,\"running\":2},\"memory\":{\"held\":2048}},"
    "{\"name\":\"a\"}],\"memory\":{\"used\":1048576,\"bytes\":2097152}}";

static void expect_near(double got, double wanted)
{
    if (got < wanted - 1e-6 || got > wanted + 1e-6) {
        fail_msg("%f, expected %f", got, wanted);
    }
}

static void test_rates(void **state)
{
    (void)state;
    struct top_sample before = parse(early, 5 * SECOND), now = parse(late, 7 * SECOND);
    struct top_rate rates[3];
    assert_int_equal(now.count, 3);
    top_compare(&before, &now, rates);
    assert_string_equal(rates[0].row->name, "b");
    expect_near(rates[0].requests_s, 21);
    expect_near(rates[0].errors_s, 1);
    expect_near(rates[0].rows_s, 40);
    expect_near(rates[0].batch, 8);
    expect_near(rates[0].queue_us, 10);
    expect_near(rates[0].compute_us, 100);
    expect_near(rates[0].total_us, 1000);
    assert_int_equal(rates[0].row->waiting, 3);
    assert_string_equal(rates[1].row->name, "c");
    expect_near(rates[1].requests_s, 2);
    expect_near(rates[1].total_us, 2);
    assert_string_equal(rates[2].row->name, "a");
    expect_near(rates[2].requests_s, 0);
    top_sample_fini(&before);
    top_sample_fini(&now);
}

/* An answer of a language model is one row, and each of its steps is an execution. */
static void test_steps(void **state)
{
    (void)state;
    struct top_sample before = parse("{\"model_stats\":[]}", SECOND);
    struct top_sample now =
        parse("{\"model_stats\":[{\"name\":\"chat\",\"inference_count\":2,\"execution_count\":30,"
              "\"batch_stats\":[{\"batch_size\":1,\"compute_infer\":{\"count\":10,\"ns\":5}},"
              "{\"batch_size\":4,\"compute_infer\":{\"count\":20,\"ns\":5}}]}]}",
              2 * SECOND);
    struct top_rate rates[1];
    top_compare(&before, &now, rates);
    expect_near(rates[0].rows_s, 2);
    expect_near(rates[0].batch, 3);
    top_sample_fini(&before);
    top_sample_fini(&now);
}

static void test_no_time(void **state)
{
    (void)state;
    struct top_sample before = parse(early, SECOND), now = parse(late, SECOND);
    struct top_rate rates[3];
    top_compare(&before, &now, rates);
    expect_near(rates[0].requests_s, 0);
    top_sample_fini(&before);
    top_sample_fini(&now);
}

/* The number of lines, none of which has more than |columns| bytes. */
static uint32_t count_lines(const struct buf *text, size_t columns)
{
    uint32_t count = 0;
    size_t begin = 0;
    for (size_t i = 0; i < text->len; i++) {
        if (text->ptr[i] == '\n') {
            assert_true(columns == 0 || i - begin <= columns);
            begin = i + 1;
            count++;
        }
    }
    assert_int_equal(begin, text->len);
    return count;
}

static void test_table(void **state)
{
    (void)state;
    struct top_sample before = parse(early, 5 * SECOND), now = parse(late, 7 * SECOND);
    struct top_rate rates[3];
    struct buf out;
    buf_init(&out, 1 << 20);
    top_compare(&before, &now, rates);
    top_print("http://h", &now, rates, 0, 0, &out);
    assert_int_equal(count_lines(&out, 0), 6);
    buf_add(&out, "", 1);
    const char *text = (const char *)out.ptr;
    assert_non_null(strstr(text, "http://h  3 models  requests 1.0 MiB of 2.0 MiB\n"));
    assert_non_null(strstr(text, "23.0 requests/s  42.0 rows/s  1.0 errors/s  3 waiting"));
    assert_non_null(strstr(text, "\nb "));
    assert_non_null(strstr(text, "  1.00 ms "));
    for (uint32_t columns = 1; columns < 120; columns++) {
        buf_reset(&out);
        top_print("http://h", &now, rates, columns, 2, &out);
        assert_int_equal(count_lines(&out, columns), 5);
    }
    buf_fini(&out);
    top_sample_fini(&before);
    top_sample_fini(&now);
}

static void test_metrics(void **state)
{
    (void)state;
    struct top_sample sample = {.count = 0};
    top_sample_take_metrics(&sample, span_str("# process_resident_memory_bytes 7\n"
                                              "process_resident_memory_bytes_more 8\n"
                                              "process_resident_memory_bytes 4096\n"
                                              "process_start_time_seconds 1.7e9"));
    assert_int_equal(sample.resident_bytes, 4096);
    assert_int_equal(sample.start_s, 1700000000);
    static const char *const pages[] = {"",
                                        "\n\n",
                                        "process_resident_memory_bytes",
                                        "process_resident_memory_bytes ",
                                        "process_resident_memory_bytes -1\n",
                                        "process_resident_memory_bytes 1e400\n",
                                        "process_resident_memory_bytes nan\n",
                                        "process_resident_memory_bytes x\n"};
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        top_sample_take_metrics(&sample, span_str(pages[i]));
        assert_int_equal(sample.resident_bytes, 0);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"model_stats\":{}}",
        "{\"model_stats\":[1]}",
        "{\"model_stats\":[{\"name\":1}]}",
        "{\"model_stats\":[{\"name\":\"\\u001b\"}]}",
        "{\"model_stats\":[{\"name\":\"\\u202e\"}]}",
        "{\"model_stats\":[{\"inference_count\":1.5}]}",
        "{\"model_stats\":[{\"inference_count\":18446744073709551616}]}",
        "{\"model_stats\":[{\"inference_stats\":[]}]}",
        "{\"model_stats\":[{\"inference_stats\":{\"success\":1}}]}",
        "{\"model_stats\":[{\"load\":{\"waiting\":\"1\"}}]}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct top_sample sample;
        struct error err;
        assert_int_equal(top_sample_parse(span_str(texts[i]), &sample, &err), ST_INVALID);
        assert_null(sample.rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),    cmocka_unit_test(test_steps),
        cmocka_unit_test(test_no_time),
        cmocka_unit_test(test_table),    cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
