/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/exchange.h"

#include <string.h>

#include "base/check.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/request_stream.h"
#include "server/daemon/request/requests.h"

void exchange_init(struct exchange *exchange, struct requests *requests,
                   const struct exchange_ops *ops, const char *remote)
{
    *exchange = (struct exchange){
        .magic = EXCHANGE_MAGIC, .ops = ops, .requests = requests, .remote = remote};
    transfers_prepare(&exchange->upload, exchange);
    transfers_prepare(&exchange->answer, exchange);
    list_push_back(&requests->transfers.exchanges, &exchange->link);
}

void exchange_fini(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(!exchange->request && !exchange->writer && exchange->outgoing == EXCHANGE_NO_ANSWER);
    must(!transfer_is_waiting(&exchange->upload) && !transfer_is_waiting(&exchange->answer));
    exchange_keep(exchange, 0);
    must(exchange->charged_bytes == 0);
    exchange_forget(exchange);
    list_remove(&exchange->link);
    exchange->magic = 0;
}

void exchange_forget(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(!exchange->request); /* which has it */
    habit_fini(&exchange->habit);
}

static uint64_t now_of(const struct exchange *exchange)
{
    return uv_now(&exchange->requests->uses.loop->uv);
}

static void stop_waiting(struct exchange *exchange)
{
    list_remove(&exchange->upload.wait_link);
    list_remove(&exchange->answer.wait_link);
}

void exchange_keep(struct exchange *exchange, size_t bytes)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    exchange->kept_bytes = bytes;
    transfers_update(exchange);
}

/* ---- the request comes in -------------------------------------------------------------------- */

bool exchange_begin(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(!exchange->request && !exchange->writer && exchange->outgoing == EXCHANGE_NO_ANSWER);
    exchange->request = request_take(exchange->requests, exchange);
    exchange->incoming = exchange->request ? EXCHANGE_HEAD : EXCHANGE_NO_REQUEST;
    exchange->sent_bytes = 0;
    exchange->is_head_only = false;
    return exchange->request != NULL;
}

struct head *exchange_fields(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->request != NULL);
    return &exchange->request->head;
}

bool exchange_end_head(struct exchange *exchange, const struct exchange_head *head)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->request && exchange->request->http_status == 0);
    must(exchange->incoming == EXCHANGE_HEAD);
    exchange->incoming = EXCHANGE_BODY;
    pace_begin(&exchange->upload.pace, now_of(exchange));
    exchange->is_head_only = head->method == ROUTE_HEAD_ONLY;
    return request_begin(exchange->request, head);
}

int exchange_expect_body(struct exchange *exchange, uint64_t bytes)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->incoming == EXCHANGE_BODY);
    struct request *request = exchange->request;
    enum status status = body_expect(&request->body, bytes, &request->err);
    return status == ST_OK ? 0 : http_status_of(status);
}

bool exchange_room(struct exchange *exchange, size_t missing, uint8_t **out_ptr, size_t *out_len)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->incoming == EXCHANGE_BODY);
    *out_len = 0;
    struct request_stream *stream = exchange->request->grpc.stream;
    if ((stream && !request_stream_may_take(stream)) || !transfers_may_send(exchange)) {
        return false;
    }
    if (missing) {
        *out_ptr = body_room(&exchange->request->body, out_len);
        must(*out_len <= missing);
    }
    return !missing || *out_ptr;
}

int exchange_add_body(struct exchange *exchange, struct span bytes)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    struct body *body = exchange_upload(exchange);
    must(body);
    int refusal = request_grpc_announce(exchange->request, bytes);
    if (refusal) {
        return refusal;
    }
    pace_move(&exchange->upload.pace, bytes.len, now_of(exchange));
    if (exchange->request->grpc.stream) {
        return request_stream_feed(exchange->request, bytes);
    }
    if (body->len == 0 && body->announced > BODY_SMALL_BYTES) {
        transfers_may_send(exchange); /* so that the first bytes need not be moved */
    }
    struct request *request = exchange->request;
    enum status status = body_add(body, bytes, &request->err);
    request->body_bytes = body->len;
    return status == ST_OK ? request_grpc_feed(request) : http_status_of(status);
}

enum exchange_demand exchange_demand(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->incoming == EXCHANGE_BODY);
    const struct request_stream *stream = exchange->request->grpc.stream;
    return !stream || request_stream_is_inside(stream) ? EXCHANGE_SENDS
           : request_stream_is_busy(stream)            ? EXCHANGE_WAITS_FOR_CALLS
                                                       : EXCHANGE_RESTS;
}

bool exchange_has_calls(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->request && exchange->request->grpc.stream;
}

bool exchange_is_held_back(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange_has_calls(exchange) &&
           !request_stream_may_take(exchange->request->grpc.stream);
}

uint64_t exchange_announced(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    const struct body *body = exchange_upload(exchange);
    return body ? body->announced : 0;
}

