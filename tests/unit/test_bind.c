/* SPDX-License-Identifier: MIT */
/*
 * Calls in existing memory: inputs in any layout give the same results as packed ones, results
 * arrive in the caller's memory, sizes are known beforehand, and everything is released at the end.
 */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/program/oracle.h"
#include "runtime/program/results.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define POOL_BYTES ((size_t)256 << 20)
#define IOS_MAX 64
#define BATCH 5
#define SMALL_DIM 40

/* Calls with many sizes take minutes under ThreadSanitizer, so fewer are made there. */
#ifdef __SANITIZE_THREAD__
#define BUNDLED_ROUNDS 16
#define SHARED_ROUNDS 0
#else
#define BUNDLED_ROUNDS 50
#define SHARED_ROUNDS 10
#endif

/* ---- allocations that fail ------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

static _Thread_local unsigned fail_at; /* counted down to the failure; 0: no allocation fails */

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

/* ---- a program and what calls need ----------------------------------------------------------- */

struct world {
    struct hal_device *device, *other;
    struct hal_pool *pool;
    struct rt_program *program;
    struct rt_method *method;
    struct error err;
};

static void open_program(struct world *w, const char *path)
{
    const struct hal_device_options workers = {.workers = 2};
    *w = (struct world){0};
    assert_ok(w->err, hal_device_open("cpu", &workers, &w->device, &w->err));
    assert_ok(w->err, hal_device_open("cpu", &workers, &w->other, &w->err));
    assert_ok(w->err, hal_pool_new(w->device, POOL_BYTES, &w->pool, &w->err));
    const struct rt_load_options options = {.device = w->device, .poison_workspaces = true};
    assert_ok(w->err, rt_load_program(path, &options, &w->program, &w->err));
    w->method = rt_program_default_method(w->program);
}

static void open_model(struct world *w, const char *model)
{
    const char *top = getenv("top_srcdir");
    char path[1024];
    snprintf(path, sizeof(path), "%s/tests/models/%s.pte", top ? top : ".", model);
    open_program(w, path);
    assert_non_null(w->method);
}

static void assert_pool_is_empty(struct world *w)
{
    struct hal_pool_stats stats;
    hal_pool_stats(w->pool, &stats);
    assert_int_equal(stats.reserved_count, 0);
}

static void close_world(struct world *w)
{
    assert_pool_is_empty(w);
    rt_program_unref(w->program);
    hal_pool_free(w->pool);
    hal_device_unref(w->other);
    hal_device_unref(w->device);
}

/* ---- inputs of `linear`: float32[?,70] and float32[33,17] ------------------------------------ */

enum order { PACKED, TURNED, SPREAD, REVERSED };

struct layout {
    const char *what;
    enum order order;
    size_t shift; /* bytes before the tensor */
    bool is_elsewhere;
    uint64_t in_place;
};

static const struct layout layouts[] = {
    {"packed", PACKED, 0, false, 2},
    {"packed, after something", PACKED, 4, false, 2},
    {"permuted", TURNED, 0, false, 0},
    {"strided", SPREAD, 0, false, 0},
    {"reversed", REVERSED, 0, false, 0},
    {"misaligned", PACKED, 1, false, 0},
    {"permuted and misaligned", TURNED, 3, false, 0},
    {"reversed and misaligned", REVERSED, 2, false, 0},
    {"elsewhere", PACKED, 0, true, 0},
    {"elsewhere, permuted and misaligned", TURNED, 1, true, 0},
    {"elsewhere, reversed", REVERSED, 8, true, 0},
};

static struct shape linear_shape(uint32_t input)
{
    return input ? (struct shape){2, {33, 17}} : (struct shape){2, {BATCH, 70}};
}

static float value_at(int64_t row, int64_t column)
{
    return (float)(row * 31 + column * 7 % 13) / 16;
}

