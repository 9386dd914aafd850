/* SPDX-License-Identifier: MIT */
/*
 * Several steps of one sequence as one call, on the model of tests/models/chat: each step has the
 * bits that it has alone, and steps that were guessed wrong leave nothing that a later step sees.
 */
#include "config.h"

#include "runtime/call/speculation.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "hal/semaphore.h"
#include "runtime/call/batch.h"
#include "runtime/call/invocation.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define STEPS_MAX RT_SPECULATION_STEPS_MAX
#define CONTEXT 256
#define WALK 60
#define VOCAB 448
#define SECOND 1000000000u

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct rt_method *method;
    float (*expected)[VOCAB]; /* by position: the logits of steps that run one by one */
    struct error err;
};

static int64_t token_at(int64_t position)
{
    return (position * 37 + 5) % VOCAB;
}

static void step_alone(struct world *w, struct rt_state *state, int64_t position, float *logits)
{
    int64_t token = token_at(position);
    const struct input inputs[] = {{DT_I64, {.rank = 2, .dims = {1, 1}}, &token},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &position}};
    struct rt_invocation *call = begin_call(w->method, w->pool, state, inputs, 2);
    assert_ok(w->err, rt_invocation_prepare(call, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(call, false), ST_OK);
    memcpy(logits, rt_invocation_result(call, 0)->bytes.ptr, VOCAB * sizeof(*logits));
    rt_invocation_free(call);
}

static void put(struct world *w, struct rt_invocation *call, uint32_t index, uint8_t rank,
                int64_t value)
{
    const struct shape shape = {.rank = rank, .dims = {1, 1}};
    void *memory;
    assert_ok(w->err, rt_invocation_input(call, index, DT_I64, &shape, &memory, &w->err));
    memcpy(memory, &value, sizeof(value));
}

/* |right|: so many of the tokens are those of the walk. */
static struct rt_invocation *begin_speculation(struct world *w, struct rt_state *state,
                                               int64_t position, uint32_t steps, uint32_t right)
{
    struct rt_invocation *call;
    assert_ok(w->err, rt_speculation_new(w->method, w->pool, steps, &call, &w->err));
    rt_invocation_set_state(call, state);
    for (uint32_t i = 0; i < steps; i++) {
        int64_t token = token_at(position + i);
        put(w, call, 2 * i, 2, i < right ? token : (token + 11) % VOCAB);
        put(w, call, 2 * i + 1, 1, position + i);
    }
    return call;
}

static void expect_steps(struct world *w, const struct rt_invocation *call, int64_t position,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct span bytes = rt_invocation_result(call, i)->bytes;
        assert_int_equal(bytes.len, sizeof(w->expected[0]));
        assert_memory_equal(bytes.ptr, w->expected[position + i], bytes.len);
    }
}

static void step_speculation(struct world *w, struct rt_state *state, int64_t position,
                             uint32_t steps, uint32_t right)
{
    struct rt_invocation *call = begin_speculation(w, state, position, steps, right);
    assert_ok(w->err, rt_speculation_ready(w->method, call, &w->err));
    assert_ok(w->err, rt_invocation_prepare(call, RT_PREPARE_ALL, &w->err));
    assert_int_equal(rt_batch_rows(call), 0); /* never one of several sequences */
    assert_int_equal(submit_and_wait(call, false), ST_OK);
    expect_steps(w, call, position, right);
    assert_true(rt_state_wrote(state, position, position + steps));
    rt_invocation_free(call);
}

static const struct rt_pace hasty = {.budget_ns = 0}, patient = {.budget_ns = 600ull * SECOND};

static bool has_int8_caches; /* of the program */

