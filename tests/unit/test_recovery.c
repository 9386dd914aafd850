/* SPDX-License-Identifier: MIT */
/* Recovery of a lost device without a device that is lost: what it waits for, how often it tries,
 * and what it leaves to calls that hold the old serving. */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "tests/unit/serving_support.h"

static struct serving_world world;

static int set_up(void **state)
{
    open_serving_world(&world);
    put_model_file(&world, "sum.pte", "add");
    serve_folder(&world, 0, NULL);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    close_serving_world(*state);
    return 0;
}

/* Makes each opening of the device fail. */
static void refuse_device(struct serving_world *w, bool is_refused)
{
    w->options.cpu_level = is_refused ? "no-such-level" : NULL;
}

/* One attempt, which begins after |ms|. */
static void attempt(struct serving_world *w, uint64_t ms)
{
    uint64_t due_ms;
    assert_true(is_timer_set(&w->recovery.timer, &due_ms));
    assert_int_equal(due_ms, ms);
    pass_ms(ms);
    run_work(&w->recovery.work);
}

static void expect_serving(struct serving_world *w, const struct serving *before)
{
    struct model *model = model_of(w, "sum");
    assert_true(w->servings.current != before);
    assert_true(model_is_ready(model));
    assert_int_equal(w->changes.holds, 0);
    assert_false(w->changes.keeps_idle);
    assert_false(w->recovery.is_active);
    model_unref(model);
}

static void models_are_loaded_again_on_a_new_device(void **state)
{
    struct serving_world *w = *state;
    struct model *model = model_of(w, "sum");
    model->stats->inference_count = 7;
    model_unref(model);
    recovery_begin(&w->recovery);
    expect_log(w, "error: cpu: the device was lost; the models are being loaded again\n"
                  "notify: STATUS=the device was lost; the models are being loaded again\n");
    expect_ready(w, "sum", false);
    assert_int_equal(w->changes.holds, 1);
    assert_true(w->changes.keeps_idle);
    recovery_begin(&w->recovery); /* which is under way */
    expect_silence(w);
    pass_ms(0);
    assert_null(w->servings.current->device); /* nobody holds it: its memory has gone */
    assert_fails(w->err, serving_verify(w->servings.current, &w->err), ST_UNAVAILABLE,
                 "the device was lost");
    do_work(&w->recovery.work);
    expect_ready(w, "sum", false);
    end_work(&w->recovery.work);
    expect_log(w, "notice: serving 1 of 1 models again, on cpu\n"
                  "notify: STATUS=serving 1 of 1 models\n");
    expect_serving(w, NULL);
    assert_null(w->servings.current->older);
    assert_ok(w->err, serving_verify(w->servings.current, &w->err));
    model = model_of(w, "sum");
    assert_int_equal(model->stats->inference_count, 7); /* it goes on counting */
    model_unref(model);
    assert_int_equal(w->leaves, 2); /* shed, and replaced */
    assert_int_equal(w->enters, 1);
}

static void calls_that_hold_the_old_device_have_two_seconds(void **state)
{
    struct serving_world *w = *state;
    struct serving *old = servings_hold(&w->servings);
    uint64_t due_ms;
    recovery_begin(&w->recovery);
    for (int ms = 0; ms < 2000; ms += 10) {
        pass_ms(ms ? 10 : 0);
        assert_false(is_work_waiting(&w->recovery.work));
        assert_true(is_timer_set(&w->recovery.timer, &due_ms));
        assert_int_equal(due_ms, 10);
    }
    pass_ms(10);
    run_work(&w->recovery.work); /* beside the old one */
    expect_serving(w, old);
    assert_ptr_equal(w->servings.current->older, old);
    assert_non_null(old->device);
    servings_let_go(&w->servings, old); /* frees it */
    assert_null(w->servings.current->older);
}

static void the_last_call_lets_the_recovery_begin(void **state)
{
    struct serving_world *w = *state;
    struct serving *old = servings_hold(&w->servings);
    recovery_begin(&w->recovery);
    pass_ms(30);
    assert_false(is_work_waiting(&w->recovery.work));
    servings_let_go(&w->servings, old);
    assert_non_null(old->device); /* it is still the one in use */
    pass_ms(10);
    assert_null(old->device);
    run_work(&w->recovery.work);
    expect_serving(w, NULL);
}

/* Each of two old servings goes with its own last call. */
static void old_servings_go_in_any_order(void **state)
{
    struct serving_world *w = *state;
    struct serving *first = servings_hold(&w->servings), *second;
    recovery_begin(&w->recovery);
    pass_ms(2000);
    run_work(&w->recovery.work);
    second = servings_hold(&w->servings);
    recovery_begin(&w->recovery);
    pass_ms(2000);
    run_work(&w->recovery.work);
    assert_ptr_equal(w->servings.current->older, second);
    assert_ptr_equal(second->older, first);
    servings_let_go(&w->servings, first);
    assert_null(second->older);
    servings_let_go(&w->servings, second);
    assert_null(w->servings.current->older);
}

