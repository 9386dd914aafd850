/* SPDX-License-Identifier: MIT */
/* Caches that are written by index: the method in its own form, and in that of a file whose
 * operators write rows at a position (runtime/code/caches.h). */
#include "config.h"

#include "runtime/code/caches.h"

#include <math.h>
#include <string.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/program/method.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define MODEL "static_cache/model"
enum { VOCAB = 448, CONTEXT = 128, TOKENS = 24, BUFFERS = 4 };

/* The same program twice: as its file has it, and in the other form. */
struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *programs[2];
    struct rt_method *methods[2];
    struct rt_state *states[2];
    struct error err;
};

static int set_up(void **state)
{
    static struct world w;
    w = (struct world){0};
    open_two_workers(&w.device, &w.pool);
    for (int i = 0; i < 2; i++) {
        const struct rt_load_options options = {
            .device = w.device, .poison_workspaces = true, .is_unfused = i == 0};
        w.programs[i] = load_model(MODEL, &options);
        w.methods[i] = rt_program_find_method(w.programs[i], span_str("forward"));
        assert_non_null(w.methods[i]);
        assert_ok(w.err, rt_state_new(w.programs[i], &w.states[i], &w.err));
    }
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 2; i++) {
        rt_state_unref(w->states[i]);
        rt_program_unref(w->programs[i]);
    }
    close_two_workers(w->device, w->pool);
    return 0;
}

/* A call of |count| tokens at |position|. */
static enum status feed(struct world *w, int which, const int64_t *ids, int64_t count,
                        int64_t position, float *out)
{
    const struct input inputs[] = {
        {DT_I64, {.rank = 2, .dims = {1, count}}, ids},
        {DT_I64, {.rank = 1, .dims = {1}}, &position},
    };
    struct rt_invocation *inv = begin_call(w->methods[which], w->pool, w->states[which], inputs, 2);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    enum status status = submit_and_wait(inv, false);
    if (status == ST_OK) {
        const struct rt_result *result = rt_invocation_result(inv, 0);
        assert_int_equal(result->bytes.len, VOCAB * sizeof(float));
        memcpy(out, result->bytes.ptr, VOCAB * sizeof(float));
    }
    rt_invocation_free(inv);
    return status;
}

static void feed_both(struct world *w, const int64_t *ids, int64_t count, int64_t position)
{
    static float results[2][VOCAB];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(feed(w, i, ids, count, position, results[i]), ST_OK);
    }
    for (int i = 0; i < VOCAB; i++) {
        assert_true(fabsf(results[0][i] - results[1][i]) < 1e-4F);
    }
}

static void choose_ids(int64_t *ids)
{
    for (int64_t i = 0; i < TOKENS; i++) {
        ids[i] = (i * 37 + 11) % VOCAB;
    }
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
    feed_both(w, ids, TOKENS, CONTEXT - TOKENS - 1);
    feed_both(w, ids, 1, CONTEXT - 1);
}

/* The file's form writes whole buffers, and one more that nobody reads. */
static void rows_are_written_at_their_position(void **state)
{
    struct world *w = *state;
    int64_t ids[TOKENS];
    static float out[VOCAB];
    choose_ids(ids);
    assert_false(rt_method_is_positional(w->methods[0]));
    assert_true(rt_method_is_positional(w->methods[1]));
    assert_int_equal(feed(w, 0, ids, 6, 0, out), ST_OK);
    assert_int_equal(feed(w, 1, ids, 6, 0, out), ST_OK);
    assert_false(rt_state_wrote(w->states[0], 0, 6));
    assert_true(rt_state_wrote(w->states[1], 0, 6));
    assert_int_equal(feed(w, 1, ids, 1, 6, out), ST_OK);
    assert_true(rt_state_wrote(w->states[1], 6, 7));
    uint32_t written = 0;
    for (uint32_t i = 0; i < w->methods[1]->state_count; i++) {
        written += w->methods[1]->states[i].is_written;
    }
    assert_int_equal(written, BUFFERS);
}

static void positions_outside_the_caches_fail(void **state)
{
    struct world *w = *state;
    int64_t ids[TOKENS];
    static float out[VOCAB];
    choose_ids(ids);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(feed(w, i, ids, 1, CONTEXT, out), ST_INVALID);
        assert_int_equal(feed(w, i, ids, TOKENS, CONTEXT - 3, out), ST_INVALID);
    }
    assert_int_equal(feed(w, 1, ids, 1, -1, out), ST_INVALID);
    feed_both(w, ids, 4, 0); /* the states are as they were */
}

/* Caches that one call writes whole, rings, windows that move. */
static void other_buffers_stay(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"whisper/model", "ring", "window"};
    const struct rt_load_options options = {.device = w->device};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct rt_program *program = load_model(names[i], &options);
        for (uint32_t m = 0; m < rt_program_method_count(program); m++) {
            assert_false(rt_method_is_positional(rt_program_method(program, m)));
        }
        rt_program_unref(program);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(both_forms_say_the_same),
        TEST(rows_are_written_at_their_position),
        TEST(positions_outside_the_caches_fail),
        TEST(other_buffers_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
