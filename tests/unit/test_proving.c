/* SPDX-License-Identifier: MIT */
/* Trials of batches without running any: what a try finds is the test's. It checks when models are
 * tried, with how much time, what is taken from it, and what is kept for later starts. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/reason.h"
#include "runtime/call/batch.h"
#include "runtime/call/siblings.h"
#include "runtime/call/speculation.h"
#include "runtime/program/proven.h"
#include "server/language/generator.h"
#include "tests/unit/serving_support.h"

#define LATE "there was no time"

/* What the next trial finds, and what it was asked. */
static struct {
    enum status rows_status, measure_status, tokens_status, tokens_measured, mixed_status;
    int64_t rows, measured, tokens, mixed; /* 0: as many as it may */
    bool is_kept, are_siblings;
    enum status read_status, write_status;
    struct rt_proven kept;
    /* ---- counted ---- */
    unsigned tries, measures, reads, writes;
    uint64_t budget_ns, work_ns;
    int64_t rows_max, rows_before;
    struct rt_method *method;
    struct rt_proven written;
} trial;

static enum status outcome(enum status status, struct error *err)
{
    return status == ST_OK
               ? ST_OK
               : error_set(err, status, "%s", status == ST_TIMEOUT ? LATE : "rows differ");
}

enum status __wrap_rt_batch_prove(struct rt_method *method, struct hal_pool *pool,
                                  const struct rt_pace *pace, int64_t rows_max, int64_t *io_rows,
                                  struct error *err);
enum status __wrap_rt_batch_measure(struct rt_method *method, struct hal_pool *pool,
                                    const struct rt_pace *pace, int64_t rows, int64_t *out_rows,
                                    struct error *err);
enum status __wrap_rt_speculation_prove(struct rt_method *method, struct hal_pool *pool,
                                        const struct rt_pace *pace, int64_t steps_max,
                                        int64_t *io_steps, struct error *err);
enum status __wrap_rt_speculation_measure(struct rt_method *method, struct hal_pool *pool,
                                          const struct rt_pace *pace, uint32_t steps,
                                          uint64_t *out_ns, struct error *err);
enum status __wrap_rt_siblings_meet(struct rt_method *method, struct rt_method *other,
                                    struct error *err);
enum status __wrap_rt_siblings_prove(struct rt_method *method, struct rt_method *other,
                                     struct hal_pool *pool, const struct rt_pace *pace,
                                     int64_t rows_max, int64_t *io_rows, struct error *err);
enum status __wrap_rt_siblings_measure(struct rt_method *method, struct rt_method *other,
                                       struct hal_pool *pool, const struct rt_pace *pace,
                                       int64_t rows, int64_t *out_rows, struct error *err);
enum status __wrap_rt_proven_find(const struct rt_method *method, const uint64_t *settings,
                                  uint32_t count, uint64_t *out_key, struct error *err);
enum status __wrap_rt_proven_read(const struct rt_method *method, uint64_t key,
                                  struct rt_proven *out_proven, struct error *err);
enum status __wrap_rt_proven_write(const struct rt_method *method, uint64_t key,
                                   const struct rt_proven *proven, struct error *err);

enum status __wrap_rt_batch_prove(struct rt_method *method, struct hal_pool *pool,
                                  const struct rt_pace *pace, int64_t rows_max, int64_t *io_rows,
                                  struct error *err)
{
    assert_non_null(pool);
    trial.tries++;
    trial.method = method;
    trial.budget_ns = pace->budget_ns;
    trial.work_ns = pace->work_ns;
    trial.rows_max = rows_max;
    trial.rows_before = *io_rows;
    int64_t rows = trial.rows ? trial.rows : rows_max;
    *io_rows = rows > *io_rows ? rows : *io_rows;
    return outcome(trial.rows_status, err);
}

enum status __wrap_rt_batch_measure(struct rt_method *method, struct hal_pool *pool,
                                    const struct rt_pace *pace, int64_t rows, int64_t *out_rows,
                                    struct error *err)
{
    assert_ptr_equal(method, trial.method);
    assert_non_null(pool);
    assert_ptr_not_equal(pace, NULL);
    trial.measures++;
    *out_rows = trial.measured ? trial.measured : rows;
    return outcome(trial.measure_status, err);
}

