/* SPDX-License-Identifier: MIT */
/*
 * Compares products of halves in every SPIR-V form of the Vulkan devices with those of the CPU. The
 * error of a result is bounded relative to the sum of its products' magnitudes, for sizes that fit
 * no tile and for numbers at the ends of the range of halves. Folding runs the graphs, whose inputs
 * are constants. Forms that no device here can run are skipped.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/kernel.h"
#include "runtime/code/fold.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define VALUES_MAX 65536

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* One rounding to a half, relative. */
#define HALF_ROUNDING (1.0 / 2048)

struct form {
    const char *capabilities;
    uint32_t needs;
    double error; /* at most, of the sum of magnitudes */
};

enum { HALVES_FORM = 2 };

static const struct form forms[] = {
    {"-all", 0, 1e-6},
    {"-all,+gpu", HAL_GPU, 1e-6},
    {"-all,+gpu,+halves", HAL_GPU | HAL_F16, 8 * HALF_ROUNDING},
    {"-all,+matrices_f16", HAL_MATRICES_F16, 1e-6},
};

/* How the numbers are chosen. */
enum kind { PLAIN, LARGE, TINY, ROWS, SPECIAL };

struct problem {
    int64_t m, k, n; /* a product, or of a convolution: */
    int64_t size, taps, stride, padding, groups;
    bool is_transposed; /* a convolution */
    bool has_epilogue;  /* with bias, residual and bounds */
    bool is_rounded;    /* the results are rounded to halves */
    enum kind kind;
};

static uint32_t random_state;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % bound;
}

static uint16_t make_half(enum kind kind, int64_t row)
{
    static const struct {
        uint32_t first, count; /* exponents */
    } ranges[] = {{12, 4}, {28, 3}, {0, 3}, {0, 2}, {12, 4}};
    uint32_t exponent = ranges[kind].first + random_below(ranges[kind].count);
    exponent += kind == ROWS ? (uint32_t)(row * 5 % 29) : 0;
    uint32_t bits = random_below(2) << 15 | exponent << 10 | random_below(1024);
    if (kind == SPECIAL && row % 7 == 3 && random_below(20) == 0) {
        return random_below(3) == 0 ? 0x7e00 : random_below(2) ? 0x7c00 : 0xfc00;
    }
    return (uint16_t)bits;
}

/* Makes halves. The first ones do not depend on the count. If |is_absolute|, only the
 * magnitudes. */
static uint32_t halves(struct fixture *f, const int64_t *sizes, enum kind kind, bool is_absolute)
{
    struct shape shape = {.rank = 0};
    struct hal_buffer *buffer;
    for (; sizes[shape.rank] >= 0; shape.rank++) {
        shape.dims[shape.rank] = sizes[shape.rank];
    }
    int64_t count = shape_numel(&shape);
    assert_true(count <= VALUES_MAX);
    uint32_t value = rt_graph_constant(&f->graph, DT_F16, &shape, span_of(NULL, 0));
    assert_ok(f->err, hal_buffer_new(f->device, (size_t)count * 2, &buffer, &f->err));
    uint16_t *to = hal_buffer_map(buffer);
    random_state = (uint32_t)shape.rank + f->graph.value_count;
    for (int64_t i = 0; i < count; i++) {
        to[i] = make_half(kind, i / (count / sizes[0])) & (is_absolute ? 0x7fff : 0xffff);
    }
    rt_graph_set_constant(&f->graph, value, buffer);
    uint32_t floats;
    assert_ok(f->err, rt_op_convert(&f->graph, value, DT_F32, &floats, &f->err));
    return floats;
}

#define HALVES(kind, ...) halves(f, (const int64_t[]){__VA_ARGS__, -1}, kind, is_absolute)

/* Makes both operands first, so that their numbers do not depend on the other inputs. */
static uint32_t make_product(struct fixture *f, const struct problem *p, bool is_absolute)
{
    uint32_t x = HALVES(p->kind, p->m, p->k);
    uint32_t w = HALVES(p->kind == SPECIAL ? PLAIN : p->kind, p->n, p->k);
    bool has_bias = p->has_epilogue && !is_absolute;
    uint32_t args[] = {x, w, has_bias ? HALVES(PLAIN, p->n) : rt_graph_none(&f->graph)};
    return apply(f, "linear", args, 3);
}

static uint32_t make_convolution(struct fixture *f, const struct problem *p, bool is_absolute)
{
    int64_t rows = p->is_transposed ? p->k : p->n, group = (p->is_transposed ? p->n : p->k);
    uint32_t x = HALVES(p->kind, p->m, p->k, p->size, p->size + 2);
    uint32_t w = HALVES(PLAIN, rows, group / p->groups, p->taps, p->taps);
    bool has_bias = p->has_epilogue && !is_absolute;
    uint32_t args[] = {
        x,
        w,
        has_bias ? HALVES(PLAIN, p->n) : rt_graph_none(&f->graph),
        INTS(p->stride, p->stride),
        INTS(p->padding, p->padding),
        INTS(1, 1),
        rt_graph_bool(&f->graph, p->is_transposed),
        INTS(0, 0),
        number(f, p->groups),
    };
    return apply(f, "convolution", args, 9);
}

