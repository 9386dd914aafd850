/* SPDX-License-Identifier: MIT */
/*
 * Sessions and exchanges of a second protocol (tiny_protocol.h) beside HTTP/1, without sockets and
 * without calls. The linker replaces the functions of calls by those of this file, as in
 * test_conn.c.
 */
#include "config.h"

#include "tests/unit/tiny_protocol.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "server/daemon/connection/conn.h"
#include "server/daemon/connection/opening.h"
#include "server/daemon/request/request.h"
#include "server/http/head.h"
#include "tests/unit/conns_support.h"

#define BYTES_MAX 65536
#define RESTS_MAX 4
#define TARGET "/v2/echo"

struct request *__wrap_request_take(struct requests *of, struct exchange *exchange);
bool __wrap_request_begin(struct request *request, const struct exchange_head *head);
int __wrap_exchange_add_body(struct exchange *exchange, struct span bytes);
int __real_exchange_add_body(struct exchange *exchange, struct span bytes);
void __wrap_request_run(struct request *request);
bool __wrap_request_retry(struct request *request);
void __wrap_request_written(struct request *request, bool is_ok);
void __wrap_request_abandon(struct request *request);
uint64_t __wrap_uv_hrtime(void);

static uint64_t now_ns;

uint64_t __wrap_uv_hrtime(void)
{
    return now_ns;
}

/* ---- the transport --------------------------------------------------------------------------- */

struct wire {
    struct transport transport;
    struct buf sent;                         /* bytes that the client has taken */
    size_t room;                             /* bytes that it takes before it waits */
    struct buf queue;                        /* bytes of |rests| */
    struct transport_rest *rests[RESTS_MAX]; /* that wait, in their order */
    unsigned rest_count;
    bool is_reading, is_shut, is_closing;
};

static struct wire wires[2];

static struct wire *wire_of(const struct transport *transport)
{
    return LIST_ENTRY((struct transport *)(uintptr_t)transport, struct wire, transport);
}

static void do_read(struct transport *transport, bool is_on)
{
    wire_of(transport)->is_reading = is_on;
}

static ssize_t do_write(struct transport *transport, const struct span *spans, unsigned count,
                        struct transport_rest *rest)
{
    struct wire *wire = wire_of(transport);
    size_t done = 0;
    assert_false(wire->is_shut || wire->is_closing);
    for (unsigned i = 0; i < count; i++) {
        size_t room = rest ? SIZE_MAX : wire->rest_count ? 0 : wire->room;
        size_t len = spans[i].len < room ? spans[i].len : room;
        buf_add(rest ? &wire->queue : &wire->sent, spans[i].ptr, len);
        wire->room -= rest ? 0 : len;
        done += len;
    }
    if (rest) {
        assert_true(wire->rest_count < RESTS_MAX);
        wire->rests[wire->rest_count++] = rest;
    }
    return rest ? 0 : (ssize_t)done;
}

static bool do_shutdown(struct transport *transport)
{
    wire_of(transport)->is_shut = true;
    return true;
}

static void do_close(struct transport *transport)
{
    assert_false(wire_of(transport)->is_closing);
    wire_of(transport)->is_closing = true;
}

static size_t do_pending(const struct transport *transport, enum transport_way way)
{
    return way == TRANSPORT_OUT ? wire_of(transport)->queue.len : 0;
}

static const struct transport_ops wire_ops = {do_read, do_write, do_shutdown, do_close, do_pending};

/* The client takes all that waits, or has gone. */
static void take_rests(struct wire *wire, bool is_ok)
{
    unsigned count = wire->rest_count;
    if (is_ok) {
        buf_add(&wire->sent, wire->queue.ptr, wire->queue.len);
    }
    buf_reset(&wire->queue);
    wire->rest_count = 0;
    for (unsigned i = 0; i < count; i++) {
        wire->rests[i]->done(wire->rests[i], is_ok);
    }
}

static void receive(struct wire *wire, const char *text)
{
    struct transport_room room = transport_tell_room(&wire->transport);
    assert_true(wire->is_reading && strlen(text) <= room.len);
    memcpy(room.ptr, text, strlen(text));
    transport_tell(&wire->transport, TRANSPORT_BYTES, span_of(room.ptr, strlen(text)));
}

/* What the client has got since it was last asked. */
static void expect(struct wire *wire, const char *text)
{
    buf_add_char(&wire->sent, '\0');
    assert_string_equal((const char *)wire->sent.ptr, text);
    buf_reset(&wire->sent);
}

