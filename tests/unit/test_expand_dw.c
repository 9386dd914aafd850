/* SPDX-License-Identifier: MIT */
/*
 * A 1x1 convolution and the depthwise convolution behind it as one node: which of them the pass
 * joins, and that the node gives the very same bytes as the layers do, at every level and for any
 * number of workers.
 */
#include "config.h"

#include <string.h>

#include "hal/cpu/uk.h"
#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/ops/expand_dw.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/hal/levels.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))
#define WORKERS_MAX 4
#define RESULTS_MAX (512 * 1024)

static float numbers[128 * 1024];

/* Both layers with what is behind them: "relu" becomes bounds, other names are activations. */
struct block {
    int64_t images, ins, channels, height, width, kernel, stride, padding;
    const char *first, *second; /* NULL: nothing */
    bool has_bias;
    bool is_small; /* floats: only the depthwise convolution and its activation become one node */
};

/* A node of that name, or of several: "silu" is a product in graphs. */
static uint32_t activate(struct fixture *f, const char *name, uint32_t x)
{
    if (strcmp(name, "silu") == 0) {
        uint32_t args[] = {x, apply(f, "sigmoid", &x, 1)};
        return apply(f, "mul", args, 2);
    }
    return apply(f, name, &x, 1);
}

static uint32_t convolve(struct fixture *f, const struct block *b, uint32_t x, bool is_depthwise)
{
    int64_t kernel = is_depthwise ? b->kernel : 1, stride = is_depthwise ? b->stride : 1;
    int64_t padding = is_depthwise ? b->padding : 0;
    uint32_t w =
        CONSTANT(is_depthwise ? 5 : 9, b->channels, is_depthwise ? 1 : b->ins, kernel, kernel);
    uint32_t args[] = {
        x,
        w,
        b->has_bias ? CONSTANT(is_depthwise ? 3 : 2, b->channels) : rt_graph_none(&f->graph),
        INTS(stride, stride),
        INTS(padding, padding),
        INTS(1, 1),
        rt_graph_bool(&f->graph, false),
        INTS(0, 0),
        number(f, is_depthwise ? b->channels : 1),
    };
    const char *behind = is_depthwise ? b->second : b->first;
    uint32_t out = apply(f, "convolution", args, 9);
    return behind ? activate(f, behind, out) : out;
}

static void run_passes(struct fixture *f)
{
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_chain(&f->graph, &f->err));
}

/* ---- the choice ------------------------------------------------------------------------------ */

static const struct block usual = {1, 16, 96, 56, 56, 3, 2, 1, "silu", "silu", true, false};

static void activations_join(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    give(f, convolve(f, &usual, convolve(f, &usual, INPUT(1, 16, 56, 56), false), true));
    run_passes(f);
    assert_int_equal(count_ops(f, "chain"), 2);
    assert_ok(f->err, rt_pass_expand_dw(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "expand_dw"), 1);
    assert_int_equal(count_ops(f, "chain") + count_ops(f, "conv") + count_ops(f, "conv_dw"), 0);
    rt_graph_fini(&f->graph);
}

/* Runs the pass over a block whose expanded image is an output, too, if |is_given|. */
static uint32_t count_joined(const struct block *b, bool is_given)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    graph_begin(f);
    uint32_t expanded = convolve(f, b, INPUT(1, b->ins, b->height, b->width), false);
    give(f, convolve(f, b, expanded, true));
    if (is_given) {
        give(f, expanded);
    }
    run_passes(f);
    assert_ok(f->err, rt_pass_expand_dw(&f->graph, &f->err));
    uint32_t count = count_ops(f, "expand_dw");
    rt_graph_fini(&f->graph);
    return count;
}

