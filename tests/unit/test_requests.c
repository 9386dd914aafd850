/* SPDX-License-Identifier: MIT */
/*
 * Requests without a daemon: a loop, a serving without a device, a table of routes of this file,
 * and peers, a protocol without a socket. The program is linked without the parts of the daemon
 * above requests. tests/unit/test_exchange.c has calls of models.
 */
#include "config.h"

#include "tests/unit/log_lines.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/request/routes.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/daemon/serving/trim.h"
#include "server/daemon/serving/waits.h"
#include "server/http/head.h"
#include "server/process/alarm.h"
#include "server/process/log.h"
#include "server/process/options.h"

#define PEERS 2
#define ANSWER_BYTES_MAX 4096

struct peer {
    struct exchange exchange;
    struct buf body;
    int status; /* of the answer; 0: there is none */
    unsigned ends;
};

static struct options options;
static struct loop loop;
static struct alarm alarms;
static struct serving serving;
static struct servings servings;
static struct trim trim;
static struct waits waits;
static struct requests requests;
static struct peer peers[PEERS];

/* ---- what is above requests ------------------------------------------------------------------ */

static unsigned ends, gone, traces, pieces;
static int ended_status;         /* of the request that ended last */
static struct trace ended_trace; /* zeroed: it has none */

static void note_end(void *owner, struct request *request)
{
    assert_ptr_equal(owner, &ends);
    ended_status = request_status(request);
    const struct trace *trace = request_trace(request);
    ended_trace = trace ? *trace : (struct trace){.flags = 0};
    ends++;
}

static void note_gone(void *owner)
{
    assert_ptr_equal(owner, &ends);
    gone++;
}

static bool begin_trace(void *owner, struct trace *out_trace)
{
    assert_ptr_equal(owner, &ends);
    trace_begin(&requests.traces, span_str(""), out_trace);
    traces++;
    return true;
}

static const struct requests_ops ops = {note_end, note_gone, begin_trace};

static enum status print_live(struct request *request, struct error *err)
{
    (void)err;
    buf_add_str(&request->out, "live");
    return ST_OK;
}

/* Prints a piece in each turn. */
static enum status print_pieces(struct request *request, struct error *err)
{
    (void)err;
    buf_add_str(&request->out, "piece ");
    request->is_unfinished = --pieces > 0;
    return ST_OK;
}

static enum status refusal; /* of refuse() */

static enum status refuse(struct request *request, struct error *err)
{
    (void)request;
    return error_set(err, refusal, "nothing is here");
}

/* Calls of models: there is one of any name but "none". */
static int find(struct infer *infer, struct error *err)
{
    if (strcmp(infer->model_name, "none") != 0) {
        return 200;
    }
    error_set(err, ST_NOT_FOUND, "no model");
    return 404;
}

static unsigned counts;

static void count(const struct infer *infer, int http_status, uint64_t now_ns)
{
    (void)infer;
    (void)now_ns;
    assert_int_equal(http_status, 400);
    counts++;
}

static const struct infer_ops call_ops = {.life = {.find = find, .count = count}};

static void print_plain(struct buf *out, const char *text, int http_status)
{
    buf_printf(out, "error %d: %s", http_status, text);
}

static void print_v1(struct buf *out, const char *text, int http_status)
{
    buf_printf(out, "v1 %d: %s", http_status, text);
}

static const struct route routes[ROUTE_ROW_COUNT] = {
    [ROUTE_LIVE] = {.handler = print_live,
                    .is_for_probes = true,
                    .ignores_queries = true,
                    .print_error = print_plain},
    [ROUTE_READY] = {.handler = refuse,
                     .is_for_probes = true,
                     .ignores_queries = true,
                     .print_error = print_plain},
    [ROUTE_SERVER] = {.handler = print_pieces,
                      .scope = TOKEN_SCOPE_READ,
                      .print_error = print_plain},
    [ROUTE_MODELS] = {.handler = refuse, .scope = TOKEN_SCOPE_READ, .print_error = print_plain},
    [ROUTE_INFER] = {.ops = &call_ops,
                     .codec = &codec_oip,
                     .scope = TOKEN_SCOPE_INFER,
                     .print_error = print_plain},
    [ROUTE_COUNT] = {.print_error = print_plain},
    [ROUTE_NONE_OF_V1] = {.print_error = print_v1},
    [ROUTE_NONE_OF_MESSAGES] = {.print_error = print_v1},
};

/* ---- peers ----------------------------------------------------------------------------------- */

static struct peer *peer_of(struct exchange *exchange)
{
    return LIST_ENTRY(exchange, struct peer, exchange);
}

