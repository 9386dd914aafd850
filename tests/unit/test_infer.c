/* SPDX-License-Identifier: MIT */
/*
 * Calls of one model and lists of calls, from the body to the answer, with the small programs of
 * tests/models; and a kind of request of many calls that only this test has.
 */
#include "config.h"

#include "tests/unit/infer_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/daemon/generation/runs.h"
#include "server/daemon/infer/bundle.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer_one.h"
#include "server/daemon/infer/stats.h"
#include "tests/unit/unit.h"

static struct world world;

static int open_world(void **state)
{
    static const char *const models[] = {"add.pte", "branches.pte", "digits.pte", "faults.pte",
                                         NULL};
    static const char *const options[] = {"--inline-bytes-max=16", "--light-bytes-max=4096",
                                          "--running-count-max=1", NULL};
    (void)state;
    world_open(&world, models, options);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    world_close(&world);
    return 0;
}

#define ARGS "{\"args\":[[[1,2,3],[4,5,6]],[[10,20,30],[40,50,60]]]}"
#define SUM "[[11.0,22.0,33.0],[44.0,55.0,66.0]]"
#define OIP(more)                                                                                  \
    "{\"id\":\"me\",\"inputs\":["                                                                  \
    "{\"name\":\"input_0\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":[1,2,3,4,5,6]},"         \
    "{\"name\":\"input_1\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":[1,1,1,1,1,1]}]" more    \
    "}"

static enum outcome call(const char *name, const struct codec *codec, const char *body)
{
    return world_ask(&world, name, "", &infer_one_ops, codec, body);
}

static enum outcome list(const char *body)
{
    return world_ask(&world, "", "", &bundle_ops, &codec_oip, body);
}

static void expect_text(const char *text)
{
    if (!world_says(&world, text)) {
        struct span answer = world_answer(&world);
        fail_msg("expected '%s' in '%.*s'", text, SPAN_FMT(answer));
    }
}

/* ---- one call -------------------------------------------------------------------------------- */

static void a_call_goes_from_its_body_to_its_answer(void **state)
{
    (void)state;
    assert_int_equal(call("add", &codec_call, ARGS), OUTCOME_DONE);
    expect_text(SUM);
    world_end(&world, 200);
    assert_int_equal(world.idle_notes, 1);
    struct model *model = world_model(&world, "add");
    assert_int_equal(model->stats->ok.count, 1);
    model_unref(model);
}

static void codecs_say_the_same(void **state)
{
    static const struct {
        const struct codec *codec;
        const char *body, *answer;
    } rows[] = {
        {&codec_oip, OIP(""), "\"data\":[2.0,3.0,4.0,5.0,6.0,7.0]"},
        {&codec_oip, OIP(",\"outputs\":[{\"name\":\"output_0\"}]"), "\"name\":\"output_0\""},
        {&codec_predict,
         "{\"instances\":[{\"input_0\":[1,2,3],\"input_1\":[1,1,1]},"
         "{\"input_0\":[4,5,6],\"input_1\":[1,1,1]}]}",
         "\"predictions\":[[2.0,3.0,4.0],[5.0,6.0,7.0]]"},
        {&codec_call, "{\"kwargs\":{},\"args\":[[[1,2,3],[4,5,6]],[[1,1,1],[1,1,1]]]}",
         "[[2.0,3.0,4.0],[5.0,6.0,7.0]]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (call("add", rows[i].codec, rows[i].body) != OUTCOME_DONE) {
            fail_msg("%s: %s", rows[i].body, world.err.text);
        }
        expect_text(rows[i].answer);
        world_end(&world, 200);
    }
}

static void an_id_is_kept_after_the_body_has_gone(void **state)
{
    (void)state;
    assert_int_equal(call("add", &codec_oip, OIP("")), OUTCOME_DONE);
    assert_true(span_is(world.infer.id, "me"));
    expect_text("\"id\":\"me\"");
    world_end(&world, 200);
}

