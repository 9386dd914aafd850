/* SPDX-License-Identifier: MIT */
/* One request of a connection, from its fields to its end. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "server/daemon/connection/http2_priv.h"
#include "server/http/head.h"

/* A stream begins with this window (RFC 9113, section 6.9.2), and has a larger one once there is
 * memory for its body. */
#define WINDOW_BYTES 65535
#define WINDOW_BYTES_WIDE (1 << 20)

/* What a field counts for beside its bytes (RFC 9113, section 6.5.2). */
#define FIELD_BYTES 32
/* A list of fields this many times as long as it may be is an attack. */
#define ATTACK 8

static const struct exchange_ops exchange_ops;

/* ---- life ------------------------------------------------------------------------------------ */

struct http2_stream *http2_stream_begin(struct http2 *http2, int32_t id)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    struct session *session = &http2->session;
    struct http2_stream *stream = calloc(1, sizeof(*stream));
    if (!stream) {
        return NULL;
    }
    stream->magic = HTTP2_STREAM_MAGIC;
    stream->id = id;
    stream->http2 = http2;
    list_init(&stream->closed_link);
    list_init(&stream->out_link);
    buf_init(&stream->held, HTTP2_HELD_BYTES_MAX + CONNS_READ_BYTES);
    exchange_init(&stream->exchange, session->conns->requests, &exchange_ops,
                  session->transport->peer.remote);
    session_describe(session, &stream->exchange);
    stream->exchange.token_memory = http2->token_memory;
    if (!exchange_begin(&stream->exchange)) {
        exchange_fini(&stream->exchange);
        free(stream);
        return NULL;
    }
    list_push_back(&http2->streams, &stream->link);
    if (session->state == SESSION_QUIET) {
        session_set_deadline(session, http2_params(http2)->header_timeout);
    }
    return stream;
}

static void set_open(struct http2_stream *stream, bool is_open)
{
    if (stream->is_open != is_open) {
        stream->is_open = is_open;
        stream->http2->open_count += is_open ? 1u : -1u;
        http2_note_open(stream->http2);
    }
}

/* The client may send as many bytes more; of a stream that has ended, for other streams. */
static void consume(struct http2_stream *stream, size_t bytes)
{
    nghttp2_session *frames = stream->http2->frames;
    if (bytes && nghttp2_session_get_stream_remote_close(frames, stream->id) == 1) {
        (void)nghttp2_session_consume_connection(frames, bytes);
    } else if (bytes) {
        (void)nghttp2_session_consume(frames, stream->id, bytes);
    }
}

/* The bytes that are held have been taken, or nobody wants them. */
static void release_held(struct http2_stream *stream, size_t bytes)
{
    struct http2 *http2 = stream->http2;
    must(bytes == stream->held_window + stream->held_back);
    must(http2->held_bytes >= stream->held_counted && http2->held_back >= stream->held_back);
    http2->held_bytes -= stream->held_counted;
    http2->held_back -= stream->held_back;
    if (bytes) {
        (void)nghttp2_session_consume_connection(http2->frames, stream->held_window);
        (void)nghttp2_session_consume_stream(http2->frames, stream->id, bytes);
    }
    stream->held_counted = stream->held_window = stream->held_back = 0;
}

static void drop_held(struct http2_stream *stream)
{
    release_held(stream, stream->held.len);
    buf_fini(&stream->held);
    exchange_keep(&stream->exchange, 0);
}

static void free_stream(struct http2_stream *stream)
{
    struct exchange *exchange = &stream->exchange;
    if (exchange->request) {
        exchange_cancel(exchange);
    }
    http2_write_drop(stream);
    if (exchange->writer) {
        exchange_note_written(exchange, false);
    }
    set_open(stream, false);
    drop_held(stream);
    exchange_fini(exchange);
    list_remove(&stream->link);
    list_remove(&stream->closed_link);
    stream->magic = 0;
    free(stream);
}

