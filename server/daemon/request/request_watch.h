/* SPDX-License-Identifier: MIT */
/*
 * Calls of gRPC that are answered again whenever the answer has changed, until their clients go:
 * Health's Watch. Such a request stays in step READ. Its handler looks at the state of the daemon
 * some times a second, and prints nothing while that is as it was. It is one of the requests in
 * flight of its client (struct requests), which bounds them. Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_REQUEST_WATCH_H
#define PTED_SERVER_DAEMON_REQUEST_REQUEST_WATCH_H

#include <uv.h>

#include "base/list.h"

struct loop;
struct request;

struct request_watches {
    struct list all;
    uv_timer_t timer; /* runs while there are any */
};

/* Call once the loop is initialised. */
void request_watches_init(struct request_watches *watches, struct loop *loop);

/* Call when the request has had its first look. */
void request_watch_begin(struct request *request);

#endif
