/* SPDX-License-Identifier: MIT */
/*
 * How often the client of a connection may do what costs it little (http2_flood.def): a bucket of
 * tokens for each kind. Loop thread; any thread reads the counts.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_HTTP2_FLOOD_H
#define PTED_SERVER_DAEMON_CONNECTION_HTTP2_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/status.h"

enum http2_flood {
#define FLOOD(ID, ...) HTTP2_FLOOD_##ID,
#include "server/daemon/connection/http2_flood.def"
#undef FLOOD
    HTTP2_FLOOD_COUNT
};

/* What is left for one connection. */
struct http2_floods {
    uint64_t filled_ms;
    uint32_t left[HTTP2_FLOOD_COUNT];
};

/* Returns the label of metrics. */
const char *http2_flood_name(enum http2_flood flood);

void http2_flood_init(struct http2_floods *floods, uint64_t now_ms);

/* Takes one. False: the client has none left. */
MUST_CHECK bool http2_flood_take(struct http2_floods *floods, enum http2_flood flood,
                                 uint64_t now_ms);

/* Gives all of |flood| back. */
void http2_flood_refill(struct http2_floods *floods, enum http2_flood flood);

/* Call when a frame of data has gone to the client: its answers to that are no flood. */
void http2_flood_earn(struct http2_floods *floods);

#endif
