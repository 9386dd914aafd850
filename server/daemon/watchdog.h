/* SPDX-License-Identifier: MIT */
/*
 * Systemd's watchdog gets a sign of life as long as everything gets on: the loop, which gives it,
 * and the parts that the loop depends on. A part is stuck when it has had work for a whole interval
 * and has completed none of it: clients that wait to be accepted, jobs on the device, steps of
 * requests on libuv's pool. Then the log names it, and there is no sign of life until it gets on.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_WATCHDOG_H
#define PTED_SERVER_DAEMON_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "server/daemon/loop/watched.h"

struct listeners;
struct loop;
struct notify;
struct serving;
struct servings;

#define WATCHDOG_MAGIC 0x77646f67u

/* What it looks at, and by whom it gives signs; all of it is borrowed. */
struct watchdog_uses {
    struct loop *loop;
    const struct servings *servings;
    struct listeners *listeners;
    const struct notify *notify;
};

struct watchdog {
    uint32_t magic;
    struct watchdog_uses uses;
    uv_timer_t timer;
    const struct serving *serving; /* the serving whose |device| was seen */
    struct watched device, pool;
    bool is_silent; /* something is stuck */
};

void watchdog_init(struct watchdog *watchdog, const struct watchdog_uses *uses);

/* Begins to tell systemd that the loop turns; without effect where systemd does not ask for it. */
void watchdog_start(struct watchdog *watchdog);

#endif
