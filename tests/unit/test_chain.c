/* SPDX-License-Identifier: MIT */
/*
 * Chains of pointwise nodes: which nodes become a chain, as printed text, and that a chain computes
 * the same numbers as its nodes. To compare numbers, constants replace the inputs, so that folding
 * runs the graph, with and without the pass.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hal/buffer.h"
#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define VALUES_MAX 65536

static int set_up(void **state)
{
    static struct fixture f;
    static const struct hal_device_options options = {.workers = 1};
    f = (struct fixture){0};
    assert_ok(f.err, hal_device_open("cpu", &options, &f.device, &f.err));
    graph_begin(&f);
    *state = &f;
    return 0;
}

static uint32_t unary(struct fixture *f, const char *op, uint32_t x)
{
    return apply(f, op, &x, 1);
}

static uint32_t binary(struct fixture *f, const char *op, uint32_t a, uint32_t b)
{
    bool has_factor = strcmp(op, "add") == 0 || strcmp(op, "sub") == 0;
    uint32_t args[] = {a, b, rt_graph_int(&f->graph, rt_dim_of(1))};
    return apply(f, op, args, has_factor ? 3 : 2);
}

static uint32_t scalar(struct fixture *f, const char *op, uint32_t x, double number, double factor)
{
    uint32_t args[] = {x, rt_graph_float(&f->graph, number), rt_graph_float(&f->graph, factor)};
    return apply(f, op, args, strncmp(op, "mul", 3) == 0 || strncmp(op, "div", 3) == 0 ? 2 : 3);
}

static void assert_chained(struct fixture *f, const char *expected)
{
    assert_ok(f->err, rt_pass_chain(&f->graph, &f->err));
    assert_graph(f, expected);
}

/* ---- what becomes a chain -------------------------------------------------------------------- */

static void a_tree_becomes_one_node(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), y = INPUT(1, 3), z = INPUT(2, 1);
    uint32_t sum = binary(f, "add", unary(f, "exp", x), y);
    give(f, binary(f, "div", sum, scalar(f, "rsub_scalar", binary(f, "mul", x, z), 2, 1)));
    assert_chained(f, "method m(%1:f32[2,3], %2:f32[1,3], %3:f32[2,1])\n"
                      "  %13:f32[2,3] = chain(%1, %2, %3, \"exp add mul sub div\", "
                      "[0,3,1,0,2,-1,5,4,6], [2])\n"
                      "  return %13\n");
}

static void known_forms_are_one_step(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), sum = scalar(f, "add_scalar", x, 3, 1);
    uint32_t gate = scalar(f, "clamp", sum, 0, 6);
    give(f, scalar(f, "div_scalar", binary(f, "mul", x, gate), 6, 0));
    uint32_t y = INPUT(2, 3), positive = unary(f, "relu", scalar(f, "add_scalar", y, 3, 1));
    uint32_t bounded = scalar(f, "clamp", positive, -INFINITY, 6);
    give(f, scalar(f, "mul_scalar", bounded, 1.0 / 6, 0));
    uint32_t z = unary(f, "abs", INPUT(2, 3));
    give(f, binary(f, "mul", unary(f, "sigmoid", z), z));
    assert_chained(f, "method m(%1:f32[2,3], %13:f32[2,3], %24:f32[2,3])\n"
                      "  %12:f32[2,3] = chain(%1, none, none, \"hardswish\", [0], [])\n"
                      "  %23:f32[2,3] = chain(%13, none, none, \"hardsigmoid\", [0], [])\n"
                      "  %28:f32[2,3] = chain(%24, none, none, \"abs silu\", [0,1], [])\n"
                      "  return %12, %23, %28\n");
}

