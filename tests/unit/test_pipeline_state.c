/* SPDX-License-Identifier: MIT */
/*
 * Steps that share a state. A call of a pipeline keeps the writes of all its steps or of none. In a
 * partial cascade each step keeps its own writes.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/cascade.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/state.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

enum { RUNNING, TALLY, SCROLL, FAULTS, MODELS };
static const char *const names[MODELS] = {"running", "tally", "scroll", "faults"};

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *models[MODELS];
    struct error err;
};

static void open_world(struct world *w)
{
    *w = (struct world){0};
    open_two_workers(&w->device, &w->pool);
    const struct rt_load_options options = {.device = w->device, .poison_workspaces = true};
    for (int i = 0; i < MODELS; i++) {
        w->models[i] = load_model(names[i], &options);
    }
}

static void close_world(struct world *w)
{
    for (int i = 0; i < MODELS; i++) {
        rt_program_unref(w->models[i]);
    }
    close_two_workers(w->device, w->pool);
}

static struct rt_method *method_of(struct rt_program *program)
{
    return rt_program_default_method(program);
}

/* ---- pipelines ------------------------------------------------------------------------------- */

static struct rt_program *make(const struct rt_pipeline_step *steps, uint32_t step_count,
                               const struct rt_source *outputs, uint32_t output_count)
{
    const struct rt_pipeline_desc desc = {.name = "p",
                                          .steps = steps,
                                          .step_count = step_count,
                                          .outputs = outputs,
                                          .output_count = output_count};
    return make_pipeline(&desc);
}

/* The tensors at the end of all pipelines here: the dividend and the divisor. */
static struct rt_method *divide_of(struct world *w)
{
    return rt_program_find_method(w->models[FAULTS], span_str("divide"));
}

/* The mean of means; both counts; and a division that may fail. */
static struct rt_program *make_running_twice(struct world *w)
{
    static const struct rt_source first[] = {IN(0)}, second[] = {FROM(0, 0)},
                                  third[] = {IN(1), IN(2)},
                                  outputs[] = {FROM(1, 0), FROM(0, 1), FROM(1, 1)};
    struct rt_method *running = method_of(w->models[RUNNING]);
    const struct rt_pipeline_step steps[] = {
        {"a", running, first, 1}, {"b", running, second, 1}, {"c", divide_of(w), third, 2}};
    return make(steps, 3, outputs, 3);
}

#define VECTOR(type, n, data)                                                                      \
    {                                                                                              \
        type, {.rank = 1, .dims = {n}}, data                                                       \
    }

static struct rt_invocation *prepare(struct world *w, struct rt_program *program,
                                     struct rt_state *state, const struct input *inputs,
                                     uint32_t count)
{
    struct rt_invocation *inv = begin_call(method_of(program), w->pool, state, inputs, count);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    return inv;
}

static int64_t count_of(struct rt_invocation *inv, uint32_t index)
{
    int64_t count;
    memcpy(&count, rt_invocation_result(inv, index)->bytes.ptr, sizeof(count));
    return count;
}

static const int64_t ones[] = {1, 1, 1, 1}, a_zero[] = {1, 1, 0, 1};

/* Makes a call. Returns the status, and after a success the mean and both counts. */
static enum status run_twice(struct world *w, struct rt_program *program, struct rt_state *state,
                             float x, const int64_t *divisor, bool is_cancelled, float *out_mean,
                             int64_t out_counts[2])
{
    const float data[] = {x, x, x};
    const struct input inputs[] = {VECTOR(DT_F32, 3, data), VECTOR(DT_I64, 4, ones),
                                   VECTOR(DT_I64, 4, divisor)};
    struct rt_invocation *inv = prepare(w, program, state, inputs, 3);
    enum status status = submit_and_wait(inv, is_cancelled);
    if (status == ST_OK) {
        memcpy(out_mean, rt_invocation_result(inv, 0)->bytes.ptr, sizeof(*out_mean));
        out_counts[0] = count_of(inv, 1);
        out_counts[1] = count_of(inv, 2);
    }
    rt_invocation_free(inv);
    return status;
}

/* Both steps see one state, one after the other. A call that fails or is cancelled does not change
 * it. */
