/* SPDX-License-Identifier: MIT */
/* Code of several steps: budgets, cancelling in a loop, memory, arithmetic of scalars. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/code/scalar.h"
#include "runtime/load/load.h"
#include "runtime/program/method.h"
#include "runtime/program/program.h"
#include "runtime/program/results.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

/* ---- scalars --------------------------------------------------------------------------------- */

static struct rt_scalar of_int(int64_t value)
{
    return (struct rt_scalar){RT_INT, value};
}

static enum status apply(const char *name, struct rt_scalar a, struct rt_scalar b,
                         struct rt_scalar *out)
{
    const struct rt_scalar args[] = {a, b, b};
    struct error err;
    return rt_scalar_apply(rt_scalar_find(span_str(name)), args, out, &err);
}

static void assert_int(const char *name, int64_t a, int64_t b, int64_t expected)
{
    struct rt_scalar out;
    assert_int_equal(apply(name, of_int(a), of_int(b), &out), ST_OK);
    assert_int_equal(out.kind, RT_INT);
    assert_int_equal(out.number, expected);
}

static void test_integer_division(void **unused)
{
    struct rt_scalar out;
    (void)unused;
    assert_int("executorch_prim::floordiv.Scalar", -7, 2, -4);
    assert_int("executorch_prim::floordiv.Scalar", 7, -2, -4);
    assert_int("executorch_prim::floordiv.int", -7, 2, -3);
    assert_int("executorch_prim::mod.Scalar", -7, 2, -1);
    assert_int_equal(apply("executorch_prim::floordiv.Scalar", of_int(1), of_int(0), &out),
                     ST_INVALID);
    assert_int_equal(apply("executorch_prim::mod.int", of_int(INT64_MIN), of_int(-1), &out),
                     ST_INVALID);
}

static void test_overflow_is_an_error(void **unused)
{
    struct rt_scalar out;
    (void)unused;
    assert_int("executorch_prim::add.Scalar", INT64_MAX - 1, 1, INT64_MAX);
    assert_int_equal(apply("executorch_prim::add.Scalar", of_int(INT64_MAX), of_int(1), &out),
                     ST_INVALID);
    assert_int_equal(apply("executorch_prim::mul.Scalar", of_int(INT64_MAX), of_int(2), &out),
                     ST_INVALID);
    assert_int_equal(apply("executorch_prim::neg.Scalar", of_int(INT64_MIN), of_int(0), &out),
                     ST_INVALID);
    assert_int_equal(
        apply("executorch_prim::sym_int.Scalar", rt_scalar_of_double(1e300), of_int(0), &out),
        ST_INVALID);
}

static void test_floats_round_and_compare(void **unused)
{
    struct rt_scalar out;
    (void)unused;
    assert_int_equal(
        apply("executorch_prim::round.Scalar", rt_scalar_of_double(2.5), of_int(0), &out), ST_OK);
    assert_int_equal(out.number, 2);
    assert_int_equal(
        apply("executorch_prim::ceil.Scalar", rt_scalar_of_double(-2.5), of_int(0), &out), ST_OK);
    assert_int_equal(out.number, -2);
    assert_int_equal(apply("executorch_prim::truediv.Scalar", of_int(1), of_int(4), &out), ST_OK);
    assert_true(rt_scalar_to_double(out) == 0.25);
    assert_int_equal(apply("executorch_prim::lt.Scalar", of_int(1), rt_scalar_of_double(1.5), &out),
                     ST_OK);
    assert_true(out.kind == RT_BOOL && out.number == 1);
}

/* ---- loops ----------------------------------------------------------------------------------- */

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct error err;
};

static void open_world_of(struct world *w, const char *model, size_t pool_bytes,
                          uint64_t statements_max)
{
    const struct hal_device_options two = {.workers = 2};
    *w = (struct world){0};
    assert_ok(w->err, hal_device_open("cpu", &two, &w->device, &w->err));
    assert_ok(w->err, hal_pool_new(w->device, pool_bytes, &w->pool, &w->err));
    const struct rt_load_options options = {
        .device = w->device, .statements_max = statements_max, .poison_workspaces = true};
    w->program = load_model(model, &options);
}

static void open_world(struct world *w, size_t pool_bytes, uint64_t statements_max)
{
    open_world_of(w, "loops", pool_bytes, statements_max);
}

static void close_world(struct world *w)
{
    struct hal_pool_stats stats;
    hal_pool_stats(w->pool, &stats);
    assert_int_equal(stats.reserved_count, 0);
    rt_program_unref(w->program);
    hal_pool_free(w->pool);
    hal_device_unref(w->device);
}

/* map and scan over 7 rows of 3; all elements are 1. */
static struct rt_invocation *prepare(struct world *w)
{
    static const struct shape shapes[] = {
        {.rank = 2, .dims = {7, 3}}, {.rank = 1, .dims = {3}}, {.rank = 1, .dims = {3}}};
    struct rt_invocation *inv;
    assert_ok(w->err,
              rt_invocation_new(rt_program_default_method(w->program), w->pool, &inv, &w->err));
    for (uint32_t i = 0; i < 3; i++) {
        void *ptr;
        assert_ok(w->err, rt_invocation_input(inv, i, DT_F32, &shapes[i], &ptr, &w->err));
        for (int64_t j = 0; j < shape_numel(&shapes[i]); j++) {
            ((float *)ptr)[j] = 1;
        }
    }
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    return inv;
}

