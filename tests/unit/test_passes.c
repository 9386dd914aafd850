/* SPDX-License-Identifier: MIT */
/* Each pass on a small graph, which is printed and compared as text. */
#include "config.h"

#include "runtime/code/fold.h"
#include "runtime/passes/passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hal/buffer.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "tests/unit/pass_support.h"
#include "tests/unit/unit.h"

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

/* A view, and a permute that moves only dims of 1, have the bytes of their constant. */
static void views_of_constants_share_their_bytes(void **state)
{
    struct fixture *f = *state;
    uint32_t w = WEIGHTS4(6, 1, 1, 4),
             order[] = {w, graph_ints(f, (const int64_t[]){0, 3, 1, 2, -1})};
    uint32_t moved = apply(f, "permute", order, 2), dims[] = {moved, INTS(3, 8)};
    uint32_t view = apply(f, "view", dims, 2), turned[] = {view, INTS(1, 0)};
    f->graph.values[w].name = "fc.weight";
    give(f, view);
    give(f, apply(f, "permute", turned, 2));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(f->graph.node_count, 0);
    const struct rt_value *shared = &f->graph.values[view];
    assert_string_equal(shared->name, "fc.weight");
    assert_memory_equal(shared->bytes.ptr, floats, 24 * sizeof(*floats));
    assert_int_equal(hal_buffer_size(shared->buffer), 24 * sizeof(*floats));
    const float *columns =
        (const float *)(const void *)f->graph.values[f->graph.outputs[1]].bytes.ptr;
    for (uint32_t i = 0; i < 24; i++) {
        assert_true(columns[i] == floats[i % 3 * 8 + i / 3]);
    }
}

/* A convolution of permuted weights and its batch norm, whose packed weights are found. If the
 * permuted weights are read elsewhere, too, they are computed at once. */
static struct span packed_of_permuted(struct fixture *f, bool are_read)
{
    uint32_t w = WEIGHTS4(128, 3, 3, 16);
    uint32_t order[] = {w, graph_ints(f, (const int64_t[]){0, 3, 1, 2, -1})};
    uint32_t moved = apply(f, "permute", order, 2);
    give(f, batch_norm(f, convolve(f, INPUT(1, 16, 5, 5), moved, 0, 1, false), 128));
    if (are_read) {
        give(f, moved);
    }
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_int_equal(count_ops(f, "permute"), are_read ? 0 : 1);
    assert_ok(f->err, rt_pass_normalize(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "affine"), 0);
    lower(f);
    assert_int_equal(f->graph.node_count, 1);
    return rt_node_arg(&f->graph, node_of(f, "conv"), 1)->bytes;
}