static const struct protocol *const protocols[] = {&tiny_protocol, &conn_protocol, NULL};

/* ---- calls ----------------------------------------------------------------------------------- */

static struct request calls[TINY_STREAMS + 1];
static unsigned runs, retries, abandons, writes_done;
static bool is_echo; /* a call answers each piece of the body at once */

/* The call of a stream; calls are taken in the order of the list. */
static struct request *call_of(unsigned stream)
{
    for (size_t i = 0; i < TINY_STREAMS + 1; i++) {
        struct exchange *exchange = calls[i].exchange;
        if (exchange && exchange->ops == &tiny_exchange_ops &&
            tiny_stream_of(exchange)->number == stream) {
            return &calls[i];
        }
    }
    return NULL;
}

struct request *__wrap_request_take(struct requests *of, struct exchange *exchange)
{
    assert_ptr_equal(of, &requests);
    for (size_t i = 0; i < TINY_STREAMS + 1; i++) {
        if (!calls[i].exchange) {
            calls[i].exchange = exchange;
            calls[i].http_status = 0;
            head_reset(&calls[i].head);
            body_reset(&calls[i].body);
            return &calls[i];
        }
    }
    fail();
    return NULL;
}

bool __wrap_request_begin(struct request *request, const struct exchange_head *head)
{
    assert_true(head->has_body || request->exchange->ops != &tiny_exchange_ops);
    return true;
}

static const struct http_answer stream_answer = {
    .status = 200, .content_type = "text/plain", .is_stream = true};

static enum exchange_written put(struct request *call, const char *text)
{
    const struct span span = span_str(text);
    const struct exchange_part part = {
        .answer = exchange_has_begun(call->exchange) ? NULL : &stream_answer,
        .spans = &span,
        .count = 1};
    return exchange_write(call->exchange, &part);
}

/* The last write, with trailers. */
static void finish(struct request *call, const char *status)
{
    const struct http_trailer trailers[] = {{"grpc-status", span_str(status)},
                                            {"grpc-message", span_str("")}};
    struct exchange *exchange = call->exchange;
    const struct exchange_part part = {.answer =
                                           exchange_has_begun(exchange) ? NULL : &stream_answer,
                                       .is_last = true,
                                       .trailers = trailers,
                                       .trailer_count = 2};
    assert_int_equal(exchange_write(exchange, &part), EXCHANGE_WRITTEN);
    call->exchange = NULL;
    exchange_end(exchange);
}

int __wrap_exchange_add_body(struct exchange *exchange, struct span bytes)
{
    struct request *request = exchange->request;
    int status = __real_exchange_add_body(exchange, bytes);
    if (is_echo) {
        char text[64];
        snprintf(text, sizeof(text), "%.*s?", SPAN_FMT(bytes));
        assert_int_equal(put(request, text), EXCHANGE_WRITTEN);
    }
    return status;
}

/* A refused request is answered at once. */
void __wrap_request_run(struct request *request)
{
    struct exchange *exchange = request->exchange;
    const struct http_answer answer = {.status = request->http_status};
    const struct exchange_part part = {.answer = &answer, .is_last = true};
    runs++;
    if (request->http_status) {
        assert_int_equal(exchange_write(exchange, &part), EXCHANGE_WRITTEN);
        request->exchange = NULL;
        exchange_end(exchange);
    }
}

bool __wrap_request_retry(struct request *request)
{
    assert_non_null(request->exchange);
    retries++;
    return true;
}

void __wrap_request_written(struct request *request, bool is_ok)
{
    (void)request;
    writes_done += is_ok;
}

void __wrap_request_abandon(struct request *request)
{
    abandons++;
    request->exchange = NULL;
}

/* ---- a server with a client ------------------------------------------------------------------ */

static void init_wire(struct wire *wire, uint64_t client)
{
    buf_init(&wire->sent, BYTES_MAX);
    buf_init(&wire->queue, BYTES_MAX);
    wire->room = SIZE_MAX;
    transport_init(&wire->transport, &wire_ops);
    wire->transport.peer.client = wire->transport.peer.place_client = client;
    wire->transport.is_opening = true;
}

/* TLS has chosen |protocol|, or nothing. */
static void open_wire(struct wire *wire, const char *protocol)
{
    wire->transport.is_opening = false;
    wire->transport.version = "TLSv1.3";
    wire->transport.protocol = span_str(protocol);
    transport_tell(&wire->transport, TRANSPORT_OPENED, (struct span){0});
}

