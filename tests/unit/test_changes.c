/* SPDX-License-Identifier: MIT */
/* Changes of models without a daemon: their order, what waits for them, what a failure leaves as it
 * was, and models that leave. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "server/process/log.h"
#include "tests/unit/serving_support.h"

#define MS 1000000u

static struct serving_world world;

static int set_up(void **state)
{
    open_serving_world(&world);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    close_serving_world(*state);
    return 0;
}

static void order(struct serving_world *w, struct serving_waiter *waiter, enum update_kind kind,
                  const char *name)
{
    const struct changes_order order = {.kind = kind, .name = name};
    init_waiter(waiter, name);
    assert_ok(w->err, changes_begin(&w->changes, &waiter->waiter, &order, &w->err));
}

static void need(struct serving_world *w, struct serving_waiter *waiter, const char *name)
{
    init_waiter(waiter, name);
    assert_ok(w->err, changes_need(&w->changes, &waiter->waiter, name, &w->err));
}

static void make_change(struct serving_world *w)
{
    run_work(&w->changes.work);
}

static uint64_t unloads(struct serving_world *w, enum changes_unload why)
{
    return counter_get(&w->changes.counts.unloads[why]);
}

/* Retired models are looked at, and a thread frees those that nobody uses. */
static void free_retired(struct serving_world *w)
{
    pass_ms(50);
    if (is_work_waiting(&w->changes.going_work)) {
        run_work(&w->changes.going_work);
    }
}

/* ---- the start ------------------------------------------------------------------------------- */

static void calls_wait_for_the_first_models(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    put_model_file(w, "sum.pte", "add");
    begin_serving(w, 0, NULL);
    atomic_store(&w->proving.is_stopped, true);
    assert_ok(w->err, changes_start(&w->changes, &w->err));
    assert_true(changes_is_busy(&w->changes));
    need(w, &waiter, "");
    do_work(&w->changes.work);
    assert_int_equal(w->starts + waiter.told, 0); /* the loop has not heard of it */
    end_work(&w->changes.work);
    assert_int_equal(w->start.code, ST_OK);
    assert_int_equal(w->starts, 1);
    expect_told(&waiter, ST_OK, "");
    expect_ready(w, "sum", true);
    assert_false(changes_is_busy(&w->changes));
    init_waiter(&waiter, "");
    assert_fails(w->err, changes_need(&w->changes, &waiter.waiter, "", &w->err), ST_UNAVAILABLE,
                 "the daemon is stopping");
}

static void a_start_that_fails_tells_clients_less_than_the_log(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    char path[256];
    put_damaged_file(w, "bad.pte");
    path_in_folder(w, "bad.pte", path);
    begin_serving(w, 1, (char *[]){path});
    assert_ok(w->err, changes_start(&w->changes, &w->err));
    need(w, &waiter, "");
    make_change(w);
    assert_int_equal(w->start.code, ST_CORRUPT);
    assert_non_null(strstr(w->start.text, "bad"));
    expect_told(&waiter, ST_UNAVAILABLE, "the daemon is stopping");
}

static void the_start_refuses_its_waiters_when_the_daemon_stops(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter first, second;
    put_model_file(w, "sum.pte", "add");
    begin_serving(w, 0, NULL);
    changes_refuse_start(&w->changes); /* nothing waits */
    assert_ok(w->err, changes_start(&w->changes, &w->err));
    need(w, &first, "");
    need(w, &second, "");
    changes_forget(&w->changes, &second.waiter);
    changes_refuse_start(&w->changes);
    expect_told(&first, ST_UNAVAILABLE, "the daemon is stopping");
    assert_int_equal(second.told, 0);
    w->loop.is_closing = true;
    make_change(w);
    assert_int_equal(w->starts, 0); /* nobody is told of what a thread has loaded */
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void a_loaded_file_replaces_the_old_one(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    uint64_t due;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 0, NULL);
    struct model *before = model_of(w, "sum");
    put_model_file(w, "sum.pte", "mlp");
    order(w, &waiter, UPDATE_LOAD, "sum");
    assert_int_equal(waiter.told, 0);
    make_change(w);
    expect_told(&waiter, ST_OK, "");
    expect_log(w, "notice: model files: 1 loaded, 0 failed, 0 gone, 0 unchanged; serving 1 of 1");
    struct model *after = model_of(w, "sum");
    assert_ptr_not_equal(after, before);
    assert_int_equal(unloads(w, CHANGES_GONE) + unloads(w, CHANGES_ORDERED), 0);
    assert_int_equal(counter_get(&w->changes.counts.made), 1);
    assert_int_equal(w->ends, 1);
    assert_int_equal(w->changes.retired_count, 1);
    free_retired(w); /* a call holds it */
    assert_int_equal(w->changes.retired_count, 1);
    assert_true(is_timer_set(&w->changes.timer, &due));
    model_unref(before);
    pass_ms(50);
    assert_true(is_work_waiting(&w->changes.going_work));
    do_work(&w->changes.going_work);
    pass_ms(50); /* one look at a time */
    end_work(&w->changes.going_work);
    assert_int_equal(w->changes.retired_count, 0);
    assert_false(is_timer_set(&w->changes.timer, &due));
    assert_int_equal(w->servings.current->users, 0);
    model_unref(after);
}

