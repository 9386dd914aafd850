/* SPDX-License-Identifier: MIT */
/* Each pass on a small graph, which is printed and compared as text; then the data flow and the
 * memory. */
#include "config.h"

#include "runtime/code/fold.h"
#include "runtime/passes/passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hal/buffer.h"
#include "hal/device.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "runtime/plan/alloc.h"
#include "runtime/plan/flow.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define VALUES_MAX 8192

/* Arguments of convolutions of an image, and of sums. */
static uint32_t stride, padding, dilation, no_padding, one;

static float floats[VALUES_MAX]; /* content of the constants */

static int set_up(void **state)
{
    static struct fixture f;
    static const struct hal_device_options generic = {.workers = 1, .cpu_level = "generic"};
    f = (struct fixture){0};
    assert_ok(f.err, hal_device_open("cpu", &generic, &f.device, &f.err));
    graph_begin(&f);
    stride = dilation = graph_ints(&f, (const int64_t[]){1, 1, -1});
    padding = graph_ints(&f, (const int64_t[]){1, 1, -1});
    no_padding = graph_ints(&f, (const int64_t[]){0, 0, -1});
    one = number(&f, 1);
    for (int i = 0; i < VALUES_MAX; i++) {
        floats[i] = (float)(i % 5 + 1);
    }
    *state = &f;
    return 0;
}

static uint32_t weights_of(struct fixture *f, const int64_t sizes[4])
{
    struct shape shape = {.rank = 0};
    while (shape.rank < 4 && sizes[shape.rank] >= 0) {
        shape.dims[shape.rank] = sizes[shape.rank];
        shape.rank++;
    }
    size_t bytes = (size_t)shape_numel(&shape) * sizeof(float);
    assert_true(bytes <= sizeof(floats));
    uint32_t value = rt_graph_constant(&f->graph, DT_F32, &shape, span_of(NULL, 0));
    struct hal_buffer *buffer;
    assert_ok(f->err, hal_buffer_new(f->device, bytes, &buffer, &f->err));
    memcpy(hal_buffer_map(buffer), floats, bytes);
    rt_graph_set_constant(&f->graph, value, buffer);
    return value;
}

#define WEIGHTS(...) weights_of(f, (const int64_t[4]){__VA_ARGS__, -1})
#define WEIGHTS4(...) weights_of(f, (const int64_t[4]){__VA_ARGS__})

static uint32_t relu(struct fixture *f, uint32_t x)
{
    return apply(f, "relu", &x, 1);
}

static uint32_t add(struct fixture *f, uint32_t a, uint32_t b)
{
    uint32_t args[] = {a, b, one};
    return apply(f, "add", args, 3);
}

static uint32_t clamp(struct fixture *f, const char *op, uint32_t x, double min, double max)
{
    uint32_t args[] = {x, rt_graph_float(&f->graph, min), rt_graph_float(&f->graph, max)};
    return apply(f, op, args, 3);
}

static uint32_t convolve(struct fixture *f, uint32_t x, uint32_t w, uint32_t bias, int64_t groups,
                         bool is_transposed)
{
    bool is_1x1 = rt_dim_is(f->graph.values[w].dims[2], 1);
    uint32_t args[] = {
        x,
        w,
        bias ? bias : rt_graph_none(&f->graph),
        stride,
        is_1x1 ? no_padding : padding,
        dilation,
        rt_graph_bool(&f->graph, is_transposed),
        no_padding,
        rt_graph_int(&f->graph, rt_dim_of(groups)),
    };
    return apply(f, "convolution", args, 9);
}

static uint32_t batch_norm(struct fixture *f, uint32_t x, int64_t channels)
{
    const struct rt_op *op =
        rt_op_find_kernel(span_str("aten::_native_batch_norm_legit_no_training.out"));
    uint32_t args[] = {
        x,
        WEIGHTS(channels),
        WEIGHTS(channels),
        WEIGHTS(channels),
        WEIGHTS(channels),
        rt_graph_float(&f->graph, 0.1),
        rt_graph_float(&f->graph, 0),
    };
    uint32_t outs[3];
    for (int i = 0; i < 3; i++) {
        outs[i] = rt_graph_tensor(&f->graph, DT_F32, 0, NULL);
    }
    uint32_t node = rt_graph_node(&f->graph, op, args, 7, outs, 3);
    assert_ok(f->err, rt_graph_infer(&f->graph, node, &f->err));
    return outs[0];
}

static void lower(struct fixture *f)
{
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
}

static void fuse(struct fixture *f)
{
    lower(f);
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
}

static void lay_out(struct fixture *f)
{
    fuse(f);
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
}

/* The only node with operator |op|. */
static const struct rt_node *node_of(const struct fixture *f, const char *op)
{
    const struct rt_node *found = NULL;
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        if (strcmp(f->graph.nodes[i].op->name, op) == 0) {
            assert_null(found);
            found = &f->graph.nodes[i];
        }
    }
    assert_non_null(found);
    return found;
}

