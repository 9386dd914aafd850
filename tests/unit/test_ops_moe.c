/* SPDX-License-Identifier: MIT */
/* Mixtures of experts that files may have, and routes that the golden cases leave out. */
#include "config.h"

#include "tests/unit/unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hal/cpu/thread_memory.h"
#include "hal/cpu/uk.h"
#include "runtime/ops/moe.h"
#include "runtime/ops/op.h"
#include "tests/unit/ops_call.h"

static struct error err;

/* ---- files --------------------------------------------------------------------------------- */

enum { EXPERTS = 2, DIM = 32, HIDDEN = 16, GROUP = 16, UP_BYTES = 1088, DOWN_BYTES = 576 };

/* A call, as a file describes it. Ints and words of the second expert's header are changed. */
struct description {
    int64_t ints[RT_MOE_ARGS]; /* by argument */
    int64_t gate_dims[2], bias_dim, packed_bytes;
    uint32_t header[RT_TORCHAO_HEADER_BYTES / sizeof(uint32_t)];
    const char *score;
    bool is_input; /* the weights are */
};

static const struct description valid = {
    .ints = {[RT_MOE_CHOSEN] = 1,
             [RT_MOE_EXPERTS] = EXPERTS,
             [RT_MOE_HIDDEN] = HIDDEN,
             [RT_MOE_DIM] = DIM,
             [RT_MOE_GROUP] = GROUP,
             [RT_MOE_BITS] = 4},
    .gate_dims = {EXPERTS, DIM},
    .bias_dim = EXPERTS,
    .packed_bytes = UP_BYTES,
    .header = {6712, 1, 4, 0, 0, 8, 16, 2},
    .score = "sigmoid",
};

static uint32_t add_packed(struct rt_graph *graph, const struct description *d, int64_t bytes,
                           uint8_t *memory)
{
    const struct shape shape = {.rank = 2, .dims = {EXPERTS, bytes}};
    const struct rt_dim dims[2] = {rt_dim_of(EXPERTS), rt_dim_of(bytes)};
    if (d->is_input) {
        return rt_graph_tensor(graph, DT_U8, 2, dims);
    }
    memset(memory, 0, (size_t)(EXPERTS * bytes));
    memcpy(memory, valid.header, sizeof(valid.header));
    memcpy(memory + bytes, d->header, (size_t)(bytes < 64 ? bytes : 64));
    return rt_graph_constant(graph, DT_U8, &shape, span_of(memory, (size_t)(EXPERTS * bytes)));
}

static uint32_t add_tensor(struct rt_graph *graph, uint8_t rank, const int64_t *dims)
{
    struct rt_dim sizes[2] = {rt_dim_of(dims[0]), rt_dim_of(rank > 1 ? dims[1] : 0)};
    return rt_graph_tensor(graph, DT_F32, rank, sizes);
}

static enum status infer(const struct description *d)
{
    static uint8_t up[EXPERTS * UP_BYTES], down[EXPERTS * DOWN_BYTES];
    const int64_t x[2] = {3, DIM};
    struct rt_graph graph;
    uint32_t args[RT_MOE_ARGS], out;

    rt_graph_init(&graph, "forward");
    for (uint32_t i = RT_MOE_CHOSEN; i < RT_MOE_SCORE; i++) {
        args[i] = rt_graph_int(&graph, rt_dim_of(d->ints[i]));
    }
    args[RT_MOE_X] = add_tensor(&graph, 2, x);
    args[RT_MOE_GATE] = add_tensor(&graph, 2, d->gate_dims);
    args[RT_MOE_BIAS] = add_tensor(&graph, 1, &d->bias_dim);
    args[RT_MOE_UP] = add_packed(&graph, d, d->packed_bytes, up);
    args[RT_MOE_DOWN] = add_packed(&graph, &valid, DOWN_BYTES, down);
    args[RT_MOE_SCORE] = rt_graph_string(&graph, span_str(d->score));
    args[RT_MOE_SCALE] = rt_graph_float(&graph, 1);
    out = rt_graph_tensor(&graph, DT_F32, 0, NULL);
    uint32_t node = rt_graph_node(&graph, rt_op_find("moe_ffn"), args, RT_MOE_ARGS, &out, 1);
    assert_ok(err, rt_graph_check(&graph, &err));
    enum status status = rt_graph_infer(&graph, node, &err);
    rt_graph_fini(&graph);
    return status;
}