static void a_call_advances_all_of_its_state_or_nothing(void **unused)
{
    struct world w;
    struct rt_state *state;
    float mean = 4, got;
    int64_t calls = 0, counts[2];
    (void)unused;
    open_world(&w);
    struct rt_program *program = make_running_twice(&w);
    assert_int_equal(rt_program_state_bytes(program), 3 * (8 + 12));
    assert_ok(w.err, rt_state_new(program, &state, &w.err));
    for (int i = 0; i < 200; i++) {
        bool is_cancelled = i % 5 == 3, is_wrong = i % 3 == 1;
        enum status status = run_twice(&w, program, state, (float)i, is_wrong ? a_zero : ones,
                                       is_cancelled, &got, counts);
        assert_true(status == ST_OK || (status == ST_CANCELLED && is_cancelled) ||
                    (status == ST_INVALID && is_wrong));
        if (status == ST_OK) {
            mean = mean * 0.75f + (float)i * 0.25f;
            mean = mean * 0.75f + mean * 0.25f;
            assert_true(got == mean);
            assert_int_equal(counts[0], 2 * calls + 1);
            assert_int_equal(counts[1], 2 * ++calls);
        }
    }
    assert_true(calls >= 100);
    assert_int_equal(run_twice(&w, program, NULL, 0, ones, false, &got, counts), ST_OK);
    assert_true(counts[0] == 1 && counts[1] == 1); /* without a state each step begins afresh */
    rt_state_unref(state);
    rt_program_unref(program);
    close_world(&w);
}

/* A pipeline used as a step has its own state, which all steps that use the pipeline share. */
static void pipelines_in_pipelines_have_states_in_states(void **unused)
{
    static const struct rt_source first[] = {IN(0), IN(1), IN(2)},
                                  second[] = {FROM(0, 0), IN(1), IN(2)}, third[] = {FROM(1, 0)},
                                  outputs[] = {FROM(0, 1), FROM(0, 2), FROM(1, 1), FROM(1, 2),
                                               FROM(2, 1)};
    struct world w;
    struct rt_state *state;
    (void)unused;
    open_world(&w);
    struct rt_program *inner = make_running_twice(&w);
    const struct rt_pipeline_step steps[] = {{"a", method_of(inner), first, 3},
                                             {"b", method_of(inner), second, 3},
                                             {"c", method_of(w.models[RUNNING]), third, 1}};
    struct rt_program *outer = make(steps, 3, outputs, 5);
    assert_int_equal(rt_program_state_bytes(outer), 3 * 2 * (8 + 12));
    assert_ok(w.err, rt_state_new(outer, &state, &w.err));
    const float data[] = {1, 2, 3};
    int64_t calls = 0;
    for (int i = 0; i < 40; i++) {
        const struct input inputs[] = {VECTOR(DT_F32, 3, data), VECTOR(DT_I64, 4, ones),
                                       VECTOR(DT_I64, 4, i % 2 ? a_zero : ones)};
        struct rt_invocation *inv = prepare(&w, outer, state, inputs, 3);
        assert_int_equal(submit_and_wait(inv, false), i % 2 ? ST_INVALID : ST_OK);
        for (uint32_t k = 0; k < 4 && i % 2 == 0; k++) {
            assert_int_equal(count_of(inv, k), 4 * calls + k + 1);
        }
        if (i % 2 == 0) {
            assert_int_equal(count_of(inv, 4), ++calls);
        }
        rt_invocation_free(inv);
    }
    rt_state_unref(state);
    rt_program_unref(outer);
    rt_program_unref(inner);
    close_world(&w);
}