static double number_of(const struct fixture *f, const struct rt_node *node, uint32_t arg)
{
    return rt_value_number(rt_node_arg(&f->graph, node, arg));
}

/* ---- the graph itself ------------------------------------------------------------------------ */

static void compaction_sorts_and_drops(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), kept = relu(f, x), late;
    relu(f, kept); /* nobody reads it */
    give(f, add(f, kept, x));
    /* The sum reads a node that comes after it. */
    late = relu(f, x);
    f->graph.nodes[2].args[1] = late;
    uint32_t unused = WEIGHTS(4);
    assert_ok(f->err, rt_graph_compact(&f->graph, &f->err));
    assert_null(f->graph.values[unused].buffer);
    assert_graph(f, "method m(%5:f32[2,3])\n"
                    "  %6:f32[2,3] = relu(%5)\n"
                    "  %9:f32[2,3] = relu(%5)\n"
                    "  %8:f32[2,3] = add(%6, %9, 1)\n"
                    "  return %8\n");
}

/* ---- resolve, fold, normalize ---------------------------------------------------------------- */

static void sizes_become_expressions(void **state)
{
    struct fixture *f = *state;
    struct rt_graph *g = &f->graph;
    struct rt_dim dims[2] = {rt_dim_symbol(&g->dims, 9), rt_dim_symbol(&g->dims, 7)};
    uint32_t x = rt_graph_tensor(g, DT_F32, 2, dims), w = WEIGHTS(4, 6);
    f->inputs[g->input_count++] = x;
    uint32_t args[] = {x, w}, product = apply(f, "mm", args, 2);
    uint32_t size_args[] = {product, rt_graph_int(g, rt_dim_of(0))};
    uint32_t size = rt_graph_int(g, rt_dim_of(0));
    uint32_t node = rt_graph_node(g, rt_op_find("sym_size"), size_args, 2, &size, 1);
    assert_ok(f->err, rt_graph_infer(g, node, &f->err));
    give(f, product);
    give(f, size);
    assert_ok(f->err, rt_pass_resolve(g, &f->err));
    assert_graph(f, "method m(%5:f32[s1,4])\n"
                    "  %7:f32[s1,6] = mm(%5, %6:f32[4,6])\n"
                    "  return %7, s1\n");
}

static void constants_are_computed(void **state)
{
    struct fixture *f = *state;
    uint32_t matrix = WEIGHTS(2, 3), row = WEIGHTS(3), x = INPUT(2, 3);
    uint32_t sum = add(f, matrix, row);
    give(f, add(f, x, sum));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_graph(f, "method m(%7:f32[2,3])\n"
                    "  %9:f32[2,3] = add(%7, %8:f32[2,3], 1)\n"
                    "  return %9\n");
    const float *content = (const float *)(const void *)f->graph.values[sum].bytes.ptr;
    static const float expected[] = {2, 4, 6, 5, 7, 4};
    assert_memory_equal(content, expected, sizeof(expected));
}

/* A product of constants has no kernel until it is lowered. */
static void only_kernels_are_folded(void **state)
{
    struct fixture *f = *state;
    uint32_t args[] = {WEIGHTS(2, 3), WEIGHTS(3, 2)};
    give(f, apply(f, "mm", args, 2));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(count_ops(f, "mm"), 1);
    lower(f);
    assert_int_equal(f->graph.node_count, 0);
    const float *content = (const float *)(const void *)f->graph.values[f->outputs[0]].bytes.ptr;
    /* [[1,2,3],[4,5,1]] x [[1,2],[3,4],[5,1]] */
    static const float expected[] = {22, 13, 24, 29};
    assert_memory_equal(content, expected, sizeof(expected));
}

/* Constants computed from a weight keep its name through any number of steps. Other constants get
 * no name. */
static void folded_weights_keep_their_names(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), w = WEIGHTS(3, 2), plain = WEIGHTS(2, 3);
    f->graph.values[w].name = "fc.weight";
    uint32_t turned_args[] = {w, INTS(1, 0)};
    uint32_t turned = apply(f, "permute", turned_args, 2);
    give(f, add(f, x, add(f, relu(f, turned), plain)));
    give(f, add(f, x, relu(f, plain)));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_graph(f, "method m(%5:f32[2,3])\n"
                    "  %12:f32[2,3] = add(%5, %11:f32[2,3] \"fc.weight\", 1)\n"
                    "  %14:f32[2,3] = add(%5, %13:f32[2,3], 1)\n"
                    "  return %12, %14\n");
}

/* An operator that needs the channels of a pixel side by side has them only after the layout
 * pass. */