/* The text says which element, what was expected, what was there. */
static void mistakes_have_their_texts(void **state)
{
    static const struct {
        const struct codec *codec;
        const char *body, *text;
        enum status status;
    } rows[] = {
        {&codec_call, "{\"args\":[1,", "", ST_INVALID},
        {&codec_call, "{\"args\":[[[1]],[[1]],[[1]]]}", "args", ST_INVALID},
        {&codec_call, "{\"args\":[[[1,2],[3]],[[1,2],[3,4]]]}", "args[0][1]", ST_INVALID},
        {&codec_call, "{\"args\":[[[1,2,3]],[[1,2,3]]]}", "expected float32[2,3], got shape [1,3]",
         ST_INVALID},
        {&codec_call, "{\"args\":[[[1,2,3],[4,5,6]],[[1,2,3],[4,\"x\",6]]]}", "args[1][1][1]",
         ST_INVALID},
        {&codec_call, "{\"args\":[[[1,2,3],[4,5,6]]]}", "args", ST_INVALID},
        {&codec_oip, OIP(",\"outputs\":[{\"name\":\"nothing\"}]"), "'nothing'", ST_INVALID},
        {&codec_oip,
         "{\"inputs\":[{\"name\":\"other\",\"shape\":[1],\"datatype\":\"FP32\","
         "\"data\":[1]}]}",
         "'other'", ST_INVALID},
        {&codec_oip,
         "{\"inputs\":[{\"name\":\"input_0\",\"shape\":[2,3],\"datatype\":\"FP32\","
         "\"data\":[1,2]}]}",
         "inputs[0].data: expected 6 elements (shape [2,3]), got 2", ST_INVALID},
        {&codec_oip, "{\"inputs\":[]}", "input 'input_0' is missing", ST_INVALID},
        {&codec_oip, "[]", "", ST_INVALID},
        {&codec_predict, "{\"instances\":[]}", "instances", ST_INVALID},
    };
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (call("add", rows[i].codec, rows[i].body) != OUTCOME_FAILED ||
            world.err.code != rows[i].status || !strstr(world.err.text, rows[i].text)) {
            print_error("%s: %d '%s', expected %d '%s'\n", rows[i].body, world.err.code,
                        world.err.text, rows[i].status, rows[i].text);
            wrong++;
        }
        world_end(&world, 400);
    }
    assert_int_equal(wrong, 0);
}

static void a_head_is_checked_before_the_body(void **state)
{
    static const struct {
        const char *model, *field, *value, *text;
        int status;
    } rows[] = {
        {"nobody", "Accept", "*/*", "'nobody'", 404},
        {"add", "Content-Encoding", "br", "expected gzip or deflate, got 'br'", 415},
        {"add", "X-Request-Timeout-Ms", "0", "expected a number from 1 on, got '0'", 400},
        {"add", "X-Request-Timeout-Ms", "5s", "expected a number from 1 on, got '5s'", 400},
        {"add", "X-Request-Timeout-Ms", "99999999999999999999", "got '9999", 400},
        {"add", "Content-Type", "image/png", "", 415},
    };
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        world_add_field(&world, rows[i].field, rows[i].value);
        int status = world_begin(&world, rows[i].model, "", &infer_one_ops, &codec_call);
        if (status != rows[i].status || !strstr(world.err.text, rows[i].text)) {
            print_error("%s: %s: %d '%s'\n", rows[i].field, rows[i].value, status, world.err.text);
            wrong++;
        }
        world_end(&world, 0);
    }
    assert_int_equal(wrong, 0);
    world_add_field(&world, "Content-Encoding", "gzip");
    world_add_field(&world, "Content-Encoding", "gzip");
    assert_int_equal(world_begin(&world, "add", "", &infer_one_ops, &codec_call), 415);
    world_end(&world, 0);
}

/* The step is undone and begins again where it may take longer. */
static void a_step_that_is_too_long_for_the_loop_moves(void **state)
{
    (void)state;
    assert_int_equal(call("add", &codec_call, ARGS), OUTCOME_DONE);
    assert_true(world.move_count > 0);
    expect_text(SUM);
    world_end(&world, 200);
}

