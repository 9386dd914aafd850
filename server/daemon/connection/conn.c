/* SPDX-License-Identifier: MIT */
/*
 * Bytes reach the parser (conn_message.c) from on_received() or, if they were read ahead, from
 * go_on(); both call parse().
 *
 * A request usually ends within the call that completed it. conn_next() then only changes the
 * state, and parse() goes on with the next message in a loop, without recursion.
 */
#include "config.h"

#include "server/daemon/connection/conn.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/table.h"
#include "server/daemon/connection/conn_priv.h"
#include "server/process/log.h"

/* A body is read in place while at least this many bytes are missing. */
#define DIRECT_BYTES_MIN 4096
#define DIRECT_BYTES_MAX (1 << 20)

/* What is known of a client's last message is given back after a pause of so long. */
#define FORGET_MS 2000

static struct conn *conn_of(void *user)
{
    struct conn *conn;
    OBJ_CAST(conn, user, CONN_MAGIC);
    return conn;
}

static void end(struct conn *conn)
{
    buf_fini(&conn->ahead);
    head_pattern_free(conn->known.pattern);
    must(!conn->unsent);
    exchange_fini(&conn->exchange);
    conn->magic = 0;
    session_end(&conn->session);
    free(conn);
}

static void on_closed(void *user)
{
    struct conn *conn = conn_of(user);
    must(conn->state == CONN_CLOSING);
    end(conn);
}

void conn_set_state(struct conn *conn, enum conn_state state)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    must(conn->state != CONN_CLOSING); /* nothing follows it */
    static const enum session_state states[] = {
        [CONN_IDLE] = SESSION_QUIET,      [CONN_HEAD] = SESSION_QUIET,
        [CONN_BODY] = SESSION_BUSY,       [CONN_BUSY] = SESSION_BUSY,
        [CONN_FLUSH] = SESSION_BUSY,      [CONN_LINGER] = SESSION_LINGER,
        [CONN_CLOSING] = SESSION_CLOSING,
    };
    TABLE_ENDS_WITH(states, CONN_CLOSING);
    conn->state = state;
    session_set_state(&conn->session, states[state]);
}

static void close_now(struct conn *conn)
{
    if (conn->state != CONN_CLOSING) {
        conn_set_state(conn, CONN_CLOSING);
        session_close(&conn->session);
    }
}

void conn_abort(struct conn *conn)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    close_now(conn);
    exchange_cancel(&conn->exchange);
}

void conn_set_deadline(struct conn *conn, uint64_t ms)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    session_set_deadline(&conn->session, ms);
}

void conn_enter(struct conn *conn, enum conn_state state, uint64_t ms)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    conn_set_state(conn, state);
    conn_set_deadline(conn, ms);
}

void conn_count_bytes(struct conn *conn)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    exchange_keep(&conn->exchange, conn->ahead.capacity + conn->unsent_bytes);
}

static void start_reading(struct conn *conn);

/* ---- closing after the last answer ----------------------------------------------------------- */

static void on_shut(void *user, bool is_ok)
{
    struct conn *conn = conn_of(user);
    if (!session_note_shut(&conn->session, is_ok)) {
        close_now(conn);
    }
}

void conn_linger(struct conn *conn)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    conn_enter(conn, CONN_LINGER, conn_params(conn)->linger_timeout);
    if (conn->is_stopped && !conn->session.is_eof) {
        start_reading(conn);
    }
    buf_fini(&conn->ahead);
    if (conn->is_broken || !session_linger(&conn->session)) {
        close_now(conn);
    }
}

/* ---- parsing --------------------------------------------------------------------------------- */

static bool is_reading_message(const struct conn *conn)
{
    return conn->state == CONN_IDLE || conn->state == CONN_HEAD || conn->state == CONN_BODY;
}

