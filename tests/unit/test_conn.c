/* SPDX-License-Identifier: MIT */
/*
 * A connection without a socket and without calls. Its transport is an array, and the linker
 * replaces the functions of calls by those of this file. So the test chooses each write of an
 * answer, and how much the client takes and when. Streams, which no call writes yet, are tested as
 * a client sees them.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "server/daemon/connection/conn.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/opening.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/serving/servings.h"
#include "server/http/head.h"

#define BODY_BYTES_MAX 100
#define SENT_BYTES_MAX 65536
#define HELD_BYTES 100000 /* more than a connection copies */

struct request *__wrap_request_take(struct requests *requests, struct exchange *exchange);
bool __wrap_request_begin(struct request *request, const struct exchange_head *head);
void __wrap_request_run(struct request *request);
void __wrap_request_written(struct request *request, bool is_ok);
void __wrap_request_abandon(struct request *request);
uint64_t __wrap_uv_hrtime(void);

/* The clock stands still, so a turn of the loop never ends for lack of time. */
uint64_t __wrap_uv_hrtime(void)
{
    return 1;
}

/* ---- the transport --------------------------------------------------------------------------- */

static struct wire {
    struct transport transport;
    struct buf sent;             /* bytes that the client has taken */
    size_t room;                 /* bytes that it takes before it waits */
    struct buf queue;            /* the bytes of |rest| that it has not taken yet */
    struct transport_rest *rest; /* NULL: nothing waits */
    bool is_reading, is_shut, is_closing, is_closed, is_broken;
} wire;

static void do_read(struct transport *transport, bool is_on)
{
    (void)transport;
    wire.is_reading = is_on;
}

static ssize_t do_write(struct transport *transport, const struct span *spans, unsigned count,
                        struct transport_rest *rest)
{
    (void)transport;
    size_t done = 0;
    assert_false(wire.is_shut || wire.is_closing);
    for (unsigned i = 0; i < count && !wire.is_broken; i++) {
        size_t len = rest || spans[i].len < wire.room ? spans[i].len : wire.room;
        buf_add(rest ? &wire.queue : &wire.sent, spans[i].ptr, len);
        wire.room -= rest ? 0 : len;
        done += len;
    }
    wire.rest = rest && !wire.is_broken ? rest : wire.rest;
    return wire.is_broken ? -1 : rest ? 0 : (ssize_t)done;
}

static bool do_shutdown(struct transport *transport)
{
    (void)transport;
    wire.is_shut = true;
    return true;
}

static void do_close(struct transport *transport)
{
    (void)transport;
    assert_false(wire.is_closing);
    wire.is_closing = true;
}

static size_t do_pending(const struct transport *transport, enum transport_way way)
{
    (void)transport;
    return way == TRANSPORT_OUT ? wire.queue.len : 0;
}

static const struct transport_ops wire_ops = {do_read, do_write, do_shutdown, do_close, do_pending};

/* The client takes the waiting bytes, or disconnects. */
static void take_rest(bool is_ok)
{
    struct transport_rest *rest = wire.rest;
    assert_non_null(rest);
    if (is_ok) {
        buf_add(&wire.sent, wire.queue.ptr, wire.queue.len);
    }
    buf_reset(&wire.queue);
    wire.rest = NULL;
    rest->done(rest, is_ok);
}

static void receive(const char *text)
{
    struct span bytes = span_str(text);
    while (bytes.len) {
        struct transport_room room = transport_tell_room(&wire.transport);
        size_t len = bytes.len < room.len ? bytes.len : room.len;
        assert_true(wire.is_reading && len > 0);
        memcpy(room.ptr, bytes.ptr, len);
        transport_tell(&wire.transport, TRANSPORT_BYTES, span_of(room.ptr, len));
        bytes = span_of(bytes.ptr + len, bytes.len - len);
    }
}

static void lose_client(void)
{
    transport_tell(&wire.transport, TRANSPORT_BROKEN, (struct span){0});
}

/* ---- the call -------------------------------------------------------------------------------- */

static struct loop loop;
static struct servings servings; /* there is none: no pool of transfers */
static struct requests requests;
static struct conns conns;
static struct request call;
static unsigned runs, writes_done, abandons;
static bool was_ok;

