/* SPDX-License-Identifier: MIT */
/*
 * The page of metrics for a daemon whose counts are made up. tests/unit/metrics.txt has the whole
 * page: a * there stands for a number or a text that depends on the machine or on the process.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/resource.h"
#include "server/daemon/serving/serving.h"
#include "server/http/tls_context.h"
#include "server/language/generator.h"
#include "server/language/transcriber.h"
#include "server/process/log.h"
#include "tests/unit/api_support.h"
#include "tests/unit/sched_support.h"

#define LINE_BYTES 512
#define JOBS 3 /* two of them run */

static struct api_world world;
static char folder[] = "/tmp/test_metrics_XXXXXX", bad_file[64];
static struct job jobs[JOBS];

/* ---- a daemon -------------------------------------------------------------------------------- */

static int open_world(void **state)
{
    char models[64], pipeline[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(bad_file, sizeof(bad_file), "%s/bad.pte", folder);
    snprintf(models, sizeof(models), "--models=%s", folder);
    snprintf(pipeline, sizeof(pipeline), "--pipeline=%s/twice.json", folder);
    FILE *file = fopen(bad_file, "we");
    assert_non_null(file);
    fputs("no program", file);
    fclose(file);
    file = fopen(strchr(pipeline, '=') + 1, "we");
    assert_non_null(file);
    fputs("{\"twice\":{\"steps\":["
          "{\"model\":\"add\",\"inputs\":[{\"input\":0},{\"input\":1}]},"
          "{\"model\":\"add\",\"inputs\":[{\"from\":0,\"output\":0},{\"input\":1}]}]}}",
          file);
    fclose(file);
    const char *const arguments[] = {"@add.pte", pipeline, models, "--ring-bytes=8M", NULL};
    api_world_open(&world, arguments);
    unlink(strchr(pipeline, '=') + 1);
    memory_left = JOBS;
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    api_world_close(&world);
    unlink(bad_file);
    return rmdir(folder);
}

static struct model *find(const char *name)
{
    struct model *model;
    assert_ok(world.err, repository_find(&world.serving->repository, name, 0, &model, &world.err));
    model_unref(model); /* the repository holds it */
    return model;
}

static void count_requests(enum route_id route, int status, int count)
{
    struct exchange exchange = {.magic = EXCHANGE_MAGIC,
                                .outgoing = status == 499 ? EXCHANGE_NO_ANSWER : EXCHANGE_BEGUN};
    struct request *request = &world.request;
    api_world_begin(&world, "", "");
    request->exchange = &exchange;
    request->match.id = route;
    request->http_status = status == 200 ? 0 : status;
    for (int i = 0; i < count; i++) {
        metrics_count_request(&world.metrics, request);
    }
    request->exchange = NULL;
    request->http_status = 0;
}

static void add_token(const char *name, uint64_t admitted, uint64_t refused)
{
    struct token_use *use = calloc(1, sizeof(*use)); /* freed with the others */
    assert_non_null(use);
    snprintf(use->name, sizeof(use->name), "%s", name);
    counter_add(&use->admitted, admitted);
    counter_add(&use->refused, refused);
    atomic_store(&use->next, atomic_load(&world.requests.access.tokens.uses));
    atomic_store(&world.requests.access.tokens.uses, use);
}

/* Every number is another one, so that no two can be exchanged. */
static void count_the_daemon(void)
{
    struct api_world *w = &world;
    counter_add(&w->changes.counts.made, 11);
    counter_add(&w->changes.counts.refused, 12);
    for (uint32_t i = 0; i < CHANGES_UNLOADS; i++) {
        counter_add(&w->changes.counts.unloads[i], 13 + i);
    }
    w->conns.count = 18;
    counter_add(&w->conns.counts.accepted, 19);
    counter_add(&w->conns.counts.turned_away, 20);
    counter_add(&w->conns.places.displaced, 21);
    for (int i = 0; i < HTTP2_FLOOD_COUNT; i++) {
        counter_add(&w->conns.counts.floods[i], 900 + (uint64_t)i);
    }
    counter_add(&w->conns.counts.received_bytes, 22);
    counter_add(&w->conns.counts.sent_bytes, 23);
    count_requests(ROUTE_CALL, 200, 3);
    count_requests(ROUTE_CALL, 499, 2);
    count_requests(ROUTE_COUNT, 404, 4);
    count_requests(ROUTE_LOG_SETTINGS, 200, 5); /* one path with two methods */
    count_requests(ROUTE_SET_LOG, 200, 6);
    count_requests(ROUTE_SET_LOG, 400, 7);
    add_token("te\"am\\\n\xff", 24, 25);
    for (int i = 0; i < ACCESS_DENIAL_COUNT; i++) {
        counter_add(&w->requests.access.denied[i], 26 + (uint64_t)i);
    }
    w->requests.busy_count = 29;
    histogram_add(&w->loop.turns.lengths, &histogram_times, 30000);
    histogram_add(&w->loop.turns.lengths, &histogram_times, 70000000000);
    w->loop.watch.records.longest_ns[STEP_PARSE] = 31000000;
    w->loop.watch.records.longest_ns[TURN_OTHER] = 32;
    w->loop.watch.records.step_bytes[STEP_ENCODE] = 33;
    w->offload.open[OFFLOAD_REQUEST] = 34;
    w->offload.open[OFFLOAD_HEAVY] = 35;
    w->offload.open[OFFLOAD_LONG] = 36;
    w->requests.transfers.evicted_count = 37;
    counter_add(&w->requests.seats.displaced, 38);
    counter_add(&w->requests.seats.refused, 39);
}

static void count_a_model(struct model_stats *stats)
{
    for (int i = 0; i < 5; i++) {
        status_counts_add(&stats->statuses, i < 3 ? 200 : 400);
    }
    histogram_add(&stats->durations, &histogram_times, 1500000);
    histogram_add(&stats->phases[MODEL_PHASE_PREPARE], &histogram_times, 500000);
    histogram_add(&stats->phases[MODEL_PHASE_QUEUE], &histogram_times, 1000);
    histogram_add(&stats->rows, &histogram_rows, 3);
}

/* As if they had been counted on a device that was lost. Both steps have the name of their model.
 */
static void count_steps(struct model *pipeline)
{
    assert_int_equal(pipeline->step_count, 2);
    pipeline->steps_before[0] =
        (struct rt_step_counts){.count = 60, .ns = 1000000000, .failed_count = 61};
    pipeline->steps_before[1] =
        (struct rt_step_counts){.count = 3, .ns = 500000000, .failed_count = 4};
}

/* Two clients have places; two calls of "add" run, and one waits. */
static void take_shares(void)
{
    struct share *places = &world.conns.places.shares[LISTENER_PUBLIC];
    assert_int_equal(share_take(places, 1, 5), SHARE_TAKEN);
    assert_int_equal(share_take(places, 2, 3), SHARE_TAKEN);
    assert_int_equal(share_take(places, 2, 1000), SHARE_ALL_IN_USE);
    assert_int_equal(share_take(&world.requests.admitted, 1, 6), SHARE_TAKEN);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.name = (char)('a' + i), .memory = 1};
        jobs[i].sched.ops = &job_ops;
        jobs[i].sched.bytes = 100;
        jobs[i].sched.deadline_ns = UINT64_MAX;
        assert_ok(world.err,
                  rt_sched_submit(find("add")->queue, &jobs[i].sched, false, &world.err));
    }
}