/* A failed call restores the buffers of the VM like those of a method with one block. */
static void steps_with_several_blocks_are_undone(void **unused)
{
    static const struct rt_source first[] = {IN(0), IN(1), IN(2)}, second[] = {IN(0), IN(1), IN(3)},
                                  outputs[] = {FROM(1, 0), FROM(0, 1), FROM(1, 1)};
    const bool is_sum = true;
    const float rows[12] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
    const int64_t good = 2, bad = 9;
    struct world w;
    struct rt_state *state;
    float want = 0, got;
    (void)unused;
    open_world(&w);
    struct rt_method *tally = method_of(w.models[TALLY]);
    const struct rt_pipeline_step steps[] = {{"a", tally, first, 3}, {"b", tally, second, 3}};
    struct rt_program *program = make(steps, 2, outputs, 3);
    assert_ok(w.err, rt_state_new(program, &state, &w.err));
    for (int i = 0; i < 8; i++) {
        bool is_wrong = i % 2 == 0;
        const struct input inputs[] = {{DT_F32, {.rank = 2, .dims = {3, 4}}, rows},
                                       {DT_BOOL, {.rank = 0}, &is_sum},
                                       VECTOR(DT_I64, 1, &good),
                                       VECTOR(DT_I64, 1, is_wrong ? &bad : &good)};
        struct rt_invocation *inv = prepare(&w, program, state, inputs, 4);
        assert_int_equal(submit_and_wait(inv, false), is_wrong ? ST_INVALID : ST_OK);
        if (!is_wrong) {
            want += 3 * 0.5f * (want + 1);
            want += 3 * 0.5f * (want + 1);
            memcpy(&got, rt_invocation_result(inv, 0)->bytes.ptr, sizeof(got));
            assert_true(got == want);
            assert_int_equal(count_of(inv, 1), i);
            assert_int_equal(count_of(inv, 2), i + 1);
        }
        rt_invocation_free(inv);
    }
    rt_state_unref(state);
    rt_program_unref(program);
    close_world(&w);
}

/* ---- rows of a cache ------------------------------------------------------------------------- */

enum { CACHES = 2, ROWS = 8, WIDTH = 3 };

struct cache {
    float rows[CACHES][ROWS][WIDTH];
};

/* The same as in tests/unit/test_state.c. */
static void write_rows(struct cache *cache, int64_t first, int64_t n, float x)
{
    for (int c = 0; c < CACHES; c++) {
        for (int64_t r = first; r < first + n; r++) {
            for (int i = 0; i < WIDTH; i++) {
                cache->rows[c][r][i] = x * (float)(c + 1) + (float)(3 * r + i);
            }
        }
    }
}

static void assert_sums(const struct cache *cache, struct rt_invocation *inv, uint32_t index)
{
    float sums[CACHES][WIDTH];
    memcpy(sums, rt_invocation_result(inv, index)->bytes.ptr, sizeof(sums));
    for (int c = 0; c < CACHES; c++) {
        for (int i = 0; i < WIDTH; i++) {
            float want = 0;
            for (int r = 0; r < ROWS; r++) {
                want += cache->rows[c][r][i];
            }
            assert_true(sums[c][i] == want);
        }
    }
}

static struct rt_program *make_scrolls(struct world *w, uint32_t count)
{
    static const struct rt_source first[] = {IN(0), IN(1)}, second[] = {IN(2), IN(3)},
                                  third[] = {IN(4), IN(5)};
    static const struct rt_source outputs[] = {FROM(0, 0), FROM(1, 0), FROM(2, 0)};
    struct rt_method *scroll = method_of(w->models[SCROLL]);
    const struct rt_pipeline_step steps[] = {
        {"a", scroll, first, 2}, {"b", scroll, second, 2}, {"c", scroll, third, 2}};
    return make(steps, count, outputs, count);
}

/* Each step writes some rows, and only rows that differ are copied between generations. Compared
 * with a copy on the host, with calls that fail in any step and calls that are cancelled. */
static void rows_survive_failures_and_cancellation(uint32_t step_count)
{
    struct world w;
    struct rt_state *state;
    struct cache cache = {0};
    uint32_t random = step_count;
    int successes = 0, failures = 0;
    open_world(&w);
    struct rt_program *program = make_scrolls(&w, step_count);
    assert_ok(w.err, rt_state_new(program, &state, &w.err));
    for (int i = 0; i < 400; i++) {
        float data[3][4];
        int64_t at[3], n[3];
        struct input inputs[6];
        bool is_wrong = false, is_cancelled = i % 9 == 8;
        struct cache next = cache, seen[3];
        for (uint32_t s = 0; s < step_count; s++) {
            random = random * 1664525 + 1013904223;
            n[s] = 1 + (random >> 20) % 4;
            at[s] = (random >> 10) % 6;
            float x = (float)(random >> 5 & 15);
            data[s][0] = data[s][1] = data[s][2] = data[s][3] = x;
            inputs[2 * s] = (struct input)VECTOR(DT_F32, n[s], data[s]);
            inputs[2 * s + 1] = (struct input)VECTOR(DT_I64, 1, &at[s]);
            is_wrong |= at[s] + n[s] > ROWS;
            if (!is_wrong) {
                write_rows(&next, at[s], n[s], x);
                seen[s] = next;
            }
        }
        struct rt_invocation *inv = prepare(&w, program, state, inputs, 2 * step_count);
        enum status status = submit_and_wait(inv, is_cancelled);
        if (status == ST_OK) {
            for (uint32_t s = 0; s < step_count; s++) {
                assert_sums(&seen[s], inv, s);
            }
            cache = next;
            successes++;
        } else {
            assert_true(is_wrong ? status == ST_INVALID || is_cancelled
                                 : is_cancelled && status == ST_CANCELLED);
            failures++;
        }
        rt_invocation_free(inv);
    }
    assert_true(successes > 150 && failures > 20);
    rt_state_unref(state);
    rt_program_unref(program);
    close_world(&w);
}