static void a_load_that_fails_keeps_the_old_one(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 0, NULL);
    struct model *before = model_of(w, "sum");
    put_damaged_file(w, "sum.pte");
    order(w, &waiter, UPDATE_LOAD, "sum");
    make_change(w);
    expect_told(&waiter, ST_CORRUPT, "not a program that pted reads");
    expect_log(w, "warning: load of model 'sum': ");
    assert_int_equal(counter_get(&w->changes.counts.made), 0);
    assert_int_equal(counter_get(&w->changes.counts.refused), 1);
    assert_int_equal(w->changes.retired_count, 0);
    struct model *after = model_of(w, "sum");
    assert_ptr_equal(after, before);
    assert_true(model_is_ready(after));
    model_unref(after);
    model_unref(before);
    order(w, &waiter, UPDATE_UNLOAD, "none");
    make_change(w);
    expect_told(&waiter, ST_NOT_FOUND, "none");
    expect_log(w, "warning: unload of model 'none': ");
}

static void orders_are_carried_out_one_after_the_other(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter unload, load, twin;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 0, NULL);
    order(w, &unload, UPDATE_UNLOAD, "sum");
    order(w, &load, UPDATE_LOAD, "sum");
    order(w, &twin, UPDATE_LOAD, "sum");
    assert_int_equal(works_waiting(), 1);
    assert_int_equal(w->changes.waiting_count, 2);
    make_change(w);
    expect_told(&unload, ST_OK, "");
    assert_int_equal(load.told, 0);
    expect_ready(w, "sum", false);
    assert_int_equal(unloads(w, CHANGES_ORDERED), 1);
    changes_forget(&w->changes, &load.waiter); /* its client has gone; the change goes on */
    make_change(w);
    assert_int_equal(load.told + twin.told, 0);
    expect_ready(w, "sum", true);
    make_change(w);
    expect_told(&twin, ST_OK, "");
    assert_int_equal(counter_get(&w->changes.counts.made), 3);
}

static void too_many_orders_are_refused(void **state)
{
    struct serving_world *w = *state;
    static struct serving_waiter waiters[CHANGES_WAITING_MAX + 2];
    const struct changes_order one_more = {.kind = UPDATE_LOAD, .name = "sum"};
    struct serving_waiter *last = &waiters[CHANGES_WAITING_MAX + 1];
    serve_folder(w, 0, NULL);
    for (int i = 0; i < CHANGES_WAITING_MAX + 1; i++) { /* a thread has the first one */
        order(w, &waiters[i], UPDATE_UNLOAD, "none");
    }
    init_waiter(last, "sum");
    assert_fails(w->err, changes_begin(&w->changes, &last->waiter, &one_more, &w->err),
                 ST_EXHAUSTED, "64 changes of models wait already");
    w->loop.is_draining = true;
    make_change(w); /* the first one; nothing changes any more */
    expect_told(&waiters[0], ST_NOT_FOUND, "none");
    expect_told(&waiters[1], ST_UNAVAILABLE, "the daemon is stopping");
    expect_told(&waiters[CHANGES_WAITING_MAX], ST_UNAVAILABLE, "the daemon is stopping");
    assert_int_equal(last->told, 0);
    assert_int_equal(w->changes.waiting_count, 0);
    assert_fails(w->err, changes_begin(&w->changes, &last->waiter, &one_more, &w->err),
                 ST_UNAVAILABLE, "the daemon is stopping");
}

/* ---- scans ----------------------------------------------------------------------------------- */

