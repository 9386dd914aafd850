/* SPDX-License-Identifier: MIT */
/*
 * Winograd's algorithm in graphs: which convolutions the pass gives it, and that its operators
 * compute what a plain convolution does, at every level, with the very same bytes for any number of
 * workers and for images alone or together.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "runtime/ops/winograd.h"
#include "runtime/passes/passes.h"
#include "tests/hal/levels.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))

/* The content of all constants; large ones are zero behind this. */
#define NUMBERS (64 * 1024)
static float numbers[512 * 512 * 9];

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){.device = NULL};
    graph_begin(&f);
    f.graph.precision = PRECISION_FAST;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    rt_graph_fini(&f->graph);
    return 0;
}

/* ---- the choice ------------------------------------------------------------------------------ */

struct conv {
    int64_t channels, outs, extent, side;              /* the expected side of tiles; 0: plain */
    int64_t kernel, stride, padding, dilation, groups; /* 0: 3, 1, 1, 1, 1 */
    bool is_transposed;
};

static int64_t or_else(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

static uint32_t convolve(struct fixture *f, const struct conv *c, uint32_t x, uint32_t w)
{
    int64_t stride = or_else(c->stride, 1), dilation = or_else(c->dilation, 1);
    int64_t padding = c->padding < 0 ? 0 : or_else(c->padding, 1);
    uint32_t args[] = {
        x,
        w,
        rt_graph_none(&f->graph),
        INTS(stride, stride),
        INTS(padding, padding),
        INTS(dilation, dilation),
        rt_graph_bool(&f->graph, c->is_transposed),
        INTS(0, 0),
        number(f, or_else(c->groups, 1)),
    };
    return apply(f, "convolution", args, 9);
}

static const struct rt_node *find_op(const struct fixture *f, const char *op)
{
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        if (strcmp(f->graph.nodes[i].op->name, op) == 0) {
            return &f->graph.nodes[i];
        }
    }
    return NULL;
}

/* Runs the pass; the side of the tiles of the first convolution, or 0. */
static int64_t chosen(struct fixture *f)
{
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_winograd(&f->graph, &f->err));
    const struct rt_node *node = find_op(f, "conv_winograd");
    assert_true(node || find_op(f, "conv") || find_op(f, "conv_dw"));
    return node ? rt_node_arg(&f->graph, node, RT_WINOGRAD_SIDE)->i.value : 0;
}

static void check_choice(const struct conv *c)
{
    void *state;
    set_up(&state);
    struct fixture *f = state;
    int64_t kernel = or_else(c->kernel, 3), groups = or_else(c->groups, 1);
    uint32_t x = INPUT(2, c->channels, c->extent, c->extent);
    uint32_t w = CONSTANT(0, c->outs, c->channels / groups, kernel, kernel);
    give(f, convolve(f, c, x, w));
    int64_t side = chosen(f);
    if (side != c->side) {
        fail_msg("%lld -> %lld @%lld: %lld", (long long)c->channels, (long long)c->outs,
                 (long long)c->extent, (long long)side);
    }
    tear_down(&state);
}

static void the_faster_form_is_chosen(void **state)
{
    static const struct conv convs[] = {
        {64, 64, 56, .side = 4},
        {128, 128, 28, .side = 4},
        {256, 256, 14, .side = 4},
        {512, 512, 7, .side = 2},
        {64, 64, 56, .side = 4, .padding = 2},
        {64, 64, 56, .side = 4, .padding = -1}, /* none */
        {512, 512, 1, .side = 0},               /* one tile: the plain form reads less */
        {32, 32, 4, .side = 0},                 /* calls take longer than products */
        {16, 16, 16, .side = 4},
        {3, 64, 224, .side = 0},   /* transforms take longer than products */
        {64, 15, 56, .side = 0},   /* panels would be mostly empty */
        {4097, 16, 56, .side = 0}, /* more than a worker's scratch has room for */
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(convs); i++) {
        check_choice(&convs[i]);
    }
}