/* With other numbers the form is another function. */
static void nearly_known_forms_stay(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3);
    uint32_t gate = scalar(f, "clamp", scalar(f, "add_scalar", x, 3, 1), 0, 5);
    give(f, scalar(f, "div_scalar", binary(f, "mul", x, gate), 6, 0));
    uint32_t y = INPUT(2, 3), other = INPUT(2, 3);
    give(f, binary(f, "mul", unary(f, "sigmoid", y), other));
    assert_chained(f, "method m(%1:f32[2,3], %13:f32[2,3], %14:f32[2,3])\n"
                      "  %12:f32[2,3] = chain(%1, none, none, \"add clamp mul div\", "
                      "[0,-1,1,-2,-3,0,2,3,-4], [3,0,5,6])\n"
                      "  %17:f32[2,3] = chain(%14, %13, none, \"sigmoid mul\", [1,2,0], [])\n"
                      "  return %12, %17\n");
}

static void values_with_other_readers_stay(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), a = unary(f, "exp", x), b = unary(f, "abs", INPUT(1, 3));
    give(f, a);
    give(f, unary(f, "tanh", unary(f, "neg", a)));
    give(f, binary(f, "mul", a, b)); /* |b| has other dims */
    assert_chained(f, "method m(%1:f32[2,3], %3:f32[1,3])\n"
                      "  %2:f32[2,3] = exp(%1)\n"
                      "  %4:f32[1,3] = abs(%3)\n"
                      "  %6:f32[2,3] = chain(%2, none, none, \"neg tanh\", [0,1], [])\n"
                      "  %8:f32[2,3] = chain(%2, %4, none, \"mul\", [0,1], [])\n"
                      "  return %2, %6, %8\n");
}

static uint32_t count_nodes(const struct fixture *f, const char *op)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        count += strcmp(f->graph.nodes[i].op->name, op) == 0;
    }
    return count;
}

static void chains_are_bounded(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3);
    for (int i = 0; i < 40; i++) {
        x = unary(f, i % 2 ? "neg" : "exp", x);
    }
    give(f, x);
    uint32_t sum = INPUT(2, 3);
    for (int i = 0; i < 5; i++) {
        sum = binary(f, "add", sum, INPUT(2, 3));
    }
    give(f, sum);
    assert_ok(f->err, rt_pass_chain(&f->graph, &f->err));
    /* 16 + 16 + 8 steps; sums of three, three and two tensors. */
    assert_int_equal(count_nodes(f, "chain"), 3 + 2);
    assert_int_equal(count_nodes(f, "add"), 1);
    assert_int_equal(f->graph.node_count, 6);
}

static void factors_and_other_types_stay(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), half, args[3];
    give(f, unary(f, "abs", scalar(f, "add_scalar", x, 3, 2)));
    assert_ok(f->err, rt_op_apply(&f->graph, rt_op_find("exp"), &x, 1, DT_F16, &half, &f->err));
    give(f, unary(f, "neg", half));
    args[0] = x;
    args[1] = rt_graph_float(&f->graph, 3);
    give(f, unary(f, "abs", apply(f, "pow_scalar", args, 2)));
    assert_ok(f->err, rt_pass_chain(&f->graph, &f->err));
    assert_int_equal(count_nodes(f, "chain"), 0);
}

/* ---- what a chain computes ------------------------------------------------------------------- */

static uint32_t random_state;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % bound;
}

static uint32_t constant(struct fixture *f, uint8_t rank, const int64_t *sizes)
{
    struct shape shape = {.rank = rank};
    struct hal_buffer *buffer;
    memcpy(shape.dims, sizes, rank * sizeof(*sizes));
    size_t count = (size_t)shape_numel(&shape);
    assert_true(count <= VALUES_MAX);
    uint32_t value = rt_graph_constant(&f->graph, DT_F32, &shape, span_of(NULL, 0));
    assert_ok(f->err, hal_buffer_new(f->device, count * sizeof(float), &buffer, &f->err));
    float *to = hal_buffer_map(buffer);
    for (size_t i = 0; i < count; i++) {
        to[i] = ((float)random_below(4001) - 2000) / 500;
    }
    rt_graph_set_constant(&f->graph, value, buffer);
    return value;
}

