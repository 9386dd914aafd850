/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/observe/metrics.h"

#include "base/check.h"
#include "server/daemon/request/request.h"
#include "server/daemon/server.h"

void metrics_count_request(const struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->match.id <= ROUTE_COUNT && request->exchange);
    struct metrics *metrics = &request->server->metrics;
    status_counts_add(&metrics->requests[request->match.id], request_status(request));
}

struct metrics_look metrics_take_look(struct server *server)
{
    OBJ_CHECK(server, SERVER_MAGIC);
    struct metrics_look look = {
        .is_ready =
            !server->loop.is_starting && !server->loop.is_draining && !server->recovery.is_active,
        .connections = server->conns.count,
        .requests = server->busy_request_count,
        .tls_expiry_s = tls_expiry_s(&server->tls),
        .evictions = server->transfers.evicted_count,
        .pool_threads = server->offload.threads,
        .turns = server->loop.watch.records,
    };
    share_stats(&server->requests, &look.shared_requests);
    transfers_stats(server, &look.shared_transfers);
    for (int kind = 0; kind < OFFLOAD_KIND_COUNT; kind++) {
        look.pool_tasks[kind] = server->offload.open[kind];
    }
    return look;
}