static enum exchange_written do_write(struct exchange *exchange, const struct exchange_part *part)
{
    struct peer *peer = peer_of(exchange);
    assert_true(part->is_last);
    peer->status = part->answer->status;
    for (unsigned i = 0; i < part->count; i++) {
        buf_add(&peer->body, part->spans[i].ptr, part->spans[i].len);
    }
    return EXCHANGE_WRITTEN;
}

static void do_end(struct exchange *exchange)
{
    peer_of(exchange)->ends++;
}

static void do_nothing(struct exchange *exchange)
{
    (void)exchange;
    fail(); /* memory is never short */
}

static const struct exchange_ops peer_ops = {.write = do_write,
                                             .end = do_end,
                                             .resume = do_nothing,
                                             .refuse = do_nothing,
                                             .abort = do_nothing};

/* Sends a whole request, with a field |name| unless it is NULL. */
static void ask(struct peer *peer, enum route_method method, const char *target, const char *name,
                const char *value)
{
    struct exchange *exchange = &peer->exchange;
    const struct exchange_head head = {.method = method,
                                       .method_name = method == ROUTE_GET_ONLY ? "GET" : "POST"};
    struct error err;
    buf_reset(&peer->body);
    peer->status = 0;
    assert_true(exchange_begin(exchange));
    assert_int_equal(
        head_add_target(exchange_fields(exchange), &options.params, span_str(target), &err), 0);
    if (name) {
        struct head *fields = exchange_fields(exchange);
        head_add_name(fields, span_str(name));
        assert_int_equal(head_add_value(fields, span_str(value), &err), 0);
        head_end_field(fields);
    }
    (void)!exchange_end_head(exchange, &head);
    exchange_run(exchange);
}

static void check(struct peer *peer, int status, const char *body)
{
    buf_add_char(&peer->body, '\0');
    assert_int_equal(peer->status, status);
    assert_string_equal((const char *)peer->body.ptr, body);
}

/* ---- a loop and a serving without a device --------------------------------------------------- */

static void go_on_reader(struct turn_reader *reader)
{
    (void)reader;
    fail(); /* there is no connection */
}

static const struct turns_ops turns_ops = {request_go_on, go_on_reader};

static int set_up(void **state)
{
    struct error err;
    (void)state;
    options_init(&options);
    assert_ok(err, log_open(NULL, LOG_ERROR, &err));
    memset(&loop, 0, sizeof(loop));
    assert_ok(err, loop_init(&loop, &request_turn_steps, &err));
    alarm_init(&alarms);
    loop.alarm = &alarms;
    log_gate_open(&loop.log, &loop.uv);
    turns_init(&loop.turns, &loop.uv, &loop.watch, &turns_ops);
    serving = (struct serving){.magic = SERVING_MAGIC};
    servings = (struct servings){.current = &serving};
    waits_init(&waits, &alarms, &options.params);
    trim_init(&trim, &loop, &servings);
    const struct requests_uses uses = {
        .options = &options,
        .params = &options.params,
        .loop = &loop,
        .servings = &servings,
        .waits = &waits,
        .trim = &trim,
        .routes = routes,
        .ops = &ops,
        .owner = &ends,
    };
    requests_init(&requests, &uses);
    requests_open(&requests);
    requests_resize(&requests, PEERS);
    for (unsigned i = 0; i < PEERS; i++) {
        exchange_init(&peers[i].exchange, &requests, &peer_ops, "nobody");
        buf_init(&peers[i].body, ANSWER_BYTES_MAX);
        peers[i].exchange.client = 1;
        peers[i].ends = 0;
    }
    ends = gone = traces = counts = 0;
    refusal = ST_NOT_FOUND;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PEERS; i++) {
        exchange_fini(&peers[i].exchange);
        buf_fini(&peers[i].body);
    }
    assert_int_equal(serving.users, 0);
    assert_true(list_is_empty(&requests.transfers.exchanges));
    requests_fini(&requests);
    waits_fini(&waits);
    uv_handle_t *handles[] = {(uv_handle_t *)&loop.turns.prepare, (uv_handle_t *)&loop.turns.idle,
                              (uv_handle_t *)&requests.transfers.timer,
                              (uv_handle_t *)&requests.watches.timer, (uv_handle_t *)&trim.timer};
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_close(handles[i], NULL);
    }
    log_gate_close(&loop.log);
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    loop_fini(&loop);
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_request_is_told_of_and_used_again(void **state)
{
    (void)state;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/health/live", NULL, NULL);
    check(&peers[0], 200, "live");
    assert_int_equal(peers[0].ends, 1);
    assert_int_equal(ends, 1);
    assert_int_equal(ended_status, 200);
    assert_int_equal(requests.busy_count, 0);
    assert_int_equal(requests.idle_count, 1);
    const struct list *idle = requests.idle.next;
    ask(&peers[1], ROUTE_GET_ONLY, "/v2/health/live", NULL, NULL);
    check(&peers[1], 200, "live");
    assert_ptr_equal(requests.idle.next, idle);
    assert_int_equal(requests.idle_count, 1);
    assert_int_equal(gone, 0);
}

