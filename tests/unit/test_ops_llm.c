/* SPDX-License-Identifier: MIT */
/*
 * Compares attention and related operators with plain loops in double, in cases that the golden
 * cases leave out: positions beyond a cache, rows whose mask hides everything, one decay for a
 * whole step, shared heads.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#include "tests/unit/ops_call.h"

static struct rt_emit call;
static struct error err;

static void fill(float *x, int n, int seed)
{
    for (int i = 0; i < n; i++) {
        x[i] = sinf((float)(i * 37 % 1009 + seed));
    }
}

/* ---- attention ----------------------------------------------------------------------------- */

enum { QUERIES = 60, KEYS = 300, HEADS = 6, KV_HEADS = 2, DEPTH = 11 };

static float q[QUERIES * HEADS * DEPTH], k[KEYS * KV_HEADS * DEPTH], v[KEYS * KV_HEADS * DEPTH];
static float mask[QUERIES * KEYS], y[QUERIES * HEADS * DEPTH];

static void begin_attention(int64_t start, bool has_mask)
{
    call_init(&call, rt_ops_attention, "attention");
    call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, QUERIES, HEADS, DEPTH), q));
    call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, KEYS, KV_HEADS, DEPTH), k));
    call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, KEYS, KV_HEADS, DEPTH), v));
    call_arg_int(&call, start);
    if (has_mask) {
        call_arg(&call, call_tensor(&call, DT_F32, 2, INTS(QUERIES, KEYS), mask));
    } else {
        call_arg_none(&call);
    }
    call_arg_float(&call, 0);
    call_arg_bool(&call, !has_mask);
    call_arg_none(&call);
    call_out(&call, call_tensor(&call, DT_F32, 4, INTS(1, QUERIES, HEADS, DEPTH), y));
}

/* Element |d| of the row of query |i| and head |h|. */
static double attend(int i, int h, int d)
{
    double total = 0, sum = 0;
    for (int j = 0; j < KEYS; j++) {
        const float *key = k + (j * KV_HEADS + h / (HEADS / KV_HEADS)) * DEPTH;
        double score = 0;
        for (int e = 0; e < DEPTH; e++) {
            score += (double)q[(i * HEADS + h) * DEPTH + e] * (double)key[e];
        }
        double weight = exp(score / sqrt(DEPTH) + (double)mask[i * KEYS + j]);
        total += weight;
        sum += weight * (double)v[(j * KV_HEADS + h / (HEADS / KV_HEADS)) * DEPTH + d];
    }
    return total == 0 ? 0 : sum / total;
}

/* Tiles begin within a query, and chunks end within the mask. One query sees nothing, another one
 * only the last chunk. */
static void test_mask(void **state)
{
    (void)state;
    fill(q, QUERIES * HEADS * DEPTH, 1);
    fill(k, KEYS * KV_HEADS * DEPTH, 2);
    fill(v, KEYS * KV_HEADS * DEPTH, 3);
    for (int i = 0; i < QUERIES * KEYS; i++) {
        int row = i / KEYS, column = i % KEYS;
        bool is_hidden = row == 5 || (row == 6 && column < 290) || i % 3 == 0;
        mask[i] = is_hidden ? -INFINITY : (float)(i % 7);
    }
    begin_attention(0, true);
    assert_int_equal(call_run(&call, &err), ST_OK);
    for (int i = 0; i < QUERIES; i++) {
        for (int h = 0; h < HEADS; h++) {
            for (int d = 0; d < DEPTH; d++) {
                double got = (double)y[(i * HEADS + h) * DEPTH + d];
                assert_true(fabs(got - attend(i, h, d)) < 1e-5);
            }
        }
    }
}

