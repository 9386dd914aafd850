/* SPDX-License-Identifier: MIT */
/*
 * A server in this process that serves tests/models/add.pte on a Unix socket, and its clients.
 * Between calls of this header only the workers run: the loop turns only in world_turn() and in the
 * functions built on it. One world for each process; one thread.
 */
#ifndef PTED_TESTS_FUZZ_CONN_WORLD_H
#define PTED_TESTS_FUZZ_CONN_WORLD_H

#include <stdbool.h>

#include "base/buf.h"
#include "server/daemon/server.h"

#define WORLD_CLIENTS_MAX 5

struct client {
    int fd; /* -1: closed by this side */
    struct buf received;
    bool is_reading;   /* reads what the server sends */
    bool has_end;      /* the server has closed */
    bool is_short;     /* the server stopped reading before everything was sent */
    bool is_shut_down; /* sends nothing more */
};

struct world {
    struct server server;
    struct client clients[WORLD_CLIENTS_MAX];
    size_t client_count; /* opened in this run */
};

/* Starts the server at the first call; it stops when the process ends. */
struct world *world_get(void);

/* NULL: there are enough clients. */
struct client *world_connect(struct world *world);

/* Sends as much as the server accepts, with turns of the loop in between. */
void world_send(struct world *world, struct client *client, struct span bytes);
void world_shut_down(struct client *client);
void world_close(struct client *client);

/* One turn of the loop, for events that are ready now; clients read. */
void world_turn(struct world *world);

/* Turns the loop until the server has seen everything that was sent and works on no request. */
void world_settle(struct world *world);

/* For all clients except the first: the timeout of the connection's present state is over; the
 * server drains, so idle connections close. */
void world_time_out(struct world *world);
void world_drain(struct world *world);

/* Closes all clients and waits until the server has released them. */
void world_end(struct world *world);

#endif
