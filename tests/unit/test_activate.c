/* SPDX-License-Identifier: MIT */
/*
 * What becomes part of its neighbour on the CPU: an activation behind a product, a batch norm
 * behind a concatenation, and images in a concatenation. Which of them the passes join, and that
 * the joined node gives the very same bytes as the two do, at every level and for any number of
 * workers. Likewise convolutions of few channels in precision bf16, whose rows are multiplied as
 * one, and sums of residual blocks.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/op.h"
#include "runtime/ops/winograd.h"
#include "runtime/passes/passes.h"
#include "runtime/plan/flow.h"
#include "runtime/plan/plan.h"
#include "tests/hal/levels.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))
#define WORKERS_MAX 3
#define RESULTS_MAX (256 * 1024)

static float numbers[512 * 1024];

/* A node of that name, or of several: "silu" is a product in graphs. */
static uint32_t activate(struct fixture *f, const char *name, uint32_t x)
{
    if (strcmp(name, "silu") == 0) {
        uint32_t args[] = {x, apply(f, "sigmoid", &x, 1)};
        return apply(f, "mul", args, 2);
    }
    bool is_gelu = strncmp(name, "gelu", 4) == 0, is_tanh = strcmp(name, "gelu_tanh") == 0;
    uint32_t args[] = {x, rt_graph_string(&f->graph, span_str(is_tanh ? "tanh" : "none"))};
    return apply(f, is_gelu ? "gelu" : name, args, is_gelu ? 2 : 1);
}

static uint32_t multiply(struct fixture *f, uint32_t x, int64_t k, int64_t n)
{
    uint32_t args[] = {x, CONSTANT(9, n, k), CONSTANT(5, n)};
    return apply(f, "linear", args, 3);
}

static uint32_t convolve_dilated(struct fixture *f, uint32_t x, const int64_t *w, int64_t stride,
                                 int64_t padding, int64_t dilation, int64_t groups)
{
    uint32_t args[] = {
        x,
        CONSTANT(11, w[0], w[1], w[2], w[3]),
        CONSTANT(3, w[0]),
        INTS(stride, stride),
        INTS(padding, padding),
        INTS(dilation, dilation),
        rt_graph_bool(&f->graph, false),
        INTS(0, 0),
        number(f, groups),
    };
    return apply(f, "convolution", args, 9);
}

static uint32_t convolve(struct fixture *f, uint32_t x, const int64_t *w, int64_t stride,
                         int64_t padding, int64_t groups)
{
    return convolve_dilated(f, x, w, stride, padding, 1, groups);
}

static void run_passes(struct fixture *f, bool joins)
{
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_chain(&f->graph, &f->err));
    if (joins) {
        assert_ok(f->err, rt_pass_cat_affine(&f->graph, &f->err));
        assert_ok(f->err, rt_pass_activate(&f->graph, &f->err));
    }
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* The convolution is by Winograd's algorithm. */
static void convolutions_of_tiles_have_activations(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    f->graph.precision = PRECISION_FAST;
    uint32_t x = INPUT(1, 64, 40, 40);
    uint32_t y = convolve(f, x, (const int64_t[]){64, 64, 3, 3}, 1, 1, 1);
    give(f, activate(f, "silu", y));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_winograd(&f->graph, &f->err));
    run_passes(f, true);
    assert_int_equal(count_ops(f, "conv_winograd"), 1);
    assert_int_equal(count_ops(f, "chain") + count_ops(f, "mul"), 0);
    rt_graph_fini(&f->graph);
}

/* The nodes that are left of a product, |name| behind it, and perhaps other readers. */
static uint32_t left_of(const char *name, bool is_given)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    graph_begin(f);
    uint32_t product = multiply(f, INPUT(2, 16), 16, 16);
    give(f, activate(f, name, product));
    if (is_given) {
        give(f, product);
    }
    run_passes(f, true);
    uint32_t left = count_ops(f, name) + count_ops(f, "chain") + count_ops(f, "gelu");
    assert_int_equal(count_ops(f, "gemm"), 1);
    rt_graph_fini(&f->graph);
    return left;
}

static void activations_of_their_own_product_join(void **state)
{
    (void)state;
    assert_int_equal(left_of("silu", false), 0);
    assert_int_equal(left_of("tanh", false), 0);
    assert_int_equal(left_of("sigmoid", false), 0);
    assert_true(left_of("gelu", false) == 0);
    assert_int_equal(left_of("tanh", true), 1);
    assert_int_equal(left_of("exp", false), 1);
}