/* A call whose tensors are no small ones (runtime/call/small.c): 20 pictures of digits. */
static void receive_pictures(void)
{
    char body[16384];
    int len = snprintf(body, sizeof(body),
                       "{\"inputs\":[{\"name\":\"input_0\",\"shape\":[20,1,8,8],"
                       "\"datatype\":\"FP32\",\"data\":[0");
    for (int i = 1; i < 20 * 64; i++) {
        len += snprintf(body + len, sizeof(body) - (size_t)len, ",%d", i % 17);
    }
    len += snprintf(body + len, sizeof(body) - (size_t)len, "]}]}");
    assert_true(len < (int)sizeof(body));
    world_receive(&world, span_of(body, (size_t)len));
}

/* Another call holds all memory of the model: the step waits, and the error says for what. */
static void a_step_without_memory_waits(void **state)
{
    (void)state;
    assert_int_equal(world_begin(&world, "digits", "", &infer_one_ops, &codec_oip), 200);
    receive_pictures();
    world_hold_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    assert_int_equal(world.err.code, ST_EXHAUSTED);
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    world_give_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    expect_text("\"shape\":[20,10]");
    world_end(&world, 200);
}

/* A small call takes none of it. */
static void a_small_call_needs_no_memory(void **state)
{
    (void)state;
    assert_int_equal(world_begin(&world, "add", "", &infer_one_ops, &codec_call), 200);
    world_receive(&world, span_str(ARGS));
    world_hold_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    expect_text(SUM);
    world_give_memory(&world);
    world_end(&world, 200);
}

static void the_clients_limits_are_taken(void **state)
{
    struct error err;
    (void)state;
    world_add_field(&world, "X-Request-Timeout-Ms", "5000");
    assert_int_equal(call("add", &codec_oip,
                          OIP(",\"parameters\":{\"priority\":3,"
                              "\"timeout\":2000000}")),
                     OUTCOME_DONE);
    assert_int_equal(world.infer.priority, 3);
    assert_int_equal(world.infer.timeout_us, 2000000);
    uint64_t due_ns = world.infer.arrived_ns + 2000000000u;
    assert_true(infer_client_due_ns(&world.infer) == due_ns);
    assert_true(infer_deadline_ns(&world.infer) == due_ns);
    assert_fails(err, infer_fail_late(&world.infer, &err), ST_TIMEOUT, "not done after 2000 ms");
    world_end(&world, 200);
    assert_int_equal(call("add", &codec_oip, OIP("")), OUTCOME_DONE);
    assert_true(infer_client_due_ns(&world.infer) == RT_SCHED_NEVER);
    assert_fails(err, infer_fail_late(&world.infer, &err), ST_TIMEOUT, "(--request-timeout)");
    world_end(&world, 200);
}

/* A run that is late before it begins is not done, and the call ends. */
static void a_late_run_ends_the_call(void **state)
{
    (void)state;
    assert_int_equal(world_begin(&world, "add", "", &infer_one_ops, &codec_call), 200);
    world_receive(&world, span_str(ARGS));
    assert_int_equal(world_decode(&world), OUTCOME_DONE);
    assert_int_equal(infer_finish(&world.infer, ST_TIMEOUT, &world.err), OUTCOME_FAILED);
    assert_int_equal(world.err.code, ST_TIMEOUT);
    assert_non_null(strstr(world.err.text, "model 'add': "));
    world_end(&world, 504);
    struct model *model = world_model(&world, "add");
    assert_true(model->stats->failed.count > 0);
    model_unref(model);
}

/* ---- runs that do not end well --------------------------------------------------------------- */