static struct rt_buffer_desc describe(struct world *w, const struct layout *layout, uint32_t input)
{
    struct rt_buffer_desc desc = {.dtype = DT_F32, .shape = linear_shape(input)};
    int64_t rows = desc.shape.dims[0], columns = desc.shape.dims[1];
    const int64_t strides[][2] = {{columns, 1}, {1, rows}, {2 * columns + 2, 2}, {-columns, -1}};
    size_t bytes = (size_t)(rows * (2 * columns + 2)) * sizeof(float) + layout->shift;
    memcpy(desc.strides, strides[layout->order], sizeof(strides[0]));
    desc.has_strides = layout->order != PACKED;
    desc.offset = layout->shift;
    desc.offset += layout->order == REVERSED ? (size_t)(rows * columns - 1) * sizeof(float) : 0;
    assert_ok(w->err, hal_buffer_new(layout->is_elsewhere ? w->other : w->device, bytes,
                                     &desc.buffer, &w->err));
    return desc;
}

static void fill(const struct rt_buffer_desc *desc)
{
    char *base = (char *)hal_buffer_map(desc->buffer) + desc->offset;
    for (int64_t r = 0; r < desc->shape.dims[0]; r++) {
        for (int64_t c = 0; c < desc->shape.dims[1]; c++) {
            float value = value_at(r, c);
            int64_t at = desc->has_strides ? r * desc->strides[0] + c * desc->strides[1]
                                           : r * desc->shape.dims[1] + c;
            memcpy(base + at * (int64_t)sizeof(value), &value, sizeof(value));
        }
    }
}

/* Runs a call with separate packed inputs. */
static struct rt_invocation *run_packed(struct world *w)
{
    struct rt_invocation *inv;
    assert_ok(w->err, rt_invocation_new(w->method, w->pool, &inv, &w->err));
    for (uint32_t i = 0; i < 2; i++) {
        struct shape shape = linear_shape(i);
        void *ptr;
        assert_ok(w->err, rt_invocation_input(inv, i, DT_F32, &shape, &ptr, &w->err));
        for (int64_t at = 0; at < shape_numel(&shape); at++) {
            ((float *)ptr)[at] = value_at(at / shape.dims[1], at % shape.dims[1]);
        }
    }
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    return inv;
}

static void assert_same_results(struct rt_invocation *a, struct rt_invocation *b)
{
    struct rt_method *method = rt_invocation_method(a);
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        const struct rt_result *x = rt_invocation_result(a, i), *y = rt_invocation_result(b, i);
        assert_true(shape_equal(&x->shape, &y->shape));
        assert_int_equal(x->bytes.len, y->bytes.len);
        if (x->bytes.len) {
            assert_memory_equal(x->bytes.ptr, y->bytes.ptr, x->bytes.len);
        }
    }
}

/* The values are written between prepare and submit, because inputs in place are read there. */
static void check_layout(struct world *w, const struct layout *layout, struct rt_invocation *packed)
{
    struct rt_input_stats before = rt_method_input_stats(w->method), after;
    struct rt_buffer_desc given[2];
    struct rt_invocation *inv;
    print_message("%s\n", layout->what);
    assert_ok(w->err, rt_invocation_new(w->method, w->pool, &inv, &w->err));
    for (uint32_t i = 0; i < 2; i++) {
        given[i] = describe(w, layout, i);
        assert_ok(w->err, rt_invocation_bind_input(inv, i, &given[i], &w->err));
        assert_fails(w->err, rt_invocation_bind_input(inv, i, &given[i], &w->err), ST_INVALID,
                     "given twice");
    }
    assert_int_equal(rt_invocation_bytes(inv) == 0, layout->in_place == 2);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    for (uint32_t i = 0; i < 2; i++) {
        fill(&given[i]);
        hal_buffer_unref(given[i].buffer);
    }
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    assert_same_results(inv, packed);
    rt_invocation_free(inv);
    after = rt_method_input_stats(w->method);
    assert_int_equal(after.in_place - before.in_place, layout->in_place);
    assert_int_equal(after.converted - before.converted, 2 - layout->in_place);
}

static void test_layouts(void **state)
{
    struct world w;
    (void)state;
    open_model(&w, "linear");
    struct rt_invocation *packed = run_packed(&w);
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        check_layout(&w, &layouts[i], packed);
    }
    rt_invocation_free(packed);
    close_world(&w);
}

