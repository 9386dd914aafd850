/* SPDX-License-Identifier: MIT */
/*
 * Calls without a daemon: no socket, no request, no loop. The test lends a call what a request
 * lends it, and drives its steps with tests/models/add.pte.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "hal/pool.h"
#include "runtime/sched/job.h"
#include "server/daemon/infer/bundle.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_one.h"
#include "server/daemon/infer/regions.h"
#include "server/daemon/serving/serving.h"
#include "server/process/alarm.h"
#include "server/process/log.h"

#define ANSWER_BYTES_MAX 65536
#define FAILURES_MAX 4

struct world {
    struct options options;
    struct serving *serving;
    struct alarm alarm; /* zeroed: nothing is due */
    struct regions regions;
    struct seats seats;
    struct infer_env env;
    /* ---- what a request lends ---- */
    struct head head;
    struct body body;
    struct hal_pool *upload;
    struct buf out;
    struct http_client client;
    char name[MODEL_NAME_MAX + 1];
    /* ---- the call ---- */
    struct infer infer;
    sem_t run; /* posted when the run is over */
    enum status run_status;
    uint32_t failures[FAILURES_MAX], failure_count; /* calls of a list that were reported */
    unsigned idle_notes;
    struct error err;
};

static struct world world;

/* ---- what is above the call ------------------------------------------------------------------ */

static void go_on(struct infer *infer)
{
    (void)infer;
    fail(); /* there are no files */
}

static void note_failure(struct infer *infer, const struct error *why, uint32_t index)
{
    assert_ptr_equal(infer, &world.infer);
    assert_int_not_equal(why->code, ST_OK);
    assert_true(world.failure_count < FAILURES_MAX);
    world.failures[world.failure_count++] = index;
}

static void note_idle(void *owner, uint64_t due_ns)
{
    (void)due_ns;
    ((struct world *)owner)->idle_notes++;
}

static bool start_job(struct rt_sched_job *job, bool may_run_inline)
{
    (void)job;
    return infer_start(&world.infer, may_run_inline ? HAL_CALLER_QUICK : HAL_CALLER_BUSY,
                       &world.err);
}

static bool cancel_job(struct rt_sched_job *job)
{
    (void)job;
    return infer_cancel(&world.infer);
}

static void end_job(struct rt_sched_job *job, enum status status)
{
    (void)job;
    world.run_status = status;
    sem_post(&world.run);
}

static const struct rt_sched_job_ops job_ops = {
    .start = start_job,
    .start_batch = rt_job_start_batch,
    .fits = rt_job_fits,
    .cancel = cancel_job,
    .done = end_job,
};

/* ---- the world ------------------------------------------------------------------------------- */

static void lend(struct world *w)
{
    head_init(&w->head, &w->options.params);
    body_init(&w->body, NULL, w->options.params.body_bytes_max);
    buf_init(&w->out, ANSWER_BYTES_MAX);
    assert_ok(w->err, hal_pool_member_new(&w->upload, &w->err));
    assert_ok(w->err, infer_init(&w->infer, &w->env, &w->err));
    w->infer.serving = w->serving;
    w->infer.head = &w->head;
    w->infer.received = &w->body;
    w->infer.out = &w->out;
    w->infer.client = &w->client;
    w->infer.model_name = w->name;
}

static int open_world(void **state)
{
    struct world *w = &world;
    const char *top = getenv("top_srcdir");
    char model[4096];
    (void)state;
    snprintf(model, sizeof(model), "%s/tests/models/add.pte", top ? top : "..");
    char *argv[] = {(char[]){"pted"}, (char[]){"--workers=1"}, (char[]){"--inline-bytes-max=16"},
                    (char[]){"--light-bytes-max=4096"}, model};
    options_init(&w->options);
    assert_ok(w->err, options_add_arguments(&w->options, 5, argv, &w->err));
    assert_ok(w->err, log_open(NULL, LOG_ERROR, &w->err));
    assert_ok(w->err, serving_new(&w->options, "cpu", true, &w->serving, &w->err));
    assert_ok(w->err, repository_load(&w->serving->repository, &w->options, NULL, &w->err));
    regions_init(&w->regions, &w->options.params);
    seats_init(&w->seats);
    sem_init(&w->run, 0, 0);
    w->env = (struct infer_env){
        .options = &w->options,
        .params = &w->options.params,
        .alarm = &w->alarm,
        .regions = &w->regions,
        .seats = &w->seats,
        .owner = w,
        .go_on = go_on,
        .note_failure = note_failure,
        .note_idle = note_idle,
    };
    lend(w);
    return 0;
}

