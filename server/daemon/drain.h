/* SPDX-License-Identifier: MIT */
/*
 * The stop. The first SIGTERM or SIGINT makes the daemon "not ready", takes the clients that wait
 * in the accept queues, closes the listening sockets and then the idle connections, and waits for
 * the other connections up to drain_timeout. A later signal ends the process at once. While the
 * first models are loading, the first signal does that.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_DRAIN_H
#define PTED_SERVER_DAEMON_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

struct server;

struct drain {
    uv_signal_t sigterm, sigint;
    uv_timer_t timer;       /* of the part that comes next: queues, idle connections, timeout */
    uint64_t begun_ns;      /* on the clock of uv_hrtime() */
    uint32_t accept_rounds; /* times that it has looked at the accept queues */
};

void drain_init(struct server *server);

/* From now on signals stop the daemon. */
void drain_watch_signals(struct server *server);

/* Stops it now. */
void drain_begin(struct server *server);

#endif