static void test_positions(void **state)
{
    (void)state;
    begin_attention(KEYS - QUERIES, false);
    assert_int_equal(call_run(&call, &err), ST_OK);
    static const int64_t wrong[] = {-1, KEYS - QUERIES + 1, KEYS + 1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        begin_attention(wrong[i], false);
        assert_int_equal(call_run(&call, &err), ST_INVALID);
        assert_non_null(strstr(err.text, "300 keys"));
        call_init(&call, rt_ops_llm, "write_rows");
        call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, KEYS, KV_HEADS, DEPTH), k));
        call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, QUERIES, KV_HEADS, DEPTH), q));
        call_arg_int(&call, wrong[i]);
        call_out(&call, call_tensor(&call, DT_F32, 4, INTS(1, KEYS, KV_HEADS, DEPTH), k));
        assert_int_equal(call_run(&call, &err), ST_INVALID);
        assert_non_null(strstr(err.text, "the cache has only 300"));
    }
}

/* ---- many queries ---------------------------------------------------------------------------- */

/* So many rows that a tile has several bands of them, of which the first ones see fewer keys. */
enum { MANY = 1300, BEFORE = 100, MANY_HEADS = 4, MANY_KV = 2, MANY_DEPTH = 8, PIECE = 65 };

#define MANY_ROW (MANY_HEADS * MANY_DEPTH)
#define MANY_KEY (MANY_KV * MANY_DEPTH)

static float many_q[MANY * MANY_ROW], many_y[MANY * MANY_ROW], piece_y[PIECE * MANY_ROW];
static float many_k[(BEFORE + MANY) * MANY_KEY], many_v[(BEFORE + MANY) * MANY_KEY];

static void run_many(int64_t first, int64_t count, bool is_causal, float *out)
{
    call_init(&call, rt_ops_attention, "attention");
    call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, count, MANY_HEADS, MANY_DEPTH),
                                many_q + first * MANY_ROW));
    call_arg(&call,
             call_tensor(&call, DT_F32, 4, INTS(1, BEFORE + MANY, MANY_KV, MANY_DEPTH), many_k));
    call_arg(&call,
             call_tensor(&call, DT_F32, 4, INTS(1, BEFORE + MANY, MANY_KV, MANY_DEPTH), many_v));
    call_arg_int(&call, BEFORE + first);
    call_arg_none(&call);
    call_arg_float(&call, 0);
    call_arg_bool(&call, is_causal);
    call_arg_none(&call);
    call_out(&call, call_tensor(&call, DT_F32, 4, INTS(1, count, MANY_HEADS, MANY_DEPTH), out));
    assert_int_equal(call_run(&call, &err), ST_OK);
}

static double many_want(int i, int h, int d, int end)
{
    double total = 0, sum = 0;
    for (int j = 0; j < end; j++) {
        int row = j * MANY_KEY + h / (MANY_HEADS / MANY_KV) * MANY_DEPTH;
        double score = 0;
        for (int e = 0; e < MANY_DEPTH; e++) {
            score += (double)many_q[i * MANY_ROW + h * MANY_DEPTH + e] * (double)many_k[row + e];
        }
        double weight = exp(score / sqrt(MANY_DEPTH));
        total += weight;
        sum += weight * (double)many_v[row + d];
    }
    return sum / total;
}

/* A query has the same bits whatever other queries are beside it. */
static void test_many_queries(void **state)
{
    (void)state;
    fill(many_q, MANY * MANY_ROW, 4);
    fill(many_k, (BEFORE + MANY) * MANY_KEY, 5);
    fill(many_v, (BEFORE + MANY) * MANY_KEY, 6);
    for (int is_causal = 0; is_causal < 2; is_causal++) {
        run_many(0, MANY, is_causal, many_y);
        for (int i = 0; i < MANY; i += 37) {
            int end = BEFORE + (is_causal ? i + 1 : MANY);
            for (int h = 0; h < MANY_HEADS; h++) {
                double got = (double)many_y[i * MANY_ROW + h * MANY_DEPTH + 3];
                assert_true(fabs(got - many_want(i, h, 3, end)) < 1e-5);
            }
        }
    }
    static const int64_t pieces[] = {PIECE, 32, 8, 5, 2};
    for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
        for (int64_t first = 0; first + pieces[p] <= MANY; first += pieces[p]) {
            run_many(first, pieces[p], true, piece_y);
            assert_memory_equal(piece_y, many_y + first * MANY_ROW,
                                (size_t)pieces[p] * MANY_ROW * sizeof(float));
        }
    }
}