void http2_stream_note_closed(struct http2_stream *stream)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    if (!stream->is_closed) {
        if (!stream->is_answered || stream->part.left > 0) {
            http2_note_flood(stream->http2, HTTP2_FLOOD_RESETS);
        }
        stream->is_closed = true;
        list_push_back(&stream->http2->closed, &stream->closed_link);
    }
}

bool http2_stream_reap(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    bool was_any = !list_is_empty(&http2->closed);
    while (!list_is_empty(&http2->closed)) {
        free_stream(LIST_ENTRY(http2->closed.next, struct http2_stream, closed_link));
    }
    return was_any;
}

void http2_stream_reap_all(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    while (!list_is_empty(&http2->streams)) {
        free_stream(LIST_ENTRY(http2->streams.next, struct http2_stream, link));
    }
}

/* ---- the head -------------------------------------------------------------------------------- */

static void refuse(struct http2_stream *stream, int http_status)
{
    if (http_status && !exchange_is_refused(&stream->exchange)) {
        exchange_refuse(&stream->exchange, http_status);
    }
}

/* The names that a log shows; any other method is none that we know. */
static const char *name_of_method(struct span method)
{
    static const char *const names[] = {"GET",     "HEAD",  "POST",  "PUT",    "DELETE",
                                        "OPTIONS", "PATCH", "TRACE", "CONNECT"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (span_is(method, names[i])) {
            return names[i];
        }
    }
    return NULL;
}

static enum route_method kind_of_method(const char *name)
{
    return strcmp(name, "GET") == 0    ? ROUTE_GET_ONLY
           : strcmp(name, "HEAD") == 0 ? ROUTE_HEAD_ONLY
           : strcmp(name, "POST") == 0 ? ROUTE_POST_ONLY
                                       : ROUTE_OTHER;
}

static int add_field(struct http2_stream *stream, struct span name, struct span value)
{
    struct head *head = exchange_fields(&stream->exchange);
    head_add_name(head, name);
    int status = head_add_value(head, value, exchange_error(&stream->exchange));
    head_end_field(head);
    return status;
}

static int add_target(struct http2_stream *stream, struct span target)
{
    struct error *err = exchange_error(&stream->exchange);
    for (size_t i = 0; i < target.len; i++) {
        if (target.ptr[i] <= ' ' || target.ptr[i] >= 0x7f) {
            error_set(err, ST_INVALID,
                      ":path: expected a target such as /v2, got one that is no URL");
            return 400;
        }
    }
    return head_add_target(exchange_fields(&stream->exchange), http2_params(stream->http2), target,
                           err);
}

/* :authority is the Host of HTTP/1 (RFC 9113, section 8.3.1); a client may send both if they say
 * the same. */
static int add_host(struct http2_stream *stream, struct span value)
{
    struct head *head = exchange_fields(&stream->exchange);
    bool is_repeated = head_has(head, HTTP_HOST) && span_equal(head_value(head, HTTP_HOST), value);
    return is_repeated ? 0 : add_field(stream, span_str("host"), value);
}

static int add_pseudo_field(struct http2_stream *stream, struct span name, struct span value)
{
    if (span_is(name, ":path")) {
        return add_target(stream, value);
    }
    if (span_is(name, ":authority")) {
        return add_host(stream, value);
    }
    if (span_is(name, ":method")) {
        stream->method = name_of_method(value);
    }
    return 0;
}

/* nghttp2 has compared it with the bytes that come, and refuses one that is no number. */
static void note_length(struct http2_stream *stream, struct span value)
{
    uint64_t length = 0;
    for (size_t i = 0; i < value.len && length < UINT64_MAX / 16; i++) {
        length = length * 10 + (uint64_t)(value.ptr[i] - '0') % 10;
    }
    stream->content_length = length;
}