enum status __wrap_rt_speculation_prove(struct rt_method *method, struct hal_pool *pool,
                                        const struct rt_pace *pace, int64_t steps_max,
                                        int64_t *io_steps, struct error *err)
{
    assert_true(method && pool && pace);
    int64_t steps = trial.tokens ? trial.tokens : steps_max;
    *io_steps = steps > *io_steps ? steps : *io_steps;
    return outcome(trial.tokens_status, err);
}

enum status __wrap_rt_speculation_measure(struct rt_method *method, struct hal_pool *pool,
                                          const struct rt_pace *pace, uint32_t steps,
                                          uint64_t *out_ns, struct error *err)
{
    assert_true(method && pool && pace);
    for (uint32_t i = 1; i <= steps; i++) {
        out_ns[i] = 1000 * i;
    }
    return outcome(trial.tokens_measured, err);
}

enum status __wrap_rt_siblings_meet(struct rt_method *method, struct rt_method *other,
                                    struct error *err)
{
    assert_ptr_not_equal(method, other);
    return trial.are_siblings ? ST_OK : error_set(err, ST_UNSUPPORTED, "no siblings");
}

enum status __wrap_rt_siblings_prove(struct rt_method *method, struct rt_method *other,
                                     struct hal_pool *pool, const struct rt_pace *pace,
                                     int64_t rows_max, int64_t *io_rows, struct error *err)
{
    assert_true(method && other && pool && pace);
    *io_rows = trial.mixed ? trial.mixed : rows_max;
    return outcome(trial.mixed_status, err);
}

enum status __wrap_rt_siblings_measure(struct rt_method *method, struct rt_method *other,
                                       struct hal_pool *pool, const struct rt_pace *pace,
                                       int64_t rows, int64_t *out_rows, struct error *err)
{
    (void)err;
    assert_true(method && other && pool && pace);
    *out_rows = rows;
    return ST_OK;
}

enum status __wrap_rt_proven_find(const struct rt_method *method, const uint64_t *settings,
                                  uint32_t count, uint64_t *out_key, struct error *err)
{
    assert_non_null(method);
    assert_int_equal(count, 2);
    assert_int_equal(settings[0], 16 << 20); /* --ring-bytes */
    *out_key = 7;
    return trial.is_kept ? ST_OK : error_set(err, ST_NOT_FOUND, "nothing is kept");
}

enum status __wrap_rt_proven_read(const struct rt_method *method, uint64_t key,
                                  struct rt_proven *out_proven, struct error *err)
{
    assert_non_null(method);
    assert_int_equal(key, 7);
    trial.reads++;
    if (trial.read_status == ST_OK) {
        *out_proven = trial.kept;
    }
    return outcome(trial.read_status, err);
}

enum status __wrap_rt_proven_write(const struct rt_method *method, uint64_t key,
                                   const struct rt_proven *proven, struct error *err)
{
    assert_non_null(method);
    assert_int_equal(key, 7);
    trial.writes++;
    trial.written = *proven;
    return outcome(trial.write_status, err);
}

/* ---- the world ------------------------------------------------------------------------------- */

static struct serving_world world;

static int set_up(void **state)
{
    memset(&trial, 0, sizeof(trial));
    open_serving_world(&world);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    close_serving_world(*state);
    return 0;
}

/* The models of the folder, whose first trial waits for a thread. */
static void serve(struct serving_world *w, int argc, char *const argv[])
{
    serve_folder(w, argc, argv);
    atomic_store(&w->proving.is_stopped, false);
    proving_begin(&w->proving);
}

static void try_once(struct serving_world *w)
{
    assert_true(is_work_waiting(&w->proving.work));
    run_work(&w->proving.work);
}

static void expect_rows(struct serving_world *w, const char *name, int64_t rows)
{
    struct model *model = model_of(w, name);
    assert_int_equal(model->rows_max, rows);
    model_unref(model);
}

/* The next try begins in |ms|. */
static void expect_pause(struct serving_world *w, uint64_t ms)
{
    uint64_t due_ms;
    assert_false(is_work_waiting(&w->proving.work));
    assert_true(is_timer_set(&w->proving.timer, &due_ms));
    assert_int_equal(due_ms, ms);
    assert_int_equal(w->servings.current->users, 0);
}

/* ---- one model ------------------------------------------------------------------------------- */

