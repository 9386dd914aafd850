/* SPDX-License-Identifier: MIT */
/*
 * The session of HTTP/2: its transport, its turns, its time and its end. settle() follows each
 * event of the loop: it sends what there is, tells calls what is out, and frees what is closed.
 */
#include "config.h"

#include "server/daemon/connection/http2.h"

#include <stdlib.h>
#include <string.h>

#include "server/daemon/connection/http2_priv.h"
#include "server/process/log.h"

/* The window of a connection: what all its streams may send before any body has taken it. */
#define WINDOW_BYTES (1 << 20)
/* Frames that a client has us answer, and that wait because it takes nothing. */
#define ACKS_MAX (4 * HTTP2_QUEUED_MAX)
/* Frames RST_STREAM that nghttp2 takes, at once and a second: it never ends a connection for them,
 * because we do so earlier. */
#define RESETS (1u << 30)

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; /* RFC 9113, section 3.4 */

static void close_now(struct http2 *http2)
{
    if (http2->session.state != SESSION_CLOSING) {
        session_set_state(&http2->session, SESSION_CLOSING);
        session_close(&http2->session);
    }
}

void http2_count_bytes(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    exchange_keep(&http2->own, http2->ahead.capacity + http2->unsent_bytes);
}

void http2_settle_later(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    if (http2->session.state != SESSION_CLOSING) {
        (void)turns_may_begin(&http2->session.conns->loop->turns, &http2->session.turn, false);
    }
}

