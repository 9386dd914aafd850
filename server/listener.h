/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: addresses that we bind, and sockets that systemd bound for us. Loop thread.
 */
#ifndef PTED_SERVER_LISTENER_H
#define PTED_SERVER_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct server;

/* "ADDR:PORT" (numeric), "[ADDR6]:PORT" or "unix:PATH". Bound, not yet accepting. */
MUST_CHECK enum status listener_bind(struct server *server, const char *address, struct error *err);

/* Takes over a bound stream socket. */
MUST_CHECK enum status listener_adopt(struct server *server, int fd, struct error *err);

/* All of them accept from now on, and the log says where. */
MUST_CHECK enum status listener_start_all(struct server *server, struct error *err);

/* Does a client wait to be accepted? */
bool listener_has_waiting(const struct server *server);

void listener_close_all(struct server *server);

#endif