/* Adds a constant and bounds. Fusion makes them part of the product. */
static uint32_t add_epilogue(struct fixture *f, uint32_t product)
{
    const struct rt_value *v = &f->graph.values[product];
    int64_t sizes[5] = {-1, -1, -1, -1, -1};
    for (uint8_t d = 0; d < v->rank; d++) {
        sizes[d] = v->dims[d].value;
    }
    uint32_t residual[] = {product, halves(f, sizes, PLAIN, false), number(f, 1)};
    uint32_t clamp[] = {apply(f, "add", residual, 3), rt_graph_float(&f->graph, -0.5),
                        rt_graph_float(&f->graph, 0.75)};
    return apply(f, "hardtanh", clamp, 3);
}

static uint32_t round_through_halves(struct fixture *f, uint32_t value)
{
    uint32_t half, floats;
    assert_ok(f->err, rt_op_convert(&f->graph, value, DT_F16, &half, &f->err));
    assert_ok(f->err, rt_op_convert(&f->graph, half, DT_F32, &floats, &f->err));
    return floats;
}

static struct hal_device *open_host(void)
{
    const struct hal_device_options options = {.workers = 1, .cpu_level = "generic"};
    struct hal_device *device;
    struct error err;
    assert_ok(err, hal_device_open("cpu", &options, &device, &err));
    return device;
}

/* A device that can run the form, or NULL. */
static struct hal_device *open_for(const struct form *form)
{
    const struct hal_device_options options = {.workers = 1, .cpu_level = "generic"};
    struct hal_device *device;
    struct error err;
    assert_int_equal(setenv("PTED_VULKAN_CAPABILITIES", form->capabilities, 1), 0);
    if (hal_device_open("vulkan", &options, &device, &err) == ST_OK) {
        const struct hal_device_props *props = hal_device_props(device);
        if (props->host_visible && (form->needs & ~props->capabilities) == 0) {
            return device;
        }
        hal_device_unref(device);
    }
    print_message("skipped: no Vulkan device here can run %s\n", form->capabilities);
    return NULL;
}

/* The problem's results, or the sums of their products' magnitudes. */
static size_t solve(struct hal_device *device, const struct problem *p, bool is_absolute,
                    float *out)
{
    struct fixture storage = {.device = device}, *f = &storage;
    graph_begin(f);
    uint32_t value =
        p->taps ? make_convolution(f, p, is_absolute) : make_product(f, p, is_absolute);
    value = p->has_epilogue && !is_absolute ? add_epilogue(f, value) : value;
    give(f, p->is_rounded && !is_absolute ? round_through_halves(f, value) : value);
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->outputs[0]];
    size_t bytes = v->bytes.len;
    assert_true(v->is_constant && bytes <= VALUES_MAX * sizeof(float));
    memcpy(out, v->bytes.ptr, bytes);
    rt_graph_fini(&f->graph);
    return bytes / sizeof(float);
}

static bool is_close(float got, float want, double bound)
{
    if (!isfinite(want)) {
        return isnan(want) ? isnan(got) : got == want;
    }
    return fabs((double)got - (double)want) <= bound;
}

/* The largest error of a result. A rounding may go to either side. */
static double bound_of(const struct form *form, const struct problem *p, float want,
                       float magnitude)
{
    double bound = form->error * (double)magnitude + (p->has_epilogue ? 1e-6 : 0);
    return p->is_rounded ? bound + fabs((double)want) / 1024 + ldexp(1, -24) : bound;
}

static bool is_half(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return (bits & 0x1fff) == 0 || fabsf(v) < 1.0F / 16384; /* denormal halves have fewer bits */
}

/* Compares with the CPU. Returns the root mean square of the errors over that of the results. */
static double check(struct hal_device *device, const struct form *form, const struct problem *p)
{
    static float want[VALUES_MAX], got[VALUES_MAX], magnitude[VALUES_MAX];
    struct hal_device *host = open_host();
    size_t count = solve(host, p, false, want);
    double squares = 0, errors = 0;
    solve(host, p, true, magnitude);
    hal_device_unref(host);
    assert_int_equal(solve(device, p, false, got), count);
    for (size_t i = 0; i < count; i++) {
        double off = (double)got[i] - (double)want[i];
        if (!is_close(got[i], want[i], bound_of(form, p, want[i], magnitude[i]))) {
            fail_msg("%s: %lldx%lldx%lld, %lld taps, numbers %d: result %zu is %.9g, not %.9g",
                     form->capabilities, (long long)p->m, (long long)p->k, (long long)p->n,
                     (long long)p->taps, p->kind, i, (double)got[i], (double)want[i]);
        }
        assert_true(!p->is_rounded || (is_half(got[i]) && is_half(want[i])));
        errors += isfinite(off) ? off * off : 0;
        squares += isfinite(want[i]) ? (double)want[i] * (double)want[i] : 0;
    }
    return squares > 0 ? sqrt(errors / squares) : 0;
}