static void give_shares(void)
{
    share_clear(&world.conns.places.shares[LISTENER_PUBLIC]);
    share_clear(&world.requests.admitted);
    for (int i = 0; i < JOBS; i++) {
        rt_sched_finished(&jobs[i].sched, ST_OK);
        rt_sched_released(world.serving->sched);
    }
    world.requests.busy_count = 0;
}

/* ---- the page -------------------------------------------------------------------------------- */

static const char *ask(const char *accept)
{
    api_world_begin(&world, "", "");
    if (accept) {
        api_world_add_field(&world, "Accept", accept);
    }
    assert_ok(world.err, api_world_call(&world, api_metrics));
    return api_world_answer(&world);
}

/* Does |line| end as |wanted| says, which may have a * for any text without blanks? */
static bool is_line(const char *line, const char *wanted)
{
    const char *star = strchr(wanted, '*');
    if (!star || strncmp(wanted, "#", 1) == 0) {
        return strcmp(line, wanted) == 0;
    }
    size_t head = (size_t)(star - wanted), tail = strlen(star + 1), len = strlen(line);
    return len > head + tail && strncmp(line, wanted, head) == 0 &&
           strcmp(line + len - tail, star + 1) == 0;
}

static FILE *open_page(void)
{
    const char *top = getenv("top_srcdir");
    char path[1024];
    snprintf(path, sizeof(path), "%s/tests/unit/metrics.txt", top ? top : "..");
    FILE *file = fopen(path, "re");
    if (!file) {
        fail_msg("%s is missing", path);
    }
    return file;
}

