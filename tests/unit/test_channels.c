/* SPDX-License-Identifier: MIT */
/*
 * Shuffled channels: which shuffles the channels pass removes, and that what is left computes the
 * same, at every level and for any number of workers.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/ops/join.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/hal/levels.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))
#define WORKERS_MAX 3
#define RESULTS_MAX 4096

static float numbers[32 * 1024];

struct conv {
    int64_t ins, outs, kernel, stride;
    bool is_depthwise;
};

static uint32_t convolve(struct fixture *f, uint32_t x, struct conv c)
{
    int64_t groups = c.is_depthwise ? c.ins : 1;
    uint32_t args[] = {
        x,
        CONSTANT((size_t)(c.ins + c.kernel), c.outs, c.ins / groups, c.kernel, c.kernel),
        CONSTANT((size_t)c.outs, c.outs),
        INTS(c.stride, c.stride),
        INTS(c.kernel / 2, c.kernel / 2),
        INTS(1, 1),
        rt_graph_bool(&f->graph, false),
        INTS(0, 0),
        number(f, groups),
    };
    return apply(f, "convolution", args, 9);
}

static uint32_t cat(struct fixture *f, uint32_t a, uint32_t b)
{
    const uint32_t items[] = {a, b};
    uint32_t args[] = {rt_graph_tensors(&f->graph, items, 2), number(f, 1)};
    return apply(f, "cat", args, 2);
}

static uint32_t part(struct fixture *f, uint32_t x, int64_t begin, int64_t count)
{
    uint32_t args[] = {x, number(f, 1), number(f, begin), number(f, count)};
    return apply(f, "narrow", args, 4);
}

static uint32_t view(struct fixture *f, uint32_t x, const int64_t *sizes)
{
    uint32_t args[] = {x, graph_ints(f, sizes)};
    return apply(f, "view", args, 2);
}

/* Exchanges |groups| groups of |n| images' |channels| channels and their members. */
static uint32_t shuffle(struct fixture *f, uint32_t x, int64_t n, int64_t channels, int64_t groups,
                        int64_t size)
{
    uint32_t args[] = {view(f, x, (const int64_t[]){n, groups, channels / groups, size, size, -1}),
                       INTS(0, 2, 1, 3, 4)};
    return view(f, apply(f, "permute", args, 2), (const int64_t[]){n, channels, size, size, -1});
}

/* Three units of a network: the first makes both halves, the last one's result is made smaller by a
 * depthwise convolution and a product. */
#define HALF 10
#define SIZE 6

static uint32_t unit(struct fixture *f, uint32_t x)
{
    uint32_t y = convolve(f, part(f, x, HALF, HALF), (struct conv){HALF, HALF, 1, 1, false});
    y = convolve(f, y, (struct conv){HALF, HALF, 3, 1, true});
    y = convolve(f, y, (struct conv){HALF, HALF, 1, 1, false});
    return cat(f, part(f, x, 0, HALF), y);
}

static uint32_t network(struct fixture *f, uint32_t x, int64_t n)
{
    uint32_t a = convolve(f, x, (struct conv){6, HALF, 1, 1, false});
    uint32_t b = convolve(f, x, (struct conv){6, HALF, 3, 1, false});
    uint32_t y = shuffle(f, cat(f, a, b), n, 2 * HALF, 2, SIZE);
    for (int i = 0; i < 2; i++) {
        y = shuffle(f, unit(f, y), n, 2 * HALF, 2, SIZE);
    }
    uint32_t product = convolve(f, y, (struct conv){2 * HALF, 7, 1, 1, false});
    uint32_t smaller = convolve(f, y, (struct conv){2 * HALF, 2 * HALF, 3, 2, true});
    smaller = convolve(f, smaller, (struct conv){2 * HALF, 5, 1, 1, false});
    give(f, product);
    return smaller;
}

static uint32_t count_moves(const struct fixture *f)
{
    return count_ops(f, "cat") + count_ops(f, "view") + count_ops(f, "permute") +
           count_ops(f, "narrow") + count_ops(f, "split_sizes");
}

/* ---- the choice ------------------------------------------------------------------------------ */

static void no_shuffle_is_left(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    give(f, network(f, INPUT(2, 6, SIZE, SIZE), 2));
    assert_int_equal(count_moves(f), 3 * 4 + 2 * 2);
    assert_ok(f->err, rt_pass_channels(&f->graph, &f->err));
    assert_int_equal(count_moves(f), 0);
    rt_graph_fini(&f->graph);
}

/* Two groups of four, split: the second half is read. */
static uint32_t halves(struct fixture *f, uint32_t x, int64_t first, int64_t second)
{
    uint32_t list[] = {rt_graph_tensor(&f->graph, DT_F32, 0, NULL),
                       rt_graph_tensor(&f->graph, DT_F32, 0, NULL)};
    uint32_t out = rt_graph_tensors(&f->graph, list, 2);
    uint32_t args[] = {x, INTS(first, second), number(f, 1)};
    uint32_t node = rt_graph_node(&f->graph, rt_op_find("split_sizes"), args, 3, &out, 1);
    assert_ok(f->err, rt_graph_infer(&f->graph, node, &f->err));
    return list[1];
}

