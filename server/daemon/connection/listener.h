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
#include <stdint.h>

#include <uv.h>

#include "base/list.h"
#include "base/status.h"

struct conns;
struct loop;
struct notify;
struct options;
struct proxies;
struct tls;

#define LISTENERS_MAGIC 0x6c697374u

/* All of them, and what they borrow. The caller sets the borrowed members. */
struct listeners {
    uint32_t magic;
    struct loop *loop;
    struct conns *conns; /* that clients become */
    const struct options *options;
    const struct notify *notify; /* has the sockets that were handed over */
    const struct proxies *proxies;
    struct tls *tls;
    struct list all;
    uv_timer_t retry; /* accepts again after an error */
    int spare_fd;     /* owned; closed to make room for one accept(); -1: it is in use for that */
};

/* Begins with none. */
void listeners_init(struct listeners *listeners);

/* Call once the loop is initialised. */
void listeners_open(struct listeners *listeners);

/* Call when they are closed. */
void listeners_fini(struct listeners *listeners);

/*
 * Takes over the sockets that systemd hands over, and binds the addresses of the options, or the
 * default address. Nothing is accepted yet. The names of sockets (FileDescriptorName=) "admin",
 * "health", "tls", "admin-tls", "health-tls", "grpc" and "grpc-tls" say what they are for; a socket
 * with another name is public and plain. Called after tls_open().
 */
MUST_CHECK enum status listeners_bind_all(struct listeners *listeners, struct error *err);

/* Call when the daemon starts: its own sockets accept from now on, and all sockets for probes. */
MUST_CHECK enum status listeners_start_all(struct listeners *listeners, struct error *err);

/* Call when the first models are there: all listeners accept, and the log says where. */
void listeners_open_all(struct listeners *listeners);

/* Does a client wait to be accepted? */
bool listeners_has_waiting(const struct listeners *listeners);

/* Since the last call: has a client waited all the time, and none been accepted there? */
bool listeners_is_stuck(struct listeners *listeners);

void listeners_close_all(struct listeners *listeners);

#endif