/* The scheduler asserts that no queue is left, and the device that no memory is left. So the call
 * has given all back. */
static int close_world(void **state)
{
    struct world *w = &world;
    (void)state;
    infer_fini(&w->infer);
    hal_pool_free(w->upload);
    buf_fini(&w->out);
    body_fini(&w->body);
    head_fini(&w->head);
    seats_fini(&w->seats);
    regions_fini(&w->regions);
    serving_free(w->serving);
    sem_destroy(&w->run);
    return 0;
}

/* ---- one call -------------------------------------------------------------------------------- */

/* The head of a call of |name|. Returns the status of infer_begin(). */
static int begin(const char *name, const struct infer_ops *ops, const struct codec *codec)
{
    struct world *w = &world;
    snprintf(w->name, sizeof(w->name), "%s", name);
    w->infer.version = 0;
    w->failure_count = 0;
    w->idle_notes = 0;
    w->err.code = ST_OK;
    hal_pool_join(w->upload, w->serving->transfers);
    w->body.pool = w->upload;
    return infer_begin(&w->infer, ops, codec, false, &w->err);
}

static void receive(const char *text)
{
    struct world *w = &world;
    assert_ok(w->err, body_add(&w->body, span_str(text), &w->err));
    w->infer.arrived_ns = uv_hrtime();
    assert_int_equal(infer_settle(&w->infer, &w->err), OUTCOME_DONE);
}

/* The steps up to RUN, where they may take any time. */
static void decode(void)
{
    struct world *w = &world;
    work_begin(&w->infer.work, WORK_HEAVY);
    assert_int_equal(infer_parse(&w->infer, &w->err), OUTCOME_DONE);
    assert_int_equal(infer_decode(&w->infer, &w->err), OUTCOME_DONE);
}

static void run(void)
{
    struct world *w = &world;
    struct rt_sched_job *job = &w->infer.job;
    assert_int_equal(infer_prepare(&w->infer, RT_PREPARE_ALL, &w->err), OUTCOME_DONE);
    struct rt_sched_queue *queue = infer_enter(&w->infer);
    job->ops = &job_ops;
    job->deadline_ns = infer_deadline_ns(&w->infer);
    job->bytes = infer_held_bytes(&w->infer);
    assert_ok(w->err, rt_sched_submit(queue, job, true, &w->err));
    while (sem_wait(&w->run) != 0) {
    }
    assert_int_equal(infer_finish(&w->infer, w->run_status, &w->err), OUTCOME_DONE);
    assert_int_equal(infer_encode(&w->infer, &w->err), OUTCOME_DONE);
    w->infer.encoded_ns = uv_hrtime();
}

static void end(bool has_run)
{
    struct world *w = &world;
    if (has_run) {
        infer_count(&w->infer, 0, uv_hrtime());
    }
    body_reset(&w->body);
    infer_reset(&w->infer);
    if (has_run) {
        rt_sched_released(w->serving->sched);
    }
    buf_reset(&w->out);
    hal_pool_leave(w->upload);
    w->body.pool = w->infer.inflated.pool = NULL;
}

static bool says(const char *text)
{
    buf_add_char(&world.out, '\0');
    return strstr((const char *)world.out.ptr, text) != NULL;
}

/* ---- tests ----------------------------------------------------------------------------------- */

#define ARGS "{\"args\":[[[1,2,3],[4,5,6]],[[10,20,30],[40,50,60]]]}"
#define SUM "[[11.0,22.0,33.0],[44.0,55.0,66.0]]"

static void a_call_goes_from_its_body_to_its_answer(void **state)
{
    struct world *w = &world;
    struct model *model;
    (void)state;
    assert_int_equal(begin("add", &infer_one_ops, &codec_call), 200);
    receive(ARGS);
    decode();
    run();
    assert_true(says(SUM));
    end(true);
    assert_int_equal(w->idle_notes, 1);
    assert_ok(w->err, repository_find(&w->serving->repository, "add", 0, &model, &w->err));
    assert_int_equal(model->stats->ok.count, 1);
    model_unref(model);
}

static void a_call_of_another_codec(void **state)
{
    (void)state;
    assert_int_equal(begin("add", &infer_one_ops, &codec_oip), 200);
    receive(
        "{\"id\":\"me\",\"inputs\":["
        "{\"name\":\"input_0\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":[1,2,3,4,5,6]},"
        "{\"name\":\"input_1\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":[1,1,1,1,1,1]}]}");
    decode();
    assert_true(span_is(world.infer.id, "me"));
    run();
    assert_true(says("\"id\":\"me\""));
    assert_true(says("\"data\":[2.0,3.0,4.0,5.0,6.0,7.0]"));
    end(true);
}

