/* SPDX-License-Identifier: MIT */
/*
 * Requests that are refused before they are calls, bodies, and interim answers, on a connection
 * without a socket and without calls.
 */
#include "config.h"

#include "tests/unit/conn_support.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static const struct http_answer refusal = {
    .status = 400, .content_type = "text/plain", .content_length = 5};

static void answer(void)
{
    wire.sent.len = 0;
    assert_int_equal(put(&refusal, span_str("sorry"), true), EXCHANGE_WRITTEN);
    end_call();
    assert_string_equal(behind_head(), "sorry");
}

/* The last answer: it says so, and nothing more is read as a request. */
static void answer_and_end(void)
{
    answer();
    assert_non_null(strstr(sent(), "\r\nConnection: close\r\n"));
    assert_true(wire.is_shut && !wire.is_closing);
}

/* Nothing behind the end of a damaged head has a meaning: not even a whole request. */
static void a_head_is_refused_with_its_reason(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *why;
    } rows[] = {
        {"\x01", 400, "request line: expected a method, got byte 0x01"},
        {"FETCH /v2 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "a method such as GET or POST"},
        {"GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n", 400, "a target such as /v2"},
        {"GET /v2\r\n", 505, "got none"},
        {"GET /v2 HTTP/2.0\r\n", 505, "got HTTP/2.0"},
        {"GET /v2 HTTP/1.1\r\nHost a\r\n", 400, "field line 1: expected"},
        {"GET /v2 HTTP/1.1\r\n\r\n", 400, "Host"},
        {POST_1_1 "Content-Length: five\r\n\r\n", 400, "Content-Length: expected digits"},
        {POST_1_1 "Content-Length: 18446744073709551616\r\n\r\n", 400, "at most 64 bits"},
        {POST_1_1 "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400,
         "field line 3: expected one Content-Length"},
        {POST_1_1 "Transfer-Encoding: gzip\r\n\r\n", 501, "expected chunked, got 'gzip'"},
        {"POST /v2 HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "%s" GET_1_1, rows[i].text);
        receive(text);
        assert_int_equal(runs, 1);
        assert_int_equal(call.http_status, rows[i].status);
        if (!strstr(call.err.text, rows[i].why)) {
            fail_msg("'%s': expected '%s' in '%s'", rows[i].text, rows[i].why, call.err.text);
        }
        answer_and_end();
        assert_int_equal(runs, 1);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void the_fields_of_a_head_have_a_limit(void **state)
{
    (void)state;
    options.params.header_count_max = 2;
    receive("GET /v2 HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n");
    assert_int_equal(call.http_status, 0);
    answer();
    receive("GET /v2 HTTP/1.1\r\nHost: a\r\nA: b\r\nC: d\r\n\r\n");
    assert_int_equal(call.http_status, 431);
    assert_non_null(strstr(call.err.text, "more than 2 fields"));
    answer_and_end();
}

static void a_call_knows_its_method(void **state)
{
    static const struct {
        const char *name;
        enum route_method method;
    } rows[] = {{"GET", ROUTE_GET_ONLY},
                {"HEAD", ROUTE_HEAD_ONLY},
                {"POST", ROUTE_POST_ONLY},
                {"DELETE", ROUTE_OTHER}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s /v2 HTTP/1.1\r\nHost: a\r\n\r\n", rows[i].name);
        receive(text);
        assert_int_equal(begun.method, rows[i].method);
        assert_string_equal(begun.method_name, rows[i].name);
        assert_false(begun.has_body);
        put(&whole, span_str("hello"), true);
        end_call();
    }
    assert_int_equal(runs, sizeof(rows) / sizeof(rows[0]));
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void a_body_comes_in_pieces_or_in_chunks(void **state)
{
    (void)state;
    receive(POST_1_1 "Content-Length: 5\r\n\r\nhe");
    assert_true(begun.has_body && begun.content_length == 5);
    receive("llo");
    assert_true(span_is(body_span(&call.body), "hello"));
    answer();
    receive(POST_1_1 "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r");
    assert_true(begun.has_body && begun.content_length == 0);
    receive("\n3\r\nllo\r\n0\r\n\r\n");
    assert_int_equal(runs, 2);
    assert_true(span_is(body_span(&call.body), "hello"));
    answer();
}

/* Before it is kept: a size alone is enough. */
static void a_chunk_that_is_too_large_is_refused(void **state)
{
    (void)state;
    receive(POST_1_1 "Transfer-Encoding: chunked\r\n\r\n65\r\n"); /* 101 */
    assert_int_equal(runs, 1);
    assert_int_equal(call.http_status, 413);
    answer_and_end();
}

static void a_damaged_chunk_is_refused(void **state)
{
    (void)state;
    receive(POST_1_1 "Transfer-Encoding: chunked\r\n\r\n1\r\nab");
    assert_int_equal(call.http_status, 400);
    assert_non_null(strstr(call.err.text, "chunk 1: expected"));
    answer_and_end();
}

/* A client that is refused by its head need not connect again if its body is short. */
static void a_short_body_of_a_refused_call_is_discarded(void **state)
{
    (void)state;
    refused_with = 404;
    receive(POST_1_1 "Content-Length: 5\r\n\r\n");
    assert_int_equal(runs, 0); /* it is answered behind its body */
    receive("hello");
    assert_int_equal(runs, 1);
    assert_int_equal(call.body.len, 0);
    answer();
    receive(POST_1_1
            "Transfer-Encoding: chunked\r\n\r\n80\r\n"); /* 128: more than a body may have */
    for (unsigned i = 0; i < 128 / 8; i++) {
        receive("12345678");
    }
    receive("\r\n0\r\n\r\n");
    assert_int_equal(runs, 2);
    assert_int_equal(call.http_status, 404);
    answer();
    assert_false(wire.is_shut);
    refused_with = 0;
    receive(GET_1_1);
    assert_int_equal(runs, 3);
}

static void a_long_body_of_a_refused_call_ends_the_connection(void **state)
{
    static const char *const heads[] = {
        POST_1_1 "Content-Length: 65537\r\n\r\n",
        POST_1_1 "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", /* it may send none */
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        refused_with = 404;
        receive(heads[i]);
        assert_int_equal(runs, 1);
        answer_and_end();
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
    static char data[SESSION_DISCARD_BYTES_MAX + 1];
    memset(data, 'x', sizeof(data) - 1);
    refused_with = 404;
    receive(POST_1_1 "Transfer-Encoding: chunked\r\n\r\n10001\r\n");
    receive(data);
    assert_int_equal(runs, 0);
    receive("x");
    assert_int_equal(runs, 1);
    answer_and_end();
}

/* ---- 100 Continue ---------------------------------------------------------------------------- */

#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

static void a_client_that_expects_it_is_told_to_go_on(void **state)
{
    (void)state;
    receive(POST_1_1 "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_string_equal(sent(), CONTINUE);
    receive("hello");
    assert_int_equal(runs, 1);
    answer();
    receive(POST_1_1 "Content-Length: 5\r\nExpect: 100-continue\r\n\r\nh"); /* it has not waited */
    receive("ello");
    assert_int_equal(runs, 2);
    answer();
    assert_null(strstr(sent(), "100 Continue"));
}

static void a_client_of_http_1_0_is_not_told_to_go_on(void **state)
{
    (void)state;
    receive("POST /v2 HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_string_equal(sent(), "");
    receive("hello");
    assert_int_equal(runs, 1);
}

static void the_rest_of_an_interim_answer_waits(void **state)
{
    (void)state;
    wire.room = 9;
    receive(POST_1_1 "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_string_equal(sent(), "HTTP/1.1 ");
    wire.room = SIZE_MAX;
    take_rest(true);
    assert_string_equal(sent(), CONTINUE);
    receive("hello");
    assert_int_equal(runs, 1);
}

/* ---- without memory, without a place --------------------------------------------------------- */

static void a_client_without_memory_for_a_request_is_cut(void **state)
{
    (void)state;
    has_no_memory = true;
    receive(GET_1_1);
    assert_int_equal(runs, 0);
    assert_true(wire.is_closing);
    assert_string_equal(sent(), "");
}

static int set_up_full(void **state)
{
    place_count = 0;
    return set_up(state);
}

static void a_client_without_a_place_is_told_so(void **state)
{
    (void)state;
    place_count = 1;
    assert_non_null(strstr(sent(), "HTTP/1.1 503 Service Unavailable\r\n"));
    assert_non_null(strstr(sent(), "\r\nRetry-After: 1\r\n"));
    assert_non_null(strstr(sent(), "\r\nConnection: close\r\n"));
    assert_non_null(strstr(behind_head(), "{\"error\":\""));
    assert_int_equal(counter_get(&conns.counts.turned_away), 1);
    assert_true(wire.is_shut && !wire.is_closing); /* it may read why */
    receive(GET_1_1);
    assert_int_equal(runs, 0);
    assert_int_equal(conns.places.away_count, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_head_is_refused_with_its_reason),
        TEST(the_fields_of_a_head_have_a_limit),
        TEST(a_call_knows_its_method),
        TEST(a_body_comes_in_pieces_or_in_chunks),
        TEST(a_chunk_that_is_too_large_is_refused),
        TEST(a_damaged_chunk_is_refused),
        TEST(a_short_body_of_a_refused_call_is_discarded),
        TEST(a_long_body_of_a_refused_call_ends_the_connection),
        TEST(a_client_that_expects_it_is_told_to_go_on),
        TEST(a_client_of_http_1_0_is_not_told_to_go_on),
        TEST(the_rest_of_an_interim_answer_waits),
        TEST(a_client_without_memory_for_a_request_is_cut),
        cmocka_unit_test_setup_teardown(a_client_without_a_place_is_told_so, set_up_full,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
