/* SPDX-License-Identifier: MIT */
/* What SIGUSR1 writes to the log: the daemon, models with calls, requests in flight. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/daemon/observe/dump.h"
#include "server/process/log.h"
#include "tests/unit/api_support.h"
#include "tests/unit/sched_support.h"

#define JOBS 3 /* two of them run */
#define CROWD 103

uint64_t __wrap_uv_hrtime(void);

uint64_t __wrap_uv_hrtime(void)
{
    return 9000000000;
}

static struct api_world world;
static char log_file[] = "/tmp/test_dump_XXXXXX";

static int open_world(void **state)
{
    (void)state;
    int fd = mkstemp(log_file);
    assert_true(fd >= 0);
    close(fd);
    api_world_open(&world, (const char *const[]){"@add.pte", "--ring-bytes=8M", NULL});
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    api_world_close(&world);
    return unlink(log_file);
}

/* The lines of a dump, without the time in front; the log goes elsewhere again. */
static const char *dump(void)
{
    static char text[64 << 10];
    char line[1024];
    size_t len = 0;
    assert_int_equal(truncate(log_file, 0), 0);
    assert_ok(world.err, log_open(log_file, LOG_NOTICE, &world.err));
    dump_in_flight(&world.observed);
    assert_ok(world.err, log_open(NULL, LOG_ERROR, &world.err));
    FILE *file = fopen(log_file, "re");
    assert_non_null(file);
    text[0] = '\0';
    while (fgets(line, sizeof(line), file)) {
        const char *words = strstr(line, "notice: ");
        assert_non_null(words);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", words + 8);
        assert_true(len < sizeof(text));
    }
    fclose(file);
    return text;
}

#define NOTHING "0 tasks of requests and 0 of models on 4 threads"

static void an_idle_daemon_has_a_line(void **state)
{
    (void)state;
    assert_string_equal(dump(), "SIGUSR1: 0 connections, 0 requests, 0 B of 8.0 MiB for them in "
                                "use, " NOTHING "\n");
}

static void the_line_says_what_the_daemon_is_about(void **state)
{
    (void)state;
    world.conns.count = 3;
    world.requests.busy_count = 2;
    world.offload.open[OFFLOAD_REQUEST] = 4;
    world.offload.open[OFFLOAD_HEAVY] = 5;
    world.offload.open[OFFLOAD_LONG] = 6;
    world.loop.is_starting = world.loop.is_draining = world.recovery.is_active = true;
    assert_string_equal(dump(), "SIGUSR1: 3 connections, 2 requests, 0 B of 8.0 MiB for them in "
                                "use, 9 tasks of requests and 6 of models on 4 threads, starting, "
                                "stopping, the device was lost\n");
    world.loop.is_starting = world.loop.is_draining = world.recovery.is_active = false;
    world.conns.count = world.requests.busy_count = 0;
    memset(world.offload.open, 0, sizeof(world.offload.open));
}

static void models_with_calls_have_lines(void **state)
{
    static struct job jobs[JOBS];
    struct model *model;
    (void)state;
    memory_left = JOBS;
    assert_ok(world.err, repository_find(&world.serving->repository, "add", 0, &model, &world.err));
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.name = (char)('a' + i), .memory = 1};
        jobs[i].sched.ops = &job_ops;
        jobs[i].sched.bytes = 2048;
        jobs[i].sched.deadline_ns = UINT64_MAX;
        assert_ok(world.err, rt_sched_submit(model->queue, &jobs[i].sched, false, &world.err));
    }
    model_unref(model);
    assert_non_null(strstr(dump(), "threads\nSIGUSR1: model add version 1: 2 calls run, 1 wait "
                                   "with 2.0 KiB\n"));
    for (int i = 0; i < JOBS; i++) {
        rt_sched_finished(&jobs[i].sched, ST_OK);
        rt_sched_released(world.serving->sched);
    }
    assert_null(strstr(dump(), "model add"));
}