static void check_page(const char *page)
{
    char wanted[LINE_BYTES], line[LINE_BYTES];
    FILE *file = open_page();
    for (int number = 1; fgets(wanted, sizeof(wanted), file); number++) {
        const char *end = strchr(page, '\n');
        assert_non_null(end);
        snprintf(line, sizeof(line), "%.*s", (int)(end - page), page);
        wanted[strcspn(wanted, "\n")] = '\0';
        if (!is_line(line, wanted)) {
            fail_msg("line %d is\n%s\nexpected\n%s", number, line, wanted);
        }
        page = end + 1;
    }
    fclose(file);
    assert_string_equal(page, "");
}

static void the_page_has_every_count(void **state)
{
    (void)state;
    count_the_daemon();
    count_a_model(find("add")->stats);
    count_steps(find("twice"));
    take_shares();
    const char *page = ask(NULL);
    check_page(page);
    assert_string_equal(world.request.content_type, "text/plain; version=0.0.4; charset=utf-8");
    give_shares();
}

/* The first line of |page| that begins with |text|, to its end; a copy until the next call. */
static const char *line_with(const char *page, const char *text)
{
    static char line[LINE_BYTES];
    size_t len = strlen(text);
    for (; *page; page = strchr(page, '\n') + 1) {
        if (strncmp(page, text, len) == 0) {
            snprintf(line, sizeof(line), "%.*s", (int)strcspn(page, "\n"), page);
            return line;
        }
    }
    return NULL;
}

