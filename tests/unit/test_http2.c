/* SPDX-License-Identifier: MIT */
/*
 * A connection of HTTP/2 without a socket and without calls: its bytes are cut anywhere, and each
 * byte comes alone; interim answers, trailers in both directions, and time.
 */
#include "config.h"

#include "tests/unit/conn_support.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define BYTES_MAX (256 << 10)
#define HEAD_BYTES 9
#define END_STREAM NGHTTP2_FLAG_END_STREAM
#define END_HEADERS NGHTTP2_FLAG_END_HEADERS

/* Fields as literals without an index, but for those of the static table (RFC 7541). */
#define GET_V2                                                                                     \
    "\x82\x86\x04\x03/v2\x01\x01"                                                                  \
    "a"
#define POST_V2                                                                                    \
    "\x83\x86\x04\x03/v2\x01\x01"                                                                  \
    "a"
#define TE_TRAILERS "\x00\x02te\x08trailers"
#define EXPECT                                                                                     \
    "\x00\x06"                                                                                     \
    "expect\x0c"                                                                                   \
    "100-continue"
#define TRAILER                                                                                    \
    "\x00\x07x-check\x05"                                                                          \
    "right"
#define PSEUDO_TRAILER                                                                             \
    "\x00\x07:status\x03"                                                                          \
    "200"

/* ---- what the client sends ------------------------------------------------------------------- */

static struct buf frames;

#define LITERAL(text) span_of((text), sizeof(text) - 1)

static void add_frame(uint8_t type, uint8_t flags, uint32_t id, struct span payload)
{
    const uint8_t head[HEAD_BYTES] = {(uint8_t)(payload.len >> 16),
                                      (uint8_t)(payload.len >> 8),
                                      (uint8_t)payload.len,
                                      type,
                                      flags,
                                      (uint8_t)(id >> 24),
                                      (uint8_t)(id >> 16),
                                      (uint8_t)(id >> 8),
                                      (uint8_t)id};
    buf_add(&frames, head, sizeof(head));
    buf_add(&frames, payload.ptr, payload.len);
}

static void add_head(uint8_t flags, uint32_t id, struct span fields)
{
    add_frame(NGHTTP2_HEADERS, END_HEADERS | flags, id, fields);
}

static void add_data(uint8_t flags, uint32_t id, const char *text)
{
    add_frame(NGHTTP2_DATA, flags, id, span_str(text));
}

/* Sends what has been added, at most |step| bytes at a time. */
static void send_by(size_t step)
{
    assert_false(buf_failed(&frames));
    for (size_t at = 0; at < frames.len; at += step) {
        size_t left = frames.len - at;
        receive_bytes(span_of(frames.ptr + at, left < step ? left : step));
    }
    buf_reset(&frames);
}

static void send_all(void)
{
    send_by(frames.len);
}

/* Of the settings none are other than the protocol says. */
static void begin_client(void)
{
    buf_add_str(&frames, PREFACE);
    add_frame(NGHTTP2_SETTINGS, 0, 0, span_of(NULL, 0));
    add_frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, span_of(NULL, 0));
}

/* ---- what the client gets -------------------------------------------------------------------- */

struct frame {
    uint8_t type, flags;
    uint32_t stream;
    struct span payload;
};

/* Takes a frame from |*rest|; false: there is none. */
static bool next_frame(struct span *rest, struct frame *out)
{
    if (rest->len == 0) {
        return false;
    }
    const uint8_t *at = rest->ptr;
    assert_true(rest->len >= HEAD_BYTES);
    size_t len = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
    assert_true(rest->len >= HEAD_BYTES + len);
    *out =
        (struct frame){at[3], at[4], (uint32_t)at[7] << 8 | at[8], span_of(at + HEAD_BYTES, len)};
    *rest = span_of(at + HEAD_BYTES + len, rest->len - HEAD_BYTES - len);
    return true;
}

/* Finds frame |nth| of a type; false: there are fewer. */
static bool find_frame(uint8_t type, unsigned nth, struct frame *out)
{
    struct span rest = buf_span(&wire.sent);
    while (next_frame(&rest, out)) {
        if (out->type == type && nth-- == 0) {
            return true;
        }
    }
    return false;
}

static struct frame frame_of(uint8_t type, unsigned nth)
{
    struct frame frame;
    assert_true(find_frame(type, nth, &frame));
    return frame;
}

