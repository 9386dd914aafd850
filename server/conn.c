/* SPDX-License-Identifier: MIT */
/*
 * Bytes reach the parser (conn_message.c) from on_received() or, if they were read ahead, from
 * conn_go_on(); both call parse().
 *
 * A request usually ends within the call that completed it. conn_answered() then only changes the
 * state, and parse() goes on with the next message in a loop, without recursion.
 */
#include "config.h"

#include "server/conn.h"

#include <stdlib.h>

#include "base/check.h"
#include "server/conn_priv.h"
#include "server/http.h"
#include "server/request.h"
#include "server/server.h"

/* A body is read in place while at least this many bytes are missing. */
#define DIRECT_BYTES_MIN 4096
#define DIRECT_BYTES_MAX (1 << 20)

/*
 * An answer with at most this much left is copied, so that a slow client does not hold its request.
 */
#define UNSENT_BYTES_MAX (64 << 10)

static struct conn *conn_of(void *user)
{
    struct conn *conn;
    OBJ_CAST(conn, user, CONN_MAGIC);
    return conn;
}

static void on_closed(void *user)
{
    struct conn *conn = conn_of(user);
    struct server *server = conn->server;
    list_remove(&conn->link);
    server->conn_count--;
    buf_fini(&conn->ahead);
    clients_update(conn);
    must(!conn->unsent && conn->charged_bytes == 0);
    conn->magic = 0;
    free(conn);
    server_check_drained(server);
}

static void close_now(struct conn *conn)
{
    if (conn->state != CONN_CLOSING) {
        conn->state = CONN_CLOSING;
        list_remove(&conn->want_link);
        list_remove(&conn->turn_link);
        transport_close(conn->transport);
    }
}

void conn_abort(struct conn *conn)
{
    struct request *request = conn->request;
    conn->request = NULL;
    close_now(conn);
    if (request) {
        request_abandon(request);
    }
}

void conn_set_deadline(struct conn *conn, uint64_t ms)
{
    conn->deadline_ms = uv_now(&conn->server->loop) + ms;
}

void conn_enter(struct conn *conn, enum conn_state state, uint64_t ms)
{
    must(conn->state != CONN_CLOSING);
    conn->state = state;
    conn_set_deadline(conn, ms);
    if (state == CONN_BODY) {
        pace_begin(&conn->pace, uv_now(&conn->server->loop));
    }
}

/* ---- what is up to the client ---------------------------------------------------------------- */

/* The answer is on its way: only the client has something left to do. */
static bool is_answering(const struct conn *conn)
{
    return conn->state == CONN_FLUSH ||
           (conn->state == CONN_BUSY && !request_is_waited_for(conn->request));
}

bool conn_is_paced(const struct conn *conn)
{
    return conn->state == CONN_BODY || is_answering(conn);
}

bool conn_is_parked(const struct conn *conn)
{
    return conn->state == CONN_BUSY && request_is_parked(conn->request);
}

size_t conn_heap_bytes(const struct conn *conn)
{
    size_t bytes = conn->ahead.capacity + conn->unsent_bytes;
    const struct request *request = conn->request;
    if (conn->state == CONN_BODY) {
        bytes += request->body.buffer ? 0 : request->body.len;
    } else if (request && is_answering(conn)) {
        bytes += request_answer_heap_bytes(request);
    }
    return bytes;
}

size_t conn_held_bytes(const struct conn *conn)
{
    size_t bytes = conn_heap_bytes(conn);
    if (conn->state == CONN_BODY || conn_is_parked(conn)) {
        bytes += body_pool_bytes(&conn->request->body);
    } else if (conn->request && is_answering(conn)) {
        bytes += request_answer_pool_bytes(conn->request);
    }
    return bytes;
}

/*
 * The message will not be completed. |status| is the reason, unless the request was refused before.
 */
static void give_up_reading(struct conn *conn, enum status code, const char *why, int http_status)
{
    struct request *request = conn->request;
    list_remove(&conn->want_link); /* the answer may have to wait as well */
    if (!request->http_status) {
        const char *what = conn->state == CONN_HEAD ? "head" : "body";
        error_set(&request->err, code, "request %s: %s", what, why);
        request_refuse(request, http_status);
    }
    conn_message_refuse(conn);
}