static void test_a_loop_can_run_many_times(void **unused)
{
    struct world w;
    (void)unused;
    open_world(&w, (size_t)64 << 10, 0); /* less than the iterations of all calls need */
    for (int i = 0; i < 200; i++) {
        struct rt_invocation *inv = prepare(&w);
        assert_int_equal(submit_and_wait(inv, false), ST_OK);
        const struct rt_result *history = rt_invocation_result(inv, 2);
        assert_int_equal(history->shape.dims[0], 7);
        float row[7];
        for (int r = 0; r < 7; r++) {
            memcpy(&row[r], history->bytes.ptr + r * 3 * (int)sizeof(float), sizeof(float));
        }
        assert_true(row[0] == 2 && row[1] == 2.5f && row[2] == 2.75f);
        rt_invocation_free(inv);
    }
    close_world(&w);
}

static void test_the_budget_ends_a_loop(void **unused)
{
    struct world w;
    (void)unused;
    open_world(&w, (size_t)1 << 20, 20);
    struct rt_invocation *inv = prepare(&w);
    assert_int_equal(submit_and_wait(inv, false), ST_INVALID);
    assert_non_null(strstr(rt_invocation_error(inv)->text, "more than 20 statements"));
    rt_invocation_free(inv);
    close_world(&w);
}

static void test_cancelled_between_steps(void **unused)
{
    struct world w;
    int cancelled = 0;
    (void)unused;
    open_world(&w, (size_t)1 << 20, 0);
    for (int i = 0; i < 200; i++) {
        struct rt_invocation *inv = prepare(&w);
        enum status status = submit_and_wait(inv, true);
        assert_true(status == ST_OK || status == ST_CANCELLED);
        cancelled += status == ST_CANCELLED;
        rt_invocation_free(inv);
    }
    assert_true(cancelled > 0);
    close_world(&w);
}

static void test_a_full_pool_fails_the_call(void **unused)
{
    struct hal_buffer *most;
    struct world w;
    (void)unused;
    open_world(&w, 8192, 0);
    struct rt_invocation *inv = prepare(&w);
    size_t bytes = 8192;
    while (hal_pool_reserve(w.pool, bytes, &most, &w.err) != ST_OK) {
        bytes -= 64;
    }
    assert_int_equal(submit_and_wait(inv, false), ST_EXHAUSTED);
    rt_invocation_free(inv);
    hal_buffer_unref(most);
    inv = prepare(&w); /* no memory stays taken */
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    rt_invocation_free(inv);
    close_world(&w);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Four integers from |start| on: one of the results of method by_number of tests/ops/create. */
static void count_from(struct world *w, struct rt_method *method, int64_t start)
{
    static const struct shape shapes[] = {{.rank = 1, .dims = {3}}, {.rank = 0}};
    struct rt_invocation *inv;
    int64_t got[4];
    void *ptr;
    assert_ok(w->err, rt_invocation_new(method, w->pool, &inv, &w->err));
    assert_ok(w->err, rt_invocation_input(inv, 0, DT_F32, &shapes[0], &ptr, &w->err));
    memset(ptr, 0, 3 * sizeof(float));
    assert_ok(w->err, rt_invocation_input(inv, 1, DT_I64, &shapes[1], &ptr, &w->err));
    memcpy(ptr, &start, sizeof(start));
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    assert_int_equal(rt_invocation_result(inv, 0)->bytes.len, sizeof(got));
    memcpy(got, rt_invocation_result(inv, 0)->bytes.ptr, sizeof(got));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(got[i], start + i);
    }
    rt_invocation_free(inv);
}

/* The start of a range and the value that fills a tensor do not change any size. */
static void test_numbers_share_a_plan(void **unused)
{
    struct world w;
    struct rt_method *method;
    (void)unused;
    open_world_of(&w, "../ops/create", (size_t)1 << 20, 0);
    method = rt_program_find_method(w.program, span_str("by_number"));
    assert_non_null(method);
    count_from(&w, method, 0);
    uint64_t plans = rt_method_plan_stats(method).count;
    for (int64_t start = -20; start < 20; start++) {
        count_from(&w, method, start * 1000003);
    }
    assert_int_equal(rt_method_plan_stats(method).count, plans);
    close_world(&w);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static enum status foretell(struct world *w, struct rt_method *method, int64_t count)
{
    const struct shape shapes[] = {{.rank = 1, .dims = {count}}, {.rank = 1, .dims = {3}}};
    const struct shape *const inputs[] = {&shapes[0], &shapes[1]};
    struct rt_result_info info;
    return rt_method_result_shapes(method, inputs, &info, &w->err);
}

/* Method halves of tests/ops/extent first takes any number of elements, but a later block only even
 * numbers. */
static void test_a_later_block_refuses_sizes(void **unused)
{
    struct world w;
    struct rt_method *method;
    (void)unused;
    open_world_of(&w, "../ops/extent", (size_t)1 << 20, 0);
    method = rt_program_find_method(w.program, span_str("halves"));
    assert_non_null(method);
    assert_int_equal(foretell(&w, method, 4), ST_OK);
    assert_int_equal(foretell(&w, method, 3), ST_INVALID);
    assert_non_null(strstr(w.err.text, ", expected "));
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integer_division),
        cmocka_unit_test(test_overflow_is_an_error),
        cmocka_unit_test(test_floats_round_and_compare),
        cmocka_unit_test(test_a_loop_can_run_many_times),
        cmocka_unit_test(test_the_budget_ends_a_loop),
        cmocka_unit_test(test_cancelled_between_steps),
        cmocka_unit_test(test_a_full_pool_fails_the_call),
        cmocka_unit_test(test_numbers_share_a_plan),
        cmocka_unit_test(test_a_later_block_refuses_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