static void all_rows_are_proven(void **state)
{
    struct serving_world *w = *state;
    uint64_t due_ms;
    put_model_file(w, "net.pte", "mlp"); /* of up to 32 rows */
    serve(w, 0, NULL);
    assert_int_equal(w->servings.current->users, 1);
    expect_rows(w, "net", 1); /* until then calls run alone */
    try_once(w);
    assert_int_equal(trial.rows_before, 1);
    assert_int_equal(trial.rows_max, 32);
    assert_true(trial.budget_ns == 50000000u && trial.work_ns == 20000000000u);
    assert_int_equal(trial.measures, 1);
    expect_rows(w, "net", 32);
    expect_log(w, "info: model net: requests that wait run as batches of up to 32 rows\n");
    assert_false(is_work_waiting(&w->proving.work));
    assert_false(is_timer_set(&w->proving.timer, &due_ms));
    assert_int_equal(w->servings.current->users, 0);
    assert_true(is_timer_set(&w->trim.timer, &due_ms)); /* the trial's memory goes back */
    proving_begin(&w->proving);                         /* nothing is left */
    assert_false(is_work_waiting(&w->proving.work));
}

static void a_given_number_of_rows_is_not_measured(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "net.pte", "mlp");
    serve(w, 1, (char *[]){(char[]){"--max-batch=8"}});
    try_once(w);
    assert_int_equal(trial.rows_max, 8);
    assert_int_equal(trial.work_ns, 0);
    assert_int_equal(trial.measures, 0);
    expect_rows(w, "net", 8);
}

static void rows_that_differ_run_alone(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "net.pte", "mlp");
    trial.rows = 1;
    trial.rows_status = ST_UNSUPPORTED;
    serve(w, 0, NULL);
    try_once(w);
    expect_rows(w, "net", 1);
    struct model *model = model_of(w, "net");
    assert_string_equal(model->why_alone.text, "rows differ");
    assert_false(model->trial.is_open);
    model_unref(model);
    assert_int_equal(trial.measures, 0);
    expect_log(w, "info: model net: requests run alone: rows differ");
}

static void a_late_trial_goes_on(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "net.pte", "mlp");
    trial.rows = 4;
    trial.rows_status = ST_TIMEOUT;
    serve(w, 0, NULL);
    try_once(w);
    expect_rows(w, "net", 4);
    expect_log(w, "info: model net: requests that wait run as batches of up to 4 rows, not more: "
                  "" LATE "; the trial goes on when the device is idle");
    expect_pause(w, 250);
    proving_begin(&w->proving); /* not before */
    expect_pause(w, 250);
    pass_ms(250);
    trial.rows = 16;
    try_once(w);
    assert_int_equal(trial.rows_before, 4);
    assert_int_equal(trial.budget_ns, 250000000u);
    expect_rows(w, "net", 16);
    expect_silence(w); /* only the end is news */
    pass_ms(250);
    trial.rows = 0;
    trial.rows_status = ST_OK;
    try_once(w);
    expect_rows(w, "net", 32);
    expect_log(w, "batches of up to 32 rows");
}

/* Tries in vain come more and more seldom, and then one insists. */
static void a_trial_in_vain_insists_in_the_end(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "net.pte", "mlp");
    trial.rows = 4;
    trial.rows_status = ST_TIMEOUT;
    serve(w, 0, NULL);
    try_once(w);
    forget_log(w);
    pass_ms(250);
    for (unsigned vain = 1; vain < MODEL_TRIAL_VAIN_MAX; vain++) {
        try_once(w);
        if (vain == 1) {
            expect_log(w, "warning: model net: ");
        }
        expect_silence(w);
        expect_pause(w, 250u << vain);
        pass_ms(250u << vain);
        assert_int_equal(trial.budget_ns, 250000000u);
    }
    try_once(w);
    expect_pause(w, 250);
    pass_ms(250);
    try_once(w);
    assert_int_equal(trial.budget_ns, 0); /* it takes the time that it needs */
    expect_pause(w, 32000);
}