/* The text is written once, where a kernel or the scheduler knows it. */
static void a_fault_has_the_clients_name(void **state)
{
    static const struct {
        const struct codec *codec;
        const char *body, *text;
    } rows[] = {
        {&codec_oip,
         "{\"inputs\":[{\"name\":\"input_0\",\"shape\":[5,3],\"datatype\":\"FP32\",\"data\":"
         "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14]},{\"name\":\"input_1\",\"shape\":[3],\"datatype\":"
         "\"INT64\",\"data\":[4,0,5]},{\"name\":\"input_2\",\"shape\":[1,3],\"datatype\":\"INT64\","
         "\"data\":[0,0,0]}]}",
         "model 'faults': inputs[1] 'input_1'[2]: embedding: an index is out of range: got 5, "
         "expected 0 to 4"},
        {&codec_call,
         "{\"args\":[[[0,1,2],[3,4,5],[6,7,8],[9,10,11],[12,13,14]],[4,0,3],[[0,5,1]]]}",
         "model 'faults': args[2][0][1]: gather: an index is out of range: got 5, expected 0 to 4"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(call("faults", rows[i].codec, rows[i].body), OUTCOME_FAILED);
        assert_int_equal(world.err.code, ST_INVALID);
        assert_string_equal(world.err.text, rows[i].text);
        world_end(&world, 400);
    }
    assert_int_equal(
        list("[{\"model_name\":\"faults\",\"args\":[[[0,1,2],[3,4,5],[6,7,8],[9,10,11],"
             "[12,13,14]],[4,0,3],[[0,5,1]]]}]"),
        OUTCOME_DONE);
    assert_int_equal(world.failure_count, 1);
    expect_text(rows[1].text);
    world_end(&world, 200);
}

/* A job that runs until the test ends it: the model runs no other meanwhile. */
static struct rt_sched_job blocker;

static bool start_blocker(struct rt_sched_job *job, bool may_run_inline)
{
    (void)job;
    (void)may_run_inline;
    return true;
}

static bool cancel_blocker(struct rt_sched_job *job)
{
    (void)job;
    return false;
}

static void end_blocker(struct rt_sched_job *job, enum status status)
{
    (void)job;
    (void)status;
}

static const struct rt_sched_job_ops blocker_ops = {
    .start = start_blocker, .cancel = cancel_blocker, .done = end_blocker};

static void unblock(struct world *w)
{
    rt_sched_finished(&blocker, ST_OK);
    rt_sched_released(w->serving->sched);
}

static void cancel_it(struct world *w)
{
    rt_sched_cancel(&w->infer.job);
    unblock(w);
}

/* The scheduler looks at deadlines when it is called. */
static void expire_it(struct world *w)
{
    while (uv_hrtime() < w->infer.job.deadline_ns) {
    }
    rt_sched_expire(w->serving->sched);
    unblock(w);
}

static void begin_waiting(const char *body, void (*meanwhile)(struct world *w))
{
    struct model *model = world_model(&world, "add");
    assert_int_equal(world_begin(&world, "add", "", &infer_one_ops, &codec_oip), 200);
    world_receive(&world, span_str(body));
    assert_int_equal(world_decode(&world), OUTCOME_DONE);
    blocker = (struct rt_sched_job){.ops = &blocker_ops, .deadline_ns = RT_SCHED_NEVER};
    assert_ok(world.err, rt_sched_submit(model->queue, &blocker, false, &world.err));
    world.meanwhile = meanwhile;
    model_unref(model);
}

static void a_run_that_waits_can_be_cancelled(void **state)
{
    struct model *model = world_model(&world, "add");
    uint64_t cancelled = model->stats->cancelled.count;
    (void)state;
    begin_waiting(OIP(""), cancel_it);
    assert_int_equal(world_run(&world), OUTCOME_FAILED);
    assert_int_equal(world.run_status, ST_CANCELLED);
    assert_int_equal(world.infer.job.started_ns, 0);
    world.infer.is_left = true;
    world_end(&world, 499);
    assert_int_equal(model->stats->cancelled.count, cancelled + 1);
    model_unref(model);
}

static void a_run_that_waits_can_be_late(void **state)
{
    (void)state;
    begin_waiting(OIP(",\"parameters\":{\"timeout\":1}"), expire_it);
    assert_int_equal(world_run(&world), OUTCOME_FAILED);
    assert_int_equal(world.run_status, ST_TIMEOUT);
    assert_string_equal(world.err.text, "model 'add': still waiting after 0.001 ms");
    world_end(&world, 504);
}

static void a_run_that_waits_has_its_turn(void **state)
{
    (void)state;
    begin_waiting(OIP(""), unblock);
    assert_int_equal(world_run(&world), OUTCOME_DONE);
    expect_text("\"data\":[2.0,3.0,4.0,5.0,6.0,7.0]");
    world_end(&world, 200);
}

/* A run needs memory of its own; nothing runs that would give any back. */
static void a_run_without_memory_begins_again(void **state)
{
    (void)state;
    assert_int_equal(world_begin(&world, "digits", "", &infer_one_ops, &codec_oip), 200);
    receive_pictures();
    assert_int_equal(world_decode(&world), OUTCOME_DONE);
    world.is_short = true;
    assert_int_equal(world_run(&world), OUTCOME_WAIT_MEMORY);
    assert_int_equal(world.err.code, ST_EXHAUSTED);
    world_give_memory(&world);
    world.is_short = false;
    assert_int_equal(world_run(&world), OUTCOME_DONE);
    expect_text("\"shape\":[20,10]");
    world_end(&world, 200);
}

/* ---- codings --------------------------------------------------------------------------------- */

/* White space makes the body worth compressing; the answer has classes of ten digits. */
static void a_body_and_an_answer_may_be_compressed(void **state)
{
    struct body inflated;
    struct buf body, plain;
    struct error err;
    (void)state;
    buf_init(&plain, 1 << 20);
    buf_init(&body, 1 << 20);
    buf_add_str(&plain, ARGS);
    buf_add_fill(&plain, ' ', 5000);
    const struct span text = buf_span(&plain);
    assert_ok(err, coding_deflate(CODING_GZIP, &text, 1, &body, &err));
    world_add_field(&world, "Content-Encoding", "gzip");
    assert_int_equal(world_begin(&world, "add", "", &infer_one_ops, &codec_call), 200);
    world_receive(&world, buf_span(&body));
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    expect_text(SUM);
    world_end(&world, 200);

    buf_reset(&plain);
    buf_add_char(&plain, '[');
    for (int i = 0; i < 40; i++) {
        buf_printf(&plain,
                   "%s{\"id\":\"call %d\",\"model_name\":\"add\",\"args\":[[[1,2,3],[4,5,6]],"
                   "[[10,20,30],[40,50,60]]]}",
                   i ? "," : "", i);
    }
    buf_add_char(&plain, ']');
    world_add_field(&world, "Accept-Encoding", "deflate, gzip;q=0.5");
    assert_int_equal(world_begin(&world, "", "", &bundle_ops, &codec_oip), 200);
    world_receive(&world, buf_span(&plain));
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    assert_int_equal(world.infer.coding, CODING_DEFLATE);
    body_init(&inflated, NULL, 1 << 20);
    assert_ok(err, coding_inflate(CODING_DEFLATE, world_answer(&world), &inflated, &err));
    struct span answer = body_span(&inflated);
    assert_non_null(memmem(answer.ptr, answer.len, SUM, strlen(SUM)));
    assert_non_null(memmem(answer.ptr, answer.len, "call 39", 7));
    body_fini(&inflated);
    world_end(&world, 200);
    buf_fini(&body);
    buf_fini(&plain);
}

static void a_body_that_is_not_compressed_is_refused(void **state)
{
    (void)state;
    world_add_field(&world, "Content-Encoding", "gzip");
    assert_int_equal(call("add", &codec_call, ARGS), OUTCOME_FAILED);
    assert_int_equal(world.err.code, ST_INVALID);
    world_end(&world, 400);
}

/* ---- lists of calls -------------------------------------------------------------------------- */

static void a_list_reports_the_call_that_fails(void **state)
{
    (void)state;
    assert_int_equal(list("[{\"model_name\":\"nobody\",\"args\":[]},"
                          "{\"model_name\":\"add\",\"args\":[[[1,2,3],[4,5,6]],"
                          "[[10,20,30],[40,50,60]]]}]"),
                     OUTCOME_DONE);
    assert_int_equal(world.failure_count, 1);
    assert_int_equal(world.failures[0], 0);
    expect_text("\"status\":404");
    expect_text(SUM);
    world_end(&world, 200);
}

static void a_call_of_a_list_takes_the_result_of_another(void **state)
{
    (void)state;
    assert_int_equal(
        list("[{\"id\":\"b\",\"model_name\":\"add\",\"args\":[{\"$from\":{\"id\":\"a\"}},"
             "[[100,100,100],[100,100,100]]]},"
             "{\"id\":\"a\",\"model_name\":\"add\",\"args\":[[[1,2,3],[4,5,6]],"
             "[[10,20,30],[40,50,60]]]}]"),
        OUTCOME_DONE);
    expect_text("[[111.0,122.0,133.0],[144.0,155.0,166.0]]");
    expect_text(SUM);
    world_end(&world, 200);
}

static void a_promise_has_the_form_of_its_call(void **state)
{
    (void)state;
    assert_int_equal(
        list("[{\"id\":\"a\",\"model_name\":\"add\",\"answer\":false,\"args\":[[[1,2,3],[4,5,6]],"
             "[[1,1,1],[1,1,1]]]},"
             "{\"model_name\":\"add\",\"inputs\":[{\"name\":\"input_0\",\"$from\":{\"id\":\"a\","
             "\"output\":\"output_0\"}},{\"name\":\"input_1\",\"$from\":{\"id\":\"a\"}}]}]"),
        OUTCOME_DONE);
    expect_text("\"data\":[4.0,6.0,8.0,10.0,12.0,14.0]");
    world_end(&world, 200);
}

static void a_promise_that_cannot_be_kept_fails_its_call(void **state)
{
    static const struct {
        const char *inputs, *text;
    } rows[] = {
        {"{\"name\":\"input_0\",\"$from\":{\"id\":\"a\",\"output\":\"nothing\"}}", "nothing"},
        {"{\"name\":\"other\",\"$from\":{\"id\":\"a\"}}", "other"},
    };
    char body[1024];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(
            body, sizeof(body),
            "[{\"id\":\"a\",\"model_name\":\"add\",\"args\":[[[1,2,3],[4,5,6]],[[1,1,1],[1,1,"
            "1]]]},{\"model_name\":\"add\",\"inputs\":[%s,{\"name\":\"input_1\",\"$from\":{\"id\":"
            "\"a\"}}]}]",
            rows[i].inputs);
        assert_int_equal(list(body), OUTCOME_DONE);
        assert_int_equal(world.failure_count, 1);
        assert_int_equal(world.failures[0], 1);
        expect_text(rows[i].text);
        expect_text("\"status\":400");
        world_end(&world, 200);
    }
}