static void images_are_folded_after_layout(void **state)
{
    struct fixture *f = *state;
    uint32_t image = WEIGHTS4(1, 2, 2, 1);
    uint32_t args[] = {image, graph_ints(f, (const int64_t[]){1, 1, -1})};
    give(f, apply(f, "adaptive_avg_pool2d", args, 2));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(f->graph.node_count, 1);
    lay_out(f);
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(f->graph.node_count, 0);
    const float *content = (const float *)(const void *)f->graph.values[f->outputs[0]].bytes.ptr;
    static const float expected[] = {1.5F, 3.5F};
    assert_memory_equal(content, expected, sizeof(expected));
}

/* Each step alone is allowed; together they exceed the limit. */
static void folding_in_steps_is_bounded(void **state)
{
    struct fixture *f = *state;
    uint32_t x = WEIGHTS(4, 4);
    int64_t size = 16;
    for (int i = 0; i < 20; i++) {
        uint32_t items[] = {x, x};
        uint32_t args[] = {rt_graph_tensors(&f->graph, items, 2),
                           rt_graph_int(&f->graph, rt_dim_of(0))};
        x = apply(f, "cat", args, 2);
        size *= 2;
    }
    assert_true(size * (int64_t)sizeof(float) > 8 << 20);
    give(f, x);
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_true(count_ops(f, "cat") > 0 && count_ops(f, "cat") < 20);
}

/* 64 bytes become 96 KB: only beside constants of which that is a small part. */
static void small_parts_are_folded_however_much_they_grow(void **state)
{
    struct fixture *f = *state;
    const int64_t size = 2 << 20;
    uint32_t args[] = {WEIGHTS(16), INTS(1536)};
    give(f, apply(f, "repeat", args, 2));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(count_ops(f, "repeat"), 1);
    struct shape shape = {.rank = 1, .dims = {size}};
    uint32_t large = rt_graph_constant(&f->graph, DT_F32, &shape, span_of(NULL, 0));
    struct hal_buffer *buffer;
    assert_ok(f->err, hal_buffer_new(f->device, (size_t)size * sizeof(float), &buffer, &f->err));
    memset(hal_buffer_map(buffer), 0, (size_t)size * sizeof(float));
    rt_graph_set_constant(&f->graph, large, buffer);
    give(f, add(f, INPUT(size), large));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(count_ops(f, "repeat"), 0);
}

static void batch_norm_goes_into_the_weights(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 3, 4, 4);
    give(f, batch_norm(f, convolve(f, x, WEIGHTS4(2, 3, 3, 3), 0, 1, false), 2));
    assert_ok(f->err, rt_pass_normalize(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(f->graph.node_count, 1);
    const struct rt_node *conv = node_of(f, "convolution");
    assert_true(rt_node_arg(&f->graph, conv, 1)->is_constant);
    assert_true(rt_node_arg(&f->graph, conv, 2)->is_constant);
}

static void a_transposed_convolution_takes_batch_norm(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 3, 4, 4);
    give(f, batch_norm(f, convolve(f, x, WEIGHTS4(3, 2, 3, 3), WEIGHTS(2), 1, true), 2));
    assert_ok(f->err, rt_pass_normalize(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(f->graph.node_count, 1);
}

/* With two users, one needs the plain output. Of two batch norms, only one may go in. */
static void batch_norm_stays_out(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 3, 4, 4);
    uint32_t y = convolve(f, x, WEIGHTS4(2, 3, 3, 3), 0, 1, false);
    uint32_t z = batch_norm(f, convolve(f, x, WEIGHTS4(2, 3, 3, 3), 0, 1, false), 2);
    give(f, add(f, batch_norm(f, y, 2), y));
    give(f, add(f, batch_norm(f, z, 2), z));
    assert_ok(f->err, rt_pass_normalize(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(count_ops(f, "affine"), 2);
}

/* ---- lower ----------------------------------------------------------------------------------- */

static void products_become_gemm(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), w = WEIGHTS(3, 4), none = rt_graph_none(&f->graph);
    uint32_t two = rt_graph_float(&f->graph, 2);
    uint32_t turned = WEIGHTS(4, 3), row_bias = WEIGHTS(4), full_bias = WEIGHTS(2, 4);
    uint32_t mm[] = {x, w}, linear[] = {x, turned, none};
    uint32_t row[] = {row_bias, x, w, one, one}, full[] = {full_bias, x, w, two, two};
    give(f, apply(f, "mm", mm, 2));
    give(f, apply(f, "linear", linear, 3));
    give(f, apply(f, "addmm", row, 5));
    give(f, apply(f, "addmm", full, 5));
    lower(f);
    assert_graph(
        f, "method m(%5:f32[2,3])\n"
           "  %23:f32[2,4] = gemm(%5, %18:f32[1,1,3,8] packed, 4, none, none, -inf, inf, none)\n"
           "  %30:f32[2,4] = gemm(%5, %25:f32[1,1,3,8] packed, 4, none, none, -inf, inf, none)\n"
           "  %37:f32[2,4] = gemm(%5, %32:f32[1,1,3,8] packed, 4, %10:f32[4], none, -inf, "
           "inf, none)\n"
           "  %45:f32[2,4] = gemm(%5, %40:f32[1,1,3,8] packed, 4, none, none, -inf, inf, none)\n"
           "  %46:f32[2,4] = mul_scalar(%45, 2)\n"
           "  %48:f32[2,4] = add(%46, %39:f32[2,4], 1)\n"
           "  return %23, %30, %37, %48\n");
}

static const struct rt_value *product_operand(const struct fixture *f, uint32_t index)
{
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        if (strcmp(f->graph.nodes[i].op->name, "gemm") == 0) {
            return rt_node_arg(&f->graph, &f->graph.nodes[i], index);
        }
    }
    fail_msg("no product");
    return NULL;
}

static uint32_t convert(struct fixture *f, uint32_t value, enum dtype dtype)
{
    uint32_t out;
    assert_ok(f->err, rt_op_convert(&f->graph, value, dtype, &out, &f->err));
    return out;
}

/* A product of tensors that were converted to |dtype| and back, then moved and packed. */
static void multiply_narrowed(struct fixture *f, enum dtype dtype)
{
    uint32_t x = convert(f, convert(f, INPUT(3, 2), dtype), DT_F32);
    uint32_t moved[] = {x, INTS(1, 0)};
    uint32_t args[] = {apply(f, "permute", moved, 2),
                       convert(f, convert(f, WEIGHTS(4, 3), dtype), DT_F32),
                       rt_graph_none(&f->graph)};
    give(f, apply(f, "linear", args, 3));
    lower(f);
}

static void floats_that_were_halves_are_known(void **state)
{
    struct fixture *f = *state;
    multiply_narrowed(f, DT_F16);
    assert_true(product_operand(f, 0)->is_half);
    assert_true(product_operand(f, 1)->is_half && product_operand(f, 1)->is_constant);
    assert_false(f->graph.values[f->outputs[0]].is_half);
}

static void other_floats_are_not_taken_for_halves(void **state)
{
    struct fixture *f = *state;
    multiply_narrowed(f, DT_BF16);
    assert_false(product_operand(f, 0)->is_half || product_operand(f, 1)->is_half);
}

/* Floats in the file whose values halves can represent, or all but one of them. */
static void constants_are_halves_if_their_numbers_are(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        uint32_t x = convert(f, convert(f, INPUT(2, 3), DT_F16), DT_F32);
        floats[7] = i == 0 ? 65504 : 65505;
        uint32_t args[] = {x, WEIGHTS(4, 3), rt_graph_none(&f->graph)};
        give(f, apply(f, "linear", args, 3));
        fuse(f);
        assert_int_equal(product_operand(f, 1)->is_half, i == 0);
        graph_tear_down(state);
        set_up(state);
    }
}

