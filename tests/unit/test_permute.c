/* SPDX-License-Identifier: MIT */
/* The permute pass, and what the layout pass makes of the permutes that are left. */
#include "config.h"

#include "runtime/passes/passes.h"

#include <math.h>
#include <stdio.h>

#include "runtime/ops/op.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    graph_begin(&f);
    *state = &f;
    return 0;
}

#define APPLY(op, ...)                                                                             \
    apply(f, op, (const uint32_t[]){__VA_ARGS__},                                                  \
          sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void run(struct fixture *f)
{
    assert_ok(f->err, rt_pass_permute(&f->graph, &f->err));
}

static uint32_t to_pixels(struct fixture *f, uint32_t x)
{
    return APPLY("permute", x, INTS(0, 2, 3, 1));
}

static uint32_t to_planes(struct fixture *f, uint32_t x)
{
    return APPLY("permute", x, INTS(0, 3, 1, 2));
}

static void inverse_permutes_cancel(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 8, 4, 4);
    give(f, APPLY("relu", to_planes(f, to_pixels(f, x))));
    run(f);
    assert_graph(f, "method m(%1:f32[1,8,4,4])\n"
                    "  %6:f32[1,8,4,4] = relu(%1)\n"
                    "  return %6\n");
}

static void two_permutes_become_one_under_any_name(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3, 4);
    give(f, APPLY("permute", APPLY("transpose", x, number(f, 0), number(f, -1)), INTS(1, 0, 2)));
    run(f);
    assert_graph(f, "method m(%1:f32[2,3,4])\n"
                    "  %10:f32[3,4,2] = permute(%1, [1,2,0])\n"
                    "  return %10\n");
}

/* The permutes of both branches of a residual network become one permute after the sum, which then
 * cancels. */
static void permutes_move_behind_sums(void **state)
{
    struct fixture *f = *state;
    uint32_t a = INPUT(1, 8, 4, 4), b = INPUT(1, 8, 4, 4), one = number(f, 1);
    uint32_t sum = APPLY("add", to_pixels(f, a), APPLY("relu", to_pixels(f, b)), one);
    give(f, to_planes(f, sum));
    run(f);
    assert_graph(f, "method m(%1:f32[1,8,4,4], %2:f32[1,8,4,4])\n"
                    "  %12:f32[1,8,4,4] = relu(%2)\n"
                    "  %15:f32[1,8,4,4] = add(%1, %12, 1)\n"
                    "  return %15\n");
}

/* A vector along the last dim becomes one along the channels: its bytes stay. */
static void broadcast_arguments_come_along(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 8, 4, 4), slope = INPUT(8);
    give(f, to_planes(f, APPLY("mul", to_pixels(f, x), slope)));
    run(f);
    assert_graph(f, "method m(%1:f32[1,8,4,4], %2:f32[8])\n"
                    "  %9:f32[1,1,1,8] = view(%2, [1,1,1,8])\n"
                    "  %11:f32[1,8,1,1] = permute(%9, [0,3,1,2])\n"
                    "  %12:f32[1,8,4,4] = mul(%1, %11)\n"
                    "  return %12\n");
}

/* A permute with other readers would run twice if it moved; so would one for the other argument. */
static void real_permutes_do_not_multiply(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3, 4), y = INPUT(4, 3, 2);
    uint32_t p = APPLY("permute", x, INTS(2, 1, 0));
    give(f, APPLY("relu", p));
    give(f, APPLY("neg", p));
    give(f, APPLY("mul", APPLY("permute", x, INTS(2, 1, 0)), y));
    run(f);
    assert_graph(f, "method m(%1:f32[2,3,4], %2:f32[4,3,2])\n"
                    "  %4:f32[4,3,2] = permute(%1, [2,1,0])\n"
                    "  %5:f32[4,3,2] = relu(%4)\n"
                    "  %6:f32[4,3,2] = neg(%4)\n"
                    "  %8:f32[4,3,2] = permute(%1, [2,1,0])\n"
                    "  %9:f32[4,3,2] = mul(%8, %2)\n"
                    "  return %5, %6, %9\n");
}

static void dims_are_counted_anew(void **state)
{
    struct fixture *f = *state;
    struct rt_graph *g = &f->graph;
    uint32_t x = INPUT(1, 8, 4, 6), y = INPUT(1, 8, 4, 6);
    uint32_t both[] = {to_pixels(f, x), to_pixels(f, y)};
    uint32_t cat = APPLY("cat", rt_graph_tensors(g, both, 2), number(f, -1));
    uint32_t padded = APPLY("constant_pad", cat, INTS(0, 0, 1, 2, 3, 4), rt_graph_float(g, 0));
    uint32_t cut = APPLY("slice", padded, number(f, 1), number(f, 0), number(f, 5), number(f, 1));
    give(f, APPLY("mean", cut, INTS(1, 2), rt_graph_bool(g, false), rt_graph_none(g)));
    run(f);
    assert_graph(f, "method m(%1:f32[1,8,4,6], %2:f32[1,8,4,6])\n"
                    "  %24:f32[1,16,4,6] = cat([%1,%2], 1)\n"
                    "  %28:f32[1,16,11,9] = constant_pad(%24, [1,2,3,4,0,0,0,0], 0)\n"
                    "  %32:f32[1,16,5,9] = slice(%28, 2, 0, 5, 1)\n"
                    "  %36:f32[1,16] = mean(%32, [2,3], false, none)\n"
                    "  return %36\n");
}