/* ---- long caches ----------------------------------------------------------------------------- */

/* Rows of the cache, and the most of anything else. */
enum { LONG = 1700, FEW = 3, SIDE = 2, WIDE = 24 };

struct long_case {
    int64_t queries, group, heads, depth, start;
    bool has_mask, heads_first;
};

static float long_q[SIDE * FEW * 16 * WIDE], long_k[SIDE * LONG * 4 * WIDE];
static float long_v[SIDE * LONG * 4 * WIDE], long_mask[FEW * LONG];
static float long_y[SIDE * FEW * 16 * WIDE];

/* Element (b, row, head) of q, or of keys and values, in the case's order of dims. */
static int64_t place(const struct long_case *c, int64_t b, int64_t row, int64_t head, int64_t rows,
                     int64_t heads)
{
    return c->heads_first ? ((b * heads + head) * rows + row) * c->depth
                          : ((b * rows + row) * heads + head) * c->depth;
}

static double long_want(const struct long_case *c, int64_t b, int64_t i, int64_t h, int64_t d)
{
    const float *query = long_q + place(c, b, i, h, c->queries, c->heads * c->group);
    double total = 0, sum = 0;
    int64_t end = c->has_mask ? LONG : c->start + i + 1;
    for (int64_t j = 0; j < end; j++) {
        int64_t at = place(c, b, j, h / c->group, LONG, c->heads);
        double score = c->has_mask ? (double)long_mask[i * LONG + j] : 0;
        for (int64_t e = 0; e < c->depth && score > -1e9; e++) {
            score += (double)query[e] * (double)long_k[at + e] / sqrt((double)c->depth);
        }
        total += exp(score);
        sum += exp(score) != 0 ? exp(score) * (double)long_v[at + d] : 0;
    }
    return total == 0 ? 0 : sum / total;
}

static void begin_long(const struct long_case *c, bool reads_places)
{
    int64_t heads = c->heads * c->group;
    call_init(&call, rt_ops_attention, c->heads_first ? "attention_heads" : "attention");
    call.reads_places = reads_places;
    const int64_t *few = c->heads_first ? INTS(SIDE, heads, c->queries, c->depth)
                                        : INTS(SIDE, c->queries, heads, c->depth);
    const int64_t *all = c->heads_first ? INTS(SIDE, c->heads, LONG, c->depth)
                                        : INTS(SIDE, LONG, c->heads, c->depth);
    call_arg(&call, call_tensor(&call, DT_F32, 4, few, long_q));
    call_arg(&call, call_tensor(&call, DT_F32, 4, all, long_k));
    call_arg(&call, call_tensor(&call, DT_F32, 4, all, long_v));
    call_arg_int(&call, c->start);
    if (c->has_mask) {
        call_arg(&call, call_tensor(&call, DT_F32, 2, INTS(c->queries, LONG), long_mask));
    } else {
        call_arg_none(&call);
    }
    call_arg_float(&call, 0);
    call_arg_bool(&call, !c->has_mask);
    call_arg_none(&call);
    call_out(&call, call_tensor(&call, DT_F32, 4, few, long_y));
}

/* Elements that no query sees are NaN, so that a read would show. */
static void fill_long(const struct long_case *c, int64_t end)
{
    fill(long_q, sizeof(long_q) / sizeof(float), 1);
    fill(long_k, sizeof(long_k) / sizeof(float), 2);
    fill(long_v, sizeof(long_v) / sizeof(float), 3);
    for (int64_t i = 0; i < c->queries * LONG; i++) {
        bool is_hidden = i % LONG >= end || i % 5 == 0 || i / LONG == 1;
        long_mask[i] = is_hidden ? -INFINITY : (float)(i % 3);
    }
    for (int64_t i = 0; i < SIDE * c->heads * (LONG - end); i++) {
        int64_t at =
            place(c, i % SIDE, end + i / SIDE / c->heads, i / SIDE % c->heads, LONG, c->heads);
        for (int64_t d = 0; d < c->depth; d++) {
            long_k[at + d] = long_v[at + d] = NAN;
        }
    }
}