static void other_convolutions_stay(void **state)
{
    static const struct conv convs[] = {
        {64, 64, 56, .side = 0, .stride = 2},  {64, 64, 56, .side = 0, .dilation = 2},
        {64, 64, 56, .side = 0, .groups = 2},  {64, 64, 56, .side = 0, .groups = 64},
        {64, 64, 56, .side = 0, .kernel = 5},  {64, 64, 56, .side = 0, .kernel = 1},
        {64, 64, 56, .side = 0, .padding = 3}, {64, 64, 56, .side = 0, .is_transposed = true},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(convs); i++) {
        check_choice(&convs[i]);
    }
}

static const struct conv usual = {64, 64, 56, .side = 4};

static void precision_decides(void **state)
{
    struct fixture *f = *state;
    give(f, convolve(f, &usual, INPUT(1, 64, 56, 56), CONSTANT(0, 64, 64, 3, 3)));
    f->graph.precision = PRECISION_EXACT;
    assert_int_equal(chosen(f), 0);
    f->graph.precision = PRECISION_BF16;
    assert_ok(f->err, rt_pass_winograd(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "conv_winograd"), 1);
}

/* Plain products of bfloat16 numbers take half the time, so they win where tiles gain little. With
 * AMX they take an eighth of it and always win. */
static void bf16_products_compete(void **state)
{
    static const struct {
        struct conv conv;
        uint32_t speed;
    } rows[] = {
        {{64, 64, 56, .side = 4}, 2},   {{128, 128, 28, .side = 4}, 2},
        {{256, 256, 14, .side = 0}, 2}, {{512, 512, 7, .side = 0}, 2},
        {{64, 64, 56, .side = 0}, 8},   {{256, 256, 14, .side = 0}, 8},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct conv *c = &rows[i].conv;
        tear_down(state);
        set_up(state);
        struct fixture *f = *state;
        f->graph.precision = PRECISION_BF16;
        f->graph.bf16_speed = rows[i].speed;
        give(f, convolve(f, c, INPUT(1, c->channels, c->extent, c->extent),
                         CONSTANT(0, c->outs, c->channels, 3, 3)));
        assert_int_equal(chosen(f), c->side);
    }
}

/* Where multiply-adds are fast beside memory, small images get the smaller weights. */
static void reading_decides(void **state)
{
    static const struct conv convs[] = {
        {64, 64, 56, .side = 4},  {128, 128, 28, .side = 4}, {256, 256, 14, .side = 2},
        {512, 512, 7, .side = 2}, {512, 512, 1, .side = 0},
    };
    for (size_t i = 0; i < LENGTH(convs); i++) {
        const struct conv *c = &convs[i];
        tear_down(state);
        set_up(state);
        struct fixture *f = *state;
        f->graph.f32_per_read = 35;
        give(f, convolve(f, c, INPUT(1, c->channels, c->extent, c->extent),
                         CONSTANT(0, c->outs, c->channels, 3, 3)));
        assert_int_equal(chosen(f), c->side);
    }
}

/* Weights that a call brings would be transformed in each call. */
static void weights_must_be_constant(void **state)
{
    struct fixture *f = *state;
    give(f, convolve(f, &usual, INPUT(1, 64, 56, 56), INPUT(64, 64, 3, 3)));
    assert_int_equal(chosen(f), 0);
}

/* The first convolution of each pair gets a new output when it is replaced. The weights of the
 * second follow from that: they are no constants, whatever lies behind the arrays of the pass. */
static void weights_from_replaced_values_are_no_constants(void **state)
{
    enum { PAIRS = 24 };
    static const struct conv first = {512, 512, 6, .side = 2}, second = {64, 32, 56, .side = 0};
    struct fixture *f = *state;
    uint32_t small = INPUT(1, 512, 6, 6), large = INPUT(1, 64, 56, 56);
    uint32_t sum = INPUT(1, 32, 56, 56), weights[PAIRS / 2];
    for (int i = 0; i < PAIRS / 2; i++) {
        weights[i] = CONSTANT(0, 512, 512, 3, 3);
    }
    for (int i = 0; i < PAIRS; i++) {
        uint32_t made = convolve(f, &first, small, weights[i / 2]);
        uint32_t view[] = {made, INTS(32, 64, 3, 3)};
        uint32_t terms[] = {sum, convolve(f, &second, large, apply(f, "view", view, 2)),
                            number(f, 1)};
        sum = apply(f, "add", terms, 3);
    }
    give(f, sum);
    assert_int_equal(chosen(f), 2);
    assert_int_equal(count_ops(f, "conv_winograd"), PAIRS);
}