/* A cancelled call may have reached any point. Its memory is free when it reports its end. */
static void test_cancelled_conversions(void **state)
{
    struct world w;
    (void)state;
    open_model(&w, "linear");
    for (int round = 0; round < 100; round++) {
        struct rt_buffer_desc given[2];
        struct rt_invocation *inv;
        assert_ok(w.err, rt_invocation_new(w.method, w.pool, &inv, &w.err));
        for (uint32_t i = 0; i < 2; i++) {
            given[i] = describe(&w, &layouts[round % 2 ? 2 : 10], i);
            assert_ok(w.err, rt_invocation_bind_input(inv, i, &given[i], &w.err));
            hal_buffer_unref(given[i].buffer);
        }
        assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err));
        if (round % 4 < 2) {
            rt_invocation_cancel(inv);
        }
        enum status status = submit_and_wait(inv, true);
        assert_true(status == ST_CANCELLED || (status == ST_OK && round % 4 >= 2));
        rt_invocation_free(inv);
        assert_pool_is_empty(&w);
    }
    rt_invocation_free(run_packed(&w));
    close_world(&w);
}

/* Lets each allocation fail in turn that queueing the conversions needs. */
static void test_conversions_without_memory(void **state)
{
    struct world w;
    bool has_failed = true;
    unsigned nth = 0;
    (void)state;
    open_model(&w, "linear");
    while (has_failed) {
        struct done done = DONE_INIT;
        struct rt_invocation *inv;
        assert_ok(w.err, rt_invocation_new(w.method, w.pool, &inv, &w.err));
        for (uint32_t i = 0; i < 2; i++) {
            struct rt_buffer_desc given = describe(&w, &layouts[2], i);
            assert_ok(w.err, rt_invocation_bind_input(inv, i, &given, &w.err));
            hal_buffer_unref(given.buffer);
        }
        assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err));
        fail_at = ++nth;
        rt_invocation_submit(inv, HAL_CALLER_BUSY, on_done, &done);
        has_failed = fail_at == 0;
        fail_at = 0;
        assert_int_equal(await_done(&done), has_failed ? ST_EXHAUSTED : ST_OK);
        rt_invocation_free(inv);
        assert_pool_is_empty(&w);
    }
    assert_true(nth > 3);
    close_world(&w);
}

static void test_full_pool(void **state)
{
    struct world w;
    struct hal_buffer *rest;
    struct rt_invocation *inv;
    (void)state;
    open_model(&w, "linear");
    struct rt_buffer_desc here = describe(&w, &layouts[2], 0), there = describe(&w, &layouts[9], 0);
    assert_ok(w.err, hal_pool_reserve(w.pool, POOL_BYTES, &rest, &w.err));
    assert_ok(w.err, rt_invocation_new(w.method, w.pool, &inv, &w.err));
    assert_int_equal(rt_invocation_bind_input(inv, 0, &here, &w.err), ST_EXHAUSTED);
    assert_int_equal(rt_invocation_bind_input(inv, 0, &there, &w.err), ST_EXHAUSTED);
    assert_int_equal(rt_method_input_stats(w.method).converted, 0);
    hal_buffer_unref(rest);
    assert_ok(w.err, rt_invocation_bind_input(inv, 0, &there, &w.err));
    assert_fails(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err), ST_INVALID,
                 "input_1' is missing");
    rt_invocation_free(inv);
    hal_buffer_unref(here.buffer);
    hal_buffer_unref(there.buffer);
    close_world(&w);
}

/* ---- results --------------------------------------------------------------------------------- */