static void check_all(const struct problem *problems, size_t count)
{
    unsigned compared = 0;
    for (size_t f = 0; f < LENGTH(forms); f++) {
        struct hal_device *device = open_for(&forms[f]);
        for (size_t i = 0; device && i < count; i++) {
            check(device, &forms[f], &problems[i]);
        }
        compared += device != NULL;
        hal_device_unref(device);
    }
    if (compared == 0) {
        skip();
    }
}

#define CHECK(problems) check_all(problems, LENGTH(problems))
#define EACH_KIND(...)                                                                             \
    {__VA_ARGS__, .kind = PLAIN}, {__VA_ARGS__, .kind = LARGE}, {__VA_ARGS__, .kind = TINY},       \
        {__VA_ARGS__, .kind = ROWS},                                                               \
    {                                                                                              \
        __VA_ARGS__, .kind = SPECIAL                                                               \
    }

static void products_of_any_size(void **state)
{
    static const struct problem problems[] = {
        {.m = 1, .k = 1, .n = 1},
        {.m = 1, .k = 7, .n = 5},
        {.m = 3, .k = 0, .n = 4},
        {.m = 16, .k = 16, .n = 16},
        {.m = 65, .k = 33, .n = 67},
        {.m = 64, .k = 64, .n = 64},
        {.m = 5, .k = 300, .n = 130},
        {.m = 130, .k = 70, .n = 3},
        {.m = 33, .k = 40, .n = 70, .has_epilogue = true},
        {.m = 33, .k = 40, .n = 70, .is_rounded = true},
        {.m = 70, .k = 9, .n = 300, .has_epilogue = true, .is_rounded = true},
    };
    (void)state;
    CHECK(problems);
}

static void convolutions_of_any_form(void **state)
{
    static const struct problem problems[] = {
        {.m = 2, .k = 3, .n = 8, .size = 9, .taps = 3, .stride = 2, .padding = 1, .groups = 1},
        {.m = 1, .k = 16, .n = 24, .size = 5, .taps = 1, .stride = 1, .groups = 1},
        {.m = 1, .k = 12, .n = 20, .size = 8, .taps = 3, .stride = 1, .padding = 1, .groups = 4},
        {.m = 1,
         .k = 5,
         .n = 70,
         .size = 11,
         .taps = 5,
         .stride = 1,
         .padding = 2,
         .groups = 1,
         .has_epilogue = true},
        {.m = 2,
         .k = 6,
         .n = 10,
         .size = 5,
         .taps = 3,
         .stride = 2,
         .padding = 1,
         .groups = 1,
         .is_transposed = true},
        {.m = 1,
         .k = 6,
         .n = 10,
         .size = 5,
         .taps = 3,
         .stride = 2,
         .padding = 1,
         .groups = 2,
         .is_transposed = true,
         .has_epilogue = true},
        {.m = 2,
         .k = 4,
         .n = 20,
         .size = 7,
         .taps = 3,
         .stride = 2,
         .padding = 1,
         .groups = 2,
         .is_rounded = true},
        {.m = 1,
         .k = 6,
         .n = 10,
         .size = 5,
         .taps = 3,
         .stride = 2,
         .padding = 1,
         .groups = 1,
         .is_transposed = true,
         .is_rounded = true},
    };
    (void)state;
    CHECK(problems);
}

static void numbers_at_the_ends_of_halves(void **state)
{
    static const struct problem problems[] = {
        EACH_KIND(.m = 37, .k = 45, .n = 41),
        EACH_KIND(.m = 2, .k = 5, .n = 9, .size = 6, .taps = 3, .stride = 1, .groups = 1),
    };
    (void)state;
    CHECK(problems);
}

/* Errors of both signs add up to about one rounding of the result, for all kinds of numbers. */
static void the_mean_error_is_that_of_a_rounding(void **state)
{
    static const struct problem problems[] = {EACH_KIND(.m = 40, .k = 512, .n = 60)};
    struct hal_device *device = open_for(&forms[HALVES_FORM]);
    (void)state;
    if (!device) {
        skip();
    }
    for (size_t i = 0; i < LENGTH(problems); i++) {
        assert_true(check(device, &forms[HALVES_FORM], &problems[i]) < 2 * HALF_ROUNDING);
    }
    hal_device_unref(device);
}

/* A pixel's result must not depend on other pixels, because calls may be joined. */
static void a_row_does_not_depend_on_other_rows(void **state)
{
    static const struct problem alone = {.m = 1, .k = 77, .n = 20, .kind = ROWS},
                                joined = {.m = 40, .k = 77, .n = 20, .kind = ROWS};
    static float one[VALUES_MAX], all[VALUES_MAX];
    struct hal_device *device = open_for(&forms[HALVES_FORM]);
    (void)state;
    if (!device) {
        skip();
    }
    size_t count = solve(device, &alone, false, one);
    solve(device, &joined, false, all);
    assert_memory_equal(one, all, count * sizeof(float));
    hal_device_unref(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_any_size),
        cmocka_unit_test(convolutions_of_any_form),
        cmocka_unit_test(numbers_at_the_ends_of_halves),
        cmocka_unit_test(the_mean_error_is_that_of_a_rounding),
        cmocka_unit_test(a_row_does_not_depend_on_other_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
