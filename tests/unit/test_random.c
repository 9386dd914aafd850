/* SPDX-License-Identifier: MIT */
/*
 * Random operators (methods of tests/ops/random.pte, 100,000 numbers each): ranges and moments;
 * tiles differ from each other, and so do calls; dropout in training keeps and scales the elements
 * of its mask. Bounds are more than six standard errors wide.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/kernels/convert.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define POOL_BYTES ((size_t)64 << 20)
#define COUNT 100000

static struct hal_device *device;
static struct hal_pool *pool;
static struct rt_program *program;

static int open_program(void **state)
{
    const struct hal_device_options workers = {.workers = 2};
    const char *top = getenv("top_srcdir");
    struct error err;
    char path[1024];

    (void)state;
    snprintf(path, sizeof(path), "%s/tests/ops/random.pte", top ? top : ".");
    assert_ok(err, hal_device_open("cpu", &workers, &device, &err));
    assert_ok(err, hal_pool_new(device, POOL_BYTES, &pool, &err));
    const struct rt_load_options options = {.device = device, .poison_workspaces = true};
    assert_ok(err, rt_load_program(path, &options, &program, &err));
    return 0;
}

static int close_program(void **state)
{
    (void)state;
    rt_program_unref(program);
    hal_pool_free(pool);
    hal_device_unref(device);
    return 0;
}

/* The first results of method KIND_TYPE as doubles. If it has an input, that is all ones. */
static void call(const char *kind, enum dtype dtype, double *first, double *second)
{
    struct rt_invocation *invocation;
    struct error err;
    char name[64];
    void *memory;

    snprintf(name, sizeof(name), "%s_%s", kind, dtype_infos[dtype].long_text);
    struct rt_method *method = rt_program_find_method(program, span_str(name));
    assert_non_null(method);
    assert_ok(err, rt_invocation_new(method, pool, &invocation, &err));
    if (rt_method_input_count(method) > 0) {
        const struct shape shape = {.rank = 2, .dims = {250, 400}};
        const double one = 1;
        assert_ok(err, rt_invocation_input(invocation, 0, dtype, &shape, &memory, &err));
        for (size_t i = 0; i < COUNT; i++) {
            rt_convert_store(RT_CLASS_F64, dtype)((char *)memory + i * dtype_bytes(dtype), 0, &one,
                                                  1);
        }
    }
    assert_ok(err, rt_invocation_prepare(invocation, RT_PREPARE_ALL, &err));
    assert_int_equal(submit_and_wait(invocation, false), ST_OK);
    const char *bytes = (const char *)rt_invocation_result(invocation, 0)->bytes.ptr;
    rt_convert_load(dtype, RT_CLASS_F64)(first, bytes, (int64_t)dtype_bytes(dtype), COUNT);
    if (second) {
        bytes = (const char *)rt_invocation_result(invocation, 1)->bytes.ptr;
        rt_convert_load(DT_BOOL, RT_CLASS_F64)(second, bytes, 1, COUNT);
    }
    rt_invocation_free(invocation);
}

static double moment(const double *x, int power, double about)
{
    double sum = 0;
    for (size_t i = 0; i < COUNT; i++) {
        sum += pow(x[i] - about, power);
    }
    return sum / COUNT;
}

/* The share of numbers in the second half that equal the number at their place in the first. */
static double share_equal(const double *a, const double *b, size_t count)
{
    size_t equal = 0;
    for (size_t i = 0; i < count; i++) {
        equal += a[i] == b[i];
    }
    return (double)equal / (double)count;
}

static const enum dtype types[] = {DT_F32, DT_F64, DT_F16, DT_BF16};
static double x[COUNT], y[COUNT];

static void check_fresh(const char *kind, enum dtype dtype)
{
    call(kind, dtype, y, NULL);
    assert_true(share_equal(x, y, COUNT) < 0.02);
    assert_true(share_equal(x, x + 4096, COUNT - 4096) < 0.02); /* tiles */
    assert_true(share_equal(x, x + COUNT / 2, COUNT / 2) < 0.02);
    assert_true(share_equal(x, x + 1, COUNT - 1) < 0.02);
}

static void check_uniform(const char *kind)
{
    for (size_t t = 0; t < 4; t++) {
        call(kind, types[t], x, NULL);
        double least = 1, most = 0;
        for (size_t i = 0; i < COUNT; i++) {
            least = fmin(least, x[i]);
            most = fmax(most, x[i]);
        }
        assert_true(least >= 0 && least < 0.01 && most > 0.99 && most < 1);
        assert_true(fabs(moment(x, 1, 0) - 0.5) < 0.01);
        assert_true(fabs(moment(x, 2, 0.5) - 1.0 / 12) < 0.005);
        check_fresh(kind, types[t]);
    }
}

static void uniform(void **state)
{
    (void)state;
    check_uniform("uniform");
    check_uniform("uniform_like");
}

static void check_normal(const char *kind)
{
    for (size_t t = 0; t < 4; t++) {
        call(kind, types[t], x, NULL);
        assert_true(fabs(moment(x, 1, 0)) < 0.02);
        assert_true(fabs(moment(x, 2, 0) - 1) < 0.03);
        assert_true(fabs(moment(x, 3, 0)) < 0.06);
        assert_true(fabs(moment(x, 4, 0) - 3) < 0.2);
        check_fresh(kind, types[t]);
    }
}

static void normal(void **state)
{
    (void)state;
    check_normal("normal");
    check_normal("normal_like");
}

static void dropout(void **state)
{
    (void)state;
    for (size_t t = 0; t < 4; t++) {
        call("train", types[t], x, y);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(y[i] == 0 ? x[i] == 0 : fabs(x[i] - 4.0 / 3) < 0.01);
        }
        assert_true(fabs(moment(y, 1, 0) - 0.75) < 0.01);
        assert_true(share_equal(y, y + COUNT / 2, COUNT / 2) < 0.65); /* 0.625 when independent */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform),
        cmocka_unit_test(normal),
        cmocka_unit_test(dropout),
    };
    return cmocka_run_group_tests(tests, open_program, close_program);
}