static void check_long(const struct long_case *c, bool reads_places)
{
    memset(long_y, 0xff, sizeof(long_y));
    begin_long(c, reads_places);
    assert_int_equal(call_run(&call, &err), ST_OK);
    assert_int_equal(call.dispatch_count, c->queries == 1 ? 2 : 1);
    for (int64_t b = 0; b < SIDE; b++) {
        for (int64_t i = 0; i < c->queries; i++) {
            for (int64_t h = 0; h < c->heads * c->group; h++) {
                const float *row = long_y + place(c, b, i, h, c->queries, c->heads * c->group);
                for (int64_t d = 0; d < c->depth; d++) {
                    assert_true(fabs((double)row[d] - long_want(c, b, i, h, d)) < 1e-5);
                }
            }
        }
    }
}

/* The cache is cut for a single query. Parts that are empty, or full, or that begin
 * behind what a query sees; a query whose mask hides everything. */
static void test_long(void **state)
{
    static const struct long_case cases[] = {
        {1, 4, 2, 24, 1699, false, false},  {1, 4, 2, 24, 0, false, false},
        {1, 1, 4, 7, 511, false, false},    {3, 2, 1, 16, 1022, false, false},
        {3, 2, 2, 24, 600, false, true},    {1, 8, 1, 9, 512, false, false},
        {3, 2, 2, 24, 0, true, false},      {2, 3, 1, 24, 0, true, true},
        {3, 4, 2, 24, 1000, false, false},  {3, 4, 1, 24, 0, true, false},
        {1, 13, 1, 24, 1300, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct long_case *c = &cases[i];
        fill_long(c, c->has_mask ? 700 : c->start + c->queries);
        check_long(c, false);
        if (!c->has_mask) {
            check_long(c, true);
        }
    }
}

/* A cache written in place keeps its other rows. Otherwise the other rows are copied. */
static void test_in_place(void **state)
{
    float cache[6 * 2], out[6 * 2], rows[2 * 2] = {50, 51, 52, 53};
    (void)state;

    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < 12; i++) {
            cache[i] = (float)i;
            out[i] = -1;
        }
        call_init(&call, rt_ops_llm, "write_rows");
        struct rt_tensor t = call_tensor(&call, DT_F32, 4, INTS(1, 6, 1, 2), cache);
        call_arg(&call, t);
        call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2, 1, 2), rows));
        call_arg_int(&call, 3);
        call_out(&call, in_place ? t : call_tensor(&call, DT_F32, 4, INTS(1, 6, 1, 2), out));
        assert_int_equal(call_run(&call, &err), ST_OK);
        assert_int_equal(call.dispatch_count, in_place ? 1 : 2);
        for (int i = 0; i < 12; i++) {
            float want = i >= 6 && i < 10 ? rows[i - 6] : (float)i;
            assert_true((in_place ? cache : out)[i] == want);
        }
    }
}

/* ---- gated delta rule ---------------------------------------------------------------------- */

enum { STEPS = 5, GROUP = 2, STATE_ROWS = 4, WIDTH = 9 };

static float queries[2 * GROUP * STEPS * STATE_ROWS], keys[2 * STEPS * STATE_ROWS];
static float values[2 * STEPS * WIDTH], decay[2 * STEPS], beta[2 * STEPS];
static float before[2 * STATE_ROWS * WIDTH], after[2 * STATE_ROWS * WIDTH];
static float results[2 * GROUP * STEPS * WIDTH];