static void halves_joined_with_other_floats_are_floats(void **state)
{
    struct fixture *f = *state;
    uint32_t half = convert(f, convert(f, INPUT(2, 3), DT_F16), DT_F32);
    const uint32_t alike[] = {half, half}, unlike[] = {half, INPUT(2, 3)};
    uint32_t args[] = {rt_graph_tensors(&f->graph, alike, 2), number(f, 0)};
    assert_true(f->graph.values[apply(f, "cat", args, 2)].is_half);
    args[0] = rt_graph_tensors(&f->graph, unlike, 2);
    assert_false(f->graph.values[apply(f, "cat", args, 2)].is_half);
    assert_false(f->graph.values[relu(f, half)].is_half); /* it would be, but no pass asks */
}

/* x @ a constant matrix of 16 x 16, in precision bf16. */
static uint32_t multiply(struct fixture *f, uint32_t x)
{
    uint32_t args[] = {x, WEIGHTS(16, 16), rt_graph_none(&f->graph)};
    return apply(f, "linear", args, 3);
}

/* The type of argument 0 of the last product. */
static enum dtype narrowed(struct fixture *f)
{
    enum dtype dtype = DT_BOOL;
    f->graph.precision = PRECISION_BF16;
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_narrow(&f->graph, &f->err));
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        if (strcmp(f->graph.nodes[i].op->name, "gemm") == 0) {
            dtype = rt_node_arg(&f->graph, &f->graph.nodes[i], 0)->dtype;
        }
    }
    for (uint32_t i = 0; i < f->graph.output_count; i++) {
        assert_int_equal(f->graph.values[f->graph.outputs[i]].dtype, DT_F32);
    }
    return dtype;
}

static void start_again(void **state)
{
    graph_tear_down(state);
    set_up(state);
}

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

static uint32_t join(struct fixture *f, uint32_t a, uint32_t b, int64_t dim)
{
    const uint32_t items[] = {a, b};
    uint32_t args[] = {rt_graph_tensors(&f->graph, items, 2), number(f, dim)};
    return apply(f, "cat", args, 2);
}