uint8_t *exchange_spare(const struct exchange *exchange, size_t *out_len)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    const struct body *body = exchange_upload(exchange);
    size_t end = !body ? 0 : body->capacity < body->announced ? body->capacity : body->announced;
    *out_len = end > 0 && end > body->len ? end - body->len : 0;
    return *out_len ? body->ptr + body->len : NULL;
}

bool exchange_is_evicting(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->requests->transfers.is_evicting;
}

bool exchange_is_bodyless(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->request->body.len == 0;
}

struct error *exchange_error(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->request != NULL);
    return &exchange->request->err;
}

void exchange_refuse(struct exchange *exchange, int http_status)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->request && http_status >= 400);
    request_refuse(exchange->request, http_status);
}

bool exchange_is_refused(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->request->http_status != 0;
}

/* Calls of gRPC alone have their outcome there. */
static bool may_end_in_trailers(const struct exchange *exchange)
{
    return exchange->incoming == EXCHANGE_BODY && !exchange->writer &&
           exchange->request->grpc.is_on;
}

void exchange_give_up(struct exchange *exchange, enum status code, const char *why, int http_status)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    stop_waiting(exchange);
    if (exchange_has_begun(exchange) && !may_end_in_trailers(exchange)) {
        exchange->ops->abort(exchange); /* its status is out */
        return;
    }
    if (!exchange_is_refused(exchange)) {
        const char *what = exchange->incoming == EXCHANGE_HEAD ? "head" : "body";
        error_set(exchange_error(exchange), code, "request %s: %s", what, why);
        exchange_refuse(exchange, http_status);
    }
    exchange->ops->refuse(exchange);
}

void exchange_run(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->request != NULL);
    must(exchange->incoming == EXCHANGE_HEAD || exchange->incoming == EXCHANGE_BODY);
    exchange->incoming = EXCHANGE_RECEIVED;
    list_remove(&exchange->upload.wait_link);
    request_run(exchange->request);
}

void exchange_cancel(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    struct request *request = exchange->request;
    exchange->request = NULL;
    exchange->incoming = EXCHANGE_NO_REQUEST;
    stop_waiting(exchange);
    if (request) {
        request_abandon(request);
    }
    exchange->outgoing = EXCHANGE_NO_ANSWER;
}

/* ---- the answer goes out --------------------------------------------------------------------- */

bool exchange_may_answer(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->incoming == EXCHANGE_RECEIVED ||
           (exchange->incoming == EXCHANGE_BODY && exchange->ops->is_duplex);
}

/* Whatever a call puts there has a bound. */
static void check_trailers(const struct exchange_part *part)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < part->trailer_count; i++) {
        bytes += strlen(part->trailers[i].name) + part->trailers[i].value.len;
    }
    must(part->trailer_count == 0 || part->is_last);
    must(part->trailer_count <= HTTP_TRAILERS_MAX && bytes <= HTTP_TRAILER_BYTES_MAX);
}

enum exchange_written exchange_write(struct exchange *exchange, const struct exchange_part *part)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange_may_answer(exchange) && !exchange->writer && part->count <= EXCHANGE_PARTS_MAX);
    must((part->answer != NULL) == !exchange_has_begun(exchange));
    check_trailers(part);
    struct request *request = exchange->request;
    struct exchange_part sent = *part;
    if (exchange->is_head_only) {
        sent.count = sent.trailer_count = 0;
    }
    exchange->outgoing = EXCHANGE_BEGUN;
    enum exchange_written written = exchange->ops->write(exchange, &sent);
    exchange->writer = written == EXCHANGE_WAITS ? request : NULL;
    return written;
}

void exchange_note_written(struct exchange *exchange, bool is_ok)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    struct request *request = exchange->writer;
    must(request);
    exchange->writer = NULL;
    request_written(request, is_ok);
}

void exchange_read_on(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    if (exchange->incoming != EXCHANGE_BODY || transfer_is_waiting(&exchange->upload)) {
        return; /* it reads on by itself, or there is no more */
    }
    if (transfers_may_send(exchange)) {
        exchange->ops->resume(exchange);
    } else {
        transfers_wait_for_memory(&exchange->upload);
    }
}

void exchange_end(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->request && !exchange->writer);
    exchange->request = NULL;
    exchange->incoming = EXCHANGE_NO_REQUEST;
    exchange->outgoing = EXCHANGE_NO_ANSWER;
    stop_waiting(exchange);
    transfers_update(exchange); /* the answer's memory is free */
    exchange->ops->end(exchange);
}

void exchange_begin_flush(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(!exchange->request && !exchange->writer && exchange->outgoing == EXCHANGE_NO_ANSWER);
    exchange->outgoing = EXCHANGE_FLUSH;
    if (transfers_are_over(exchange)) {
        transfers_wait_for_memory(&exchange->answer);
    }
}

void exchange_end_flush(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->outgoing == EXCHANGE_FLUSH);
    exchange->outgoing = EXCHANGE_NO_ANSWER;
    list_remove(&exchange->answer.wait_link);
}