void http2_note_open(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    struct session *session = &http2->session;
    enum session_state state = http2->open_count ? SESSION_BUSY : SESSION_QUIET;
    if (session->state != SESSION_LINGER && session->state != SESSION_CLOSING &&
        session->state != state) {
        session_set_state(session, state);
        session_set_deadline(session, http2_params(http2)->idle_timeout);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Nothing more is sent; bytes that still come are discarded for a while. */
static void linger(struct http2 *http2)
{
    struct session *session = &http2->session;
    if (session->state == SESSION_LINGER || session->state == SESSION_CLOSING) {
        return;
    }
    session_set_state(session, SESSION_LINGER);
    session_set_deadline(session, http2_params(http2)->linger_timeout);
    if (http2->is_stopped && !session->is_eof) {
        http2->is_stopped = false;
        transport_read(session->transport, true);
    }
    buf_fini(&http2->ahead);
    http2_count_bytes(http2);
    if (http2->is_broken || !session_linger(session)) {
        close_now(http2);
    }
}

void http2_note_flood(struct http2 *http2, enum http2_flood flood)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    if (http2->flood == HTTP2_FLOOD_COUNT &&
        !http2_flood_take(&http2->floods, flood, http2_now(http2))) {
        http2->flood = flood;
    }
}

void http2_end_flood(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    if (http2->flood == HTTP2_FLOOD_COUNT || http2->is_refused || http2_is_over(http2)) {
        return;
    }
    http2->is_refused = true;
    counter_add(&http2->session.conns->counts.floods[http2->flood], 1);
    if (log_gate_admits(&http2->session.conns->loop->log, LOG_KIND_REFUSED, http2->own.client)) {
        log_line(LOG_INFO, "HTTP/2: the connection of %s is ended: too many %s", http2->own.remote,
                 http2_flood_name(http2->flood));
    }
    (void)nghttp2_session_terminate_session(http2->frames, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* No request begins any more; those that have begun are answered. */
static void leave_politely(struct http2 *http2)
{
    if (!http2->is_leaving && !http2_is_over(http2)) {
        http2->is_leaving = true;
        (void)nghttp2_submit_goaway(http2->frames, NGHTTP2_FLAG_NONE,
                                    nghttp2_session_get_last_proc_stream_id(http2->frames),
                                    NGHTTP2_NO_ERROR, NULL, 0);
    }
}

/* Sends, tells and frees until nothing is left to do. No call is on the stack. */
static void settle(struct http2 *http2)
{
    do {
        http2_write_flush(http2);
    } while (http2_write_tell(http2) || http2_stream_reap(http2));
    if (http2->is_broken) {
        close_now(http2);
        return;
    }
    bool is_done =
        !nghttp2_session_want_read(http2->frames) && !nghttp2_session_want_write(http2->frames);
    if (is_done && !http2->unsent) {
        linger(http2);
    }
    http2_read_on(http2);
}

static void on_closed(void *user)
{
    struct http2 *http2 = http2_of(user);
    must(http2->session.state == SESSION_CLOSING && !http2->unsent);
    http2_stream_reap_all(http2);
    must(http2->open_count == 0 && http2->held_bytes == 0);
    nghttp2_session_del(http2->frames);
    buf_fini(&http2->ahead);
    exchange_fini(&http2->own);
    http2->magic = 0;
    session_end(&http2->session);
    free(http2);
}

static void on_shut(void *user, bool is_ok)
{
    struct http2 *http2 = http2_of(user);
    if (!session_note_shut(&http2->session, is_ok)) {
        close_now(http2);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static void stop_reading(struct http2 *http2)
{
    http2->is_stopped = true;
    transport_read(http2->session.transport, false);
}

void http2_read_on(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    if (http2->is_stopped && !http2->ahead.len && !http2_is_over(http2) &&
        http2->held_bytes < HTTP2_HELD_BYTES_MAX) {
        http2->is_stopped = false;
        transport_read(http2->session.transport, true);
    }
}

static struct transport_room on_room(void *user)
{
    struct http2 *http2 = http2_of(user);
    struct turns *turns = &http2->session.conns->loop->turns;
    if (http2->read_turn == turns->number && !turns_has_time(turns)) {
        return (struct transport_room){0};
    }
    http2->read_turn = turns->number;
    return http2_read_room(http2);
}

/* Keeps bytes before their turn, and reads no more until it has come. */
static void keep_ahead(struct http2 *http2, struct span bytes)
{
    buf_add(&http2->ahead, bytes.ptr, bytes.len);
    http2->is_broken |= buf_failed(&http2->ahead);
    http2_count_bytes(http2);
    if (!http2->is_stopped) {
        stop_reading(http2);
    }
}

static void on_bytes(struct http2 *http2, struct span bytes)
{
    counter_add(&http2->session.conns->counts.received_bytes, bytes.len);
    if (http2->session.state == SESSION_LINGER) {
        if (!session_discard(&http2->session, bytes.len)) {
            close_now(http2);
        }
        return;
    }
    http2->heard_ms = http2_now(http2);
    http2->ping_ms = 0;
    size_t used = http2->ahead.len ? 0 : http2_read_feed(http2, bytes);
    if (used < bytes.len && !http2_is_over(http2)) {
        keep_ahead(http2, span_of(bytes.ptr + used, bytes.len - used));
    }
    settle(http2);
}

/* Its turn has come: goes on with the bytes that were kept. */
static void go_on(struct http2 *http2)
{
    if (http2->session.state == SESSION_LINGER || http2->session.state == SESSION_CLOSING) {
        return;
    }
    if (http2->ahead.len) {
        size_t used = http2_read_feed(http2, buf_span(&http2->ahead));
        http2->ahead.len -= used;
        if (http2->ahead.len) {
            memmove(http2->ahead.ptr, http2->ahead.ptr + used, http2->ahead.len);
        } else {
            buf_fini(&http2->ahead);
        }
        http2_count_bytes(http2);
    }
    settle(http2);
}

/* Before an end that is no cut: a transport that can tell the two apart says so. */
static void end_side(struct http2 *http2)
{
    if (!http2_is_over(http2) && !transport_shutdown(http2->session.transport)) {
        http2->is_broken = true;
    }
}

static void on_received(void *user, enum transport_event event, struct span bytes)
{
    struct http2 *http2 = http2_of(user);
    turn_watch_enter(&http2->session.conns->loop->watch, TURN_RECEIVE);
    switch (event) {
    case TRANSPORT_BYTES:
        on_bytes(http2, bytes);
        break;
    case TRANSPORT_END:
        http2->session.is_eof = true;
        end_side(http2);
        close_now(http2);
        break;
    case TRANSPORT_BROKEN:
        http2->is_broken = true;
        close_now(http2);
        break;
    case TRANSPORT_NO_ROOM:
    case TRANSPORT_NAMED:
    case TRANSPORT_OPENED:
    case TRANSPORT_REFUSED:
        break; /* there is room in the next turn; it is open (opening.h) */
    }
}

static const struct transport_user transport_user = {
    .room = on_room,
    .received = on_received,
    .shut = on_shut,
    .closed = on_closed,
};

/* ---- the session ----------------------------------------------------------------------------- */

static struct http2 *of_session(const struct session *session)
{
    return http2_of(LIST_ENTRY((struct session *)(uintptr_t)session, struct http2, session));
}

static void abort_session(struct session *session)
{
    close_now(of_session(session));
}

static void leave(struct session *session)
{
    struct http2 *http2 = of_session(session);
    leave_politely(http2);
    http2_write_flush(http2);
    end_side(http2);
    close_now(http2);
}

static void drain(struct session *session)
{
    struct http2 *http2 = of_session(session);
    leave_politely(http2);
    settle(http2);
}

/* The client learns it before requests that are on their way would be refused (RFC 9113, section
 * 6.8). */
static void warn(struct session *session)
{
    struct http2 *http2 = of_session(session);
    if (!http2->is_leaving && !http2->warned_ms && !http2_is_over(http2)) {
        http2->warned_ms = http2_now(http2);
        (void)nghttp2_submit_shutdown_notice(http2->frames);
        settle(http2);
    }
}

/* A client that is too old is warned first, as in a drain. */
static void check_age(struct http2 *http2, uint64_t now_ms)
{
    if (session_is_old(&http2->session)) {
        warn(&http2->session);
        if (now_ms - http2->warned_ms >= http2_params(http2)->linger_timeout) {
            leave_politely(http2);
        }
    }
}

/* False: the client, of which requests wait, gives no sign of life. One that may not or cannot
 * answer is not asked. */
static bool check_life(struct http2 *http2, uint64_t now_ms)
{
    if (http2->session.state != SESSION_BUSY || http2->is_stopped || http2->unsent) {
        http2->heard_ms = now_ms;
        http2->ping_ms = 0;
    } else if (http2->ping_ms) {
        return now_ms - http2->ping_ms < http2_params(http2)->header_timeout;
    } else if (now_ms - http2->heard_ms >= http2_params(http2)->idle_timeout) {
        http2->ping_ms = now_ms;
        (void)nghttp2_submit_ping(http2->frames, NGHTTP2_FLAG_NONE, NULL);
    }
    return true;
}

static void check_settings(struct http2 *http2, uint64_t now_ms)
{
    if (now_ms >= http2->settings_deadline_ms && !http2->unsent) {
        (void)nghttp2_session_terminate_session(http2->frames, NGHTTP2_SETTINGS_TIMEOUT);
    }
}

static void check_streams(struct http2 *http2, uint64_t now_ms)
{
    bool is_slow = http2_write_is_window_slow(http2, now_ms);
    for (struct list *node = http2->streams.next; node != &http2->streams; node = node->next) {
        http2_stream_check(LIST_ENTRY(node, struct http2_stream, link), is_slow, now_ms);
    }
    if (http2->is_in_block &&
        now_ms - http2->block_since_ms >= http2_params(http2)->header_timeout) {
        (void)nghttp2_session_terminate_session(http2->frames, NGHTTP2_ENHANCE_YOUR_CALM);
    }
}

static void check_deadline(struct session *session, uint64_t now_ms)
{
    struct http2 *http2 = of_session(session);
    if (session->state == SESSION_CLOSING) {
        return;
    }
    bool is_late = session->state != SESSION_BUSY && now_ms >= session->deadline_ms;
    if (session->state == SESSION_LINGER) {
        if (is_late) {
            close_now(http2);
        }
        return;
    }
    if (!http2_write_check(http2, now_ms) || !check_life(http2, now_ms)) {
        close_now(http2);
        return;
    }
    if (session->conns->is_grace_over) { /* it came later */
        leave_politely(http2);
    }
    check_age(http2, now_ms);
    check_settings(http2, now_ms);
    check_streams(http2, now_ms);
    if (is_late) {
        leave_politely(http2);
    }
    settle(http2);
}

static void postpone(struct session *session, uint64_t pause_ms, uint64_t now_ms)
{
    struct http2 *http2 = of_session(session);
    session_postpone(session, pause_ms);
    http2->flight_deadline_ms += pause_ms;
    http2->window_deadline_ms += pause_ms;
    pace_begin(&http2->window_pace, now_ms);
    http2->block_since_ms += pause_ms;
    http2->heard_ms += pause_ms;
    http2->ping_ms += http2->ping_ms ? pause_ms : 0;
    http2->settings_deadline_ms += http2->settings_deadline_ms == UINT64_MAX ? 0 : pause_ms;
    exchange_restart_paces(&http2->own, now_ms);
    for (struct list *node = http2->streams.next; node != &http2->streams; node = node->next) {
        struct http2_stream *stream = LIST_ENTRY(node, struct http2_stream, link);
        stream->deadline_ms += pause_ms;
        exchange_restart_paces(&stream->exchange, now_ms);
    }
}

static bool is_quiet(const struct session *session)
{
    return !session_is_waiting(session) && transport_pending(session->transport, TRANSPORT_IN) == 0;
}

static void go_on_session(struct session *session)
{
    go_on(of_session(session));
}

static const struct session_ops session_ops = {
    .abort = abort_session,
    .leave = leave,
    .warn = warn,
    .drain = drain,
    .check_deadline = check_deadline,
    .postpone = postpone,
    .is_quiet = is_quiet,
    .go_on = go_on_session,
};

/* ---- what belongs to no stream --------------------------------------------------------------- */

static enum exchange_written own_write(struct exchange *exchange, const struct exchange_part *part)
{
    (void)exchange, (void)part;
    unreachable(); /* it never begins */
}

static void own_nothing(struct exchange *exchange)
{
    (void)exchange;
    unreachable();
}

/* Others need the memory of the flight that the client does not take. */
static void own_abort(struct exchange *exchange)
{
    struct http2 *http2 = LIST_ENTRY(exchange, struct http2, own);
    OBJ_CHECK(http2, HTTP2_MAGIC);
    exchange_cancel(exchange);
    close_now(http2);
}

static const struct exchange_ops own_ops = {
    .write = own_write,
    .end = own_nothing,
    .resume = own_nothing,
    .refuse = own_nothing,
    .abort = own_abort,
};

/* ---- the protocol ---------------------------------------------------------------------------- */

static int new_frames(struct http2 *http2, nghttp2_session_callbacks *callbacks,
                      nghttp2_option *option)
{
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, ACKS_MAX);
#ifdef HAVE_NGHTTP2_OPTION_SET_STREAM_RESET_RATE_LIMIT
    nghttp2_option_set_stream_reset_rate_limit(option, RESETS, RESETS); /* http2_flood.def has it */
#endif
    http2_read_set(callbacks);
    http2_write_set(callbacks);
    return nghttp2_session_server_new2(&http2->frames, callbacks, http2, option);
}

static bool open_frames(struct http2 *http2)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
        (void)new_frames(http2, callbacks, option);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return http2->frames != NULL;
}

static bool greet(struct http2 *http2, bool has_preface)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)http2_params(http2)->stream_count_max},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, HTTP2_FRAME_BYTES_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)http2_params(http2)->header_bytes_max},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    const uint8_t *bytes = (const uint8_t *)preface;
    http2->preface_left = has_preface ? 0 : sizeof(preface) - 1;
    http2->heard_ms = http2_now(http2);
    http2->settings_deadline_ms = http2->heard_ms + http2_params(http2)->header_timeout;
    return nghttp2_submit_settings(http2->frames, NGHTTP2_FLAG_NONE, settings,
                                   sizeof(settings) / sizeof(settings[0])) == 0 &&
           nghttp2_session_set_local_window_size(http2->frames, NGHTTP2_FLAG_NONE, 0,
                                                 WINDOW_BYTES) == 0 &&
           (!has_preface ||
            nghttp2_session_mem_recv(http2->frames, bytes, sizeof(preface) - 1) > 0);
}

