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

struct access_log;
struct changes;
struct conns;
struct listeners;
struct loop;
struct notify;
struct params;
struct proving;
struct requests;

#define DRAIN_MAGIC 0x6472616eu

/* What a drain uses; all of it is borrowed. */
struct drain_uses {
    struct loop *loop;
    const struct params *params;
    struct listeners *listeners;
    struct conns *conns;
    const struct requests *requests;
    struct changes *changes;
    struct proving *proving;
    struct access_log *access_log;
    const struct notify *notify;
    void (*end)(void *owner); /* nothing is left that it waits for: ends the loop */
    void *owner;
};

struct drain {
    uint32_t magic;
    struct drain_uses uses;
    uv_signal_t sigterm, sigint;
    uv_timer_t timer;       /* of the part that comes next: queues, idle connections, timeout */
    uint64_t begun_ns;      /* on the clock of uv_hrtime() */
    uint32_t accept_rounds; /* times that it has looked at the accept queues */
};

void drain_init(struct drain *drain, const struct drain_uses *uses);

/* Lets signals stop the daemon from now on. */
void drain_watch_signals(struct drain *drain);

/* Stops it now. */
void drain_begin(struct drain *drain);

/* Call when a connection or a request is gone, or a change is over: was it the last that a drain
 * waits for? */
void drain_check(struct drain *drain);

#endif