static void trees_of_concatenations_join_at_once(void **state)
{
    struct fixture *f = *state;
    uint32_t a = INPUT(2, 3), b = INPUT(2, 4), c = INPUT(2, 5), d = INPUT(2, 6);
    uint32_t alone[] = {rt_graph_tensors(&f->graph, &d, 1), number(f, 0)};
    give(f, join(f, join(f, join(f, a, b, 1), c, -1), apply(f, "cat", alone, 2), 1));
    assert_ok(f->err, rt_pass_elide(&f->graph, &f->err));
    assert_int_equal(f->graph.node_count, 1);
    const struct rt_value *list = rt_node_arg(&f->graph, &f->graph.nodes[0], 0);
    const uint32_t want[] = {a, b, c, d};
    assert_int_equal(list->count, 4);
    assert_memory_equal(list->values, want, sizeof(want));
    assert_int_equal(f->graph.values[f->graph.outputs[0]].dims[1].value, 18);
}

/* The lists of a long chain stay short. */
static void long_chains_of_concatenations(void **state)
{
    struct fixture *f = *state;
    uint32_t column = INPUT(2, 1), joined = column;
    for (int i = 1; i < 1000; i++) {
        joined = join(f, joined, column, 1);
    }
    give(f, joined);
    assert_ok(f->err, rt_pass_elide(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "cat"), 8);
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        assert_true(rt_node_arg(&f->graph, &f->graph.nodes[i], 0)->count <= 128);
    }
    assert_int_equal(f->graph.values[f->graph.outputs[0]].dims[1].value, 1000);
}

static void other_concatenations_stay(void **state)
{
    struct fixture *f = *state;
    uint32_t a = INPUT(2, 3), joined = join(f, a, a, 0);
    give(f, join(f, joined, joined, 1)); /* along another dim */
    uint32_t shared = join(f, a, a, 1);
    give(f, join(f, shared, a, 1));
    give(f, shared);
    assert_ok(f->err, rt_pass_elide(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "cat"), 4);
}

/* Exporters expand to the same dims, and pad by nothing. */
static void copies_that_change_nothing_go(void **state)
{
    struct fixture *f = *state;
    const struct rt_dim shift[] = {rt_dim_of(1), rt_dim_of(-1)};
    uint32_t x = INPUT(2, 3), dims = INTS(2, 3), none = INTS(0, 0);
    uint32_t moved = rt_graph_ints(&f->graph, shift, 2);
    uint32_t expand[] = {x, dims, rt_graph_bool(&f->graph, false)};
    uint32_t pad[] = {apply(f, "expand", expand, 3), none, rt_graph_float(&f->graph, 0)};
    uint32_t move[] = {apply(f, "constant_pad", pad, 3), moved, pad[2]};
    give(f, apply(f, "constant_pad", move, 3));
    uint32_t row[] = {INPUT(1, 3), dims, expand[2]};
    give(f, apply(f, "expand", row, 3));
    assert_ok(f->err, rt_pass_elide(&f->graph, &f->err));
    assert_int_equal(f->graph.node_count, 2);
    assert_int_equal(count_ops(f, "constant_pad"), 1);
    assert_int_equal(f->graph.nodes[0].args[0], x);
    assert_int_equal(count_ops(f, "expand"), 1);
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

static void convolutions_choose_their_form(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 5, 5), bias = WEIGHTS(4);
    give(f, convolve(f, x, WEIGHTS4(2, 4, 3, 3), 0, 1, false));
    give(f, convolve(f, x, WEIGHTS4(4, 1, 3, 3), bias, 4, false));
    give(f, convolve(f, x, WEIGHTS4(6, 2, 1, 1), 0, 2, false));
    give(f, convolve(f, x, WEIGHTS4(4, 3, 3, 3), 0, 1, true));
    lower(f);
    assert_graph(f, "method m(%5:f32[1,4,5,5])\n"
                    "  %37:f32[1,2,5,5] = conv(%5, %26:f32[1,1,36,8] packed, none, none, [3,3], "
                    "[1,1], [1,1], [1,1], [0,0], 1, 2, false, -inf, inf, none)\n"
                    "  %52:f32[1,4,5,5] = conv_dw(%5, %41:f32[3,3,1,4], %6:f32[4], none, [3,3], "
                    "[1,1], [1,1], [1,1], [0,0], 4, 4, false, -inf, inf, none)\n"
                    "  %64:f32[1,6,5,5] = conv(%5, %53:f32[2,1,2,8] packed, none, none, [1,1], "
                    "[1,1], [0,0], [1,1], [0,0], 2, 6, false, -inf, inf, none)\n"
                    "  %76:f32[1,3,5,5] = conv(%5, %65:f32[1,1,36,8] packed, none, none, [3,3], "
                    "[1,1], [1,1], [1,1], [0,0], 1, 3, true, -inf, inf, none)\n"
                    "  return %37, %52, %64, %76\n");
}

/* ---- fuse ------------------------------------------------------------------------------------ */

