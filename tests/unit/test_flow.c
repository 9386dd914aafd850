/* SPDX-License-Identifier: MIT */
/* The data flow of a graph, and its memory. */
#include "config.h"

#include <string.h>

#include "runtime/ops/op.h"
#include "runtime/plan/alloc.h"
#include "runtime/plan/flow.h"
#include "tests/unit/pass_support.h"
#include "tests/unit/unit.h"

static void branches_share_a_region(void **state)
{
    struct fixture *f = *state;
    struct rt_flow flow;
    uint32_t x = INPUT(64, 64), a = relu(f, x), b = clamp(f, "clamp", x, 0, 1);
    uint32_t sum = add(f, a, b);
    give(f, sum);
    give(f, x);
    give(f, sum);
    assert_ok(f->err,
              rt_flow_make(&flow, &f->graph, (struct rt_staging){0}, &f->graph.arena, &f->err));
    assert_int_equal(flow.region_count, 2);
    assert_int_equal(flow.region[0], flow.region[1]);
    assert_int_equal(rt_flow_class(&flow, sum)->home, RT_HOME_RESULT);
    assert_int_equal(flow.copy_count, 2); /* the input, and the sum once more */
}

static void views_share_and_last_reads_are_reused(void **state)
{
    struct fixture *f = *state;
    struct rt_flow flow;
    uint32_t x = INPUT(64, 64), a = relu(f, x), flat_args[] = {a, INTS(32, 128)};
    uint32_t flat = apply(f, "view", flat_args, 2), b = relu(f, flat), c = relu(f, b);
    give(f, add(f, c, flat));
    assert_ok(f->err,
              rt_flow_make(&flow, &f->graph, (struct rt_staging){0}, &f->graph.arena, &f->err));
    assert_int_equal(flow.class_of[flat], flow.class_of[a]);
    assert_int_equal(flow.class_of[c], flow.class_of[b]);        /* in place */
    assert_int_not_equal(flow.class_of[b], flow.class_of[flat]); /* |flat| is read again */
}

/* Rows 2 and 3 of |x|, one image or several of them, and what becomes of them. */
static uint32_t cut(struct fixture *f, uint32_t x, int64_t first, int64_t step)
{
    uint32_t args[] = {x, number(f, 1), number(f, first), number(f, first + 2), number(f, step)};
    return apply(f, "slice", args, 5);
}

static struct rt_flow flow_of(struct fixture *f)
{
    struct rt_flow flow;
    f->graph.is_host = true;
    assert_ok(f->err,
              rt_flow_make(&flow, &f->graph, (struct rt_staging){0}, &f->graph.arena, &f->err));
    return flow;
}

static void rows_lie_where_their_tensor_does(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 6, 4), rows = cut(f, x, 2, 1), args[] = {rows, INTS(8)};
    uint32_t flat = apply(f, "view", args, 2), last[] = {rows, number(f, 1), number(f, -1)};
    uint32_t row = apply(f, "select", last, 3), sum = relu(f, row);
    give(f, sum);
    give(f, relu(f, flat));
    struct rt_flow flow = flow_of(f);
    assert_int_equal(flow.order_count, 2);
    assert_int_equal(flow.class_of[rows], x);
    assert_int_equal(flow.class_of[flat], x);
    assert_int_equal(flow.class_of[row], x);
    assert_int_equal(flow.begin[rows], 2 * 4 * sizeof(float));
    assert_int_equal(flow.begin[flat], 2 * 4 * sizeof(float));
    assert_int_equal(flow.begin[row], 3 * 4 * sizeof(float));
}

static void rows_of_several_images_are_copied(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 6, 4), rows = cut(f, x, 2, 1), some = cut(f, INPUT(1, 6, 4), 2, 2);
    give(f, relu(f, rows));
    give(f, relu(f, some));
    struct rt_flow flow = flow_of(f);
    assert_int_equal(flow.class_of[rows], rows);
    assert_int_equal(flow.class_of[some], some);
    assert_int_equal(flow.order_count, 4);
}

/* What is computed of rows does not lie where the rows did, and they are no result themselves. */
static void rows_are_only_read(void **state)
{
    struct fixture *f = *state;
    uint32_t a = relu(f, INPUT(1, 6, 4)), rows = cut(f, a, 2, 1), b = relu(f, rows);
    uint32_t others = cut(f, relu(f, INPUT(1, 6, 4)), 0, 1);
    give(f, relu(f, b));
    give(f, others);
    struct rt_flow flow = flow_of(f);
    assert_int_equal(flow.class_of[rows], a);
    assert_int_not_equal(flow.class_of[b], a);
    assert_int_equal(rt_flow_class(&flow, others)->home, RT_HOME_WORKSPACE);
    assert_int_equal(flow.copy_count, 1);
}

