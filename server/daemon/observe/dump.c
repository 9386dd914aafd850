/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/observe/dump.h"

#include <inttypes.h>

#include "base/check.h"
#include "hal/pool.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/observe/observed.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/serving/recovery.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/process/amount.h"
#include "server/process/log.h"

#define LINES_MAX 100 /* of models, and of requests */
#define PATH_BYTES_MAX 200
#define NS_PER_MS 1000000u

static void dump_daemon(const struct observed *observed)
{
    struct hal_pool_stats memory = {0};
    char used[AMOUNT_TEXT_MAX], all[AMOUNT_TEXT_MAX];
    if (observed->servings->current->transfers) { /* else the device was lost */
        hal_pool_stats(observed->servings->current->transfers, &memory);
    }
    log_line(LOG_NOTICE,
             "SIGUSR1: %u connections, %u requests, %s of %s for them in use, %u tasks of requests "
             "and %u of models on %u threads%s%s%s",
             observed->conns->count, observed->requests->busy_count,
             amount_bytes(memory.used_bytes, used), amount_bytes(memory.size_bytes, all),
             observed->offload->open[OFFLOAD_REQUEST] + observed->offload->open[OFFLOAD_HEAVY],
             observed->offload->open[OFFLOAD_LONG], observed->offload->threads,
             observed->loop->is_starting ? ", starting" : "",
             observed->loop->is_draining ? ", stopping" : "",
             observed->recovery->is_active ? ", the device was lost" : "");
}

static void dump_models(const struct observed *observed)
{
    struct repository_index *index = repository_ref_index(&observed->servings->current->repository);
    uint32_t count = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        struct rt_sched_load load = {0};
        if (model->queue) {
            load = rt_sched_load(model->queue);
        }
        bool has_calls = load.waiting + load.running > 0;
        count += has_calls;
        if (has_calls && count <= LINES_MAX) {
            char bytes[AMOUNT_TEXT_MAX];
            log_line(LOG_NOTICE, "SIGUSR1: model %s version %s: %u calls run, %u wait with %s",
                     model->name, model->version_text, load.running, load.waiting,
                     amount_bytes(load.waiting_bytes, bytes));
        }
    }
    repository_unref_index(index);
    if (count > LINES_MAX) {
        log_line(LOG_NOTICE, "SIGUSR1: and %u more models with calls", count - LINES_MAX);
    }
}

/* A step that a thread has changes meanwhile. */
static const char *place_of(const struct exchange *exchange)
{
    const struct request *request = exchange->request;
    switch (exchange->incoming) {
    case EXCHANGE_HEAD:
        return "head";
    case EXCHANGE_BODY:
        return "body";
    default:
        return request->is_on_worker ? "thread" : request_step_name(request->step);
    }
}

static void dump_request(const struct exchange *exchange, uint64_t now_ns)
{
    const struct request *request = exchange->request;
    struct span path = head_path(&request->head);
    path.len = path.len < PATH_BYTES_MAX ? path.len : PATH_BYTES_MAX;
    uint64_t ms = request->infer.arrived_ns ? (now_ns - request->infer.arrived_ns) / NS_PER_MS : 0;
    log_line(LOG_NOTICE,
             "SIGUSR1: request remote=%s%s%s method=%s step=%s ms=%" PRIu64 " in=%zu out=%" PRIu64
             " path=%.*s",
             request->sender.remote, request->sender.via ? " via=" : "",
             request->sender.via ? request->sender.via : "",
             request->method ? request->method : "-", place_of(exchange), ms,
             request->head.bytes + request->body_bytes, exchange->sent_bytes, SPAN_FMT(path));
}

void dump_in_flight(const struct observed *observed)
{
    uint64_t now_ns = uv_hrtime();
    uint32_t count = 0;
    dump_daemon(observed);
    dump_models(observed);
    for (struct list *node = observed->requests->transfers.exchanges.next;
         node != &observed->requests->transfers.exchanges; node = node->next) {
        const struct exchange *exchange = LIST_ENTRY(node, struct exchange, link);
        if (exchange->incoming != EXCHANGE_NO_REQUEST && ++count <= LINES_MAX) {
            dump_request(exchange, now_ns);
        }
    }
    if (count > LINES_MAX) {
        log_line(LOG_NOTICE, "SIGUSR1: and %u more requests", count - LINES_MAX);
    }
}
