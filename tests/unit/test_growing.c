/* SPDX-License-Identifier: MIT */
/* Caches that grow from call to call: the method whose graph has become attention over them
 * (runtime/code/caches.h), and the same one in the form of its file (runtime/load/carry.h). */
#include "config.h"

#include "runtime/code/caches.h"

#include <math.h>
#include <string.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/call/invocation.h"
#include "runtime/call/pace.h"
#include "runtime/call/speculation.h"
#include "runtime/graph/op.h"
#include "runtime/load/load.h"
#include "runtime/program/carries.h"
#include "runtime/program/method.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define MODEL "exported/growing/decode"
enum { VOCAB = 100, CONTEXT = 64, TOKENS = 24, BUFFERS = 4, LAYERS = 2 };

static const struct rt_carry items[BUFFERS] = {{2, 1}, {3, 2}, {4, 3}, {5, 4}};
static const struct rt_carries carries = {.items = items, .count = BUFFERS, .result_count = 5};

/* The same program twice: with its caches cut from buffers, and in the other form. */
struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *programs[2];
    struct rt_method *methods[2];
    struct rt_state *states[2];
    struct error err;
};

static const struct rt_pace patient = {.budget_ns = 600000000000ull};

static struct rt_method *open_method(struct rt_program *program)
{
    struct rt_method *method = rt_program_find_method(program, span_str("forward"));
    assert_non_null(method);
    assert_null(rt_method_failure(method));
    return method;
}

static void load_both(struct world *w, const struct rt_carries *said)
{
    for (int i = 0; i < 2; i++) {
        const struct rt_load_options options = {
            .device = w->device, .poison_workspaces = true, .is_unfused = i == 0, .carries = said};
        w->programs[i] = load_model(MODEL, &options);
        w->methods[i] = open_method(w->programs[i]);
        assert_ok(w->err, rt_state_new(w->programs[i], &w->states[i], &w->err));
    }
}

static void drop_both(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        rt_state_unref(w->states[i]);
        rt_program_unref(w->programs[i]);
    }
}

static int set_up(void **state)
{
    static struct world w;
    w = (struct world){0};
    open_two_workers(&w.device, &w.pool);
    load_both(&w, &carries);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    drop_both(w);
    close_two_workers(w->device, w->pool);
    return 0;
}

/* A call of |count| tokens behind |rows| that the caches have; logits of the last one at |out|. */
static enum status feed(struct world *w, int which, const int64_t *ids, int64_t count, int64_t rows,
                        float *out)
{
    int64_t places[TOKENS];
    for (int64_t i = 0; i < count; i++) {
        places[i] = rows + i;
    }
    const struct input inputs[] = {
        {DT_I64, {.rank = 2, .dims = {1, count}}, ids},
        {DT_I64, {.rank = 2, .dims = {1, count}}, places},
        {DT_I64, {.rank = 1, .dims = {1}}, &rows},
    };
    struct rt_invocation *inv = begin_call(w->methods[which], w->pool, w->states[which], inputs, 3);
    enum status status = rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err);
    status = status == ST_OK ? submit_and_wait(inv, false) : status;
    if (status == ST_OK) {
        const struct rt_result *result = rt_invocation_result(inv, 0);
        size_t last = (size_t)(count - 1) * VOCAB * sizeof(float);
        assert_int_equal(result->bytes.len, last + VOCAB * sizeof(float));
        memcpy(out, result->bytes.ptr + last, VOCAB * sizeof(float));
    }
    rt_invocation_free(inv);
    return status;
}

static void feed_both(struct world *w, const int64_t *ids, int64_t count, int64_t rows)
{
    static float results[2][VOCAB];
    for (int i = 0; i < 2; i++) {
        assert_ok(w->err, feed(w, i, ids, count, rows, results[i]));
    }
    for (int i = 0; i < VOCAB; i++) {
        assert_true(fabsf(results[0][i] - results[1][i]) < 1e-4F);
    }
}

static void choose_ids(int64_t *ids)
{
    for (int64_t i = 0; i < TOKENS; i++) {
        ids[i] = 5 + (i * 37 + 11) % (VOCAB - 5);
    }
}

static uint32_t count_nodes(const struct rt_method *method, const char *name)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < method->code.block_count; b++) {
        const struct rt_graph *graph = &method->code.blocks[b]->graph;
        for (uint32_t i = 0; i < graph->node_count; i++) {
            count += strcmp(graph->nodes[i].op->name, name) == 0;
        }
    }
    return count;
}

static void the_graph_has_attention(void **state)
{
    struct world *w = *state;
    const struct rt_method *file = w->methods[0], *made = w->methods[1];
    assert_int_equal(count_nodes(file, "slice_scatter"), BUFFERS);
    assert_int_equal(count_nodes(made, "attention"), LAYERS);
    assert_int_equal(count_nodes(made, "write_rows"), BUFFERS);
    assert_int_equal(count_nodes(made, "slice_scatter"), 0);
    assert_int_equal(count_nodes(made, "expand"), 0);
    assert_int_equal(count_nodes(made, "pack_nk"), 0);
    assert_int_equal(rt_method_input_count(made), rt_method_input_count(file));
    assert_int_equal(rt_method_result_count(made), 1);
}

