/* SPDX-License-Identifier: MIT */
/*
 * Recovery of a lost device. Calls in flight fail with 503, the models are not ready, and device
 * and models are opened and loaded again on a thread. If the device cannot be opened again, or is
 * lost again and again, it is given up after a few attempts: then the CPU computes.
 *
 * Loop thread only.
 */
#ifndef PTED_SERVER_DAEMON_SERVING_RECOVERY_H
#define PTED_SERVER_DAEMON_SERVING_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"

struct changes;
struct loop;
struct notify;
struct proving;
struct reload;
struct serving;
struct servings;

#define RECOVERY_MAGIC 0x7265636fu

/* What a recovery uses; all of it is borrowed. */
struct recovery_uses {
    struct loop *loop;
    struct servings *servings;
    struct changes *changes;
    struct proving *proving;
    const struct reload *reload; /* has the settings of models */
    struct notify *notify;
};

struct recovery {
    uint32_t magic;
    struct recovery_uses uses;
    bool is_active;
    unsigned tries;   /* attempts in a row */
    uint64_t done_ms; /* when the last attempt ended */
    uint64_t shed_ms; /* until then requests that hold the old device may end */
    uv_timer_t timer; /* starts the next attempt */
    uv_work_t work;
    /* Input and output of the work; the loop leaves them alone meanwhile. */
    const char *device_name;
    struct serving *before; /* borrowed: only this recovery replaces it */
    struct serving *fresh;
    struct error err;
};

/* |device_name| is the one that the user asked for. */
void recovery_init(struct recovery *recovery, const struct recovery_uses *uses,
                   const char *device_name);

/* Call when the device of the serving in use is lost; no effect while a recovery is under way. */
void recovery_begin(struct recovery *recovery);

#endif
