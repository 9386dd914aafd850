/* SPDX-License-Identifier: MIT */
/* One copy in place of several: which nodes the pass joins, and that the bytes are the same. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/hal/levels.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define NUMBERS 4096
#define CHAINS 3000

static float numbers[NUMBERS];

#define APPLY(op, ...)                                                                             \
    apply(f, op, (const uint32_t[]){__VA_ARGS__},                                                  \
          sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* ---- the choice ------------------------------------------------------------------------------ */

static void run_pass(struct fixture *f)
{
    assert_ok(f->err, rt_pass_moves(&f->graph, &f->err));
}

/* Queries, keys and values in one tensor, of two heads. */
static void heads_are_read_directly(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    uint32_t x = APPLY("exp", INPUT(5, 24));
    uint32_t split = APPLY("view", x, INTS(5, 1, 3, 8));
    uint32_t first = APPLY("permute", split, INTS(2, 0, 1, 3));
    for (int64_t i = 0; i < 2; i++) {
        uint32_t part = APPLY("select", first, number(f, 0), number(f, i ? -1 : 0));
        uint32_t heads = APPLY("view", part, INTS(5, 2, 4));
        give(f, APPLY("permute", heads, INTS(1, 0, 2)));
    }
    run_pass(f);
    assert_graph(f, "method m(%1:f32[5,24])\n"
                    "  %2:f32[5,24] = exp(%1)\n"
                    "  %13:f32[2,5,4] = moved(%2, [2,5,4], [4,24,1], 0)\n"
                    "  %20:f32[2,5,4] = moved(%2, [2,5,4], [4,24,1], 16)\n"
                    "  return %13, %20\n");
    rt_graph_fini(&f->graph);
}

/* The first dim is in no stride, so it may vary; a dim behind it may not. */
static void the_first_dim_varies(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct fixture storage = {.device = NULL}, *f = &storage;
        graph_begin(f);
        struct rt_dim any = rt_dim_symbol(&f->graph.dims, 9);
        struct rt_dim dims[3] = {which ? rt_dim_of(2) : any, which ? any : rt_dim_of(3),
                                 rt_dim_of(8)};
        uint32_t x = rt_graph_tensor(&f->graph, DT_F32, 3, dims);
        f->inputs[f->graph.input_count++] = x;
        uint32_t turned = APPLY("permute", x, INTS(2, 0, 1));
        give(f, APPLY("select", turned, number(f, 0), number(f, 5)));
        run_pass(f);
        assert_int_equal(count_ops(f, "moved"), which == 0);
        if (which == 0) {
            assert_graph(f, "method m(%1:f32[s1,3,8])\n"
                            "  %6:f32[s1,3] = moved(%1, [s1,3], [24,8], 5)\n"
                            "  return %6\n");
        }
        rt_graph_fini(&f->graph);
    }
}

/* One copy alone stays what it is, and so does one behind a view that no strides describe. */
static void others_stay(void **state)
{
    struct fixture storage = {.device = NULL}, *f = &storage;
    (void)state;
    graph_begin(f);
    uint32_t x = APPLY("exp", INPUT(4, 6));
    uint32_t turned = APPLY("permute", x, INTS(1, 0));
    uint32_t flat = APPLY("view", turned, INTS(24));
    give(f, turned);
    give(f, APPLY("slice", flat, number(f, 0), number(f, 3), number(f, 20), number(f, 1)));
    run_pass(f);
    assert_int_equal(count_ops(f, "moved"), 0);
    assert_int_equal(count_ops(f, "permute") + count_ops(f, "slice"), 2);
    rt_graph_fini(&f->graph);
}

/* ---- results --------------------------------------------------------------------------------- */

static uint32_t next(uint64_t *random, uint32_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % below;
}

/* Dims of |v| in another order. */
static uint32_t add_permute(struct fixture *f, uint32_t value, uint64_t *random)
{
    uint8_t rank = f->graph.values[value].rank;
    int64_t order[SHAPE_RANK_MAX + 1];
    for (uint8_t d = 0; d < rank; d++) {
        uint32_t at = next(random, d + 1u);
        order[d] = order[at];
        order[at] = next(random, 2) ? d : d - rank;
    }
    order[rank] = -1;
    for (uint8_t d = 0; d < rank; d++) {
        order[d] += order[d] < 0 ? rank : 0; /* the list ends with -1 */
    }
    return APPLY("permute", value, graph_ints(f, order));
}