static void rows_of_one_step(void **unused)
{
    (void)unused;
    rows_survive_failures_and_cancellation(1);
}

static void rows_of_two_steps(void **unused)
{
    (void)unused;
    rows_survive_failures_and_cancellation(2);
}

static void rows_of_three_steps(void **unused)
{
    (void)unused;
    rows_survive_failures_and_cancellation(3);
}

/* ---- partial cascades ------------------------------------------------------------------------ */

static void on_cascade_done(struct rt_cascade *cascade, enum status status, void *arg)
{
    (void)cascade;
    on_done(NULL, status, arg);
}

/* Calls without edges, on two states in turns; the third one failed before its turn. Calls of one
 * state run in order, and each keeps its writes. */
static void calls_of_one_state_follow_each_other(void **unused)
{
    enum { CALLS = 9, FAILED = 2 };
    static const struct rt_cascade_layout layout = {.step_count = CALLS};
    const float data[] = {0, 0, 0};
    const struct input input = VECTOR(DT_F32, 3, data);
    struct world w;
    struct rt_state *states[2];
    (void)unused;
    open_world(&w);
    struct rt_cascade *cascade = rt_cascade_new(&layout, true);
    assert_non_null(cascade);
    assert_ok(w.err, rt_state_new(w.models[RUNNING], &states[0], &w.err));
    assert_ok(w.err, rt_state_new(w.models[RUNNING], &states[1], &w.err));
    for (int64_t round = 0; round < 20; round++) {
        struct done done = DONE_INIT;
        uint32_t step;
        for (uint32_t i = 0; i < CALLS; i++) {
            if (i == FAILED) {
                error_set(&w.err, ST_INVALID, "wrong");
                rt_cascade_fail_step(cascade, i, &w.err);
            } else {
                rt_cascade_set_step(
                    cascade, i,
                    begin_call(method_of(w.models[RUNNING]), w.pool, states[i % 2], &input, 1));
            }
        }
        assert_ok(w.err, rt_cascade_prepare(cascade, RT_PREPARE_ALL, &step, &w.err));
        rt_cascade_submit(cascade, NULL, 0, HAL_CALLER_QUICK, on_cascade_done, &done);
        assert_int_equal(await_done(&done), ST_OK);
        for (uint32_t i = 0; i < CALLS; i++) {
            int64_t before = (i + 1 - i % 2) / 2 - (i % 2 == 0 && i > FAILED);
            assert_int_equal(rt_cascade_status(cascade, i), i == FAILED ? ST_INVALID : ST_OK);
            if (i != FAILED) {
                assert_int_equal(count_of(rt_cascade_step(cascade, i), 1), 4 * round + before + 1);
            }
        }
        rt_cascade_reset(cascade);
    }
    rt_cascade_free(cascade);
    rt_state_unref(states[0]);
    rt_state_unref(states[1]);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_advances_all_of_its_state_or_nothing),
        cmocka_unit_test(pipelines_in_pipelines_have_states_in_states),
        cmocka_unit_test(steps_with_several_blocks_are_undone),
        cmocka_unit_test(rows_of_one_step),
        cmocka_unit_test(rows_of_two_steps),
        cmocka_unit_test(rows_of_three_steps),
        cmocka_unit_test(calls_of_one_state_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
