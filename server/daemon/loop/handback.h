/* SPDX-License-Identifier: MIT */
/*
 * Workers hand jobs back to the loop, where they have their turns (server/daemon/loop/turns.h).
 * Loop thread, but handback_push().
 */
#ifndef PTED_SERVER_DAEMON_LOOP_HANDBACK_H
#define PTED_SERVER_DAEMON_LOOP_HANDBACK_H

#include <stdatomic.h>

#include <uv.h>

#include "base/status.h"
#include "server/daemon/loop/turns.h"

struct handback {
    struct turns *turns; /* borrowed */
    uv_poll_t wake;      /* of |fd| */
    int fd;              /* owned: an eventfd; written when |jobs| gets its first one; or -1 */
    _Atomic(struct turn_job *) jobs; /* a stack of those that workers have finished */
};

/* Begins without a descriptor. */
void handback_init(struct handback *handback, struct turns *turns);

/* Opens a descriptor that is at least |fd_min|, if the process may have that many. ST_SYSTEM: there
 * are none left. */
MUST_CHECK enum status handback_open(struct handback *handback, uv_loop_t *uv, int fd_min,
                                     struct error *err);

/* Call when the loop has ended. */
void handback_fini(struct handback *handback);

/* Call on any thread: |job| is finished by its worker; go_on_job() follows on the loop. */
void handback_push(struct handback *handback, struct turn_job *job);

#endif