void conn_evict(struct conn *conn)
{
    list_remove(&conn->want_link);
    if (conn_is_parked(conn)) {
        request_give_up(conn->request);
    } else if (conn->state == CONN_BODY) {
        give_up_reading(conn, ST_EXHAUSTED, "too slow while others need its memory", 429);
    } else {
        conn_abort(conn);
    }
}

/* The bytes of the answer that the client has taken since the last look. */
static void note_taken(struct conn *conn)
{
    size_t queued = transport_pending(conn->transport, TRANSPORT_OUT);
    if (queued < conn->queued_bytes) {
        pace_move(&conn->pace, conn->queued_bytes - queued, uv_now(&conn->server->loop));
        conn->queued_bytes = queued;
        conn_set_deadline(conn, conn_params(conn)->write_timeout);
    }
}

static void start_reading(struct conn *conn);

/* ---- closing after the last answer ----------------------------------------------------------- */

static void on_shut(void *user, bool is_ok)
{
    struct conn *conn = conn_of(user);
    if (!is_ok || conn->is_eof) {
        close_now(conn);
    }
}

/* Closing a socket with unread bytes resets it, and the reset may overtake the answer. So only our
 * side is closed, and further bytes are discarded for a while. */
static void linger(struct conn *conn)
{
    conn_enter(conn, CONN_LINGER, conn_params(conn)->linger_timeout);
    conn->discarded_bytes = 0;
    if (conn->is_stopped && !conn->is_eof) {
        start_reading(conn);
    }
    buf_fini(&conn->ahead);
    if (conn->is_broken || !transport_shutdown(conn->transport)) {
        close_now(conn);
    }
}

/* ---- parsing --------------------------------------------------------------------------------- */

static bool is_reading_message(const struct conn *conn)
{
    return conn->state == CONN_IDLE || conn->state == CONN_HEAD || conn->state == CONN_BODY;
}

static void on_continue_written(struct transport_rest *rest, bool is_ok)
{
    (void)rest;
    (void)is_ok; /* the answer's own write fails with the same error */
}

static void send_continue(struct conn *conn)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct span span = span_of(text, sizeof(text) - 1);
    conn->wants_continue = false;
    ssize_t done = transport_write(conn->transport, &span, 1, NULL);
    if (done >= 0 && (size_t)done < span.len) {
        span = span_of(text + done, span.len - (size_t)done);
        conn->continue_rest.done = on_continue_written;
        (void)transport_write(conn->transport, &span, 1, &conn->continue_rest);
    }
}

/*
 * Reads as many messages as |bytes| holds, until one has to be waited for; returns the bytes used.
 */
