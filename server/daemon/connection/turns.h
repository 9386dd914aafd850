/* SPDX-License-Identifier: MIT */
/*
 * How long a turn of the event loop may be. A client can send many requests at once, and many calls
 * can end at the same moment. If the loop answered all of them before it looked at its sockets
 * again, everybody else would wait. So a turn begins nothing more after TURNS_NS. The rest waits in
 * two rows, oldest first: connections whose next message has come, which take turns with a message
 * each, and requests that a thread has given back or that do their work in pieces.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_TURNS_H
#define PTED_SERVER_DAEMON_CONNECTION_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/list.h"

struct conn;
struct request;
struct server;

#define TURNS_NS 1000000

#define TURNS_MAGIC 0x7475726eu

struct turns {
    uint32_t magic;
    uv_prepare_t prepare;     /* a turn has ended: the loop is about to look at the sockets */
    uv_idle_t idle;           /* active while something waits: then the loop does not sleep */
    uint64_t number;          /* of this turn */
    struct list conns;        /* that wait for their turn, by turn_link */
    const struct conn *first; /* whose turn it is, of them */
    struct request *requests, **last; /* that wait to go on, by |next|; where the next one is put */
};

void turns_init(struct server *server);

/* In this turn, more can be begun. */
bool turns_has_time(struct server *server);

/* May |conn| begin with a message? If not, it waits from now on, and conn_go_on() is called. */
bool turns_may_begin(struct conn *conn);

/* Calls request_go_on() for |request|, whose call or work on a thread has ended, and for the
 * requests behind it by |next|; now if the turn has time. */
void turns_add(struct server *server, struct request *request);

/* The process ends: all of these have their turn now. */
void turns_end(struct server *server);

#endif