/* While an exchange gives its memory back, another message is being read. */
static bool may_begin(struct conn *conn)
{
    return turns_may_begin(&conn->session.conns->loop->turns, &conn->session.turn,
                           !exchange_is_evicting(&conn->exchange));
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
        if (conn->state == CONN_IDLE && !may_begin(conn)) {
            break;
        }
        used += conn_message_feed(conn, span_of(bytes.ptr + used, bytes.len - used));
    }
    conn->is_parsing = false;
    if (conn->state == CONN_BODY && conn->wants_continue && exchange_is_bodyless(&conn->exchange)) {
        conn_answer_continue(conn);
    }
    return used;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_reading_body(const struct conn *conn)
{
    return conn->state == CONN_BODY && !exchange_is_refused(&conn->exchange);
}

/* The transport asks once in a turn, and again while the turn has time: it goes on as long as all
 * room is filled. */
static bool has_read_enough(struct conn *conn)
{
    struct turns *turns = &conn->session.conns->loop->turns;
    return conn->read_turn == turns->number && !turns_has_time(turns);
}

/* Bytes have come. While there is no memory for them none are read. */
static struct transport_room on_room(void *user)
{
    struct conn *conn = conn_of(user);
    struct transport_room room = {0};
    if (has_read_enough(conn)) {
        return room;
    }
    conn->read_turn = conn->session.conns->loop->turns.number;
    if (is_reading_body(conn)) {
        size_t missing = conn_message_missing(conn);
        bool is_direct = missing >= DIRECT_BYTES_MIN;
        if (!exchange_room(&conn->exchange, is_direct ? missing : 0, &room.ptr, &room.len)) {
            return room;
        }
        room.len = room.len > DIRECT_BYTES_MAX ? DIRECT_BYTES_MAX : room.len;
    }
    if (room.len == 0) {
        room = (struct transport_room){conn->session.conns->read_buffer, CONNS_READ_BYTES};
    }
    return room;
}

static void start_reading(struct conn *conn)
{
    transport_read(conn->session.transport, true);
    conn->is_stopped = false;
}

static void stop_reading(struct conn *conn)
{
    transport_read(conn->session.transport, false);
    conn->is_stopped = true;
}

/* The client has a complete request here, or the answer to one. */
static bool is_busy(const struct conn *conn)
{
    return conn->state == CONN_BUSY || conn->state == CONN_FLUSH;
}

static bool is_waiting(const struct conn *conn)
{
    return session_is_waiting(&conn->session);
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

static void on_bytes(struct conn *conn, struct span bytes);

/* The client speaks the other protocol: that one has the connection, and what has come of it. */
static void hand_over(struct conn *conn, struct span rest)
{
    struct transport *transport = conn->session.transport;
    const struct session_client client = {.conns = conn->session.conns,
                                          .transport = transport,
                                          .role = conn->session.role,
                                          .before = &conn->session,
                                          .has_preface = true};
    if (!conn->other->accept(&client)) {
        conn_abort(conn);
        return;
    }
    end(conn);
    if (rest.len) {
        transport_tell(transport, TRANSPORT_BYTES, rest);
    }
}

/* The first bytes tell the protocol. They may come one by one. */
static void look_at_preface(struct conn *conn, struct span bytes)
{
    const struct span preface = span_str(conn->other->preface);
    size_t known = conn->preface_len, left = preface.len - known;
    size_t len = bytes.len < left ? bytes.len : left;
    if (conn->state != CONN_IDLE || memcmp(preface.ptr + known, bytes.ptr, len) != 0) {
        conn->other = NULL;
        if (known) {
            on_bytes(conn, span_of(preface.ptr, known));
        }
        on_bytes(conn, bytes);
        return;
    }
    conn->preface_len += (uint8_t)len;
    conn_set_deadline(conn, conn_params(conn)->header_timeout);
    if (len == left) {
        hand_over(conn, span_of(bytes.ptr + len, bytes.len - len));
    }
}

static void on_bytes(struct conn *conn, struct span bytes)
{
    if (conn->other) {
        look_at_preface(conn, bytes);
        return;
    }
    counter_add(&conn->session.conns->counts.received_bytes, bytes.len);
    if (conn->state == CONN_LINGER) {
        if (!session_discard(&conn->session, bytes.len)) {
            close_now(conn);
        }
        return;
    }
    size_t used = parse(conn, bytes);
    if (used < bytes.len && (is_busy(conn) || is_waiting(conn))) {
        keep_ahead(conn, span_of(bytes.ptr + used, bytes.len - used));
    }
    conn_count_bytes(conn);
}

/* Before an end that is no cut: a transport that can tell the two apart says so, if it still can.
 */
static void end_side(struct conn *conn)
{
    bool is_open = conn->state != CONN_LINGER && conn->state != CONN_CLOSING && !conn->is_broken;
    if (is_open && !transport_shutdown(conn->session.transport)) {
        conn->is_broken = true;
    }
}

/* The client sends nothing more; whether it still reads cannot be seen. An answer under way goes
 * out, but no work is begun for a client that has probably gone. */
static void on_eof(struct conn *conn)
{
    conn->session.is_eof = true;
    if (!exchange_is_answering(&conn->exchange) && !is_waiting(conn)) {
        end_side(conn);
        conn_abort(conn);
    }
}

/* on_room() had none. */
static void on_no_room(struct conn *conn)
{
    if (!has_read_enough(conn)) {
        stop_reading(conn);
        transfers_wait_for_memory(&conn->exchange.upload);
    }
}

static void on_received(void *user, enum transport_event event, struct span bytes)
{
    struct conn *conn = conn_of(user);
    turn_watch_enter(&conn->session.conns->loop->watch, TURN_RECEIVE);
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
    case TRANSPORT_NAMED:
    case TRANSPORT_OPENED:
    case TRANSPORT_REFUSED:
        break; /* it is open (opening.h) */
    }
}

