/* SPDX-License-Identifier: MIT */
/* Equal nodes become one, and others stay. */
#include "config.h"

#include "runtime/passes/passes.h"

#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "tests/unit/pass_support.h"
#include "tests/unit/unit.h"

static void merge(struct fixture *f)
{
    assert_ok(f->err, rt_pass_resolve(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_merge(&f->graph, &f->err));
}

static uint32_t select_row(struct fixture *f, uint32_t x, int64_t dim, int64_t index)
{
    uint32_t args[] = {x, number(f, dim), number(f, index)};
    return apply(f, "select", args, 3);
}

static uint32_t scaled(struct fixture *f, uint32_t x, double factor)
{
    uint32_t args[] = {x, rt_graph_float(&f->graph, factor)};
    return apply(f, "mul_scalar", args, 2);
}

/* What reads merged nodes is merged as well, and lists are compared by their content. */
static void equal_nodes_become_one(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), sums[2];
    for (int i = 0; i < 2; i++) {
        uint32_t view_args[] = {x, INTS(3, 2)};
        uint32_t y = relu(f, apply(f, "view", view_args, 2));
        uint32_t list[] = {y, y};
        uint32_t cat_args[] = {rt_graph_tensors(&f->graph, list, 2), number(f, 0)};
        sums[i] = scaled(f, apply(f, "cat", cat_args, 2), 0.5);
    }
    give(f, sums[0]);
    give(f, sums[1]);
    merge(f);
    assert_int_equal(f->graph.node_count, 4);
    assert_int_equal(f->graph.outputs[0], f->graph.outputs[1]);
}

/* The first one of three is the third one from the end. */
static void an_element_has_two_numbers(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(3, 2);
    give(f, select_row(f, x, 0, 0));
    give(f, select_row(f, x, 0, -3));
    give(f, select_row(f, x, -2, 0));
    give(f, select_row(f, x, 0, -1));
    give(f, select_row(f, x, 1, 0));
    merge(f);
    assert_int_equal(f->graph.outputs[0], f->graph.outputs[1]);
    assert_int_equal(f->graph.outputs[0], f->graph.outputs[2]);
    assert_int_equal(count_ops(f, "select"), 3);
}

/* From the end of a dim that varies it is another element. */
static void elements_of_varying_dims_stay(void **state)
{
    struct fixture *f = *state;
    struct rt_graph *g = &f->graph;
    struct rt_dim dims[2] = {rt_dim_symbol(&g->dims, 4), rt_dim_of(2)};
    uint32_t x = rt_graph_tensor(g, DT_F32, 2, dims);
    f->inputs[g->input_count++] = x;
    give(f, select_row(f, x, 0, 0));
    give(f, select_row(f, x, 0, -3));
    merge(f);
    assert_int_equal(count_ops(f, "select"), 2);
}

static void other_arguments_are_other_nodes(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), y = INPUT(2, 3);
    give(f, relu(f, x));
    give(f, relu(f, y));
    give(f, scaled(f, x, 0.0));
    give(f, scaled(f, x, -0.0));
    give(f, add(f, x, y));
    give(f, add(f, y, x));
    merge(f);
    assert_int_equal(f->graph.node_count, 6);
}

/* The file declares the type, which no argument says. */
static void other_types_are_other_nodes(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3);
    give(f, convert(f, x, DT_F16));
    give(f, convert(f, x, DT_I32));
    give(f, convert(f, x, DT_I32));
    merge(f);
    assert_int_equal(f->graph.node_count, 2);
    assert_int_equal(f->graph.outputs[1], f->graph.outputs[2]);
}

/* A constant is imported again for each block and each payload. */
static void constants_are_the_bytes_that_they_are(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(5);
    const struct shape shape = {.rank = 1, .dims = {5}};
    const struct span bytes = span_of(floats, 5 * sizeof(float));
    const struct span other = span_of(floats + 5, 5 * sizeof(float)); /* the same numbers */
    give(f, add(f, x, rt_graph_constant(&f->graph, DT_F32, &shape, bytes)));
    give(f, add(f, x, rt_graph_constant(&f->graph, DT_F32, &shape, bytes)));
    give(f, add(f, x, rt_graph_constant(&f->graph, DT_F32, &shape, other)));
    merge(f);
    assert_int_equal(f->graph.node_count, 2);
    assert_int_equal(f->graph.outputs[0], f->graph.outputs[1]);
}

static void random_numbers_stay(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        uint32_t sizes = INTS(2, 3);
        give(f, apply(f, "rand", &sizes, 1));
    }
    merge(f);
    assert_int_equal(count_ops(f, "rand"), 2);
}

/* What is read before a buffer is written is not what is read after it; and two buffers with one
 * new content are two. */
static void writes_stay(void **state)
{
    struct fixture *f = *state;
    const struct rt_op *op = rt_op_find("index_put_into");
    uint32_t cache = INPUT(4, 2), row = INPUT(1, 2), index = INPUT(1);
    f->graph.values[index].dtype = DT_I64;
    give(f, relu(f, cache));
    for (int i = 0; i < 2; i++) {
        uint32_t list = rt_graph_tensors(&f->graph, &index, 1);
        uint32_t args[] = {cache, list, row, rt_graph_bool(&f->graph, false)};
        uint32_t written = rt_graph_tensor(&f->graph, DT_F32, 2, NULL);
        uint32_t node = rt_graph_node(&f->graph, op, args, 4, &written, 1);
        assert_ok(f->err, rt_graph_infer(&f->graph, node, &f->err));
        give(f, written);
        give(f, relu(f, written));
    }
    give(f, relu(f, cache));
    merge(f);
    assert_int_equal(count_ops(f, "index_put_into"), 2);
    assert_int_equal(count_ops(f, "relu"), 3);
    assert_int_equal(f->graph.outputs[0], f->graph.outputs[5]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_nodes_become_one),        TEST(an_element_has_two_numbers),
        TEST(elements_of_varying_dims_stay), TEST(other_arguments_are_other_nodes),
        TEST(other_types_are_other_nodes),   TEST(constants_are_the_bytes_that_they_are),
        TEST(random_numbers_stay),           TEST(writes_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
