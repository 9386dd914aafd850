/* SPDX-License-Identifier: MIT */
/* Which ends of a small graph prefer another order of memory. "reorder" nodes to channels-last are
 * made by hand, as the layout pass makes them. */
#include "config.h"

#include "runtime/passes/ends.h"

#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

static int set_up(void **state)
{
    static struct fixture f;
    graph_begin(&f);
    *state = &f;
    return 0;
}

static uint32_t reorder(struct fixture *f, uint32_t value, bool is_channels_last)
{
    uint32_t out = apply(f, "reorder", &value, 1);
    uint8_t rank = f->graph.values[value].rank;
    f->graph.values[out].order = is_channels_last ? shape_channels_last(rank) : NULL;
    return out;
}

static uint32_t unary(struct fixture *f, const char *op, uint32_t value)
{
    return apply(f, op, &value, 1);
}

/* A node inside, which works channels-last. */
static uint32_t inside(struct fixture *f, uint32_t value)
{
    uint32_t out = unary(f, "relu", value);
    f->graph.values[out].order = shape_channels_last(4);
    return out;
}

static uint32_t add(struct fixture *f, uint32_t a, uint32_t b)
{
    const uint32_t args[] = {a, b, number(f, 1)};
    return apply(f, "add", args, 3);
}

static uint32_t mul(struct fixture *f, uint32_t a, uint32_t b)
{
    const uint32_t args[] = {a, b};
    return apply(f, "mul", args, 2);
}

/* |inputs| and |outputs|: bits of those that prefer channels-last. */
static void assert_ends(struct fixture *f, uint32_t inputs, uint32_t outputs)
{
    struct rt_graph_ends ends;
    assert_ok(f->err, rt_graph_find_ends(&f->graph, &f->graph.arena, &ends, &f->err));
    for (uint32_t i = 0; i < f->graph.input_count; i++) {
        assert_int_equal(ends.inputs[i] != NULL, inputs >> i & 1);
    }
    for (uint32_t i = 0; i < f->graph.output_count; i++) {
        assert_int_equal(ends.outputs[i] != NULL, outputs >> i & 1);
    }
    /* and the variant with all of them can be made */
    struct rt_graph graph;
    rt_graph_init(&graph, "variant");
    assert_ok(f->err, rt_graph_with_ends(&graph, &f->graph, &ends, &f->err));
    for (uint32_t i = 0; i < graph.node_count; i++) {
        const struct rt_value *out = rt_node_out(&graph, &graph.nodes[i], 0);
        assert_true(!out->order || out->order == shape_channels_last(out->rank));
    }
    rt_graph_fini(&graph);
}

static void test_one(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 8, 8);
    give(f, reorder(f, inside(f, reorder(f, unary(f, "relu", x), true)), false));
    assert_ends(f, 1, 1);
}

static void test_result_behind_pointwise(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 8, 8), y = inside(f, reorder(f, x, true));
    give(f, unary(f, "relu", reorder(f, y, false)));
    assert_ends(f, 1, 1);
}

/* A result that a node reads as well stays where that node wants it. */
static void test_result_that_is_read(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 8, 8);
    uint32_t y = unary(f, "relu", reorder(f, inside(f, reorder(f, x, true)), false));
    give(f, y);
    give(f, unary(f, "exp", y));
    assert_ends(f, 1, 0);
}

/* An input that is a result, too, or that another node reads row-major. */
static void test_spoiled(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 8, 8), y = INPUT(1, 4, 8, 8);
    give(f, inside(f, reorder(f, x, true)));
    give(f, x);
    give(f, add(f, reorder(f, inside(f, reorder(f, y, true)), false), unary(f, "exp", INPUT(1))));
    const uint32_t args[] = {y, number(f, 1), number(f, 1)};
    give(f, apply(f, "cumsum", (const uint32_t[]){args[0], args[1], rt_graph_none(&f->graph)}, 3));
    assert_ends(f, 0, 4);
}

/* Two inputs of one pixel flow to one value, which a view reads row-major: both are spoiled, though
 * only one of them is its last. */
static void test_two_that_flow(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 1, 1), y = INPUT(1, 4, 1, 1), z = INPUT(8, 8);
    uint32_t product = mul(f, x, y);
    const uint32_t view[] = {product, INTS(4)};
    give(f, apply(f, "view", view, 2));
    give(f, inside(f, reorder(f, add(f, x, z), true)));
    assert_ends(f, 0, 0);
}

/* A mask of one channel has the same bytes in both orders, so an input flows through its product
 * with it. */
static void test_mask(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 8, 8), mask = INPUT(1, 1, 8, 8), other = INPUT(1, 4, 8, 8);
    give(f, inside(f, reorder(f, mul(f, x, mask), true)));
    give(f, inside(f, reorder(f, mul(f, other, INPUT(1, 4, 8, 8)), true)));
    assert_ends(f, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one, set_up, graph_tear_down),
        cmocka_unit_test_setup_teardown(test_result_behind_pointwise, set_up, graph_tear_down),
        cmocka_unit_test_setup_teardown(test_result_that_is_read, set_up, graph_tear_down),
        cmocka_unit_test_setup_teardown(test_spoiled, set_up, graph_tear_down),
        cmocka_unit_test_setup_teardown(test_two_that_flow, set_up, graph_tear_down),
        cmocka_unit_test_setup_teardown(test_mask, set_up, graph_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