/* Past its limits nothing of a head is kept. */
static bool check_size(struct http2_stream *stream)
{
    const struct params *params = http2_params(stream->http2);
    struct head *head = exchange_fields(&stream->exchange);
    struct error *err = exchange_error(&stream->exchange);
    if (stream->head_bytes > params->header_bytes_max) {
        error_set(err, ST_TOO_LARGE, "fields: more than %llu bytes (--header-bytes-max)",
                  (unsigned long long)params->header_bytes_max);
    } else if (head->field_count >= params->header_count_max) {
        error_set(err, ST_TOO_LARGE, "fields: more than %llu (--header-count-max)",
                  (unsigned long long)params->header_count_max);
    } else {
        return true;
    }
    refuse(stream, 431);
    return false;
}

bool http2_stream_add_field(struct http2_stream *stream, struct span name, struct span value)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    if (stream->is_closed || stream->exchange.incoming != EXCHANGE_HEAD) {
        return true;
    }
    stream->head_bytes += name.len + value.len + FIELD_BYTES;
    if (exchange_is_refused(&stream->exchange) || !check_size(stream)) {
        return stream->head_bytes <= http2_params(stream->http2)->header_bytes_max * ATTACK;
    }
    exchange_fields(&stream->exchange)->bytes += (uint32_t)(name.len + value.len);
    if (name.len && name.ptr[0] == ':') {
        refuse(stream, add_pseudo_field(stream, name, value));
    } else if (span_is(name, "host")) {
        refuse(stream, add_host(stream, value));
    } else {
        if (span_is(name, "content-length")) {
            note_length(stream, value);
        }
        stream->has_priority |= span_is(name, "priority");
        refuse(stream, add_field(stream, name, value));
    }
    return true;
}

static void set_deadline(struct http2_stream *stream, uint64_t ms)
{
    stream->deadline_ms = http2_now(stream->http2) + ms;
}

void http2_stream_await(struct http2_stream *stream)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    set_deadline(stream, http2_params(stream->http2)->body_timeout);
}

/* Without a priority (RFC 9218, section 4) the answers of a connection go side by side: a large one
 * holds up no others. */
static void share_connection(struct http2_stream *stream)
{
    const nghttp2_extpri extpri = {.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
    if (!stream->has_priority) {
        (void)nghttp2_session_change_extpri_stream_priority(stream->http2->frames, stream->id,
                                                            &extpri, 0);
    }
}

/* Its answer is the last thing of it. */
static void run(struct http2_stream *stream)
{
    stream->wants_continue = false;
    exchange_run(&stream->exchange);
}

static bool verify(struct http2_stream *stream)
{
    struct error *err = exchange_error(&stream->exchange);
    const struct head *head = exchange_fields(&stream->exchange);
    if (exchange_is_refused(&stream->exchange)) {
        return false;
    }
    if (!stream->method) {
        error_set(err, ST_INVALID,
                  ":method: expected a method such as GET or POST, got an unknown one");
        refuse(stream, 400);
    } else {
        refuse(stream, head_verify(head, !head_has(head, HTTP_HOST), err));
    }
    return !exchange_is_refused(&stream->exchange);
}

/* There is memory for more of the body than a window of a stream has at first. Of messages of
 * calls, which may have to wait, no more are wanted at once. */
static void widen_window(struct http2_stream *stream)
{
    bool is_long = stream->content_length > WINDOW_BYTES;
    if (is_long && !stream->has_wide_window && !exchange_has_calls(&stream->exchange)) {
        stream->has_wide_window = true;
        (void)nghttp2_session_set_local_window_size(stream->http2->frames, NGHTTP2_FLAG_NONE,
                                                    stream->id, WINDOW_BYTES_WIDE);
    }
}

/* Has the stream the method and the target of the last one? Then its exchange knows their route. */
static bool recall(struct http2_stream *stream, enum route_method method)
{
    const struct http2_known *known = &stream->http2->known;
    struct span target = head_target(exchange_fields(&stream->exchange));
    bool is_known = known->route.is_set && known->method == method &&
                    span_equal(target, span_of(known->target, known->target_len));
    if (is_known) {
        stream->exchange.known = known->route;
    }
    return is_known;
}

static void learn(struct http2_stream *stream, enum route_method method)
{
    struct http2_known *known = &stream->http2->known;
    struct span target = head_target(exchange_fields(&stream->exchange));
    if (target.len <= sizeof(known->target)) {
        known->route = stream->exchange.known;
        known->method = method;
        known->target_len = target.len;
        memcpy(known->target, target.ptr, target.len);
    }
}

void http2_stream_end_head(struct http2_stream *stream)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    struct http2 *http2 = stream->http2;
    if (stream->is_closed || stream->exchange.incoming != EXCHANGE_HEAD) {
        return;
    }
    set_open(stream, true);
    share_connection(stream);
    http2_stream_await(stream);
    if (!verify(stream)) {
        run(stream);
        return;
    }
    bool is_ended = nghttp2_session_get_stream_remote_close(http2->frames, stream->id) != 0;
    enum route_method method = kind_of_method(stream->method);
    bool is_known = recall(stream, method);
    const struct exchange_head head = {
        .method = method,
        .method_name = stream->method,
        .has_body = !is_ended,
        .content_length = is_ended ? 0 : stream->content_length,
        .is_learnt = !is_known,
        .is_known = is_known,
    };
    stream->wants_continue = !is_ended && head_has(exchange_fields(&stream->exchange), HTTP_EXPECT);
    bool is_taken = exchange_end_head(&stream->exchange, &head);
    if (is_taken && !is_known && stream->exchange.known.is_set) {
        learn(stream, method);
    }
    if (!is_taken) {
        run(stream);
    } else if (stream->wants_continue) {
        stream->wants_continue = false;
        http2_write_continue(stream);
    }
}