/* Computes one head step by step, as in the definition. */
static void check_head(int head, bool has_state)
{
    double s[STATE_ROWS][WIDTH];
    for (int i = 0; i < STATE_ROWS * WIDTH; i++) {
        s[i / WIDTH][i % WIDTH] = (double)before[head * STATE_ROWS * WIDTH + i];
    }
    for (int t = 0; t < STEPS; t++) {
        const float *key = keys + (head * STEPS + t) * STATE_ROWS;
        for (int w = 0; w < WIDTH; w++) {
            double guess = 0;
            for (int i = 0; i < STATE_ROWS; i++) {
                s[i][w] *= (double)decay[head * STEPS + t];
                guess += s[i][w] * (double)key[i];
            }
            double delta = (double)beta[head * STEPS + t] *
                           ((double)values[(head * STEPS + t) * WIDTH + w] - guess);
            for (int i = 0; i < STATE_ROWS; i++) {
                s[i][w] += (double)key[i] * delta;
            }
            for (int g = 0; g < GROUP; g++) {
                int row = (head * GROUP + g) * STEPS + t;
                double want = 0;
                for (int i = 0; i < STATE_ROWS; i++) {
                    want += s[i][w] * (double)queries[row * STATE_ROWS + i];
                }
                assert_true(fabs((double)results[row * WIDTH + w] - want) < 1e-5);
            }
        }
    }
    for (int i = 0; has_state && i < STATE_ROWS * WIDTH; i++) {
        double got = (double)after[head * STATE_ROWS * WIDTH + i];
        assert_true(fabs(got - s[i / WIDTH][i % WIDTH]) < 1e-5);
    }
}

/* A decay for each step, two heads of queries for one head of keys, with and without a reader of
 * the state. */
static void test_delta(void **state)
{
    (void)state;
    fill(queries, 2 * GROUP * STEPS * STATE_ROWS, 1);
    fill(keys, 2 * STEPS * STATE_ROWS, 2);
    fill(values, 2 * STEPS * WIDTH, 3);
    fill(decay, 2 * STEPS, 4);
    fill(beta, 2 * STEPS, 5);
    fill(before, 2 * STATE_ROWS * WIDTH, 6);
    for (int has_state = 0; has_state < 2; has_state++) {
        call_init(&call, rt_ops_llm, "gated_delta_rule");
        call_arg(&call,
                 call_tensor(&call, DT_F32, 4, INTS(1, 2 * GROUP, STEPS, STATE_ROWS), queries));
        call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2, STEPS, STATE_ROWS), keys));
        call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2, STEPS, WIDTH), values));
        call_arg(&call, call_tensor(&call, DT_F32, 3, INTS(1, 2, STEPS), decay));
        call_arg(&call, call_tensor(&call, DT_F32, 3, INTS(1, 2, STEPS), beta));
        call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2, STATE_ROWS, WIDTH), before));
        call_out(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2 * GROUP, STEPS, WIDTH), results));
        if (has_state) {
            call_out(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2, STATE_ROWS, WIDTH), after));
        }
        assert_int_equal(call_run(&call, &err), ST_OK);
        check_head(0, has_state);
        check_head(1, has_state);
    }
}

/* A state without rows: each result is a sum of nothing, and not what was in its memory. */
static void test_delta_without_depth(void **state)
{
    (void)state;
    fill(results, 2 * GROUP * STEPS * WIDTH, 1);
    call_init(&call, rt_ops_llm, "gated_delta_rule");
    call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2 * GROUP, STEPS, 0), queries));
    call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2, STEPS, 0), keys));
    call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2, STEPS, WIDTH), values));
    call_arg(&call, call_tensor(&call, DT_F32, 3, INTS(1, 2, STEPS), decay));
    call_arg(&call, call_tensor(&call, DT_F32, 3, INTS(1, 2, STEPS), beta));
    call_arg(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2, 0, WIDTH), before));
    call_out(&call, call_tensor(&call, DT_F32, 4, INTS(1, 2 * GROUP, STEPS, WIDTH), results));
    assert_int_equal(call_run(&call, &err), ST_OK);
    for (int i = 0; i < 2 * GROUP * STEPS * WIDTH; i++) {
        assert_true(results[i] == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_many_queries),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_delta),
        cmocka_unit_test(test_delta_without_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