static void parts_are_ranges(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    uint32_t x = INPUT(1, 8, 4, 4), y = halves(f, shuffle(f, x, 1, 8, 2, 4), 4, 4);
    give(f, convolve(f, y, (struct conv){4, 3, 1, 1, false}));
    assert_ok(f->err, rt_pass_channels(&f->graph, &f->err));
    /* Channels 2, 6, 3, 7 in the order of memory: 2, 3, 6, 7, which are 0, 2, 1, 3 of them. */
    assert_graph(f, "method m(%1:f32[1,8,4,4])\n"
                    "  %25:f32[1,4,4,4] = join_parts([%1], 1, [0,2,1,2,0,6,1,2])\n"
                    "  %29:f32[3,4,1,1] = join_parts([%13], 1, [0,0,2,2,0,1,2,2])\n"
                    "  %21:f32[1,3,4,4] = convolution(%25, %29, %14:f32[3], [1,1], [0,0], [1,1], "
                    "false, [0,0], 1)\n"
                    "  return %21\n");
    rt_graph_fini(&f->graph);
}

/* |is_kept|: the result of the convolution behind the shuffle has another reader, too. */
static uint32_t count_left(struct conv c, struct conv next, bool is_given)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    graph_begin(f);
    uint32_t y = shuffle(f, INPUT(1, 8, 4, 4), 1, 8, 4, 4);
    uint32_t made = convolve(f, y, c);
    give(f, convolve(f, made, next));
    if (is_given) {
        give(f, made);
    }
    assert_ok(f->err, rt_pass_channels(&f->graph, &f->err));
    uint32_t count = count_moves(f);
    rt_graph_fini(&f->graph);
    return count;
}

static void other_readers_keep_it(void **state)
{
    struct conv product = {8, 8, 1, 1, false}, depthwise = {8, 8, 3, 1, true};
    struct conv dense = {8, 8, 3, 1, false};
    (void)state;
    assert_int_equal(count_left(product, dense, true), 0);
    assert_int_equal(count_left(dense, product, false), 3);
    assert_int_equal(count_left(depthwise, product, false), 0);
    assert_int_equal(count_left(depthwise, product, true), 3);
    assert_int_equal(count_left(depthwise, dense, false), 3);
}

/* Weights that a call gives cannot be put in order before it. */
static void given_weights_keep_it(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    uint32_t y = shuffle(f, INPUT(1, 8, 4, 4), 1, 8, 2, 4);
    y = convolve(f, y, (struct conv){8, 8, 3, 1, true});
    y = convolve(f, y, (struct conv){8, 5, 1, 1, false});
    f->graph.nodes[f->graph.node_count - 1].args[1] = INPUT(5, 8, 1, 1);
    give(f, y);
    assert_ok(f->err, rt_pass_channels(&f->graph, &f->err));
    assert_int_equal(count_moves(f), 3);
    rt_graph_fini(&f->graph);
}

/* Channels that come from too many places stay where they are. */
static void many_parts_keep_it(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    uint32_t y = INPUT(1, 256, 2, 2);
    y = part(f, shuffle(f, y, 1, 256, 128, 2), 0, 128); /* every second channel */
    y = convolve(f, y, (struct conv){128, 128, 3, 1, true});
    give(f, convolve(f, y, (struct conv){128, 3, 1, 1, false}));
    assert_ok(f->err, rt_pass_channels(&f->graph, &f->err));
    assert_int_equal(count_moves(f), 4);
    assert_int_equal(count_ops(f, "join_parts"), 0);
    rt_graph_fini(&f->graph);
}

/* ---- results --------------------------------------------------------------------------------- */

/* Computes the network, with the pass or without. All of it is constant, so folding runs it. */
static size_t solve(struct hal_device *device, bool is_joined, float *out)
{
    struct fixture storage = {.device = device}, *f = &storage;
    size_t total = 0;
    graph_begin(f);
    f->graph.is_host = true;
    give(f, network(f, CONSTANT(1, 2, 6, SIZE, SIZE), 2));
    give(f, CONSTANT(0, LENGTH(numbers))); /* folding makes some times what constants take */
    if (is_joined) {
        assert_ok(f->err, rt_pass_channels(&f->graph, &f->err));
    }
    assert_int_equal(count_moves(f) == 0, is_joined);
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    for (uint32_t i = 0; i < 2; i++) {
        const struct rt_value *v = &f->graph.values[f->graph.outputs[i]];
        size_t count = v->bytes.len / sizeof(float);
        assert_true(v->is_constant && count > 0 && total + count <= RESULTS_MAX);
        memcpy(out + total, v->bytes.ptr, v->bytes.len);
        total += count;
    }
    rt_graph_fini(&f->graph);
    return total;
}

static void check_level(enum hal_cpu_isa isa)
{
    static float want[RESULTS_MAX], first[RESULTS_MAX], got[RESULTS_MAX];
    for (uint32_t workers = 1; workers <= WORKERS_MAX; workers++) {
        struct hal_device *device = open_cpu(isa, workers);
        size_t count = solve(device, false, want);
        assert_int_equal(solve(device, true, got), count);
        for (size_t i = 0; i < count; i++) {
            assert_true(fabsf(got[i] - want[i]) <= 1e-4F * (1 + fabsf(want[i])));
        }
        assert_true(workers == 1 || memcmp(got, first, count * sizeof(*got)) == 0);
        memcpy(first, got, sizeof(first));
        hal_device_unref(device);
    }
}

static void results_are_the_same(void **state)
{
    (void)state;
    for (unsigned l = 0; l < HAL_CPU_ISA_COUNT; l++) {
        if (has_level((enum hal_cpu_isa)l)) {
            check_level((enum hal_cpu_isa)l);
        }
    }
}

int main(void)
{
    graph_use_numbers(numbers, LENGTH(numbers), LENGTH(numbers));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_shuffle_is_left),    cmocka_unit_test(parts_are_ranges),
        cmocka_unit_test(other_readers_keep_it), cmocka_unit_test(given_weights_keep_it),
        cmocka_unit_test(many_parts_keep_it),    cmocka_unit_test(results_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