static void a_list_with_a_mistake_is_refused(void **state)
{
    static const struct {
        const char *body, *text;
    } rows[] = {
        {"{}", "array"},
        {"[]", ""},
        {"[{\"id\":\"a\",\"model_name\":\"add\",\"args\":[]},"
         "{\"id\":\"a\",\"model_name\":\"add\",\"args\":[]}]",
         "id"},
        {"[{\"id\":\"a\",\"model_name\":\"add\",\"args\":[{\"$from\":{\"id\":\"b\"}},{\"$from\":{"
         "\"id\":\"b\"}}]},"
         "{\"id\":\"b\",\"model_name\":\"add\",\"args\":[{\"$from\":{\"id\":\"a\"}},{\"$from\":{"
         "\"id\":\"a\"}}]}]",
         "$from"},
    };
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (list(rows[i].body) != OUTCOME_FAILED || world.err.code != ST_INVALID ||
            !strstr(world.err.text, rows[i].text)) {
            print_error("%s: %d '%s'\n", rows[i].body, world.err.code, world.err.text);
            wrong++;
        }
        world_end(&world, 400);
    }
    assert_int_equal(wrong, 0);
}

static void a_list_without_memory_waits(void **state)
{
    (void)state;
    assert_int_equal(world_begin(&world, "", "", &bundle_ops, &codec_oip), 200);
    world_receive(&world, span_str("[{\"model_name\":\"add\",\"args\":[[[1,2,3],[4,5,6]],"
                                   "[[10,20,30],[40,50,60]]]}]"));
    world_hold_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    world_give_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    expect_text(SUM);
    world_end(&world, 200);
}

