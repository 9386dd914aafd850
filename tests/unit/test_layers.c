/* SPDX-License-Identifier: MIT */
/* The rows of a profile as JSON. */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/profile/layers.h"
#include "tests/unit/call_support.h"

static struct hal_device *device;
static struct hal_pool *pool;
static struct rt_program *program;
static struct rt_profile *profile; /* without spans: the rows of the tests are made up */

static int open_profile(void **state)
{
    struct error err;
    (void)state;
    open_two_workers(&device, &pool);
    program = load_model("add", &(struct rt_load_options){.device = device});
    assert_ok(err, rt_profile_new(rt_program_default_method(program), 8, &profile, &err));
    return 0;
}

static int close_profile(void **state)
{
    (void)state;
    rt_program_unref(program);
    rt_profile_free(profile);
    close_two_workers(device, pool);
    return 0;
}

static void check(const struct rt_profile_row *rows, uint32_t count, uint64_t calls,
                  const char *expected)
{
    struct buf out;
    buf_init(&out, 4096);
    layers_print_json(profile, rows, count, calls, &out);
    buf_add_char(&out, '\0');
    assert_false(buf_failed(&out));
    assert_string_equal((const char *)out.ptr, expected);
    buf_fini(&out);
}

static void a_profile_without_rows(void **state)
{
    (void)state;
    check(NULL, 0, 1, "\"lost_spans\":0,\"layers\":[]");
}

static void numbers_are_the_mean_of_the_calls(void **state)
{
    static const struct rt_profile_row rows[] = {
        {.op = "gemm",
         .layer = "layers.0",
         .source = "model.py:12",
         .kernel = "gemm_f32",
         .block = 1,
         .node = 7,
         .commands = 6,
         .busy_ns = 10000,
         .host_ns = 2000,
         .macs = 1000,
         .macs_kind = HAL_MACS_U8,
         .bytes = 400},
        {.op = "wait",
         .layer = "",
         .source = "",
         .kernel = "",
         .node = UINT32_MAX,
         .commands = 1,
         .macs_kind = HAL_MACS_BF16},
    };
    (void)state;
    check(rows, 2, 4,
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
    static const struct rt_profile_row row = {
        .op = "gemm", .layer = "a\"b\\c\n", .source = "\x01</script>", .kernel = "k", .node = 0};
    (void)state;
    check(&row, 1, 1,
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
    return cmocka_run_group_tests(tests, open_profile, close_profile);
}
