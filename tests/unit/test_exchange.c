/* SPDX-License-Identifier: MIT */
/*
 * Calls without a connection. Peers, a protocol without a socket, drive the calls of a whole server
 * with tests/models/add.pte. They show what a call needs from every protocol.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request.h"
#include "server/daemon/server.h"
#include "server/daemon/serving/serving.h"
#include "server/http/head.h"
#include "server/process/log.h"

#define PEERS 5
#define MORE_MODELS 40 /* enough models for several pieces of statistics */
#define ANSWER_BYTES_MAX 65536
#define INFER "/v2/models/add/infer"

/* One client, and what the call has reported to it. */
struct peer {
    struct exchange exchange;
    struct http_answer answer;
    struct buf body;
    unsigned writes, parts, ends, resumes, aborts;
    bool is_slow;   /* takes an answer only when the test says so */
    bool is_greedy; /* has a next request, which needs the memory of others */
};

static struct server server;
static struct peer peers[PEERS];
static char folder[] = "/tmp/pted-exchange-XXXXXX", socket_path[64];

/* ---- the peer ------------------------------------------------------------------------------- */

static struct peer *peer_of(struct exchange *exchange)
{
    return LIST_ENTRY(exchange, struct peer, exchange);
}

static enum exchange_written do_write(struct exchange *exchange, const struct exchange_part *part)
{
    struct peer *peer = peer_of(exchange);
    assert_true(part->is_last); /* calls answer in one write */
    peer->answer = *part->answer;
    peer->writes++;
    peer->parts = part->count;
    for (unsigned i = 0; i < part->count; i++) {
        buf_add(&peer->body, part->spans[i].ptr, part->spans[i].len);
    }
    return peer->is_slow ? EXCHANGE_WAITS : EXCHANGE_WRITTEN;
}

static void do_end(struct exchange *exchange)
{
    peer_of(exchange)->ends++;
    if (peer_of(exchange)->is_greedy) {
        assert_false(transfers_evict_slowest(&server.requests.transfers, exchange, true));
    }
}

static void do_resume(struct exchange *exchange)
{
    peer_of(exchange)->resumes++;
}

static void do_refuse(struct exchange *exchange)
{
    exchange_run(exchange);
}

static void do_abort(struct exchange *exchange)
{
    peer_of(exchange)->aborts++;
    exchange_cancel(exchange);
}

static const struct exchange_ops peer_ops = {
    .write = do_write,
    .end = do_end,
    .resume = do_resume,
    .refuse = do_refuse,
    .abort = do_abort,
};

/* Gives the head. A refused request is answered at once. */
static void begin(struct peer *peer, enum route_method method, const char *target, size_t bytes)
{
    struct exchange *exchange = &peer->exchange;
    const struct exchange_head head = {.method = method,
                                       .method_name = method == ROUTE_GET_ONLY ? "GET" : "POST",
                                       .has_body = bytes > 0,
                                       .content_length = bytes};
    buf_reset(&peer->body);
    peer->writes = peer->ends = peer->resumes = peer->aborts = 0;
    assert_true(exchange_begin(exchange));
    assert_int_equal(head_add_target(exchange_fields(exchange), server.params, span_str(target),
                                     exchange_error(exchange)),
                     0);
    if (!exchange_end_head(exchange, &head)) {
        do_refuse(exchange);
    }
}

static void add(struct peer *peer, const char *text, size_t len)
{
    assert_int_equal(exchange_add_body(&peer->exchange, span_of(text, len)), 0);
}

static void run(struct peer *peer)
{
    exchange_run(&peer->exchange);
}

static void wait_for(const unsigned *count)
{
    while (*count == 0) {
        uv_run(&server.loop.uv, UV_RUN_ONCE);
    }
}

static void ask(struct peer *peer, enum route_method method, const char *target, const char *body)
{
    begin(peer, method, target, strlen(body));
    if (peer->writes == 0) {
        add(peer, body, strlen(body));
        run(peer);
    }
    wait_for(&peer->ends);
}

static bool says(struct peer *peer, const char *text)
{
    buf_add_char(&peer->body, '\0');
    return strstr((const char *)peer->body.ptr, text) != NULL;
}

/* ---- a server without connections ------------------------------------------------------------ */

