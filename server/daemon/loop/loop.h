/* SPDX-License-Identifier: MIT */
/*
 * The event loop, and what all parts of the daemon share on it: an alarm for what is due, threads
 * for what takes long, a gate for lines of the log, a watch over long turns, and how far the daemon
 * is between its start and its end. It knows no model, no request and no connection; the parts
 * borrow it. Only the loop thread uses it.
 */
#ifndef PTED_SERVER_DAEMON_LOOP_LOOP_H
#define PTED_SERVER_DAEMON_LOOP_LOOP_H

#include <stdbool.h>

#include <uv.h>

#include "base/status.h"
#include "server/daemon/loop/handback.h"
#include "server/daemon/loop/log_gate.h"
#include "server/daemon/loop/turn_watch.h"
#include "server/daemon/loop/turns.h"

struct alarm;
struct offload;

struct loop {
    uv_loop_t uv;
    uv_thread_t thread;      /* that turns it */
    struct alarm *alarm;     /* borrowed */
    struct offload *offload; /* borrowed */
    struct log_gate log;
    struct turn_watch watch;
    struct turns turns;       /* the caller initialises it */
    struct handback handback; /* and opens this */
    bool is_starting;         /* the first models are loading, or failed: calls wait for them */
    bool is_draining; /* no more clients are taken, and those that are there come to an end */
    bool is_closing;  /* handles are being closed; the loop ends soon */
    bool has_uv;      /* |uv| is initialised */
};

/* Makes a loop, which the thread that calls this turns. |steps| are the steps of requests, for the
 * watch over turns. The caller sets |alarm| and |offload|. loop_fini() also after a failure; then
 * the loop's handles are closed and it has ended. */
MUST_CHECK enum status loop_init(struct loop *loop, const struct turn_steps *steps,
                                 struct error *err);
void loop_fini(struct loop *loop);

/* Calls |fn| on the loop whenever |fd|, which the caller has just opened, can be read. -1: it could
 * not be opened, and errno says why. |poll->data| is |data|, unless |poll| could not be made and
 * need not be closed. ST_SYSTEM. */
MUST_CHECK enum status loop_watch(uv_loop_t *uv, uv_poll_t *poll, int fd, uv_poll_cb fn, void *data,
                                  struct error *err);

#endif
