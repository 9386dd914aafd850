/* SPDX-License-Identifier: MIT */
/*
 * Calls without a connection. A maker of exchanges without protocol and socket drives the calls of
 * a whole server with tests/models/add.pte. It shows what a call needs from every maker.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "hal/pool.h"
#include "server/http/head.h"
#include "server/process/log.h"
#include "server/request/exchange.h"
#include "server/request/request.h"
#include "server/server.h"
#include "server/serving/serving.h"

#define MAKERS 2
#define MORE_MODELS 40 /* enough models for several pieces of statistics */
#define ANSWER_BYTES_MAX 65536
#define INFER "/v2/models/add/infer"

/* One client, and what the call has reported to it. */
struct maker {
    struct exchange exchange;
    struct http_answer answer;
    struct buf body;
    unsigned writes, parts, ends, resumes, aborts;
    bool is_slow;   /* takes an answer only when the test says so */
    bool is_greedy; /* has a next request, which needs the memory of others */
};

static struct server server;
static struct maker makers[MAKERS];
static char folder[] = "/tmp/pted-exchange-XXXXXX", socket_path[64];

/* ---- the maker ------------------------------------------------------------------------------- */

static struct maker *maker_of(struct exchange *exchange)
{
    return LIST_ENTRY(exchange, struct maker, exchange);
}

static enum exchange_written do_write(struct exchange *exchange, const struct http_answer *answer,
                                      const struct span *parts, unsigned count, bool is_last)
{
    struct maker *maker = maker_of(exchange);
    assert_true(is_last); /* calls answer in one write */
    maker->answer = *answer;
    maker->writes++;
    maker->parts = count;
    exchange->sent_bytes = 1;
    for (unsigned i = 0; i < count; i++) {
        buf_add(&maker->body, parts[i].ptr, parts[i].len);
    }
    return maker->is_slow ? EXCHANGE_WAITS : EXCHANGE_WRITTEN;
}

static void do_end(struct exchange *exchange)
{
    exchange->phase = EXCHANGE_IDLE;
    maker_of(exchange)->ends++;
    if (maker_of(exchange)->is_greedy) {
        assert_false(clients_evict_slowest(&server, exchange, true));
    }
}

static void do_resume(struct exchange *exchange)
{
    maker_of(exchange)->resumes++;
}

static void do_refuse(struct exchange *exchange)
{
    exchange->phase = EXCHANGE_CALL;
    exchange_run(exchange);
}

static void do_abort(struct exchange *exchange)
{
    exchange->phase = EXCHANGE_IDLE;
    maker_of(exchange)->aborts++;
    exchange_cancel(exchange);
}

static const struct exchange_ops maker_ops = {
    .write = do_write,
    .end = do_end,
    .resume = do_resume,
    .refuse = do_refuse,
    .abort = do_abort,
};

/* Gives the head. A refused request is answered at once. */
static void begin(struct maker *maker, enum route_method method, const char *target, size_t bytes)
{
    struct exchange *exchange = &maker->exchange;
    const struct exchange_head head = {.method = method,
                                       .method_name = method == ROUTE_GET_ONLY ? "GET" : "POST",
                                       .has_body = bytes > 0,
                                       .content_length = bytes};
    buf_reset(&maker->body);
    maker->writes = maker->ends = maker->resumes = maker->aborts = 0;
    assert_true(exchange_begin(exchange));
    exchange->phase = EXCHANGE_HEAD;
    assert_int_equal(head_add_target(exchange_fields(exchange), server.params, span_str(target),
                                     exchange_error(exchange)),
                     0);
    exchange->phase = EXCHANGE_BODY;
    if (!exchange_end_head(exchange, &head)) {
        do_refuse(exchange);
    }
}

static void add(struct maker *maker, const char *text, size_t len)
{
    assert_int_equal(exchange_add_body(&maker->exchange, span_of(text, len)), 0);
}

static void run(struct maker *maker)
{
    maker->exchange.phase = EXCHANGE_CALL;
    exchange_run(&maker->exchange);
}

static void wait_for(const unsigned *count)
{
    while (*count == 0) {
        uv_run(&server.loop, UV_RUN_ONCE);
    }
}

static void ask(struct maker *maker, enum route_method method, const char *target, const char *body)
{
    begin(maker, method, target, strlen(body));
    if (maker->writes == 0) {
        add(maker, body, strlen(body));
        run(maker);
    }
    wait_for(&maker->ends);
}

static bool says(struct maker *maker, const char *text)
{
    buf_add_char(&maker->body, '\0');
    return strstr((const char *)maker->body.ptr, text) != NULL;
}

/* ---- a server without connections ------------------------------------------------------------ */

