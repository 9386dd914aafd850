/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: addresses that we bind, and sockets that systemd bound for us. Loop thread.
 *
 * Accepting never ends for lack of something. Without memory for a connection, or without a
 * descriptor left for it, the client is accepted all the same and turned away. If even that is
 * impossible, accepting goes on a moment later.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_LISTENER_H
#define PTED_SERVER_DAEMON_CONNECTION_LISTENER_H

#include <stdbool.h>

#include "base/status.h"

struct server;

/*
 * Takes over the sockets that systemd hands over, and binds the addresses of the options, or the
 * default address. Nothing is accepted yet. The names of sockets (FileDescriptorName=) "admin",
 * "health", "tls", "admin-tls" and "health-tls" say what they are for; a socket with another name
 * is public and plain. Called after tls_open().
 */
MUST_CHECK enum status listener_bind_all(struct server *server, struct error *err);

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
