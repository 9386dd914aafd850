/* SPDX-License-Identifier: MIT */
/* A part of the daemon as the watchdog sees it (server/daemon/watchdog.h). */
#ifndef PTED_SERVER_DAEMON_LOOP_WATCHED_H
#define PTED_SERVER_DAEMON_LOOP_WATCHED_H

#include <stdbool.h>
#include <stdint.h>

/* A part as it is seen at one time. */
struct watched {
    bool has_work;
    uint64_t mark; /* another one when anything was completed meanwhile */
};

/* Has nothing been completed since |seen|, which becomes |now|, although there was work? */
bool watched_is_stuck(struct watched *seen, struct watched now);

#endif