/* The code of an error is at the end of RST_STREAM and of GOAWAY without a text. */
static uint32_t code_of(struct frame frame)
{
    const uint8_t *at = frame.payload.ptr + (frame.type == NGHTTP2_GOAWAY ? 4 : 0);
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The fields of the heads up to |nth|, whose block they need: of that one as "name: value\n". */
static void read_fields(unsigned nth, char *out, size_t room)
{
    nghttp2_hd_inflater *inflater;
    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    for (unsigned i = 0; i <= nth; i++) {
        struct span block = frame_of(NGHTTP2_HEADERS, i).payload;
        int flags = 0;
        size_t len = 0;
        while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
            nghttp2_nv field;
            ssize_t used =
                nghttp2_hd_inflate_hd2(inflater, &field, &flags, block.ptr, block.len, 1);
            assert_true(used >= 0);
            block = span_of(block.ptr + used, block.len - (size_t)used);
            if (flags & NGHTTP2_HD_INFLATE_EMIT) {
                len += (size_t)snprintf(out + len, room - len, "%s: %s\n", (char *)field.name,
                                        (char *)field.value);
                assert_true(len < room);
            }
        }
        nghttp2_hd_inflate_end_headers(inflater);
    }
    nghttp2_hd_inflate_del(inflater);
}

static bool has_field(unsigned nth, const char *line)
{
    char fields[1024];
    read_fields(nth, fields, sizeof(fields));
    return strstr(fields, line) != NULL;
}

/* ---- bytes that are cut ---------------------------------------------------------------------- */

/* A head in three frames, a body in two, and trailers. */
static void add_request(void)
{
    struct span fields = LITERAL(POST_V2 TE_TRAILERS);
    add_frame(NGHTTP2_HEADERS, 0, 1, span_of(fields.ptr, 5));
    add_frame(NGHTTP2_CONTINUATION, 0, 1, span_of(fields.ptr + 5, 1));
    add_frame(NGHTTP2_CONTINUATION, END_HEADERS, 1, span_of(fields.ptr + 6, fields.len - 6));
    add_data(0, 1, "hel");
    add_data(0, 1, "lo");
    add_head(END_STREAM, 1, LITERAL(TRAILER));
}

static void expect_hello(void)
{
    assert_int_equal(runs, 1);
    assert_int_equal(call.http_status, 0);
    assert_int_equal(begun.method, ROUTE_POST_ONLY);
    assert_true(span_is(body_span(&call.body), "hello"));
    assert_true(span_is(head_value(&call.head, HTTP_HOST), "a"));
    assert_true(head_takes_trailers(&call.head));
}

static void expect_answer(void)
{
    assert_int_equal(put(&whole, span_str("hello"), true), EXCHANGE_WRITTEN);
    end_call();
    assert_true(has_field(0, ":status: 200\n"));
    assert_true(has_field(0, "content-length: 5\n"));
    struct frame data = frame_of(NGHTTP2_DATA, 0);
    assert_true(span_is(data.payload, "hello"));
    assert_int_equal(data.flags, END_STREAM);
}

static void each_byte_comes_alone(void **state)
{
    (void)state;
    begin_client();
    add_request();
    send_by(1);
    expect_hello();
    expect_answer();
}

/* Cut in two at each place; a server for each. */
static void bytes_are_cut_anywhere(void **state)
{
    begin_client();
    add_request();
    size_t total = frames.len;
    buf_reset(&frames);
    for (size_t cut = 1; cut < total; cut++) {
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
        begin_client();
        add_request();
        receive_bytes(span_of(frames.ptr, cut));
        receive_bytes(span_of(frames.ptr + cut, total - cut));
        buf_reset(&frames);
        expect_hello();
        expect_answer();
    }
}

/* ---- trailers, interim answers --------------------------------------------------------------- */

static void trailers_may_not_be_pseudo_fields(void **state)
{
    (void)state;
    begin_client();
    add_head(0, 1, LITERAL(POST_V2));
    add_data(0, 1, "hello");
    add_head(END_STREAM, 1, LITERAL(PSEUDO_TRAILER));
    send_all();
    assert_int_equal(runs, 0);
    assert_int_equal(code_of(frame_of(NGHTTP2_RST_STREAM, 0)), NGHTTP2_PROTOCOL_ERROR);
    assert_null(call.exchange); /* the request is over */
}

