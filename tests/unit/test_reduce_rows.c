/* SPDX-License-Identifier: MIT */
/* Means along the rows of large tensors, of which several workers take a part each: the same bytes
 * for any number of workers, and the right ones. Places of extremes along rows and columns. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "hal/cpu/uk.h"
#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "tests/hal/levels.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define WORKERS_MAX 5
#define NUMBERS (700 * 1024)
#define RESULTS_MAX 512

static float numbers[NUMBERS];

struct tensor {
    int64_t images, rows, columns;
};

/* The results of the mean or the sum over the rows. */
static size_t solve(struct hal_device *device, const struct tensor *t, const char *op, float *out)
{
    struct fixture storage = {.device = device}, *f = &storage;
    graph_begin(f);
    uint32_t none = rt_graph_none(&f->graph);
    uint32_t args[] = {CONSTANT(0, t->images, t->rows, t->columns), INTS(1),
                       rt_graph_bool(&f->graph, false), none};
    give(f, apply(f, op, args, 4));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->graph.outputs[0]];
    size_t count = v->bytes.len / sizeof(*out);
    assert_true(v->is_constant && count == (size_t)(t->images * t->columns));
    assert_true(count <= RESULTS_MAX);
    memcpy(out, v->bytes.ptr, v->bytes.len);
    rt_graph_fini(&f->graph);
    return count;
}

/* In double; the kernels add blocks of floats, so their error is that of some hundred additions. */
static void check_sums(const struct tensor *t, const float *sums)
{
    for (int64_t image = 0; image < t->images; image++) {
        for (int64_t j = 0; j < t->columns; j++) {
            const float *x = numbers + image * t->rows * t->columns + j;
            double sum = 0, size = 0;
            for (int64_t row = 0; row < t->rows; row++) {
                sum += (double)x[row * t->columns];
                size += fabs((double)x[row * t->columns]);
            }
            assert_true(fabs(sum - (double)sums[image * t->columns + j]) <= 1e-5 * size);
        }
    }
}

static void any_number_of_workers(void **state)
{
    static const struct tensor tensors[] = {
        {1, 12544, 32}, {2, 3136, 96},  {1, 127 * 128 + 1, 40}, {3, 129, 400 / 3},
        {1, 8192, 17},  {1, 65537, 10}, {4, 1000, 128},         {1, 5, 300},
    };
    static float want[RESULTS_MAX], got[RESULTS_MAX];
    (void)state;
    for (unsigned isa = 0; isa < HAL_CPU_ISA_COUNT; isa++) {
        for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++) {
            for (uint32_t workers = 1; workers <= WORKERS_MAX && has_level(isa); workers++) {
                struct hal_device *device = open_cpu((enum hal_cpu_isa)isa, workers);
                size_t count = solve(device, &tensors[i], "sum", workers == 1 ? want : got);
                if (workers == 1) {
                    check_sums(&tensors[i], want);
                } else {
                    assert_memory_equal(got, want, count * sizeof(*got));
                }
                solve(device, &tensors[i], "mean", got);
                for (size_t j = 0; j < count; j++) {
                    float mean = want[j] / (float)tensors[i].rows;
                    assert_true(fabsf(got[j] - mean) <= 1e-6f * fabsf(mean));
                }
                hal_device_unref(device);
            }
        }
    }
}

/* The place of the first number of |count| that is a NaN, or else an extreme. */
static int64_t place_of(const float *x, int64_t count, int64_t stride, bool is_max)
{
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        float v = x[i * stride], b = x[best * stride];
        if (b == b && (v != v || (is_max ? v > b : v < b))) {
            best = i;
        }
    }
    return best;
}

static void check_places(struct hal_device *device, const struct tensor *t, bool is_max,
                         bool by_row)
{
    struct fixture storage = {.device = device}, *f = &storage;
    uint32_t out;
    graph_begin(f);
    uint32_t args[] = {CONSTANT(0, t->images, t->rows, t->columns), number(f, by_row ? 2 : 1),
                       rt_graph_bool(&f->graph, false)};
    assert_ok(f->err, rt_op_apply(&f->graph, rt_op_find(is_max ? "argmax" : "argmin"), args, 3,
                                  DT_I64, &out, &f->err));
    give(f, out);
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const void *bytes = f->graph.values[f->graph.outputs[0]].bytes.ptr;
    const int64_t *places = bytes;
    int64_t outer = by_row ? t->images * t->rows : t->images, inner = by_row ? 1 : t->columns;
    int64_t count = by_row ? t->columns : t->rows;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            const float *x = numbers + o * inner * count + i;
            assert_int_equal(places[o * inner + i], place_of(x, count, inner, is_max));
        }
    }
    rt_graph_fini(&f->graph);
}

/* Of few different numbers, and with NaNs in two columns and some rows. */
static void extremes_are_the_first_ones(void **state)
{
    static const struct tensor tensors[] = {{1, 40, 300}, {2, 17, 16}, {3, 5, 700}, {1, 600, 3}};
    (void)state;
    for (int64_t i = 0; i < NUMBERS; i++) {
        numbers[i] = i % 2003 == 70 ? NAN : (float)((i * 7919) % 1013 - 500);
    }
    for (unsigned isa = 0; isa < HAL_CPU_ISA_COUNT; isa++) {
        for (size_t i = 0; i < 4 * sizeof(tensors) / sizeof(tensors[0]) && has_level(isa); i++) {
            struct hal_device *device = open_cpu((enum hal_cpu_isa)isa, 2);
            check_places(device, &tensors[i / 4], i % 2, i / 2 % 2);
            hal_device_unref(device);
        }
    }
}

int main(void)
{
    graph_use_numbers(numbers, NUMBERS, NUMBERS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_workers),
        cmocka_unit_test(extremes_are_the_first_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