static uint32_t join(struct fixture *f, const uint32_t *items, uint32_t count, int64_t dim)
{
    uint32_t args[] = {rt_graph_tensors(&f->graph, items, count), number(f, dim)};
    return apply(f, "cat", args, 2);
}

/* Concatenations left before a depthwise convolution with |kernel|. */
static uint32_t cats_left(int64_t dim, int64_t kernel, bool is_given)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    graph_begin(f);
    uint32_t items[] = {INPUT(1, 8, 6, 6), INPUT(1, 8, 6, 6)};
    int64_t channels = dim == 1 || dim == -3 ? 16 : 8, w[] = {channels, 1, kernel, kernel};
    items[0] = convolve(f, items[0], (const int64_t[]){8, 8, 1, 1}, 1, 0, 1);
    items[1] = convolve(f, items[1], (const int64_t[]){8, 8, 1, 1}, 1, 0, 1);
    uint32_t joined = join(f, items, 2, dim);
    give(f, convolve(f, joined, w, 1, 0, channels));
    if (is_given) {
        give(f, joined);
    }
    run_passes(f, true);
    uint32_t count = count_ops(f, "cat");
    assert_int_equal(count_ops(f, "cat_affine"), !count);
    rt_graph_fini(&f->graph);
    return count;
}

static void batch_norms_of_their_own_concatenation_join(void **state)
{
    (void)state;
    assert_int_equal(cats_left(1, 1, false), 0);
    assert_int_equal(cats_left(-3, 1, false), 0);
    assert_int_equal(cats_left(2, 1, false), 1);
    assert_int_equal(cats_left(1, 3, false), 1);
    assert_int_equal(cats_left(1, 1, true), 1);
}

/* ---- results --------------------------------------------------------------------------------- */

typedef uint32_t make_f(struct fixture *f, uint32_t variant);

