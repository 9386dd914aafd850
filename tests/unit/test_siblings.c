/* SPDX-License-Identifier: MIT */
/*
 * Steps of sequences of two adapters as one call, on the models of tests/models/adapters: each
 * sequence gets the bits that it gets alone.
 */
#include "config.h"

#include "runtime/call/siblings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/call/invocation.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define ROWS 4
#define STEPS 8
#define VOCAB 256
#define POOL_BYTES ((size_t)64 << 20)

struct adapter {
    struct rt_program *program;
    struct rt_method *method;
};

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct adapter base, red, blue;
    struct error err;
};

struct row {
    const struct adapter *adapter;
    struct rt_state *state;
    int64_t position;
    struct rt_invocation *call;
    struct done done;
    float logits[STEPS][VOCAB]; /* of its steps alone */
};

static const struct rt_pace patient = {.budget_ns = 600000000000u};

static void load(struct world *w, const char *name, struct adapter *out)
{
    char model[64], data[1024];
    const char *top = getenv("top_srcdir"), *paths[] = {data};
    const struct rt_load_options options = {
        .device = w->device, .poison_workspaces = true, .data_paths = paths, .data_count = 1};
    snprintf(data, sizeof(data), "%s/tests/models/adapters/foundation.ptd", top ? top : ".");
    snprintf(model, sizeof(model), "adapters/%s", name);
    out->program = load_model(model, &options);
    out->method = rt_program_find_method(out->program, span_str("forward"));
    int64_t rows, proven = 1;
    assert_ok(w->err, rt_batch_open(out->method, &rows, &w->err));
    assert_ok(w->err, rt_batch_prove(out->method, w->pool, &patient, ROWS, &proven, &w->err));
    assert_int_equal(proven, ROWS);
}

static int set_up(void **state)
{
    static struct world w;
    const struct hal_device_options two = {.workers = 2};
    w = (struct world){0};
    assert_ok(w.err, hal_device_open("cpu", &two, &w.device, &w.err));
    assert_ok(w.err, hal_pool_new(w.device, POOL_BYTES, &w.pool, &w.err));
    load(&w, "base", &w.base);
    load(&w, "red", &w.red);
    load(&w, "blue", &w.blue);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    rt_program_unref(w->base.program);
    rt_program_unref(w->red.program);
    rt_program_unref(w->blue.program);
    assert_int_equal(reserved_count(w->pool), 0);
    hal_pool_free(w->pool);
    hal_device_unref(w->device);
    return 0;
}

static void plan_step(struct world *w, struct row *row, unsigned number)
{
    int64_t token = (row->position * 37 + number * 101 + 5) % VOCAB, position = row->position;
    const struct input inputs[] = {{DT_I64, {.rank = 2, .dims = {1, 1}}, &token},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &position}};
    row->call = begin_call(row->adapter->method, w->pool, row->state, inputs, 2);
    row->done.is_done = false;
    assert_ok(w->err, rt_invocation_plan(row->call, RT_PREPARE_ALL, &w->err));
}

/* What the row's sequence gets alone; then it begins anew. */
static void open_row(struct world *w, struct row *row, const struct adapter *adapter,
                     unsigned number)
{
    *row = (struct row){.adapter = adapter, .done = DONE_INIT};
    assert_ok(w->err, rt_state_new(adapter->program, &row->state, &w->err));
    for (; row->position < STEPS; row->position++) {
        plan_step(w, row, number);
        assert_ok(w->err, rt_invocation_prepare(row->call, RT_PREPARE_ALL, &w->err));
        assert_int_equal(submit_and_wait(row->call, false), ST_OK);
        memcpy(row->logits[row->position], rt_invocation_result(row->call, 0)->bytes.ptr,
               sizeof(row->logits[0]));
        rt_invocation_free(row->call);
    }
    rt_state_unref(row->state);
    assert_ok(w->err, rt_state_new(adapter->program, &row->state, &w->err));
    row->position = 0;
}