static void scans_that_wait_are_one(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 0, NULL);
    order(w, &waiter, UPDATE_LOAD, "sum");
    put_model_file(w, "net.pte", "mlp");
    changes_scan(&w->changes, false);
    changes_scan(&w->changes, true);
    changes_scan(&w->changes, false);
    assert_int_equal(w->changes.waiting_count, 1);
    make_change(w);
    assert_true(w->changes.current->update.retries_failed);
    make_change(w);
    expect_ready(w, "net", true);
    expect_log(w, "model files: 1 loaded, 0 failed, 0 gone, 1 unchanged; serving 2 of 2 models");
    changes_scan(&w->changes, false);
    make_change(w);
    expect_silence(w); /* nothing has changed */
    drop_file(w, "net.pte");
    changes_scan(&w->changes, false);
    make_change(w);
    expect_log(w, "0 loaded, 0 failed, 1 gone, 1 unchanged; serving 1 of 1 models");
    assert_int_equal(unloads(w, CHANGES_GONE), 1);
}

static void a_scan_of_a_folder_that_has_gone_changes_nothing(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 0, NULL);
    char *folder = (char[]){"/tmp/test_changes_has_no_such_folder"};
    w->options.folders[w->options.folder_count++] = folder;
    changes_scan(&w->changes, false);
    make_change(w);
    expect_log(w, "error: looking for changed models: folder of models "
                  "/tmp/test_changes_has_no_such_folder: ");
    expect_ready(w, "sum", true);
    assert_int_equal(counter_get(&w->changes.counts.refused), 1);
}

/* ---- what interferes with a change ----------------------------------------------------------- */

static void a_held_change_is_made_again(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 0, NULL);
    order(w, &waiter, UPDATE_UNLOAD, "sum");
    changes_hold(&w->changes);
    changes_hold(&w->changes);
    make_change(w);
    assert_int_equal(waiter.told, 0);
    expect_ready(w, "sum", true);
    assert_int_equal(works_waiting(), 0);
    changes_release(&w->changes);
    assert_int_equal(works_waiting(), 0); /* the other one holds it */
    changes_release(&w->changes);
    assert_int_equal(w->changes.current->update.kind, UPDATE_UNLOAD);
    assert_string_equal(w->changes.current->update.name, "sum");
    make_change(w);
    expect_told(&waiter, ST_OK, "");
    expect_ready(w, "sum", false);
}

/* The device was lost while a thread loaded for it. */
static void a_change_for_a_lost_device_is_made_again_for_the_next_one(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    struct serving *fresh;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 0, NULL);
    put_model_file(w, "sum.pte", "mlp");
    order(w, &waiter, UPDATE_LOAD, "sum");
    do_work(&w->changes.work);
    assert_ok(w->err, serving_new(&w->options, "cpu", false, &fresh, &w->err));
    assert_ok(w->err, repository_load(&fresh->repository, &w->options, NULL, &w->err));
    servings_replace(&w->servings, fresh);
    assert_ptr_equal(fresh->older->older, NULL); /* the change holds it */
    end_work(&w->changes.work);
    assert_null(fresh->older);
    assert_int_equal(waiter.told, 0);
    make_change(w);
    expect_told(&waiter, ST_OK, "");
    assert_int_equal(w->leaves, 1);
    assert_int_equal(w->enters, 1);
}

static void a_lost_device_frees_what_was_retired(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    put_model_file(w, "sum.pte", "add");
    put_model_file(w, "net.pte", "mlp");
    serve_folder(w, 0, NULL);
    changes_drop_retired(&w->changes); /* there are none */
    struct model *held = model_of(w, "net");
    order(w, &waiter, UPDATE_UNLOAD, "sum");
    make_change(w);
    order(w, &waiter, UPDATE_UNLOAD, "net");
    make_change(w);
    assert_int_equal(w->changes.retired_count, 2);
    changes_drop_retired(&w->changes);
    assert_int_equal(w->changes.retired_count, 1);
    assert_ptr_equal(w->changes.retired[0].model, held);
    assert_int_equal(w->servings.current->users, 1);
    model_unref(held);
}

/* ---- idle models ----------------------------------------------------------------------------- */

