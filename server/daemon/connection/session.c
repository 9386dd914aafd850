/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/connection/session.h"

#include "base/check.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/loop/loop.h"
#include "server/process/log.h"
#include "server/process/options.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* A new client has its place now, or later, once a proxy has said who it is. */
static enum share_taken take_place(struct session *session)
{
    struct places *places = &session->conns->places;
    if (session->transport->peer.is_unnamed) {
        places_await_name(places, session);
        return SHARE_TAKEN;
    }
    return places_take(places, session);
}

/* 2^32 divided by the golden ratio: multiples of it are spread evenly, modulo 2^32. */
#define GOLDEN 0x9e3779b9u

/* Clients that came together, as after a restart, do not leave together. */
static uint64_t age_of_next(struct conns *conns)
{
    uint64_t age_ms = conns->params->connection_age;
    if (age_ms == 0) {
        return UINT64_MAX;
    }
    conns->age_spread += GOLDEN;
    uint64_t fifth = age_ms / 5;
    return uv_now(&conns->loop->uv) + age_ms - fifth / 2 + (fifth * conns->age_spread >> 32);
}

enum share_taken session_begin(struct session *session, const struct session_ops *ops,
                               const struct session_client *client)
{
    OBJ_CHECK(client->conns, CONNS_MAGIC);
    must(client->transport && client->role < LISTENER_ROLE_COUNT);
    struct conns *conns = client->conns;
    session->magic = SESSION_MAGIC;
    session->state = SESSION_QUIET;
    session->ops = ops;
    session->conns = conns;
    session->transport = client->transport;
    session->place_client = client->transport->peer.place_client;
    session->role = client->role;
    list_init(&session->turn.link);
    list_init(&session->quiet_link);
    list_push_back(&conns->all, &session->link);
    conns_note_new(conns);
    session->old_ms = client->before ? client->before->old_ms : age_of_next(conns);
    if (client->before) {
        client->before->transport = NULL;
        places_hand_over(&conns->places, client->before, session);
        return client->why;
    }
    return take_place(session);
}

void session_describe(const struct session *session, struct exchange *exchange)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    const struct transport *transport = session->transport;
    exchange->client = transport->peer.client;
    exchange->via = transport->peer.via[0] ? transport->peer.via : NULL;
    exchange->is_local = transport->peer.is_local;
    exchange->is_proxy = transport->peer.is_proxy;
    exchange->is_for_grpc = transport->peer.is_for_grpc;
    exchange->role = session->role;
    exchange->tls_version = transport->version;
    exchange->tls_subject = transport->subject;
}

void session_end(struct session *session)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    must(!session->has_place && !session_is_waiting(session));
    session->magic = 0;
    list_remove(&session->link);
    conns_note_gone(session->conns);
}

void session_set_state(struct session *session, enum session_state state)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    must(session->state != SESSION_CLOSING);
    session->state = state;
    places_note_state(&session->conns->places, session);
}

void session_set_deadline(struct session *session, uint64_t ms)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    session->deadline_ms = uv_now(&session->conns->loop->uv) + ms;
}

void session_postpone(struct session *session, uint64_t pause_ms)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    session->deadline_ms += pause_ms;
}

bool session_is_old(const struct session *session)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    return uv_now(&session->conns->loop->uv) >= session->old_ms;
}

/* ---- the end --------------------------------------------------------------------------------- */

void session_close(struct session *session)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    must(session->state == SESSION_CLOSING);
    list_remove(&session->turn.link);
    transport_close(session->transport);
}

/* Closing a socket with unread bytes resets it, and the reset may overtake the answer. So only our
 * side is closed, and further bytes are discarded for a while. */
bool session_linger(struct session *session)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    must(session->state == SESSION_LINGER);
    session->discarded_bytes = 0;
    return transport_shutdown(session->transport);
}

bool session_discard(struct session *session, size_t bytes)
{
    must(session->state == SESSION_LINGER);
    session->discarded_bytes += bytes;
    return session->discarded_bytes <= SESSION_DISCARD_BYTES_MAX;
}

bool session_note_shut(struct session *session, bool is_ok)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    return is_ok && !session->is_eof;
}

/* ---- what others ask for --------------------------------------------------------------------- */

void session_displace(struct session *session)
{
    OBJ_CHECK(session, SESSION_MAGIC);
    if (log_gate_admits(&session->conns->loop->log, LOG_KIND_REFUSED,
                        session->transport->peer.client)) {
        log_line(LOG_INFO, "connection: closed while idle, others need its place");
    }
    session->ops->leave(session);
}

void session_go_on_reader(struct turn_reader *turn)
{
    struct session *session;
    OBJ_CAST(session, LIST_ENTRY(turn, struct session, turn), SESSION_MAGIC);
    session->ops->go_on(session);
}
