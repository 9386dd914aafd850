/* SPDX-License-Identifier: MIT */
/*
 * The protocols that clients of a connection may speak: one row each, in protocol.c, in the order
 * in which TLS prefers them (RFC 7301). Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_PROTOCOL_H
#define PTED_SERVER_DAEMON_CONNECTION_PROTOCOL_H

#include <stdbool.h>

#include "base/bytes.h"
#include "server/daemon/connection/session.h"

struct protocol {
    const char *name; /* as TLS calls it: of 1 to 255 bytes */
    /* What every client of it sends first, even if TLS has not chosen it. NULL: it has none. */
    const char *preface;
    /* Makes a session for the client; its transport is open, and it has a name. False: there is no
     * memory, and nothing has changed. */
    bool (*accept)(const struct session_client *client);
};

/* All of them; the last one is what a client speaks that names none. NULL ends the list. */
extern const struct protocol *const protocols_all[];

/* Returns the protocol that TLS has chosen; |name| is empty if it has not. */
const struct protocol *protocol_find(const struct protocol *const *protocols, struct span name);

/* Returns the first one with a preface, or NULL. */
const struct protocol *protocol_with_preface(const struct protocol *const *protocols);

/* Returns their names for TLS, as struct tls_files wants them. */
const uint8_t *protocol_names(void);

#endif