static void trailers_end_the_stream(void **state)
{
    (void)state;
    begin_client();
    add_head(0, 1, LITERAL(POST_V2));
    add_data(0, 1, "hello");
    add_head(0, 1, LITERAL(TRAILER));
    send_all();
    assert_int_equal(runs, 0);
    assert_int_equal(code_of(frame_of(NGHTTP2_RST_STREAM, 0)), NGHTTP2_PROTOCOL_ERROR);
}

static void a_client_that_waits_is_told_to_continue(void **state)
{
    (void)state;
    begin_client();
    add_head(0, 1, LITERAL(POST_V2 EXPECT));
    send_all();
    assert_true(has_field(0, ":status: 100\n"));
    assert_int_equal(frame_of(NGHTTP2_HEADERS, 0).flags, END_HEADERS);
    add_data(END_STREAM, 1, "hello");
    send_all();
    assert_int_equal(runs, 1);
    assert_int_equal(put(&whole, span_str("hello"), true), EXCHANGE_WRITTEN);
    end_call();
    assert_true(has_field(1, ":status: 200\n"));
}

static void a_refused_client_is_not_told_to_continue(void **state)
{
    (void)state;
    refused_with = 413;
    begin_client();
    add_head(0, 1, LITERAL(POST_V2 EXPECT));
    send_all();
    assert_int_equal(runs, 1);
    static const struct http_answer refusal = {
        .status = 413, .content_type = "text/plain", .content_length = 5};
    assert_int_equal(put(&refusal, span_str("large"), true), EXCHANGE_WRITTEN);
    end_call();
    assert_true(has_field(0, ":status: 413\n"));
}

/* As gRPC answers a call that fails: one frame of fields. */
static void an_answer_may_be_trailers_alone(void **state)
{
    (void)state;
    static const struct http_trailer trailers[] = {{"grpc-status", {(const uint8_t *)"5", 1}}};
    begin_client();
    add_head(END_STREAM, 1, LITERAL(POST_V2 TE_TRAILERS));
    send_all();
    const struct exchange_part part = {
        .answer = &stream, .is_last = true, .trailers = trailers, .trailer_count = 1};
    assert_int_equal(exchange_write(call.exchange, &part), EXCHANGE_WRITTEN);
    end_call();
    struct frame head = frame_of(NGHTTP2_HEADERS, 0), other;
    assert_int_equal(head.flags, END_HEADERS | END_STREAM);
    assert_true(has_field(0, "grpc-status: 5\n"));
    assert_false(find_frame(NGHTTP2_HEADERS, 1, &other) || find_frame(NGHTTP2_DATA, 0, &other));
}

static void trailers_follow_a_body(void **state)
{
    (void)state;
    static const struct http_trailer trailers[] = {{"grpc-status", {(const uint8_t *)"0", 1}}};
    begin_client();
    add_head(END_STREAM, 1, LITERAL(POST_V2 TE_TRAILERS));
    send_all();
    const struct span body = span_str("hello");
    const struct exchange_part part = {.answer = &stream,
                                       .spans = &body,
                                       .count = 1,
                                       .is_last = true,
                                       .trailers = trailers,
                                       .trailer_count = 1};
    assert_int_equal(exchange_write(call.exchange, &part), EXCHANGE_WRITTEN);
    end_call();
    assert_int_equal(frame_of(NGHTTP2_DATA, 0).flags, 0);
    assert_int_equal(frame_of(NGHTTP2_HEADERS, 1).flags, END_HEADERS | END_STREAM);
    assert_true(has_field(1, "grpc-status: 0\n"));
}

/* ---- large frames ---------------------------------------------------------------------------- */

#define LARGE_BYTES 60000
#define BEGIN_BYTES 100 /* of the body, that come with the head of its frame */

/* Begins a call whose frame of |flags| has |bytes| behind its head: the first ones have come. */
static void begin_large(uint8_t flags, const uint8_t *bytes)
{
    struct error err;
    body_fini(&call.body);
    body_init(&call.body, NULL, BODY_SMALL_BYTES);
    begin_client();
    add_head(0, 1, LITERAL(POST_V2));
    send_all();
    assert_int_equal(body_announce(&call.body, LARGE_BYTES, 0, &err), ST_OK);
    add_frame(NGHTTP2_DATA, flags, 1, span_of(bytes, LARGE_BYTES));
    receive_bytes(span_of(frames.ptr, HEAD_BYTES + BEGIN_BYTES));
}

static uint8_t *some_bytes(void)
{
    uint8_t *bytes = malloc(LARGE_BYTES);
    assert_non_null(bytes);
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        bytes[i] = (uint8_t)(i * 7 >> 3);
    }
    return bytes;
}

