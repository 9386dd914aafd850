/* SPDX-License-Identifier: MIT */
/* Convolutions of volumes, which become convolutions of planes: they compute what plain loops do,
 * whatever the depth of kernel, stride, padding and dilation. */
#include "config.h"

#include <math.h>

#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define AXES 3
#define BIAS 1
#define WEIGHTS 100

#define NUMBERS (128 * 1024)

static float numbers[NUMBERS];

struct volume {
    int64_t images, channels, outs, in[AXES], kernel[AXES], stride[AXES], padding[AXES],
        dilation[AXES];
};

static int64_t out_extent(const struct volume *v, int axis)
{
    int64_t reach = v->dilation[axis] * (v->kernel[axis] - 1);
    return (v->in[axis] + 2 * v->padding[axis] - reach - 1) / v->stride[axis] + 1;
}

static uint32_t list(struct fixture *f, const int64_t of[AXES])
{
    return INTS(of[0], of[1], of[2]);
}

static uint32_t convolve(struct fixture *f, const struct volume *v, uint32_t x)
{
    const int64_t *k = v->kernel;
    uint32_t args[] = {
        x,
        CONSTANT(WEIGHTS, v->outs, v->channels, k[0], k[1], k[2]),
        CONSTANT(BIAS, v->outs),
        list(f, v->stride),
        list(f, v->padding),
        list(f, v->dilation),
        rt_graph_bool(&f->graph, false),
        INTS(0, 0, 0),
        number(f, 1),
    };
    return apply(f, "convolution", args, 9);
}

/* The part of a result that one channel of the input gives; |at| is a place of the result. */
static double sum_window(const struct volume *v, const float *x, const float *w,
                         const int64_t at[AXES])
{
    const int64_t *k = v->kernel, *in = v->in;
    double sum = 0;
    for (int64_t tap = 0; tap < k[0] * k[1] * k[2]; tap++) {
        const int64_t taps[AXES] = {tap / k[2] / k[1], tap / k[2] % k[1], tap % k[2]};
        int64_t place = 0;
        bool is_inside = true;
        for (int i = 0; i < AXES; i++) {
            int64_t p = at[i] * v->stride[i] + taps[i] * v->dilation[i] - v->padding[i];
            is_inside = is_inside && p >= 0 && p < in[i];
            place = place * in[i] + p;
        }
        sum += is_inside ? (double)x[place] * (double)w[tap] : 0;
    }
    return sum;
}

static double want_at(const struct volume *v, const int64_t out[AXES], int64_t position)
{
    const int64_t at[AXES] = {position / out[2] / out[1] % out[0], position / out[2] % out[1],
                              position % out[2]};
    int64_t channel = position / (out[0] * out[1] * out[2]) % v->outs;
    int64_t image = position / (out[0] * out[1] * out[2]) / v->outs;
    int64_t pixels = v->in[0] * v->in[1] * v->in[2];
    int64_t taps = v->kernel[0] * v->kernel[1] * v->kernel[2];
    double sum = (double)numbers[BIAS + channel];
    for (int64_t c = 0; c < v->channels; c++) {
        sum += sum_window(v, numbers + (image * v->channels + c) * pixels,
                          numbers + WEIGHTS + (channel * v->channels + c) * taps, at);
    }
    return sum;
}

static void check(const struct volume *v)
{
    struct fixture storage = {.device = open_cpu(HAL_CPU_GENERIC, 2)}, *f = &storage;
    const int64_t out[AXES] = {out_extent(v, 0), out_extent(v, 1), out_extent(v, 2)};
    graph_begin(f);
    give(f, convolve(f, v, CONSTANT(0, v->images, v->channels, v->in[0], v->in[1], v->in[2])));
    give(f, CONSTANT(0, NUMBERS)); /* folding makes some times what constants take */
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "conv"), 1);
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *y = &f->graph.values[f->graph.outputs[0]];
    int64_t count = v->images * v->outs * out[0] * out[1] * out[2];
    assert_true(y->is_constant && y->bytes.len == (size_t)count * sizeof(float));
    const float *got = (const float *)(const void *)y->bytes.ptr;
    for (int64_t i = 0; i < count; i++) {
        assert_true(fabs((double)got[i] - want_at(v, out, i)) <= 1e-4);
    }
    rt_graph_fini(&f->graph);
    hal_device_unref(f->device);
}

static void results_are_those_of_loops(void **state)
{
    static const struct volume volumes[] = {
        {1, 3, 8, {5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
        {2, 3, 5, {6, 6, 7}, {3, 3, 3}, {2, 1, 2}, {1, 0, 1}, {1, 1, 1}},
        {2, 3, 5, {6, 6, 7}, {1, 3, 3}, {2, 1, 1}, {1, 1, 1}, {1, 1, 1}}, /* planes alone */
        {1, 4, 5, {3, 6, 7}, {1, 3, 3}, {1, 1, 1}, {2, 1, 1}, {1, 1, 1}},
        {3, 1, 7, {6, 4, 7}, {3, 1, 3}, {1, 1, 1}, {2, 0, 2}, {2, 1, 2}},
        {1, 4, 4, {3, 3, 3}, {3, 3, 3}, {3, 1, 1}, {0, 0, 0}, {1, 1, 1}}, /* one plane */
        {1, 2, 3, {9, 5, 4}, {4, 2, 1}, {3, 2, 1}, {2, 1, 0}, {2, 1, 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(volumes) / sizeof(volumes[0]); i++) {
        check(&volumes[i]);
    }
}

/* Counted from the end, places before the first plane would be others. */
static void deeper_kernels_are_refused(void **state)
{
    static const struct volume deep = {1,         3,         4,         {2, 6, 7},
                                       {3, 3, 3}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}};
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    give(f, convolve(f, &deep, INPUT(1, 3, 2, 6, 7)));
    assert_fails(f->err, rt_pass_lower(&f->graph, &f->err), ST_INVALID,
                 "deeper than the padded volume): got 0, expected 1");
    rt_graph_fini(&f->graph);
}

int main(void)
{
    graph_use_numbers(numbers, NUMBERS, NUMBERS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_loops),
        cmocka_unit_test(deeper_kernels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