static int set_up(void **state)
{
    static struct options options;
    char listen[sizeof(socket_path) + 8], model[4096];
    const char *top = getenv("top_srcdir");
    struct error err;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
    snprintf(listen, sizeof(listen), "unix:%s", socket_path);
    snprintf(model, sizeof(model), "%s/tests/models/add.pte", top ? top : "..");
    const char *argv[7 + MORE_MODELS] = {
        "pted",     "--workers=1",  "--log-level=error", "--inline-bytes-max=512",
        "--listen", strdup(listen), strdup(model)};
    for (int i = 0; i < MORE_MODELS; i++) {
        char named[sizeof(model) + 32];
        snprintf(named, sizeof(named), "--model=m%d=%s", i, model);
        argv[7 + i] = strdup(named);
    }
    assert_int_equal(options_parse(7 + MORE_MODELS, (char *const *)(uintptr_t)argv, &options, &err),
                     ST_OK);
    assert_int_equal(log_open(NULL, options.log_level, &err), ST_OK);
    assert_int_equal(server_init(&server, &options, &err), ST_OK);
    for (size_t i = 0; i < MAKERS; i++) {
        exchange_init(&makers[i].exchange, &server, &maker_ops, "nobody");
        buf_init(&makers[i].body, ANSWER_BYTES_MAX);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAKERS; i++) {
        exchange_fini(&makers[i].exchange);
        buf_fini(&makers[i].body);
    }
    assert_int_equal(server.busy_request_count, 0);
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
    struct maker *maker = &makers[0];
    (void)state;
    begin(maker, ROUTE_POST_ONLY, INFER, strlen(json));
    add(maker, json, 7);
    add(maker, json + 7, 50);
    add(maker, json + 57, strlen(json) - 57);
    run(maker);
    wait_for(&maker->ends);
    assert_int_equal(maker->answer.status, 200);
    assert_string_equal(maker->answer.content_type, "application/json");
    assert_int_equal(maker->answer.content_length, maker->body.len);
    assert_true(says(maker, "\"data\":[11.0,22.0,33.0,44.0,55.0,66.0]"));
}

static void a_refusal_is_an_answer_like_others(void **state)
{
    struct maker *maker = &makers[0];
    (void)state;
    ask(maker, ROUTE_POST_ONLY, "/v2/models/nobody/infer", json);
    assert_int_equal(maker->answer.status, 404);
    assert_true(says(maker, "nobody"));
    ask(maker, ROUTE_GET_ONLY, INFER, "");
    assert_int_equal(maker->answer.status, 405);
    assert_string_equal(maker->answer.allow, "POST");
    ask(maker, ROUTE_POST_ONLY, INFER, "{\"inputs\":[]}");
    assert_int_equal(maker->answer.status, 400);
}

/* The memory of a request comes from its arena. If any allocation reaches the maximum, the answer
 * is that the request is too large, because waiting would not help. */
static void a_request_beyond_its_memory_is_too_large(void **state)
{
    struct maker *maker = &makers[0];
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
        maker->answer.status = 0;
        for (size_t bytes = 16; maker->answer.status != 200; bytes += 16) {
            begin(maker, ROUTE_POST_ONLY, asks[i].target, strlen(asks[i].body));
            struct arena *arena = &maker->exchange.request->infer.arena;
            size_t before = arena->max_bytes;
            arena->max_bytes = bytes;
            add(maker, asks[i].body, strlen(asks[i].body));
            run(maker);
            wait_for(&maker->ends);
            arena->max_bytes = before;
            bool is_of_call = maker->answer.status == 200 && says(maker, "\"status\":413");
            assert_true(maker->answer.status == 413 || maker->answer.status == 200);
            maker->answer.status = is_of_call ? 413 : maker->answer.status;
            refused += maker->answer.status == 413;
        }
        assert_true(says(maker, "11.0") || says(maker, "2.0,4.0,6.0"));
        assert_true(refused > 2);
    }
}