/* ---- the body -------------------------------------------------------------------------------- */

static bool is_wanted(struct http2_stream *stream)
{
    return stream->exchange.incoming == EXCHANGE_BODY && !exchange_is_refused(&stream->exchange);
}

/* Nobody wants them: the client may send no more than its window has left. */
static void discard(struct http2_stream *stream, size_t bytes)
{
    (void)nghttp2_session_consume_connection(stream->http2->frames, bytes);
}

static bool has_memory(struct http2_stream *stream)
{
    uint8_t *room;
    size_t len;
    if (!exchange_room(&stream->exchange, 0, &room, &len)) {
        return false;
    }
    widen_window(stream);
    return true;
}

/* The body says how long it is. A wider window tells the client all at once, and none of it is used
 * yet in what nghttp2 would tell it. */
static void note_announced(struct http2_stream *stream)
{
    stream->content_length = exchange_announced(&stream->exchange);
    if (stream->content_length && is_wanted(stream)) {
        (void)has_memory(stream);
    }
}

static void add_body(struct http2_stream *stream, struct span bytes)
{
    int status = exchange_add_body(&stream->exchange, bytes);
    if (!status && !stream->content_length) {
        note_announced(stream);
    }
    if (status) {
        refuse(stream, status);
        run(stream);
    }
}

/* Bytes of |held| that wait for memory stop the connection. Those that the call holds back do not,
 * and take none of its window as long as they are few: others of its streams go on. */
static void count_held(struct http2_stream *stream, size_t bytes, bool is_held_back)
{
    struct http2 *http2 = stream->http2;
    if (is_held_back && http2->held_back < HTTP2_HELD_BACK_BYTES_MAX) {
        discard(stream, bytes);
        stream->held_back += bytes;
        http2->held_back += bytes;
        return;
    }
    stream->held_window += bytes;
    if (!is_held_back) {
        stream->held_counted += bytes;
        http2->held_bytes += bytes;
    }
}