static void bounds_of_sizes_decide(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *dims = &f->graph.dims;
    struct rt_dim sizes[] = {rt_dim_symbol(dims, 8), rt_dim_of(64), rt_dim_symbol(dims, 56),
                             rt_dim_symbol(dims, 56)};
    uint32_t x = rt_graph_tensor(&f->graph, DT_F32, 4, sizes);
    f->inputs[f->graph.input_count++] = x;
    give(f, convolve(f, &usual, x, CONSTANT(0, 64, 64, 3, 3)));
    assert_int_equal(chosen(f), 4);
}

static void shared_weights_are_packed_once(void **state)
{
    struct fixture *f = *state;
    uint32_t w = CONSTANT(0, 64, 64, 3, 3);
    give(f, convolve(f, &usual, INPUT(1, 64, 56, 56), w));
    give(f, convolve(f, &usual, INPUT(1, 64, 28, 28), w));
    assert_int_equal(chosen(f), 4);
    assert_int_equal(count_ops(f, "conv_winograd"), 2);
    assert_int_equal(count_ops(f, "pack_winograd"), 1);
}

/* Packed weights take four times the memory. A file could derive many weights from one constant. */
static void memory_of_weights_is_bounded(void **state)
{
    struct fixture *f = *state;
    uint32_t w = CONSTANT(0, 128, 128, 3, 3), x = INPUT(1, 128, 56, 56);
    const struct conv c = {128, 128, 56, .side = 4};
    for (int i = 0; i < 8; i++) {
        w = apply(f, "relu", &w, 1);
        give(f, convolve(f, &c, x, w));
    }
    assert_int_equal(chosen(f), 4);
    assert_int_equal(count_ops(f, "conv_winograd"), 1);
    assert_int_equal(count_ops(f, "conv"), 7);
}

/* Additions and clamps become part of it, and its images have their channels innermost. */
static void epilogues_and_orders(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 64, 56, 56), w = CONSTANT(0, 64, 64, 3, 3);
    uint32_t sum[] = {x, convolve(f, &usual, x, w), number(f, 1)};
    uint32_t added = apply(f, "add", sum, 3);
    give(f, apply(f, "relu", &added, 1));
    assert_int_equal(chosen(f), 4);
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    const struct rt_node *node = find_op(f, "conv_winograd");
    assert_int_equal(node->args[RT_WINOGRAD_RESIDUAL], node->args[RT_WINOGRAD_X]);
    assert_float_equal(rt_node_arg(&f->graph, node, RT_WINOGRAD_MIN)->f, 0, 0);
    assert_non_null(rt_node_out(&f->graph, node, 0)->order);
    assert_non_null(rt_node_arg(&f->graph, node, RT_WINOGRAD_X)->order);
    assert_int_equal(count_ops(f, "add") + count_ops(f, "relu"), 0);
}

/* ---- results --------------------------------------------------------------------------------- */

#define RESULTS_MAX (64 * 1024)

struct problem {
    int64_t images, channels, outs, height, width, padding;
    bool has_epilogue;
};

/* The operator of a side; side 0: the plain form. */
static uint32_t compute(struct fixture *f, const struct problem *p, int64_t side, size_t first)
{
    struct rt_graph *g = &f->graph;
    uint32_t x = CONSTANT(first, p->images, p->channels, p->height, p->width);
    uint32_t w = CONSTANT(7, p->outs, p->channels, 3, 3);
    uint32_t bias = p->has_epilogue ? CONSTANT(3, p->outs) : rt_graph_none(g);
    uint32_t padding = INTS(p->padding, p->padding);
    if (side == 0) {
        uint32_t args[] = {
            x,          w,           bias, INTS(1, 1), padding, INTS(1, 1), rt_graph_bool(g, false),
            INTS(0, 0), number(f, 1)};
        return apply(f, "convolution", args, 9);
    }
    uint32_t pack[] = {w, number(f, side)};
    uint32_t args[RT_WINOGRAD_ARGS] = {x,
                                       apply(f, "pack_winograd", pack, 2),
                                       bias,
                                       rt_graph_none(g),
                                       padding,
                                       number(f, p->outs),
                                       number(f, side),
                                       rt_graph_float(g, -INFINITY),
                                       rt_graph_float(g, INFINITY),
                                       rt_graph_none(g)};
    return apply(f, "conv_winograd", args, RT_WINOGRAD_ARGS);
}