static void a_large_frame_is_read_into_the_body(void **state)
{
    (void)state;
    uint8_t *bytes = some_bytes();
    begin_large(END_STREAM, bytes);
    struct transport_room room = transport_tell_room(&wire.transport);
    assert_ptr_equal(room.ptr, body_span(&call.body).ptr + BEGIN_BYTES);
    assert_int_equal(room.len, LARGE_BYTES - BEGIN_BYTES);
    receive_bytes(span_of(frames.ptr + HEAD_BYTES + BEGIN_BYTES, LARGE_BYTES - BEGIN_BYTES));
    buf_reset(&frames);
    assert_int_equal(runs, 1);
    assert_true(span_equal(body_span(&call.body), span_of(bytes, LARGE_BYTES)));
    expect_answer();
    free(bytes);
}

/* Some of the bytes of such a frame are not of the body. */
static void a_padded_frame_is_not(void **state)
{
    (void)state;
    uint8_t *bytes = some_bytes();
    bytes[0] = 200; /* bytes of padding */
    memset(bytes + LARGE_BYTES - 200, 0, 200);
    begin_large(END_STREAM | NGHTTP2_FLAG_PADDED, bytes);
    assert_ptr_equal(transport_tell_room(&wire.transport).ptr, conns.read_buffer);
    receive_bytes(span_of(frames.ptr + HEAD_BYTES + BEGIN_BYTES, LARGE_BYTES - BEGIN_BYTES));
    buf_reset(&frames);
    assert_int_equal(runs, 1);
    assert_true(span_equal(body_span(&call.body), span_of(bytes + 1, LARGE_BYTES - 201)));
    expect_answer();
    free(bytes);
}

/* The client resets a stream in the middle of its frame, as a frame of another stream cannot. */
static void bytes_of_a_body_that_nobody_wants_are_not(void **state)
{
    (void)state;
    uint8_t *bytes = some_bytes();
    begin_large(0, bytes);
    assert_int_equal(put(&whole, span_str("hello"), true), EXCHANGE_WRITTEN);
    end_call();
    assert_ptr_equal(transport_tell_room(&wire.transport).ptr, conns.read_buffer);
    receive_bytes(span_of(frames.ptr + HEAD_BYTES + BEGIN_BYTES, LARGE_BYTES - BEGIN_BYTES));
    buf_reset(&frames);
    free(bytes);
}

