/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: addresses that we bind, and sockets that systemd bound for us. Loop thread.
 *
 * Accepting never ends for want of something: without memory for a connection, or with no
 * descriptor left for it, the client is accepted all the same and turned away; where not even that
 * is possible, accepting goes on a moment later.
 */
#ifndef PTED_SERVER_LISTENER_H
#define PTED_SERVER_LISTENER_H

#include <stdbool.h>

#include "base/status.h"

struct server;

/*
 * One of --listen (server/address.h), bound and not yet accepting. Of a name that is several
 * addresses all are bound, to one port; those of a family that this machine lacks are left out as
 * long as one remains.
 */
MUST_CHECK enum status listener_bind(struct server *server, const char *text, struct error *err);

/* Takes over a bound stream socket. */
MUST_CHECK enum status listener_adopt(struct server *server, int fd, struct error *err);

/* All of them accept from now on, and the log says where. */
MUST_CHECK enum status listener_start_all(struct server *server, struct error *err);

/* Does a client wait to be accepted? */
bool listener_has_waiting(const struct server *server);

/* Since the last call: has somebody waited all the time, and nobody been accepted there? */
bool listener_is_stuck(struct server *server);

void listener_close_all(struct server *server);

#endif