static void test_refused_results(void **state)
{
    struct world w;
    struct hal_buffer *small, *large, *foreign;
    struct rt_buffer_desc given[2];
    struct rt_invocation *inv;
    (void)state;
    open_model(&w, "linear");
    assert_ok(w.err, hal_buffer_new(w.device, BATCH * sizeof(float) - 1, &small, &w.err));
    assert_ok(w.err, hal_buffer_new(w.device, 4096, &large, &w.err));
    assert_ok(w.err, hal_buffer_new(w.other, 4096, &foreign, &w.err));
    assert_ok(w.err, rt_invocation_new(w.method, w.pool, &inv, &w.err));
    assert_fails(w.err, rt_invocation_bind_result(inv, 0, foreign, 0, &w.err), ST_UNSUPPORTED,
                 "'output_0'");
    assert_fails(w.err, rt_invocation_bind_result(inv, 0, large, 2, &w.err), ST_UNSUPPORTED,
                 "odd offset");
    assert_ok(w.err, rt_invocation_bind_result(inv, 0, small, 0, &w.err));
    assert_fails(w.err, rt_invocation_bind_result(inv, 0, large, 0, &w.err), ST_INVALID,
                 "has memory already");
    assert_ok(w.err, rt_invocation_bind_result(inv, 1, large, 0, &w.err));
    for (uint32_t i = 0; i < 2; i++) {
        given[i] = describe(&w, &layouts[0], i);
        assert_ok(w.err, rt_invocation_bind_input(inv, i, &given[i], &w.err));
        hal_buffer_unref(given[i].buffer);
    }
    assert_fails(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err), ST_INVALID,
                 "result 'output_0' needs 20 bytes at 0, its memory has 19");
    assert_ok(w.err, rt_invocation_bind_result(inv, 0, large, 4080, &w.err));
    assert_fails(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err), ST_INVALID, "at 4080");
    assert_ok(w.err, rt_invocation_bind_result(inv, 0, large, 8192, &w.err));
    assert_fails(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err), ST_INVALID, "at 8192");
    assert_ok(w.err, rt_invocation_bind_result(inv, 0, large, 4076, &w.err));
    assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err));
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    assert_ptr_equal(rt_invocation_result(inv, 0)->bytes.ptr,
                     (const uint8_t *)hal_buffer_map(large) + 4076);
    rt_invocation_free(inv);
    hal_buffer_unref(small);
    hal_buffer_unref(large);
    hal_buffer_unref(foreign);
    close_world(&w);
}

static void test_scalars_take_no_memory(void **state)
{
    struct world w;
    struct hal_buffer *buffer;
    struct rt_invocation *inv;
    (void)state;
    open_model(&w, "scalars");
    assert_ok(w.err, hal_buffer_new(w.device, 64, &buffer, &w.err));
    const struct rt_buffer_desc given = {.dtype = DT_I64, .buffer = buffer};
    assert_ok(w.err, rt_invocation_new(w.method, w.pool, &inv, &w.err));
    assert_fails(w.err, rt_invocation_bind_result(inv, 1, buffer, 0, &w.err), ST_INVALID,
                 "is not a tensor");
    assert_fails(w.err, rt_invocation_bind_input(inv, 1, &given, &w.err), ST_INVALID,
                 "expected an int, got int64[]");
    rt_invocation_free(inv);
    hal_buffer_unref(buffer);
    close_world(&w);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint32_t random_below(uint32_t n)
{
    static uint64_t state = 4;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* Mostly a small size, sometimes any size up to the bound. */
static uint32_t choose_dim(uint32_t bound)
{
    bool is_any = bound <= SMALL_DIM || random_below(16) == 0;
    return random_below(is_any ? bound + 1 : SMALL_DIM);
}

/* Sizes for all inputs. Half of the time all dims have one size, because inputs may have to
 * agree. */
static void choose(struct rt_method *method, struct shape *shapes)
{
    bool is_shared = random_below(2);
    uint32_t size = random_below(SMALL_DIM);
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        shapes[i] = io->shape;
        for (uint8_t d = 0; d < io->shape.rank; d++) {
            if (rt_io_is_dynamic(io, d)) {
                uint32_t bound = (uint32_t)io->shape.dims[d];
                uint32_t dim = is_shared ? size : choose_dim(bound);
                shapes[i].dims[d] = dim < bound ? dim : bound;
            }
        }
    }
}

/* Inputs of these shapes. Floats are not integral, integers are 1. */
static enum status give_inputs(struct world *w, struct rt_method *method,
                               const struct shape *shapes, struct rt_invocation *inv)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        size_t bytes;
        void *ptr;
        if (io->kind != RT_IO_TENSOR) {
            continue;
        }
        TRY(rt_invocation_input(inv, i, io->dtype, &shapes[i], &ptr, &w->err));
        assert_ok(w->err, shape_bytes(&shapes[i], io->dtype, &bytes, &w->err));
        if (bytes) {
            memset(ptr, 0, bytes);
        }
        size_t width = dtype_bytes(io->dtype);
        for (size_t at = 0; at < bytes / width; at++) {
            if (io->dtype == DT_F32) {
                ((float *)ptr)[at] = (float)(at % 17) / 8 - 1;
            } else if (!dtype_is_float(io->dtype)) {
                ((uint8_t *)ptr)[at * width] = 1;
            }
        }
    }
    return ST_OK;
}