/* Its single byte must not be read as a float. */
static void constant_booleans_are_not_numbers(void **state)
{
    struct fixture *f = *state;
    const struct shape one = {.rank = 1, .dims = {1}};
    struct hal_buffer *buffer;
    uint32_t flag = rt_graph_constant(&f->graph, DT_BOOL, &one, span_of(NULL, 0));
    assert_ok(f->err, hal_buffer_new(f->device, 1, &buffer, &f->err));
    *(uint8_t *)hal_buffer_map(buffer) = 1;
    rt_graph_set_constant(&f->graph, flag, buffer);
    uint32_t args[] = {flag, INPUT(2, 3), INPUT(2, 3)};
    give(f, unary(f, "exp", apply(f, "where", args, 3)));
    assert_ok(f->err, rt_pass_chain(&f->graph, &f->err));
    assert_int_equal(count_nodes(f, "where"), 1);
}

static uint32_t random_node(struct fixture *f, uint32_t a, uint32_t b)
{
    static const char *const unaries[] = {"exp", "tanh", "sigmoid", "neg", "abs", "relu", "log1p"};
    static const char *const binaries[] = {"add", "sub", "mul", "maximum", "minimum"};
    static const char *const scalars[] = {"add_scalar", "rsub_scalar", "mul_scalar", "div_scalar",
                                          "clamp"};
    switch (random_below(3)) {
    case 0:
        return unary(f, unaries[random_below(7)], a);
    case 1:
        return binary(f, binaries[random_below(5)], a, b);
    default:
        return scalar(f, scalars[random_below(5)], a, -1.5, 1);
    }
}

/* A random tree over a tensor, rows, columns and a number; the last value is the output. */
static void make_tree(struct fixture *f, uint32_t seed)
{
    static const int64_t whole[] = {3, 37, 20}, row[] = {20}, column[] = {37, 1}, one[] = {1},
                         plane[] = {3, 1, 20}, shifted[] = {3, 37, 20};
    uint32_t values[24], count = 0;
    random_state = seed;
    values[count++] = constant(f, 3, whole);
    values[count++] = constant(f, 3, shifted);
    uint32_t more[] = {constant(f, 1, row), constant(f, 2, column), constant(f, 1, one),
                       constant(f, 3, plane)};
    for (int i = 0; i < 12; i++) {
        uint32_t a = values[random_below(count)], b = values[random_below(count)];
        b = random_below(3) == 0 ? more[random_below(4)] : b;
        values[count] = random_node(f, random_below(2) ? values[count - 1] : a, b);
        count++;
    }
    give(f, values[count - 1]);
}

static size_t fold(struct fixture *f, float *out)
{
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->outputs[0]];
    assert_true(v->is_constant);
    memcpy(out, v->bytes.ptr, 3 * 37 * 20 * sizeof(*out));
    return 3 * 37 * 20;
}

/* NaN counts as equal to NaN. */
static void assert_close(float got, float wanted)
{
    if (isnan(wanted) || isinf(wanted)) {
        assert_true(isnan(wanted) ? isnan(got) : got == wanted);
    } else {
        assert_true(fabsf(got - wanted) <= 4e-6F * (1 + fabsf(wanted)));
    }
}

static void the_numbers_are_those_of_the_nodes(void **state)
{
    static float apart[VALUES_MAX], together[VALUES_MAX];
    struct fixture *f = *state;
    uint32_t chains = 0;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        rt_graph_fini(&f->graph);
        graph_begin(f);
        make_tree(f, seed);
        size_t count = fold(f, apart);
        rt_graph_fini(&f->graph);
        graph_begin(f);
        make_tree(f, seed);
        assert_ok(f->err, rt_pass_chain(&f->graph, &f->err));
        chains += count_nodes(f, "chain");
        fold(f, together);
        for (size_t i = 0; i < count; i++) {
            assert_close(together[i], apart[i]);
        }
    }
    assert_true(chains >= 200);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, graph_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_tree_becomes_one_node),
        TEST(known_forms_are_one_step),
        TEST(nearly_known_forms_stay),
        TEST(values_with_other_readers_stay),
        TEST(chains_are_bounded),
        TEST(factors_and_other_types_stay),
        TEST(constant_booleans_are_not_numbers),
        TEST(the_numbers_are_those_of_the_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