static int set_up(void **state)
{
    static struct world w;
    int64_t rows;
    w = (struct world){0};
    open_two_workers(&w.device, &w.pool);
    const struct rt_load_options options = {
        .device = w.device, .has_int8_caches = has_int8_caches, .poison_workspaces = true};
    w.program = load_model("chat/model", &options);
    w.method = rt_program_find_method(w.program, span_str("forward"));
    assert_ok(w.err, rt_batch_open(w.method, &rows, &w.err));
    int64_t proven = 1, steps = 1;
    assert_ok(w.err, rt_batch_prove(w.method, w.pool, &patient, rows, &proven, &w.err));
    assert_int_equal(proven, rows);
    for (int64_t i = 2; i < STEPS_MAX; i++) { /* without time, each try proves one step more */
        assert_int_equal(rt_speculation_prove(w.method, w.pool, &hasty, STEPS_MAX, &steps, &w.err),
                         ST_TIMEOUT);
        assert_int_equal(steps, i);
    }
    assert_ok(w.err, rt_speculation_prove(w.method, w.pool, &hasty, STEPS_MAX, &steps, &w.err));
    assert_int_equal(steps, STEPS_MAX);
    w.expected = malloc(CONTEXT * sizeof(*w.expected));
    must(w.expected);
    struct rt_state *alone;
    assert_ok(w.err, rt_state_new(w.program, &alone, &w.err));
    for (int64_t i = 0; i < CONTEXT; i++) {
        step_alone(&w, alone, i, w.expected[i]);
    }
    rt_state_unref(alone);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    free(w->expected);
    rt_program_unref(w->program);
    close_two_workers(w->device, w->pool);
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Calls of any number of steps, of which any number were guessed right, and single steps between.
 */
static void guesses_are_right_and_wrong(void **state)
{
    struct world *w = *state;
    struct rt_state *sequence;
    float logits[VOCAB];
    uint32_t random = 1;
    for (unsigned round = 0; round < 8; round++) {
        assert_ok(w->err, rt_state_new(w->program, &sequence, &w->err));
        for (int64_t position = 0; position < WALK;) {
            random = random * 1664525u + 1013904223u;
            uint32_t steps = 1 + (random >> 16) % STEPS_MAX, right = 1 + (random >> 24) % steps;
            if (steps == 1) {
                step_alone(w, sequence, position, logits);
                assert_memory_equal(logits, w->expected[position], sizeof(logits));
            } else {
                step_speculation(w, sequence, position, steps, right);
            }
            position += right;
        }
        rt_state_unref(sequence);
    }
}

/* A state that others share is copied before it is written. */
static void a_shared_state_stays(void **state)
{
    struct world *w = *state;
    struct rt_state *first, *second;
    float logits[VOCAB];
    assert_ok(w->err, rt_state_new(w->program, &first, &w->err));
    for (int64_t i = 0; i < 4; i++) {
        step_speculation(w, first, 2 * i, 2, 2);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(w->err, rt_state_new(w->program, &second, &w->err));
        rt_state_share(second, first, RT_STATE_ALL_ROWS);
        step_speculation(w, second, 8, 8, 1 + i);
        step_alone(w, second, 9 + i, logits);
        assert_memory_equal(logits, w->expected[9 + i], sizeof(logits));
        rt_state_unref(second);
    }
    rt_state_unref(first);
}

/* A call that is cancelled leaves the state as it was. */
static void a_cancelled_call_changes_nothing(void **state)
{
    struct world *w = *state;
    struct rt_state *sequence;
    assert_ok(w->err, rt_state_new(w->program, &sequence, &w->err));
    step_speculation(w, sequence, 0, 4, 4);
    struct hal_semaphore *gate; /* the call does not run before it is cancelled */
    assert_ok(w->err, hal_semaphore_new(0, &gate, &w->err));
    struct rt_invocation *call = begin_speculation(w, sequence, 4, 4, 1);
    rt_invocation_after(call, &(struct hal_timepoint){gate, 1});
    assert_ok(w->err, rt_speculation_ready(w->method, call, &w->err));
    assert_ok(w->err, rt_invocation_prepare(call, RT_PREPARE_ALL, &w->err));
    struct done done = DONE_INIT;
    rt_invocation_submit(call, HAL_CALLER_QUICK, on_done, &done);
    rt_invocation_cancel(call);
    hal_semaphore_signal(gate, 1);
    assert_int_equal(await_done(&done), ST_CANCELLED);
    rt_invocation_free(call);
    hal_semaphore_unref(gate);
    step_speculation(w, sequence, 4, 8, 8);
    rt_state_unref(sequence);
}

/* The last steps end with the last row of the caches; one more is refused. */
static void the_end_of_the_caches(void **state)
{
    struct world *w = *state;
    struct rt_state *sequence;
    assert_ok(w->err, rt_state_new(w->program, &sequence, &w->err));
    for (int64_t i = 0; i < CONTEXT - 8; i += 8) {
        step_speculation(w, sequence, i, 8, 8);
    }
    struct rt_invocation *call = begin_speculation(w, sequence, CONTEXT - 8 + 1, 8, 8);
    enum status status = rt_speculation_ready(w->method, call, &w->err);
    if (status == ST_OK) {
        status = rt_invocation_plan(call, RT_PREPARE_ALL, &w->err);
    }
    assert_true(status == ST_UNSUPPORTED || status == ST_INVALID);
    rt_invocation_free(call);
    step_speculation(w, sequence, CONTEXT - 8, 8, 8);
    rt_state_unref(sequence);
}

static void times_are_measured(void **state)
{
    struct world *w = *state;
    uint64_t ns[STEPS_MAX + 1] = {0};
    assert_ok(w->err, rt_speculation_measure(w->method, w->pool, &patient, STEPS_MAX, ns, &w->err));
    for (unsigned i = 1; i <= STEPS_MAX; i++) {
        assert_true(ns[i] > 0 && ns[i] < 600ull * SECOND);
    }
}

/* Buffers that have no row for each position: a sum, a log, the caches of a decoder that are a ring
 * or a window that moves. A wrong guess would be there, or would have replaced what is needed. */
static void other_states_are_refused(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"tally", "ledger", "ring", "window"};
    const struct rt_load_options options = {.device = w->device};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct rt_program *program = load_model(names[i], &options);
        struct rt_method *method = rt_program_method(program, 0);
        int64_t rows = 1, proven = 1, steps = 1;
        if (rt_batch_open(method, &rows, &w->err) == ST_OK && rows > 1) {
            enum status status = rt_batch_prove(method, w->pool, &patient, rows, &proven, &w->err);
            assert_true(status == ST_OK || status == ST_UNSUPPORTED);
        }
        assert_int_equal(rt_speculation_prove(method, w->pool, &patient, 8, &steps, &w->err),
                         ST_UNSUPPORTED);
        assert_int_equal(steps, 1);
        rt_program_unref(program);
    }
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