static void attempts_come_later_and_later_and_then_the_cpu_computes(void **state)
{
    struct serving_world *w = *state;
    w->recovery.device_name = "no-such-device";
    recovery_begin(&w->recovery);
    forget_log(w);
    attempt(w, 0);
    expect_log(w, "error: loading the models again: ");
    assert_true(w->recovery.is_active);
    attempt(w, 1000);
    forget_log(w);
    attempt(w, 2000);
    expect_log(w, "error: device no-such-device: given up after 3 tries; the CPU computes");
    expect_ready(w, "sum", false);
    assert_int_equal(w->changes.holds, 1);
    attempt(w, 3000);
    expect_log(w, "serving 1 of 1 models again, on cpu");
    expect_serving(w, NULL);
}

static void a_device_that_comes_back_is_used_again(void **state)
{
    struct serving_world *w = *state;
    refuse_device(w, true);
    recovery_begin(&w->recovery);
    attempt(w, 0);
    expect_log(w, "no-such-level");
    refuse_device(w, false);
    attempt(w, 1000);
    expect_serving(w, NULL);
    assert_string_equal(w->recovery.device_name, "cpu");
    assert_int_equal(w->recovery.tries, 2);
}

static void a_loss_soon_after_the_last_one_is_the_same_trouble(void **state)
{
    struct serving_world *w = *state;
    for (unsigned i = 1; i <= 3; i++) {
        recovery_begin(&w->recovery);
        attempt(w, 0);
        assert_int_equal(w->recovery.tries, i);
        pass_ms(60000);
    }
    forget_log(w);
    recovery_begin(&w->recovery);
    expect_log(w, "given up after 3 tries");
    attempt(w, 0);
    pass_ms(60001);
    recovery_begin(&w->recovery);
    assert_int_equal(w->recovery.tries, 1);
    attempt(w, 0);
    expect_serving(w, NULL);
}

/* A change waits, and no idle model goes meanwhile. */
static void changes_wait_for_the_recovery(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    const struct changes_order order = {.kind = UPDATE_UNLOAD, .name = "sum"};
    recovery_begin(&w->recovery);
    init_waiter(&waiter, "sum");
    assert_ok(w->err, changes_begin(&w->changes, &waiter.waiter, &order, &w->err));
    assert_false(is_work_waiting(&w->changes.work));
    attempt(w, 0);
    expect_ready(w, "sum", true);
    assert_true(is_work_waiting(&w->changes.work));
    run_work(&w->changes.work);
    assert_int_equal(waiter.told, 1);
    assert_int_equal(waiter.why.code, ST_OK);
    expect_ready(w, "sum", false);
    recovery_begin(&w->recovery); /* which leaves it unloaded */
    attempt(w, 0);
    expect_ready(w, "sum", false);
    expect_log(w, "serving 0 of 1 models again");
}

static void retired_models_of_the_lost_device_go_first(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    const struct changes_order order = {.kind = UPDATE_LOAD, .name = "sum"};
    init_waiter(&waiter, "sum");
    assert_ok(w->err, changes_begin(&w->changes, &waiter.waiter, &order, &w->err));
    run_work(&w->changes.work);
    assert_int_equal(w->servings.current->users, 1); /* for the old model */
    recovery_begin(&w->recovery);
    pass_ms(0);
    assert_int_equal(w->changes.retired_count, 0);
    assert_true(is_work_waiting(&w->recovery.work)); /* it has waited for nobody */
    run_work(&w->recovery.work);
    expect_serving(w, NULL);
}

static void a_daemon_that_stops_recovers_nothing(void **state)
{
    struct serving_world *w = *state;
    struct serving *before = w->servings.current;
    recovery_begin(&w->recovery);
    pass_ms(0);
    do_work(&w->recovery.work);
    w->loop.is_closing = true;
    end_work(&w->recovery.work);
    assert_ptr_equal(w->servings.current, before);
    w->recovery.is_active = false;
    forget_log(w);
    recovery_begin(&w->recovery);
    expect_silence(w);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(models_are_loaded_again_on_a_new_device),
        TEST(calls_that_hold_the_old_device_have_two_seconds),
        TEST(the_last_call_lets_the_recovery_begin),
        TEST(old_servings_go_in_any_order),
        TEST(attempts_come_later_and_later_and_then_the_cpu_computes),
        TEST(a_device_that_comes_back_is_used_again),
        TEST(a_loss_soon_after_the_last_one_is_the_same_trouble),
        TEST(changes_wait_for_the_recovery),
        TEST(retired_models_of_the_lost_device_go_first),
        TEST(a_daemon_that_stops_recovers_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