static size_t parse(struct conn *conn, struct span bytes)
{
    must(!conn->is_parsing);
    conn->is_parsing = true;
    size_t used = 0;
    while (used < bytes.len && is_reading_message(conn)) {
        if (conn->state == CONN_IDLE && !turns_may_begin(conn)) {
            break;
        }
        used += conn_message_feed(conn, span_of(bytes.ptr + used, bytes.len - used));
    }
    conn->is_parsing = false;
    if (conn->state == CONN_BODY && conn->wants_continue && conn->request->body.len == 0) {
        send_continue(conn);
    }
    return used;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_reading_body(const struct conn *conn)
{
    return conn->state == CONN_BODY && !conn->request->http_status;
}

/* The transport asks once in a turn, and again while the turn has time: it goes on as long as all
 * room is filled. */
static bool has_read_enough(struct conn *conn)
{
    struct server *server = conn->server;
    return conn->read_turn == server->turns.number && !turns_has_time(server);
}

/* Bytes have come. While there is no memory for them none are read. */
static struct transport_room on_room(void *user)
{
    struct conn *conn = conn_of(user);
    struct transport_room room = {0};
    if (has_read_enough(conn)) {
        return room;
    }
    conn->read_turn = conn->server->turns.number;
    size_t missing = is_reading_body(conn) ? conn_message_missing(conn) : 0;
    if (is_reading_body(conn) && !clients_may_send(conn)) {
        return room;
    }
    if (missing >= DIRECT_BYTES_MIN) {
        room.ptr = body_room(&conn->request->body, &room.len);
        must(room.len <= missing);
        room.len = room.len > DIRECT_BYTES_MAX ? DIRECT_BYTES_MAX : room.len;
        return room;
    }
    return (struct transport_room){conn->server->read_buffer, SERVER_READ_BYTES};
}

static void start_reading(struct conn *conn)
{
    transport_read(conn->transport, true);
    conn->is_stopped = false;
}

static void stop_reading(struct conn *conn)
{
    transport_read(conn->transport, false);
    conn->is_stopped = true;
}

/* The client has a complete request here, or the answer to one. */
static bool is_busy(const struct conn *conn)
{
    return conn->state == CONN_BUSY || conn->state == CONN_FLUSH;
}

/* Does not look at received bytes before others have had their turn. */
static bool is_waiting(const struct conn *conn)
{
    return !list_is_empty(&conn->turn_link);
}

/* Keeps bytes that follow an unanswered request or come before their turn; if there are too many,
 * reading stops. */
static void keep_ahead(struct conn *conn, struct span bytes)
{
    buf_add(&conn->ahead, bytes.ptr, bytes.len);
    if (buf_failed(&conn->ahead)) {
        conn_abort(conn);
    } else if (conn->ahead.len >= conn_params(conn)->pipeline_bytes_max) {
        stop_reading(conn);
    }
}

static void on_bytes(struct conn *conn, struct span bytes)
{
    if (conn->state == CONN_LINGER) {
        conn->discarded_bytes += bytes.len;
        if (conn->discarded_bytes > CONN_DISCARD_BYTES_MAX) {
            close_now(conn);
        }
        return;
    }
    size_t used = parse(conn, bytes);
    if (used < bytes.len && (is_busy(conn) || is_waiting(conn))) {
        keep_ahead(conn, span_of(bytes.ptr + used, bytes.len - used));
    }
    clients_update(conn);
}

/* The client sends nothing more; whether it still reads cannot be seen. An answer under way goes
 * out, but no work is begun for a client that has probably gone. */
static void on_eof(struct conn *conn)
{
    conn->is_eof = true;
    if (!is_answering(conn) && !is_waiting(conn)) {
        conn_abort(conn);
    }
}

/* on_room() had none. */
static void on_no_room(struct conn *conn)
{
    if (!has_read_enough(conn)) {
        stop_reading(conn);
        clients_want(conn);
    }
}

static void on_received(void *user, enum transport_event event, struct span bytes)
{
    struct conn *conn = conn_of(user);
    switch (event) {
    case TRANSPORT_BYTES:
        on_bytes(conn, bytes);
        break;
    case TRANSPORT_NO_ROOM:
        on_no_room(conn);
        break;
    case TRANSPORT_END:
        on_eof(conn);
        break;
    case TRANSPORT_BROKEN:
        conn_abort(conn);
        break;
    }
}

static const struct transport_user transport_user = {
    .room = on_room,
    .received = on_received,
    .shut = on_shut,
    .closed = on_closed,
};

/* The body of |conn| waits for memory: reading goes on when there is some, or the request is
 * refused in the end. */
static bool retry_body(struct conn *conn)
{
    uint64_t now_ms = uv_now(&conn->server->loop);
    bool is_last = now_ms - conn->want_ms >= CLIENTS_WANT_MS_MAX;
    if (clients_may_send(conn)) {
        pace_resume(&conn->pace, conn->want_ms, now_ms);
        start_reading(conn);
        return true;
    }
    if (is_last) {
        give_up_reading(conn, ST_EXHAUSTED, "there is no memory for it now", 429);
    }
    return is_last;
}

/* Clients have too much left to take: the slowest one gives way. That may be |conn|, which is then
 * gone. If no client is slow yet, one will be soon. */
static bool retry_flush(struct conn *conn)
{
    bool is_over = clients_are_over(conn);
    if (is_over) {
        clients_evict_slowest(conn->server, NULL, false);
    }
    return !is_over || conn->state == CONN_CLOSING;
}

bool conn_retry(struct conn *conn)
{
    must(conn->state != CONN_CLOSING);
    switch (conn->state) {
    case CONN_BODY:
        return retry_body(conn);
    case CONN_BUSY:
        return request_retry(conn->request);
    case CONN_FLUSH:
        return retry_flush(conn);
    default:
        return true; /* it has been answered in the meantime */
    }
}

/* ---- answering ------------------------------------------------------------------------------- */

/* From now on the client takes an answer. */
static void begin_flushing(struct conn *conn)
{
    conn->queued_bytes = transport_pending(conn->transport, TRANSPORT_OUT);
    pace_begin(&conn->pace, uv_now(&conn->server->loop));
    conn_set_deadline(conn, conn_params(conn)->write_timeout);
}

static void go_on(struct conn *conn, bool is_keep_alive);

static void drop_unsent(struct conn *conn)
{
    free(conn->unsent);
    conn->unsent = NULL;
    conn->unsent_bytes = 0;
}

static void on_flushed(struct transport_rest *rest, bool is_ok)
{
    struct conn *conn = conn_of(rest->user);
    drop_unsent(conn);
    conn->is_broken |= !is_ok;
    clients_update(conn);
    if (conn->state == CONN_FLUSH) {
        list_remove(&conn->want_link);
        go_on(conn, conn->is_keep_alive);
    }
}

/* Copies the rest of an answer, |bytes| in all, so that its request need not wait for the client.
 * False: no memory. */
static bool keep_rest(struct conn *conn, const struct span *spans, unsigned count, size_t bytes)
{
    must(!conn->unsent);
    conn->unsent = malloc(bytes);
    if (!conn->unsent) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        memcpy(conn->unsent + conn->unsent_bytes, spans[i].ptr, spans[i].len);
        conn->unsent_bytes += spans[i].len;
    }
    must(conn->unsent_bytes == bytes);
    const struct span rest = span_of(conn->unsent, bytes);
    conn->flush.user = conn;
    conn->flush.done = on_flushed;
    if (transport_write(conn->transport, &rest, 1, &conn->flush) < 0) {
        drop_unsent(conn);
        conn->is_broken = true;
    }
    return true;
}