/* Adds numbers and bounds, which fusion makes part of the convolution. */
static uint32_t add_epilogue(struct fixture *f, uint32_t value, size_t first)
{
    const struct rt_value *v = &f->graph.values[value];
    uint32_t other =
        CONSTANT(first, v->dims[0].value, v->dims[1].value, v->dims[2].value, v->dims[3].value);
    uint32_t sum[] = {value, other, number(f, 1)};
    uint32_t clamp[] = {apply(f, "add", sum, 3), rt_graph_float(&f->graph, -1),
                        rt_graph_float(&f->graph, 2)};
    return apply(f, "hardtanh", clamp, 3);
}

/* Computes the problem, whose image and residual begin at numbers |x| and |residual|. All of it is
 * constant, so that folding runs it. */
static size_t solve(struct hal_device *device, const struct problem *p, int64_t side, size_t x,
                    size_t residual, float *out)
{
    struct fixture storage = {.device = device}, *f = &storage;
    graph_begin(f);
    uint32_t value = compute(f, p, side, x);
    give(f, p->has_epilogue ? add_epilogue(f, value, residual) : value);
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "hardtanh") + count_ops(f, "add"), 0);
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->outputs[0]];
    size_t bytes = v->bytes.len;
    assert_true(v->is_constant && bytes <= RESULTS_MAX * sizeof(float));
    memcpy(out, v->bytes.ptr, bytes);
    rt_graph_fini(&f->graph);
    return bytes / sizeof(float);
}

/* The plain form is off by an error of its own. */
static void compare(const float *got, const float *want, size_t count)
{
    double largest = 1;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)want[i]));
    }
    for (size_t i = 0; i < count; i++) {
        if (!(fabs((double)got[i] - (double)want[i]) <= 2e-5 * largest)) {
            fail_msg("result %zu of %zu is %.9g, not %.9g", i, count, (double)got[i],
                     (double)want[i]);
        }
    }
}

/* Each image alone gives the bytes that it has among the others. */
static void check_images(struct hal_device *device, const struct problem *p, int64_t side,
                         const float *all, size_t count)
{
    static float one[RESULTS_MAX];
    struct problem alone = *p;
    size_t image_in = (size_t)(p->channels * p->height * p->width);
    size_t image_out = count / (size_t)p->images;
    alone.images = 1;
    for (size_t i = 0; i < (size_t)p->images; i++) {
        assert_int_equal(solve(device, &alone, side, i * image_in, 11 + i * image_out, one),
                         image_out);
        assert_memory_equal(one, all + i * image_out, image_out * sizeof(float));
    }
}

static void check_problem(const struct problem *p, enum hal_cpu_isa isa)
{
    static float want[RESULTS_MAX], got[RESULTS_MAX], again[RESULTS_MAX];
    struct hal_device *device = open_cpu(isa, 1);
    struct hal_device *several = open_cpu(isa, 3);
    size_t count = solve(device, p, 0, 0, 11, want);
    for (int64_t side = 2; side <= 4; side += 2) {
        assert_int_equal(solve(device, p, side, 0, 11, got), count);
        compare(got, want, count);
        assert_int_equal(solve(several, p, side, 0, 11, again), count);
        assert_memory_equal(got, again, count * sizeof(float));
        check_images(several, p, side, got, count);
    }
    hal_device_unref(device);
    hal_device_unref(several);
}

static void results_are_those_of_the_plain_form(void **state)
{
    static const struct problem problems[] = {
        {3, 16, 16, 28, 29, 1, .has_epilogue = true}, /* many blocks of tiles */
        {1, 24, 300, 9, 11, 1, .has_epilogue = true}, /* few tiles: ranges of columns */
        {3, 17, 33, 7, 7, 1, .has_epilogue = false},  /* images that share blocks */
        {2, 20, 40, 5, 13, 2, .has_epilogue = true},  {2, 16, 18, 12, 3, 0, .has_epilogue = false},
        {5, 16, 16, 1, 1, 1, .has_epilogue = true},   {1, 16, 16, 3, 3, 0, .has_epilogue = true},
    };
    (void)state;
    for (unsigned l = 0; l < HAL_CPU_ISA_COUNT; l++) {
        for (size_t i = 0; i < LENGTH(problems) && has_level((enum hal_cpu_isa)l); i++) {
            check_problem(&problems[i], (enum hal_cpu_isa)l);
        }
    }
}