struct request *__wrap_request_take(struct requests *of, struct exchange *exchange)
{
    assert_ptr_equal(of, &requests);
    assert_null(call.exchange);
    call.exchange = exchange;
    call.http_status = 0;
    head_reset(&call.head);
    return &call;
}

bool __wrap_request_begin(struct request *request, const struct exchange_head *head)
{
    assert_ptr_equal(request, &call);
    assert_true(head->content_length <= BODY_BYTES_MAX);
    return true;
}

void __wrap_request_run(struct request *request)
{
    assert_ptr_equal(request, &call);
    runs++;
}

void __wrap_request_written(struct request *request, bool is_ok)
{
    assert_ptr_equal(request, &call);
    writes_done++;
    was_ok = is_ok;
}

void __wrap_request_abandon(struct request *request)
{
    assert_ptr_equal(request, &call);
    abandons++;
    request->exchange = NULL;
}

static const struct http_answer stream = {
    .status = 200, .content_type = "text/event-stream", .is_stream = true};
static const struct http_answer whole = {
    .status = 200, .content_type = "text/plain", .content_length = 5};

static enum exchange_written put(const struct http_answer *answer, struct span part, bool is_last)
{
    const struct exchange_part all = {
        .answer = answer, .spans = &part, .count = 1, .is_last = is_last};
    return exchange_write(call.exchange, &all);
}

static void end_call(void)
{
    struct exchange *exchange = call.exchange;
    call.exchange = NULL;
    exchange_end(exchange);
}

/* ---- a server with one client ---------------------------------------------------------------- */

static bool is_opening; /* the transport, when the next client comes */

static void note_gone(void *owner)
{
    assert_ptr_equal(owner, &conns);
}

static void go_on(struct turn_job *job)
{
    (void)job;
    fail(); /* nothing is handed back */
}

static const struct turns_ops turns_ops = {go_on, session_go_on_reader};

static int set_up(void **state)
{
    static struct options options;
    struct error err;
    (void)state;
    options_init(&options);
    const struct requests_uses uses = {
        .options = &options, .params = &options.params, .loop = &loop, .servings = &servings};
    memset(&loop, 0, sizeof(loop));
    uv_loop_init(&loop.uv);
    requests_init(&requests, &uses);
    requests_open(&requests);
    conns_init(&conns, &requests, note_gone, &conns);
    places_resize(&conns.places, 1);
    assert_int_equal(conns_open(&conns, &err), ST_OK);
    turns_init(&loop.turns, &loop.uv, &loop.watch, &turns_ops);
    memset(&call, 0, sizeof(call));
    call.magic = REQUEST_MAGIC;
    head_init(&call.head, conns.params);
    body_init(&call.body, NULL, BODY_BYTES_MAX);
    runs = writes_done = abandons = 0;
    memset(&wire, 0, sizeof(wire));
    buf_init(&wire.sent, SENT_BYTES_MAX);
    buf_init(&wire.queue, 2 * HELD_BYTES);
    wire.room = SIZE_MAX;
    transport_init(&wire.transport, &wire_ops);
    wire.transport.is_opening = is_opening;
    assert_true(opening_accept(&conns, &wire.transport, LISTENER_PUBLIC));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (!wire.is_closing) {
        lose_client();
    }
    if (wire.rest) {
        take_rest(false);
    }
    transport_tell_closed(&wire.transport);
    assert_int_equal(conns.count, 0);
    assert_true(list_is_empty(&requests.transfers.exchanges));
    assert_int_equal(requests.transfers.heap_bytes, 0);
    uv_handle_t *handles[] = {(uv_handle_t *)&conns.sweep, (uv_handle_t *)&requests.transfers.timer,
                              (uv_handle_t *)&loop.turns.prepare, (uv_handle_t *)&loop.turns.idle};
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_close(handles[i], NULL);
    }
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    head_fini(&call.head);
    body_fini(&call.body);
    buf_fini(&wire.sent);
    buf_fini(&wire.queue);
    conns_fini(&conns);
    requests_fini(&requests);
    return uv_loop_close(&loop.uv);
}