static void permuted_weights_wait_for_their_packing(void **state)
{
    uint8_t *expected;
    struct span packed = packed_of_permuted(*state, true);
    expected = malloc(packed.len);
    assert_non_null(expected);
    memcpy(expected, packed.ptr, packed.len);
    start_again(state);
    struct span later = packed_of_permuted(*state, false);
    assert_int_equal(later.len, packed.len);
    assert_memory_equal(later.ptr, expected, later.len);
    free(expected);
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

/* A linear layer over three dims, as it is exported without a delegate. */
static void repeated_matrices_are_packed_once(void **state)
{
    struct fixture *f = *state;
    uint32_t expand[] = {WEIGHTS(2, 5), INTS(4, 2, 5), rt_graph_bool(&f->graph, false)};
    uint32_t view[] = {apply(f, "expand", expand, 3), INTS(4, 2, 5)};
    uint32_t args[] = {INPUT(4, 3, 2), apply(f, "view", view, 2)};
    give(f, apply(f, "bmm", args, 2));
    lower(f);
    assert_int_equal(count_ops(f, "gemm"), 1);
    assert_int_equal(f->graph.values[f->graph.outputs[0]].rank, 3);
    const struct rt_value *packed = &f->graph.values[node_of(f, "gemm")->args[1]];
    assert_true(packed->is_constant && rt_dim_is(packed->dims[0], 1));
}

/* A column that is made a matrix has the numbers of other rows in a view as columns. */
static void widened_columns_stay(void **state)
{
    struct fixture *f = *state;
    uint32_t expand[] = {WEIGHTS(2, 1), INTS(1, 2, 3), rt_graph_bool(&f->graph, false)};
    uint32_t view[] = {apply(f, "expand", expand, 3), INTS(3, 2, 1)};
    uint32_t args[] = {INPUT(3, 4, 2), apply(f, "view", view, 2)};
    give(f, apply(f, "bmm", args, 2));
    lower(f);
    const struct rt_value *packed = &f->graph.values[node_of(f, "gemm")->args[1]];
    assert_true(rt_dim_is(packed->dims[0], 3));
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
        pass_set_up(state);
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

/* The pieces of a split along dim 1. */
static void split(struct fixture *f, uint32_t x, int64_t first, int64_t second, uint32_t pieces[2])
{
    pieces[0] = rt_graph_tensor(&f->graph, DT_F32, 0, NULL);
    pieces[1] = rt_graph_tensor(&f->graph, DT_F32, 0, NULL);
    uint32_t out = rt_graph_tensors(&f->graph, pieces, 2);
    uint32_t args[] = {x, INTS(first, second), one};
    uint32_t node = rt_graph_node(&f->graph, rt_op_find("split_sizes"), args, 3, &out, 1);
    assert_ok(f->err, rt_graph_infer(&f->graph, node, &f->err));
}

/* As YOLO's blocks join them. */
static void all_pieces_of_a_split_are_what_was_split(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(2, 7), pieces[2];
    split(f, x, 3, 4, pieces);
    const uint32_t items[] = {pieces[1], pieces[0], pieces[1], relu(f, pieces[1])};
    uint32_t args[] = {rt_graph_tensors(&f->graph, items, 4),
                       rt_graph_int(&f->graph, rt_dim_of(-1))};
    give(f, apply(f, "cat", args, 2));
    give(f, join(f, pieces[0], pieces[1], 1));
    assert_ok(f->err, rt_pass_elide(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "cat"), 1);
    assert_int_equal(f->graph.outputs[1], x);
    const struct rt_value *list = rt_node_arg(&f->graph, node_of(f, "cat"), 0);
    assert_int_equal(list->count, 3);
    assert_int_equal(list->values[0], pieces[1]);
    assert_int_equal(list->values[1], x);
}

/* Other orders, other dims, some of the pieces. */
static void pieces_of_a_split_are_not_all(void **state)
{
    struct fixture *f = *state;
    uint32_t pieces[2];
    split(f, INPUT(4, 8), 4, 4, pieces);
    give(f, join(f, pieces[1], pieces[0], 1));
    give(f, join(f, pieces[0], pieces[1], 0));
    give(f, join(f, pieces[0], pieces[0], 1));
    const uint32_t last[] = {pieces[1], pieces[0]};
    uint32_t args[] = {rt_graph_tensors(&f->graph, last, 2), one};
    give(f, apply(f, "cat", args, 2));
    assert_ok(f->err, rt_pass_elide(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "cat"), 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct rt_node *cat = &f->graph.nodes[f->graph.values[f->graph.outputs[i]].node];
        assert_int_equal(rt_node_arg(&f->graph, cat, 0)->count, 2);
    }
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

/* Attention has the weights of its products in one matrix; each part is packed once. */
static void parts_of_constants_are_constants(void **state)
{
    struct fixture *f = *state;
    struct rt_graph *g = &f->graph;
    uint32_t parts[2], args[] = {WEIGHTS(3, 2), INTS(1, 2), number(f, 0)};
    struct rt_dim dims[2][2] = {{rt_dim_of(1), rt_dim_of(2)}, {rt_dim_of(2), rt_dim_of(2)}};
    for (int i = 0; i < 2; i++) {
        parts[i] = rt_graph_tensor(g, DT_F32, 2, dims[i]);
    }
    uint32_t list = rt_graph_tensors(g, parts, 2);
    uint32_t node = rt_graph_node(g, rt_op_find("split_sizes"), args, 3, &list, 1);
    assert_ok(f->err, rt_graph_infer(g, node, &f->err));
    give(f, parts[1]);
    assert_ok(f->err, rt_pass_elide(g, &f->err));
    assert_ok(f->err, rt_fold_constants(g, f->device, &f->err));
    assert_int_equal(g->node_count, 0);
    const struct rt_value *part = &g->values[g->outputs[0]];
    assert_true(part->is_constant);
    assert_memory_equal(part->bytes.ptr, floats + 2, 4 * sizeof(*floats));
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
        pass_set_up(state);
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
        pass_set_up(state);
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

static void pieces_of_an_image_stay_in_the_island(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 5, 5), w = WEIGHTS4(4, 4, 3, 3), pieces[2];
    split(f, convolve(f, x, w, 0, 1, false), 1, 3, pieces);
    give(f, convolve(f, pieces[1], WEIGHTS4(4, 3, 3, 3), 0, 1, false));
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

/* Then only small tensors are reordered. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(compaction_sorts_and_drops),
        TEST(sizes_become_expressions),
        TEST(constants_are_computed),
        TEST(only_kernels_are_folded),
        TEST(folded_weights_keep_their_names),
        TEST(images_are_folded_after_layout),
        TEST(folding_in_steps_is_bounded),
        TEST(small_parts_are_folded_however_much_they_grow),
        TEST(views_of_constants_share_their_bytes),
        TEST(permuted_weights_wait_for_their_packing),
        TEST(batch_norm_goes_into_the_weights),
        TEST(a_transposed_convolution_takes_batch_norm),
        TEST(batch_norm_stays_out),
        TEST(products_become_gemm),
        TEST(repeated_matrices_are_packed_once),
        TEST(widened_columns_stay),
        TEST(floats_that_were_halves_are_known),
        TEST(other_floats_are_not_taken_for_halves),
        TEST(constants_are_halves_if_their_numbers_are),
        TEST(halves_joined_with_other_floats_are_floats),
        TEST(parts_of_constants_are_constants),
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
        TEST(trees_of_concatenations_join_at_once),
        TEST(long_chains_of_concatenations),
        TEST(all_pieces_of_a_split_are_what_was_split),
        TEST(pieces_of_a_split_are_not_all),
        TEST(other_concatenations_stay),
        TEST(copies_that_change_nothing_go),
        TEST(pieces_of_an_image_stay_in_the_island),
        TEST(one_pixel_needs_no_reorder),
        TEST(a_large_result_has_its_order_at_once),
        TEST(a_graph_beyond_its_maximum_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
