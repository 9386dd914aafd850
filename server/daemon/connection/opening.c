/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/connection/opening.h"

#include <stdlib.h>

#include "base/check.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/protocol.h"
#include "server/daemon/loop/loop.h"
#include "server/process/options.h"

/* It carries nothing: there is a session alone. */
static struct session *session_of(void *user)
{
    struct session *session;
    OBJ_CAST(session, user, SESSION_MAGIC);
    return session;
}

static void end(struct session *session)
{
    session_end(session);
    free(session);
}

static void do_abort(struct session *session)
{
    if (session->state != SESSION_CLOSING) {
        session_set_state(session, SESSION_CLOSING);
        session_close(session);
    }
}

/* Nothing more is sent, and nothing more is wanted. */
static void linger(struct session *session)
{
    session_set_state(session, SESSION_LINGER);
    session_set_deadline(session, session->conns->params->linger_timeout);
    if (!session_linger(session)) {
        do_abort(session);
    }
}

/* |why|: the client has no place. */
static void hand_over(struct session *session, enum share_taken why)
{
    const struct session_client client = {.conns = session->conns,
                                          .transport = session->transport,
                                          .role = session->role,
                                          .before = session,
                                          .why = why};
    const struct protocol *protocol =
        protocol_find(session->conns->protocols, session->transport->protocol);
    if (protocol->accept(&client)) {
        end(session);
    } else {
        do_abort(session);
    }
}

/* Nobody hears why before TLS is open. */
static void turn_away(struct session *session)
{
    counter_add(&session->conns->counts.turned_away, 1);
    linger(session);
}

/* ---- the user of the transport --------------------------------------------------------------- */

/* The header of a proxy has come: now the client needs a place. */
static void on_named(struct session *session)
{
    if (!session->is_unnamed) {
        return; /* the daemon is ending it */
    }
    session->place_client = session->transport->peer.place_client;
    enum share_taken why = places_take(&session->conns->places, session);
    session_set_state(session, SESSION_QUIET);
    if (why == SHARE_TAKEN) {
        return; /* OPENED comes next, or TLS */
    }
    if (session->transport->is_opening) {
        turn_away(session);
    } else {
        hand_over(session, why);
    }
}

static void on_opened(struct session *session)
{
    if (session->state == SESSION_QUIET) { /* otherwise it was turned away */
        hand_over(session, SHARE_TAKEN);
    }
}

static void on_bytes(struct session *session, size_t bytes)
{
    counter_add(&session->conns->counts.received_bytes, bytes);
    if (!session_discard(session, bytes)) {
        do_abort(session);
    }
}

static void on_received(void *user, enum transport_event event, struct span bytes)
{
    struct session *session = session_of(user);
    turn_watch_enter(&session->conns->loop->watch, TURN_RECEIVE);
    switch (event) {
    case TRANSPORT_BYTES:
        on_bytes(session, bytes.len);
        break;
    case TRANSPORT_NO_ROOM:
        break; /* there always is some */
    case TRANSPORT_END:
        session->is_eof = true;
        do_abort(session);
        break;
    case TRANSPORT_BROKEN:
        do_abort(session);
        break;
    case TRANSPORT_NAMED:
        on_named(session);
        break;
    case TRANSPORT_OPENED:
        on_opened(session);
        break;
    case TRANSPORT_REFUSED:
        linger(session);
        break;
    }
}

static struct transport_room on_room(void *user)
{
    return (struct transport_room){session_of(user)->conns->read_buffer, CONNS_READ_BYTES};
}

static void on_shut(void *user, bool is_ok)
{
    struct session *session = session_of(user);
    if (!session_note_shut(session, is_ok)) {
        do_abort(session);
    }
}

static void on_closed(void *user)
{
    end(session_of(user));
}

static const struct transport_user transport_user = {
    .room = on_room,
    .received = on_received,
    .shut = on_shut,
    .closed = on_closed,
};

/* ---- the session ----------------------------------------------------------------------------- */

/* The deadline sees to it. */
static void do_drain(struct session *session)
{
    (void)session;
}

static void check_deadline(struct session *session, uint64_t now_ms)
{
    if (now_ms >= session->deadline_ms) {
        do_abort(session);
    }
}

static void postpone(struct session *session, uint64_t pause_ms, uint64_t now_ms)
{
    (void)now_ms;
    session_postpone(session, pause_ms);
}

/* What a client has sent of a handshake is no request. */
static bool is_quiet(const struct session *session)
{
    (void)session;
    return true;
}

static void go_on(struct session *session)
{
    (void)session;
    unreachable(); /* it waits for no turn */
}

static const struct session_ops session_ops = {
    .abort = do_abort,
    .leave = do_abort,
    .drain = do_drain,
    .check_deadline = check_deadline,
    .postpone = postpone,
    .is_quiet = is_quiet,
    .go_on = go_on,
};

bool opening_accept(struct conns *conns, struct transport *transport, enum listener_role role)
{
    OBJ_CHECK(conns, CONNS_MAGIC);
    must(role < LISTENER_ROLE_COUNT);
    const struct session_client client = {.conns = conns, .transport = transport, .role = role};
    if (!transport->is_opening) {
        return protocol_find(conns->protocols, transport->protocol)->accept(&client);
    }
    struct session *session = calloc(1, sizeof(*session));
    if (!session) {
        return false;
    }
    transport_set_user(transport, &transport_user, session);
    enum share_taken place = session_begin(session, &session_ops, &client);
    session_set_state(session, SESSION_QUIET);
    session_set_deadline(session, conns->params->header_timeout);
    transport_read(transport, true);
    if (place != SHARE_TAKEN) {
        turn_away(session);
    }
    return true;
}
