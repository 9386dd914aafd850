/* SPDX-License-Identifier: MIT */
/* A serving by itself: its device, or the CPU in its place, and memory that goes back when nobody
 * uses it. */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "tests/unit/serving_support.h"

static struct serving_world world;

static int set_up(void **state)
{
    open_serving_world(&world);
    begin_serving(&world, 0, NULL);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    close_serving_world(*state);
    return 0;
}

/* ---- the device ------------------------------------------------------------------------------ */

static void the_cpu_may_take_the_place_of_a_device(void **state)
{
    struct serving_world *w = *state;
    struct serving *serving = NULL;
#ifndef PTED_VULKAN
    skip(); /* without its driver this is no device's name */
#endif
    assert_ok(w->err, serving_new(&w->options, "vulkan:99", true, &serving, &w->err));
    assert_string_equal(hal_device_props(serving->device)->name, "cpu");
    expect_log(w, "; the CPU computes\n");
    assert_ok(w->err, serving_verify(serving, &w->err));
    serving_free(serving);
    serving = NULL;
    assert_int_not_equal(serving_new(&w->options, "vulkan:99", false, &serving, &w->err), ST_OK);
    assert_null(serving);
    serving_free(NULL);
}

/* A word that is no device is the operator's mistake. */
static void an_unknown_device_is_not_replaced(void **state)
{
    struct serving_world *w = *state;
    struct serving *serving = NULL;
    w->options.cpu_level = "no-such-level";
    assert_fails(w->err, serving_new(&w->options, "cpu", true, &serving, &w->err), ST_INVALID,
                 "no-such-level");
    w->options.cpu_level = NULL;
    expect_silence(w);
}

/* ---- memory that goes back ------------------------------------------------------------------- */

static void expect_look(struct serving_world *w, uint64_t ms)
{
    uint64_t due_ms;
    assert_true(is_timer_set(&w->trim.timer, &due_ms));
    assert_int_equal(due_ms, ms);
    assert_false(is_work_waiting(&w->trim.work));
}

static void an_idle_daemon_gives_its_heap_back_once(void **state)
{
    struct serving_world *w = *state;
    uint64_t due_ms;
    trim_note_use(&w->trim);
    for (int look = 0; look < 5; look++) {
        expect_look(w, 1000);
        pass_ms(1000);
    }
    assert_false(is_timer_set(&w->trim.timer, &due_ms));
    assert_true(is_work_waiting(&w->trim.work));
    assert_true(w->trim.is_working);
    run_work(&w->trim.work);
    assert_false(w->trim.is_working);
    assert_false(is_timer_set(&w->trim.timer, &due_ms));
}

static void each_use_begins_the_wait_anew(void **state)
{
    struct serving_world *w = *state;
    trim_note_use(&w->trim);
    pass_ms(4500);
    expect_look(w, 500); /* which would be the last one */
    trim_note_use(&w->trim);
    expect_look(w, 500); /* the timer goes on */
    pass_ms(4499);
    assert_false(is_work_waiting(&w->trim.work));
    pass_ms(1);
    assert_true(is_work_waiting(&w->trim.work));
    trim_note_use(&w->trim); /* while a thread trims */
    pass_ms(6000);
    assert_int_equal(works_waiting(), 1);
    run_work(&w->trim.work);
    pass_ms(1000);
    assert_true(is_work_waiting(&w->trim.work)); /* once more, for that use */
}

/* Memory of calls goes back in slices when it has not been used for two seconds. */
static void a_pool_gives_memory_back_little_by_little(void **state)
{
    struct serving_world *w = *state;
    struct hal_pool *pool = w->servings.current->transfers;
    struct hal_buffer *buffer;
    uint64_t due_ms;
    unsigned slices = 0;
    assert_ok(w->err, hal_pool_reserve(pool, (size_t)7 << 20, &buffer, &w->err));
    memset(hal_buffer_map(buffer), 1, (size_t)7 << 20);
    hal_buffer_unref(buffer);
    trim_note_use(&w->trim);
    while (is_timer_set(&w->trim.timer, &due_ms)) {
        slices += due_ms == 10;
        pass_ms(due_ms);
    }
    assert_int_equal(slices, 1); /* 4 MiB and then the rest */
    assert_true(is_work_waiting(&w->trim.work));
}

static void a_lost_device_has_no_memory_to_give(void **state)
{
    struct serving_world *w = *state;
    trim_note_use(&w->trim);
    servings_shed(&w->servings);
    assert_int_equal(w->leaves, 1);
    servings_shed(&w->servings); /* for the next attempt */
    pass_ms(5000);
    assert_true(is_work_waiting(&w->trim.work));
}

static void a_loop_that_closes_is_not_kept(void **state)
{
    struct serving_world *w = *state;
    uint64_t due_ms;
    w->loop.is_closing = true;
    trim_note_use(&w->trim);
    assert_false(is_timer_set(&w->trim.timer, &due_ms));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_cpu_may_take_the_place_of_a_device),
        TEST(an_unknown_device_is_not_replaced),
        TEST(an_idle_daemon_gives_its_heap_back_once),
        TEST(each_use_begins_the_wait_anew),
        TEST(a_pool_gives_memory_back_little_by_little),
        TEST(a_lost_device_has_no_memory_to_give),
        TEST(a_loop_that_closes_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