static int set_up(void **state)
{
    (void)state;
    memset(wires, 0, sizeof(wires));
    now_ns = 1;
    open_conns(protocols, 1);
    runs = retries = abandons = writes_done = 0;
    is_echo = false;
    memset(calls, 0, sizeof(calls));
    for (size_t i = 0; i < TINY_STREAMS + 1; i++) {
        calls[i].magic = REQUEST_MAGIC;
        head_init(&calls[i].head, conns.params);
        body_init(&calls[i].body, NULL, BYTES_MAX);
    }
    init_wire(&wires[0], 7);
    init_wire(&wires[1], 7);
    assert_true(opening_accept(&conns, &wires[0].transport, LISTENER_PUBLIC));
    open_wire(&wires[0], "tiny");
    return 0;
}

static void lose(struct wire *wire)
{
    if (!wire->transport.callbacks) {
        return;
    }
    if (!wire->is_closing) {
        transport_tell(&wire->transport, TRANSPORT_BROKEN, (struct span){0});
    }
    take_rests(wire, false);
    transport_tell_closed(&wire->transport);
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        lose(&wires[i]);
        buf_fini(&wires[i].sent);
        buf_fini(&wires[i].queue);
    }
    for (size_t i = 0; i < TINY_STREAMS + 1; i++) {
        head_fini(&calls[i].head);
        body_fini(&calls[i].body);
    }
    close_conns();
    return 0;
}

static struct session *first_session(void)
{
    return LIST_ENTRY(conns.all.next, struct session, link);
}

