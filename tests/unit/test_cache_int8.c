/* SPDX-License-Identifier: MIT */
/*
 * Caches in 8 bits: their rows, attention over them at every level beside double precision, and
 * programs that are loaded so: what they answer, what their states take, and which are refused.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/code/fold.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/cache_int8.h"
#include "runtime/ops/known.h"
#include "runtime/program/method.h"
#include "tests/hal/levels.h"
#include "tests/unit/call_support.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))
#define NUMBERS (256 * 1024)
static float numbers[NUMBERS];

/* ---- rows ------------------------------------------------------------------------------------ */

static void a_row_is_near_its_numbers(void **state)
{
    (void)state;
    for (int64_t depth = 1; depth <= 140; depth += 7) {
        char row[160];
        float x[144], y[144], most = 0, scale;
        for (int64_t i = 0; i < depth; i++) {
            x[i] = numbers[depth * 5 + i] * (float)(depth - 3);
            most = fmaxf(most, fabsf(x[i]));
        }
        y[depth] = 99;
        rt_cache_int8_write(row, x, depth);
        rt_cache_int8_read(y, row, depth);
        memcpy(&scale, row + depth, sizeof(scale));
        assert_float_equal(scale, most / 127, 1e-9);
        for (int64_t i = 0; i < depth; i++) {
            assert_true(fabsf(x[i] - y[i]) <= most / 254 * 1.001f);
            assert_true(fabsf(x[i]) != most || abs((int8_t)row[i]) == 127);
        }
        assert_true(y[depth] == 99);
    }
}

static void rows_with_odd_numbers(void **state)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    char row[37 + sizeof(float)];
    float x[37] = {0}, y[37];
    rt_cache_int8_write(row, x, 37);
    rt_cache_int8_read(y, row, 37);
    assert_memory_equal(y, x, sizeof(x));
    x[5] = 1e-42f; /* its inverse is no float */
    rt_cache_int8_write(row, x, 37);
    rt_cache_int8_read(y, row, 37);
    for (int i = 0; i < 37; i++) {
        assert_true(fabsf(y[i]) <= 1e-36f);
    }
    for (size_t i = 0; i < LENGTH(odd); i++) {
        x[5] = odd[i];
        rt_cache_int8_write(row, x, 37);
        rt_cache_int8_read(y, row, 37);
        for (int j = 0; j < 37; j++) {
            assert_true(isnan(y[j])); /* no wrong number */
        }
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

struct problem {
    int64_t batch, queries, rows, heads, group, depth, start;
    bool is_causal, has_mask;
};

enum { Q_AT = 0, K_AT = 1000, V_AT = 70000, MASK_AT = 100 }; /* in the numbers */

static double number_of(const char *rows, int64_t row, int64_t depth, int64_t i)
{
    const char *at = rows + row * (depth + RT_CACHE_INT8_SCALE);
    float scale;
    memcpy(&scale, at + depth, sizeof(scale));
    return (double)scale * (double)((const int8_t *)at)[i];
}

/* The score of query |i| of the head for key |j|; -INFINITY: it does not see it. */
static double score(const struct problem *p, const char *keys, int64_t b, int64_t i, int64_t h,
                    int64_t j)
{
    int64_t end = p->has_mask ? p->rows : p->is_causal ? p->start + i + 1 : p->start + p->queries;
    const float *q = numbers + Q_AT + ((b * p->queries + i) * p->heads * p->group + h) * p->depth;
    double sum = p->has_mask ? (double)numbers[MASK_AT + i * p->rows + j] : 0, dot = 0;
    for (int64_t d = 0; d < p->depth; d++) {
        int64_t row = (b * p->rows + j) * p->heads + h / p->group;
        dot += (double)q[d] * number_of(keys, row, p->depth, d);
    }
    return j < end ? sum + dot / sqrt((double)p->depth) : -INFINITY;
}

static void check_query(const struct problem *p, const char *keys, const char *values, int64_t b,
                        int64_t i, int64_t h, const float *got)
{
    double *weights = calloc((size_t)p->rows, sizeof(*weights)), total = 0;
    assert_non_null(weights);
    for (int64_t j = 0; j < p->rows; j++) {
        weights[j] = exp(score(p, keys, b, i, h, j));
        total += weights[j];
    }
    for (int64_t d = 0; d < p->depth; d++) {
        double want = 0;
        for (int64_t j = 0; j < p->rows; j++) {
            int64_t row = (b * p->rows + j) * p->heads + h / p->group;
            want += weights[j] / total * number_of(values, row, p->depth, d);
        }
        if (!(fabs((double)got[d] - want) <= 2e-6)) {
            fail_msg("query %d, head %d, number %d: %.9g, not %.9g", (int)i, (int)h, (int)d,
                     (double)got[d], want);
        }
    }
    free(weights);
}

/* All of it is constant, so that folding runs it. */
static void solve(struct fixture *f, const struct problem *p)
{
    struct rt_graph *g = &f->graph;
    int64_t heads = p->heads * p->group;
    uint32_t k = CONSTANT(K_AT, p->batch, p->rows, p->heads, p->depth);
    uint32_t v = CONSTANT(V_AT, p->batch, p->rows, p->heads, p->depth);
    uint32_t args[] = {
        CONSTANT(Q_AT, p->batch, p->queries, heads, p->depth),
        0,
        0,
        number(f, p->start),
        p->has_mask ? CONSTANT(MASK_AT, p->queries, p->rows) : rt_graph_none(g),
        rt_graph_float(g, 0),
        rt_graph_bool(g, p->is_causal),
        rt_graph_none(g),
    };
    assert_ok(f->err, rt_op_apply(g, RT_OP(quantize_cache), &k, 1, DT_I8, &args[1], &f->err));
    assert_ok(f->err, rt_op_apply(g, RT_OP(quantize_cache), &v, 1, DT_I8, &args[2], &f->err));
    give(f, args[1]);
    give(f, args[2]);
    give(f, apply(f, "attention_int8", args, LENGTH(args)));
    assert_ok(f->err, rt_fold_constants(g, f->device, &f->err));
}

static const char *content(const struct fixture *f, uint32_t output)
{
    const struct rt_value *v = &f->graph.values[f->outputs[output]];
    assert_true(v->is_constant);
    return (const char *)v->bytes.ptr;
}

static void check_problem(struct hal_device *device, const struct problem *p)
{
    struct fixture storage = {.device = device}, *f = &storage;
    int64_t heads = p->heads * p->group;
    graph_begin(f);
    solve(f, p);
    const float *out = (const float *)(const void *)content(f, 2);
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t i = 0; i < p->queries; i++) {
            for (int64_t h = 0; h < heads; h++) {
                check_query(p, content(f, 0), content(f, 1), b, i, h,
                            out + ((b * p->queries + i) * heads + h) * p->depth);
            }
        }
    }
    rt_graph_fini(&f->graph);
}

