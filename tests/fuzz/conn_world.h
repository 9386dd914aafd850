/* SPDX-License-Identifier: MIT */
/*
 * A server in this process, which serves tests/models/add.pte on a Unix socket, and its clients.
 * Nothing runs between the calls of this header but the workers: the loop turns in world_turn() and
 * in what is made of it. One world a process; one thread.
 */
#ifndef PTED_TESTS_FUZZ_CONN_WORLD_H
#define PTED_TESTS_FUZZ_CONN_WORLD_H

#include <stdbool.h>

#include "base/buf.h"
#include "server/server.h"

#define WORLD_CLIENTS_MAX 5

struct client {
    int fd; /* -1: closed by ourselves */
    struct buf received;
    bool is_reading;   /* takes what the server sends */
    bool has_end;      /* the server has closed */
    bool is_short;     /* not all could be sent: the server did not read on */
    bool is_shut_down; /* sends nothing more */
};

struct world {
    struct server server;
    struct client clients[WORLD_CLIENTS_MAX];
    size_t client_count; /* that have been opened in this run */
};

/* Starts the server the first time; stops it at the end of the process. */
struct world *world_get(void);

/* NULL: there are enough. */
struct client *world_connect(struct world *world);

/* As much as the server takes, with turns of the loop in between. */
void world_send(struct world *world, struct client *client, struct span bytes);
void world_shut_down(struct client *client);
void world_close(struct client *client);

/* One turn of the loop, for what is ready now; clients read. */
void world_turn(struct world *world);

/* Turns until everything that was sent has been looked at and no request is being worked on. */
void world_settle(struct world *world);

/* To all but the client that came first: the time that the state of its connection may last is
 * over; the server stops, so idle connections close. */
void world_time_out(struct world *world);
void world_drain(struct world *world);

/* Closes all clients and waits for the server to have forgotten them. */
void world_end(struct world *world);

#endif
