/* SPDX-License-Identifier: MIT */
/*
 * Places for connections, --connection-count-max of them. A connection has a place from accept()
 * until it is being closed.
 *
 * - Each role of an address has places that only its clients get, if the daemon has such an
 *   address: half of all places are kept for the public ones, a sixteenth for administrators, a
 *   sixteenth for probes. So nobody at --listen keeps a probe out.
 * - Within a role one client has at most a share (base/share.h).
 * - When a client finds no place, a quiet connection gives its own up: the one that has had no
 *   whole head of a request for the longest time. It is one of the same client, or of a client
 *   that has more places than the new one. So many clients cannot push out one that has few. Half
 *   a head is no more than silence. Only if there is no such connection is the client turned away
 *   with 503.
 *
 * A connection of a proxy that begins with a header has no place until the header has come, because
 * nobody knows before who is charged for it. There are at most a quarter as many of these as
 * places; the one that has waited for the longest time gives way.
 *
 * Clients that are turned away have no place. A few of them may linger.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_PLACES_H
#define PTED_SERVER_DAEMON_CONNECTION_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/list.h"
#include "base/share.h"
#include "base/status.h"
#include "server/daemon/request/exchange.h"

struct session;

struct places {
    uint32_t size;
    uint32_t used;                      /* by all roles */
    uint32_t kept[LISTENER_ROLE_COUNT]; /* 0: there is no such address */
    bool has_role[LISTENER_ROLE_COUNT];
    struct share shares[LISTENER_ROLE_COUNT]; /* by client */
    struct list quiet[LISTENER_ROLE_COUNT];   /* connections without a request, longest first */
    struct list away;                         /* turned away, oldest first */
    uint32_t away_count;
    struct list unnamed; /* see places_await_name(), oldest first */
    uint32_t unnamed_count;
    struct counter displaced; /* connections that gave their place up */
};

/* Begins with public addresses only, until places_add_role() says more. */
void places_init(struct places *places, uint32_t size);
void places_fini(struct places *places);
void places_resize(struct places *places, uint32_t size);
void places_add_role(struct places *places, enum listener_role role);

/* Returns how many connections may wait for a name, beside |size| places: a quarter of them, or a
 * few. */
uint32_t places_unnamed_max(uint32_t size);

/* |session| is new; places_take() follows when it is known who it is. Another one may be closed. */
void places_await_name(struct places *places, struct session *session);

/* Takes a place for |session|, which is new and in no state yet, or has waited for its name.
 * Another connection may be closed for it. Otherwise the connection is to be turned away;
 * SHARE_CLIENT_IS_UP: its client has its share. */
MUST_CHECK enum share_taken places_take(struct places *places, struct session *session);

/* |to| has the place of |from|, if that has one. Both are of one client. */
void places_hand_over(struct places *places, struct session *from, struct session *to);

/* |session| changes its state; in SESSION_CLOSING it gives its place back. */
void places_note_state(struct places *places, struct session *session);

/* Says to the client of |session| why places_take() has said |why|: ST_EXHAUSTED. */
enum status places_refuse(const struct places *places, const struct session *session,
                          enum share_taken why, struct error *err);

#endif
