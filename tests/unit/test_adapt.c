/* SPDX-License-Identifier: MIT */
/*
 * Steps before inputs and behind results (runtime/program/adapt.h). A program that takes pixels
 * gives what the same program gives for the floats that the pixels are, alone and in batches, on
 * processors and on a Vulkan device if there is one; and what is refused, with which text.
 */
#include "config.h"

#include "runtime/program/adapt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/call/batch.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/program/method.h"
#include "runtime/program/signature.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define CALLS 4
#define POOL_BYTES ((size_t)64 << 20)
#define PIXELS_MAX 65536
#define RESULTS_MAX 16384
#define SECOND_NS 1000000000u

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct rt_method *method;
    struct error err;
};

/* The steps that are added to each method. */
struct wish {
    const struct rt_pixels *pixels;    /* of input 0, or NULL */
    const struct rt_adapt_step *steps; /* of result 0 */
    uint32_t step_count;
    uint32_t calls; /* of adapt() */
};

static enum status adapt(void *arg, struct rt_method *method, bool is_default, struct error *err)
{
    struct wish *wish = arg;
    wish->calls += is_default;
    if (wish->pixels) {
        TRY(rt_adapt_pixels(method, 0, wish->pixels, err));
    }
    for (uint32_t i = 0; i < wish->step_count; i++) {
        TRY(rt_adapt_result(method, 0, &wish->steps[i], err));
    }
    return ST_OK;
}

static enum status load(struct hal_device *device, const char *model, struct wish *wish,
                        struct rt_program **out_program, struct error *err)
{
    const char *top = getenv("top_srcdir");
    char path[1024];
    const struct rt_load_options options = {
        .device = device, .adapt = wish ? adapt : NULL, .adapt_arg = wish};
    snprintf(path, sizeof(path), "%s/tests/models/%s.pte", top ? top : ".", model);
    return rt_load_program(path, &options, out_program, err);
}

/* False: there is no such device here. */
static bool open_world(struct world *w, const char *device, const char *model, struct wish *wish)
{
    const struct hal_device_options two = {.workers = 2};
    *w = (struct world){0};
    if (hal_device_open(device, &two, &w->device, &w->err) != ST_OK) {
        return false;
    }
    assert_ok(w->err, hal_pool_new(w->device, POOL_BYTES, &w->pool, &w->err));
    assert_ok(w->err, load(w->device, model, wish, &w->program, &w->err));
    w->method = rt_program_default_method(w->program);
    const struct error *failure = rt_method_failure(w->method);
    if (failure) {
        fail_msg("%s: %s", model, failure->text);
    }
    return true;
}

static void close_world(struct world *w)
{
    rt_program_unref(w->program);
    hal_pool_free(w->pool);
    hal_device_unref(w->device);
}

static struct rt_invocation *begin(struct world *w, enum dtype dtype, const struct shape *shape,
                                   const void *data)
{
    struct rt_invocation *inv;
    void *at;
    assert_ok(w->err, rt_invocation_new(w->method, w->pool, &inv, &w->err));
    assert_ok(w->err, rt_invocation_input(inv, 0, dtype, shape, &at, &w->err));
    memcpy(at, data, (size_t)shape_numel(shape) * dtype_bytes(dtype));
    assert_ok(w->err, rt_invocation_plan(inv, RT_PREPARE_ALL, &w->err));
    return inv;
}

/* The bytes of result 0. */
static size_t end(struct rt_invocation *inv, void *out)
{
    struct span bytes = rt_invocation_result(inv, 0)->bytes;
    assert_true(bytes.len <= RESULTS_MAX * sizeof(float));
    memcpy(out, bytes.ptr, bytes.len);
    rt_invocation_free(inv);
    return bytes.len;
}

static size_t run(struct world *w, enum dtype dtype, const struct shape *shape, const void *data,
                  void *out)
{
    struct rt_invocation *inv = begin(w, dtype, shape, data);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    return end(inv, out);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static uint8_t pixels[PIXELS_MAX];
static float floats[PIXELS_MAX];

static void fill_pixels(size_t count, uint32_t seed)
{
    assert_true(count <= PIXELS_MAX);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        pixels[i] = (uint8_t)(seed >> 24);
    }
}