/* Computes a graph with the passes or without them. All of it is constant, so folding runs it. */
static size_t solve(struct hal_device *device, make_f *make, uint32_t variant, bool joins,
                    enum precision precision, float *out)
{
    struct fixture storage = {.device = device}, *f = &storage;
    graph_begin(f);
    f->graph.precision = precision;
    f->graph.is_host = joins;
    give(f, make(f, variant));
    give(f, CONSTANT(0, LENGTH(numbers))); /* folding makes some times what constants take */
    run_passes(f, joins);
    assert_ok(f->err, rt_pass_narrow(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->graph.outputs[0]];
    size_t bytes = v->bytes.len;
    assert_true(v->is_constant && bytes > 0 && bytes <= RESULTS_MAX * sizeof(float));
    memcpy(out, v->bytes.ptr, bytes);
    rt_graph_fini(&f->graph);
    return bytes / sizeof(float);
}

static void check_level(enum hal_cpu_isa isa, make_f *make, uint32_t variants)
{
    static float want[RESULTS_MAX], got[RESULTS_MAX];
    for (uint32_t workers = 1; workers <= WORKERS_MAX; workers += 2) {
        struct hal_device *device = open_cpu(isa, workers);
        bool has_bf16 = hal_device_props(device)->bf16_speed > 0;
        for (uint32_t v = 0; v < 2 * variants; v++) {
            enum precision precision = v % 2 ? PRECISION_BF16 : PRECISION_FAST;
            if (precision == PRECISION_BF16 && !has_bf16) {
                continue;
            }
            size_t count = solve(device, make, v / 2, false, precision, want);
            assert_int_equal(solve(device, make, v / 2, true, precision, got), count);
            assert_memory_equal(got, want, count * sizeof(float));
        }
        hal_device_unref(device);
    }
}

static void check_levels(make_f *make, uint32_t variants)
{
    for (unsigned l = 0; l < HAL_CPU_ISA_COUNT; l++) {
        if (has_level((enum hal_cpu_isa)l)) {
            check_level((enum hal_cpu_isa)l, make, variants);
        }
    }
}

static const char *const names[] = {"gelu", "gelu_tanh", "silu", "tanh", "sigmoid"};

/* Rows and columns that fill tiles and panels or do not, sums in one block and in several. */
static uint32_t make_product(struct fixture *f, uint32_t variant)
{
    static const int64_t sizes[][3] = {
        {1, 16, 7}, {45, 24, 64}, {33, 40, 100}, {13, 2500, 33}, {29, 12, 16}};
    const int64_t *s = sizes[variant % LENGTH(sizes)];
    return activate(f, names[variant % LENGTH(names)],
                    multiply(f, CONSTANT(1, s[0], s[1]), s[1], s[2]));
}

static uint32_t make_convolution(struct fixture *f, uint32_t variant)
{
    static const int64_t w[][4] = {{24, 8, 3, 3}, {70, 10, 1, 1}, {33, 4, 2, 5}};
    const int64_t *kernel = w[variant % LENGTH(w)];
    uint32_t x = CONSTANT(1, 2, kernel[1], 13, 11);
    return activate(f, names[variant % LENGTH(names)],
                    convolve(f, x, kernel, 1 + variant % 2, 1, 1));
}

/* Tiles that are whole and others, more columns than are multiplied at once, a bound as well. */
static uint32_t make_winograd(struct fixture *f, uint32_t variant)
{
    static const int64_t sizes[][5] = {
        {16, 16, 12, 8, 4}, {5, 70, 13, 9, 4}, {20, 7, 7, 6, 2}, {3, 33, 2, 3, 2}};
    const int64_t *s = sizes[variant % LENGTH(sizes)];
    uint32_t pack[] = {CONSTANT(7, s[1], s[0], 3, 3), number(f, s[4])};
    uint32_t args[RT_WINOGRAD_ARGS] = {CONSTANT(1, 2, s[0], s[2], s[3]),
                                       apply(f, "pack_winograd", pack, 2),
                                       CONSTANT(3, s[1]),
                                       rt_graph_none(&f->graph),
                                       INTS(1, 1),
                                       number(f, s[1]),
                                       number(f, s[4]),
                                       rt_graph_float(&f->graph, variant % 2 ? -1 : -INFINITY),
                                       rt_graph_float(&f->graph, INFINITY),
                                       rt_graph_none(&f->graph)};
    return activate(f, names[variant % LENGTH(names)],
                    apply(f, "conv_winograd", args, RT_WINOGRAD_ARGS));
}

static void activations_give_the_same_bytes(void **state)
{
    (void)state;
    check_levels(make_product, 5);
    check_levels(make_convolution, 3);
    check_levels(make_winograd, 5);
}

/* Images of several widths; more of them than a dispatch has bindings for. */
static uint32_t make_joined(struct fixture *f, uint32_t variant)
{
    uint32_t items[40] = {0}, count = variant == 2 ? 40 : 3 + variant;
    int64_t channels = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t w[] = {1 + (7 + 13 * i) % 70, 4, 1, 1};
        uint32_t x = CONSTANT(i, 2, 4, 5 + variant, 7);
        items[i] = convolve(f, x, w, 1, 0, 1);
        channels += w[0];
    }
    uint32_t joined = join(f, items, count, 1);
    uint32_t norm = convolve(f, joined, (const int64_t[]){channels, 1, 1, 1}, 1, 0, channels);
    uint32_t relu = variant == 1 ? norm : apply(f, "relu", &norm, 1);
    /* what products of bfloat16 numbers read is rounded */
    return convolve(f, relu, (const int64_t[]){12, channels, 1, 1}, 1, 0, 1);
}

static void concatenations_give_the_same_bytes(void **state)
{
    (void)state;
    check_levels(make_joined, 3);
}

/* Images that are computed where their concatenation has them. */
static uint32_t make_parts(struct fixture *f, uint32_t variant)
{
    uint32_t items[4], count = 3 + variant / 2, x = CONSTANT(7, 2, 6, 9, 5 + variant);
    int64_t side = 1 + 2 * (variant & 1), channels = 0;
    for (uint32_t i = 0; i < count; i++) {
        items[i] = convolve(f, x, (const int64_t[]){5 + 19 * i, 6, side, side}, 1, side / 2, 1);
        channels += 5 + 19 * i;
    }
    uint32_t joined = join(f, items, count, 1);
    return convolve(f, joined, (const int64_t[]){12, channels, 1, 1}, 1, 0, 1);
}

static void parts_give_the_same_bytes(void **state)
{
    (void)state;
    check_levels(make_parts, 4);
}

/* Bytes that the node reads and writes. */
static uint64_t bytes_of(const struct fixture *f, const struct rt_node *node)
{
    struct rt_tensors lists[] = {rt_node_arg_tensors(&f->graph, node),
                                 rt_node_out_tensors(&f->graph, node)};
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        for (uint32_t value; rt_tensors_next(&lists[i], &value);) {
            struct shape shape;
            size_t bytes;
            assert_true(rt_value_shape(&f->graph.values[value], &shape));
            assert_int_equal(shape_bytes(&shape, DT_F32, &bytes, NULL), ST_OK);
            sum += bytes;
        }
    }
    return sum;
}

