/* SPDX-License-Identifier: MIT */
/*
 * Requests in the log: by default refused and failed ones, at most so many of a kind in a window
 * (server/process/log_limit.h); with --log-requests all each one, at its end. Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_REQUEST_LOG_H
#define PTED_SERVER_DAEMON_REQUEST_REQUEST_LOG_H

#include "base/status.h"

struct request;

/* Call when the answer is the error |why|, which the client gets as |http_status|; |index| is the
 * number of the call in a list, otherwise -1. */
void request_log_error(struct request *request, int http_status, const struct error *why,
                       int index);

/* Call when the answer is out, or the client has gone; the exchange is still known. */
void request_log_end(struct request *request);

#endif