/* The numbers that the program takes in place of the pixels, as in the header. */
static void make_floats(const struct rt_pixels *p, int64_t rows)
{
    size_t area = (size_t)p->height * p->width, channels = p->channels;
    for (size_t n = 0; n < (size_t)rows; n++) {
        for (size_t i = 0; i < area; i++) {
            for (size_t c = 0; c < channels; c++) {
                size_t from = p->is_reversed ? channels - 1 - c : c;
                float x = (float)pixels[(n * area + i) * channels + from];
                volatile float product = x * (float)(p->scale / p->std[c]);
                size_t to =
                    p->is_nhwc ? (n * area + i) * channels + c : (n * channels + c) * area + i;
                floats[to] = product + (float)(-p->mean[c] / p->std[c]);
            }
        }
    }
}

static const struct rt_pixels imagenet = {
    .height = 32,
    .width = 32,
    .channels = 3,
    .scale = 1.0 / 255,
    .mean = {0.485, 0.456, 0.406},
    .std = {0.229, 0.224, 0.225},
};

static struct shape pixel_shape(const struct rt_pixels *p, int64_t rows)
{
    return (struct shape){.rank = 4, .dims = {rows, p->height, p->width, p->channels}};
}

static struct shape float_shape(const struct rt_pixels *p, int64_t rows)
{
    return p->is_nhwc ? pixel_shape(p, rows)
                      : (struct shape){.rank = 4, .dims = {rows, p->channels, p->height, p->width}};
}

static void check_close(const float *got, const float *wanted, size_t count, float bound)
{
    for (size_t i = 0; i < count; i++) {
        float limit = bound * (1 + fabsf(wanted[i]));
        if (!(fabsf(got[i] - wanted[i]) <= limit)) {
            fail_msg("number %zu: got %.9g, wanted %.9g", i, (double)got[i], (double)wanted[i]);
        }
    }
}

static void check_pixels(const char *device, const char *model, const struct rt_pixels *p,
                         int64_t rows, float bound)
{
    static float wanted[RESULTS_MAX], got[RESULTS_MAX];
    struct wish wish = {.pixels = p};
    struct world plain, adapted;
    if (!open_world(&adapted, device, model, &wish)) {
        return;
    }
    assert_true(open_world(&plain, "cpu", model, NULL));
    assert_int_equal(wish.calls, 1);
    const struct rt_io *io = rt_method_input(adapted.method, 0);
    assert_int_equal(io->dtype, DT_U8);
    assert_int_equal(io->shape.dims[3], p->channels);
    struct shape given = pixel_shape(p, rows), taken = float_shape(p, rows);
    fill_pixels((size_t)shape_numel(&given), 7);
    make_floats(p, rows);
    size_t bytes = run(&plain, DT_F32, &taken, floats, wanted);
    assert_int_equal(run(&adapted, DT_U8, &given, pixels, got), bytes);
    if (bound == 0) {
        assert_memory_equal(got, wanted, bytes);
    }
    check_close(got, wanted, bytes / sizeof(float), bound);
    close_world(&plain);
    close_world(&adapted);
}

/* On processors the arithmetic is the same to the last bit. */
static void pixels_are_the_floats_that_they_stand_for(void **state)
{
    (void)state;
    struct rt_pixels p = imagenet;
    check_pixels("cpu", "mobile", &p, 1, 0);
    p.is_reversed = true;
    check_pixels("cpu", "mobile", &p, 1, 0);
    p = (struct rt_pixels){.height = 24, .width = 20, .channels = 3, .scale = 2, .std = {1, 3, 5}};
    check_pixels("cpu", "unet", &p, 1, 0);
    p = imagenet;
    p.height = 33;
    p.width = 17; /* the program takes up to 33 x 33 */
    check_pixels("cpu", "residual", &p, 3, 0);
    p = (struct rt_pixels){.height = 8, .width = 8, .channels = 1, .scale = 1. / 16, .std = {1}};
    check_pixels("cpu", "digits", &p, 19, 0);
}

static void pixels_on_a_vulkan_device(void **state)
{
    (void)state;
    struct rt_pixels p = imagenet;
    check_pixels("vulkan", "mobile", &p, 1, 1e-4f);
    p.is_reversed = true;
    check_pixels("vulkan", "mobile", &p, 1, 1e-4f);
    p.height = p.width = 31;
    check_pixels("vulkan", "residual", &p, 2, 1e-4f);
}

