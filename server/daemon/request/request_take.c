/* SPDX-License-Identifier: MIT */
/* Requests are taken for an exchange and given back. Some wait to be taken again, with their
 * memory. */
#include "config.h"

#include "server/daemon/request/request_priv.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/share.h"
#include "hal/pool.h"
#include "server/daemon/request/access.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request_log.h"
#include "server/daemon/request/request_stream.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/daemon/serving/trim.h"
#include "server/http/http.h"
#include "server/model/repository.h"

/* Memory that a request keeps for its next use. */
#define KEEP_BYTES_MAX (256 << 10)

/* Requests that wait to be used again. */
#define IDLE_MAX 64

/* The call borrows them as long as the request lives. */
static void lend_parts(struct request *request)
{
    struct infer *infer = &request->infer;
    infer->head = &request->head;
    infer->received = &request->body;
    infer->out = &request->out;
    infer->client = &request->client;
    infer->model_name = request->match.model;
}

static struct request *request_new(struct requests *requests)
{
    struct error err;
    struct request *request = calloc(1, sizeof(*request));
    if (request && (hal_pool_member_new(&request->upload_pool, &err) != ST_OK ||
                    infer_init(&request->infer, &requests->calls, &err) != ST_OK)) {
        hal_pool_free(request->upload_pool);
        free(request);
        return NULL;
    }
    if (request) {
        request->magic = REQUEST_MAGIC;
        request->requests = requests;
        request->api = requests->uses.api;
        lend_parts(request);
        head_init(&request->head, requests->uses.params);
        body_init(&request->body, NULL, requests->uses.params->body_bytes_max);
        buf_init(&request->out, requests->uses.params->answer_bytes_max);
        offload_init_task(&request->task, request);
        list_init(&request->link);
        list_init(&request->grpc.watch_link);
        waiter_init(&request->waiter, request_note_changed);
    }
    return request;
}

void request_free(struct request *request)
{
    if (request) {
        OBJ_CHECK(request, REQUEST_MAGIC);
        must(!request->exchange && !request->serving);
        list_remove(&request->link);
        infer_fini(&request->infer);
        buf_fini(&request->out);
        body_fini(&request->body);
        head_fini(&request->head);
        hal_pool_free(request->upload_pool);
        request->magic = 0;
        free(request);
    }
}

struct request *request_take(struct requests *requests, struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    OBJ_CHECK(requests, REQUESTS_MAGIC);
    struct request *request;
    if (list_is_empty(&requests->idle)) {
        request = request_new(requests);
        if (!request) {
            return NULL;
        }
    } else {
        request = LIST_ENTRY(requests->idle.next, struct request, link);
        list_remove(&request->link);
        requests->idle_count--;
    }
    requests->busy_count++;
    must(!request->exchange && !request->serving);
    request->step = STEP_READ;
    request->serving = request->infer.serving = servings_hold(requests->uses.servings);
    if (request->serving->transfers) { /* otherwise the device was lost */
        hal_pool_join(request->upload_pool, request->serving->transfers);
        request->body.pool = request->upload_pool;
    }
    request->exchange = exchange;
    request->http_status = 0;
    request->err.code = ST_OK;
    work_reset(&request->infer.work);
    request->is_on_worker = request->is_unfinished = request->is_leaving = false;
    request->infer.query = (struct query){.given = 0};
    request->infer.habit = habit_take(&exchange->habit);
    request->run.is_over = request->run.is_unreleased = false;
    request->body_bytes = request->announced_json = 0;
    request->method = NULL;
    request->retry_after_s = 0;
    request->infer.arrived_ns = request->retry.since_ms = 0;
    request->page.listed = request->load_count = 0;
    request->infer.waited_ns = request->waiter.waited_ns = 0;
    request->page.look = NULL;
    request->client = (struct http_client){
        .id = exchange->role == LISTENER_PUBLIC ? exchange->client : SHARE_NOBODY,
        .is_local = exchange->is_local,
        .is_operator = exchange->role == LISTENER_ADMIN,
        .scopes = TOKEN_SCOPE_INFER | TOKEN_SCOPE_READ |
                  (exchange->role == LISTENER_ADMIN ? TOKEN_SCOPE_ADMIN : 0),
    };
    request->sender.is_counted = false;
    request->sender.remote = exchange->remote;
    request->sender.via = exchange->via;
    request->sender.token_use = NULL;
    request->sender.challenge = NULL;
    request->trace.is_known = request->trace.is_decided = false;
    request->grpc.is_on = request->grpc.is_read = false;
    request->grpc.is_writing = request->grpc.is_in_turn = false;
    request->grpc.is_complete = request->grpc.is_broken = false;
    request->grpc.taken = request->grpc.question_count = request->grpc.told = 0;
    request->grpc.refusal = 0;
    request->grpc.coding = CODING_IDENTITY;
    request->content_type = NULL;
    request->is_page = false;
    request->match.id = ROUTE_COUNT;
    request->match.allow = NULL;
    request->match.none = ROUTE_COUNT;
    request->match.model[0] = request->match.region[0] = '\0';
    return request;
}

void request_release_job(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (request->run.is_unreleased) {
        request->run.is_unreleased = false;
        rt_sched_released(request->serving->sched);
    }
}

/* To the exchange, unless the client has gone. */
static void give_habit_back(struct request *request)
{
    if (request->exchange) {
        habit_give(&request->exchange->habit, &request->infer.habit);
    } else {
        habit_fini(&request->infer.habit);
    }
}

void request_let_exchange_go(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    give_habit_back(request);
    request->exchange = NULL;
}

/* Drops what belongs to this use and keeps the memory; the most recently used comes first. */
void request_give_back(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(!request->is_on_worker && request->step == STEP_DONE);
    must(request->requests->busy_count > 0);
    struct requests *requests = request->requests;
    body_reset(&request->body);
    infer_reset(&request->infer);
    request_let_exchange_go(request);
    request_release_job(request);
    access_end(request);
    request_stream_free(request->grpc.stream);
    request->grpc.stream = NULL;
    list_remove(&request->grpc.watch_link);
    if (request->sender.is_counted) {
        share_give(&requests->admitted, request->client.id, 1);
    }
    head_reset(&request->head);
    if (request->out.capacity > KEEP_BYTES_MAX) {
        buf_fini(&request->out);
    }
    buf_reset(&request->out);
    if (request->body.pool) {
        hal_pool_leave(request->upload_pool);
    }
    request->body.pool = request->infer.inflated.pool = NULL;
    if (request->page.listing) {
        repository_unref_index(request->page.listing);
        request->page.listing = NULL;
    }
    servings_let_go(requests->uses.servings, request->serving);
    request->serving = request->infer.serving = NULL;
    requests->busy_count--;
    trim_note_use(requests->uses.trim);
    if (requests->idle_count < IDLE_MAX) {
        list_push_front(&requests->idle, &request->link);
        requests->idle_count++;
    } else {
        request_free(request);
    }
}