static struct exchange *exchange_of(unsigned stream)
{
    return &tiny_of(first_session())->streams[stream - 1].exchange;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_stream_is_cancelled_while_the_other_answers(void **state)
{
    struct wire *wire = &wires[0];
    (void)state;
    receive(wire, "H1 " TARGET "\nE1\nH2 " TARGET "\nE2\n");
    assert_int_equal(runs, 2);
    assert_int_equal(conns.places.used, 1); /* one connection */
    put(call_of(2), "first");
    receive(wire, "C1\n");
    assert_int_equal(abandons, 1);
    assert_null(call_of(1));
    assert_int_equal(first_session()->state, SESSION_BUSY);
    put(call_of(2), "second");
    finish(call_of(2), "0");
    expect(wire, "a2 200\np2 first\np2 second\nt2 grpc-status: 0\nt2 grpc-message: \ne2\n");
    assert_int_equal(first_session()->state, SESSION_QUIET);
    receive(wire, "H1 " TARGET "\nE1\n"); /* the number may be used again */
    finish(call_of(1), "5");
    expect(wire, "a1 200\nt1 grpc-status: 5\nt1 grpc-message: \ne1\n");
}

/* Its memory is the transport's until the transport says otherwise. */
static void a_stream_is_cancelled_while_its_write_waits(void **state)
{
    struct wire *wire = &wires[0];
    (void)state;
    receive(wire, "H1 " TARGET "\nE1\nH2 " TARGET "\nE2\n");
    wire->room = 4;
    assert_int_equal(put(call_of(1), "first"), EXCHANGE_WAITS);
    assert_int_equal(put(call_of(2), "second"), EXCHANGE_WAITS);
    assert_true(exchange_is_answering(exchange_of(1)) && exchange_is_answering(exchange_of(2)));
    receive(wire, "C1\n");
    assert_int_equal(abandons, 1);
    assert_false(exchange_is_answering(exchange_of(1)));
    assert_non_null(exchange_of(1)->writer);
    wire->room = SIZE_MAX;
    take_rests(wire, true);
    assert_int_equal(writes_done, 2);
    assert_null(exchange_of(1)->writer);
    finish(call_of(2), "0");
}

static void an_answer_begins_before_its_body_has_ended(void **state)
{
    struct wire *wire = &wires[0];
    (void)state;
    is_echo = true;
    receive(wire, "H1 " TARGET "\n");
    assert_true(exchange_may_answer(exchange_of(1)) && !exchange_has_begun(exchange_of(1)));
    receive(wire, "B1 one\n");
    expect(wire, "a1 200\np1 one?\n");
    assert_int_equal(exchange_of(1)->incoming, EXCHANGE_BODY);
    assert_int_equal(exchange_of(1)->outgoing, EXCHANGE_BEGUN);
    receive(wire, "B1 two\n");
    assert_int_equal(runs, 0);
    receive(wire, "E1\n");
    assert_int_equal(runs, 1);
    assert_int_equal(exchange_of(1)->incoming, EXCHANGE_RECEIVED);
    finish(call_of(1), "0");
    expect(wire, "p1 two?\nt1 grpc-status: 0\nt1 grpc-message: \ne1\n");
}

static void a_call_may_end_before_its_request(void **state)
{
    struct wire *wire = &wires[0];
    (void)state;
    receive(wire, "H1 " TARGET "\nB1 one\n");
    finish(call_of(1), "3");
    expect(wire, "a1 200\nt1 grpc-status: 3\nt1 grpc-message: \ne1\n");
    receive(wire, "B1 more\nE1\n");
    assert_int_equal(runs + abandons, 0);
    expect(wire, "");
}

/* Before the answer the client is told why; after its status it can only be cut. */
static void each_half_has_a_pace(void **state)
{
    struct wire *wire = &wires[0];
    (void)state;
    receive(wire, "H1 " TARGET "\nH2 " TARGET "\nB2 two\n");
    put(call_of(2), "first");
    expect(wire, "a2 200\np2 first\n");
    uint64_t late_ms = uv_now(&loop.uv) + conns.params->rate_window;
    assert_false(exchange_is_answer_slow(exchange_of(2), late_ms)); /* nothing waits for it */
    first_session()->ops->check_deadline(first_session(), late_ms);
    expect(wire, "a1 408\ne1\nr2\n");
    assert_int_equal(abandons, 1);
    assert_false(wire->is_closing);

    receive(wire, "H1 " TARGET "\n");
    wire->room = 0;
    assert_int_equal(put(call_of(1), "first"), EXCHANGE_WAITS);
    exchange_of(1)->upload.pace.window_bytes = UINT32_MAX;
    assert_true(exchange_is_answer_slow(exchange_of(1), late_ms));
    assert_false(exchange_is_upload_slow(exchange_of(1), late_ms));
    first_session()->ops->postpone(first_session(), 1, late_ms);
    assert_false(exchange_is_answer_slow(exchange_of(1), late_ms));
}

/* A second ago: its answer waits for the client, who takes much of it. */
static void begin_both_ways(unsigned stream)
{
    struct exchange *exchange = exchange_of(stream);
    assert_int_equal(put(call_of(stream), "first"), EXCHANGE_WAITS);
    exchange->upload.pace.begun_ms -= 1000;
    exchange->answer.pace.begun_ms -= 1000;
    pace_move(&exchange->answer.pace, 1 << 20, uv_now(&loop.uv));
}

/* A stream whose upload has stopped holds memory, however fast its answer is taken. */
static void the_slower_half_gives_memory_back(void **state)
{
    struct wire *wire = &wires[0];
    (void)state;
    receive(wire, "H1 " TARGET "\nB1 one\nH2 " TARGET "\nB2 two\n");
    wire->room = 0;
    begin_both_ways(1);
    begin_both_ways(2);
    pace_move(&exchange_of(1)->upload.pace, 1 << 20, uv_now(&loop.uv));
    exchange_of(2)->upload.pace.moved_ms -= 1000;
    assert_int_equal(exchange_upload_bytes(exchange_of(2)), 3);
    assert_true(transfers_evict_slowest(&requests.transfers, NULL, true));
    assert_int_equal(abandons, 1);
    assert_true(call_of(1) && !call_of(2));
    assert_false(transfers_evict_slowest(&requests.transfers, NULL, true));
    take_rests(wire, true);
}

static void each_half_waits_for_memory_by_itself(void **state)
{
    struct wire *wire = &wires[0];
    (void)state;
    receive(wire, "H1 " TARGET "\n");
    struct exchange *exchange = exchange_of(1);
    transfers_wait_for_memory(&exchange->upload);
    exchange_wait_for_memory(exchange, 0);
    assert_true(transfer_is_waiting(&exchange->upload) && transfer_is_waiting(&exchange->answer));
    while (retries == 0) {
        uv_run(&loop.uv, UV_RUN_ONCE);
    }
    assert_int_equal(tiny_of(first_session())->streams[0].resumes, 1);
    assert_false(transfer_is_waiting(&exchange->upload) || transfer_is_waiting(&exchange->answer));
    transfers_wait_for_memory(&exchange->upload);
    receive(wire, "C1\n");
    assert_false(transfer_is_waiting(&exchange->upload));
}

static void memory_of_no_stream_is_counted(void **state)
{
    (void)state;
    receive(&wires[0], "H1 /v2");
    assert_true(requests.transfers.heap_bytes >= 6);
    receive(&wires[0], "/echo\n");
    assert_int_equal(requests.transfers.heap_bytes, 0);
    receive(&wires[0], "B1");
}

static void a_drain_waits_for_all_streams(void **state)
{
    struct wire *wire = &wires[0];
    (void)state;
    receive(wire, "H1 " TARGET "\nE1\nH2 " TARGET "\nE2\n");
    conns_drain(&conns);
    finish(call_of(1), "0");
    assert_false(wire->is_closing);
    buf_reset(&wire->sent);
    receive(wire, "H1 " TARGET "\n");
    expect(wire, "r1\n"); /* nothing new */
    finish(call_of(2), "0");
    assert_true(wire->is_closing);
    assert_int_equal(abandons, 0);
}

/* Give or take a tenth; TLS and the protocol that it chooses are one connection. */
static void a_connection_has_an_age(void **state)
{
    (void)state;
    options.params.connection_age = 1000;
    uint64_t now_ms = uv_now(&loop.uv);
    assert_true(opening_accept(&conns, &wires[1].transport, LISTENER_PUBLIC));
    uint64_t old_ms = LIST_ENTRY(conns.all.prev, struct session, link)->old_ms;
    assert_in_range(old_ms, now_ms + 900, now_ms + 1100);
    open_wire(&wires[1], "tiny");
    assert_int_equal(LIST_ENTRY(conns.all.prev, struct session, link)->old_ms, old_ms);
    assert_int_equal(LIST_ENTRY(conns.all.next, struct session, link)->old_ms, UINT64_MAX);
}

static void an_end_cancels_all_streams(void **state)
{
    (void)state;
    receive(&wires[0], "H1 " TARGET "\nE1\nH2 " TARGET "\nB2 two\n");
    conns_abort(&conns);
    assert_true(wires[0].is_closing);
    assert_int_equal(abandons, 2);
}

static void a_session_without_streams_has_a_deadline(void **state)
{
    struct session *session = first_session();
    (void)state;
    session->ops->postpone(session, 500, uv_now(&loop.uv));
    uint64_t deadline_ms = uv_now(&loop.uv) + conns.params->idle_timeout + 500;
    session->ops->check_deadline(session, deadline_ms - 1);
    assert_false(wires[0].is_closing);
    session->ops->check_deadline(session, deadline_ms);
    assert_true(wires[0].is_shut && wires[0].is_closing);
}

/* There is one place; a connection with streams keeps it, and a quiet one gives it up. */
static void sessions_of_all_protocols_share_places(void **state)
{
    (void)state;
    receive(&wires[0], "H1 " TARGET "\n");
    assert_true(opening_accept(&conns, &wires[1].transport, LISTENER_PUBLIC));
    assert_true(wires[1].is_shut && !wires[0].is_shut);
    lose(&wires[1]);
    memset(&wires[1], 0, sizeof(wires[1]));
    receive(&wires[0], "C1\n");
    init_wire(&wires[1], 7);
    assert_true(opening_accept(&conns, &wires[1].transport, LISTENER_PUBLIC));
    assert_true(wires[0].is_shut && wires[0].is_closing && !wires[1].is_shut);
    assert_int_equal(conns.places.used, 1);
    open_wire(&wires[1], ""); /* no protocol was named */
    receive(&wires[1], "GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(runs, 1);
}

static void a_request_begins_in_its_turn(void **state)
{
    (void)state;
    assert_true(turns_has_time(&loop.turns));
    now_ns += 2 * TURNS_NS;
    receive(&wires[0], "H1 " TARGET "\nE1\n");
    assert_true(session_is_waiting(first_session()));
    assert_int_equal(runs, 0);
    uv_run(&loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(runs, 1);
    assert_false(session_is_waiting(first_session()));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stream_is_cancelled_while_the_other_answers),
        TEST(a_stream_is_cancelled_while_its_write_waits),
        TEST(an_answer_begins_before_its_body_has_ended),
        TEST(a_call_may_end_before_its_request),
        TEST(each_half_has_a_pace),
        TEST(the_slower_half_gives_memory_back),
        TEST(each_half_waits_for_memory_by_itself),
        TEST(memory_of_no_stream_is_counted),
        TEST(a_drain_waits_for_all_streams),
        TEST(a_connection_has_an_age),
        TEST(an_end_cancels_all_streams),
        TEST(a_session_without_streams_has_a_deadline),
        TEST(sessions_of_all_protocols_share_places),
        TEST(a_request_begins_in_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
