/* SPDX-License-Identifier: MIT */
/*
 * How long a connection may stay in each of its states, what a drain does to it, and bytes that
 * come too early. Without a socket and without calls.
 */
#include "config.h"

#include "tests/unit/conn_support.h"
#include "tests/unit/unit.h"

#include <string.h>

#include "server/daemon/connection/opening.h"

#define POST_OF_5 POST_1_1 "Content-Length: 5\r\n\r\n"

static uint64_t now_ms(void)
{
    return uv_now(&loop.uv);
}

static void answer(void)
{
    assert_int_equal(put(&whole, span_str("hello"), true), EXCHANGE_WRITTEN);
    end_call();
}

/* ---- requests that do not come --------------------------------------------------------------- */

static void expect_408(const char *why)
{
    assert_int_equal(runs, 1);
    assert_int_equal(call.http_status, 408);
    assert_string_equal(call.err.text, why);
    answer();
    assert_true(wire.is_shut);
}

static void a_head_has_a_time(void **state)
{
    (void)state;
    receive("GET /v2 HTTP/1.1\r\n");
    uint64_t deadline_ms = now_ms() + options.params.header_timeout;
    check_deadline(deadline_ms - 1);
    assert_int_equal(runs, 0);
    check_deadline(deadline_ms);
    expect_408("request head: not complete in time");
}

static void a_body_has_a_time(void **state)
{
    (void)state;
    options.params.rate_min = 0;
    receive(POST_OF_5);
    uint64_t deadline_ms = now_ms() + options.params.body_timeout;
    check_deadline(deadline_ms - 1);
    assert_int_equal(runs, 0);
    check_deadline(deadline_ms);
    expect_408("request body: not complete in time");
}

static void a_body_has_a_pace(void **state)
{
    (void)state;
    receive(POST_OF_5 "h");
    check_deadline(now_ms() + options.params.rate_window - 1);
    assert_int_equal(runs, 0);
    check_deadline(now_ms() + options.params.rate_window);
    expect_408("request body: fewer bytes a second than --rate-min");
}

static void a_drain_refuses_what_is_not_complete(void **state)
{
    (void)state;
    receive("GET /v2 HTTP/1.1\r\n");
    conns_refuse_later(&conns, 1);
    check_deadline(now_ms());
    assert_int_equal(runs, 0);
    check_deadline(now_ms() + 1);
    expect_408("request head: not complete in time");
}

/* The scheduler watches calls: the connection waits as long as they take. */
static void a_call_has_no_time_here(void **state)
{
    (void)state;
    receive(GET_1_1);
    check_deadline(now_ms() + 2 * options.params.request_timeout);
    assert_int_equal(abandons, 0);
    assert_false(wire.is_closing);
    answer();
}

/* ---- answers that are not taken -------------------------------------------------------------- */

static void the_client_takes(size_t bytes)
{
    wire.queue.len -= bytes;
}

static void a_client_that_takes_nothing_is_cut(void **state)
{
    (void)state;
    options.params.rate_min = 0;
    receive(GET_1_1);
    wire.room = 0;
    answer();
    uint64_t deadline_ms = now_ms() + options.params.write_timeout - 1;
    only_session()->deadline_ms -= 1; /* it was written a while ago */
    check_deadline(deadline_ms - 1);
    assert_false(wire.is_closing);
    the_client_takes(1);
    check_deadline(deadline_ms); /* that begins the time anew */
    assert_false(wire.is_closing);
    check_deadline(deadline_ms + 1);
    assert_true(wire.is_closing && !wire.is_shut);
}

static void a_client_that_takes_too_little_is_cut(void **state)
{
    (void)state;
    receive(GET_1_1);
    wire.room = 0;
    answer();
    check_deadline(now_ms() + options.params.rate_window - 1);
    assert_false(wire.is_closing);
    check_deadline(now_ms() + options.params.rate_window);
    assert_true(wire.is_closing);
}

/* ---- the end --------------------------------------------------------------------------------- */

#define LAST "GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static void end_with_an_answer(void)
{
    receive(LAST);
    answer();
    assert_non_null(strstr(sent(), "\r\nConnection: close\r\n"));
    assert_true(wire.is_shut && !wire.is_closing);
}

static void a_client_that_stays_is_closed_in_the_end(void **state)
{
    (void)state;
    end_with_an_answer();
    receive(GET_1_1); /* discarded */
    assert_int_equal(runs, 1);
    transport_tell_shut(&wire.transport, true);
    check_deadline(now_ms() + options.params.linger_timeout - 1);
    assert_false(wire.is_closing);
    check_deadline(now_ms() + options.params.linger_timeout);
    assert_true(wire.is_closing);
    check_deadline(UINT64_MAX); /* it is being closed once */
}

static void a_client_that_sends_on_is_closed(void **state)
{
    static char data[SESSION_DISCARD_BYTES_MAX + 1];
    (void)state;
    memset(data, 'x', sizeof(data) - 1);
    end_with_an_answer();
    receive(data);
    assert_false(wire.is_closing);
    receive("x");
    assert_true(wire.is_closing);
}

static void a_side_that_cannot_be_shut_is_closed(void **state)
{
    (void)state;
    end_with_an_answer();
    transport_tell_shut(&wire.transport, false);
    assert_true(wire.is_closing);
    assert_int_equal(tear_down(state), 0);
    assert_int_equal(set_up(state), 0);
    wire.is_unshuttable = true;
    receive(LAST);
    answer();
    assert_true(wire.is_closing);
}