/* Gives a client without a place a reason rather than a reset. */
static void turn_away(struct http2 *http2, enum share_taken why)
{
    struct error err;
    counter_add(&http2->session.conns->counts.turned_away, 1);
    (void)places_refuse(&http2->session.conns->places, &http2->session, why, &err);
    (void)nghttp2_submit_goaway(http2->frames, NGHTTP2_FLAG_NONE, 0, NGHTTP2_ENHANCE_YOUR_CALM,
                                (const uint8_t *)err.text, strlen(err.text));
    http2_write_flush(http2);
    linger(http2);
}

static bool accept_client(const struct session_client *client)
{
    struct conns *conns = client->conns;
    struct http2 *http2 = calloc(1, sizeof(*http2));
    if (!http2) {
        return false;
    }
    http2->magic = HTTP2_MAGIC;
    list_init(&http2->streams);
    list_init(&http2->closed);
    list_init(&http2->out);
    http2->flood = HTTP2_FLOOD_COUNT;
    http2_flood_init(&http2->floods, uv_now(&conns->loop->uv));
    http2->session.conns = conns; /* for greet() */
    if (!open_frames(http2) || !greet(http2, client->has_preface)) {
        nghttp2_session_del(http2->frames);
        free(http2);
        return false;
    }
    transport_set_user(client->transport, &transport_user, http2);
    exchange_init(&http2->own, conns->requests, &own_ops, client->transport->peer.remote);
    buf_init(&http2->ahead, 2 * CONNS_READ_BYTES);
    enum share_taken place = session_begin(&http2->session, &session_ops, client);
    session_describe(&http2->session, &http2->own);
    session_set_state(&http2->session, SESSION_QUIET);
    session_set_deadline(&http2->session, conns->params->idle_timeout);
    if (!client->before) {
        transport_read(client->transport, true);
    }
    if (place != SHARE_TAKEN) {
        turn_away(http2, place);
    } else {
        http2_write_flush(http2);
    }
    return true;
}

const struct protocol http2_protocol = {.name = "h2", .preface = preface, .accept = accept_client};