static int set_up(void **state)
{
    static struct options options;
    char listen[sizeof(socket_path) + 8], model[4096], digits[4096];
    const char *top = getenv("top_srcdir");
    struct error err;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
    snprintf(listen, sizeof(listen), "unix:%s", socket_path);
    snprintf(model, sizeof(model), "%s/tests/models/add.pte", top ? top : "..");
    snprintf(digits, sizeof(digits), "%s/tests/models/digits.pte", top ? top : "..");
    const char *argv[8 + MORE_MODELS] = {
        "pted",     "--workers=1",  "--log-level=error", "--inline-bytes-max=512",
        "--listen", strdup(listen), strdup(model),       strdup(digits)};
    for (int i = 0; i < MORE_MODELS; i++) {
        char named[sizeof(model) + 32];
        snprintf(named, sizeof(named), "--model=m%d=%s", i, model);
        argv[8 + i] = strdup(named);
    }
    options_init(&options);
    assert_int_equal(
        options_add_arguments(&options, 8 + MORE_MODELS, (char *const *)(uintptr_t)argv, &err),
        ST_OK);
    assert_int_equal(log_open(NULL, options.log_level, &err), ST_OK);
    assert_int_equal(server_init(&server, &options, &err), ST_OK);
    assert_int_equal(server_start(&server, &err), ST_OK);
    while (server.loop.is_starting) {
        uv_run(&server.loop.uv, UV_RUN_ONCE);
    }
    for (size_t i = 0; i < PEERS; i++) {
        exchange_init(&peers[i].exchange, &server.requests, &peer_ops, "nobody");
        buf_init(&peers[i].body, ANSWER_BYTES_MAX);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < PEERS; i++) {
        exchange_fini(&peers[i].exchange);
        buf_fini(&peers[i].body);
    }
    assert_int_equal(server.requests.busy_count, 0);
    server_fini(&server);
    unlink(socket_path);
    return rmdir(folder);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const char json[] =
    "{\"inputs\":["
    "{\"name\":\"input_0\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":[1,2,3,4,5,6]},"
    "{\"name\":\"input_1\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":[10,20,30,40,50,60]}]}";

static const char binary_json[] =
    "{\"parameters\":{\"binary_data_output\":true},\"inputs\":["
    "{\"name\":\"input_0\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":[1,2,3,4,5,6]},"
    "{\"name\":\"input_1\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":[10,20,30,40,50,60]}]}";

static void a_call_is_answered_by_status_fields_and_parts(void **state)
{
    struct peer *peer = &peers[0];
    (void)state;
    begin(peer, ROUTE_POST_ONLY, INFER, strlen(json));
    add(peer, json, 7);
    add(peer, json + 7, 50);
    add(peer, json + 57, strlen(json) - 57);
    run(peer);
    wait_for(&peer->ends);
    assert_int_equal(peer->answer.status, 200);
    assert_string_equal(peer->answer.content_type, "application/json");
    assert_int_equal(peer->answer.content_length, peer->body.len);
    assert_true(says(peer, "\"data\":[11.0,22.0,33.0,44.0,55.0,66.0]"));
}

static void a_refusal_is_an_answer_like_others(void **state)
{
    struct peer *peer = &peers[0];
    (void)state;
    ask(peer, ROUTE_POST_ONLY, "/v2/models/nobody/infer", json);
    assert_int_equal(peer->answer.status, 404);
    assert_true(says(peer, "nobody"));
    ask(peer, ROUTE_GET_ONLY, INFER, "");
    assert_int_equal(peer->answer.status, 405);
    assert_string_equal(peer->answer.allow, "POST");
    ask(peer, ROUTE_POST_ONLY, INFER, "{\"inputs\":[]}");
    assert_int_equal(peer->answer.status, 400);
}

/* The memory of a request comes from its arena. If any allocation reaches the maximum, the answer
 * is that the request is too large, because waiting would not help. */