/* nghttp2 keeps it until it is complete. */
static void a_long_goodbye_is_refused(void **state)
{
    (void)state;
    uint8_t *bytes = some_bytes();
    begin_client();
    send_all();
    memset(bytes, 0, 8);
    add_frame(NGHTTP2_GOAWAY, 0, 0, span_of(bytes, LARGE_BYTES));
    receive_bytes(span_of(frames.ptr, HEAD_BYTES));
    buf_reset(&frames);
    assert_int_equal(code_of(frame_of(NGHTTP2_GOAWAY, 0)), NGHTTP2_FRAME_SIZE_ERROR);
    free(bytes);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Our own limit is the only one: nghttp2 counts them by another clock, which stands still here. */
static void resets_have_our_limit_alone(void **state)
{
    (void)state;
    const uint8_t cancel[4] = {0, 0, 0, NGHTTP2_CANCEL};
    begin_client();
    add_head(END_STREAM, 1, LITERAL(GET_V2));
    send_all();
    expect_answer();
    for (int i = 0; i < 3000; i++) {
        struct frame frame;
        loop.uv.time += 10;
        add_frame(NGHTTP2_RST_STREAM, 0, 1, span_of(cancel, sizeof(cancel)));
        send_all();
        assert_false(find_frame(NGHTTP2_GOAWAY, 0, &frame));
    }
    for (int i = 0; i < 501; i++) {
        add_frame(NGHTTP2_RST_STREAM, 0, 1, span_of(cancel, sizeof(cancel)));
    }
    send_all();
    assert_int_equal(code_of(frame_of(NGHTTP2_GOAWAY, 0)), NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Bytes behind an answer do not extend the time of a client that sees it late. */
static void late_bytes_gain_no_time(void **state)
{
    (void)state;
    struct frame frame;
    refused_with = 413;
    begin_client();
    add_head(0, 1, LITERAL(POST_V2));
    send_all();
    assert_int_equal(put(&whole, span_str("hello"), true), EXCHANGE_WRITTEN);
    end_call();
    uint64_t deadline_ms = uv_now(&loop.uv) + options.params.linger_timeout;
    add_data(0, 1, "hello");
    send_all();
    check_deadline(deadline_ms - 1);
    send_all();
    assert_false(find_frame(NGHTTP2_RST_STREAM, 0, &frame));
    check_deadline(deadline_ms);
    add_frame(NGHTTP2_PING, 0, 0, span_str("whatever"));
    send_all();
    assert_int_equal(code_of(frame_of(NGHTTP2_RST_STREAM, 0)), NGHTTP2_NO_ERROR);
}

/* The sweep looks when |ms| more have passed. */
static void pass(uint64_t ms)
{
    loop.uv.time += ms;
    check_deadline(uv_now(&loop.uv));
}

static void an_old_connection_is_told_to_leave(void **state)
{
    (void)state;
    struct frame frame;
    only_session()->old_ms = uv_now(&loop.uv) + 10000;
    begin_client();
    add_head(END_STREAM, 1, LITERAL(GET_V2));
    send_all();
    pass(10000 - 1);
    assert_false(find_frame(NGHTTP2_GOAWAY, 0, &frame));
    pass(1);
    assert_int_equal(frame_of(NGHTTP2_GOAWAY, 0).payload.ptr[0], 0x7f); /* any stream may begin */
    assert_int_equal(code_of(frame_of(NGHTTP2_GOAWAY, 0)), NGHTTP2_NO_ERROR);
    pass(options.params.linger_timeout - 1);
    assert_false(find_frame(NGHTTP2_GOAWAY, 1, &frame));
    pass(1);
    assert_int_equal(frame_of(NGHTTP2_GOAWAY, 1).payload.ptr[3], 1); /* stream 1 is the last one */
    assert_false(wire.is_shut);
    expect_answer();
    pass(1);
    assert_true(wire.is_shut);
}

static void a_client_acknowledges_settings(void **state)
{
    (void)state;
    struct frame frame;
    buf_add_str(&frames, PREFACE);
    add_frame(NGHTTP2_SETTINGS, 0, 0, span_of(NULL, 0));
    add_head(END_STREAM, 1, LITERAL(GET_V2));
    send_all();
    pass(options.params.header_timeout - 1);
    assert_false(find_frame(NGHTTP2_GOAWAY, 0, &frame));
    pass(1);
    assert_int_equal(code_of(frame_of(NGHTTP2_GOAWAY, 0)), NGHTTP2_SETTINGS_TIMEOUT);
}

/* Its call takes long: the client is asked, and then gone. */
static void a_silent_client_is_asked_for_a_sign_of_life(void **state)
{
    (void)state;
    struct frame frame;
    begin_client();
    add_head(END_STREAM, 1, LITERAL(GET_V2));
    send_all();
    pass(options.params.idle_timeout - 1);
    assert_false(find_frame(NGHTTP2_PING, 0, &frame));
    pass(1);
    add_frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, frame_of(NGHTTP2_PING, 0).payload);
    pass(options.params.header_timeout - 1);
    send_all();
    pass(1);
    pass(options.params.idle_timeout - 1);
    assert_false(wire.is_closing);
    assert_true(find_frame(NGHTTP2_PING, 1, &frame));
    pass(options.params.header_timeout - 1);
    assert_false(wire.is_closing);
    pass(1);
    assert_true(wire.is_closing);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_byte_comes_alone),
        TEST(bytes_are_cut_anywhere),
        TEST(trailers_may_not_be_pseudo_fields),
        TEST(trailers_end_the_stream),
        TEST(a_client_that_waits_is_told_to_continue),
        TEST(a_refused_client_is_not_told_to_continue),
        TEST(an_answer_may_be_trailers_alone),
        TEST(trailers_follow_a_body),
        TEST(a_large_frame_is_read_into_the_body),
        TEST(a_padded_frame_is_not),
        TEST(bytes_of_a_body_that_nobody_wants_are_not),
        TEST(a_long_goodbye_is_refused),
        TEST(resets_have_our_limit_alone),
        TEST(late_bytes_gain_no_time),
        TEST(an_old_connection_is_told_to_leave),
        TEST(a_client_acknowledges_settings),
        TEST(a_silent_client_is_asked_for_a_sign_of_life),
    };
    buf_init(&frames, BYTES_MAX);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    buf_fini(&frames);
    return failures;
}