static void other_layers_stay(void **state)
{
    struct block bare = usual, small, padded = usual, plain = usual;
    (void)state;
    assert_int_equal(count_joined(&usual, false), 1);
    bare.second = NULL;
    assert_int_equal(count_joined(&bare, false), 1);
    assert_int_equal(count_joined(&bare, true), 0);
    small = bare;
    small.height = small.width = 7;
    assert_int_equal(count_joined(&small, false), 0);
    padded.padding = 2; /* more than half a kernel */
    assert_int_equal(count_joined(&padded, false), 0);
    plain.first = NULL;
    assert_int_equal(count_joined(&plain, false), 1);
}

/* The first layer is too small to be joined, or somebody else reads its image. */
static void an_activation_joins_alone(void **state)
{
    struct block small = usual;
    (void)state;
    assert_int_equal(count_joined(&usual, true), 1);
    small.height = small.width = 7;
    assert_int_equal(count_joined(&small, false), 1);
}

/* Beside fast products of bfloat16 numbers any size is joined, and a depthwise convolution alone
 * becomes the node that can round its results. */
static void fast_products_join_all(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    struct block small = usual;
    (void)state;
    small.height = small.width = 7;
    graph_begin(f);
    f->graph.precision = PRECISION_BF16;
    f->graph.bf16_speed = 8;
    give(f, convolve(f, &small, convolve(f, &small, INPUT(1, 16, 7, 7), false), true));
    give(f, convolve(f, &small, INPUT(1, 96, 7, 7), true));
    run_passes(f);
    assert_ok(f->err, rt_pass_expand_dw(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "expand_dw"), 2);
    assert_int_equal(count_ops(f, "conv") + count_ops(f, "conv_dw") + count_ops(f, "chain"), 0);
    rt_graph_fini(&f->graph);
}

/* A chain of several steps is no activation of a layer, and neither is one of several tensors. */
static void longer_chains_stay(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    uint32_t expanded = convolve(f, &usual, INPUT(1, 16, 56, 56), false);
    uint32_t more = apply(f, "exp", &expanded, 1);
    uint32_t out = convolve(f, &usual, more, true), gate[] = {out, INPUT(1, 96, 1, 1)};
    give(f, apply(f, "mul", gate, 2));
    run_passes(f);
    assert_ok(f->err, rt_pass_expand_dw(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "expand_dw"), 0);
    assert_int_equal(count_ops(f, "conv_dw"), 1);
    rt_graph_fini(&f->graph);
}

/* ---- results --------------------------------------------------------------------------------- */

/* How a block is computed. */
struct way {
    bool is_bf16; /* products of bfloat16 numbers, where the block permits them */
    bool is_joined, is_rounded; /* the result is stored as bfloat16; not by layers */
};

/* Computes the block as one node or as layers; returns the bytes of the result. All of it is
 * constant, so that folding runs it. */
static size_t solve(struct hal_device *device, const struct block *b, struct way way, void *out)
{
    struct fixture storage = {.device = device}, *f = &storage;
    graph_begin(f);
    f->graph.precision = way.is_bf16 ? PRECISION_BF16 : PRECISION_FAST;
    f->graph.bf16_speed = way.is_bf16 ? 8 : 0;
    uint32_t x = CONSTANT(1, b->images, b->ins, b->height, b->width);
    give(f, convolve(f, b, convolve(f, b, x, false), true));
    give(f, CONSTANT(0, LENGTH(numbers))); /* folding makes some times what constants take */
    run_passes(f);
    if (way.is_joined) {
        assert_ok(f->err, rt_pass_expand_dw(&f->graph, &f->err));
        assert_int_equal(count_ops(f, "conv_dw"), 0);
        assert_int_equal(count_ops(f, "conv"), b->is_small && !way.is_bf16);
    }
    assert_int_equal(count_ops(f, "expand_dw"), way.is_joined);
    for (uint32_t i = 0; way.is_rounded && i < f->graph.node_count; i++) {
        bool is_joined = strcmp(f->graph.nodes[i].op->name, "expand_dw") == 0;
        bool is_last = f->graph.nodes[i].outs[0] == f->graph.outputs[0];
        if (is_joined || is_last) { /* the last one puts it in order */
            f->graph.values[f->graph.nodes[i].outs[0]].dtype = DT_BF16;
        }
    }
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->graph.outputs[0]];
    size_t bytes = v->bytes.len;
    assert_true(v->is_constant && bytes > 0 && bytes <= RESULTS_MAX * sizeof(float));
    memcpy(out, v->bytes.ptr, bytes);
    rt_graph_fini(&f->graph);
    return bytes;
}

