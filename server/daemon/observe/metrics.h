/* SPDX-License-Identifier: MIT */
/*
 * Counts of the daemon, beside those of models (server/model/model_stats.h), for GET /metrics. The
 * loop counts. The page is printed on a thread, because its length grows with the models: it reads
 * counters while they grow; for values that only the loop may read, the loop has made a copy.
 */
#ifndef PTED_SERVER_DAEMON_OBSERVE_METRICS_H
#define PTED_SERVER_DAEMON_OBSERVE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/histogram.h"
#include "base/share.h"
#include "server/daemon/loop/turn_watch.h"
#include "server/daemon/request/route.h"
#include "server/model/status_counts.h"
#include "server/process/offload.h"

struct buf;
struct request;
struct observed;

/* Zeroed at first. */
struct metrics {
    struct status_counts requests[ROUTE_COUNT + 1]; /* the last one: requests without a route */
};

/* Numbers of the loop at one moment. */
struct metrics_look {
    bool is_ready;
    uint32_t connections, requests;
    uint64_t evictions;
    struct share_stats shared_requests, shared_transfers; /* by client */
    int64_t tls_expiry_s;                                 /* 0: there is no TLS */
    uint32_t pool_threads, pool_tasks[OFFLOAD_KIND_COUNT];
    struct turn_records turns;
};

/* Counts |request|, which is over or whose client has gone; the exchange is still known. The
 * loop. */
void metrics_count_request(struct metrics *metrics, const struct request *request);

/* Looks at what only the loop may read, for a page that a thread prints. The loop. */
struct metrics_look metrics_take_look(const struct observed *observed);

#endif