static void clamps_go_into_what_they_follow(void **state)
{
    static const char *const ops[] = {"hardtanh", "clamp"};
    for (int i = 0; i < 2; i++) {
        struct fixture *f = *state;
        uint32_t x = INPUT(2, 3), w = WEIGHTS(3, 4), args[] = {x, w};
        give(f, clamp(f, ops[i], apply(f, "mm", args, 2), 0, 6));
        fuse(f);
        assert_int_equal(f->graph.node_count, 1);
        assert_float_equal(number_of(f, node_of(f, "gemm"), 5), 0, 0);
        assert_float_equal(number_of(f, node_of(f, "gemm"), 6), 6, 0);
        graph_tear_down(state);
        set_up(state);
    }
}

static uint32_t apply_bool(struct fixture *f, const char *op, const uint32_t *args, uint32_t count)
{
    uint32_t out;
    assert_ok(f->err, rt_op_apply(&f->graph, rt_op_find(op), args, count, DT_BOOL, &out, &f->err));
    return out;
}

/* Softmax along |softmax_dim|, and |fill| in the rows along |any_dim| that have no other number
 * than |hidden|. */
static void check_for_hidden_rows(struct fixture *f, double hidden, int64_t any_dim,
                                  int64_t softmax_dim, double fill)
{
    struct rt_graph *graph = &f->graph;
    uint32_t x = INPUT(2, 3);
    uint32_t soft_args[] = {x, number(f, softmax_dim), rt_graph_bool(graph, false)};
    uint32_t soft = apply(f, "softmax", soft_args, 3);
    uint32_t equal_args[] = {x, rt_graph_float(graph, hidden)};
    uint32_t value = apply_bool(f, "eq_scalar", equal_args, 2);
    value = apply_bool(f, "logical_not", &value, 1);
    uint32_t any_args[] = {value, number(f, any_dim), rt_graph_bool(graph, true)};
    value = apply_bool(f, "any", any_args, 3);
    value = apply_bool(f, "logical_not", &value, 1);
    uint32_t fill_args[] = {soft, rt_graph_float(graph, fill), number(f, 1)};
    uint32_t where_args[] = {value, apply(f, "full_like", fill_args, 3), soft};
    give(f, apply(f, "where", where_args, 3));
    assert_ok(f->err, rt_pass_softmax(graph, &f->err));
}

static void softmax_takes_the_check_for_hidden_rows(void **state)
{
    struct fixture *f = *state;
    check_for_hidden_rows(f, -INFINITY, -1, -1, 0);
    assert_graph(f, "method m(%5:f32[2,3])\n"
                    "  %20:f32[2,3] = softmax_masked(%5, -1)\n"
                    "  return %20\n");
}

static void other_checks_of_softmax_stay(void **state)
{
    static const struct {
        double hidden, fill;
        int64_t any_dim;
    } others[] = {{-1, 0, -1}, {-INFINITY, 1, -1}, {-INFINITY, 0, 0}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct fixture *f = *state;
        check_for_hidden_rows(f, others[i].hidden, others[i].any_dim, -1, others[i].fill);
        assert_int_equal(count_ops(f, "where"), 1);
        assert_int_equal(count_ops(f, "softmax_masked"), 0);
        graph_tear_down(state);
        set_up(state);
    }
}

static void a_residual_goes_in_before_the_relu(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 5, 5);
    give(f, relu(f, add(f, x, convolve(f, x, WEIGHTS4(4, 4, 3, 3), 0, 1, false))));
    fuse(f);
    assert_int_equal(f->graph.node_count, 1);
    assert_int_equal(node_of(f, "conv")->args[3], x);
    assert_float_equal(number_of(f, node_of(f, "conv"), 12), 0, 0);
}

/* This is the method's fault, unlike a lack of memory. */
static void a_graph_beyond_its_maximum_is_too_large(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3);
    f->graph.arena.max_bytes = f->graph.arena.used_bytes + 10000;
    for (int i = 0; i < 1000 && !f->graph.failed; i++) {
        uint32_t out = rt_graph_tensor(&f->graph, DT_F32, 0, NULL);
        rt_graph_node(&f->graph, rt_op_find("relu"), &x, 1, &out, 1);
    }
    assert_true(f->graph.failed);
    assert_fails(f->err, rt_graph_check(&f->graph, &f->err), ST_TOO_LARGE,
                 "the method needs more than ");
}

/* x @ w in halves, with floats inside. */
static uint32_t multiply_halves(struct fixture *f, uint32_t x, int64_t n, int64_t k)
{
    uint32_t w = convert(f, convert(f, WEIGHTS(n, k), DT_F16), DT_F32);
    uint32_t args[] = {convert(f, x, DT_F32), w, rt_graph_none(&f->graph)};
    return convert(f, apply(f, "linear", args, 3), DT_F16);
}

static uint32_t relu_of_halves(struct fixture *f, uint32_t x)
{
    uint32_t out;
    assert_ok(f->err, rt_op_apply(&f->graph, rt_op_find("relu"), &x, 1, DT_F16, &out, &f->err));
    return out;
}

