/* SPDX-License-Identifier: MIT */
/*
 * The daemon as one object: the loop, what it listens on, who is connected, what it serves. Loop
 * thread only, but for |completed| and |wake|, through which workers hand requests back.
 */
#ifndef PTED_SERVER_SERVER_H
#define PTED_SERVER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/list.h"
#include "base/status.h"
#include "server/model.h"
#include "server/notify.h"
#include "server/options.h"

struct hal_device;
struct hal_pool;
struct request;

#define SERVER_READ_BYTES (64 << 10)
#define SERVER_IDLE_REQUESTS_MAX 64

struct server {
    const struct options *options; /* borrowed; outlives the server */
    const struct params *params;   /* of |options| */
    uv_loop_t loop;
    uv_thread_t thread;        /* the loop's */
    struct hal_device *device; /* shared: ref held */
    struct hal_pool *pool;     /* owned */
    struct models models;
    struct notify notify;

    struct list listeners;
    struct list conns;
    uint32_t conn_count;
    struct list idle_requests; /* to be used again */
    uint32_t idle_request_count;
    uint32_t busy_request_count; /* also those whose client has gone */
    uint8_t *read_buffer;        /* owned; SERVER_READ_BYTES, for whoever reads now */

    uv_async_t wake;
    _Atomic(struct request *) completed; /* a stack of what workers have finished */

    uv_timer_t sweep;    /* looks at every connection's deadline; runs while there is one */
    uv_timer_t watchdog; /* tells systemd that the loop turns */
    uv_timer_t drain;    /* first the accept queue is emptied, then drain_timeout */
    uv_signal_t sigterm, sigint;
    bool is_draining;
    bool is_closing;            /* handles are being closed; the loop ends soon */
    bool has_loop, has_handles; /* how far server_init() came */
};

/* Opens the device, takes or binds the sockets, loads the models. Nothing is accepted before run.
 */
MUST_CHECK enum status server_init(struct server *server, const struct options *options,
                                   struct error *err);

/* Serves until a signal has ended it and the last request is answered. */
MUST_CHECK enum status server_run(struct server *server, struct error *err);

/* Also after a failed server_init(). */
void server_fini(struct server *server);

/* A connection was added: its deadline is looked at from now on. */
void server_start_sweep(struct server *server);

/* A connection or a request is gone: ends the loop when it was the last that a drain waited for. */
void server_check_drained(struct server *server);

/* Any thread: |request| is finished by its worker; its loop half follows on the loop. */
void server_complete(struct server *server, struct request *request);

#endif
