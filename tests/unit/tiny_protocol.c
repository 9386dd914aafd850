/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/tiny_protocol.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/daemon/connection/conns.h"
#include "server/daemon/loop/loop.h"
#include "server/http/head.h"

#define BYTES_MAX 65536

struct tiny *tiny_of(struct session *session)
{
    return LIST_ENTRY(session, struct tiny, session);
}

struct tiny_stream *tiny_stream_of(struct exchange *exchange)
{
    return LIST_ENTRY(exchange, struct tiny_stream, exchange);
}

/* A client that takes nothing now does not get it. */
static void send_reset(struct tiny_stream *stream)
{
    char text[8];
    int len = snprintf(text, sizeof(text), "r%u\n", stream->number);
    const struct span span = span_of(text, (size_t)len);
    (void)transport_write(stream->tiny->session.transport, &span, 1, NULL);
}

static bool has_streams(const struct tiny *tiny)
{
    return tiny->streams[0].is_open || tiny->streams[1].is_open;
}

static void close_tiny(struct tiny *tiny)
{
    if (tiny->session.state != SESSION_CLOSING) {
        session_set_state(&tiny->session, SESSION_CLOSING);
        session_close(&tiny->session);
    }
}

static void update(struct tiny *tiny)
{
    if (tiny->session.state == SESSION_CLOSING) {
        return;
    }
    session_set_state(&tiny->session, has_streams(tiny) ? SESSION_BUSY : SESSION_QUIET);
    session_set_deadline(&tiny->session, tiny->session.conns->params->idle_timeout);
    if (tiny->is_draining && !has_streams(tiny)) {
        close_tiny(tiny);
    }
}

static void close_stream(struct tiny_stream *stream)
{
    stream->is_open = false;
    update(stream->tiny);
}

static void on_taken(struct transport_rest *rest, bool is_ok)
{
    struct tiny_stream *stream = rest->user;
    pace_move(&stream->exchange.answer.pace, 1, uv_now(&stream->tiny->session.conns->loop->uv));
    exchange_note_written(&stream->exchange, is_ok);
}

static void print_part(struct buf *out, unsigned number, const struct exchange_part *part)
{
    if (part->answer) {
        buf_printf(out, "a%u %d\n", number, part->answer->status);
    }
    for (unsigned i = 0; i < part->count; i++) {
        buf_printf(out, "p%u %.*s\n", number, SPAN_FMT(part->spans[i]));
    }
    for (unsigned i = 0; i < part->trailer_count; i++) {
        buf_printf(out, "t%u %s: %.*s\n", number, part->trailers[i].name,
                   SPAN_FMT(part->trailers[i].value));
    }
    if (part->is_last) {
        buf_printf(out, "e%u\n", number);
    }
}

static enum exchange_written write_part(struct exchange *exchange, const struct exchange_part *part)
{
    struct tiny_stream *stream = tiny_stream_of(exchange);
    struct transport *transport = stream->tiny->session.transport;
    struct buf text;
    buf_init(&text, BYTES_MAX);
    print_part(&text, stream->number, part);
    struct span span = buf_span(&text);
    size_t done = (size_t)transport_write(transport, &span, 1, NULL);
    bool waits = done < span.len;
    if (waits) {
        span = span_of(span.ptr + done, span.len - done);
        stream->rest.user = stream;
        stream->rest.done = on_taken;
        assert_int_equal(transport_write(transport, &span, 1, &stream->rest), 0);
        pace_begin(&exchange->answer.pace, uv_now(&stream->tiny->session.conns->loop->uv));
    }
    exchange->sent_bytes += text.len;
    buf_fini(&text);
    return waits ? EXCHANGE_WAITS : EXCHANGE_WRITTEN;
}

static void end_stream(struct exchange *exchange)
{
    close_stream(tiny_stream_of(exchange));
}

static void resume(struct exchange *exchange)
{
    tiny_stream_of(exchange)->resumes++;
}

static void refuse(struct exchange *exchange)
{
    exchange_run(exchange);
}

/* The others of the connection go on. */
static void reset(struct exchange *exchange)
{
    struct tiny_stream *stream = tiny_stream_of(exchange);
    exchange_cancel(exchange);
    send_reset(stream);
    close_stream(stream);
}

const struct exchange_ops tiny_exchange_ops = {
    .is_duplex = true,
    .write = write_part,
    .end = end_stream,
    .resume = resume,
    .refuse = refuse,
    .abort = reset,
};

static void begin_stream(struct tiny_stream *stream, struct span target)
{
    struct exchange *exchange = &stream->exchange;
    const struct exchange_head head = {
        .method = ROUTE_POST_ONLY, .method_name = "POST", .has_body = true};
    assert_true(exchange_begin(exchange));
    stream->is_open = true;
    update(stream->tiny);
    assert_int_equal(head_add_target(exchange_fields(exchange), stream->tiny->session.conns->params,
                                     target, exchange_error(exchange)),
                     0);
    assert_true(exchange_end_head(exchange, &head));
}