/* ---- a kind of request of many calls --------------------------------------------------------- */

/* Adds a number to itself, |left| times. It sets what no other kind sets, and leaves the rest to
 * the defaults. */
#define DOUBLING_MAGIC 0x64626c67u

struct doubling {
    uint32_t magic;
    int left;
    bool lacks_memory; /* decode() finds none, whoever holds it */
    float value;
    struct runs_times times;
};

static unsigned doubling_count; /* that are alive */

static struct doubling *doubling_of(const struct infer *infer)
{
    struct doubling *doubling;
    OBJ_CAST(doubling, infer->own, DOUBLING_MAGIC);
    return doubling;
}

static void doubling_free(struct infer *infer)
{
    free(doubling_of(infer));
    doubling_count--;
}

static enum status doubling_parse(struct infer *infer, struct infer_call *call,
                                  const struct oip_body *parts, struct span *out_rest,
                                  struct error *err)
{
    (void)out_rest;
    assert_null(infer->own);
    struct doubling *doubling = calloc(1, sizeof(*doubling));
    assert_non_null(doubling);
    *doubling = (struct doubling){.magic = DOUBLING_MAGIC, .value = 1};
    infer->own = doubling;
    doubling_count++;
    call->joined = -1;
    call->sample_count = 1;
    doubling->left = parts->json.len > 0 ? parts->json.ptr[0] - '0' : 0;
    doubling->lacks_memory = parts->json.len > 1;
    return doubling->left > 0 ? infer_find_model(infer, call, "add", 0, err)
                              : error_set(err, ST_INVALID, "expected a digit from 1 on");
}