/* A profile says how much a convolution writes, not how large the image is that it writes a part
 * of. */
static void parts_count_their_own_bytes(void **state)
{
    struct fixture storage = {.device = open_cpu(HAL_CPU_GENERIC, 1)}, *f = &storage;
    struct hal_command_info infos[32] = {0};
    struct rt_flow flow;
    struct rt_plan *plan;
    (void)state;
    graph_begin(f);
    f->graph.is_host = true;
    give(f, make_parts(f, 0));
    run_passes(f, true);
    assert_ok(f->err,
              rt_flow_make(&flow, &f->graph, (struct rt_staging){0}, &f->graph.arena, &f->err));
    assert_ok(f->err, rt_plan_new(&flow, f->device, NULL, &plan, &f->err));
    uint32_t count = hal_command_count(plan->command), parts = 0;
    assert_true(count <= LENGTH(infos));
    hal_command_describe(plan->command, infos);
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_node *node = &f->graph.nodes[infos[i].tag];
        assert_string_not_equal(infos[i].label, "cat");
        if (strcmp(infos[i].label, "conv") == 0) {
            assert_int_equal(infos[i].bytes, bytes_of(f, node));
            parts += flow.whole[node->outs[0]] != 0;
        }
    }
    assert_int_equal(parts, 3);
    rt_plan_unref(plan);
    rt_graph_fini(&f->graph);
    hal_device_unref(f->device);
}

/* So many channels that only some pixels of them fit a worker's scratch; a product reads them in
 * another shape, so that they are rounded. */
static uint32_t make_wide(struct fixture *f, uint32_t variant)
{
    uint32_t items[3], factors[3];
    for (uint32_t i = 0; i < 3; i++) {
        items[i] = CONSTANT(i + variant, 1, 100000, 1, 1);
        factors[i] = CONSTANT(2 * i, 100000, 1, 1, 1);
    }
    uint32_t args[] = {
        join(f, items, 3, 1),
        join(f, factors, 3, 0),
        rt_graph_none(&f->graph),
        INTS(1, 1),
        INTS(0, 0),
        INTS(1, 1),
        rt_graph_bool(&f->graph, false),
        INTS(0, 0),
        number(f, 300000),
    };
    uint32_t view[] = {apply(f, "convolution", args, 9), INTS(5, 60000)};
    return multiply(f, apply(f, "view", view, 2), 60000, 6);
}

static void wide_concatenations_give_the_same_bytes(void **state)
{
    (void)state;
    check_levels(make_wide, 1);
}

/* ---- precision bf16 -------------------------------------------------------------------------- */

/* Two products and a gelu between them, which is rounded. */
static uint32_t make_pair(struct fixture *f, uint32_t variant)
{
    uint32_t x = multiply(f, CONSTANT(1, 21 + variant, 20), 20, 96);
    return multiply(f, activate(f, "gelu", x), 96, 10);
}

/* Patches, rows of two taps, and kernels that reach into the padding. */
static uint32_t make_small(struct fixture *f, uint32_t variant)
{
    static const struct {
        int64_t w[4], stride, padding;
    } convs[] = {
        {{40, 3, 4, 4}, 4, 0}, {{8, 3, 16, 16}, 16, 0}, {{33, 5, 3, 2}, 2, 0},
        {{20, 3, 7, 7}, 2, 3}, {{9, 6, 3, 3}, 1, 1},    {{16, 3, 3, 3}, 2, 1},
    };
    const int64_t *w = convs[variant].w;
    return convolve(f, CONSTANT(1, 2, w[1], 33, 34), w, convs[variant].stride,
                    convs[variant].padding, 1);
}

/* Images that AMX copies with their padding: lines and columns that step beyond it at one side or
 * both, taps that lie apart, kernels larger than the image, and copies in several parts. */