/* Drops the first |done| bytes of |spans|; returns how many bytes are left. */
static size_t advance(struct span *spans, unsigned *count, size_t done)
{
    size_t left = 0;
    unsigned first = 0;
    while (first < *count && done >= spans[first].len) {
        done -= spans[first++].len;
    }
    *count -= first;
    memmove(spans, spans + first, *count * sizeof(spans[0]));
    if (*count) {
        spans[0] = span_of(spans[0].ptr + done, spans[0].len - done);
    }
    for (unsigned i = 0; i < *count; i++) {
        left += spans[i].len;
    }
    return left;
}

bool conn_write(struct conn *conn, struct span *spans, unsigned count, struct transport_rest *rest)
{
    ssize_t done = transport_write(conn->transport, spans, count, NULL);
    if (done < 0) {
        conn->is_broken = true;
        return true;
    }
    size_t left = advance(spans, &count, (size_t)done);
    if (left == 0) {
        return true;
    }
    bool is_kept = left <= UNSENT_BYTES_MAX && keep_rest(conn, spans, count, left);
    if (!is_kept && transport_write(conn->transport, spans, count, rest) < 0) {
        conn->is_broken = true;
        return true;
    }
    begin_flushing(conn);
    return is_kept;
}

/* Goes on with the bytes that were read ahead, then with the socket. */
void conn_go_on(struct conn *conn)
{
    size_t used = parse(conn, buf_span(&conn->ahead));
    if (conn->state == CONN_LINGER || conn->state == CONN_CLOSING) {
        return;
    }
    conn->ahead.len -= used;
    if (conn->ahead.len) {
        memmove(conn->ahead.ptr, conn->ahead.ptr + used, conn->ahead.len);
    } else {
        buf_fini(&conn->ahead); /* an idle connection is small */
    }
    clients_update(conn);
    if (conn->is_eof && !is_busy(conn) && !is_waiting(conn)) {
        conn_abort(conn);
    } else if (conn->is_stopped && conn->ahead.len < conn_params(conn)->pipeline_bytes_max) {
        start_reading(conn);
    }
}

/* The answer has been written. */
static void go_on(struct conn *conn, bool is_keep_alive)
{
    if (!is_keep_alive || conn->is_broken) {
        linger(conn);
        return;
    }
    conn_enter(conn, CONN_IDLE, conn_params(conn)->idle_timeout);
    if (conn->is_parsing) {
        return;
    }
    if (conn->ahead.len || conn->is_eof) {
        conn_go_on(conn);
    } else if (conn->server->is_grace_over) {
        conn_drain(conn);
    }
}

