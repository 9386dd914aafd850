/* SPDX-License-Identifier: MIT */
/*
 * Lines of the log that clients cause are limited (server/process/log_limit.h). The gate writes on
 * time how many lines it has kept back. Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_LOOP_LOG_GATE_H
#define PTED_SERVER_DAEMON_LOOP_LOG_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "server/process/log_limit.h"

struct log_gate {
    struct log_limits limits;
    uv_timer_t flush; /* writes how many lines were suppressed */
    bool is_open;     /* |flush| is a handle of the loop */
};

void log_gate_init(struct log_gate *gate);
void log_gate_open(struct log_gate *gate, uv_loop_t *uv);

/* May a line of |kind| be logged now that |client| has caused, or SHARE_NOBODY? */
bool log_gate_admits(struct log_gate *gate, enum log_kind kind, uint64_t client);

/* Closes it: the loop has to turn once before log_gate_fini(), which writes all counts. */
void log_gate_close(struct log_gate *gate);
void log_gate_fini(struct log_gate *gate);

#endif