static void step_together(struct world *w, struct row *rows, uint32_t count)
{
    struct rt_invocation *calls[ROWS];
    void *args[ROWS];
    for (uint32_t i = 0; i < count; i++) {
        plan_step(w, &rows[i], i);
        calls[i] = rows[i].call;
        args[i] = &rows[i].done;
        assert_int_equal(rt_batch_rows(calls[i]), 1);
        assert_true(rt_batch_fits(calls[0], calls[i]));
    }
    assert_ok(w->err, rt_batch_submit(calls, args, count, on_done, &w->err));
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(await_done(&rows[i].done), ST_OK);
        assert_memory_equal(rt_invocation_result(calls[i], 0)->bytes.ptr,
                            rows[i].logits[rows[i].position], sizeof(rows[i].logits[0]));
        rt_invocation_free(calls[i]);
        rows[i].position++;
    }
}

/* The base lacks products that its adapters have. */
static void a_base_is_no_sibling(void **state)
{
    struct world *w = *state;
    assert_int_equal(rt_siblings_meet(w->red.method, w->base.method, &w->err), ST_UNSUPPORTED);
    assert_false(rt_siblings_are(w->red.method, w->base.method));
}

static void prove(struct world *w)
{
    int64_t proven = 1, worth = 0;
    assert_ok(w->err, rt_siblings_meet(w->blue.method, w->red.method, &w->err));
    assert_ok(w->err, rt_siblings_meet(w->red.method, w->blue.method, &w->err));
    assert_true(rt_siblings_are(w->red.method, w->blue.method));
    assert_ok(w->err, rt_siblings_prove(w->blue.method, w->red.method, w->pool, &patient, ROWS,
                                        &proven, &w->err));
    assert_int_equal(proven, ROWS);
    assert_ok(w->err, rt_siblings_measure(w->blue.method, w->red.method, w->pool, &patient, proven,
                                          &worth, &w->err));
    assert_true(worth >= 1 && worth <= ROWS);
}

/* Rows of both, in any order; the weights in common are read once. */
static void rows_of_siblings(void **state)
{
    struct world *w = *state;
    struct row rows[ROWS];
    prove(w);
    for (unsigned first = 0; first < 2; first++) {
        for (unsigned i = 0; i < ROWS; i++) {
            open_row(w, &rows[i], i % 3 == first ? &w->red : &w->blue, i);
        }
        for (uint32_t i = 0; i < STEPS; i++) {
            step_together(w, rows, 2 + i % (ROWS - 1));
            for (unsigned k = 2 + i % (ROWS - 1); k < ROWS; k++) {
                rt_state_unref(rows[k].state);
                open_row(w, &rows[k], rows[k].adapter, k);
            }
        }
        for (unsigned i = 0; i < ROWS; i++) {
            rt_state_unref(rows[i].state);
        }
    }
}

/* A row that is refused runs alone, and so do the others: none is harmed. */
static void a_row_fails_alone(void **state)
{
    struct world *w = *state;
    struct row rows[2];
    void *args[] = {&rows[0].done, &rows[1].done};
    open_row(w, &rows[0], &w->red, 0);
    open_row(w, &rows[1], &w->blue, 1);
    plan_step(w, &rows[0], 0);
    rows[1].position = 1000; /* behind the cache */
    plan_step(w, &rows[1], 1);
    struct rt_invocation *calls[] = {rows[0].call, rows[1].call};
    assert_ok(w->err, rt_batch_submit(calls, args, 2, on_done, &w->err));
    assert_int_equal(await_done(&rows[0].done), ST_OK);
    assert_int_equal(await_done(&rows[1].done), ST_INVALID);
    assert_memory_equal(rt_invocation_result(calls[0], 0)->bytes.ptr, rows[0].logits[0],
                        sizeof(rows[0].logits[0]));
    for (unsigned i = 0; i < 2; i++) {
        rt_invocation_free(calls[i]);
        rt_state_unref(rows[i].state);
    }
}

/* The one that met the other first is gone; a new one takes its place. */
static void a_sibling_leaves(void **state)
{
    struct world *w = *state;
    struct row rows[ROWS];
    rt_program_unref(w->red.program);
    load(w, "red", &w->red);
    assert_false(rt_siblings_are(w->red.method, w->blue.method));
    prove(w);
    for (unsigned i = 0; i < ROWS; i++) {
        open_row(w, &rows[i], i % 2 ? &w->red : &w->blue, i);
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        step_together(w, rows, ROWS);
    }
    for (unsigned i = 0; i < ROWS; i++) {
        rt_state_unref(rows[i].state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_base_is_no_sibling),
        cmocka_unit_test(rows_of_siblings),
        cmocka_unit_test(a_row_fails_alone),
        cmocka_unit_test(a_sibling_leaves),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
