/* SPDX-License-Identifier: MIT */
/*
 * A client comes. If its transport has yet to open, because a proxy has to say who the client is or
 * TLS has to agree, a small session waits for that. Then the protocol is known (protocol.h): TLS
 * has chosen it, or the client speaks the last one. The protocol's own session takes the client
 * over, with its place.
 *
 * A client of TLS that finds no place costs no handshake: its connection ends. Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_OPENING_H
#define PTED_SERVER_DAEMON_CONNECTION_OPENING_H

#include <stdbool.h>

#include "base/check.h"
#include "server/daemon/connection/session.h"

/* Accepts the client behind |transport|, which then belongs to a session. |role|: of the address
 * that the client came to. False: there is no memory. */
MUST_CHECK bool opening_accept(struct conns *conns, struct transport *transport,
                               enum listener_role role);

#endif