/* Prompts and steps, one behind the other, again from the beginning, and up to the last row. */
static void both_forms_say_the_same(void **state)
{
    struct world *w = *state;
    int64_t ids[TOKENS];
    choose_ids(ids);
    feed_both(w, ids, 9, 0);
    feed_both(w, ids + 9, 1, 9);
    feed_both(w, ids + 10, 1, 10);
    feed_both(w, ids + 3, 5, 11);
    feed_both(w, ids + 2, 7, 4);
    feed_both(w, ids, TOKENS, 11);
    feed_both(w, ids, TOKENS, CONTEXT - TOKENS - 1);
    feed_both(w, ids, 1, CONTEXT - 1);
}

static void rows_are_written_at_their_place(void **state)
{
    struct world *w = *state;
    int64_t ids[TOKENS];
    static float out[VOCAB];
    choose_ids(ids);
    assert_false(rt_method_is_positional(w->methods[0]));
    assert_true(rt_method_is_positional(w->methods[1]));
    assert_int_equal(rt_method_state_rows(w->methods[1]), CONTEXT);
    assert_ok(w->err, feed(w, 1, ids, 6, 0, out));
    assert_true(rt_state_wrote(w->states[1], 0, 6));
    assert_ok(w->err, feed(w, 1, ids, 1, 6, out));
    assert_true(rt_state_wrote(w->states[1], 6, 7));
}

/* Also of numbers of rows that no cache can have. */
static void rows_outside_the_caches_fail(void **state)
{
    static const int64_t wrong[] = {CONTEXT, CONTEXT + 1, -1, INT64_MIN, INT64_MAX};
    struct world *w = *state;
    int64_t ids[TOKENS];
    static float out[VOCAB];
    choose_ids(ids);
    feed_both(w, ids, 9, 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(feed(w, 1, ids, 1, wrong[i], out), ST_INVALID);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(feed(w, i, ids, TOKENS, CONTEXT - 3, out), ST_INVALID);
    }
    feed_both(w, ids + 9, 4, 9); /* the states are as they were */
}

/* Guesses need steps of one number, and their bits. */
static void steps_are_joined(void **state)
{
    struct world *w = *state;
    struct rt_method *method = w->methods[1];
    int64_t rows = 4, proven = 1, steps = 1;
    assert_ok(w->err, rt_batch_open(method, &rows, &w->err));
    assert_true(rows > 1);
    assert_ok(w->err, rt_batch_prove(method, w->pool, &patient, rows, &proven, &w->err));
    assert_int_equal(proven, rows);
    assert_ok(w->err, rt_speculation_prove(method, w->pool, &patient, 4, &steps, &w->err));
    assert_int_equal(steps, 4);
}

/* Caches that are handed on crosswise. */
static void other_descriptions_keep_the_form(void **state)
{
    static const struct rt_carry crossed[BUFFERS] = {{2, 2}, {3, 1}, {4, 3}, {5, 4}};
    static const struct rt_carries said = {crossed, BUFFERS, 5, 0};
    struct world *w = *state;
    int64_t ids[TOKENS];
    choose_ids(ids);
    drop_both(w);
    load_both(w, &said);
    assert_false(rt_method_is_positional(w->methods[1]));
    assert_int_equal(count_nodes(w->methods[1], "slice_scatter"), BUFFERS);
    feed_both(w, ids, 9, 0);
    feed_both(w, ids + 9, 1, 9);
    feed_both(w, ids + 10, 7, 10);
}

/* The first result is in front of those that are counted: an input that is changed. */
static void results_in_front_keep_the_form(void **state)
{
    static const struct rt_carry behind[BUFFERS] = {{2, 0}, {3, 1}, {4, 2}, {5, 3}};
    static const struct rt_carries said = {behind, BUFFERS, 4, 0};
    struct world *w = *state;
    const struct rt_load_options options = {.device = w->device, .carries = &said};
    struct rt_program *program = load_model(MODEL, &options);
    const struct rt_method *method = rt_program_method(program, 0);
    assert_int_equal(method->result_count, 0);
    assert_int_equal(count_nodes(method, "attention"), 0);
    rt_program_unref(program);
}

/* Two caches with one input, one result or both. */
static void descriptions_that_contradict_themselves(void **state)
{
    static const struct rt_carry items_of[][BUFFERS] = {
        {{2, 1}, {2, 2}, {4, 3}, {5, 4}},
        {{2, 1}, {3, 1}, {4, 3}, {5, 4}},
        {{2, 1}, {2, 1}, {2, 1}, {2, 1}},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof(items_of) / sizeof(items_of[0]); i++) {
        for (uint32_t count = 2; count <= BUFFERS; count++) {
            const struct rt_carries said = {items_of[i], count, 5, 0};
            const struct rt_load_options options = {.device = w->device, .carries = &said};
            struct rt_program *program = load_model(MODEL, &options);
            assert_int_equal(count_nodes(rt_program_method(program, 0), "attention"), 0);
            rt_program_unref(program);
        }
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_graph_has_attention),
        TEST(both_forms_say_the_same),
        TEST(rows_are_written_at_their_place),
        TEST(rows_outside_the_caches_fail),
        TEST(steps_are_joined),
        TEST(other_descriptions_keep_the_form),
        TEST(results_in_front_keep_the_form),
        TEST(descriptions_that_contradict_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