static void an_idle_model_is_unloaded_and_a_call_loads_it(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter first, second;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 1, (char *[]){(char[]){"--idle-unload=1s"}});
    uint64_t begin = serving_now_ns(), due = changes_unload_idle(&w->changes, begin);
    assert_int_equal(due, begin + 1000 * (uint64_t)MS);
    assert_int_equal(changes_unload_idle(&w->changes, begin + 999 * MS), due);
    expect_ready(w, "sum", true);
    pass_ms(1000);
    assert_int_equal(changes_unload_idle(&w->changes, due), ALARM_NEVER);
    expect_log(w, "info: model sum version 1: unloaded, it was idle\n");
    expect_ready(w, "sum", false);
    assert_int_equal(unloads(w, CHANGES_IDLE), 1);
    assert_int_equal(unloads(w, CHANGES_ASKED), 0);
    free_retired(w);
    assert_int_equal(w->changes.retired_count, 0);
    need(w, &first, "sum");
    need(w, &second, "sum");
    assert_int_equal(share_used(&w->waits.places), 2);
    assert_int_equal(w->changes.waiting_count, 0); /* both wait for the same one */
    make_change(w);
    expect_told(&first, ST_OK, "");
    expect_told(&second, ST_OK, "");
    expect_log(w, "info: model sum: loaded for a call");
    expect_ready(w, "sum", true);
    assert_int_equal(share_used(&w->changes.loads), 0);
    assert_true(changes_unload_idle(&w->changes, serving_now_ns()) > serving_now_ns());
}

static void a_request_says_how_long_a_model_stays(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 2,
                 (char *[]){(char[]){"--idle-unload=100s"}, (char[]){"--keep-alive-max=200s"}});
    struct model *model = model_of(w, "sum");
    const struct keep_wish wish = {.is_given = true, .is_order = true, .ns = 0};
    changes_unload_idle(&w->changes, serving_now_ns());
    keep_use(&model->origin->keep, &wish, serving_now_ns());
    changes_watch_idle(&w->changes, model->origin->keep.due_ns);
    model_unref(model);
    assert_int_equal(changes_unload_idle(&w->changes, serving_now_ns()), ALARM_NEVER);
    expect_log(w, "info: model sum version 1: unloaded, it was idle (keep_alive)");
    assert_int_equal(unloads(w, CHANGES_IDLE), 0);
    assert_int_equal(unloads(w, CHANGES_ASKED), 1);
}

static void idle_models_stay_while_models_change(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 1, (char *[]){(char[]){"--idle-unload=1s"}});
    pass_ms(2000);
    changes_keep_idle(&w->changes, true);
    uint64_t now = serving_now_ns(), soon = now + 100 * (uint64_t)MS;
    assert_int_equal(changes_unload_idle(&w->changes, now), soon);
    changes_keep_idle(&w->changes, false);
    order(w, &waiter, UPDATE_LOAD, "sum");
    assert_int_equal(changes_unload_idle(&w->changes, soon), soon + 100 * MS);
    make_change(w);
    w->waits.told_count = 1; /* a call has waited for it and has had no turn yet */
    now = serving_now_ns() + 2000 * (uint64_t)MS;
    assert_int_equal(changes_unload_idle(&w->changes, now), now + 100 * MS);
    expect_ready(w, "sum", true);
    w->waits.told_count = 0;
    w->loop.is_draining = true;
    assert_int_equal(changes_unload_idle(&w->changes, now + 100 * MS), ALARM_NEVER);
    expect_ready(w, "sum", true);
}

/* ---- calls that need a file ------------------------------------------------------------------ */

static void unload_all_idle(struct serving_world *w)
{
    pass_ms(100000);
    changes_unload_idle(&w->changes, serving_now_ns());
    free_retired(w);
    forget_log(w);
}

static void a_call_is_told_why_its_file_does_not_load(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 1, (char *[]){(char[]){"--idle-unload=1s"}});
    unload_all_idle(w);
    put_damaged_file(w, "sum.pte");
    need(w, &waiter, "sum");
    make_change(w);
    assert_int_equal(waiter.told, 1); /* the call finds the reason at the model */
    struct model *model = model_of(w, "sum");
    assert_int_equal(model_state(model), MODEL_FAILED);
    assert_int_equal(model->failure.code, ST_CORRUPT);
    model_unref(model);
}

static void one_client_cannot_take_all_loads(void **state)
{
    struct serving_world *w = *state;
    static struct serving_waiter waiters[CHANGES_LOADS_MAX + 1];
    char name[16];
    int count = 0;
    put_model_file(w, "sum.pte", "add");
    serve_folder(w, 1, (char *[]){(char[]){"--idle-unload=1s"}});
    enum status status = ST_OK;
    while (status == ST_OK && count <= CHANGES_LOADS_MAX) {
        snprintf(name, sizeof(name), "m%d", count);
        init_waiter(&waiters[count], name);
        waiters[count].waiter.client = 7;
        status = changes_need(&w->changes, &waiters[count].waiter, name, &w->err);
        count += status == ST_OK;
    }
    assert_int_equal(status, ST_EXHAUSTED);
    assert_between(count, 1, CHANGES_LOADS_MAX - 1); /* some are left for others */
    assert_int_equal(share_used(&w->waits.places), count);
    assert_true(list_is_empty(&waiters[count].waiter.change_link));
    init_waiter(&waiters[count], "sum");
    waiters[count].waiter.client = 8;
    assert_ok(w->err, changes_need(&w->changes, &waiters[count].waiter, "sum", &w->err));
    changes_forget(&w->changes, &waiters[count].waiter);
    w->loop.is_draining = true;
    make_change(w);
    assert_int_equal(share_used(&w->waits.places), 0);
    assert_int_equal(share_used(&w->changes.loads), 0);
}