/* Keeps bytes that wait for memory, or for the call. */
static void hold(struct http2_stream *stream, struct span bytes)
{
    bool is_held_back = exchange_is_held_back(&stream->exchange);
    buf_add(&stream->held, bytes.ptr, bytes.len);
    if (buf_failed(&stream->held)) {
        discard(stream, bytes.len);
        exchange_give_up(&stream->exchange, ST_EXHAUSTED, "there is no memory for it now", 429);
        return;
    }
    count_held(stream, bytes.len, is_held_back);
    exchange_keep(&stream->exchange, stream->held.capacity);
    if (!is_held_back && !transfer_is_waiting(&stream->exchange.upload)) {
        transfers_wait_for_memory(&stream->exchange.upload);
    }
}

void http2_stream_take(struct http2_stream *stream, struct span bytes)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    if (stream->is_open && !stream->is_slow_to_take) {
        http2_stream_await(stream);
    }
    if (!is_wanted(stream)) {
        discard(stream, bytes.len);
    } else if (stream->held.len || !has_memory(stream)) {
        hold(stream, bytes);
    } else {
        add_body(stream, bytes);
        consume(stream, bytes.len);
    }
}

/* The transport asks, and may not be closed meanwhile. So nobody is made to give memory back, which
 * could be this connection. */
struct transport_room http2_stream_room(struct http2_stream *stream, size_t missing)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    struct transport_room room = {0};
    if (is_wanted(stream) && !stream->held.len) {
        room.ptr = exchange_spare(&stream->exchange, &room.len);
        room.len = room.len < missing ? room.len : missing;
    }
    return room;
}

void http2_stream_end(struct http2_stream *stream)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    stream->is_complete = true;
    if (is_wanted(stream) && !stream->held.len) {
        run(stream);
    }
}

/* ---- the exchange ---------------------------------------------------------------------------- */

static void reset(struct http2_stream *stream, uint32_t code)
{
    struct http2 *http2 = stream->http2;
    if (!stream->is_closed && !http2_is_over(http2)) {
        (void)nghttp2_submit_rst_stream(http2->frames, NGHTTP2_FLAG_NONE, stream->id, code);
        http2_settle_later(http2);
    }
}

/* The client need not send the rest of a request whose answer is out (RFC 9113, section 8.1). It
 * has some time to see that by itself: clients exist that drop an answer when a reset is right
 * behind it. */
static void end(struct exchange *exchange)
{
    struct http2_stream *stream = http2_stream_of(exchange);
    struct http2 *http2 = stream->http2;
    http2->token_memory = exchange->token_memory;
    if (!stream->is_answered) {
        reset(stream, NGHTTP2_INTERNAL_ERROR);
    } else {
        set_deadline(stream, http2_params(http2)->linger_timeout);
    }
    drop_held(stream);
    set_open(stream, false);
    if (http2->is_leaving || http2->is_stopped) {
        http2_settle_later(http2);
    }
}

/* There is memory for what has been held. */
static void resume(struct exchange *exchange)
{
    struct http2_stream *stream = http2_stream_of(exchange);
    struct buf held = stream->held;
    release_held(stream, held.len);
    buf_init(&stream->held, HTTP2_HELD_BYTES_MAX + CONNS_READ_BYTES);
    exchange_keep(exchange, 0);
    if (held.len) {
        add_body(stream, buf_span(&held));
    }
    buf_fini(&held);
    widen_window(stream);
    if (stream->is_complete && is_wanted(stream)) {
        run(stream);
    }
    http2_settle_later(stream->http2);
}

static void refuse_exchange(struct exchange *exchange)
{
    struct http2_stream *stream = http2_stream_of(exchange);
    drop_held(stream);
    run(stream);
    http2_settle_later(stream->http2);
}

/* The others of the connection go on. */
static void break_off(struct exchange *exchange)
{
    struct http2_stream *stream = http2_stream_of(exchange);
    exchange_cancel(exchange);
    drop_held(stream);
    set_open(stream, false);
    reset(stream, NGHTTP2_CANCEL);
}

