/* SPDX-License-Identifier: MIT */
/* The rows of a profile as JSON. */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/profile/layers.h"

static struct layers_row row_at(const void *rows, uint32_t index)
{
    return ((const struct layers_row *)rows)[index];
}

static void check(size_t lost, const struct layers_row *rows, uint32_t count, uint64_t calls,
                  const char *expected)
{
    struct buf out;
    buf_init(&out, 4096);
    layers_print_json(lost, row_at, rows, count, calls, &out);
    buf_add_char(&out, '\0');
    assert_false(buf_failed(&out));
    assert_string_equal((const char *)out.ptr, expected);
    buf_fini(&out);
}

static void a_profile_without_rows(void **state)
{
    (void)state;
    check(3, NULL, 0, 1, "\"lost_spans\":3,\"layers\":[]");
}

static void numbers_are_the_mean_of_the_calls(void **state)
{
    static const struct layers_row rows[] = {
        {.operation = "gemm",
         .layer = "layers.0",
         .source = "model.py:12",
         .kernel = "gemm_f32",
         .block = 1,
         .node = 7,
         .dispatches = 6,
         .busy_ns = 10000,
         .host_ns = 2000,
         .macs = 1000,
         .numbers = "int8",
         .bytes = 400},
        {.operation = "wait",
         .layer = "",
         .source = "",
         .kernel = "",
         .node = UINT32_MAX,
         .dispatches = 1,
         .numbers = "bfloat16"},
    };
    (void)state;
    check(0, rows, 2, 4,
          "\"lost_spans\":0,\"layers\":[\n"
          "{\"operator\":\"gemm\",\"layer\":\"layers.0\",\"source\":\"model.py:12\","
          "\"kernel\":\"gemm_f32\",\"block\":1,\"node\":7,\"dispatches\":1.50,\"busy_us\":2.500,"
          "\"host_us\":0.500,\"flops\":500,\"numbers\":\"int8\",\"bytes\":100},\n"
          "{\"operator\":\"wait\",\"layer\":\"\",\"source\":\"\",\"kernel\":\"\",\"block\":0,"
          "\"dispatches\":0.25,\"busy_us\":0.000,\"host_us\":0.000,\"flops\":0,"
          "\"numbers\":\"bfloat16\",\"bytes\":0}]");
}

/* Names of layers and of sources come from the file. */
static void texts_of_files_are_escaped(void **state)
{
    static const struct layers_row row = {.operation = "gemm",
                                          .layer = "a\"b\\c\n",
                                          .source = "\x01</script>",
                                          .kernel = "k",
                                          .numbers = "float32"};
    (void)state;
    check(0, &row, 1, 1,
          "\"lost_spans\":0,\"layers\":[\n"
          "{\"operator\":\"gemm\",\"layer\":\"a\\\"b\\\\c\\n\",\"source\":\"\\u0001</script>\","
          "\"kernel\":\"k\",\"block\":0,\"node\":0,\"dispatches\":0.00,\"busy_us\":0.000,"
          "\"host_us\":0.000,\"flops\":0,\"numbers\":\"float32\",\"bytes\":0}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_without_rows),
        cmocka_unit_test(numbers_are_the_mean_of_the_calls),
        cmocka_unit_test(texts_of_files_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