/* Runs the loop until no call is left. */
static void wait_until_idle(void)
{
    while (server.busy_request_count) {
        uv_run(&server.loop, UV_RUN_ONCE);
    }
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
static void ask_or_leave(struct maker *maker, const struct buf *body)
{
    begin(maker, ROUTE_POST_ONLY, "/v2/batch", body->len);
    add(maker, (const char *)body->ptr, body->len);
    run(maker);
    while (maker->ends == 0 && list_is_empty(&maker->exchange.want_link)) {
        uv_run(&server.loop, UV_RUN_ONCE);
    }
    if (maker->ends == 0) {
        do_abort(&maker->exchange);
    }
    wait_until_idle();
}

/* Other lists hold as much memory as lists may hold, which is as much as they leave. Wherever the
 * rest is exhausted, the list gives back what it took. */
static void a_list_that_finds_no_memory_gives_back_what_it_had(void **state)
{
    struct maker *maker = &makers[0];
    struct hal_pool *pool = server.serving->lists;
    struct hal_pool_stats stats;
    struct buf body;
    unsigned refused = 0;
    (void)state;
    print_list(&body);
    maker->answer.status = 0;
    for (size_t left = hal_pool_size(pool) / 2; maker->answer.status != 200; left += 1024) {
        must(left < hal_pool_size(pool));
        size_t held = hal_pool_size(pool) - left;
        maker->answer.status = 0;
        hal_pool_charge(pool, held);
        ask_or_leave(maker, &body);
        hal_pool_stats(pool, &stats);
        assert_true(stats.held_bytes == held);
        hal_pool_discharge(pool, held);
        refused += maker->answer.status == 429;
    }
    assert_true(refused > 100); /* at as many places */
    buf_fini(&body);
}

static void exchanges_of_one_client_end_in_any_order(void **state)
{
    struct maker *first = &makers[0], *second = &makers[1];
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

/* Makes turns.c see the end of the turn. */
static void end_turn(void)
{
    server.turns.begin_ns = 1;
}

static void statistics_of_many_models_take_several_turns(void **state)
{
    struct maker *maker = &makers[0], *other = &makers[1];
    (void)state;
    begin(maker, ROUTE_GET_ONLY, "/v2/models/stats", 0);
    end_turn();
    run(maker);
    assert_int_equal(maker->writes, 0);
    ask(other, ROUTE_GET_ONLY, "/v2", ""); /* arrives in between */
    assert_int_equal(other->answer.status, 200);
    assert_int_equal(maker->writes, 0);
    wait_for(&maker->ends);
    assert_int_equal(maker->answer.status, 200);
    assert_true(says(maker, "{\"model_stats\":[{\"name\":\"add\""));
    for (int i = 0; i < MORE_MODELS; i++) {
        char row[32];
        snprintf(row, sizeof(row), "},{\"name\":\"m%d\",", i);
        assert_true(says(maker, row));
    }
    assert_true(says(maker, "],\"memory\":{"));

    begin(maker, ROUTE_GET_ONLY, "/v2/models/stats", 0);
    end_turn();
    run(maker);
    do_abort(&maker->exchange); /* in the middle of it */
    assert_int_equal(server.busy_request_count, 1);
    wait_until_idle();
    assert_int_equal(maker->writes + maker->ends, 0);
}

static void a_client_that_goes_ends_its_call(void **state)
{
    struct maker *maker = &makers[0];
    static char padded[2048]; /* long enough for a thread */
    (void)state;
    begin(maker, ROUTE_POST_ONLY, INFER, strlen(json));
    add(maker, json, 20);
    do_abort(&maker->exchange);
    assert_int_equal(server.busy_request_count, 0);

    memset(padded, ' ', sizeof(padded) - 1);
    memcpy(padded, json, strlen(json));
    begin(maker, ROUTE_POST_ONLY, INFER, strlen(padded));
    add(maker, padded, strlen(padded));
    run(maker);
    assert_int_equal(maker->writes, 0); /* a thread has it */
    do_abort(&maker->exchange);
    wait_until_idle();
    assert_int_equal(maker->ends + maker->writes, 0);

    ask(maker, ROUTE_POST_ONLY, INFER, padded);
    assert_int_equal(maker->answer.status, 200);
}

/* Results stay in the memory where they were computed until the client has taken them. */
static void an_answer_waits_for_its_client(void **state)
{
    struct maker *maker = &makers[0];
    (void)state;
    maker->is_slow = true;
    begin(maker, ROUTE_POST_ONLY, INFER, strlen(binary_json));
    add(maker, binary_json, strlen(binary_json));
    run(maker);
    wait_for(&maker->writes);
    assert_string_equal(maker->answer.content_type, "application/octet-stream");
    assert_true(maker->answer.json_bytes > 0);
    assert_int_equal(maker->parts, 2);
    assert_int_equal(maker->ends, 0);
    assert_true(exchange_is_answering(&maker->exchange) && exchange_is_paced(&maker->exchange));
    assert_true(exchange_held_bytes(&maker->exchange) > exchange_heap_bytes(&maker->exchange));
    assert_true(exchange_heap_bytes(&maker->exchange) == maker->exchange.charged_bytes);
    exchange_note_written(&maker->exchange, true);
    assert_int_equal(maker->ends, 1);
    maker->is_slow = false;
}

/* The memory belongs to the writer until it reports that it no longer needs it. */
static void a_client_that_goes_while_it_takes_an_answer(void **state)
{
    struct maker *maker = &makers[0];
    (void)state;
    maker->is_slow = true;
    begin(maker, ROUTE_POST_ONLY, INFER, strlen(binary_json));
    add(maker, binary_json, strlen(binary_json));
    run(maker);
    wait_for(&maker->writes);
    do_abort(&maker->exchange);
    assert_int_equal(server.busy_request_count, 1);
    exchange_note_written(&maker->exchange, false);
    assert_int_equal(server.busy_request_count, 0);
    assert_int_equal(maker->ends, 0);
    maker->is_slow = false;
}

static void memory_is_taken_back_from_an_upload_and_from_an_answer(void **state)
{
    struct maker *maker = &makers[0];
    (void)state;
    begin(maker, ROUTE_POST_ONLY, INFER, strlen(json));
    add(maker, json, 20);
    assert_non_null(exchange_upload(&maker->exchange));
    exchange_evict(&maker->exchange);
    assert_int_equal(maker->ends, 1);
    assert_int_equal(maker->answer.status, 429);
    assert_int_equal(maker->answer.retry_after_s, 1);
    assert_true(says(maker, "request body: too slow"));

    maker->is_slow = true;
    begin(maker, ROUTE_GET_ONLY, "/v2", 0);
    run(maker);
    exchange_evict(&maker->exchange);
    assert_int_equal(maker->aborts, 1);
    exchange_note_written(&maker->exchange, false);
    assert_int_equal(maker->ends, 0);
    maker->is_slow = false;
}

/* An upload that began a second ago and is stalled unless bytes come. */
static void begin_upload(struct maker *maker)
{
    begin(maker, ROUTE_POST_ONLY, INFER, strlen(json));
    add(maker, json, 20);
    maker->exchange.pace.begun_ms -= 1000;
    maker->exchange.pace.moved_ms -= 1000;
}

/* On any connection. */
static void the_slowest_exchange_gives_way_and_others_go_on(void **state)
{
    struct maker *slow = &makers[0], *fast = &makers[1];
    (void)state;
    begin_upload(fast);
    begin_upload(slow);
    add(fast, json + 20, 20);
    assert_true(clients_evict_slowest(&server, NULL, false));
    assert_int_equal(slow->answer.status, 429);
    assert_int_equal(fast->writes, 0);
    assert_false(clients_evict_slowest(&server, &fast->exchange, true)); /* there is no other */
    add(fast, json + 40, strlen(json) - 40);
    run(fast);
    wait_for(&fast->ends);
    assert_int_equal(fast->answer.status, 200);
}

/* An eviction makes room for an upload. The work that follows the eviction must not evict it. */
static void an_eviction_makes_no_other(void **state)
{
    struct maker *slow = &makers[0], *fast = &makers[1];
    (void)state;
    begin_upload(fast);
    begin_upload(slow);
    slow->is_greedy = true;
    assert_true(clients_evict_slowest(&server, &fast->exchange, true));
    slow->is_greedy = false;
    assert_int_equal(slow->answer.status, 429);
    assert_int_equal(fast->writes, 0);
    add(fast, json + 20, strlen(json) - 20);
    run(fast);
    wait_for(&fast->ends);
    assert_int_equal(fast->answer.status, 200);
}

/* As clients_want() defines it: the timer tries again, and then the maker continues to read. */
static void an_upload_that_waits_for_memory_is_told_to_go_on(void **state)
{
    struct maker *maker = &makers[0];
    (void)state;
    begin(maker, ROUTE_POST_ONLY, INFER, strlen(json));
    add(maker, json, 20);
    clients_want(&maker->exchange);
    wait_for(&maker->resumes);
    assert_true(list_is_empty(&maker->exchange.want_link));
    add(maker, json + 20, strlen(json) - 20);
    run(maker);
    wait_for(&maker->ends);
    assert_int_equal(maker->answer.status, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered_by_status_fields_and_parts),
        cmocka_unit_test(a_refusal_is_an_answer_like_others),
        cmocka_unit_test(statistics_of_many_models_take_several_turns),
        cmocka_unit_test(a_request_beyond_its_memory_is_too_large),
        cmocka_unit_test(a_list_that_finds_no_memory_gives_back_what_it_had),
        cmocka_unit_test(exchanges_of_one_client_end_in_any_order),
        cmocka_unit_test(a_client_that_goes_ends_its_call),
        cmocka_unit_test(an_answer_waits_for_its_client),
        cmocka_unit_test(a_client_that_goes_while_it_takes_an_answer),
        cmocka_unit_test(memory_is_taken_back_from_an_upload_and_from_an_answer),
        cmocka_unit_test(the_slowest_exchange_gives_way_and_others_go_on),
        cmocka_unit_test(an_eviction_makes_no_other),
        cmocka_unit_test(an_upload_that_waits_for_memory_is_told_to_go_on),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