static void attention_is_that_of_the_rows(void **state)
{
    static const struct problem problems[] = {
        {1, 1, 40, 2, 1, 16, .start = 30, .is_causal = true},
        {2, 3, 37, 2, 3, 20, .start = 9, .is_causal = true},
        {1, 30, 200, 2, 2, 24, .start = 130, .is_causal = true}, /* products of matrices */
        {2, 14, 33, 1, 1, 7, .start = 0, .is_causal = false},
        {1, 5, 60, 3, 1, 33, .has_mask = true},
        {1, 20, 60, 1, 1, 33, .has_mask = true},
        {1, 1, 1500, 2, 2, 20, .start = 1409, .is_causal = true}, /* in parts */
        {1, 2, 1100, 3, 1, 18, .start = 1000, .is_causal = true},
        {1, 1, 1030, 2, 1, 12, .has_mask = true},
    };
    (void)state;
    for (unsigned l = 0; l < HAL_CPU_ISA_COUNT; l++) {
        if (has_level((enum hal_cpu_isa)l)) {
            struct hal_device *device = open_cpu((enum hal_cpu_isa)l, 2);
            for (size_t i = 0; i < LENGTH(problems); i++) {
                check_problem(device, &problems[i]);
            }
            hal_device_unref(device);
        }
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

#define CONTEXT 60
#define VOCAB 448

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct error err;
};

static int set_up(void **state)
{
    static struct world w;
    open_two_workers(&w.device, &w.pool);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    close_two_workers(w->device, w->pool);
    return 0;
}

static enum status try_load(struct world *w, const char *model, bool is_int8,
                            struct rt_program **out)
{
    char path[512];
    const struct rt_load_options options = {
        .device = w->device, .has_int8_caches = is_int8, .poison_workspaces = true};
    snprintf(path, sizeof(path), "%s/tests/models/%s.pte", getenv("top_srcdir"), model);
    return rt_load_program(path, &options, out, &w->err);
}

/* Tokens [first, first + count) of a fixed text; the logits of all or of the last. */
static size_t call(struct world *w, struct rt_program *program, struct rt_state *state,
                   int64_t first, int64_t count, float *logits)
{
    int64_t tokens[CONTEXT];
    for (int64_t i = 0; i < count; i++) {
        tokens[i] = ((first + i) * 37 + 5) % VOCAB;
    }
    const struct input inputs[] = {{DT_I64, {.rank = 2, .dims = {1, count}}, tokens},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &first}};
    struct rt_method *method = rt_program_find_method(program, span_str("forward"));
    struct rt_invocation *one = begin_call(method, w->pool, state, inputs, 2);
    assert_ok(w->err, rt_invocation_prepare(one, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(one, false), ST_OK);
    struct span bytes = rt_invocation_result(one, 0)->bytes;
    size_t floats = bytes.len / sizeof(float);
    assert_true(floats >= VOCAB);
    memcpy(logits, (const float *)(const void *)bytes.ptr + floats - VOCAB, VOCAB * sizeof(float));
    rt_invocation_free(one);
    return floats;
}

static double largest_difference(const float *a, const float *b)
{
    double largest = 0;
    for (size_t i = 0; i < VOCAB; i++) {
        double difference = fabs((double)a[i] - (double)b[i]);
        largest = difference > largest ? difference : largest; /* with fmax(), gcc 12 breaks */
    }
    return largest;
}

static double largest(const float *a)
{
    static const float zeros[VOCAB];
    return largest_difference(a, zeros);
}

/* Steps of one token, and all tokens at once. */
static void check_answers(struct world *w, const char *model, int64_t first_count)
{
    static float want[VOCAB], got[VOCAB], together[VOCAB];
    struct rt_program *programs[2];
    struct rt_state *states[2], *again;
    double most = 0;
    for (int i = 0; i < 2; i++) {
        assert_ok(w->err, try_load(w, model, i == 1, &programs[i]));
        assert_ok(w->err, rt_state_new(programs[i], &states[i], &w->err));
    }
    assert_ok(w->err, rt_state_new(programs[1], &again, &w->err));
    for (int64_t i = 0; i < CONTEXT; i += i ? 1 : first_count) {
        int64_t count = i ? 1 : first_count;
        call(w, programs[0], states[0], i, count, want);
        call(w, programs[1], states[1], i, count, got);
        assert_true(largest_difference(got, want) <= 0.1 * largest(want));
        most = fmax(most, largest_difference(got, want));
    }
    assert_true(most > 0); /* it is another cache */
    call(w, programs[1], again, 0, CONTEXT, together);
    /* In another order of sums a number near the middle of two bytes may become the other one. */
    assert_true(largest_difference(got, together) <= 0.5 * most);
    for (int i = 0; i < 2; i++) {
        rt_state_unref(states[i]);
    }
    rt_state_unref(again);
    size_t bytes = rt_program_state_bytes(programs[1]);
    assert_true(bytes > 0 && bytes < rt_program_state_bytes(programs[0]));
    rt_program_unref(programs[0]);
    rt_program_unref(programs[1]);
}

/* Caches of `llama::update_cache`, and of index_put as transformers writes it. */
static void answers_are_near_those_of_floats(void **state)
{
    check_answers(*state, "chat/model", 1);
    check_answers(*state, "chat/model", 13);
    check_answers(*state, "llm/model", 5);
    check_answers(*state, "static_cache/model", 7);
}

/* Heads of 12 numbers: 48 bytes as floats, and 12 with a scale of 4. */
static void states_take_a_third(void **state)
{
    struct world *w = *state;
    struct rt_program *floats, *bytes;
    assert_ok(w->err, try_load(w, "chat/model", false, &floats));
    assert_ok(w->err, try_load(w, "chat/model", true, &bytes));
    assert_int_equal(rt_program_state_bytes(floats), 3 * rt_program_state_bytes(bytes));
    assert_true(rt_program_has_int8_caches(bytes) && !rt_program_has_int8_caches(floats));
    rt_program_unref(floats);
    rt_program_unref(bytes);
}

static uint32_t count_int8(const struct rt_program *program)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->state_cells.count; i++) {
        count += program->state_cells.items[i].is_int8;
    }
    return count;
}