static const struct exchange_ops exchange_ops = {
    .is_duplex = true,
    .write = http2_write_part,
    .end = end,
    .resume = resume,
    .refuse = refuse_exchange,
    .abort = break_off,
};

/* ---- time ------------------------------------------------------------------------------------ */

/* While bytes of other streams wait for memory, the connection is not read. */
static bool is_unread(const struct http2_stream *stream)
{
    return stream->http2->held_bytes >= HTTP2_HELD_BYTES_MAX;
}

/* Has the client sent nothing for too long? Between two messages of a stream it has as much time as
 * between two requests. */
static bool is_silent(const struct http2_stream *stream, uint64_t now_ms)
{
    const struct params *params = http2_params(stream->http2);
    uint64_t since_ms = stream->deadline_ms - params->body_timeout;
    bool rests = exchange_demand(&stream->exchange) == EXCHANGE_RESTS;
    return now_ms >= since_ms + (rests ? params->idle_timeout : params->body_timeout) &&
           !transfer_is_waiting(&stream->exchange.upload);
}

/* A call that answers as the request comes waits for the client between two messages, and has no
 * pace. */
static void check_body(struct http2_stream *stream, uint64_t now_ms)
{
    struct exchange *exchange = &stream->exchange;
    bool has_begun = exchange_has_begun(exchange);
    bool is_idle = exchange_demand(exchange) == EXCHANGE_RESTS;
    if (now_ms >= stream->http2->session.conns->refuses_at_ms) {
        if (has_begun) {
            exchange_give_up(exchange, ST_UNAVAILABLE, "the server is being stopped", 503);
        } else {
            exchange_give_up(exchange, ST_TIMEOUT, "not complete in time", 408);
        }
    } else if (is_unread(stream) || exchange_demand(exchange) == EXCHANGE_WAITS_FOR_CALLS) {
        http2_stream_await(stream);
        pace_begin(&exchange->upload.pace, now_ms);
    } else if (is_silent(stream, now_ms)) {
        exchange_give_up(exchange, ST_TIMEOUT, "not complete in time", 408);
    } else if (!has_begun && !is_idle && exchange_is_upload_slow(exchange, now_ms)) {
        exchange_give_up(exchange, ST_TIMEOUT, "fewer bytes a second than --rate-min", 408);
    }
}

/* Is it the connection that takes no more now? */
static bool is_full(const struct http2 *http2)
{
    return http2->unsent || nghttp2_session_get_remote_window_size(http2->frames) <= 0;
}

/* An answer whose own window is open waits for the others of its connection, or for all that the
 * connection may send: its own time begins when it has to wait for its own window. */
static void check_answer(struct http2_stream *stream, bool is_window_slow, uint64_t now_ms)
{
    struct exchange *exchange = &stream->exchange;
    bool is_slow = exchange_is_answer_slow(exchange, now_ms) || now_ms >= stream->deadline_ms;
    if (is_full(stream->http2) &&
        nghttp2_session_get_stream_remote_window_size(stream->http2->frames, stream->id) > 0) {
        is_slow = is_window_slow;
        set_deadline(stream, http2_params(stream->http2)->write_timeout);
    }
    if (is_slow) {
        break_off(exchange);
    }
}

void http2_stream_check(struct http2_stream *stream, bool is_window_slow, uint64_t now_ms)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    struct exchange *exchange = &stream->exchange;
    if (stream->is_closed || exchange->incoming == EXCHANGE_HEAD) {
        return;
    }
    if (!stream->is_open) {
        if (now_ms >= stream->deadline_ms) {
            reset(stream, NGHTTP2_NO_ERROR);
        }
        return;
    }
    if (exchange_is_answering(exchange)) {
        check_answer(stream, is_window_slow, now_ms);
    } else if (exchange->incoming == EXCHANGE_BODY) {
        check_body(stream, now_ms);
    }
}