static void other_devices_copy_rows(void **state)
{
    struct fixture *f = *state;
    struct rt_flow flow;
    uint32_t rows = cut(f, INPUT(1, 6, 4), 2, 1);
    give(f, relu(f, rows));
    f->graph.is_host = false;
    assert_ok(f->err,
              rt_flow_make(&flow, &f->graph, (struct rt_staging){0}, &f->graph.arena, &f->err));
    assert_int_equal(flow.class_of[rows], rows);
}

/* Does the sum of a residual block lie where its residual did? |depth| products are beside the
 * residual; with |is_read| a product reads it later, too. */
static bool is_in_place(struct fixture *f, uint32_t depth, bool is_read)
{
    struct rt_flow flow;
    uint32_t x = multiply(f, INPUT(2, 16)), y = x;
    for (uint32_t i = 0; i < depth; i++) {
        y = multiply(f, y);
    }
    uint32_t sum = multiply(f, add(f, y, x));
    give(f, is_read ? multiply(f, add(f, multiply(f, sum), x)) : sum);
    assert_int_equal(narrowed(f), DT_BF16);
    assert_ok(f->err,
              rt_flow_make(&flow, &f->graph, (struct rt_staging){0}, &f->graph.arena, &f->err));
    const struct rt_node *first = NULL;
    for (uint32_t i = 0; i < f->graph.node_count && !first; i++) {
        const struct rt_node *node = &f->graph.nodes[i];
        bool is_sum = strcmp(node->op->name, "gemm") == 0 &&
                      rt_node_arg(&f->graph, node, 4)->kind == RT_TENSOR;
        first = is_sum ? node : NULL;
    }
    assert_non_null(first);
    return flow.class_of[first->args[4]] == flow.class_of[first->outs[0]];
}

static void sums_lie_where_their_residual_did(void **state)
{
    assert_true(is_in_place(*state, 2, false));
}

static void residuals_that_are_read_again_keep_their_place(void **state)
{
    assert_false(is_in_place(*state, 1, false)); /* by the same product */
    start_again(state);
    assert_false(is_in_place(*state, 2, true));
}

/* The classes of two convolutions and of their concatenation; one of them may be read twice. */
static bool are_parts(struct fixture *f, bool is_host, int64_t dim, bool is_read_twice)
{
    struct rt_flow flow;
    uint32_t x = INPUT(1, 4, 5, 5), w = WEIGHTS4(4, 4, 3, 3);
    uint32_t items[] = {convolve(f, x, w, 0, 1, false), convolve(f, x, w, 0, 1, false)};
    uint32_t args[] = {rt_graph_tensors(&f->graph, items, 2), number(f, dim)};
    uint32_t joined = apply(f, "cat", args, 2);
    f->graph.is_host = is_host;
    give(f, joined);
    if (is_read_twice) {
        give(f, relu(f, items[1]));
    }
    lay_out(f);
    assert_ok(f->err,
              rt_flow_make(&flow, &f->graph, (struct rt_staging){0}, &f->graph.arena, &f->err));
    const uint32_t *parts = rt_node_arg(&f->graph, node_of(f, "cat"), 0)->values;
    bool are = flow.whole[parts[0]] == joined;
    assert_int_equal(flow.whole[parts[1]] == joined, are);
    assert_int_equal(flow.class_of[parts[1]] == flow.class_of[joined], are);
    assert_int_equal(flow.channel[parts[1]], are ? 4 : 0);
    assert_int_equal(flow.classes[flow.class_of[joined]].first, are ? 1 : 2);
    return are;
}

static void parts_of_an_image_lie_in_it(void **state)
{
    assert_true(are_parts(*state, true, 1, false));
}

static void only_images_that_nothing_else_reads_are_parts(void **state)
{
    assert_false(are_parts(*state, true, 1, true));
}

static void only_channels_are_parts(void **state)
{
    assert_false(are_parts(*state, true, 2, false));
}

static void other_devices_have_no_parts(void **state)
{
    assert_false(are_parts(*state, false, 1, false));
}