static void check_block(const struct block *b, enum hal_cpu_isa isa, bool is_bf16)
{
    static float want[RESULTS_MAX], got[RESULTS_MAX];
    static uint16_t rounded[RESULTS_MAX];
    for (uint32_t workers = 1; workers <= WORKERS_MAX; workers++) {
        struct hal_device *device = open_cpu(isa, workers);
        size_t bytes =
            workers == 1 ? solve(device, b, (struct way){.is_bf16 = is_bf16}, want) : 0;
        size_t joined = solve(device, b, (struct way){is_bf16, true, false}, got);
        assert_true(workers > 1 || joined == bytes);
        assert_memory_equal(got, want, joined);
        if (is_bf16) {
            size_t count = joined / sizeof(float);
            hal_cpu_uk()->f32_to_bf16(rounded, want, count);
            assert_int_equal(solve(device, b, (struct way){true, true, true}, got), joined / 2);
            assert_memory_equal(got, rounded, count * sizeof(*rounded));
        }
        hal_device_unref(device);
    }
}

static void results_are_those_of_the_layers(void **state)
{
    static const struct block blocks[] = {
        {2, 12, 72, 51, 43, 3, 1, 1, "relu", "silu", true, false},  /* a part of a vector */
        {1, 5, 33, 67, 65, 3, 2, 1, "silu", NULL, true, false},     /* one channel is left */
        {1, 14, 96, 42, 42, 5, 1, 2, "silu", "silu", false, false}, /* whole panels */
        {2, 20, 130, 33, 35, 5, 2, 2, NULL, "relu", true, false},   /* images */
        {1, 6, 36, 61, 67, 3, 1, 0, NULL, NULL, true, false},       /* no padding */
        {1, 6, 40, 63, 61, 4, 3, 2, "relu", "silu", false, false},  /* no lines are kept */
        {1, 4, 17, 92, 94, 7, 1, 3, "silu", NULL, true, false},     /* computed point by point */
        {1, 10, 64, 3, 1000, 3, 1, 1, "silu", "relu", true, false}, /* a line at a time */
        {1, 4, 8, 1400, 14, 3, 1, 1, NULL, "silu", true, false},    /* few channels */
        {1, 6, 40, 81, 43, 1, 2, 0, "relu", NULL, true, false},     /* lines that nothing reads */
        {2, 12, 72, 14, 14, 5, 1, 2, "silu", "silu", true, true},
        {1, 6, 33, 15, 13, 3, 2, 1, NULL, "silu", true, true},
        {3, 20, 131, 7, 7, 7, 1, 3, "relu", "silu", false, true},
    };
    (void)state;
    for (unsigned l = 0; l < HAL_CPU_ISA_COUNT; l++) {
        for (size_t i = 0; i < LENGTH(blocks) && has_level((enum hal_cpu_isa)l); i++) {
            check_block(&blocks[i], (enum hal_cpu_isa)l, false);
            if (hal_cpu_isa_kernels((enum hal_cpu_isa)l)->gemm_bf16) {
                check_block(&blocks[i], (enum hal_cpu_isa)l, true);
            }
        }
    }
}

int main(void)
{
    graph_use_numbers(numbers, LENGTH(numbers), LENGTH(numbers));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_join),
        cmocka_unit_test(other_layers_stay),
        cmocka_unit_test(an_activation_joins_alone),
        cmocka_unit_test(fast_products_join_all),
        cmocka_unit_test(longer_chains_stay),
        cmocka_unit_test(results_are_those_of_the_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