void conn_answered(struct conn *conn, bool is_keep_alive)
{
    must(conn->request);
    conn->request = NULL;
    list_remove(&conn->want_link);
    if (conn->state == CONN_CLOSING) {
        return;
    }
    if (conn->unsent) {
        conn->is_keep_alive = is_keep_alive;
        conn->state = CONN_FLUSH;
        clients_update(conn);
        if (clients_are_over(conn)) {
            clients_want(conn);
        }
    } else {
        go_on(conn, is_keep_alive);
    }
}

/* ---- opening, time, draining ----------------------------------------------------------------- */

/* Beyond the limit a client gets a reason rather than a reset. */
static void turn_away(struct conn *conn)
{
    static const char body[] = "{\"error\":\"too many connections\"}";
    struct http_head head = {.status = 503,
                             .content_type = "application/json",
                             .content_length = sizeof(body) - 1,
                             .retry_after_s = 1,
                             .close = true};
    char text[HTTP_HEAD_BYTES_MAX];
    const struct span spans[] = {
        span_of(text, http_print_head(&head, text)),
        span_of(body, sizeof(body) - 1),
    };
    (void)transport_write(conn->transport, spans, 2, NULL);
    linger(conn);
}

bool conn_accept(struct server *server, struct transport *transport)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        return false;
    }
    conn->magic = CONN_MAGIC;
    conn->server = server;
    conn->transport = transport;
    transport_set_user(transport, &transport_user, conn);
    list_init(&conn->want_link);
    list_init(&conn->turn_link);
    buf_init(&conn->ahead, server->params->pipeline_bytes_max + SERVER_READ_BYTES);
    list_push_back(&server->conns, &conn->link);
    server->conn_count++;
    conn_enter(conn, CONN_IDLE, server->params->idle_timeout);
    conn_message_init(conn);
    server_start_sweep(server);
    start_reading(conn);
    if (server->conn_count > server->connection_count_max) {
        turn_away(conn);
    }
    return true;
}

/* The time of an incomplete request is over, or the client sends too little. */
static void check_reading(struct conn *conn, uint64_t now_ms)
{
    bool may_send = list_is_empty(&conn->want_link);
    if (now_ms >= conn->deadline_ms || now_ms >= conn->server->incomplete_until_ms) {
        give_up_reading(conn, ST_TIMEOUT, "not complete in time", 408);
    } else if (conn->state == CONN_BODY && may_send &&
               pace_is_too_slow(&conn->pace, conn_params(conn), now_ms)) {
        give_up_reading(conn, ST_TIMEOUT, "fewer bytes a second than --rate-min", 408);
    }
}

static void check_busy(struct conn *conn, uint64_t now_ms)
{
    if (is_answering(conn)) {
        note_taken(conn);
        if (now_ms >= conn->deadline_ms ||
            pace_is_too_slow(&conn->pace, conn_params(conn), now_ms)) {
            conn_abort(conn);
        }
    } else if (now_ms >= conn->deadline_ms) { /* the scheduler watches it */
        conn_set_deadline(conn, conn_params(conn)->request_timeout);
    }
}

void conn_check_deadline(struct conn *conn, uint64_t now_ms)
{
    switch (conn->state) {
    case CONN_HEAD:
    case CONN_BODY:
        check_reading(conn, now_ms);
        break;
    case CONN_BUSY:
    case CONN_FLUSH:
        check_busy(conn, now_ms);
        break;
    case CONN_IDLE:
    case CONN_LINGER:
        if (now_ms >= conn->deadline_ms) {
            close_now(conn);
        }
        break;
    case CONN_CLOSING:
        break;
    }
}

/* Bytes have come that the loop has not seen yet. */
static bool has_unread(const struct conn *conn)
{
    return transport_pending(conn->transport, TRANSPORT_IN) > 0;
}

void conn_drain(struct conn *conn)
{
    if (conn->state == CONN_IDLE && !is_waiting(conn) && !has_unread(conn)) {
        linger(conn);
    }
}
