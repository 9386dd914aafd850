/* SPDX-License-Identifier: MIT */
/* Convolutions of lines that are exported as images of one column, and orders behind views. */
#include "config.h"

#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
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

/* A convolution of a column with 3 taps. */
static uint32_t convolve(struct fixture *f, uint32_t x, int64_t stride, int64_t padding,
                         int64_t padding_of_row)
{
    uint32_t args[] = {
        x,
        INPUT(8, 8, 3, 1),
        rt_graph_none(&f->graph),
        INTS(stride, 1),
        INTS(padding, padding_of_row),
        INTS(1, 1),
        rt_graph_bool(&f->graph, false),
        INTS(0, 0),
        number(f, 1),
    };
    return apply(f, "convolution", args, 9);
}

static void run(struct fixture *f)
{
    assert_ok(f->err, rt_pass_lines(&f->graph, &f->err));
}

static void columns_become_lines(void **state)
{
    struct fixture *f = *state;
    uint32_t x = APPLY("view", INPUT(1, 8, 20), INTS(1, 8, 20, 1));
    uint32_t line = APPLY("view", convolve(f, x, 2, 1, 0), INTS(1, 8, 10));
    uint32_t y = APPLY("view", APPLY("relu", line), INTS(1, 8, 10, 1));
    give(f, APPLY("view", convolve(f, y, 1, 0, 0), INTS(1, 8, 8)));
    run(f);
    assert_int_equal(count_ops(f, "convolution"), 2);
    assert_int_equal(count_ops(f, "view"), 2); /* of weights */
    assert_int_equal(f->graph.values[f->graph.outputs[0]].rank, 3);
}

/* XNNPACK's convolutions end with a clamp of their images. */
static void activations_of_columns_come_along(void **state)
{
    struct fixture *f = *state;
    uint32_t x = APPLY("view", INPUT(1, 8, 20), INTS(1, 8, 20, 1));
    give(f, APPLY("view", APPLY("relu", convolve(f, x, 1, 1, 0)), INTS(1, 8, 20)));
    run(f);
    assert_int_equal(count_ops(f, "view"), 1); /* of weights */
    assert_int_equal(count_ops(f, "relu"), 1);
}

/* A column with rows of padding beside it is an image. */
static void padded_columns_stay(void **state)
{
    struct fixture *f = *state;
    uint32_t x = APPLY("view", INPUT(1, 8, 20), INTS(1, 8, 20, 1));
    give(f, convolve(f, x, 1, 1, 1));
    run(f);
    assert_int_equal(count_ops(f, "view"), 1);
}

/* A view that does more than to add a dim stays in front of its convolution. */
static void other_views_stay(void **state)
{
    struct fixture *f = *state;
    uint32_t x = APPLY("view", INPUT(1, 4, 40), INTS(1, 8, 20, 1));
    give(f, convolve(f, x, 1, 1, 0));
    run(f);
    assert_int_equal(count_ops(f, "view"), 1);
    assert_int_equal(f->graph.values[f->graph.outputs[0]].rank, 4);
}

static void views_join(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3, 4), flat = APPLY("view", x, INTS(24));
    give(f, APPLY("view", flat, INTS(6, 4)));
    give(f, APPLY("relu", APPLY("view", flat, INTS(2, 3, 4))));
    run(f);
    assert_int_equal(count_ops(f, "view"), 1);
    assert_int_equal(f->graph.values[f->graph.outputs[0]].rank, 2);
}

/* A line between a convolution and a pool of images of one row keeps its channels together. */
static void lines_keep_the_order_of_images(void **state)
{
    struct fixture *f = *state;
    uint32_t x = APPLY("view", INPUT(1, 8, 20), INTS(1, 8, 20, 1));
    uint32_t line = APPLY("squeeze_dim", convolve(f, x, 1, 1, 0), number(f, 3));
    uint32_t row = APPLY("unsqueeze", APPLY("relu", line), number(f, 2));
    give(f, APPLY("avg_pool2d", row, INTS(1, 2), INTS(1, 2), INTS(0, 0),
                  rt_graph_bool(&f->graph, false), rt_graph_bool(&f->graph, true),
                  rt_graph_none(&f->graph)));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "reorder"), 2); /* of the input and of the result */
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, graph_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(columns_become_lines),
        TEST(activations_of_columns_come_along),
        TEST(padded_columns_stay),
        TEST(other_views_stay),
        TEST(views_join),
        TEST(lines_keep_the_order_of_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