/* Calls want the device: nothing runs, and what was proven stays. */
static void the_device_is_busy(void **state)
{
    struct world *w = *state;
    const struct rt_pace busy = {.budget_ns = 600ull * SECOND, .may_run = never};
    uint64_t ns[STEPS_MAX + 1];
    int64_t steps = 1;
    assert_ok(w->err, rt_speculation_prove(w->method, w->pool, &busy, 1, &steps, &w->err));
    assert_int_equal(rt_speculation_prove(w->method, w->pool, &busy, 8, &steps, &w->err),
                     ST_TIMEOUT);
    assert_non_null(strstr(w->err.text, "the time for the trial"));
    assert_int_equal(steps, 1);
    assert_int_equal(rt_speculation_measure(w->method, w->pool, &busy, 2, ns, &w->err), ST_TIMEOUT);
    steps = STEPS_MAX;
    assert_ok(w->err, rt_speculation_prove(w->method, w->pool, &busy, STEPS_MAX, &steps, &w->err));
    assert_int_equal(steps, STEPS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guesses_are_right_and_wrong),
        cmocka_unit_test(a_shared_state_stays),
        cmocka_unit_test(a_cancelled_call_changes_nothing),
        cmocka_unit_test(the_end_of_the_caches),
        cmocka_unit_test(times_are_measured),
        cmocka_unit_test(other_states_are_refused),
        cmocka_unit_test(the_device_is_busy),
    };
    int failures = cmocka_run_group_tests(tests, set_up, tear_down);
    has_int8_caches = true;
    return failures + cmocka_run_group_tests(tests, set_up, tear_down);
}