static uint32_t make_padded(struct fixture *f, uint32_t variant)
{
    static const struct {
        int64_t w[4], height, width, stride, padding, dilation;
    } convs[] = {
        {{33, 16, 3, 3}, 14, 15, 1, 1, 1}, {{33, 16, 3, 3}, 14, 15, 2, 1, 1},
        {{40, 6, 5, 3}, 13, 9, 2, 2, 1},   {{20, 8, 3, 3}, 17, 18, 3, 2, 2},
        {{20, 8, 3, 3}, 11, 12, 1, 4, 4},  {{16, 10, 5, 5}, 3, 2, 1, 4, 1},
        {{12, 4, 1, 7}, 9, 8, 1, 6, 1},    {{8, 64, 3, 3}, 60, 61, 1, 1, 1},
        {{8, 64, 3, 3}, 60, 61, 2, 1, 1},
    };
    const int64_t *w = convs[variant].w;
    uint32_t x = CONSTANT(1, 2, w[1], convs[variant].height, convs[variant].width);
    return convolve_dilated(f, x, w, convs[variant].stride, convs[variant].padding,
                            convs[variant].dilation, 1);
}

/* Kernels that reach far beyond the image, so that a copy with its padding would be too large, even
 * for the integer that counts its bytes. */
static uint32_t make_far(struct fixture *f, uint32_t variant)
{
    static const int64_t far[] = {400, 1 << 24}, w[] = {8, 16, 3, 3};
    return convolve_dilated(f, CONSTANT(1, 2, 16, 5, 6), w, 1, far[variant], far[variant], 1);
}

/* A residual block between two convolutions: the sum is the input of the last one. With |variant|
 * 1 floats are needed of it, too. */
static uint32_t make_block(struct fixture *f, uint32_t variant)
{
    static const int64_t first[] = {40, 16, 1, 1}, w[] = {40, 40, 3, 3}, last[] = {40, 40, 1, 1};
    uint32_t x = f->device ? CONSTANT(1, 2, 16, 9, 10) : INPUT(2, 16, 9, 10);
    uint32_t y = convolve(f, x, first, 1, 0, 1);
    uint32_t add[] = {y, convolve(f, y, w, 1, 1, 1), number(f, 1)};
    uint32_t sum = apply(f, "add", add, 3), out = convolve(f, sum, last, 1, 0, 1);
    uint32_t parts[] = {out, apply(f, "sin", &sum, 1)};
    uint32_t cat[] = {rt_graph_tensors(&f->graph, parts, 2), number(f, 1)};
    return variant == 0 ? out : apply(f, "cat", cat, 2);
}

/* Is bf16, at every level that has it and for any number of workers, near float32? */
static void check_near(make_f *make, uint32_t variants, float tolerance)
{
    static float want[RESULTS_MAX], first[RESULTS_MAX], got[RESULTS_MAX];
    for (unsigned l = 0; l < HAL_CPU_ISA_COUNT; l++) {
        for (uint32_t v = 0; v < variants * 2 && has_level((enum hal_cpu_isa)l); v++) {
            struct hal_device *device = open_cpu((enum hal_cpu_isa)l, 1 + v % 2);
            if (hal_device_props(device)->bf16_speed > 0) {
                size_t n = solve(device, make, v / 2, true, PRECISION_EXACT, want);
                assert_int_equal(solve(device, make, v / 2, true, PRECISION_BF16, got), n);
                float most = 0, off = 0;
                for (size_t i = 0; i < n; i++) {
                    most = fmaxf(most, fabsf(want[i]));
                    off = fmaxf(off, fabsf(want[i] - got[i]));
                }
                assert_true(off > 0 && off <= tolerance * most);
                assert_true(v % 2 == 0 || memcmp(first, got, n * sizeof(float)) == 0);
                memcpy(first, got, n * sizeof(float));
            }
            hal_device_unref(device);
        }
    }
}

static void rounded_results_are_near(void **state)
{
    (void)state;
    check_near(make_pair, 3, 0.01F);
    check_near(make_small, 6, 0.01F);
    check_near(make_padded, 9, 0.01F);
    check_near(make_far, 2, 0.01F);
    check_near(make_block, 2, 0.02F);
}

static void sums_of_residual_blocks_are_bfloat16(void **state)
{
    (void)state;
    for (uint32_t variant = 0; variant < 2; variant++) {
        struct fixture storage = {.device = NULL}, *f = &storage;
        graph_begin(f);
        f->graph.precision = PRECISION_BF16;
        give(f, make_block(f, variant));
        run_passes(f, true);
        assert_ok(f->err, rt_pass_narrow(&f->graph, &f->err));
        uint32_t blocks = 0;
        for (uint32_t n = 0; n < f->graph.node_count; n++) {
            const struct rt_node *node = &f->graph.nodes[n];
            bool is_conv = strcmp(node->op->name, "conv") == 0;
            if (is_conv && rt_node_arg(&f->graph, node, RT_PACKED_RESIDUAL)->kind == RT_TENSOR) {
                blocks++;
                assert_int_equal(rt_node_arg(&f->graph, node, RT_PACKED_RESIDUAL)->dtype, DT_BF16);
                assert_int_equal(rt_node_out(&f->graph, node, 0)->dtype,
                                 variant == 0 ? DT_BF16 : DT_F32);
            }
        }
        assert_int_equal(blocks, 1);
        rt_graph_fini(&f->graph);
    }
}