/* Splits or joins dims, and adds dims of 1. */
static uint32_t add_view(struct fixture *f, uint32_t value, uint64_t *random)
{
    const struct rt_value v = f->graph.values[value];
    int64_t sizes[SHAPE_RANK_MAX + 1];
    uint8_t rank = 0;
    for (uint8_t d = 0; d < v.rank && rank < 6; d++) {
        int64_t size = v.dims[d].value;
        for (int64_t part = 2; part < 4 && next(random, 2) && rank < 5; part++) {
            if (size % part == 0) {
                sizes[rank++] = part;
                size /= part;
            }
        }
        if (rank > 0 && next(random, 4) == 0) {
            sizes[rank - 1] *= size;
        } else {
            sizes[rank++] = size;
        }
        if (next(random, 5) == 0 && rank < 6) {
            sizes[rank++] = 1;
        }
    }
    int64_t all = 1, wanted = 1;
    for (uint8_t d = 0; d < v.rank; d++) {
        wanted *= v.dims[d].value;
    }
    for (uint8_t d = 0; d < rank; d++) {
        all *= sizes[d];
    }
    sizes[rank] = -1;
    return all == wanted ? APPLY("view", value, graph_ints(f, sizes)) : value;
}

static uint32_t add_part(struct fixture *f, uint32_t value, uint64_t *random)
{
    const struct rt_value v = f->graph.values[value];
    uint8_t dim = (uint8_t)next(random, v.rank);
    int64_t size = v.dims[dim].value, first = next(random, (uint32_t)size);
    if (next(random, 2) && v.rank > 1) {
        return APPLY("select", value, number(f, dim), number(f, first));
    }
    int64_t end = first + 1 + next(random, (uint32_t)(size - first));
    int64_t step = next(random, 4) ? 1 : 2;
    return APPLY("slice", value, number(f, dim), number(f, first), number(f, end), number(f, step));
}

/* The result of a random chain of moves over constants. */
static size_t solve(struct hal_device *device, uint64_t random, bool is_joined, float *out,
                    uint32_t *out_joined)
{
    struct fixture storage = {.device = device}, *f = &storage;
    graph_begin(f);
    uint32_t value = CONSTANT(0, 6, 4, 12, 5);
    for (uint32_t left = 2 + next(&random, 6); left > 0; left--) {
        switch (next(&random, 3)) {
        case 0:
            value = add_permute(f, value, &random);
            break;
        case 1:
            value = add_view(f, value, &random);
            break;
        default:
            value = add_part(f, value, &random);
        }
    }
    give(f, APPLY("neg", value));
    if (is_joined) {
        run_pass(f);
    }
    *out_joined = count_ops(f, "moved");
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->graph.outputs[0]];
    size_t bytes = v->bytes.len;
    assert_true(v->is_constant && bytes > 0 && bytes <= sizeof(numbers));
    memcpy(out, v->bytes.ptr, bytes);
    rt_graph_fini(&f->graph);
    return bytes;
}

static void results_stay(void **state)
{
    static float want[NUMBERS], got[NUMBERS];
    struct hal_device *device = open_cpu(hal_cpu_isa_best(), 2);
    uint32_t joined, none, total = 0;
    (void)state;
    for (uint64_t chain = 0; chain < CHAINS; chain++) {
        size_t bytes = solve(device, chain, false, want, &none);
        assert_int_equal(none, 0);
        assert_int_equal(solve(device, chain, true, got, &joined), bytes);
        assert_memory_equal(got, want, bytes);
        total += joined;
    }
    assert_true(total > CHAINS / 4);
    hal_device_unref(device);
}

/* The scores of heads: their keys lie beside each other, and no transposition of them is made. */
static void scores_of_heads(void **state)
{
    enum { HEADS = 3, ROWS = 21, KEYS = 37, DEPTH = 24 };
    struct fixture storage = {.device = open_cpu(hal_cpu_isa_best(), 2)}, *f = &storage;
    (void)state;
    graph_begin(f);
    uint32_t queries = CONSTANT(0, HEADS, ROWS, DEPTH);
    uint32_t keys = CONSTANT(1, 1, KEYS, HEADS, DEPTH);
    keys = APPLY("permute", keys, INTS(0, 2, 3, 1));
    give(f, APPLY("bmm", queries, APPLY("view", keys, INTS(HEADS, DEPTH, KEYS))));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "pack_nk"), 1);
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->graph.outputs[0]];
    assert_true(v->is_constant && v->bytes.len == (size_t)HEADS * ROWS * KEYS * sizeof(float));
    for (size_t i = 0; i < (size_t)HEADS * ROWS * KEYS; i++) {
        size_t head = i / KEYS / ROWS, row = i / KEYS % ROWS, key = i % KEYS;
        double sum = 0;
        float got;
        for (size_t d = 0; d < DEPTH; d++) {
            sum += (double)numbers[(head * ROWS + row) * DEPTH + d] *
                   (double)numbers[1 + (key * HEADS + head) * DEPTH + d];
        }
        memcpy(&got, (const char *)v->bytes.ptr + i * sizeof(got), sizeof(got));
        assert_true(fabs(sum - (double)got) < 1e-5);
    }
    rt_graph_fini(&f->graph);
    hal_device_unref(f->device);
}

int main(void)
{
    graph_use_numbers(numbers, NUMBERS, NUMBERS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_read_directly),
        cmocka_unit_test(the_first_dim_varies),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(results_stay),
        cmocka_unit_test(scores_of_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