static void halves_between_products_are_floats_that_were_rounded(void **state)
{
    struct fixture *f = *state;
    uint32_t hidden = relu_of_halves(f, multiply_halves(f, INPUT(2, 3), 4, 3));
    give(f, multiply_halves(f, hidden, 5, 4));
    fuse(f);
    assert_graph(f, "method m(%5:f32[2,3])\n"
                    "  %40:f32[2,4] half = gemm(%5, %35:f32[1,1,3,8] half packed, 4, none, none, "
                    "0, inf, none)\n"
                    "  %47:f32[2,5] = gemm(%40, %42:f32[1,1,4,8] half packed, 5, none, none, -inf, "
                    "inf, none)\n"
                    "  %33:f16[2,5] = to_dtype(%47, false, none)\n"
                    "  return %33\n");
}

/* A reader of the halves gets them from the floats, with the same values. */
static void rounded_floats_have_readers_of_both_kinds(void **state)
{
    struct fixture *f = *state;
    uint32_t half = multiply_halves(f, INPUT(2, 3), 4, 3);
    give(f, half);
    give(f, convert(f, half, DT_F32));
    give(f, convert(f, half, DT_F32));
    give(f, relu_of_halves(f, half));
    fuse(f);
    assert_int_equal(count_ops(f, "to_dtype"), 1);
    assert_int_equal(count_ops(f, "relu"), 1);
    assert_int_equal(f->outputs[1], f->outputs[2]);
    assert_true(f->graph.values[f->outputs[1]].is_half);
}

/* Nothing is fused after a rounding: neither a sum nor a clamp. */
static void values_with_exact_readers_are_not_rounded(void **state)
{
    struct fixture *f = *state;
    uint32_t args[] = {INPUT(2, 3), WEIGHTS(3, 3)}, product = apply(f, "mm", args, 2);
    give(f, convert(f, convert(f, product, DT_F16), DT_F32));
    give(f, product);
    uint32_t other[] = {args[0], WEIGHTS(3, 3)};
    uint32_t rounded = convert(f, convert(f, apply(f, "mm", other, 2), DT_F16), DT_F32);
    give(f, relu(f, add(f, rounded, args[0])));
    fuse(f);
    assert_int_equal(count_ops(f, "to_dtype"), 2);
    assert_int_equal(count_ops(f, "add"), 1);
    assert_int_equal(count_ops(f, "relu"), 1);
}

static void values_with_other_readers_are_not_fused(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), args[] = {x, WEIGHTS(3, 3)}, y = apply(f, "mm", args, 2);
    give(f, relu(f, y));
    give(f, y);
    fuse(f);
    assert_int_equal(count_ops(f, "relu"), 1);
}

static void nothing_is_added_behind_a_clamp(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 3), args[] = {x, WEIGHTS(3, 3)};
    give(f, add(f, relu(f, apply(f, "mm", args, 2)), x));
    fuse(f);
    assert_int_equal(count_ops(f, "relu"), 0);
    assert_int_equal(count_ops(f, "add"), 1);
}

static void depthwise_takes_no_residual(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 5, 5);
    give(f, add(f, convolve(f, x, WEIGHTS4(4, 1, 3, 3), 0, 4, false), x));
    fuse(f);
    assert_int_equal(count_ops(f, "add"), 1);
}

/* A bound that depends on the inputs' dims must not be replaced by its maximum. */
static void clamps_by_sizes_are_not_fused(void **state)
{
    struct fixture *f = *state;
    struct rt_dim dims[2] = {rt_dim_symbol(&f->graph.dims, 9), rt_dim_of(3)};
    uint32_t x = rt_graph_tensor(&f->graph, DT_F32, 2, dims), args[] = {x, WEIGHTS(3, 4)};
    f->inputs[f->graph.input_count++] = x;
    uint32_t clamp_args[] = {apply(f, "mm", args, 2), rt_graph_none(&f->graph),
                             rt_graph_int(&f->graph, dims[0])};
    give(f, apply(f, "clamp", clamp_args, 3));
    fuse(f);
    assert_int_equal(count_ops(f, "clamp"), 1);
}

/* ---- layout ---------------------------------------------------------------------------------- */

static void an_island_has_one_reorder_in_and_one_out(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 5, 5), w = WEIGHTS4(4, 4, 3, 3);
    uint32_t y = relu(f, convolve(f, x, w, 0, 1, false));
    give(f, add(f, convolve(f, y, w, 0, 1, false), y));
    lay_out(f);
    assert_graph(f, "method m(%5:f32[1,4,5,5])\n"
                    "  %43:f32[1,4,5,5] order 0231 = reorder(%5)\n"
                    "  %28:f32[1,4,5,5] order 0231 = conv(%43, %17:f32[1,1,36,8] packed, none, "
                    "none, [3,3], [1,1], [1,1], [1,1], [0,0], 1, 4, false, 0, inf, none)\n"
                    "  %40:f32[1,4,5,5] order 0231 = conv(%28, %29:f32[1,1,36,8] packed, none, "
                    "%28, [3,3], [1,1], [1,1], [1,1], [0,0], 1, 4, false, -inf, inf, none)\n"
                    "  %44:f32[1,4,5,5] = reorder(%40)\n"
                    "  return %44\n");
}