char *exchange_scratch(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->request->scratch;
}

bool exchange_is_answering(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->outgoing == EXCHANGE_FLUSH || (exchange->request && exchange->writer);
}

static bool is_slow(struct exchange *exchange, struct transfer *transfer, uint64_t now_ms)
{
    return pace_is_too_slow(&transfer->pace, exchange->requests->uses.params, now_ms);
}

bool exchange_is_upload_slow(struct exchange *exchange, uint64_t now_ms)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->incoming == EXCHANGE_BODY && !transfer_is_waiting(&exchange->upload) &&
           is_slow(exchange, &exchange->upload, now_ms);
}

bool exchange_is_answer_slow(struct exchange *exchange, uint64_t now_ms)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange_is_answering(exchange) && is_slow(exchange, &exchange->answer, now_ms);
}

void exchange_restart_paces(struct exchange *exchange, uint64_t now_ms)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    pace_begin(&exchange->upload.pace, now_ms);
    pace_begin(&exchange->answer.pace, now_ms);
}

/* ---- memory ---------------------------------------------------------------------------------- */

void exchange_wait_for_memory(struct exchange *exchange, uint64_t since_ms)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->request != NULL);
    transfers_wait_for_memory(&exchange->answer);
    exchange->answer.wait_since_ms = since_ms;
}

struct exchange *exchange_owner(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    struct exchange *outer = exchange->ops->outer ? exchange->ops->outer(exchange) : NULL;
    return outer ? outer : exchange;
}

bool exchange_is_parked(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->incoming == EXCHANGE_RECEIVED && request_is_parked(exchange->request);
}

struct body *exchange_upload(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return exchange->incoming == EXCHANGE_BODY ? &exchange->request->body : NULL;
}

static size_t upload_heap_bytes(const struct exchange *exchange)
{
    const struct body *body = exchange_upload(exchange);
    return !body || body->buffer ? 0 : body->len;
}

size_t exchange_upload_bytes(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    const struct body *body = exchange_upload(exchange);
    return body ? upload_heap_bytes(exchange) + body_pool_bytes(body) : 0;
}

size_t exchange_heap_bytes(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    const struct request *request = exchange->request;
    size_t bytes = exchange->kept_bytes + upload_heap_bytes(exchange);
    if (request && exchange_is_answering(exchange)) {
        bytes += request_answer_heap_bytes(request);
    }
    return bytes;
}

size_t exchange_held_bytes(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    const struct request *request = exchange->request;
    size_t bytes = exchange_heap_bytes(exchange);
    if (exchange_upload(exchange) || exchange_is_parked(exchange)) {
        bytes += body_pool_bytes(&request->body);
    }
    if (request && exchange_is_answering(exchange)) {
        bytes += request_answer_pool_bytes(request);
    }
    return bytes;
}

void exchange_evict(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    stop_waiting(exchange);
    if (exchange_is_parked(exchange)) {
        request_give_up(exchange->request);
    } else if (exchange->incoming == EXCHANGE_BODY) {
        exchange_give_up(exchange, ST_EXHAUSTED, "too slow while others need its memory", 429);
    } else {
        exchange->ops->abort(exchange);
    }
}

/* The body waits for memory: reading goes on when there is some, or the request is refused in the
 * end. */
static bool retry_body(struct exchange *exchange)
{
    struct transfer *upload = &exchange->upload;
    uint64_t now_ms = now_of(exchange);
    bool is_last = now_ms - upload->wait_since_ms >= TRANSFERS_WAIT_MS_MAX;
    if (transfers_may_send(exchange)) {
        pace_resume(&upload->pace, upload->wait_since_ms, now_ms);
        exchange->ops->resume(exchange);
        return true;
    }
    if (is_last) {
        exchange_give_up(exchange, ST_EXHAUSTED, "there is no memory for it now", 429);
    }
    return is_last;
}

/* Clients have too much left to take: the slowest one gives way. That may be this one, which is
 * then gone. If no client is slow yet, one will be soon. */
static bool retry_flush(struct exchange *exchange)
{
    bool is_over = transfers_are_over(exchange);
    if (is_over) {
        transfers_evict_slowest(&exchange->requests->transfers, NULL, false);
    }
    return !is_over || exchange->outgoing != EXCHANGE_FLUSH;
}

/* What the call waits for, or what is left of its answer. */
static bool retry_answer(struct exchange *exchange)
{
    if (exchange->request) {
        return request_retry(exchange->request);
    }
    return exchange->outgoing != EXCHANGE_FLUSH || retry_flush(exchange);
}

bool exchange_retry(struct transfer *transfer)
{
    struct exchange *exchange = transfer->exchange;
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    if (transfer == &exchange->answer) {
        return retry_answer(exchange);
    }
    return exchange->incoming != EXCHANGE_BODY || retry_body(exchange);
}