static void an_error_has_the_form_of_its_route(void **state)
{
    (void)state;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    check(&peers[0], 404, "error 404: nothing is here");
    assert_int_equal(ended_status, 404);
    ask(&peers[0], ROUTE_GET_ONLY, "/v1/nothing", NULL, NULL);
    assert_int_equal(peers[0].status, 404);
    assert_memory_equal(peers[0].body.ptr, "v1 404: ", 8);
    ask(&peers[0], ROUTE_GET_ONLY, "/nothing", NULL, NULL);
    assert_int_equal(peers[0].status, 404);
    assert_memory_equal(peers[0].body.ptr, "error 404: ", 11);
    ask(&peers[0], ROUTE_POST_ONLY, "/v2/models", NULL, NULL);
    assert_int_equal(peers[0].status, 405);
    assert_int_equal(ends, 4);
}

static void a_handler_prints_in_several_turns(void **state)
{
    (void)state;
    pieces = 3;
    loop.watch.begin_ns = 1; /* this turn has no time left */
    ask(&peers[0], ROUTE_GET_ONLY, "/v2", NULL, NULL);
    assert_int_equal(peers[0].status, 0);
    assert_int_equal(requests.busy_count, 1);
    while (peers[0].status == 0) {
        uv_run(&loop.uv, UV_RUN_ONCE);
    }
    check(&peers[0], 200, "piece piece piece ");
    assert_int_equal(requests.busy_count, 0);
}

static void a_client_leaves_and_its_request_ends_in_its_turn(void **state)
{
    (void)state;
    pieces = 3;
    loop.watch.begin_ns = 1;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2", NULL, NULL);
    exchange_cancel(&peers[0].exchange);
    assert_int_equal(ends, 1); /* while the exchange was known */
    assert_int_equal(ended_status, HTTP_GONE);
    while (gone == 0) {
        uv_run(&loop.uv, UV_RUN_ONCE);
    }
    assert_int_equal(requests.busy_count, 0);
    assert_int_equal(ends, 1);
    assert_int_equal(peers[0].ends, 0);
}