/* ---- requests -------------------------------------------------------------------------------- */

static void enter(struct exchange *exchange, enum exchange_incoming incoming)
{
    struct request *request = &world.request;
    *exchange = (struct exchange){
        .magic = EXCHANGE_MAGIC, .incoming = incoming, .request = request, .sent_bytes = 40};
    list_init(&exchange->link);
    list_push_back(&world.requests.transfers.exchanges, &exchange->link);
}

static void begin(const char *target)
{
    struct request *request = &world.request;
    api_world_begin(&world, "", "");
    assert_int_equal(
        head_add_target(&request->head, &world.options.params, span_str(target), &world.err), 0);
    request->sender.remote = "192.0.2.1";
    request->sender.via = NULL;
    request->method = "POST";
    request->infer.arrived_ns = 0;
    request->body_bytes = 7;
    request->step = STEP_PARSE;
}

static void check_request(enum exchange_incoming incoming, const char *expected)
{
    struct exchange exchange;
    enter(&exchange, incoming);
    const char *text = strchr(dump(), '\n') + 1;
    list_remove(&exchange.link);
    assert_string_equal(text, expected);
}

#define REMOTE "SIGUSR1: request remote=192.0.2.1 method=POST step="

static void a_request_says_how_far_it_is(void **state)
{
    struct request *request = &world.request;
    (void)state;
    begin("/v2/models/m/infer?token=secret");
    check_request(EXCHANGE_HEAD, REMOTE "head ms=0 in=7 out=40 path=/v2/models/m/infer\n");
    check_request(EXCHANGE_BODY, REMOTE "body ms=0 in=7 out=40 path=/v2/models/m/infer\n");
    request->infer.arrived_ns = 9000000000 - 1500000000;
    check_request(EXCHANGE_RECEIVED, REMOTE "PARSE ms=1500 in=7 out=40 path=/v2/models/m/infer\n");
    request->is_on_worker = true; /* which changes the step */
    check_request(EXCHANGE_RECEIVED, REMOTE "thread ms=1500 in=7 out=40 path=/v2/models/m/infer\n");
    request->is_on_worker = false;
    check_request(EXCHANGE_NO_REQUEST, ""); /* its client has gone */
}

static void no_target_forges_a_line(void **state)
{
    char target[300] = "/a\nb\x1b[31m", expected[512];
    (void)state;
    memset(target + 9, 'x', sizeof(target) - 10);
    target[0] = '/';
    begin(target);
    world.request.sender.via = "203.0.113.9";
    world.request.method = NULL;
    snprintf(
        expected, sizeof(expected),
        "SIGUSR1: request remote=192.0.2.1 via=203.0.113.9 method=- step=head ms=0 in=7 out=40 "
        "path=/a\\x0ab\\x1b[31m%.*s\n",
        191, target + 9);
    check_request(EXCHANGE_HEAD, expected);
}

static void of_a_crowd_a_hundred_have_lines(void **state)
{
    static struct exchange crowd[CROWD];
    unsigned count = 0;
    (void)state;
    begin("/");
    for (int i = 0; i < CROWD; i++) {
        enter(&crowd[i], EXCHANGE_BODY);
    }
    const char *text = dump();
    for (int i = 0; i < CROWD; i++) {
        list_remove(&crowd[i].link);
    }
    for (const char *at = text; (at = strstr(at, "request remote=")); at++) {
        count++;
    }
    assert_int_equal(count, 100);
    assert_non_null(strstr(text, "\nSIGUSR1: and 3 more requests\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_daemon_has_a_line),
        cmocka_unit_test(the_line_says_what_the_daemon_is_about),
        cmocka_unit_test(models_with_calls_have_lines),
        cmocka_unit_test(a_request_says_how_far_it_is),
        cmocka_unit_test(no_target_forges_a_line),
        cmocka_unit_test(of_a_crowd_a_hundred_have_lines),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