static const struct rt_graph *graph_of(const struct world *w)
{
    assert_int_equal(w->method->code.block_count, 1);
    return &w->method->code.blocks[0]->graph;
}

static uint32_t count_reorders(const struct rt_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        count += rt_op_is(graph->nodes[i].op, RT_KNOWN_reorder);
    }
    return count;
}

/* A picture is decoded pixel by pixel, which is the order in which a convolution reads it: what the
 * program does with floats channel by channel, a reorder, is not done. */
static void pixels_lie_as_convolutions_read_them(void **state)
{
    static const struct {
        const char *model;
        uint32_t height, width;
    } cases[] = {{"unet", 24, 20}, {"layers/head", 8, 8}, {"mobile", 32, 32}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rt_pixels p = imagenet;
        struct wish wish = {.pixels = &p};
        struct world plain, adapted;
        p.height = cases[i].height;
        p.width = cases[i].width;
        assert_true(open_world(&adapted, "cpu", cases[i].model, &wish));
        assert_true(open_world(&plain, "cpu", cases[i].model, NULL));
        assert_int_equal(count_reorders(graph_of(&adapted)), count_reorders(graph_of(&plain)) - 1);
        const struct rt_node *nodes = graph_of(&adapted)->nodes;
        assert_string_equal(nodes[0].op->name, "pixels");
        assert_true(rt_op_is(nodes[1].op, RT_KNOWN_permuted)); /* a view: it moves no byte */
        assert_int_equal(nodes[1].args[0], nodes[0].outs[0]);
        close_world(&plain);
        close_world(&adapted);
    }
}

/* As ToTensor and Normalize of torchvision compute, each step rounded to float32. */
static void close_to_the_steps_of_torchvision(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t x = 0; x < 256; x++) {
            volatile float unit = (float)x / 255, centred = unit - (float)imagenet.mean[c];
            volatile float wanted = centred / (float)imagenet.std[c];
            volatile float product = (float)x * (float)(imagenet.scale / imagenet.std[c]);
            volatile float got = product + (float)(-imagenet.mean[c] / imagenet.std[c]);
            assert_true(fabsf(got - wanted) <= 4 * 1.1920929e-7f * 2.2f);
        }
    }
}

static void run_batch(struct world *w, struct rt_invocation **calls)
{
    struct done done[CALLS];
    void *args[CALLS];
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_true(rt_batch_fits(calls[0], calls[i]));
        done[i] = (struct done)DONE_INIT;
        args[i] = &done[i];
    }
    assert_ok(w->err, rt_batch_submit(calls, args, CALLS, on_done, &w->err));
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(await_done(&done[i]), ST_OK);
    }
}

/* A program exported for one row, with steps on both sides, still runs in batches, with the same
 * bytes. */
static void pixels_in_batches(void **state)
{
    (void)state;
    static float alone[CALLS][64], got[64];
    const struct rt_adapt_step softmax = {.kind = RT_ADAPT_SOFTMAX, .dim = -1};
    struct wish wish = {.pixels = &imagenet, .steps = &softmax, .step_count = 1};
    struct rt_invocation *calls[CALLS];
    struct shape shape = pixel_shape(&imagenet, 1);
    struct world w;
    int64_t form;
    size_t bytes = 0;
    assert_true(open_world(&w, "cpu", "mobile", &wish));
    assert_ok(w.err, rt_batch_open(w.method, &form, &w.err));
    const struct rt_pace pace = {.budget_ns = 600ull * SECOND_NS};
    int64_t proven = 1;
    assert_ok(w.err, rt_batch_prove(w.method, w.pool, &pace, CALLS, &proven, &w.err));
    for (uint32_t i = 0; i < CALLS; i++) {
        fill_pixels((size_t)shape_numel(&shape), i);
        bytes = run(&w, DT_U8, &shape, pixels, alone[i]);
        calls[i] = begin(&w, DT_U8, &shape, pixels);
    }
    assert_memory_not_equal(alone[0], alone[1], bytes);
    run_batch(&w, calls);
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(end(calls[i], got), bytes);
        assert_memory_equal(got, alone[i], bytes);
    }
    close_world(&w);
}

