/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: addresses that we bind, and sockets that systemd bound for us. Loop thread.
 *
 * Accepting never ends for lack of something. Without memory for a connection, or without a
 * descriptor left for it, the client is accepted all the same and turned away. If even that is
 * impossible, accepting goes on a moment later.
 */
#ifndef PTED_SERVER_CONNECTION_LISTENER_H
#define PTED_SERVER_CONNECTION_LISTENER_H

#include <stdbool.h>

#include "base/status.h"
#include "server/request/exchange.h"

struct server;

/* The role and the way of a socket that systemd hands over, by its name (FileDescriptorName=):
 * "admin", "health", "tls", "admin-tls", "health-tls"; other names are public and plain. */
struct listener_kind {
    enum listener_role role;
    bool is_tls;
};
struct listener_kind listener_kind_find(const char *name);

/*
 * Binds one --listen (server/http/address.h), without accepting yet. Addresses of TLS come after
 * tls_open(). If a name has several
 * addresses all are bound, to one port. Addresses of a family that this machine lacks are left out
 * as long as one remains.
 */
MUST_CHECK enum status listener_bind(struct server *server, const char *text,
                                     enum listener_role role, struct error *err);

/* Takes over a bound stream socket. */
MUST_CHECK enum status listener_adopt(struct server *server, int fd, struct listener_kind kind,
                                      struct error *err);

/* The daemon starts: its own sockets accept from now on, and all sockets for probes. */
MUST_CHECK enum status listener_start_all(struct server *server, struct error *err);

/* The first models are there: all listeners accept, and the log says where. */
void listener_open_all(struct server *server);

/* Does a client wait to be accepted? */
bool listener_has_waiting(const struct server *server);

/* Since the last call: has a client waited all the time, and none been accepted there? */
bool listener_is_stuck(struct server *server);

void listener_close_all(struct server *server);

#endif