static void a_load_without_a_place_to_wait_is_not_begun(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter first, second;
    serve_folder(w, 1, (char *[]){(char[]){"--loading-count-max=1"}});
    need(w, &first, "a");
    init_waiter(&second, "b");
    assert_fails(w->err, changes_need(&w->changes, &second.waiter, "b", &w->err), ST_EXHAUSTED, "");
    assert_int_equal(w->changes.waiting_count, 0);
    assert_int_equal(share_used(&w->changes.loads), 1);
    make_change(w);
    assert_int_equal(first.told, 1);
}

/* ---- the limit of memory for models ---------------------------------------------------------- */

/* Both files are "mlp", and there is room for one of them; "a" is loaded. */
static void serve_one_of_two(struct serving_world *w, struct serving_waiter *waiter)
{
    put_model_file(w, "a.pte", "mlp");
    serve_folder(w, 1, (char *[]){(char[]){"--model-bytes-max=1000000000"}});
    struct model *a = model_of(w, "a");
    assert_true(model_is_ready(a));
    assert_true(a->origin->bytes > 0);
    w->options.params.model_bytes_max = a->origin->bytes * 3 / 2;
    model_unref(a);
    put_model_file(w, "b.pte", "mlp");
    changes_scan(&w->changes, false);
    make_change(w);
    forget_log(w);
    expect_ready(w, "b", false); /* it is listed */
    need(w, waiter, "b");
}

static void a_model_that_nobody_uses_makes_room(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    serve_one_of_two(w, &waiter);
    make_change(w);
    assert_int_equal(waiter.told, 0);
    assert_int_equal(unloads(w, CHANGES_DISPLACED), 1);
    assert_false(changes_is_busy(&w->changes));
    pass_ms(0); /* "a" goes first */
    run_work(&w->changes.going_work);
    assert_true(changes_is_busy(&w->changes));
    make_change(w);
    expect_told(&waiter, ST_OK, "");
    expect_ready(w, "a", false);
    expect_ready(w, "b", true);
}

static void room_is_awaited_and_then_refused(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    serve_one_of_two(w, &waiter);
    struct model *used = model_of(w, "a"); /* by a call */
    make_change(w);
    assert_int_equal(waiter.told, 0);
    assert_false(changes_is_busy(&w->changes));
    pass_ms(5); /* it looks again */
    assert_true(changes_is_busy(&w->changes));
    make_change(w);
    assert_int_equal(waiter.told, 0);
    pass_ms(5000);
    make_change(w);
    assert_int_equal(waiter.told, 1);
    expect_log(w, "warning: model 'b' takes ");
    assert_true(model_is_ready(used));
    model_unref(used);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_wait_for_the_first_models),
        TEST(a_start_that_fails_tells_clients_less_than_the_log),
        TEST(the_start_refuses_its_waiters_when_the_daemon_stops),
        TEST(a_loaded_file_replaces_the_old_one),
        TEST(a_load_that_fails_keeps_the_old_one),
        TEST(orders_are_carried_out_one_after_the_other),
        TEST(too_many_orders_are_refused),
        TEST(scans_that_wait_are_one),
        TEST(a_scan_of_a_folder_that_has_gone_changes_nothing),
        TEST(a_held_change_is_made_again),
        TEST(a_change_for_a_lost_device_is_made_again_for_the_next_one),
        TEST(a_lost_device_frees_what_was_retired),
        TEST(an_idle_model_is_unloaded_and_a_call_loads_it),
        TEST(a_request_says_how_long_a_model_stays),
        TEST(idle_models_stay_while_models_change),
        TEST(a_call_is_told_why_its_file_does_not_load),
        TEST(one_client_cannot_take_all_loads),
        TEST(a_load_without_a_place_to_wait_is_not_begun),
        TEST(a_model_that_nobody_uses_makes_room),
        TEST(room_is_awaited_and_then_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