static void a_request_beyond_its_memory_is_too_large(void **state)
{
    struct peer *peer = &peers[0];
    static const struct {
        const char *target, *body;
    } asks[] = {
        {INFER, json},
        {"/v2/models/add/call", "{\"args\":[[[1,2,3],[4,5,6]],[[1,2,3],[4,5,6]]]}"},
        {"/v2/batch", "[{\"model_name\":\"add\",\"args\":[[[1,2,3],[4,5,6]],[[1,2,3],[4,5,6]]]}]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        unsigned refused = 0;
        peer->answer.status = 0;
        for (size_t bytes = 16; peer->answer.status != 200; bytes += 16) {
            begin(peer, ROUTE_POST_ONLY, asks[i].target, strlen(asks[i].body));
            struct arena *arena = &peer->exchange.request->infer.arena;
            size_t before = arena->max_bytes;
            arena->max_bytes = bytes;
            add(peer, asks[i].body, strlen(asks[i].body));
            run(peer);
            wait_for(&peer->ends);
            arena->max_bytes = before;
            bool is_of_call = peer->answer.status == 200 && says(peer, "\"status\":413");
            assert_true(peer->answer.status == 413 || peer->answer.status == 200);
            peer->answer.status = is_of_call ? 413 : peer->answer.status;
            refused += peer->answer.status == 413;
        }
        assert_true(says(peer, "11.0") || says(peer, "2.0,4.0,6.0"));
        assert_true(refused > 2);
    }
}

/* Runs the loop until no call is left. */
static void wait_until_idle(void)
{
    while (server.requests.busy_count) {
        uv_run(&server.loop.uv, UV_RUN_ONCE);
    }
}

/* A request for 20 pictures of digits: no small one (runtime/call/small.c). Freed by the caller. */
static char *print_pictures(void)
{
    struct buf text;
    buf_init(&text, 1 << 16);
    buf_printf(&text, "{\"inputs\":[{\"name\":\"input_0\",\"shape\":[20,1,8,8],"
                      "\"datatype\":\"FP32\",\"data\":[0");
    for (int i = 1; i < 20 * 64; i++) {
        buf_printf(&text, ",%d", i % 17);
    }
    buf_printf(&text, "]}]}");
    buf_add_char(&text, '\0');
    assert_false(buf_failed(&text));
    return (char *)text.ptr;
}

/* Calls of another model hold more than they leave, so those of that model wait for memory. */
static void a_small_call_runs_beside_large_ones(void **state)
{
    struct peer *peer = &peers[0];
    struct hal_pool *call = NULL;
    struct hal_buffer *held = NULL;
    struct model *model = NULL;
    struct error err;
    (void)state;
    assert_int_equal(
        repository_find(&server.servings.current->repository, "digits", 0, &model, &err), ST_OK);
    char *pictures = print_pictures();
    size_t bytes = hal_pool_size(model->run_pool);
    assert_int_equal(hal_pool_member_new(&call, &err), ST_OK);
    hal_pool_join(call, model->run_pool);
    assert_int_equal(hal_pool_reserve(call, bytes / 8 * 5, &held, &err), ST_OK);
    ask(peer, ROUTE_POST_ONLY, INFER, json);
    assert_int_equal(peer->answer.status, 200);
    ask(peer, ROUTE_POST_ONLY, "/v2/models/digits/infer", pictures);
    assert_int_equal(peer->answer.status, 429);
    hal_buffer_unref(held);
    ask(peer, ROUTE_POST_ONLY, "/v2/models/digits/infer", pictures);
    assert_int_equal(peer->answer.status, 200);
    free(pictures);
    hal_pool_leave(call);
    hal_pool_free(call);
    model_unref(model);
}

#define LISTED_CALLS 60

static void print_list(struct buf *out)
{
    buf_init(out, 1 << 16);
    for (int i = 0; i < LISTED_CALLS; i++) {
        buf_printf(out, "%c{\"model_name\":\"add\",\"args\":[[[1,2,3],[4,5,6]],[[1,2,3],[4,5,6]]]}",
                   i ? ',' : '[');
    }
    buf_add_char(out, ']');
}

/* Runs until the answer, or until the call waits for memory. Then the client disconnects. */
static void ask_or_leave(struct peer *peer, const struct buf *body)
{
    begin(peer, ROUTE_POST_ONLY, "/v2/batch", body->len);
    add(peer, (const char *)body->ptr, body->len);
    run(peer);
    while (peer->ends == 0 && !transfer_is_waiting(&peer->exchange.answer)) {
        uv_run(&server.loop.uv, UV_RUN_ONCE);
    }
    if (peer->ends == 0) {
        do_abort(&peer->exchange);
    }
    wait_until_idle();
}

/* Other lists hold as much memory as lists may hold, which is as much as they leave. Wherever the
 * rest is exhausted, the list gives back what it took. */
static void a_list_that_finds_no_memory_gives_back_what_it_had(void **state)
{
    struct peer *peer = &peers[0];
    struct hal_pool *pool = server.servings.current->lists;
    struct hal_pool_stats stats;
    struct buf body;
    unsigned refused = 0;
    (void)state;
    print_list(&body);
    peer->answer.status = 0;
    for (size_t left = hal_pool_size(pool) / 2; peer->answer.status != 200; left += 1024) {
        must(left < hal_pool_size(pool));
        size_t held = hal_pool_size(pool) - left;
        peer->answer.status = 0;
        hal_pool_charge(pool, held);
        ask_or_leave(peer, &body);
        hal_pool_stats(pool, &stats);
        assert_true(stats.held_bytes == held);
        hal_pool_discharge(pool, held);
        refused += peer->answer.status == 429;
    }
    assert_true(refused > 100); /* at as many places */
    buf_fini(&body);
}

static void exchanges_of_one_client_end_in_any_order(void **state)
{
    struct peer *first = &peers[0], *second = &peers[1];
    (void)state;
    begin(first, ROUTE_POST_ONLY, INFER, strlen(json));
    add(first, json, 20);
    ask(second, ROUTE_POST_ONLY, INFER, json);
    assert_int_equal(second->answer.status, 200);
    assert_int_equal(first->writes, 0);
    add(first, json + 20, strlen(json) - 20);
    run(first);
    wait_for(&first->ends);
    assert_int_equal(first->answer.status, 200);
    assert_true(buf_span(&first->body).len == buf_span(&second->body).len);
}

/* Whatever connections they come on: of 4 in flight one is kept for others. */
static void exchanges_of_one_client_share_what_it_may_have(void **state)
{
    struct peer *last = &peers[PEERS - 2], *other = &peers[PEERS - 1];
    uint32_t places = server.conns.places.size;
    (void)state;
    requests_resize(&server.requests, 4);
    for (size_t i = 0; i < PEERS; i++) {
        peers[i].exchange.client = &peers[i] == other ? 8 : 7;
    }
    for (size_t i = 0; i < 3; i++) {
        begin(&peers[i], ROUTE_POST_ONLY, INFER, strlen(json));
        assert_int_equal(peers[i].writes, 0);
    }
    ask(last, ROUTE_POST_ONLY, INFER, json);
    assert_int_equal(last->answer.status, 429);
    assert_true(says(last, "requests in flight"));
    ask(other, ROUTE_POST_ONLY, INFER, json);
    assert_int_equal(other->answer.status, 200);
    do_abort(&peers[0].exchange); /* one of its own ends */
    ask(last, ROUTE_POST_ONLY, INFER, json);
    assert_int_equal(last->answer.status, 200);
    do_abort(&peers[1].exchange);
    do_abort(&peers[2].exchange);
    requests_resize(&server.requests, places);
    for (size_t i = 0; i < PEERS; i++) {
        peers[i].exchange.client = 0;
    }
}

/* Makes turns.c see the end of the turn. */
static void end_turn(void)
{
    server.loop.watch.begin_ns = 1;
}

/* Of 30 ms, most of it in one step. */
static void a_long_turn_has_the_name_of_its_step(void **state)
{
    struct turn_watch *watch = &server.loop.watch;
    (void)state;
    (void)turn_watch_end(&server.loop.watch); /* that of the test before this one */
    const struct turn_records before = watch->records;
    const struct share *written = &server.loop.log.limits.windows[LOG_KIND_SLOW].lines;
    uint64_t lines = share_used(written);
    turn_watch_enter(&server.loop.watch, TURN_RECEIVE);
    turn_watch_enter(&server.loop.watch, (enum turn_part)STEP_DECODE);
    watch->begin_ns -= 30000000;
    watch->begin_ticks = watch->part_begin_ticks = 0; /* the part has all ticks there are */
    turn_watch_enter(&server.loop.watch, (enum turn_part)STEP_RUN);
    assert_true(turn_watch_end(&server.loop.watch) >= 30000000);
    assert_true(watch->records.longest_ns[(enum turn_part)STEP_DECODE] >= 30000000);
    assert_true(watch->records.longest_ns[(enum turn_part)STEP_RUN] ==
                before.longest_ns[(enum turn_part)STEP_RUN]);
    assert_int_equal(share_used(written), lines + 1);
    assert_int_equal(turn_watch_end(&server.loop.watch), 0); /* nothing has begun since */
    turn_watch_enter(&server.loop.watch, (enum turn_part)STEP_DECODE);
    assert_true(turn_watch_end(&server.loop.watch) > 0);
    assert_string_equal(turn_part_name(&request_turn_steps, (enum turn_part)STEP_DECODE), "DECODE");
    assert_string_equal(turn_part_name(&request_turn_steps, TURN_SWEEP), "sweep");
}

static void statistics_of_many_models_take_several_turns(void **state)
{
    struct peer *peer = &peers[0], *other = &peers[1];
    (void)state;
    begin(peer, ROUTE_GET_ONLY, "/v2/models/stats", 0);
    end_turn();
    run(peer);
    assert_int_equal(peer->writes, 0);
    ask(other, ROUTE_GET_ONLY, "/v2", ""); /* arrives in between */
    assert_int_equal(other->answer.status, 200);
    assert_int_equal(peer->writes, 0);
    wait_for(&peer->ends);
    assert_int_equal(peer->answer.status, 200);
    assert_true(says(peer, "{\"model_stats\":[{\"name\":\"add\""));
    for (int i = 0; i < MORE_MODELS; i++) {
        char row[32];
        snprintf(row, sizeof(row), "},{\"name\":\"m%d\",", i);
        assert_true(says(peer, row));
    }
    assert_true(says(peer, "],\"memory\":{"));

    begin(peer, ROUTE_GET_ONLY, "/v2/models/stats", 0);
    end_turn();
    run(peer);
    do_abort(&peer->exchange); /* in the middle of it */
    assert_int_equal(server.requests.busy_count, 1);
    wait_until_idle();
    assert_int_equal(peer->writes + peer->ends, 0);
}

static void a_client_that_goes_ends_its_call(void **state)
{
    struct peer *peer = &peers[0];
    static char padded[2048]; /* long enough for a thread */
    (void)state;
    begin(peer, ROUTE_POST_ONLY, INFER, strlen(json));
    add(peer, json, 20);
    do_abort(&peer->exchange);
    assert_int_equal(server.requests.busy_count, 0);

    memset(padded, ' ', sizeof(padded) - 1);
    memcpy(padded, json, strlen(json));
    begin(peer, ROUTE_POST_ONLY, INFER, strlen(padded));
    add(peer, padded, strlen(padded));
    run(peer);
    assert_int_equal(peer->writes, 0); /* a thread has it */
    do_abort(&peer->exchange);
    wait_until_idle();
    assert_int_equal(peer->ends + peer->writes, 0);

    ask(peer, ROUTE_POST_ONLY, INFER, padded);
    assert_int_equal(peer->answer.status, 200);
}

/* Results stay in the memory where they were computed until the client has taken them. */
static void an_answer_waits_for_its_client(void **state)
{
    struct peer *peer = &peers[0];
    (void)state;
    peer->is_slow = true;
    begin(peer, ROUTE_POST_ONLY, INFER, strlen(binary_json));
    add(peer, binary_json, strlen(binary_json));
    run(peer);
    wait_for(&peer->writes);
    assert_string_equal(peer->answer.content_type, "application/octet-stream");
    assert_true(peer->answer.json_bytes > 0);
    assert_int_equal(peer->parts, 2);
    assert_int_equal(peer->ends, 0);
    assert_true(exchange_is_answering(&peer->exchange));
    assert_true(exchange_held_bytes(&peer->exchange) > exchange_heap_bytes(&peer->exchange));
    assert_true(exchange_heap_bytes(&peer->exchange) == peer->exchange.charged_bytes);
    exchange_note_written(&peer->exchange, true);
    assert_int_equal(peer->ends, 1);
    peer->is_slow = false;
}

/* A text answer is charged while it is written, and not when the client has it. */
static void an_answer_is_charged_until_the_client_has_it(void **state)
{
    struct peer *peer = &peers[0];
    (void)state;
    peer->is_slow = true;
    begin(peer, ROUTE_GET_ONLY, "/v2", 0);
    run(peer);
    wait_for(&peer->writes);
    assert_true(peer->exchange.charged_bytes > peer->exchange.kept_bytes);
    exchange_note_written(&peer->exchange, true);
    assert_int_equal(peer->ends, 1);
    assert_int_equal(peer->exchange.charged_bytes, peer->exchange.kept_bytes);
    peer->is_slow = false;
}

/* The memory belongs to the writer until it reports that it no longer needs it. */
static void a_client_that_goes_while_it_takes_an_answer(void **state)
{
    struct peer *peer = &peers[0];
    (void)state;
    peer->is_slow = true;
    begin(peer, ROUTE_POST_ONLY, INFER, strlen(binary_json));
    add(peer, binary_json, strlen(binary_json));
    run(peer);
    wait_for(&peer->writes);
    do_abort(&peer->exchange);
    assert_int_equal(server.requests.busy_count, 1);
    exchange_note_written(&peer->exchange, false);
    assert_int_equal(server.requests.busy_count, 0);
    assert_int_equal(peer->ends, 0);
    peer->is_slow = false;
}

static void memory_is_taken_back_from_an_upload_and_from_an_answer(void **state)
{
    struct peer *peer = &peers[0];
    (void)state;
    begin(peer, ROUTE_POST_ONLY, INFER, strlen(json));
    add(peer, json, 20);
    assert_non_null(exchange_upload(&peer->exchange));
    exchange_evict(&peer->exchange);
    assert_int_equal(peer->ends, 1);
    assert_int_equal(peer->answer.status, 429);
    assert_int_equal(peer->answer.retry_after_s, 1);
    assert_true(says(peer, "request body: too slow"));

    peer->is_slow = true;
    begin(peer, ROUTE_GET_ONLY, "/v2", 0);
    run(peer);
    exchange_evict(&peer->exchange);
    assert_int_equal(peer->aborts, 1);
    exchange_note_written(&peer->exchange, false);
    assert_int_equal(peer->ends, 0);
    peer->is_slow = false;
}

/* An upload that began a second ago and is stalled unless bytes come. */
static void begin_upload(struct peer *peer)
{
    begin(peer, ROUTE_POST_ONLY, INFER, strlen(json));
    add(peer, json, 20);
    peer->exchange.upload.pace.begun_ms -= 1000;
    peer->exchange.upload.pace.moved_ms -= 1000;
}

/* On any connection. */
static void the_slowest_exchange_gives_way_and_others_go_on(void **state)
{
    struct peer *slow = &peers[0], *fast = &peers[1];
    (void)state;
    begin_upload(fast);
    begin_upload(slow);
    add(fast, json + 20, 20);
    assert_true(transfers_evict_slowest(&server.requests.transfers, NULL, false));
    assert_int_equal(slow->answer.status, 429);
    assert_int_equal(fast->writes, 0);
    assert_false(transfers_evict_slowest(&server.requests.transfers, &fast->exchange,
                                         true)); /* there is no other */
    add(fast, json + 40, strlen(json) - 40);
    run(fast);
    wait_for(&fast->ends);
    assert_int_equal(fast->answer.status, 200);
}

/* An eviction makes room for an upload. The work that follows the eviction must not evict it. */
static void an_eviction_makes_no_other(void **state)
{
    struct peer *slow = &peers[0], *fast = &peers[1];
    (void)state;
    begin_upload(fast);
    begin_upload(slow);
    slow->is_greedy = true;
    assert_true(transfers_evict_slowest(&server.requests.transfers, &fast->exchange, true));
    slow->is_greedy = false;
    assert_int_equal(slow->answer.status, 429);
    assert_int_equal(fast->writes, 0);
    add(fast, json + 20, strlen(json) - 20);
    run(fast);
    wait_for(&fast->ends);
    assert_int_equal(fast->answer.status, 200);
}

/* As transfers_wait_for_memory() defines it: the timer tries again, and then the peer continues to
 * read. */
static void an_upload_that_waits_for_memory_is_told_to_go_on(void **state)
{
    struct peer *peer = &peers[0];
    (void)state;
    begin(peer, ROUTE_POST_ONLY, INFER, strlen(json));
    add(peer, json, 20);
    transfers_wait_for_memory(&peer->exchange.upload);
    wait_for(&peer->resumes);
    assert_false(transfer_is_waiting(&peer->exchange.upload));
    add(peer, json + 20, strlen(json) - 20);
    run(peer);
    wait_for(&peer->ends);
    assert_int_equal(peer->answer.status, 200);
}

/* ---- streams of calls ------------------------------------------------------------------------ */

static enum exchange_written do_write_on(struct exchange *exchange,
                                         const struct exchange_part *part)
{
    struct peer *peer = peer_of(exchange);
    peer->writes++;
    for (unsigned i = 0; i < part->count; i++) {
        buf_add(&peer->body, part->spans[i].ptr, part->spans[i].len);
    }
    return EXCHANGE_WRITTEN;
}

static const struct exchange_ops stream_ops = {
    .is_duplex = true,
    .write = do_write_on,
    .end = do_end,
    .resume = do_resume,
    .refuse = do_refuse,
    .abort = do_abort,
};

static void begin_stream(struct peer *peer)
{
    static const char *const fields[][2] = {{"content-type", "application/grpc"},
                                            {"te", "trailers"}};
    const struct exchange_head head = {
        .method = ROUTE_POST_ONLY, .method_name = "POST", .has_body = true};
    struct exchange *exchange = &peer->exchange;
    exchange->ops = &stream_ops;
    buf_reset(&peer->body);
    peer->writes = peer->ends = peer->resumes = peer->aborts = 0;
    assert_true(exchange_begin(exchange));
    struct head *lines = exchange_fields(exchange);
    struct error *err = exchange_error(exchange);
    struct span target = span_str("/inference.GRPCInferenceService/ModelStreamInfer");
    assert_int_equal(head_add_target(lines, server.params, target, err), 0);
    for (int i = 0; i < 2; i++) {
        head_add_name(lines, span_str(fields[i][0]));
        assert_int_equal(head_add_value(lines, span_str(fields[i][1]), err), 0);
        head_end_field(lines);
    }
    assert_true(exchange_end_head(exchange, &head));
}

static unsigned count_messages(struct span body)
{
    unsigned count = 0;
    for (size_t at = 0; at < body.len; at += 5 + load_be32(body.ptr + at + 1)) {
        assert_true(body.len - at >= 5);
        count++;
    }
    return count;
}

/* Its prefix has come in two pieces. What is left of it is not the next message. */
static void a_message_that_finds_no_memory_is_skipped(void **state)
{
    struct peer *peer = &peers[0];
    struct exchange *other = &peers[1].exchange;
    struct transfers *transfers = &server.requests.transfers;
    (void)state;
    exchange_keep(other, hal_pool_size(server.servings.current->transfers));
    begin_stream(peer);
    add(peer, "\0\0\0", 3);
    add(peer, "\0\024", 2);
    assert_false(list_is_empty(&transfers->waiting));
    LIST_ENTRY(transfers->waiting.next, struct transfer, wait_link)->wait_since_ms -=
        TRANSFERS_WAIT_MS_MAX;
    wait_for(&peer->writes);
    assert_int_equal(count_messages(buf_span(&peer->body)), 1);
    buf_add_char(&peer->body, '\0');
    assert_non_null(strstr((char *)peer->body.ptr + 5, "there is no memory for it now"));
    buf_reset(&peer->body);
    exchange_keep(other, 0);
    add(peer, "twenty bytes of noise", 20);
    add(peer, "\0\0\0\0\0", 5);
    run(peer);
    wait_for(&peer->ends);
    assert_int_equal(count_messages(buf_span(&peer->body)), 1);
    peer->exchange.ops = &peer_ops;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered_by_status_fields_and_parts),
        cmocka_unit_test(a_refusal_is_an_answer_like_others),
        cmocka_unit_test(a_long_turn_has_the_name_of_its_step),
        cmocka_unit_test(statistics_of_many_models_take_several_turns),
        cmocka_unit_test(a_request_beyond_its_memory_is_too_large),
        cmocka_unit_test(a_small_call_runs_beside_large_ones),
        cmocka_unit_test(a_list_that_finds_no_memory_gives_back_what_it_had),
        cmocka_unit_test(exchanges_of_one_client_end_in_any_order),
        cmocka_unit_test(exchanges_of_one_client_share_what_it_may_have),
        cmocka_unit_test(a_client_that_goes_ends_its_call),
        cmocka_unit_test(an_answer_waits_for_its_client),
        cmocka_unit_test(an_answer_is_charged_until_the_client_has_it),
        cmocka_unit_test(a_client_that_goes_while_it_takes_an_answer),
        cmocka_unit_test(memory_is_taken_back_from_an_upload_and_from_an_answer),
        cmocka_unit_test(the_slowest_exchange_gives_way_and_others_go_on),
        cmocka_unit_test(an_eviction_makes_no_other),
        cmocka_unit_test(an_upload_that_waits_for_memory_is_told_to_go_on),
        cmocka_unit_test(a_message_that_finds_no_memory_is_skipped),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