/* Everything that describes the method says what it takes now. */
static void pixels_are_in_the_signature(void **state)
{
    (void)state;
    const struct rt_adapt_step best = {.kind = RT_ADAPT_ARG_MAX, .dim = 1};
    struct rt_pixels p = imagenet;
    struct wish wish = {.pixels = &p, .steps = &best, .step_count = 1};
    struct world w;
    p.height = p.width = 33;
    assert_true(open_world(&w, "cpu", "residual", &wish));
    const struct rt_io *io = rt_method_input(w.method, 0);
    assert_int_equal(io->dtype, DT_U8);
    assert_int_equal(io->dynamic_dims, 1);
    assert_int_equal(io->shape.dims[0], 4);
    assert_int_equal(rt_method_result(w.method, 0)->dtype, DT_I64);
    assert_int_equal(rt_method_result(w.method, 0)->shape.rank, 1);
    assert_string_equal(rt_method_signature(w.method)->readable,
                        "(uint8[?,33,33,3]) -> (sint64[?])");
    close_world(&w);
}

/* ---- results --------------------------------------------------------------------------------- */

static uint32_t run_steps(const struct rt_adapt_step *steps, uint32_t count, void *out)
{
    struct wish wish = {.steps = steps, .step_count = count};
    struct shape shape = float_shape(&imagenet, 1);
    struct world w;
    fill_pixels((size_t)shape_numel(&shape), 5);
    make_floats(&imagenet, 1);
    assert_true(open_world(&w, "cpu", "mobile", &wish));
    size_t bytes = run(&w, DT_F32, &shape, floats, out);
    close_world(&w);
    return (uint32_t)bytes;
}

static void each_step_does_what_its_name_says(void **state)
{
    (void)state;
    float raw[16], got[16], sum = 0, norm = 0;
    uint32_t best = 0;
    assert_int_equal(run_steps(NULL, 0, raw), 40);
    for (uint32_t i = 0; i < 10; i++) {
        sum += expf(raw[i]);
        norm += raw[i] * raw[i];
        best = raw[i] > raw[best] ? i : best;
    }
    assert_int_equal(
        run_steps(&(struct rt_adapt_step){.kind = RT_ADAPT_SOFTMAX, .dim = -1}, 1, got), 40);
    for (uint32_t i = 0; i < 10; i++) {
        assert_float_equal(got[i], expf(raw[i]) / sum, 1e-6);
    }
    assert_int_equal(run_steps(&(struct rt_adapt_step){.kind = RT_ADAPT_SIGMOID}, 1, got), 40);
    for (uint32_t i = 0; i < 10; i++) {
        assert_float_equal(got[i], 1 / (1 + expf(-raw[i])), 1e-6);
    }
    assert_int_equal(
        run_steps(&(struct rt_adapt_step){.kind = RT_ADAPT_NORMALIZE, .dim = 1}, 1, got), 40);
    for (uint32_t i = 0; i < 10; i++) {
        assert_float_equal(got[i], raw[i] / sqrtf(norm), 1e-6);
    }
    const struct rt_adapt_step argmax = {.kind = RT_ADAPT_ARG_MAX, .dim = -1};
    int64_t index;
    assert_int_equal(run_steps(&argmax, 1, &index), sizeof(index));
    assert_int_equal(index, best);
    const struct rt_adapt_step both[] = {{.kind = RT_ADAPT_SIGMOID},
                                         {.kind = RT_ADAPT_THRESHOLD, .number = 0.5}};
    uint8_t flags[16];
    assert_int_equal(run_steps(both, 2, flags), 10);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(flags[i], raw[i] >= 0);
    }
}