/*
 * A result whose size depends on data is not larger than |info| says, and takes only sizes that are
 * possible. |out_exact| gets the size that it has.
 */
static void check_bounds(const struct rt_method *method, uint32_t index,
                         const struct rt_result_info *info, const struct rt_result *result,
                         struct rt_result_info *out_exact)
{
    struct error err;
    struct shape wrong = result->shape;
    *out_exact = *info;
    assert_int_equal(info->shape.rank, result->shape.rank);
    assert_true(result->bytes.len <= info->bytes);
    for (uint8_t d = 0; d < info->shape.rank; d++) {
        assert_true(result->shape.dims[d] <= info->shape.dims[d]);
        if (info->known_dims >> d & 1) {
            assert_int_equal(result->shape.dims[d], info->shape.dims[d]);
        }
        wrong.dims[d] = info->shape.dims[d] + 1;
        assert_fails(err, rt_method_take_extent(method, index, &wrong, out_exact, &err), ST_INVALID,
                     ", expected ");
        wrong.dims[d] = result->shape.dims[d];
    }
    wrong.rank ^= 1;
    assert_fails(err, rt_method_take_extent(method, index, &wrong, out_exact, &err), ST_INVALID,
                 "expected ");
    assert_ok(err, rt_method_take_extent(method, index, &result->shape, out_exact, &err));
    assert_true(out_exact->is_known && out_exact->bytes == result->bytes.len);
}

/* Repeats the call with each result of known size in a buffer of exactly that size. */
static void check_bound(struct world *w, struct rt_method *method, const struct shape *shapes,
                        const struct rt_result_info *infos, struct rt_invocation *expected)
{
    struct hal_buffer *buffers[IOS_MAX] = {NULL};
    struct rt_invocation *inv;
    assert_ok(w->err, rt_invocation_new(method, w->pool, &inv, &w->err));
    assert_ok(w->err, give_inputs(w, method, shapes, inv));
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        if (infos[i].is_tensor && infos[i].is_known) {
            assert_ok(w->err, hal_buffer_new(w->device, infos[i].bytes, &buffers[i], &w->err));
            assert_ok(w->err, rt_invocation_bind_result(inv, i, buffers[i], 0, &w->err));
        }
    }
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    assert_same_results(inv, expected);
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        if (buffers[i]) {
            assert_ptr_equal(rt_invocation_result(inv, i)->bytes.ptr, hal_buffer_map(buffers[i]));
        }
    }
    rt_invocation_free(inv);
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        hal_buffer_unref(buffers[i]);
    }
}