/* Few channels will do if rows of the kernel have an even length and do not end between a pair; the
 * images of three channels are made so. */
static void rows_of_few_channels_are_bfloat16(void **state)
{
    static const struct {
        int64_t w[4], padding;
        enum dtype dtype;
    } cases[] = {
        {{8, 3, 4, 4}, 0, DT_BF16},   {{8, 3, 4, 4}, 1, DT_BF16}, {{8, 3, 3, 3}, 0, DT_BF16},
        {{8, 1, 16, 16}, 0, DT_BF16}, {{8, 3, 1, 1}, 0, DT_F32},  {{8, 8, 3, 3}, 1, DT_BF16},
        {{8, 5, 3, 3}, 1, DT_F32},    {{8, 6, 3, 3}, 1, DT_BF16}, {{8, 5, 3, 3}, 0, DT_F32},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct fixture storage = {.device = NULL}, *f = &storage;
        graph_begin(f);
        f->graph.precision = PRECISION_BF16;
        uint32_t x = INPUT(1, cases[i].w[1], 32, 32);
        give(f, convolve(f, x, cases[i].w, 1, cases[i].padding, 1));
        run_passes(f, true);
        for (uint32_t n = 0; n < f->graph.node_count; n++) {
            const struct rt_node *node = &f->graph.nodes[n];
            if (strcmp(node->op->name, "conv") == 0) {
                assert_int_equal(rt_node_arg(&f->graph, node, 1)->dtype, cases[i].dtype);
            }
        }
        assert_int_equal(count_ops(f, "conv"), 1);
        rt_graph_fini(&f->graph);
    }
}

/* The type of packed weights that lie |count| nodes behind a constant, which change nothing. */
static enum dtype type_behind(uint32_t count)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    graph_begin(f);
    f->graph.precision = PRECISION_BF16;
    uint32_t w = CONSTANT(11, 8, 16, 1, 1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t pad[] = {w, INTS(0, 0), rt_graph_float(&f->graph, 0)};
        w = apply(f, "constant_pad", pad, 3);
    }
    uint32_t args[] = {
        INPUT(1, 16, 4, 4), w,          rt_graph_none(&f->graph),        INTS(1, 1),
        INTS(0, 0),         INTS(1, 1), rt_graph_bool(&f->graph, false), INTS(0, 0),
        number(f, 1),
    };
    give(f, apply(f, "convolution", args, 9));
    run_passes(f, true);
    enum dtype dtype = DT_I64;
    for (uint32_t n = 0; n < f->graph.node_count; n++) {
        const struct rt_node *node = &f->graph.nodes[n];
        if (strcmp(node->op->name, "conv") == 0) {
            dtype = rt_node_arg(&f->graph, node, 1)->dtype;
        }
    }
    rt_graph_fini(&f->graph);
    return dtype;
}

/* Only a few nodes are looked at for each product, however many a file has. */
static void weights_far_behind_constants_are_floats(void **state)
{
    (void)state;
    assert_int_equal(type_behind(0), DT_BF16);
    assert_int_equal(type_behind(3), DT_BF16);
    assert_int_equal(type_behind(100), DT_F32);
}

int main(void)
{
    graph_use_numbers(numbers, LENGTH(numbers), LENGTH(numbers));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_of_their_own_product_join),
        cmocka_unit_test(convolutions_of_tiles_have_activations),
        cmocka_unit_test(batch_norms_of_their_own_concatenation_join),
        cmocka_unit_test(activations_give_the_same_bytes),
        cmocka_unit_test(concatenations_give_the_same_bytes),
        cmocka_unit_test(parts_give_the_same_bytes),
        cmocka_unit_test(parts_count_their_own_bytes),
        cmocka_unit_test(wide_concatenations_give_the_same_bytes),
        cmocka_unit_test(rounded_results_are_near),
        cmocka_unit_test(sums_of_residual_blocks_are_bfloat16),
        cmocka_unit_test(rows_of_few_channels_are_bfloat16),
        cmocka_unit_test(weights_far_behind_constants_are_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
