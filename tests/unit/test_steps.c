/* SPDX-License-Identifier: MIT */
/*
 * Steps of several sequences as one call, on the model of tests/models/chat, a decoder with caches:
 * each sequence gets the bits that it gets alone, whoever else is there.
 */
#include "config.h"

#include "runtime/call/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define ROWS 8
#define STEPS 12
#define VOCAB 448
#define POOL_BYTES ((size_t)64 << 20)
#define SMALL_POOL_BYTES ((size_t)512 << 10)
#define SECOND 1000000000u

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct rt_method *method;
    struct error err;
};

/* One sequence. */
struct row {
    struct rt_state *state;
    int64_t position;
    struct rt_invocation *call;
    struct done done;
    float logits[VOCAB]; /* of its last step */
};

static const struct rt_pace hasty = {.budget_ns = 0}, patient = {.budget_ns = 600ull * SECOND};

static bool has_int8_caches; /* of the program */

static int set_up(void **state)
{
    static struct world w;
    const struct hal_device_options two = {.workers = 2};
    w = (struct world){0};
    assert_ok(w.err, hal_device_open("cpu", &two, &w.device, &w.err));
    assert_ok(w.err, hal_pool_new(w.device, POOL_BYTES, &w.pool, &w.err));
    const struct rt_load_options options = {
        .device = w.device, .has_int8_caches = has_int8_caches, .poison_workspaces = true};
    w.program = load_model("chat/model", &options);
    w.method = rt_program_find_method(w.program, span_str("forward"));
    int64_t rows;
    assert_ok(w.err, rt_batch_open(w.method, &rows, &w.err));
    assert_int_equal(rows, ROWS);
    assert_true(rt_batch_has_states(w.method));
    int64_t proven = 1;
    for (int64_t i = 2; i < ROWS; i++) { /* without time, each try proves one row more */
        assert_int_equal(rt_batch_prove(w.method, w.pool, &hasty, ROWS, &proven, &w.err),
                         ST_TIMEOUT);
        assert_int_equal(proven, i);
    }
    assert_ok(w.err, rt_batch_prove(w.method, w.pool, &hasty, ROWS, &proven, &w.err));
    assert_int_equal(proven, ROWS);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    rt_program_unref(w->program);
    assert_int_equal(reserved_count(w->pool), 0);
    hal_pool_free(w->pool);
    hal_device_unref(w->device);
    return 0;
}

/* Sequences differ in their tokens. */
static int64_t token_of(unsigned row, int64_t position)
{
    return (position * 37 + (int64_t)row * 101 + 5) % VOCAB;
}

static void open_row(struct world *w, struct row *row)
{
    *row = (struct row){.done = DONE_INIT};
    assert_ok(w->err, rt_state_new(w->program, &row->state, &w->err));
}

static void plan_step(struct world *w, struct row *row, int64_t token, int64_t position)
{
    const struct input inputs[] = {{DT_I64, {.rank = 2, .dims = {1, 1}}, &token},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &position}};
    row->call = begin_call(w->method, w->pool, row->state, inputs, 2);
    row->done.is_done = false;
    assert_ok(w->err, rt_invocation_plan(row->call, RT_PREPARE_ALL, &w->err));
}

static void take_logits(struct row *row)
{
    struct span bytes = rt_invocation_result(row->call, 0)->bytes;
    assert_int_equal(bytes.len, sizeof(row->logits));
    memcpy(row->logits, bytes.ptr, bytes.len);
    rt_invocation_free(row->call);
    row->call = NULL;
    row->position++;
}

