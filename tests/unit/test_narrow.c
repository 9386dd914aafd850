/* SPDX-License-Identifier: MIT */
/* Values that become bfloat16 in precision bf16: see runtime/passes/narrow.c. */
#include "config.h"

#include <string.h>

#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/unit/pass_support.h"
#include "tests/unit/unit.h"

static void what_only_products_read_is_bfloat16(void **state)
{
    struct fixture *f = *state;
    uint32_t gelu[] = {multiply(f, INPUT(2, 16)), rt_graph_string(&f->graph, span_str("none"))};
    uint32_t moved[] = {apply(f, "gelu", gelu, 2), INTS(1, 0)};
    moved[0] = apply(f, "permute", moved, 2);
    give(f, multiply(f, apply(f, "permute", moved, 2)));
    assert_int_equal(narrowed(f), DT_BF16);
    start_again(state);
    uint32_t x = multiply(f, INPUT(2, 16));
    give(f, add(f, multiply(f, x), x)); /* a residual, too */
    assert_int_equal(narrowed(f), DT_BF16);
}

/* The type of what a pool reads and gives, before a product; |is_asked|: which elements are the
 * largest is an output, too. */
static enum dtype pooled(struct fixture *f, bool is_asked)
{
    uint32_t x = convolve(f, INPUT(1, 16, 8, 8), WEIGHTS4(16, 16, 3, 3), 0, 1, false);
    uint32_t pool[] = {x,          INTS(2, 2), INTS(2, 2),
                       INTS(0, 0), INTS(1, 1), rt_graph_bool(&f->graph, false)};
    uint32_t outs[] = {rt_graph_tensor(&f->graph, DT_F32, 0, NULL),
                       rt_graph_tensor(&f->graph, DT_I64, 0, NULL)};
    uint32_t added = rt_graph_node(&f->graph, rt_op_find("max_pool2d"), pool, 6, outs, 2);
    assert_ok(f->err, rt_graph_infer(&f->graph, added, &f->err));
    give(f, convolve(f, outs[0], WEIGHTS4(16, 16, 3, 3), 0, 1, false));
    if (is_asked) {
        give(f, outs[1]);
    }
    f->graph.precision = PRECISION_BF16;
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_narrow(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "max_pool2d"), 1);
    uint32_t i = 0;
    while (strcmp(f->graph.nodes[i].op->name, "max_pool2d") != 0) {
        i++;
    }
    enum dtype dtype = rt_node_arg(&f->graph, &f->graph.nodes[i], 0)->dtype;
    assert_int_equal(rt_node_out(&f->graph, &f->graph.nodes[i], 0)->dtype, dtype);
    return dtype;
}

/* The largest of rounded numbers is the largest number, rounded. */
static void pools_pass_bfloat16_on(void **state)
{
    assert_int_equal(pooled(*state, false), DT_BF16);
}

/* But it may lie elsewhere: two numbers become one. */
static void pools_that_tell_where_read_floats(void **state)
{
    assert_int_equal(pooled(*state, true), DT_F32);
}

static void what_products_read_joined_is_bfloat16(void **state)
{
    struct fixture *f = *state;
    uint32_t items[] = {multiply(f, INPUT(2, 16)), relu(f, INPUT(2, 16))};
    uint32_t args[] = {rt_graph_tensors(&f->graph, items, 2), number(f, 0)};
    give(f, multiply(f, apply(f, "cat", args, 2)));
    assert_int_equal(narrowed(f), DT_BF16);
    start_again(state);
    items[0] = multiply(f, INPUT(2, 16));
    items[1] = INPUT(2, 16);
    args[0] = rt_graph_tensors(&f->graph, items, 2);
    args[1] = number(f, 0);
    give(f, multiply(f, apply(f, "cat", args, 2))); /* an input cannot be rounded */
    assert_int_equal(narrowed(f), DT_F32);
}