/* Whether it still reads cannot be seen: an answer under way goes out. */
static void a_client_that_sends_no_more_gets_its_answer(void **state)
{
    (void)state;
    receive(GET_1_1);
    wire.room = 0;
    answer();
    transport_tell(&wire.transport, TRANSPORT_END, (struct span){0});
    assert_false(wire.is_closing);
    take_rest(true);
    assert_string_equal(behind_head(), "hello");
    assert_true(wire.is_shut && wire.is_closing);
}

static void a_client_that_sends_no_more_and_waits_has_gone(void **state)
{
    (void)state;
    receive(GET_1_1);
    transport_tell(&wire.transport, TRANSPORT_END, (struct span){0});
    assert_int_equal(abandons, 1);
    assert_true(wire.is_shut && wire.is_closing);
}

/* ---- a drain --------------------------------------------------------------------------------- */

static void a_drain_ends_what_is_idle(void **state)
{
    (void)state;
    wire.unread = 1; /* it may be a request */
    conns_drain(&conns);
    assert_false(wire.is_shut);
    wire.unread = 0;
    conns_drain(&conns);
    assert_true(wire.is_shut && !wire.is_closing);
}

static void a_drain_waits_for_answers(void **state)
{
    (void)state;
    receive(GET_1_1);
    conns_drain(&conns);
    assert_false(wire.is_shut);
    loop.is_draining = true;
    answer();
    assert_non_null(strstr(sent(), "\r\nConnection: close\r\n"));
    assert_true(wire.is_shut);
}

static void the_end_of_a_drain_cuts_calls(void **state)
{
    (void)state;
    receive(GET_1_1);
    conns_abort(&conns);
    assert_int_equal(abandons, 1);
    assert_true(wire.is_closing && !wire.is_shut);
}

/* ---- bytes that come too early --------------------------------------------------------------- */

static void requests_are_answered_in_their_order(void **state)
{
    (void)state;
    receive(GET_1_1 POST_OF_5 "hel");
    receive("lo" GET_1_1);
    assert_int_equal(runs, 1);
    answer();
    assert_int_equal(runs, 2);
    assert_true(span_is(body_span(&call.body), "hello"));
    answer();
    assert_int_equal(runs, 3);
    answer();
    check_deadline(now_ms() + options.params.idle_timeout);
    assert_true(wire.is_closing); /* nothing is left */
}

static void a_client_that_sends_too_far_ahead_waits(void **state)
{
    (void)state;
    options.params.pipeline_bytes_max = 2 * strlen(GET_1_1);
    receive(GET_1_1 GET_1_1);
    assert_true(wire.is_reading);
    receive(GET_1_1);
    assert_false(wire.is_reading);
    answer();
    assert_int_equal(runs, 2);
    assert_true(wire.is_reading);
    answer();
    assert_int_equal(runs, 3);
}

/* ---- the sweep ------------------------------------------------------------------------------- */

static int set_up_short(void **state)
{
    int rc = set_up(state);
    lose_client();
    transport_tell_closed(&wire.transport);
    options.params.idle_timeout = 40;
    transport_init(&wire.transport, wire.transport.ops);
    wire.is_closing = false;
    assert_true(opening_accept(&conns, &wire.transport, LISTENER_PUBLIC));
    return rc;
}

static void the_sweep_looks_at_deadlines(void **state)
{
    (void)state;
    while (!wire.is_closing) {
        uv_run(&loop.uv, UV_RUN_ONCE);
    }
    assert_true(uv_now(&loop.uv) >= only_session()->deadline_ms);
}

/* The process was stopped: what the client has sent meanwhile is not read yet. */
static void clients_get_the_time_of_a_pause_back(void **state)
{
    const uint64_t pause_ms = 100000;
    uint64_t deadline_ms = only_session()->deadline_ms;
    (void)state;
    conns.swept_ms -= pause_ms;
    while (only_session()->deadline_ms == deadline_ms) {
        assert_false(wire.is_closing);
        uv_run(&loop.uv, UV_RUN_ONCE);
    }
    assert_true(only_session()->deadline_ms >= deadline_ms + pause_ms);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_head_has_a_time),
        TEST(a_body_has_a_time),
        TEST(a_body_has_a_pace),
        TEST(a_drain_refuses_what_is_not_complete),
        TEST(a_call_has_no_time_here),
        TEST(a_client_that_takes_nothing_is_cut),
        TEST(a_client_that_takes_too_little_is_cut),
        TEST(a_client_that_stays_is_closed_in_the_end),
        TEST(a_client_that_sends_on_is_closed),
        TEST(a_side_that_cannot_be_shut_is_closed),
        TEST(a_client_that_sends_no_more_gets_its_answer),
        TEST(a_client_that_sends_no_more_and_waits_has_gone),
        TEST(a_drain_ends_what_is_idle),
        TEST(a_drain_waits_for_answers),
        TEST(the_end_of_a_drain_cuts_calls),
        TEST(requests_are_answered_in_their_order),
        TEST(a_client_that_sends_too_far_ahead_waits),
        cmocka_unit_test_setup_teardown(the_sweep_looks_at_deadlines, set_up_short, tear_down),
        cmocka_unit_test_setup_teardown(clients_get_the_time_of_a_pause_back, set_up_short,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