static void a_late_measurement_leaves_the_trial_open(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "net.pte", "mlp");
    trial.measure_status = ST_TIMEOUT;
    serve(w, 0, NULL);
    try_once(w);
    expect_rows(w, "net", 32);
    expect_pause(w, 250);
    pass_ms(250);
    trial.measure_status = ST_OK;
    trial.measured = 8;
    try_once(w);
    struct model *model = model_of(w, "net");
    assert_int_equal(model->trial.first_rows, 8);
    assert_false(model->trial.is_open);
    model_unref(model);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void what_is_proven_is_kept(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "net.pte", "mlp");
    trial.is_kept = true;
    trial.read_status = ST_NOT_FOUND;
    serve(w, 0, NULL);
    try_once(w);
    assert_int_equal(trial.reads, 1);
    assert_int_equal(trial.writes, 1);
    assert_int_equal(trial.written.rows, 32);
    assert_int_equal(trial.written.measured_rows, 32);
}

static void an_earlier_start_has_proven_it(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "net.pte", "mlp");
    trial.is_kept = true;
    trial.kept = (struct rt_proven)RT_PROVEN_INIT;
    trial.kept.rows = trial.kept.measured_rows = 32;
    trial.kept.first_rows = 16;
    trial.kept.measure_count = 1;
    serve(w, 0, NULL);
    try_once(w);
    assert_int_equal(trial.rows_before, 32); /* the runtime has nothing left to try */
    assert_int_equal(trial.measures + trial.writes, 0);
    expect_log(w, "batches of up to 32 rows; an earlier start has proven that");
}

static void rows_that_differed_are_not_tried_again(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "net.pte", "mlp");
    trial.is_kept = true;
    trial.kept = (struct rt_proven)RT_PROVEN_INIT;
    trial.kept.rows = trial.kept.measured_rows = trial.kept.first_rows = 4;
    trial.kept.are_rows_final = true;
    error_set(&trial.kept.why_rows, ST_UNSUPPORTED, "5 rows differ");
    serve(w, 0, NULL);
    try_once(w);
    assert_int_equal(trial.rows_max, 4);
    expect_rows(w, "net", 4);
    struct model *model = model_of(w, "net");
    assert_false(model->trial.is_open);
    model_unref(model);
}

static void what_cannot_be_read_or_written_is_told(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "net.pte", "mlp");
    trial.is_kept = true;
    trial.read_status = ST_CORRUPT;
    trial.write_status = ST_SYSTEM;
    serve(w, 0, NULL);
    try_once(w);
    expect_log(
        w, "warning: model net: what was proven cannot be read and is tried again: rows differ\n"
           "warning: model net: what is proven cannot be stored: rows differ\n");
    expect_rows(w, "net", 32);
}

/* ---- several models, and the daemon ---------------------------------------------------------- */

static void models_that_were_tried_least_come_first(void **state)
{
    struct serving_world *w = *state;
    put_model_file(w, "a.pte", "mlp");
    put_model_file(w, "b.pte", "digits");
    put_model_file(w, "c.pte", "add"); /* which has no rows */
    trial.rows = 2;
    trial.rows_status = ST_TIMEOUT;
    serve(w, 0, NULL);
    assert_string_equal(w->proving.model->name, "a");
    try_once(w);
    assert_string_equal(w->proving.model->name, "b");
    try_once(w);
    expect_pause(w, 250);
    pass_ms(250);
    assert_string_equal(w->proving.model->name, "a");
    try_once(w);
    try_once(w);
    assert_int_equal(trial.tries, 4);
}

static void a_new_serving_is_tried_anew(void **state)
{
    struct serving_world *w = *state;
    struct serving *fresh, *old;
    put_model_file(w, "net.pte", "mlp");
    serve(w, 0, NULL);
    old = w->servings.current;
    do_work(&w->proving.work);
    assert_ok(w->err, serving_new(&w->options, "cpu", false, &fresh, &w->err));
    assert_ok(w->err, repository_load(&fresh->repository, &w->options, NULL, &w->err));
    servings_replace(&w->servings, fresh);
    proving_begin(&w->proving); /* a trial is under way */
    assert_ptr_equal(fresh->older, old);
    end_work(&w->proving.work);
    assert_null(fresh->older); /* the trial was the last that held it */
    assert_ptr_equal(w->proving.serving, fresh);
    expect_rows(w, "net", 1);
    try_once(w);
    expect_rows(w, "net", 32);
}