static enum status doubling_decode(struct infer *infer, struct error *err)
{
    const struct shape shape = {.rank = 2, .dims = {2, 3}};
    void *memory;
    if (doubling_of(infer)->lacks_memory) {
        return error_set(err, ST_EXHAUSTED, "no memory now");
    }
    TRY(infer_invoke(infer, infer->call.model->method, err));
    for (uint32_t i = 0; i < 2; i++) {
        TRY(infer_input(infer, &infer->call, i, DT_F32, &shape, &memory, err));
        for (int j = 0; j < 6; j++) {
            ((float *)memory)[j] = doubling_of(infer)->value;
        }
    }
    return ST_OK;
}

static enum status doubling_open_states(struct infer *infer, struct error *err)
{
    (void)infer;
    (void)err;
    return ST_OK;
}

static void doubling_count_run(struct infer *infer)
{
    runs_add_times(&doubling_of(infer)->times, &infer->job);
    runs_join_times(&doubling_of(infer)->times, &infer->job);
}

static enum status doubling_sample(struct infer *infer, struct error *err)
{
    (void)err;
    struct doubling *doubling = doubling_of(infer);
    memcpy(&doubling->value, rt_invocation_result(infer->call.invocation, 0)->bytes.ptr,
           sizeof(doubling->value));
    doubling->left--;
    return ST_OK;
}

static bool doubling_is_over(const struct infer *infer)
{
    return doubling_of(infer)->left == 0;
}

static enum status doubling_print(struct infer *infer, struct error *err)
{
    (void)err;
    buf_printf(infer->out, "%g", (double)doubling_of(infer)->value);
    return ST_OK;
}

static size_t doubling_own_bytes(const struct infer *infer)
{
    return sizeof(*doubling_of(infer));
}

static const struct codec doubling_codec = {.parse = doubling_parse, .name_input = codec_name_none};

static const struct infer_ops doubling_ops = {
    .life =
        {
            .is_apart = true,
            .find = infer_find_any,
            .parse = runs_parse,
            .decode = doubling_decode,
            .own_bytes = doubling_own_bytes,
            .free = doubling_free,
        },
    .run =
        {
            .open_states = doubling_open_states,
            .count_run = doubling_count_run,
            .sample = doubling_sample,
            .is_over = doubling_is_over,
        },
    .print = {.print = doubling_print},
};