/* The mean over the pixels of each channel. */
static void pool_of_pixels(void **state)
{
    (void)state;
    static float raw[960], got[2];
    const struct rt_pixels p = {
        .height = 24, .width = 20, .channels = 3, .scale = 1. / 255, .std = {1, 1, 1}};
    const struct rt_adapt_step pool = {.kind = RT_ADAPT_POOL};
    struct shape shape = pixel_shape(&p, 1);
    fill_pixels((size_t)shape_numel(&shape), 3);
    for (uint32_t i = 0; i < 2; i++) {
        struct wish wish = {.pixels = &p, .steps = &pool, .step_count = i};
        struct world w;
        assert_true(open_world(&w, "cpu", "unet", &wish));
        run(&w, DT_U8, &shape, pixels, i ? got : raw);
        close_world(&w);
    }
    for (uint32_t c = 0; c < 2; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < 480; i++) {
            sum += (double)raw[c * 480 + i];
        }
        assert_float_equal(got[c], sum / 480, 1e-5);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refuse(const char *model, struct wish wish, const char *text)
{
    struct hal_device *device;
    struct rt_program *program;
    struct error err;
    assert_ok(err,
              hal_device_open("cpu", &(struct hal_device_options){.workers = 1}, &device, &err));
    assert_int_not_equal(load(device, model, &wish, &program, &err), ST_OK);
    assert_string_equal(err.text, text);
    hal_device_unref(device);
}

static void refused_pixels(void **state)
{
    (void)state;
    struct rt_pixels p = imagenet;
    p.width = 31;
    refuse("mobile", (struct wish){.pixels = &p}, "width: expected 32, got 31");
    p.width = 34;
    refuse("residual", (struct wish){.pixels = &p}, "width: expected at most 33, got 34");
    p = imagenet;
    p.channels = 1;
    refuse("mobile", (struct wish){.pixels = &p}, "channels: expected 3, got 1");
    p = imagenet;
    p.std[1] = 0;
    refuse("mobile", (struct wish){.pixels = &p},
           "expected numbers whose quotients float32 holds, and std other than 0");
    refuse("mlp", (struct wish){.pixels = &imagenet},
           "expected an input of floats or 8-bit integers with four dims, such as "
           "float32[1,3,224,224], got float32[?,?]");
}

static void refused_steps(void **state)
{
    (void)state;
    const struct rt_adapt_step far = {.kind = RT_ADAPT_SOFTMAX, .dim = 2},
                               pool = {.kind = RT_ADAPT_POOL};
    const struct rt_adapt_step twice[] = {{.kind = RT_ADAPT_ARG_MAX, .dim = 1},
                                          {.kind = RT_ADAPT_SOFTMAX, .dim = -1}};
    refuse("mobile", (struct wish){.steps = &far, .step_count = 1},
           "softmax: the tensor has 2 dims, got dim 2");
    refuse("mobile", (struct wish){.steps = &pool, .step_count = 1},
           "pool: expected [n, tokens, features] or [n, features, height, width], got 2 dims");
    refuse("mobile", (struct wish){.steps = twice, .step_count = 2},
           "softmax: expected a tensor of floats, got i64");
    refuse("branches", (struct wish){.steps = twice, .step_count = 1},
           "the program has branches, or sizes that depend on data: no single graph makes this "
           "output");
}

static void found_in_the_shape(void **state)
{
    (void)state;
    struct world w;
    struct rt_pixels p;
    assert_true(open_world(&w, "cpu", "unet", NULL));
    assert_ok(w.err, rt_adapt_find_pixels(w.method, 0, &p, &w.err));
    assert_int_equal(p.height, 24);
    assert_int_equal(p.width, 20);
    assert_int_equal(p.channels, 3);
    assert_false(p.is_nhwc);
    assert_true(p.scale == 1.0 / 255 && p.std[0] == 1 && p.mean[0] == 0);
    close_world(&w);
    assert_true(open_world(&w, "cpu", "mlp", NULL));
    assert_int_equal(rt_adapt_find_pixels(w.method, 0, &p, &w.err), ST_UNSUPPORTED);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_the_floats_that_they_stand_for),
        cmocka_unit_test(pixels_on_a_vulkan_device),
        cmocka_unit_test(pixels_lie_as_convolutions_read_them),
        cmocka_unit_test(close_to_the_steps_of_torchvision),
        cmocka_unit_test(pixels_in_batches),
        cmocka_unit_test(pixels_are_in_the_signature),
        cmocka_unit_test(each_step_does_what_its_name_says),
        cmocka_unit_test(pool_of_pixels),
        cmocka_unit_test(refused_pixels),
        cmocka_unit_test(refused_steps),
        cmocka_unit_test(found_in_the_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