/* Tries one choice of sizes. Returns whether the method accepts them. */
static bool check_sizes(struct world *w, struct rt_method *method)
{
    struct shape shapes[IOS_MAX];
    const struct shape *pointers[IOS_MAX];
    struct rt_result_info infos[IOS_MAX], exact[IOS_MAX];
    struct rt_invocation *inv;
    choose(method, shapes);
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        pointers[i] = rt_method_input(method, i)->kind == RT_IO_TENSOR ? &shapes[i] : NULL;
    }
    enum status foretold = rt_method_result_shapes(method, pointers, infos, &w->err);
    assert_ok(w->err, rt_invocation_new(method, w->pool, &inv, &w->err));
    assert_ok(w->err, give_inputs(w, method, shapes, inv));
    enum status planned = rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err);
    if (foretold != ST_OK || planned != ST_OK) { /* sizes that one of them refuses never run */
        assert_int_equal(planned == ST_OK ? submit_and_wait(inv, false) : planned, ST_INVALID);
        rt_invocation_free(inv);
        return false;
    }
    if (submit_and_wait(inv, false) != ST_OK) { /* an index out of range, a division by zero */
        assert_int_equal(rt_invocation_error(inv)->code, ST_INVALID);
        rt_invocation_free(inv);
        return true;
    }
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        assert_int_equal(infos[i].is_tensor, rt_method_result(method, i)->kind == RT_IO_TENSOR);
        const struct rt_result *result = rt_invocation_result(inv, i);
        exact[i] = infos[i];
        if (infos[i].is_tensor && infos[i].is_known) {
            assert_true(shape_equal(&infos[i].shape, &result->shape));
            assert_int_equal(infos[i].bytes, result->bytes.len);
        } else if (infos[i].is_tensor) {
            check_bounds(method, i, &infos[i], result, &exact[i]);
        }
    }
    check_bound(w, method, shapes, infos, inv);
    check_bound(w, method, shapes, exact, inv);
    rt_invocation_free(inv);
    return true;
}

static bool has_dynamic_dims(const struct rt_method *method)
{
    bool has_one = false;
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        has_one = has_one || rt_method_input(method, i)->dynamic_dims != 0;
    }
    return has_one;
}

static void check_program(const char *path, uint32_t rounds)
{
    struct world w;
    open_program(&w, path);
    for (uint32_t i = 0; i < rt_program_method_count(w.program); i++) {
        struct rt_method *method = rt_program_method(w.program, i);
        uint32_t taken = 0;
        if (rt_method_failure(method)) {
            continue;
        }
        assert_true(rt_method_input_count(method) <= IOS_MAX);
        assert_true(rt_method_result_count(method) <= IOS_MAX);
        uint32_t tries = has_dynamic_dims(method) ? rounds : 1;
        for (uint32_t round = 0; round < tries; round++) {
            taken += check_sizes(&w, method);
            assert_pool_is_empty(&w);
        }
        print_message("%s, %s: %u of %u\n", path, rt_method_name(method), taken, tries);
        assert_true(taken > 0);
    }
    close_world(&w);
}

/* Tries every program in |folder| of the source tree. Returns false if the folder is missing. */
static bool check_folder(const char *folder, uint32_t rounds)
{
    const char *top = getenv("top_srcdir");
    char path[2048];
    snprintf(path, sizeof(path), "%s/%s", top ? top : ".", folder);
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort); /* sorted: the same sizes everywhere */
    if (count < 0) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        size_t len = strlen(entries[i]->d_name);
        if (len > 4 && strcmp(entries[i]->d_name + len - 4, ".pte") == 0) {
            snprintf(path, sizeof(path), "%s/%s/%s", top ? top : ".", folder, entries[i]->d_name);
            check_program(path, rounds);
        }
        free(entries[i]);
    }
    free(entries);
    return true;
}

static void test_bundled_sizes(void **state)
{
    (void)state;
    assert_true(check_folder("tests/models", BUNDLED_ROUNDS));
}

static void test_shared_sizes(void **state)
{
    (void)state;
    if (SHARED_ROUNDS == 0) {
        print_message("skipped: the larger models take too long under ThreadSanitizer\n");
        skip();
    }
    if (!check_folder("../shared/models/public", SHARED_ROUNDS)) {
        print_message("skipped: there is no ../shared/models/public beside the sources\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_cancelled_conversions),
        cmocka_unit_test(test_conversions_without_memory),
        cmocka_unit_test(test_full_pool),
        cmocka_unit_test(test_refused_results),
        cmocka_unit_test(test_scalars_take_no_memory),
        cmocka_unit_test(test_bundled_sizes),
        cmocka_unit_test(test_shared_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
