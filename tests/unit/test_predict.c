/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "protocol/predict.h"

static const float a[] = {1, 2, 3, 4};
static const int64_t b[] = {5, 6};
static const struct call_io float_io = {.kind = CALL_TENSOR, .dtype = DT_F32};
static const struct call_io int_io = {.kind = CALL_TENSOR, .dtype = DT_I64};
static const struct call_io text_io = {.kind = CALL_STRING};

static void expect_text(const struct predict_result *results, size_t count, bool are_rows,
                        const char *wanted)
{
    struct buf out;
    buf_init(&out, 1024);
    predict_print(results, count, are_rows, NUMBER_NAN_STRING, &out);
    assert_false(buf_failed(&out));
    assert_int_equal(out.len, strlen(wanted));
    assert_memory_equal(out.ptr, wanted, out.len);
    buf_fini(&out);
}

static void prints_rows_and_objects(void **state)
{
    struct predict_result results[] = {
        {"a", &float_io, {.shape = {2, {2, 2}}, .bytes = {(const uint8_t *)a, sizeof(a)}}},
        {"b\"", &int_io, {.shape = {1, {2}}, .bytes = {(const uint8_t *)b, sizeof(b)}}},
    };
    (void)state;
    expect_text(results, 1, true, "\"predictions\":[[1.0,2.0],[3.0,4.0]]");
    expect_text(results, 1, false, "\"predictions\":[[1.0,2.0],[3.0,4.0]]");
    expect_text(results, 2, false, "\"predictions\":{\"a\":[[1.0,2.0],[3.0,4.0]],\"b\\\"\":[5,6]}");
    expect_text(results, 2, true,
                "\"predictions\":[{\"a\":[1.0,2.0],\"b\\\"\":5},"
                "{\"a\":[3.0,4.0],\"b\\\"\":6}]");
    results[1].value.shape.dims[0] = 1; /* they do not have the same rows */
    results[1].value.bytes.len = sizeof(b[0]);
    expect_text(results, 2, true, "\"predictions\":{\"a\":[[1.0,2.0],[3.0,4.0]],\"b\\\"\":[5]}");
    results[1] = (struct predict_result){"t", &text_io, {.bytes = {(const uint8_t *)"x", 1}}};
    expect_text(results, 2, true, "\"predictions\":{\"a\":[[1.0,2.0],[3.0,4.0]],\"t\":\"x\"}");
    results[0].value.shape.dims[0] = 0;
    expect_text(results, 1, true, "\"predictions\":[]");
    expect_text(results, 0, true, "\"predictions\":{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prints_rows_and_objects)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