static void test_valid_files(void **state)
{
    struct description d = valid;
    (void)state;
    assert_int_equal(rt_torchao_bytes(&(struct rt_torchao){2 * HIDDEN, DIM, GROUP, true}),
                     UP_BYTES);
    assert_int_equal(rt_torchao_bytes(&(struct rt_torchao){DIM, HIDDEN, GROUP, true}), DOWN_BYTES);
    assert_ok(err, infer(&d));
    d.bias_dim = 0;
    d.score = "softmax";
    assert_ok(err, infer(&d));
}

static void test_wrong_numbers(void **state)
{
    static const struct {
        enum rt_moe_arg arg;
        int64_t value;
        const char *text;
    } rows[] = {
        {RT_MOE_CHOSEN, 0, "the number of experts of a row is 0, expected 1 to 2"},
        {RT_MOE_CHOSEN, 3, "the number of experts of a row is 3, expected 1 to 2"},
        {RT_MOE_EXPERTS, 0, "the number of experts is 0, expected 1 to 65536"},
        {RT_MOE_EXPERTS, 3, "(must be equal)"},
        {RT_MOE_EXPERTS, INT64_MAX, "the number of experts is 9223372036854775807"},
        {RT_MOE_HIDDEN, -16, "the hidden size is -16, expected 1 to 65536"},
        {RT_MOE_HIDDEN, 32, "of at least 2112 bytes"},
        {RT_MOE_HIDDEN, 65536, "of at least 4194368 bytes"},
        {RT_MOE_DIM, 48, "(must be equal)"},
        {RT_MOE_DIM, INT64_MIN, "the size of a row is -9223372036854775808"},
        {RT_MOE_GROUP, 0, "the size of a group is 0, expected 1 to 65536"},
        {RT_MOE_GROUP, 8, "rows of 32 and 16 cannot have groups of 8"},
        {RT_MOE_GROUP, 32, "rows of 32 and 16 cannot have groups of 32"},
        {RT_MOE_BITS, 5, "weights have 5 bits, expected 4 or 8"},
        {RT_MOE_BITS, 8, "of at least 1600 bytes"},
        {RT_MOE_BITS, 16, "the number of bits is 16"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct description d = valid;
        d.ints[rows[i].arg] = rows[i].value;
        assert_fails(err, infer(&d), ST_INVALID, rows[i].text);
    }
}

static void test_wrong_tensors(void **state)
{
    struct description d = valid;
    (void)state;
    d.bias_dim = 3;
    assert_fails(err, infer(&d), ST_INVALID, "(must be equal)");
    d = valid;
    d.gate_dims[0] = 1;
    assert_fails(err, infer(&d), ST_INVALID, "(must be equal)");
    d = valid;
    d.packed_bytes = UP_BYTES - 1;
    assert_fails(err, infer(&d), ST_INVALID,
                 "argument 3 has 2174 bytes in rank 2, expected 2 experts of at least 1088 bytes");
    d.packed_bytes = 0;
    assert_fails(err, infer(&d), ST_INVALID, "argument 3 has 0 bytes");
    d = valid;
    d.score = "softmax";
    assert_fails(err, infer(&d), ST_INVALID, "softmax takes no bias of experts");
    d.score = "softmax_all";
    assert_fails(err, infer(&d), ST_INVALID, "the score is 'softmax_all', expected 'sigmoid' or");
    d = valid;
    d.is_input = true;
    assert_fails(err, infer(&d), ST_UNSUPPORTED, "weights of experts must be constants");
}

static void test_wrong_headers(void **state)
{
    static const struct {
        uint32_t word, value;
        enum status status;
        const char *text;
    } rows[] = {
        {0, 0, ST_INVALID, "argument 3, expert 1: the header of torchao begins with 0 and 1"},
        {1, 0, ST_INVALID, "begins with 6712 and 0"},
        {1, 3, ST_UNSUPPORTED, "torchao's format 3 is not supported, only 1 (universal)"},
        {2, 8, ST_INVALID, "torchao's header says 8 bits, expected 4"},
        {3, 1, ST_UNSUPPORTED, "torchao's weights with zero points, a bias or other blocks"},
        {4, 1, ST_UNSUPPORTED, "torchao's weights with zero points, a bias or other blocks"},
        {5, 4, ST_UNSUPPORTED, "torchao's weights with zero points, a bias or other blocks"},
        {15, 1, ST_UNSUPPORTED, "torchao's weights with zero points, a bias or other blocks"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct description d = valid;
        d.header[rows[i].word] = rows[i].value;
        assert_fails(err, infer(&d), rows[i].status, rows[i].text);
    }
}

/* ---- routes -------------------------------------------------------------------------------- */

enum { ROUTE_EXPERTS = 4, ROUTE_CHOSEN = 3 };

/* The routes of one row of |scores|; |bias| may be NULL. */
static void route(const float *scores, float *bias, bool is_sigmoid, double scale,
                  int32_t chosen[ROUTE_CHOSEN], float factors[ROUTE_CHOSEN])
{
    static struct rt_emit call;
    float copy[ROUTE_EXPERTS];
    memcpy(copy, scores, sizeof(copy));
    call_init(&call, rt_ops_moe, "moe_route");
    call_arg(&call, call_tensor(&call, DT_F32, 2, INTS(1, ROUTE_EXPERTS), copy));
    if (bias) {
        call_arg(&call, call_tensor(&call, DT_F32, 1, INTS(ROUTE_EXPERTS), bias));
    } else {
        call_arg_none(&call);
    }
    call_arg_int(&call, ROUTE_CHOSEN);
    call_arg_bool(&call, is_sigmoid);
    call_arg_float(&call, scale);
    call_out(&call, call_tensor(&call, DT_I32, 2, INTS(1, ROUTE_CHOSEN), chosen));
    call_out(&call, call_tensor(&call, DT_F32, 2, INTS(1, ROUTE_CHOSEN), factors));
    assert_ok(err, call_run(&call, &err));
}

/* Of equal scores the first is chosen, as ExecuTorch does. Experts stay different and in range
 * whatever the scores are. */
static void test_routes(void **state)
{
    static const struct {
        float scores[ROUTE_EXPERTS];
        int32_t chosen[ROUTE_CHOSEN];
    } rows[] = {
        {{1, 3, 2, 0}, {1, 2, 0}},
        {{2, 1, 2, 2}, {0, 2, 3}},
        {{NAN, 1, NAN, 2}, {3, 1, 0}},
        {{NAN, NAN, NAN, NAN}, {0, 1, 2}},
        {{-INFINITY, -INFINITY, 0, -INFINITY}, {2, 0, 1}},
        {{0, INFINITY, -1, INFINITY}, {1, 3, 0}},
    };
    int32_t chosen[ROUTE_CHOSEN];
    float factors[ROUTE_CHOSEN];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        route(rows[i].scores, NULL, false, 1, chosen, factors);
        assert_memory_equal(chosen, rows[i].chosen, sizeof(chosen));
    }
}

static void test_factors(void **state)
{
    static const float large[] = {1000, 999, -1000, 998}, low[] = {-200, -200, -200, -200};
    static const float scores[] = {0, 0, 0, 0};
    float bias[] = {0, 5, 4, 3}, factors[ROUTE_CHOSEN], sum = 1 + expf(-1) + expf(-2);
    int32_t chosen[ROUTE_CHOSEN];
    (void)state;
    route(large, NULL, false, 7, chosen, factors); /* softmax has no scale */
    for (int k = 0; k < ROUTE_CHOSEN; k++) {
        assert_float_equal(factors[k], expf((float)-k) / sum, 1e-6f);
    }
    route(scores, bias, true, 6, chosen, factors); /* the bias chooses, but is in no factor */
    for (int k = 0; k < ROUTE_CHOSEN; k++) {
        assert_int_equal(chosen[k], k + 1);
        assert_float_equal(factors[k], 2, 1e-6f);
    }
    route(low, NULL, true, 1, chosen, factors); /* their sum is smaller than a normal float */
    for (int k = 0; k < ROUTE_CHOSEN; k++) {
        assert_true(factors[k] >= 0 && factors[k] <= 1);
    }
}

/* ---- products ------------------------------------------------------------------------------ */

enum { PAIRS_MAX = 200 };

/* |pairs| rows with one expert of |n| outputs of |k| inputs, whose weights are zeros: the bias.
 * Returns the scratch of a worker. */
static size_t multiply(int64_t pairs, int64_t k, int64_t n)
{
    static struct rt_emit call;
    static float scales[PAIRS_MAX];
    static int32_t zeros[PAIRS_MAX], chosen[PAIRS_MAX];
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    const int64_t nr = uk->u8_nr, panels = (n + nr - 1) / nr;
    const int64_t bytes = k * nr;
    int8_t *x = calloc((size_t)(pairs * k), 1);
    uint8_t *packed = calloc((size_t)(panels * bytes), 1);
    float *columns = calloc((size_t)(panels * nr), UK_COLUMN_ARRAYS * sizeof(*columns));
    float *out = calloc((size_t)(pairs * n), sizeof(*out));
    assert_true(x && packed && columns && out);
    for (int64_t j = 0; j < panels * nr; j++) {
        columns[(j / nr * UK_COLUMN_ARRAYS + UK_COLUMN_BIAS) * nr + j % nr] = (float)(j + 1);
    }
    call_init(&call, rt_ops_moe_linear, "moe_linear");
    call_arg(&call, call_tensor(&call, DT_I8, 2, INTS(pairs, k), x));
    call_arg(&call, call_tensor(&call, DT_F32, 2, INTS(pairs, 1), scales));
    call_arg(&call, call_tensor(&call, DT_I32, 2, INTS(pairs, 1), zeros));
    call_arg(&call, call_tensor(&call, DT_I32, 2, INTS(pairs, 1), chosen));
    call_arg_none(&call);
    call_arg(&call, call_tensor(&call, DT_U8, 3, INTS(1, panels, bytes), packed));
    call_arg(&call, call_tensor(&call, DT_F32, 1, INTS(panels * nr * UK_COLUMN_ARRAYS), columns));
    call_arg_int(&call, 1);
    call_arg_int(&call, n);
    call_arg_bool(&call, false);
    call_arg_int(&call, 0);
    call_arg_bool(&call, false);
    call_out(&call, call_tensor(&call, DT_F32, 3, INTS(pairs, 1, n), out));
    assert_ok(err, call_run(&call, &err));
    for (int64_t i = 0; i < pairs * n; i++) {
        assert_true(out[i] == (float)(i % n + 1));
    }
    free(x);
    free(packed);
    free(columns);
    free(out);
    return call.scratch_bytes;
}

/* Long rows, and many outputs. */
static void test_scratch_is_bounded(void **state)
{
    (void)state;
    assert_true(multiply(200, RT_MOE_MAX, 40) <= HAL_CPU_SCRATCH_BYTES);
    assert_true(multiply(1, 4, 140001) <= HAL_CPU_SCRATCH_BYTES);
    assert_true(multiply(130, 48, 40) <= HAL_CPU_SCRATCH_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_files),
        cmocka_unit_test(test_wrong_numbers),
        cmocka_unit_test(test_wrong_tensors),
        cmocka_unit_test(test_wrong_headers),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_scratch_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