/* ---- plain products of bfloat16 numbers ------------------------------------------------------ */

/* Two images whose lines have |extent| + 1 pixels, by folding. */
static size_t solve_plain(struct hal_device *device, const struct conv *c, enum precision precision,
                          float *out)
{
    struct fixture storage = {.device = device}, *f = &storage;
    int64_t kernel = or_else(c->kernel, 3), ins = c->channels / or_else(c->groups, 1);
    graph_begin(f);
    f->graph.precision = precision;
    f->graph.bf16_speed = 2;
    uint32_t x = CONSTANT(0, 2, c->channels, c->extent, c->extent + 1);
    uint32_t w = c->is_transposed ? CONSTANT(5, c->channels, c->outs, kernel, kernel)
                                  : CONSTANT(5, c->outs, ins, kernel, kernel);
    give(f, convolve(f, c, x, w));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    const struct rt_node *node = find_op(f, "conv");
    assert_non_null(node);
    assert_int_equal(rt_node_arg(&f->graph, node, 1)->dtype,
                     precision == PRECISION_BF16 ? DT_BF16 : DT_F32);
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->outputs[0]];
    size_t bytes = v->bytes.len;
    assert_true(v->is_constant && bytes <= RESULTS_MAX * sizeof(float));
    memcpy(out, v->bytes.ptr, bytes);
    rt_graph_fini(&f->graph);
    return bytes / sizeof(float);
}

/* Quarters are exact in bfloat16, and so are their sums in float32: however lines are cut into
 * products, and whatever taps these skip, the results are those of floats. */
static void products_of_quarters_are_exact(void **state)
{
    static const struct conv convs[] = {
        {64, 40, 7, .side = 0},
        {32, 33, 13, .side = 0},
        {64, 40, 4, .side = 0},
        {64, 40, 2, .side = 0},
        {32, 32, 20, .stride = 2},
        {64, 32, 15, .stride = 2},
        {32, 32, 9, .dilation = 2, .padding = 2},
        {32, 32, 9, .padding = 2},
        {32, 32, 9, .kernel = 5, .padding = 2},
        {32, 32, 9, .kernel = 5, .padding = 1},
        {64, 32, 9, .groups = 2},
        {32, 32, 8, .stride = 2, .is_transposed = true},
        {64, 32, 9, .stride = 3, .kernel = 5, .is_transposed = true},
        {64, 32, 7, .padding = -1},
        {30, 32, 7, .side = 0},
    };
    static float want[RESULTS_MAX], got[RESULTS_MAX];
    (void)state;
    if (!has_level(HAL_CPU_AVX512_BF16)) {
        skip();
    }
    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = roundf(numbers[i] * 4) / 4;
    }
    struct hal_device *device = open_cpu(HAL_CPU_AVX512_BF16, 2);
    for (size_t i = 0; i < LENGTH(convs); i++) {
        size_t count = solve_plain(device, &convs[i], PRECISION_EXACT, want);
        assert_int_equal(solve_plain(device, &convs[i], PRECISION_BF16, got), count);
        for (size_t j = 0; j < count; j++) {
            if (got[j] != want[j]) {
                fail_msg("convolution %zu: result %zu is %g, not %g", i, j, (double)got[j],
                         (double)want[j]);
            }
        }
    }
    hal_device_unref(device);
}

int main(void)
{
    graph_use_numbers(numbers, LENGTH(numbers), NUMBERS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_form_is_chosen),
        cmocka_unit_test(other_convolutions_stay),
        cmocka_unit_test_setup_teardown(precision_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bf16_products_compete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reading_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(weights_must_be_constant, set_up, tear_down),
        cmocka_unit_test_setup_teardown(weights_from_replaced_values_are_no_constants, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(bounds_of_sizes_decide, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shared_weights_are_packed_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_of_weights_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(epilogues_and_orders, set_up, tear_down),
        cmocka_unit_test(results_are_those_of_the_plain_form),
        cmocka_unit_test(products_of_quarters_are_exact), /* the last: it changes the numbers */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