/* The remaining dims of a mean in another order stay in that order. */
static void a_mean_over_some_keeps_the_rest_in_order(void **state)
{
    struct fixture *f = *state;
    struct rt_graph *g = &f->graph;
    uint32_t p = APPLY("permute", INPUT(2, 3, 4), INTS(2, 0, 1));
    give(f, APPLY("mean", p, INTS(2), rt_graph_bool(g, false), rt_graph_none(g)));
    run(f);
    assert_graph(f, "method m(%1:f32[2,3,4])\n"
                    "  %9:f32[2,4] = mean(%1, [1], false, none)\n"
                    "  %11:f32[4,2] = permute(%9, [1,0])\n"
                    "  return %11\n");
}

/* An input image with channels last is the channels-last memory of an image with channels first. */
static void permutes_of_images_move_no_byte(void **state)
{
    struct fixture *f = *state;
    struct rt_graph *g = &f->graph;
    uint32_t pair = INTS(2, 2), none = INTS(0, 0);
    uint32_t x = to_planes(f, INPUT(1, 4, 4, 8));
    uint32_t pooled = APPLY("avg_pool2d", x, pair, pair, none, rt_graph_bool(g, false),
                            rt_graph_bool(g, false), rt_graph_none(g));
    give(f, to_pixels(f, pooled));
    assert_ok(f->err, rt_pass_layout(g, &f->err));
    assert_graph(f, "method m(%3:f32[1,4,4,8])\n"
                    "  %5:f32[1,8,4,4] order 0231 = permuted(%3, [0,3,1,2])\n"
                    "  %9:f32[1,8,2,2] order 0231 = avg_pool2d(%5, [2,2], [2,2], [0,0], false, "
                    "false, none)\n"
                    "  %11:f32[1,2,2,8] = permuted(%9, [0,2,3,1])\n"
                    "  return %11\n");
}

/* Dims of 1 have no bytes between them. */
static void permutes_of_ones_move_no_byte(void **state)
{
    struct fixture *f = *state;
    give(f, APPLY("permute", INPUT(3, 1, 4, 1), INTS(1, 0, 3, 2)));
    give(f, APPLY("permute", INPUT(3, 4), INTS(1, 0)));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_graph(f, "method m(%1:f32[3,1,4,1], %4:f32[3,4])\n"
                    "  %3:f32[1,3,1,4] = permuted(%1, [1,0,3,2])\n"
                    "  %6:f32[4,3] = permute(%4, [1,0])\n"
                    "  return %3, %6\n");
}

/* A transposed right factor is packed directly from its rows. */
static void products_take_transposed_factors(void **state)
{
    struct fixture *f = *state;
    uint32_t a = INPUT(2, 3, 4), b = INPUT(2, 5, 4);
    give(f, APPLY("bmm", a, APPLY("permute", b, INTS(0, 2, 1))));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        assert_string_not_equal(f->graph.nodes[i].op->name, "permute");
    }
    assert_string_equal(f->graph.nodes[0].op->name, "pack_nk");
}

/* Keys by heads: rows move as a whole, and the rest of the transposition is the packing. */
static void products_take_keys_of_heads(void **state)
{
    struct fixture *f = *state;
    uint32_t a = INPUT(2, 3, 4), keys = APPLY("permute", INPUT(1, 5, 2, 4), INTS(0, 2, 3, 1));
    give(f, APPLY("bmm", a, APPLY("view", keys, INTS(2, 4, 5))));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_graph(f, "method m(%1:f32[2,3,4], %2:f32[1,5,2,4])\n"
                    "  %11:f32[1,2,5,4] = permute(%2, [0,2,1,3])\n"
                    "  %13:f32[2,5,4] = view(%11, [2,5,4])\n"
                    "  %14:f32[2,1,4,32] packed = pack_nk(%13)\n"
                    "  %19:f32[2,3,5] = gemm(%1, %14, 5, none, none, -inf, inf, none)\n"
                    "  return %19\n");
}

/* Here no dim of the argument's rows is one of the factor's columns. */
static void other_factors_are_packed_as_they_are(void **state)
{
    struct fixture *f = *state;
    uint32_t a = INPUT(2, 3, 4), b = APPLY("permute", INPUT(2, 5, 4), INTS(0, 2, 1));
    uint32_t turned = APPLY("permute", INPUT(4, 2, 5), INTS(1, 0, 2));
    give(f, APPLY("bmm", a, turned));
    give(f, APPLY("bmm", a, APPLY("view", APPLY("view", b, INTS(40)), INTS(2, 4, 5))));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "pack_nk"), 0);
    assert_int_equal(count_ops(f, "pack_kn"), 2);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, graph_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(inverse_permutes_cancel),
        TEST(two_permutes_become_one_under_any_name),
        TEST(permutes_move_behind_sums),
        TEST(broadcast_arguments_come_along),
        TEST(real_permutes_do_not_multiply),
        TEST(dims_are_counted_anew),
        TEST(a_mean_over_some_keeps_the_rest_in_order),
        TEST(permutes_of_images_move_no_byte),
        TEST(permutes_of_ones_move_no_byte),
        TEST(products_take_transposed_factors),
        TEST(products_take_keys_of_heads),
        TEST(other_factors_are_packed_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