static const struct transport_user transport_user = {
    .room = on_room,
    .received = on_received,
    .shut = on_shut,
    .closed = on_closed,
};

/* Goes on with the bytes that were read ahead, then with the socket. */
static void go_on(struct conn *conn)
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
    conn_count_bytes(conn);
    if (conn->session.is_eof && !is_busy(conn) && !is_waiting(conn)) {
        end_side(conn);
        conn_abort(conn);
    } else if (conn->is_stopped && conn->ahead.len < conn_params(conn)->pipeline_bytes_max) {
        start_reading(conn);
    }
}

/* Bytes have come that the loop has not seen yet. */
static bool has_unread(const struct conn *conn)
{
    return transport_pending(conn->session.transport, TRANSPORT_IN) > 0;
}

static void drain(struct conn *conn)
{
    if (conn->state == CONN_IDLE && !is_waiting(conn) && !has_unread(conn)) {
        conn_linger(conn);
    }
}

void conn_next(struct conn *conn)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    must(conn->state == CONN_BUSY || conn->state == CONN_FLUSH); /* an answer is over */
    if (!conn->is_keep_alive || conn->is_broken) {
        conn_linger(conn);
        return;
    }
    conn_enter(conn, CONN_IDLE, conn_params(conn)->idle_timeout);
    if (conn->is_parsing) {
        return;
    }
    if (conn->ahead.len || conn->session.is_eof) {
        go_on(conn);
    } else if (conn->session.conns->is_grace_over) {
        drain(conn);
    }
}

/* ---- the exchange ---------------------------------------------------------------------------- */

static struct conn *conn_of_exchange(struct exchange *exchange)
{
    return conn_of(LIST_ENTRY(exchange, struct conn, exchange));
}

static void resume(struct exchange *exchange)
{
    start_reading(conn_of_exchange(exchange));
}

static void refuse(struct exchange *exchange)
{
    conn_message_refuse(conn_of_exchange(exchange));
}

static void break_off(struct exchange *exchange)
{
    conn_abort(conn_of_exchange(exchange));
}

static const struct exchange_ops exchange_ops = {
    .write = conn_answer_write,
    .end = conn_answer_end,
    .resume = resume,
    .refuse = refuse,
    .abort = break_off,
};

/* ---- time, draining -------------------------------------------------------------------------- */

/* The time of an incomplete request is over, or the client sends too little. */
static void check_reading(struct conn *conn, uint64_t now_ms)
{
    struct exchange *exchange = &conn->exchange;
    if (now_ms >= conn->session.deadline_ms || now_ms >= conn->session.conns->refuses_at_ms) {
        exchange_give_up(exchange, ST_TIMEOUT, "not complete in time", 408);
    } else if (exchange_is_upload_slow(exchange, now_ms)) {
        exchange_give_up(exchange, ST_TIMEOUT, "fewer bytes a second than --rate-min", 408);
    }
}