static void a_kind_of_many_calls_leaves_the_rest_to_defaults(void **state)
{
    (void)state;
    assert_int_equal(world_ask(&world, "", "", &doubling_ops, &doubling_codec, "5"), OUTCOME_DONE);
    assert_true(span_is(world_answer(&world), "32"));
    assert_int_equal(world.run_count, 5);
    assert_null(world.infer.call.invocation);
    assert_true(infer_held_bytes(&world.infer) >= sizeof(struct doubling));
    assert_int_equal(infer_text_weight(&world.infer), 1);
    world_end(&world, 200);
    assert_int_equal(doubling_count, 0);
}

/* What a kind owns is freed before its PARSE begins again, and at the end. */
static void a_kind_is_freed_once(void **state)
{
    (void)state;
    assert_int_equal(world_ask(&world, "", "", &doubling_ops, &doubling_codec, "0"),
                     OUTCOME_FAILED);
    assert_int_equal(doubling_count, 1);
    assert_int_equal(world_go(&world), OUTCOME_FAILED);
    assert_int_equal(doubling_count, 1);
    world_end(&world, 400);
    assert_int_equal(doubling_count, 0);
}

static void a_run_of_many_without_memory_waits(void **state)
{
    (void)state;
    assert_int_equal(world_begin(&world, "", "", &doubling_ops, &doubling_codec), 200);
    world_receive(&world, span_str("3"));
    world_hold_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    world_give_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    assert_true(span_is(world_answer(&world), "8"));
    world_end(&world, 200);
}

/* Others may have given their memory back since the step looked for it. */
static void a_request_that_is_alone_tries_twice(void **state)
{
    (void)state;
    assert_int_equal(world_begin(&world, "", "", &doubling_ops, &doubling_codec), 200);
    world_receive(&world, span_str("3-"));
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    world_hold_memory(&world); /* now it is not alone */
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    world_give_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    assert_int_equal(world_go(&world), OUTCOME_FAILED);
    assert_int_equal(world.err.code, ST_TOO_LARGE);
    world_end(&world, 413);
}

static void a_client_that_goes_ends_the_runs(void **state)
{
    (void)state;
    assert_int_equal(world_begin(&world, "", "", &doubling_ops, &doubling_codec), 200);
    world_receive(&world, span_str("9"));
    world.stop_after = 2;
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    assert_int_equal(world.run_count, 2);
    world_end(&world, 200);
    assert_int_equal(doubling_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_goes_from_its_body_to_its_answer),
        cmocka_unit_test(codecs_say_the_same),
        cmocka_unit_test(an_id_is_kept_after_the_body_has_gone),
        cmocka_unit_test(mistakes_have_their_texts),
        cmocka_unit_test(a_head_is_checked_before_the_body),
        cmocka_unit_test(a_step_that_is_too_long_for_the_loop_moves),
        cmocka_unit_test(a_step_without_memory_waits),
        cmocka_unit_test(a_small_call_needs_no_memory),
        cmocka_unit_test(the_clients_limits_are_taken),
        cmocka_unit_test(a_late_run_ends_the_call),
        cmocka_unit_test(a_fault_has_the_clients_name),
        cmocka_unit_test(a_run_that_waits_can_be_cancelled),
        cmocka_unit_test(a_run_that_waits_can_be_late),
        cmocka_unit_test(a_run_that_waits_has_its_turn),
        cmocka_unit_test(a_run_without_memory_begins_again),
        cmocka_unit_test(a_body_and_an_answer_may_be_compressed),
        cmocka_unit_test(a_body_that_is_not_compressed_is_refused),
        cmocka_unit_test(a_list_reports_the_call_that_fails),
        cmocka_unit_test(a_call_of_a_list_takes_the_result_of_another),
        cmocka_unit_test(a_promise_that_cannot_be_kept_fails_its_call),
        cmocka_unit_test(a_promise_has_the_form_of_its_call),
        cmocka_unit_test(a_list_with_a_mistake_is_refused),
        cmocka_unit_test(a_list_without_memory_waits),
        cmocka_unit_test(a_kind_of_many_calls_leaves_the_rest_to_defaults),
        cmocka_unit_test(a_kind_is_freed_once),
        cmocka_unit_test(a_run_of_many_without_memory_waits),
        cmocka_unit_test(a_request_that_is_alone_tries_twice),
        cmocka_unit_test(a_client_that_goes_ends_the_runs),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