static void step_alone(struct world *w, struct row *row, unsigned number)
{
    plan_step(w, row, token_of(number, row->position), row->position);
    assert_ok(w->err, rt_invocation_prepare(row->call, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(row->call, false), ST_OK);
    take_logits(row);
}

static void submit_together(struct world *w, struct row *const *rows, uint32_t count)
{
    struct rt_invocation *calls[ROWS];
    void *args[ROWS];
    for (uint32_t i = 0; i < count; i++) {
        calls[i] = rows[i]->call;
        args[i] = &rows[i]->done;
        assert_int_equal(rt_batch_rows(calls[i]), 1);
        assert_true(rt_batch_fits(calls[0], calls[i]));
    }
    assert_ok(w->err, rt_batch_submit(calls, args, count, on_done, &w->err));
}

static void step_together(struct world *w, struct row *rows, const unsigned *numbers,
                          uint32_t count)
{
    struct row *chosen[ROWS] = {0};
    for (uint32_t i = 0; i < count; i++) {
        struct row *row = chosen[i] = &rows[numbers[i]];
        plan_step(w, row, token_of(numbers[i], row->position), row->position);
    }
    submit_together(w, chosen, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(await_done(&chosen[i]->done), ST_OK);
        take_logits(chosen[i]);
    }
}

/* The logits of each step of each sequence, alone. */
static float (*run_alone(struct world *w))[STEPS][VOCAB]
{
    float(*expected)[STEPS][VOCAB] = malloc(sizeof(*expected) * ROWS);
    must(expected);
    for (unsigned number = 0; number < ROWS; number++) {
        struct row row;
        open_row(w, &row);
        for (unsigned i = 0; i < STEPS; i++) {
            step_alone(w, &row, number);
            memcpy(expected[number][i], row.logits, sizeof(row.logits));
        }
        rt_state_unref(row.state);
    }
    return expected;
}

static void expect_logits(const struct row *row, float expected[STEPS][VOCAB])
{
    assert_memory_equal(row->logits, expected[row->position - 1], sizeof(row->logits));
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Sequences join, pause and leave; each is at another position, and some steps run alone. */
static void rows_come_and_go(void **state)
{
    struct world *w = *state;
    float(*expected)[STEPS][VOCAB] = run_alone(w);
    struct row rows[ROWS];
    uint32_t random = 1;
    for (unsigned i = 0; i < ROWS; i++) {
        open_row(w, &rows[i]);
    }
    for (unsigned left = ROWS; left > 0;) {
        unsigned numbers[ROWS], count = 0;
        left = 0;
        for (unsigned i = 0; i < ROWS; i++) {
            random = random * 1664525u + 1013904223u;
            bool may = rows[i].position < STEPS;
            left += may;
            if (may && random >> 30) { /* three of four times */
                numbers[count++] = i;
            }
        }
        if (count > 1) {
            step_together(w, rows, numbers, count);
        } else if (count == 1) {
            step_alone(w, &rows[numbers[0]], numbers[0]);
        }
        for (unsigned i = 0; i < count; i++) {
            expect_logits(&rows[numbers[i]], expected[numbers[i]]);
        }
    }
    for (unsigned i = 0; i < ROWS; i++) {
        rt_state_unref(rows[i].state);
    }
    free(expected);
}

/* A row whose token is not in the vocabulary fails with the reason; its state is as before. */
static void a_row_fails_alone(void **state)
{
    struct world *w = *state;
    float(*expected)[STEPS][VOCAB] = run_alone(w);
    struct row rows[3], *all[] = {&rows[0], &rows[1], &rows[2]};
    const unsigned numbers[] = {0, 1, 2};
    for (unsigned i = 0; i < 3; i++) {
        open_row(w, &rows[i]);
    }
    step_together(w, rows, numbers, 3);
    for (unsigned i = 0; i < 3; i++) {
        int64_t token = i == 1 ? VOCAB + 7 : token_of(i, rows[i].position);
        plan_step(w, &rows[i], token, rows[i].position);
    }
    submit_together(w, all, 3);
    assert_int_equal(await_done(&rows[0].done), ST_OK);
    assert_int_equal(await_done(&rows[1].done), ST_INVALID);
    assert_int_equal(await_done(&rows[2].done), ST_OK);
    assert_non_null(strstr(rt_invocation_error(rows[1].call)->text, "455"));
    rt_invocation_free(rows[1].call);
    take_logits(&rows[0]);
    take_logits(&rows[2]);
    step_together(w, rows, numbers, 3); /* row 1 goes on where it was */
    for (unsigned i = 0; i < 3; i++) {
        expect_logits(&rows[i], expected[i]);
        rt_state_unref(rows[i].state);
    }
    free(expected);
}

/* A row that is given up ends with the step; the others have their results, it has its old state.
 */
static void a_row_is_given_up(void **state)
{
    struct world *w = *state;
    float(*expected)[STEPS][VOCAB] = run_alone(w);
    struct row rows[2], *all[] = {&rows[0], &rows[1]};
    const unsigned numbers[] = {0, 1};
    open_row(w, &rows[0]);
    open_row(w, &rows[1]);
    step_together(w, rows, numbers, 2);
    for (unsigned i = 0; i < 2; i++) {
        plan_step(w, &rows[i], token_of(i, 1), 1);
    }
    assert_false(rt_batch_leave(rows[1].call)); /* before: it still takes part, and is cancelled */
    submit_together(w, all, 2);
    assert_int_equal(await_done(&rows[0].done), ST_OK);
    assert_int_equal(await_done(&rows[1].done), ST_CANCELLED);
    take_logits(&rows[0]);
    rt_invocation_free(rows[1].call);
    step_together(w, rows, numbers, 2);
    expect_logits(&rows[0], expected[0]);
    expect_logits(&rows[1], expected[1]);
    for (unsigned i = 0; i < 2; i++) { /* all are given up */
        plan_step(w, &rows[i], token_of(i, rows[i].position), rows[i].position);
        assert_false(rt_batch_leave(rows[i].call));
    }
    submit_together(w, all, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(await_done(&rows[i].done), ST_CANCELLED);
        rt_invocation_free(rows[i].call);
        rt_state_unref(rows[i].state);
    }
    free(expected);
}

/* Calls that are no steps: of several tokens, without a state, at a position that is none. */
static void calls_that_run_alone(void **state)
{
    struct world *w = *state;
    const int64_t tokens[] = {1, 2}, zero = 0, below = -1;
    struct row row;
    open_row(w, &row);
    const struct input two[] = {{DT_I64, {.rank = 2, .dims = {1, 2}}, tokens},
                                {DT_I64, {.rank = 1, .dims = {1}}, &zero}};
    const struct input one[] = {{DT_I64, {.rank = 2, .dims = {1, 1}}, tokens},
                                {DT_I64, {.rank = 1, .dims = {1}}, &zero}};
    const struct input early[] = {{DT_I64, {.rank = 2, .dims = {1, 1}}, tokens},
                                  {DT_I64, {.rank = 1, .dims = {1}}, &below}};
    const struct {
        const struct input *inputs;
        struct rt_state *state;
        int64_t rows;
    } cases[] = {{two, row.state, 0}, {one, NULL, 0}, {early, row.state, 0}, {one, row.state, 1}};
    for (unsigned i = 0; i < 4; i++) {
        struct rt_invocation *call =
            begin_call(w->method, w->pool, cases[i].state, cases[i].inputs, 2);
        assert_ok(w->err, rt_invocation_plan(call, RT_PREPARE_ALL, &w->err));
        assert_int_equal(rt_batch_rows(call), cases[i].rows);
        rt_invocation_free(call);
    }
    rt_state_unref(row.state);
}

/* A position behind the cache is refused for its row alone. */
static void a_position_is_refused_alone(void **state)
{
    struct world *w = *state;
    struct row rows[2], *all[] = {&rows[0], &rows[1]};
    open_row(w, &rows[0]);
    open_row(w, &rows[1]);
    plan_step(w, &rows[0], 5, 0);
    plan_step(w, &rows[1], 5, 256);
    submit_together(w, all, 2);
    assert_int_equal(await_done(&rows[0].done), ST_OK);
    assert_int_equal(await_done(&rows[1].done), ST_INVALID);
    take_logits(&rows[0]);
    rt_invocation_free(rows[1].call);
    rt_state_unref(rows[0].state);
    rt_state_unref(rows[1].state);
}

/* What the sequences keep is not of the memory for requests, and may be more than it. */
static void states_are_no_memory_of_calls(void **state)
{
    struct world *w = *state;
    const struct rt_load_options options = {.device = w->device,
                                            .has_int8_caches = has_int8_caches};
    struct rt_program *program = load_model("chat/model", &options);
    struct rt_method *method = rt_program_find_method(program, span_str("forward"));
    struct hal_pool *pool;
    int64_t rows, proven = 1;
    assert_ok(w->err, hal_pool_new(w->device, SMALL_POOL_BYTES, &pool, &w->err));
    assert_true(has_int8_caches || ROWS * rt_program_state_bytes(program) > SMALL_POOL_BYTES);
    assert_ok(w->err, rt_batch_open(method, &rows, &w->err));
    assert_ok(w->err, rt_batch_prove(method, pool, &patient, rows, &proven, &w->err));
    assert_int_equal(proven, ROWS);
    rt_program_unref(program);
    hal_pool_free(pool);
}

/* A method whose steps cannot be joined is measured like any other. */
static void nothing_is_joined(void **state)
{
    struct world *w = *state;
    const struct rt_load_options options = {.device = w->device};
    struct rt_program *program = load_model("tally", &options);
    struct rt_method *method = rt_program_method(program, 0);
    int64_t rows;
    if (rt_batch_open(method, &rows, &w->err) == ST_OK) {
        int64_t proven = 1, worth = 0;
        assert_int_equal(rt_batch_prove(method, w->pool, &patient, rows, &proven, &w->err),
                         ST_UNSUPPORTED);
        assert_int_equal(proven, 1);
        assert_ok(w->err, rt_batch_measure(method, w->pool, &patient, proven, &worth, &w->err));
        assert_int_equal(worth, 1);
    }
    rt_program_unref(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_and_go),
        cmocka_unit_test(a_row_fails_alone),
        cmocka_unit_test(a_row_is_given_up),
        cmocka_unit_test(calls_that_run_alone),
        cmocka_unit_test(a_position_is_refused_alone),
        cmocka_unit_test(states_are_no_memory_of_calls),
        cmocka_unit_test(nothing_is_joined),
    };
    int failures = cmocka_run_group_tests(tests, set_up, tear_down);
    has_int8_caches = true;
    return failures + cmocka_run_group_tests(tests, set_up, tear_down);
}
