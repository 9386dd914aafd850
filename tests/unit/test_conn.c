/* SPDX-License-Identifier: MIT */
/*
 * Answers of a connection, as a client sees them: whole ones and streams, which no call writes yet;
 * a client that is slow or goes; a transport that opens.
 */
#include "config.h"

#include "tests/unit/conn_support.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

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