static void element_wise_and_cat_stay_in_the_island(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 5, 5), w = WEIGHTS4(4, 4, 3, 3);
    uint32_t y = convolve(f, x, w, 0, 1, false), items[] = {y, x};
    uint32_t args[] = {rt_graph_tensors(&f->graph, items, 2), one};
    give(f, relu(f, apply(f, "cat", args, 2)));
    lay_out(f);
    assert_int_equal(count_ops(f, "reorder"), 2);
}

static void one_pixel_needs_no_reorder(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 1, 1);
    give(f, convolve(f, x, WEIGHTS4(4, 4, 1, 1), 0, 1, false));
    lay_out(f);
    assert_int_equal(count_ops(f, "reorder"), 0);
}

static uint32_t enlarge(struct fixture *f, uint32_t x)
{
    uint32_t args[] = {x, INTS(10, 10), rt_graph_bool(&f->graph, false), rt_graph_none(&f->graph)};
    return apply(f, "upsample_bilinear2d", args, 4);
}

/* What is reordered then is small. */
static void a_large_result_has_its_order_at_once(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 5, 5), w = WEIGHTS4(4, 4, 3, 3);
    uint32_t inner = enlarge(f, convolve(f, x, w, 0, 1, false));
    uint32_t y = enlarge(f, convolve(f, inner, w, 0, 1, false));
    give(f, y);
    lay_out(f);
    assert_int_equal(count_ops(f, "reorder"), 2);
    assert_int_equal(f->graph.outputs[0], y);
    assert_null(f->graph.values[y].order);
}

/* ---- flow and memory ------------------------------------------------------------------------- */

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
    assert_int_not_equal(flow.class_of[b], flow.class_of[flat]); /* which is read again */
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
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, graph_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(compaction_sorts_and_drops),
        TEST(sizes_become_expressions),
        TEST(constants_are_computed),
        TEST(only_kernels_are_folded),
        TEST(folded_weights_keep_their_names),
        TEST(images_are_folded_after_layout),
        TEST(folding_in_steps_is_bounded),
        TEST(small_parts_are_folded_however_much_they_grow),
        TEST(batch_norm_goes_into_the_weights),
        TEST(a_transposed_convolution_takes_batch_norm),
        TEST(batch_norm_stays_out),
        TEST(products_become_gemm),
        TEST(floats_that_were_halves_are_known),
        TEST(other_floats_are_not_taken_for_halves),
        TEST(constants_are_halves_if_their_numbers_are),
        TEST(halves_joined_with_other_floats_are_floats),
        TEST(convolutions_choose_their_form),
        TEST(clamps_go_into_what_they_follow),
        TEST(softmax_takes_the_check_for_hidden_rows),
        TEST(other_checks_of_softmax_stay),
        TEST(a_residual_goes_in_before_the_relu),
        TEST(halves_between_products_are_floats_that_were_rounded),
        TEST(rounded_floats_have_readers_of_both_kinds),
        TEST(values_with_exact_readers_are_not_rounded),
        TEST(values_with_other_readers_are_not_fused),
        TEST(nothing_is_added_behind_a_clamp),
        TEST(depthwise_takes_no_residual),
        TEST(clamps_by_sizes_are_not_fused),
        TEST(an_island_has_one_reorder_in_and_one_out),
        TEST(element_wise_and_cat_stay_in_the_island),
        TEST(what_only_products_read_is_bfloat16),
        TEST(pools_pass_bfloat16_on),
        TEST(pools_that_tell_where_read_floats),
        TEST(what_products_read_joined_is_bfloat16),
        TEST(what_others_read_stays_a_float),
        TEST(wide_products_share_a_rounded_copy),
        TEST(planes_of_images_are_rounded_at_once),
        TEST(other_pads_of_channels_stay),
        TEST(trees_of_concatenations_join_at_once),
        TEST(long_chains_of_concatenations),
        TEST(other_concatenations_stay),
        TEST(copies_that_change_nothing_go),
        TEST(one_pixel_needs_no_reorder),
        TEST(a_large_result_has_its_order_at_once),
        TEST(branches_share_a_region),
        TEST(views_share_and_last_reads_are_reused),
        TEST(sums_lie_where_their_residual_did),
        TEST(residuals_that_are_read_again_keep_their_place),
        TEST(parts_of_an_image_lie_in_it),
        TEST(only_images_that_nothing_else_reads_are_parts),
        TEST(only_channels_are_parts),
        TEST(other_devices_have_no_parts),
        TEST(packing_keeps_the_living_apart),
        TEST(a_graph_beyond_its_maximum_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
