/* SPDX-License-Identifier: MIT */
/*
 * What the daemon knows of a client's connection, whatever protocol it speaks: its transport, its
 * place, its turns, and a deadline. A protocol embeds one in a struct of its own and fills in a row
 * of functions (struct session_ops). What a session carries, one request after the other or many at
 * a time, only its protocol knows; each request is an exchange
 * (server/daemon/request/exchange.h).
 *
 * A session can hand its client over to another one, for example when TLS has chosen the protocol
 * (server/daemon/connection/opening.h). It ends only when its transport says that it is closed.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_SESSION_H
#define PTED_SERVER_DAEMON_CONNECTION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/share.h"
#include "base/status.h"
#include "server/daemon/loop/turns.h"
#include "server/daemon/request/exchange.h"
#include "server/http/transport.h"

struct conns;
struct session;

#define SESSION_MAGIC 0x73657373u

/* An unwanted body up to this size is read to keep the connection; otherwise the connection is
 * closed. A connection that lingers reads no more than this. */
#define SESSION_DISCARD_BYTES_MAX (64 << 10)

enum session_state {
    SESSION_QUIET,   /* it has no whole head of a request */
    SESSION_BUSY,    /* it has one, or answers it */
    SESSION_LINGER,  /* our side is shut, or will be; waits for the client to close */
    SESSION_CLOSING, /* the transport is being closed */
};

/* The functions of a protocol. */
struct session_ops {
    /* Ends it now: its requests are cancelled in whatever step they are. */
    void (*abort)(struct session *session);
    /* Likewise, but the client is told that nothing has been cut, if it can be. */
    void (*leave)(struct session *session);
    /* The daemon stops: says so to the client, whose requests are still answered. NULL: the
     * protocol has no word for it. */
    void (*warn)(struct session *session);
    /* Draining: closes if there is nothing to answer; otherwise after the answers. */
    void (*drain)(struct session *session);
    /* Looks whether a deadline has passed, its own or one of its requests. */
    void (*check_deadline)(struct session *session, uint64_t now_ms);
    /* The loop has stood still for |pause_ms|, in which nothing of the client was read: its
     * deadlines and its paces begin anew. session_postpone() moves |deadline_ms|. */
    void (*postpone)(struct session *session, uint64_t pause_ms, uint64_t now_ms);
    /* Of one that is not busy: has the client sent nothing that the loop has not seen? */
    bool (*is_quiet)(const struct session *session);
    /* Goes on with bytes that were read ahead: its turn has come, see turns_may_begin(). */
    void (*go_on)(struct session *session);
};

struct session {
    uint32_t magic;
    enum session_state state; /* set by session_set_state() */
    const struct session_ops *ops;
    struct conns *conns;         /* borrowed; outlives every session */
    struct transport *transport; /* owned, until it says that it is closed */
    struct list link;            /* in conns->all */
    struct list quiet_link;      /* in conns->places, by its state */
    struct turn_reader turn;     /* while a message waits for its turn */
    uint64_t deadline_ms;        /* of what it does now, on the loop's clock; the protocol's */
    uint64_t old_ms;             /* when it gets no more requests; UINT64_MAX: never */
    uint64_t place_client;       /* who is charged for its place, or would be */
    size_t discarded_bytes;      /* while lingering; until then the protocol's */
    enum listener_role role;     /* of the address that the client came to */
    bool is_unnamed;             /* a proxy has yet to say who the client is */
    bool has_place;              /* one of conns->places is its own */
    bool is_eof;                 /* the client sends nothing more; set by the protocol */
};

/* A client that a session is to have. */
struct session_client {
    struct conns *conns;
    struct transport *transport;
    enum listener_role role;
    struct session *before; /* that hands it over; NULL: the client is new */
    enum share_taken why;   /* of |before|, which found no place: why not */
    bool has_preface;       /* it has sent the preface of the protocol */
};

/*
 * Gives the session the client from now on, and its transport; |before|, which has neither any
 * more, is ended by its owner. Returns whether it has a place. If not, the protocol tells the
 * client why (places_refuse()), and lingers.
 */
MUST_CHECK enum share_taken session_begin(struct session *session, const struct session_ops *ops,
                                          const struct session_client *client);

/* Tells |exchange| who is at the other end: the listener knows it, or a proxy or a certificate has
 * said it. */
void session_describe(const struct session *session, struct exchange *exchange);

/* Call when the transport is closed, or another session has it. The owner frees the session after
 * that. */
void session_end(struct session *session);

/* Sets the state, on which the place of the session depends. */
void session_set_state(struct session *session, enum session_state state);
void session_set_deadline(struct session *session, uint64_t ms);
void session_postpone(struct session *session, uint64_t pause_ms);

/* Has it reached --connection-age? Its client is asked to come again by another connection. */
bool session_is_old(const struct session *session);

/* In CLOSING: closes the transport, which says no more than that it is closed. Once. */
void session_close(struct session *session);

/* In LINGER: nothing more is sent. Shuts our side; bytes that still come are discarded until the
 * deadline. False: it cannot be shut, so the protocol closes it. */
MUST_CHECK bool session_linger(struct session *session);

/* Call for a session that lingers: |bytes| have come, or our side is shut. False: the protocol
 * closes it. */
MUST_CHECK bool session_discard(struct session *session, size_t bytes);
MUST_CHECK bool session_note_shut(struct session *session, bool is_ok);

/* Does not look at received bytes before others have had their turn. */
static inline bool session_is_waiting(const struct session *session)
{
    return !list_is_empty(&session->turn.link);
}

/* Call when others need the place of a quiet one. */
void session_displace(struct session *session);

/* Does what struct turns_ops says, for sessions: |turn| is a session's. */
void session_go_on_reader(struct turn_reader *turn);

#endif
