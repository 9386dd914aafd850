/* SPDX-License-Identifier: MIT */
/*
 * When the device is lost: calls in flight fail with 503, the models are not ready, and everything
 * is opened and loaded again beside the loop. A device that cannot be had again, or that is lost
 * again and again, is given up after a few tries: the CPU computes then.
 *
 * Loop thread only.
 */
#ifndef PTED_SERVER_RECOVERY_H
#define PTED_SERVER_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"

struct server;
struct serving;

struct recovery {
    bool is_active;
    unsigned tries;   /* in a row */
    uint64_t done_ms; /* when the last one was over */
    uint64_t shed_ms; /* until then requests may end that hold the old device */
    uv_timer_t timer; /* starts the next try */
    uv_work_t work;
    /* What the work needs and gives; the loop leaves them alone meanwhile. */
    const char *device_name;
    struct serving *fresh;
    struct error err;
};

void recovery_init(struct server *server);

/* The device of server->serving is lost; no effect while that is being seen to. */
void recovery_begin(struct server *server);

#endif