static void the_other_format_has_units_and_an_end(void **state)
{
    (void)state;
    const char *page = ask("application/openmetrics-text; version=1.0.0, text/plain; q=0.5");
    assert_string_equal(world.request.content_type,
                        "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert_string_equal(page + strlen(page) - 6, "# EOF\n");
    assert_string_equal(line_with(page, "# TYPE pted_build"), "# TYPE pted_build info");
    assert_string_equal(line_with(page, "# TYPE pted_received_bytes"),
                        "# TYPE pted_received_bytes counter");
    assert_string_equal(line_with(page, "# UNIT pted_received_bytes"),
                        "# UNIT pted_received_bytes bytes");
    assert_non_null(line_with(page, "pted_received_bytes_total 22"));
    assert_null(line_with(page, "# UNIT pted_models "));
}

/* Without a certificate they have no series; the_page_has_every_count() sees that. */
static void a_certificate_brings_the_metrics_of_tls(void **state)
{
    static struct tls_context context = {.expiry_s = 1900000000};
    (void)state;
    counter_add(&world.tls.hub.handshakes[0][0], 51);
    counter_add(&world.tls.hub.handshakes[TLS_VERSION_COUNT - 1][1], 52);
    counter_add(&world.tls.hub.failures[0], 53);
    world.tls.context = &context;
    const char *page = ask(NULL);
    char line[LINE_BYTES];
    assert_non_null(line_with(page, "pted_tls_certificate_expiry_time_seconds 1900000000"));
    snprintf(line, sizeof(line), "pted_tls_handshakes_total{version=\"%s\",session=\"new\"} 51",
             tls_version_name((enum tls_version)0));
    assert_non_null(line_with(page, line));
    snprintf(line, sizeof(line), "pted_tls_handshakes_total{version=\"%s\",session=\"resumed\"} 52",
             tls_version_name((enum tls_version)(TLS_VERSION_COUNT - 1)));
    assert_non_null(line_with(page, line));
    snprintf(line, sizeof(line), "pted_tls_handshake_failures_total{reason=\"%s\"} 53",
             tls_failure_name((enum tls_failure)0));
    assert_non_null(line_with(page, line));
    world.tls.context = NULL;
}

static void readiness_is_that_of_the_probe(void **state)
{
    (void)state;
    assert_non_null(line_with(ask(NULL), "pted_ready 1"));
    world.loop.is_draining = true;
    assert_non_null(line_with(ask(NULL), "pted_ready 0"));
    world.loop.is_draining = false;
    world.loop.is_starting = true;
    assert_non_null(line_with(ask(NULL), "pted_ready 0"));
    world.loop.is_starting = false;
    world.recovery.is_active = true;
    assert_non_null(line_with(ask(NULL), "pted_ready 0"));
    world.recovery.is_active = false;
}

/* The loop notes its counts first; what happens until the thread prints does not show. */
static void counts_of_the_loop_are_those_of_one_moment(void **state)
{
    (void)state;
    api_world_begin(&world, "", "");
    work_begin(&world.request.infer.work, WORK_ON_LOOP);
    world.conns.count = 5;
    assert_int_equal(api_metrics(&world.request, &world.err), ST_WOULD_BE_HEAVY);
    assert_int_equal(world.request.out.len, 0);
    world.conns.count = 6;
    work_begin(&world.request.infer.work, WORK_HEAVY);
    assert_ok(world.err, api_metrics(&world.request, &world.err));
    assert_non_null(line_with(api_world_answer(&world), "pted_connections 5"));
}

static void a_page_that_is_too_long_is_an_error(void **state)
{
    struct buf kept, *out = &world.request.out;
    (void)state;
    api_world_begin(&world, "", "");
    kept = *out;
    buf_init(out, 1000); /* bytes, at most */
    assert_fails(world.err, api_world_call(&world, api_metrics), ST_TOO_LARGE,
                 "the answer is too long");
    buf_fini(out);
    *out = kept;
}

/* The models have failed and have no queues, and there is no memory for requests: the last test. */
static void after_the_device_was_lost_there_is_a_page(void **state)
{
    (void)state;
    error_set(&world.err, ST_UNAVAILABLE, "the device was lost");
    repository_fail(&world.serving->repository, &world.err);
    serving_shed(world.serving);
    const char *page = ask(NULL);
    assert_non_null(line_with(page, "pted_models{state=\"ready\"} 0"));
    assert_non_null(line_with(page, "pted_models{state=\"failed\"} 3"));
    assert_non_null(line_with(page, "pted_model_ready{model=\"add\",version=\"1\"} 0"));
    assert_non_null(line_with(page, "pted_ring_size_bytes 0"));
    assert_non_null(line_with(page, "pted_sequences 0"));
    assert_null(line_with(page, "pted_share_used{resource=\"sequences\"}"));
    assert_null(line_with(page, "pted_model_waiting_requests{"));
    assert_non_null(line_with(page, "pted_model_requests_total{model=\"add\",version=\"1\","
                                    "code=\"400\"} 2")); /* counts go on */
    assert_ok(world.err, api_world_ask(&world, api_stats, "", ""));
    api_world_check(&world, "{`model_stats`:[],`memory`:null}");
    assert_ok(world.err, api_world_ask(&world, api_models, "", ""));
    api_world_check(&world, "{`models`:[]}");
    assert_ok(world.err, api_world_ask(&world, api_openapi, "", ""));
    assert_ok(world.err, api_world_ask(&world, api_index, "", "{\"ready\":true}"));
    api_world_check(&world, "[]");
}

/* ---- models of words ------------------------------------------------------------------------- */

static void count_tokens(struct model_stats *stats)
{
    counter_add(&stats->prompt_tokens, 40);
    counter_add(&stats->prefix_hits, 41);
    counter_add(&stats->cached_tokens, 42);
    counter_add(&stats->draft_tokens, 43);
    counter_add(&stats->accepted_tokens, 44);
    counter_add(&stats->answer_tokens, 45);
    histogram_add(&stats->first_tokens, &histogram_times, 1000000);
    histogram_add(&stats->next_tokens, &histogram_times, 20000);
}

static int open_words(void **state)
{
    (void)state;
    api_world_open(&world, (const char *const[]){"--model=chat=@chat/model.pte",
                                                 "--model=whisper=@whisper/model.pte", NULL});
    return 0;
}

static int close_words(void **state)
{
    (void)state;
    api_world_close(&world);
    return 0;
}

static void check_line(const char *page, const char *name, const char *model, const char *value)
{
    char line[LINE_BYTES];
    snprintf(line, sizeof(line), "pted_model_%s{model=\"%s\",version=\"1\"} %s", name, model,
             value);
    if (!line_with(page, line)) {
        fail_msg("no line is %s", line);
    }
}

static void a_language_model_counts_tokens(void **state)
{
    (void)state;
    struct model *chat = find("chat");
    count_tokens(chat->stats);
    share_resize(&chat->generator->seats, 4, 0); /* as the first request does */
    assert_int_equal(share_take(&chat->generator->seats, 1, 2), SHARE_TAKEN);
    const char *page = ask(NULL);
    check_line(page, "prompt_tokens_total", "chat", "40");
    check_line(page, "prefix_hits_total", "chat", "41");
    check_line(page, "cached_tokens_total", "chat", "42");
    check_line(page, "draft_tokens_total", "chat", "43");
    check_line(page, "accepted_tokens_total", "chat", "44");
    check_line(page, "answer_tokens_total", "chat", "45");
    check_line(page, "generations", "chat", "2");
    check_line(page, "first_token_seconds_sum", "chat", "0.001");
    check_line(page, "next_token_seconds_sum", "chat", "0.00002");
    assert_null(line_with(page, "pted_model_sound_seconds_total{model=\"chat\""));
    assert_non_null(line_with(page, "pted_share_used{resource=\"generations\"} 2"));
    share_clear(&chat->generator->seats);
}

static void a_speech_model_counts_sound(void **state)
{
    (void)state;
    struct model *whisper = find("whisper");
    counter_add(&whisper->stats->transcriptions, 46);
    counter_add(&whisper->stats->sound_us, 47500000);
    counter_add(&whisper->stats->answer_tokens, 48);
    share_resize(&whisper->transcriber->seats, 4, 0);
    assert_int_equal(share_take(&whisper->transcriber->seats, 1, 1), SHARE_TAKEN);
    const char *page = ask(NULL);
    check_line(page, "transcriptions_total", whisper->name, "46");
    check_line(page, "sound_seconds_total", whisper->name, "47.5");
    check_line(page, "answer_tokens_total", whisper->name, "48");
    check_line(page, "generations", whisper->name, "1");
    assert_null(line_with(page, "pted_model_draft_tokens_total{model=\"whisper"));
    share_clear(&whisper->transcriber->seats);
}

/* OpenAI's clients call a speech model by the name of its file. */
static void clients_of_openai_see_both(void **state)
{
    (void)state;
    assert_ok(world.err, api_world_ask(&world, api_v1_models, "", ""));
    const char *answer = api_world_answer(&world);
    assert_non_null(strstr(answer, "{\"id\":\"chat\",\"root\":\"chat\",\"object\":\"model\","));
    assert_non_null(strstr(answer, "{\"id\":\"whisper\",\"root\":\"whisper\","));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_has_every_count),
        cmocka_unit_test(the_other_format_has_units_and_an_end),
        cmocka_unit_test(a_certificate_brings_the_metrics_of_tls),
        cmocka_unit_test(readiness_is_that_of_the_probe),
        cmocka_unit_test(counts_of_the_loop_are_those_of_one_moment),
        cmocka_unit_test(a_page_that_is_too_long_is_an_error),
        cmocka_unit_test(after_the_device_was_lost_there_is_a_page),
    };
    const struct CMUnitTest of_words[] = {
        cmocka_unit_test(a_language_model_counts_tokens),
        cmocka_unit_test(a_speech_model_counts_sound),
        cmocka_unit_test(clients_of_openai_see_both),
    };
    int failed = cmocka_run_group_tests(tests, open_world, close_world);
    return failed + cmocka_run_group_tests(of_words, open_words, close_words);
}