static void check_busy(struct conn *conn, uint64_t now_ms)
{
    if (exchange_is_answering(&conn->exchange)) {
        conn_answer_look(conn);
        if (now_ms >= conn->session.deadline_ms ||
            exchange_is_answer_slow(&conn->exchange, now_ms)) {
            conn_abort(conn);
        }
    } else if (now_ms >= conn->session.deadline_ms) { /* the scheduler watches it */
        conn_set_deadline(conn, conn_params(conn)->request_timeout);
    }
}

static struct conn *conn_of_session(const struct session *session)
{
    return conn_of(LIST_ENTRY((struct session *)(uintptr_t)session, struct conn, session));
}

/* A client that pauses takes as little memory as one that has not asked yet. */
static void check_idle(struct conn *conn, uint64_t now_ms)
{
    uint64_t deadline_ms = conn->session.deadline_ms;
    if (now_ms >= deadline_ms) {
        end_side(conn);
        close_now(conn);
    } else if (now_ms + conn_params(conn)->idle_timeout >= deadline_ms + FORGET_MS) {
        head_pattern_free(conn->known.pattern);
        conn->known.pattern = NULL;
        exchange_forget(&conn->exchange);
    }
}

static void check_deadline(struct session *session, uint64_t now_ms)
{
    struct conn *conn = conn_of_session(session);
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
        check_idle(conn, now_ms);
        break;
    case CONN_LINGER:
        if (now_ms >= session->deadline_ms) {
            close_now(conn);
        }
        break;
    case CONN_CLOSING:
        break;
    }
}

static void postpone(struct session *session, uint64_t pause_ms, uint64_t now_ms)
{
    session_postpone(session, pause_ms);
    exchange_restart_paces(&conn_of_session(session)->exchange, now_ms);
}

static bool is_quiet(const struct session *session)
{
    const struct conn *conn = conn_of_session(session);
    return !is_waiting(conn) && !(conn->state == CONN_IDLE && has_unread(conn));
}

static void abort_session(struct session *session)
{
    conn_abort(conn_of_session(session));
}

static void leave(struct session *session)
{
    struct conn *conn = conn_of_session(session);
    end_side(conn);
    conn_abort(conn);
}

static void drain_session(struct session *session)
{
    drain(conn_of_session(session));
}

static void go_on_session(struct session *session)
{
    go_on(conn_of_session(session));
}

static const struct session_ops session_ops = {
    .abort = abort_session,
    .leave = leave,
    .drain = drain_session,
    .check_deadline = check_deadline,
    .postpone = postpone,
    .is_quiet = is_quiet,
    .go_on = go_on_session,
};

/* ---- the protocol ---------------------------------------------------------------------------- */

/* The first request may come. In a drain a client whose connection had to open has it probably on
 * its way. */
static uint64_t first_timeout(const struct session_client *client)
{
    const struct params *params = client->conns->params;
    return client->before && client->conns->loop->is_draining ? params->drain_incomplete_timeout
                                                              : params->idle_timeout;
}

static bool accept_client(const struct session_client *client)
{
    struct conns *conns = client->conns;
    struct conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        return false;
    }
    conn->magic = CONN_MAGIC;
    transport_set_user(client->transport, &transport_user, conn);
    exchange_init(&conn->exchange, conns->requests, &exchange_ops, client->transport->peer.remote);
    buf_init(&conn->ahead, conns->params->pipeline_bytes_max + CONNS_READ_BYTES);
    enum share_taken place = session_begin(&conn->session, &session_ops, client);
    session_describe(&conn->session, &conn->exchange);
    conn->other = protocol_with_preface(conns->protocols);
    conn_enter(conn, CONN_IDLE, first_timeout(client));
    conn_message_init(conn);
    if (!client->before) { /* else it is being read */
        start_reading(conn);
    }
    if (place != SHARE_TAKEN) {
        conn_answer_turn_away(conn, place);
    }
    return true;
}

const struct protocol conn_protocol = {.name = "http/1.1", .accept = accept_client};