/* What comes of a request whose call is over is not wanted. */
static void take_line(struct tiny *tiny, char letter, struct tiny_stream *stream, struct span text)
{
    struct exchange *exchange = &stream->exchange;
    bool is_wanted = exchange->incoming == EXCHANGE_BODY;
    if (letter == 'H' && !tiny->is_draining) {
        begin_stream(stream, text);
    } else if (letter == 'H') {
        send_reset(stream);
    } else if (letter == 'B' && is_wanted) {
        assert_int_equal(exchange_add_body(exchange, text), 0);
    } else if (letter == 'E' && is_wanted) {
        exchange_run(exchange);
    } else if (letter == 'C' && stream->is_open) {
        exchange_cancel(exchange);
        close_stream(stream);
    }
}

/* A request begins only when it is the connection's turn. */
static void take_lines(struct session *session)
{
    struct tiny *tiny = tiny_of(session);
    struct turns *turns = &session->conns->loop->turns;
    size_t used = 0;
    while (used < tiny->ahead.len && session->state != SESSION_CLOSING) {
        const uint8_t *line = tiny->ahead.ptr + used;
        const uint8_t *end = memchr(line, '\n', tiny->ahead.len - used);
        if (!end || (*line == 'H' && !turns_may_begin(turns, &session->turn, true))) {
            break;
        }
        size_t len = (size_t)(end - line), head = len < 3 ? len : 3;
        used += len + 1;
        take_line(tiny, (char)line[0], &tiny->streams[line[1] - '1'],
                  span_of(line + head, len - head));
    }
    memmove(tiny->ahead.ptr, tiny->ahead.ptr + used, tiny->ahead.len - used);
    tiny->ahead.len -= used;
    if (tiny->ahead.len == 0) {
        buf_fini(&tiny->ahead);
    }
    exchange_keep(&tiny->own, tiny->ahead.capacity);
}

static void abort_tiny(struct session *session)
{
    struct tiny *tiny = tiny_of(session);
    close_tiny(tiny);
    for (int i = 0; i < TINY_STREAMS; i++) {
        exchange_cancel(&tiny->streams[i].exchange);
        tiny->streams[i].is_open = false;
    }
}

static void leave(struct session *session)
{
    assert_true(transport_shutdown(session->transport));
    abort_tiny(session);
}

static void drain(struct session *session)
{
    tiny_of(session)->is_draining = true;
    update(tiny_of(session));
}

static void check_deadline(struct session *session, uint64_t now_ms)
{
    struct tiny *tiny = tiny_of(session);
    if (session->state == SESSION_QUIET && now_ms >= session->deadline_ms) {
        leave(session);
    }
    for (int i = 0; i < TINY_STREAMS; i++) {
        struct exchange *exchange = &tiny->streams[i].exchange;
        if (exchange_is_upload_slow(exchange, now_ms)) {
            exchange_give_up(exchange, ST_TIMEOUT, "slow", 408);
        } else if (exchange_is_answer_slow(exchange, now_ms)) {
            reset(exchange);
        }
    }
}

static void postpone(struct session *session, uint64_t pause_ms, uint64_t now_ms)
{
    session_postpone(session, pause_ms);
    for (int i = 0; i < TINY_STREAMS; i++) {
        exchange_restart_paces(&tiny_of(session)->streams[i].exchange, now_ms);
    }
}

static bool is_quiet(const struct session *session)
{
    return !session_is_waiting(session);
}

static const struct session_ops tiny_ops = {
    .abort = abort_tiny,
    .leave = leave,
    .drain = drain,
    .check_deadline = check_deadline,
    .postpone = postpone,
    .is_quiet = is_quiet,
    .go_on = take_lines,
};

static struct transport_room on_room(void *user)
{
    struct tiny *tiny = user;
    return (struct transport_room){tiny->session.conns->read_buffer, CONNS_READ_BYTES};
}

static void on_received(void *user, enum transport_event event, struct span bytes)
{
    struct tiny *tiny = user;
    if (event == TRANSPORT_BYTES) {
        buf_add(&tiny->ahead, bytes.ptr, bytes.len);
        take_lines(&tiny->session);
    } else {
        abort_tiny(&tiny->session);
    }
}

static void on_shut(void *user, bool is_ok)
{
    (void)user;
    (void)is_ok;
}

static void on_closed(void *user)
{
    struct tiny *tiny = user;
    for (int i = 0; i < TINY_STREAMS; i++) {
        exchange_fini(&tiny->streams[i].exchange);
    }
    buf_fini(&tiny->ahead);
    exchange_fini(&tiny->own);
    session_end(&tiny->session);
    free(tiny);
}

static const struct transport_user tiny_user = {on_room, on_received, on_shut, on_closed};

static bool accept_tiny(const struct session_client *client)
{
    struct tiny *tiny = calloc(1, sizeof(*tiny));
    assert_non_null(tiny);
    buf_init(&tiny->ahead, BYTES_MAX);
    transport_set_user(client->transport, &tiny_user, tiny);
    assert_int_equal(session_begin(&tiny->session, &tiny_ops, client), SHARE_TAKEN);
    exchange_init(&tiny->own, client->conns->requests, &tiny_exchange_ops, "somebody");
    for (unsigned i = 0; i < TINY_STREAMS; i++) {
        struct tiny_stream *stream = &tiny->streams[i];
        exchange_init(&stream->exchange, client->conns->requests, &tiny_exchange_ops, "somebody");
        stream->exchange.client = client->transport->peer.client;
        stream->number = i + 1;
        stream->tiny = tiny;
    }
    update(tiny);
    return true;
}

const struct protocol tiny_protocol = {.name = "tiny", .accept = accept_tiny};