static void a_model_that_is_not_there_ends_the_call(void **state)
{
    (void)state;
    assert_int_equal(begin("nobody", &infer_one_ops, &codec_call), 404);
    assert_int_equal(world.err.code, ST_NOT_FOUND);
    end(false);
}

static void a_bad_body_ends_the_call(void **state)
{
    (void)state;
    assert_int_equal(begin("add", &infer_one_ops, &codec_call), 200);
    receive("{\"args\":[1,");
    work_begin(&world.infer.work, WORK_HEAVY);
    assert_int_equal(infer_parse(&world.infer, &world.err), OUTCOME_FAILED);
    assert_int_equal(world.err.code, ST_INVALID);
    end(false);
}

/* The step is undone and begins again where it may take longer. */
static void a_step_that_is_too_long_for_the_loop_moves(void **state)
{
    struct world *w = &world;
    (void)state;
    assert_int_equal(begin("add", &infer_one_ops, &codec_call), 200);
    receive(ARGS);
    work_begin(&w->infer.work, WORK_HEAVY);
    assert_int_equal(infer_parse(&w->infer, &w->err), OUTCOME_DONE);
    work_begin(&w->infer.work, WORK_ON_LOOP);
    assert_int_equal(work_place(&w->infer.work, 0, false), WORK_ON_LOOP);
    assert_int_equal(infer_decode(&w->infer, &w->err), OUTCOME_HEAVY);
    assert_int_equal(w->err.code, ST_OK);
    work_move_on(&w->infer.work);
    assert_int_equal(work_place(&w->infer.work, 0, false), WORK_ON_THREAD);
    work_begin(&w->infer.work, WORK_ON_THREAD);
    assert_int_equal(infer_decode(&w->infer, &w->err), OUTCOME_DONE);
    run();
    assert_true(says(SUM));
    end(true);
    work_reset(&w->infer.work);
}

/* Another call holds all memory of the model: the step waits, and the error says for what. */
static void a_step_without_memory_waits(void **state)
{
    struct world *w = &world;
    struct hal_pool *other;
    struct hal_pool_stats stats;
    (void)state;
    assert_ok(w->err, hal_pool_member_new(&other, &w->err));
    assert_int_equal(begin("add", &infer_one_ops, &codec_call), 200);
    receive(ARGS);
    work_begin(&w->infer.work, WORK_HEAVY);
    assert_int_equal(infer_parse(&w->infer, &w->err), OUTCOME_DONE);
    hal_pool_join(other, w->infer.share);
    hal_pool_stats(other, &stats);
    size_t held = 0;
    for (size_t bytes = stats.size_bytes; bytes > 0; bytes /= 2) {
        while (hal_pool_try_charge(other, bytes)) {
            held += bytes;
        }
    }
    assert_int_equal(infer_decode(&w->infer, &w->err), OUTCOME_WAIT_MEMORY);
    assert_int_equal(w->err.code, ST_EXHAUSTED);
    hal_pool_discharge(other, held);
    hal_pool_leave(other);
    w->err.code = ST_OK;
    assert_int_equal(infer_decode(&w->infer, &w->err), OUTCOME_DONE);
    run();
    assert_true(says(SUM));
    end(true);
    hal_pool_free(other);
}

static void a_list_reports_the_call_that_fails(void **state)
{
    (void)state;
    assert_int_equal(begin("", &bundle_ops, &codec_oip), 200);
    receive("[{\"model_name\":\"nobody\",\"args\":[]},"
            "{\"model_name\":\"add\",\"args\":[[[1,2,3],[4,5,6]],[[10,20,30],[40,50,60]]]}]");
    decode();
    run();
    assert_int_equal(world.failure_count, 1);
    assert_int_equal(world.failures[0], 0);
    assert_true(says("\"status\":404"));
    assert_true(says(SUM));
    end(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_goes_from_its_body_to_its_answer),
        cmocka_unit_test(a_call_of_another_codec),
        cmocka_unit_test(a_model_that_is_not_there_ends_the_call),
        cmocka_unit_test(a_bad_body_ends_the_call),
        cmocka_unit_test(a_step_that_is_too_long_for_the_loop_moves),
        cmocka_unit_test(a_step_without_memory_waits),
        cmocka_unit_test(a_list_reports_the_call_that_fails),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