static const char *sent(void)
{
    buf_add_char(&wire.sent, '\0');
    wire.sent.len--;
    return (const char *)wire.sent.ptr;
}

static const char *behind_head(void)
{
    const char *end = strstr(sent(), "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

#define GET_1_1 "GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_1_0 "GET /v2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"

/* ---- tests ----------------------------------------------------------------------------------- */

static void an_answer_has_a_length_and_keeps_the_connection(void **state)
{
    (void)state;
    receive("GET /v2 HT");
    receive("TP/1.1\r\nHost: a\r\n\r");
    assert_int_equal(runs, 0);
    receive("\n");
    assert_int_equal(runs, 1);
    assert_true(span_is(head_target(&call.head), "/v2"));
    assert_int_equal(put(&whole, span_str("hello"), true), EXCHANGE_WRITTEN);
    end_call();
    assert_non_null(strstr(sent(), "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(sent(), "\r\nContent-Length: 5\r\n"));
    assert_string_equal(behind_head(), "hello");
    receive(GET_1_1);
    assert_int_equal(runs, 2);
}

/* HTTP/1 has no way to begin one earlier that all clients understand. */
static void an_answer_begins_after_its_request(void **state)
{
    (void)state;
    receive("POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx");
    assert_int_equal(call.exchange->incoming, EXCHANGE_BODY);
    assert_false(exchange_may_answer(call.exchange));
    receive("y");
    assert_int_equal(runs, 1);
    assert_true(exchange_may_answer(call.exchange));
    put(&whole, span_str("hello"), true);
    assert_true(exchange_has_begun(call.exchange));
    end_call();
}

static void a_stream_is_chunked(void **state)
{
    (void)state;
    receive(GET_1_1);
    assert_int_equal(put(&stream, span_str("event: a\n\n"), false), EXCHANGE_WRITTEN);
    assert_string_equal(behind_head(), "a\r\nevent: a\n\n\r\n"); /* sent before the next one */
    assert_int_equal(put(NULL, span_str(""), false), EXCHANGE_WRITTEN);
    assert_int_equal(put(NULL, span_str("b"), false), EXCHANGE_WRITTEN);
    assert_int_equal(put(NULL, span_str("end"), true), EXCHANGE_WRITTEN);
    end_call();
    assert_non_null(strstr(sent(), "\r\nTransfer-Encoding: chunked\r\n"));
    assert_null(strstr(sent(), "Content-Length"));
    assert_string_equal(behind_head(), "a\r\nevent: a\n\n\r\n1\r\nb\r\n3\r\nend\r\n0\r\n\r\n");
    receive(GET_1_1);
    assert_int_equal(runs, 2);
    wire.sent.len = 0;
    put(&whole, span_str("hello"), true);
    assert_string_equal(behind_head(), "hello"); /* and not a chunk */
}

static const struct http_trailer trailers[] = {{"grpc-status", {(const uint8_t *)"0", 1}},
                                               {"x-left", {NULL, 0}}};

static void put_last(struct span part)
{
    const struct exchange_part last = {
        .spans = &part, .count = 1, .is_last = true, .trailers = trailers, .trailer_count = 2};
    assert_int_equal(exchange_write(call.exchange, &last), EXCHANGE_WRITTEN);
    end_call();
}

static void trailers_are_for_clients_that_take_them(void **state)
{
    static const struct {
        const char *te, *part, *behind;
    } rows[] = {
        {"", "a", "1\r\na\r\n0\r\n\r\n"},
        {"TE: deflate, trailer\r\n", "a", "1\r\na\r\n0\r\n\r\n"},
        {"TE: trailers\r\n", "a", "1\r\na\r\n0\r\ngrpc-status: 0\r\nx-left: \r\n\r\n"},
        {"TE: deflate;q=0.5 , Trailers\r\n", "", "0\r\ngrpc-status: 0\r\nx-left: \r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char head[128];
        snprintf(head, sizeof(head), "GET /v2 HTTP/1.1\r\nHost: a\r\n%s\r\n", rows[i].te);
        receive(head);
        put(&stream, span_str(""), false);
        put_last(span_str(rows[i].part));
        assert_string_equal(behind_head(), rows[i].behind);
        wire.sent.len = 0;
    }
    receive("GET /v2 HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n");
    const struct span hello = span_str("hello");
    const struct exchange_part only = {.answer = &whole,
                                       .spans = &hello,
                                       .count = 1,
                                       .is_last = true,
                                       .trailers = trailers,
                                       .trailer_count = 2};
    assert_int_equal(exchange_write(call.exchange, &only), EXCHANGE_WRITTEN);
    end_call();
    assert_string_equal(behind_head(), "hello"); /* it has a length, and no chunk to put them in */
}

static void trailers_may_come_alone(void **state)
{
    const struct exchange_part last = {.is_last = true, .trailers = trailers, .trailer_count = 1};
    (void)state;
    receive("GET /v2 HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n");
    put(&stream, span_str("a"), false);
    assert_int_equal(exchange_write(call.exchange, &last), EXCHANGE_WRITTEN);
    end_call();
    assert_string_equal(behind_head(), "1\r\na\r\n0\r\ngrpc-status: 0\r\n\r\n");
}

static void a_stream_may_end_without_a_last_part(void **state)
{
    (void)state;
    receive(GET_1_1);
    put(&stream, span_str("a"), false);
    put(NULL, span_str(""), true);
    end_call();
    assert_string_equal(behind_head(), "1\r\na\r\n0\r\n\r\n");
}

static void a_stream_for_http_1_0_ends_with_the_connection(void **state)
{
    (void)state;
    receive(GET_1_0);
    put(&stream, span_str("a"), false);
    put(NULL, span_str("b"), true);
    assert_false(wire.is_shut);
    end_call();
    assert_non_null(strstr(sent(), "\r\nConnection: close\r\n"));
    assert_null(strstr(sent(), "Transfer-Encoding"));
    assert_string_equal(behind_head(), "ab");
    assert_true(wire.is_shut);
}

static void a_stream_for_a_head_request_is_a_head(void **state)
{
    (void)state;
    receive("HEAD /v2 HTTP/1.1\r\nHost: a\r\n\r\n");
    put(&stream, span_str("a"), false);
    put(NULL, span_str("b"), true);
    end_call();
    assert_string_equal(behind_head(), "");
    receive(GET_1_1);
    assert_int_equal(runs, 2);
}

/* Back pressure: one part at a time waits, in the memory of the call. */
static void a_stream_waits_for_a_client_that_is_slow(void **state)
{
    (void)state;
    receive(GET_1_1);
    wire.room = 20;
    assert_int_equal(put(&stream, span_str("first"), false), EXCHANGE_WAITS);
    assert_true(exchange_is_answering(call.exchange));
    assert_int_equal(writes_done, 0);
    wire.room = SIZE_MAX;
    take_rest(true);
    assert_true(writes_done == 1 && was_ok);
    assert_int_equal(put(NULL, span_str("second"), true), EXCHANGE_WRITTEN);
    end_call();
    assert_string_equal(behind_head(), "5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n");
}

/* The last part of an answer is copied if it is short, so that the call need not wait. */
static void a_short_rest_is_copied_and_a_long_one_is_not(void **state)
{
    static char text[HELD_BYTES];
    struct http_answer answer = whole;
    (void)state;
    memset(text, 'x', sizeof(text));
    receive(GET_1_1);
    wire.room = 10;
    assert_int_equal(put(&whole, span_str("hello"), true), EXCHANGE_WRITTEN);
    end_call();
    assert_true(requests.transfers.heap_bytes > 0);
    receive(GET_1_1); /* read ahead: the first answer is not sent yet */
    assert_int_equal(runs, 1);
    take_rest(true);
    assert_string_equal(behind_head(), "hello");
    assert_int_equal(runs, 2);

    wire.sent.len = 0;
    answer.content_length = sizeof(text);
    assert_int_equal(put(&answer, span_of(text, sizeof(text)), true), EXCHANGE_WAITS);
    take_rest(false);
    assert_true(writes_done == 1 && !was_ok);
    end_call();
    assert_true(wire.is_closing); /* and sends nothing more */
}

static void a_client_that_goes_cancels_a_stream(void **state)
{
    (void)state;
    receive(GET_1_1);
    wire.room = 20;
    assert_int_equal(put(&stream, span_str("first"), false), EXCHANGE_WAITS);
    lose_client();
    assert_int_equal(abandons, 1);
    assert_int_equal(writes_done, 0); /* the transport still refers to the call's memory */
    take_rest(false);
    assert_true(writes_done == 1 && !was_ok);
}

static int set_up_opening(void **state)
{
    is_opening = true;
    return set_up(state);
}

static struct session *only_session(void)
{
    assert_int_equal(conns.count, 1);
    return LIST_ENTRY(conns.all.next, struct session, link);
}

static void check_deadline(uint64_t now_ms)
{
    struct session *session = only_session();
    session->ops->check_deadline(session, now_ms);
}

static void open_transport(void)
{
    wire.transport.is_opening = is_opening = false;
    wire.transport.version = "TLSv1.3";
    transport_tell(&wire.transport, TRANSPORT_OPENED, (struct span){0});
}

/* A transport that is opening has the time of a head, then that of an idle connection. */
static void a_transport_opens(void **state)
{
    (void)state;
    uint64_t now_ms = uv_now(&loop.uv);
    assert_int_equal(only_session()->deadline_ms, now_ms + conns.params->header_timeout);
    assert_int_equal(conns.places.used, 1);
    open_transport();
    assert_int_equal(only_session()->deadline_ms, now_ms + conns.params->idle_timeout);
    assert_int_equal(conns.places.used, 1); /* it has been handed over */
    receive(GET_1_1);
    assert_int_equal(runs, 1);
    assert_string_equal(call.exchange->tls_version, "TLSv1.3");
}

static void a_transport_that_does_not_open_lingers(void **state)
{
    (void)state;
    transport_tell(&wire.transport, TRANSPORT_REFUSED, (struct span){0});
    assert_true(wire.is_shut && !wire.is_closing); /* the client may read why */
    receive("what is this?");
    assert_false(wire.is_closing);
    check_deadline(uv_now(&loop.uv) + conns.params->linger_timeout);
    assert_true(wire.is_closing);
    is_opening = false;
}

static void a_transport_that_opens_has_the_time_of_a_drain(void **state)
{
    (void)state;
    loop.is_draining = true;
    conns_drain(&conns);
    assert_false(wire.is_shut || wire.is_closing);
    open_transport();
    assert_int_equal(only_session()->deadline_ms,
                     uv_now(&loop.uv) + conns.params->drain_incomplete_timeout);
}

static void an_idle_connection_ends_with_a_shutdown(void **state)
{
    uint64_t deadline_ms = only_session()->deadline_ms;
    (void)state;
    check_deadline(deadline_ms - 1);
    assert_false(wire.is_shut || wire.is_closing);
    check_deadline(deadline_ms);
    assert_true(wire.is_shut && wire.is_closing);
}

static void a_write_to_a_broken_transport_says_so(void **state)
{
    (void)state;
    receive(GET_1_1);
    put(&stream, span_str("a"), false);
    wire.is_broken = true;
    assert_int_equal(put(NULL, span_str("b"), false), EXCHANGE_BROKEN);
    assert_int_equal(put(NULL, span_str("c"), true), EXCHANGE_BROKEN);
    end_call();
    assert_true(wire.is_closing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_has_a_length_and_keeps_the_connection, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_answer_begins_after_its_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stream_is_chunked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(trailers_are_for_clients_that_take_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(trailers_may_come_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stream_may_end_without_a_last_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stream_for_http_1_0_ends_with_the_connection, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_stream_for_a_head_request_is_a_head, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stream_waits_for_a_client_that_is_slow, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_short_rest_is_copied_and_a_long_one_is_not, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_goes_cancels_a_stream, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_transport_opens, set_up_opening, tear_down),
        cmocka_unit_test_setup_teardown(a_transport_that_does_not_open_lingers, set_up_opening,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_transport_that_opens_has_the_time_of_a_drain,
                                        set_up_opening, tear_down),
        cmocka_unit_test_setup_teardown(an_idle_connection_ends_with_a_shutdown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_write_to_a_broken_transport_says_so, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
