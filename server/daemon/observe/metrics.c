/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/observe/metrics.h"

#include "base/check.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/tls.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/observe/observed.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/serving/recovery.h"

void metrics_count_request(struct metrics *metrics, const struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->match.id <= ROUTE_COUNT && request->exchange);
    status_counts_add(&metrics->requests[request->match.id], request_status(request));
}

struct metrics_look metrics_take_look(const struct observed *observed)
{
    const struct loop *loop = observed->loop;
    struct metrics_look look = {
        .is_ready = !loop->is_starting && !loop->is_draining && !observed->recovery->is_active,
        .connections = observed->conns->count,
        .requests = observed->requests->busy_count,
        .tls_expiry_s = tls_expiry_s(observed->tls),
        .evictions = observed->requests->transfers.evicted_count,
        .pool_threads = observed->offload->threads,
        .turns = loop->watch.records,
    };
    share_stats(&observed->requests->admitted, &look.shared_requests);
    transfers_stats(&observed->requests->transfers, &look.shared_transfers);
    for (int kind = 0; kind < OFFLOAD_KIND_COUNT; kind++) {
        look.pool_tasks[kind] = observed->offload->open[kind];
    }
    return look;
}