static void places_are_for_requests_that_are_no_probes(void **state)
{
    (void)state;
    requests_resize(&requests, 1);
    pieces = 2;
    loop.watch.begin_ns = 1;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2", NULL, NULL);
    ask(&peers[1], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    assert_int_equal(peers[1].status, 429);
    ask(&peers[1], ROUTE_GET_ONLY, "/v2/health/live", NULL, NULL);
    check(&peers[1], 200, "live");
    while (peers[0].status == 0) {
        uv_run(&loop.uv, UV_RUN_ONCE);
    }
    ask(&peers[1], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    assert_int_equal(peers[1].status, 404); /* it was admitted */
}

static void only_probes_are_answered_at_the_start(void **state)
{
    (void)state;
    loop.is_starting = true;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    check(&peers[0], 503, "error 503: models are loading");
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/health/live", NULL, NULL);
    check(&peers[0], 200, "live");
    loop.is_starting = false;
}

static void an_address_for_probes_answers_no_other(void **state)
{
    (void)state;
    peers[0].exchange.role = LISTENER_HEALTH;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    assert_int_equal(peers[0].status, 403);
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/health/live", NULL, NULL);
    check(&peers[0], 200, "live");
}

/* The parts above are asked only for a call whose client names no trace. */
static void a_trace_is_begun_for_a_call_without_one(void **state)
{
    (void)state;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    assert_int_equal(ended_trace.id[0], '\0');
    assert_int_equal(traces, 0);
    ask(&peers[0], ROUTE_POST_ONLY, "/v2/models/none/infer", NULL, NULL);
    check(&peers[0], 404, "error 404: no model");
    assert_int_equal(traces, 0); /* it was none */
    assert_int_equal(counts, 0);
    ask(&peers[0], ROUTE_POST_ONLY, "/v2/models/m/infer", "X-Request-Timeout-Ms", "soon");
    assert_int_equal(peers[0].status, 400);
    assert_int_equal(traces, 1);
    assert_int_equal(counts, 1);
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/models", "traceparent",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_memory_equal(ended_trace.id, "4bf92f3577b34da6a3ce929d0e0e4736", TRACE_ID_CHARS);
    assert_int_equal(traces, 1);
}

/* ---- the log --------------------------------------------------------------------------------- */

static char log_file[] = "/tmp/test_requests_XXXXXX";

static int set_up_log(void **state)
{
    int rc = set_up(state);
    struct error err;
    snprintf(log_file, sizeof(log_file), "/tmp/test_requests_XXXXXX");
    close(mkstemp(log_file));
    assert_ok(err, log_open(log_file, LOG_INFO, &err));
    return rc;
}

static int tear_down_log(void **state)
{
    struct error err;
    assert_ok(err, log_open(NULL, LOG_ERROR, &err));
    unlink(log_file);
    return tear_down(state);
}

/* How many lines of the log have |text|. */
static unsigned said(const char *text)
{
    return log_lines(log_file, text);
}

/* What the client has asked wrongly is no warning. */
static void errors_are_logged(void **state)
{
    (void)state;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    assert_int_equal(said("info: 404 /v2/models: nothing is here\n"), 1);
    refusal = ST_INTERNAL;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    assert_int_equal(said("warning: 500 /v2/models: nothing is here\n"), 1);
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/health/live", NULL, NULL);
    assert_int_equal(said(""), 2);
}

/* Such a probe does its work: it finds no fault. */
static void a_probe_that_learns_not_yet_is_not_logged(void **state)
{
    (void)state;
    refusal = ST_UNAVAILABLE;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/health/ready", NULL, NULL);
    assert_int_equal(peers[0].status, 503);
    assert_int_equal(said(""), 0);
    refusal = ST_INTERNAL;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/health/ready", NULL, NULL);
    assert_int_equal(said("warning: 500 /v2/health/ready: nothing is here\n"), 1);
}

static void each_request_has_a_line_if_all_have(void **state)
{
    (void)state;
    options.log_requests = OPTIONS_LOG_ALL;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/health/live", NULL, NULL);
    assert_int_equal(
        said("info: request remote=nobody method=GET path=/v2/health/live status=200 in=0 out=0 "
             "model=- queue_us=0 compute_us=0 total_us="),
        1);
    assert_int_equal(said(" error="), 0);
    peers[0].exchange.via = "192.0.2.1";
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    assert_int_equal(said("info: request remote=nobody via=192.0.2.1 method=GET path=/v2/models "
                          "status=404 "),
                     1);
    assert_int_equal(said(" error=nothing is here\n"), 1);
    assert_int_equal(said("404 /v2/models:"), 0); /* once is enough */
    refusal = ST_INTERNAL;
    ask(&peers[0], ROUTE_GET_ONLY, "/v2/models", NULL, NULL);
    assert_int_equal(said("warning: request "), 1);
    assert_int_equal(said(""), 3);
}

static void a_client_that_leaves_has_a_line(void **state)
{
    (void)state;
    options.log_requests = OPTIONS_LOG_ALL;
    pieces = 3;
    loop.watch.begin_ns = 1; /* this turn has no time left */
    ask(&peers[0], ROUTE_GET_ONLY, "/v2", NULL, NULL);
    exchange_cancel(&peers[0].exchange);
    assert_int_equal(said("info: request remote=nobody method=GET path=/v2 status=gone "), 1);
    while (gone == 0) {
        uv_run(&loop.uv, UV_RUN_ONCE);
    }
    assert_int_equal(said("info: request "), 1);
}

/* Room remains for the reason. */
static void a_long_path_is_cut(void **state)
{
    char target[600], line[512];
    (void)state;
    memset(target, 'a', sizeof(target) - 1);
    target[0] = '/';
    target[sizeof(target) - 1] = '\0';
    ask(&peers[0], ROUTE_GET_ONLY, target, NULL, NULL);
    snprintf(line, sizeof(line), "info: 404 %.400s: ", target);
    assert_int_equal(said(line), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_LOG(name) cmocka_unit_test_setup_teardown(name, set_up_log, tear_down_log)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_told_of_and_used_again),
        TEST(an_error_has_the_form_of_its_route),
        TEST(a_handler_prints_in_several_turns),
        TEST(a_client_leaves_and_its_request_ends_in_its_turn),
        TEST(places_are_for_requests_that_are_no_probes),
        TEST(only_probes_are_answered_at_the_start),
        TEST(an_address_for_probes_answers_no_other),
        TEST(a_trace_is_begun_for_a_call_without_one),
        TEST_LOG(errors_are_logged),
        TEST_LOG(a_probe_that_learns_not_yet_is_not_logged),
        TEST_LOG(each_request_has_a_line_if_all_have),
        TEST_LOG(a_client_that_leaves_has_a_line),
        TEST_LOG(a_long_path_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