/* Bytes of the workspace for four chains of a permute and a sum. */
static size_t chains(struct fixture *f, size_t wave_bytes, uint32_t *out_regions)
{
    struct rt_flow flow;
    struct rt_alloc alloc;
    for (int i = 0; i < 4; i++) {
        uint32_t args[] = {WEIGHTS(64, 32), INTS(1, 0)};
        uint32_t moved = apply(f, "permute", args, 2);
        give(f, add(f, moved, moved));
    }
    assert_ok(f->err, rt_flow_make_waves(&flow, &f->graph, wave_bytes, &f->graph.arena, &f->err));
    assert_ok(f->err, rt_alloc_make(&alloc, &flow, NULL, &f->graph.arena, &f->err));
    *out_regions = flow.region_count;
    return alloc.workspace_bytes;
}

/* A node that alone makes more than a wave may is a wave of its own. */
static void waves_share_memory(void **state)
{
    const size_t bytes = 64 * 32 * sizeof(float);
    uint32_t regions;
    assert_int_equal(chains(*state, SIZE_MAX, &regions), 4 * bytes);
    assert_int_equal(regions, 2);
    start_again(state);
    assert_int_equal(chains(*state, 4 * bytes, &regions), 2 * bytes);
    assert_int_equal(regions, 4);
    start_again(state);
    assert_int_equal(chains(*state, 2 * bytes, &regions), bytes);
    assert_int_equal(regions, 8);
    start_again(state);
    assert_int_equal(chains(*state, 1, &regions), bytes);
    assert_int_equal(regions, 8);
}

/* Random lifetimes: ranges that live at the same time do not overlap, and the workspace is not much
 * too large. */
static void packing_keeps_the_living_apart(void **state)
{
    enum { CLASSES = 200, REGIONS = 60 };
    static struct rt_storage classes[CLASSES + 64];
    static uint32_t class_of[CLASSES + 64];
    struct fixture *f = *state;
    uint32_t random = 7, first = f->graph.value_count;
    size_t alive[REGIONS] = {0}, most = 0;
    assert_true(first < 64);
    for (uint32_t i = 0; i < CLASSES; i++) {
        random = random * 1664525 + 1013904223;
        struct rt_dim size = rt_dim_of(1 + (random >> 8) % 5000);
        uint32_t value = rt_graph_tensor(&f->graph, DT_F32, 1, &size), from = (random >> 20) % 50;
        classes[value] = (struct rt_storage){
            .home = RT_HOME_WORKSPACE, .first = from, .last = from + (random >> 4) % 10};
    }
    for (uint32_t i = 0; i < first + CLASSES; i++) {
        class_of[i] = i;
    }
    struct rt_flow flow = {.graph = &f->graph, .class_of = class_of, .classes = classes};
    struct rt_alloc alloc;
    assert_ok(f->err, rt_alloc_make(&alloc, &flow, NULL, &f->graph.arena, &f->err));
    for (uint32_t i = first; i < first + CLASSES; i++) {
        assert_int_equal(alloc.offset[i] % RT_WORKSPACE_ALIGN, 0);
        assert_true(alloc.offset[i] + alloc.bytes[i] <= alloc.workspace_bytes);
        for (uint32_t r = classes[i].first; r <= classes[i].last; r++) {
            alive[r] += alloc.bytes[i];
            most = alive[r] > most ? alive[r] : most;
        }
        for (uint32_t j = first; j < i; j++) {
            bool together =
                classes[i].first <= classes[j].last && classes[j].first <= classes[i].last;
            assert_true(!together || alloc.offset[i] + alloc.bytes[i] <= alloc.offset[j] ||
                        alloc.offset[j] + alloc.bytes[j] <= alloc.offset[i]);
        }
    }
    assert_true(alloc.workspace_bytes >= most && alloc.workspace_bytes <= most + most / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(branches_share_a_region),
        TEST(views_share_and_last_reads_are_reused),
        TEST(rows_lie_where_their_tensor_does),
        TEST(rows_of_several_images_are_copied),
        TEST(rows_are_only_read),
        TEST(other_devices_copy_rows),
        TEST(sums_lie_where_their_residual_did),
        TEST(residuals_that_are_read_again_keep_their_place),
        TEST(parts_of_an_image_lie_in_it),
        TEST(only_images_that_nothing_else_reads_are_parts),
        TEST(only_channels_are_parts),
        TEST(other_devices_have_no_parts),
        TEST(waves_share_memory),
        TEST(packing_keeps_the_living_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