/* Methods that share caches, caches that are written at places of a tensor. */
static void all_caches_are_found(void **state)
{
    static const struct {
        const char *model;
        uint32_t count;
    } rows[] = {
        {"chat/model", 4}, {"static_cache/model", 4}, {"prefill/shared", 2}, {"vk_caches", 2}};
    struct world *w = *state;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct rt_program *program;
        assert_ok(w->err, try_load(w, rows[i].model, true, &program));
        assert_int_equal(count_int8(program), rows[i].count);
        rt_program_unref(program);
    }
}

static void others_are_refused(void **state)
{
    static const struct {
        const char *model, *text;
    } rows[] = {
        {"add", "the program has no mutable buffer that is written by rows and read by attention"},
        {"tally", "the program has no mutable buffer that is written by rows"},
        {"ring", "the program has no mutable buffer that is written by rows"}, /* of 8 tokens */
        {"edits",
         "mutable buffer 0, pages.rows, float32 [1,1024,1,32], is used by sum; only writes "
         "of rows and attention may use a cache in 8 bits"},
        {"prefill/mixed", "is used by another shape; only writes"}, /* in one method */
        {"whisper/model", "mutable buffer 4, float32 [1,4,48,12], is used by index_put"},
    };
    struct world *w = *state;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct rt_program *program = NULL;
        enum status status = try_load(w, rows[i].model, true, &program);
        assert_int_equal(status, ST_UNSUPPORTED);
        assert_non_null(strstr(w->err.text, rows[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest kernels[] = {
        cmocka_unit_test(a_row_is_near_its_numbers),
        cmocka_unit_test(rows_with_odd_numbers),
        cmocka_unit_test(attention_is_that_of_the_rows),
    };
    const struct CMUnitTest programs[] = {
        cmocka_unit_test(answers_are_near_those_of_floats),
        cmocka_unit_test(states_take_a_third),
        cmocka_unit_test(all_caches_are_found),
        cmocka_unit_test(others_are_refused),
    };
    graph_use_numbers(numbers, NUMBERS, NUMBERS);
    int failures = cmocka_run_group_tests(kernels, NULL, NULL);
    return failures + cmocka_run_group_tests(programs, set_up, tear_down);
}