static void a_daemon_that_stops_tries_nothing_more(void **state)
{
    struct serving_world *w = *state;
    uint64_t due_ms;
    put_model_file(w, "net.pte", "mlp");
    trial.rows = 4;
    trial.rows_status = ST_TIMEOUT;
    serve(w, 0, NULL);
    try_once(w);
    expect_pause(w, 250);
    forget_log(w);
    pass_ms(250);
    proving_stop(&w->proving);
    w->loop.is_draining = true;
    try_once(w);
    expect_silence(w);
    assert_false(is_timer_set(&w->proving.timer, &due_ms));
    proving_begin(&w->proving);
    assert_int_equal(works_waiting(), 0);
    assert_int_equal(w->servings.current->users, 0);
}

/* ---- language models ------------------------------------------------------------------------- */

/* A chat model with its tokenizer, in a folder of its own. */
static void put_chat(struct serving_world *w, const char *name)
{
    char path[256];
    path_in_folder(w, name, path);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/model.pte", name);
    put_model_file(w, path, "chat/model");
    snprintf(path, sizeof(path), "%s/tokenizer.json", name);
    put_test_file(w, path, "chat/tokenizer.json");
}

static void guessed_tokens_are_proven_too(void **state)
{
    struct serving_world *w = *state;
    put_chat(w, "chat");
    trial.tokens = 4;
    serve(w, 0, NULL);
    try_once(w);
    assert_int_equal(trial.budget_ns, 15000000000u); /* of steps */
    struct model *model = model_of(w, "chat");
    assert_non_null(model->generator);
    assert_int_equal(atomic_load(&model->generator->speculation_tokens), 4);
    assert_false(atomic_load(&model->generator->never_guesses));
    assert_int_equal(model->generator->speculation_ns[3], 3000);
    model_unref(model);
    expect_log(w, "; a step of an answer checks up to 3 guessed tokens");
}

static void guessed_tokens_that_differ_are_not_checked(void **state)
{
    struct serving_world *w = *state;
    put_chat(w, "chat");
    trial.tokens = 1;
    trial.tokens_status = ST_UNSUPPORTED;
    serve(w, 0, NULL);
    try_once(w);
    struct model *model = model_of(w, "chat");
    assert_int_equal(atomic_load(&model->generator->speculation_tokens), 1);
    assert_true(atomic_load(&model->generator->never_guesses));
    model_unref(model);
    expect_log(w, "; guessed tokens are not checked: rows differ");
}

static void without_guesses_none_are_proven(void **state)
{
    struct serving_world *w = *state;
    put_chat(w, "chat");
    serve(w, 1, (char *[]){(char[]){"--draft-tokens-max=0"}});
    try_once(w);
    struct model *model = model_of(w, "chat");
    assert_true(atomic_load(&model->generator->never_guesses));
    assert_string_equal(model->generator->why_one.text, reason_text(REASON_GUESSES_OFF));
    model_unref(model);
}

static void steps_of_siblings_run_together(void **state)
{
    struct serving_world *w = *state;
    put_chat(w, "a");
    put_chat(w, "b");
    trial.are_siblings = true;
    trial.mixed = 3;
    serve(w, 0, NULL);
    try_once(w); /* nothing is known of "b" yet */
    forget_log(w);
    try_once(w);
    expect_log(w, "info: model b: up to 3 steps run together with those of a\n");
    struct model *model = model_of(w, "b");
    assert_int_equal(model->trial.mixed_rows, 3);
    assert_true(model->trial.are_mixed);
    model_unref(model);
    assert_null(w->proving.sibling);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_rows_are_proven),
        TEST(a_given_number_of_rows_is_not_measured),
        TEST(rows_that_differ_run_alone),
        TEST(a_late_trial_goes_on),
        TEST(a_trial_in_vain_insists_in_the_end),
        TEST(a_late_measurement_leaves_the_trial_open),
        TEST(what_is_proven_is_kept),
        TEST(an_earlier_start_has_proven_it),
        TEST(rows_that_differed_are_not_tried_again),
        TEST(what_cannot_be_read_or_written_is_told),
        TEST(models_that_were_tried_least_come_first),
        TEST(a_new_serving_is_tried_anew),
        TEST(a_daemon_that_stops_tries_nothing_more),
        TEST(guessed_tokens_are_proven_too),
        TEST(guessed_tokens_that_differ_are_not_checked),
        TEST(without_guesses_none_are_proven),
        TEST(steps_of_siblings_run_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