static void what_others_read_stays_a_float(void **state)
{
    struct fixture *f = *state;
    uint32_t x = multiply(f, INPUT(2, 16));
    give(f, multiply(f, x));
    give(f, x); /* an output */
    assert_int_equal(narrowed(f), DT_F32);
    start_again(state);
    x = multiply(f, INPUT(2, 16)); /* rounded to halves first */
    uint32_t half = convert(f, relu(f, add(f, x, relu(f, x))), DT_F16);
    give(f, multiply(f, convert(f, half, DT_F32)));
    assert_int_equal(narrowed(f), DT_F32);
    start_again(state);
    give(f, multiply(f, INPUT(2, 16))); /* an input */
    assert_int_equal(narrowed(f), DT_F32);
}

/* Two products of |rows| rows by 512 columns, whose input is read as floats, too. */
static enum dtype wide(struct fixture *f, int64_t rows, uint32_t *out_copies)
{
    uint32_t x = relu(f, INPUT(rows, 16));
    for (int i = 0; i < 2; i++) {
        uint32_t args[] = {x, WEIGHTS(512, 16), rt_graph_none(&f->graph)};
        give(f, apply(f, "linear", args, 3));
    }
    give(f, x);
    enum dtype dtype = narrowed(f);
    *out_copies = 0;
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        *out_copies += strcmp(f->graph.nodes[i].op->name, "to_dtype") == 0;
    }
    return dtype;
}

static void wide_products_share_a_rounded_copy(void **state)
{
    uint32_t copies;
    assert_int_equal(wide(*state, 2, &copies), DT_BF16);
    assert_int_equal(copies, 1);
    start_again(state);
    assert_int_equal(wide(*state, 4000, &copies), DT_F32); /* a tile has all columns */
    assert_int_equal(copies, 0);
}

/* An image of three channels gets a fourth one, the order of memory and its type in one step. */
static void planes_of_images_are_rounded_at_once(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 3, 8, 8);
    f->graph.precision = PRECISION_BF16;
    give(f, convolve(f, x, WEIGHTS4(16, 3, 3, 3), 0, 1, false));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_narrow(&f->graph, &f->err));
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        const struct rt_node *node = &f->graph.nodes[i];
        if (strcmp(node->op->name, "conv") == 0) {
            const struct rt_value *image = rt_node_arg(&f->graph, node, 0);
            assert_int_equal(image->dtype, DT_BF16);
            assert_int_equal(image->dims[1].value, 4);
            assert_int_equal(image->order[3], 1);
            assert_string_equal(f->graph.nodes[image->node].op->name, "planes");
            assert_int_equal(f->graph.nodes[image->node].args[0], x);
        }
    }
    assert_int_equal(count_ops(f, "planes"), 1);
    assert_int_equal(count_ops(f, "to_dtype"), 0);
}

/* A program's own pad may take channels away, or give some to an image that has none. */
static void other_pads_of_channels_stay(void **state)
{
    struct fixture *f = *state;
    static const int64_t channels[] = {0, 6, 4, 1};
    f->graph.precision = PRECISION_BF16;
    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        struct rt_dim pads[6] = {[5] = rt_dim_of(4 - channels[i])};
        uint32_t pad[] = {INPUT(1, channels[i], 8, 8), rt_graph_ints(&f->graph, pads, 6),
                          rt_graph_float(&f->graph, 0)};
        uint32_t x = apply(f, "constant_pad", pad, 3);
        give(f, convolve(f, x, WEIGHTS4(16, 4, 3, 3), 0, 1, false));
    }
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_narrow(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "planes"), 2);
    assert_int_equal(count_ops(f, "constant_pad"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_only_products_read_is_bfloat16),  TEST(pools_pass_bfloat16_on),
        TEST(pools_that_tell_where_read_floats),    TEST(what_products_read_joined_is_bfloat16),
        TEST(what_others_read_stays_a_float),       TEST(wide_products_share_a_rounded_copy),
        TEST(planes_of_images_are_rounded_at_once), TEST(other_pads_of_channels_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
