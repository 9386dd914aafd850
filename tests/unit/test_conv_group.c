/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of small groups: which of them become "conv_group", and that it computes what the
 * plain kernel does, at every level, with the very same bytes for any number of workers.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/hal/levels.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))
#define WORKERS_MAX 4
#define RESULTS_MAX (64 * 1024)

static float numbers[128 * 1024];

struct conv {
    int64_t channels, outs, groups, height, width, kernel, stride, dilation;
};

static uint32_t convolve(struct fixture *f, const struct conv *c, int64_t lines, uint32_t x)
{
    int64_t padding = c->kernel / 2;
    uint32_t args[] = {
        x,
        CONSTANT(5, c->outs, c->channels / c->groups, c->kernel, c->kernel),
        CONSTANT(3, c->outs),
        INTS(lines, c->stride),
        INTS(padding, padding),
        INTS(c->dilation, c->dilation),
        rt_graph_bool(&f->graph, false),
        INTS(0, 0),
        number(f, c->groups),
    };
    return apply(f, "convolution", args, 9);
}

/* |lines|: the stride from one line of the result to the next. */
static uint32_t count_groups(const struct conv *c, int64_t lines, uint32_t group_max)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    graph_begin(f);
    f->graph.group_max = group_max;
    give(f, convolve(f, c, lines, INPUT(1, c->channels, c->height, c->width)));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    uint32_t count = count_ops(f, "conv_group");
    rt_graph_fini(&f->graph);
    return count;
}

static void small_groups_are_chosen(void **state)
{
    static const struct conv usual = {64, 64, 8, 14, 14, 3, 1, 1};
    static const struct conv others[] = {
        {64, 64, 2, 14, 14, 3, 1, 1},  /* wide groups */
        {64, 64, 64, 14, 14, 3, 1, 1}, /* depthwise */
        {96, 96, 8, 14, 14, 3, 1, 1},  /* of 12 channels */
        {64, 128, 8, 14, 14, 3, 1, 1}, /* more outputs than inputs */
        {64, 64, 8, 14, 14, 5, 1, 1},  {64, 64, 8, 14, 14, 3, 3, 1}, {8, 8, 2, 14, 14, 3, 1, 1},
    };
    (void)state;
    assert_int_equal(count_groups(&usual, 1, 16), 1);
    assert_int_equal(count_groups(&usual, 3, 16), 1);
    assert_int_equal(count_groups(&usual, 1, 0), 0); /* the device has no kernel */
    for (size_t i = 0; i < LENGTH(others); i++) {
        assert_int_equal(count_groups(&others[i], 1, 16), 0);
    }
}

/* The result, which folding computes. */
static size_t solve(struct hal_device *device, const struct conv *c, bool in_groups, float *out)
{
    struct fixture storage = {.device = device}, *f = &storage;
    graph_begin(f);
    f->graph.group_max = in_groups ? hal_device_props(device)->group_max : 0;
    give(f, convolve(f, c, c->stride, CONSTANT(1, 2, c->channels, c->height, c->width)));
    give(f, CONSTANT(0, LENGTH(numbers))); /* folding makes some times what constants take */
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "conv_group"), f->graph.group_max > 0);
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->graph.outputs[0]];
    assert_true(v->is_constant && v->bytes.len <= RESULTS_MAX * sizeof(float));
    memcpy(out, v->bytes.ptr, v->bytes.len);
    size_t count = v->bytes.len / sizeof(float);
    rt_graph_fini(&f->graph);
    return count;
}

static void check_results(const struct conv *c, enum hal_cpu_isa isa)
{
    static float plain[RESULTS_MAX], want[RESULTS_MAX], got[RESULTS_MAX];
    for (uint32_t workers = 1; workers <= WORKERS_MAX; workers++) {
        struct hal_device *device = open_cpu(isa, workers);
        size_t count = solve(device, c, true, workers == 1 ? want : got);
        if (workers > 1) {
            assert_memory_equal(got, want, count * sizeof(float));
        } else {
            assert_int_equal(solve(device, c, false, plain), count);
        }
        for (size_t i = 0; workers == 1 && i < count; i++) {
            assert_true(fabsf(want[i] - plain[i]) <= 1e-5f * (1 + fabsf(plain[i])));
        }
        hal_device_unref(device);
    }
}

static void results_are_those_of_products(void **state)
{
    static const struct conv convs[] = {
        {64, 64, 8, 14, 14, 3, 1, 1},
        {24, 24, 3, 30, 30, 3, 2, 1}, /* the last vector overlaps the one before it */
        {152, 152, 38, 9, 9, 3, 1, 1},
        {32, 32, 4, 17, 5, 3, 1, 2},
        {40, 40, 20, 3, 2, 3, 1, 1}, /* lines are shorter than a block */
    };
    (void)state;
    for (unsigned l = 0; l < HAL_CPU_ISA_COUNT; l++) {
        for (size_t i = 0; i < LENGTH(convs) && has_level((enum hal_cpu_isa)l); i++) {
            check_results(&convs[i], (enum hal_cpu_isa)l);
        }
    }
}

int main(void)
{
    graph_use_numbers(numbers, LENGTH(numbers), LENGTH(numbers));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_groups_are_chosen),
        cmocka_unit_test(results_are_those_of_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
