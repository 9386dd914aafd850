/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/exchange.h"

#include "base/check.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"

void exchange_init(struct exchange *exchange, struct requests *requests,
                   const struct exchange_ops *ops, const char *remote)
{
    *exchange = (struct exchange){
        .magic = EXCHANGE_MAGIC, .ops = ops, .requests = requests, .remote = remote};
    list_init(&exchange->wait_link);
    list_push_back(&requests->transfers.exchanges, &exchange->link);
}

void exchange_fini(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(!exchange->request && !exchange->writer && list_is_empty(&exchange->wait_link));
    exchange->phase = EXCHANGE_IDLE;
    exchange_keep(exchange, 0);
    must(exchange->charged_bytes == 0);
    list_remove(&exchange->link);
    exchange->magic = 0;
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
    must(!exchange->request && !exchange->writer);
    exchange->request = request_take(exchange->requests, exchange);
    exchange->sent_bytes = 0;
    exchange->is_head_only = false;
    return exchange->request != NULL;
}

struct head *exchange_fields(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    return &exchange->request->head;
}

bool exchange_end_head(struct exchange *exchange, const struct exchange_head *head)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->phase == EXCHANGE_BODY);
    pace_begin(&exchange->pace, uv_now(&exchange->requests->uses.loop->uv));
    exchange->is_head_only = head->method == ROUTE_HEAD_ONLY;
    return request_begin(exchange->request, head);
}

int exchange_expect_body(struct exchange *exchange, uint64_t bytes)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    struct request *request = exchange->request;
    enum status status = body_expect(&request->body, bytes, &request->err);
    return status == ST_OK ? 0 : http_status_of(status);
}

bool exchange_room(struct exchange *exchange, size_t missing, uint8_t **out_ptr, size_t *out_len)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    *out_len = 0;
    if (!transfers_may_send(exchange)) {
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
    pace_move(&exchange->pace, bytes.len, uv_now(&exchange->requests->uses.loop->uv));
    if (body->len == 0 && body->announced > BODY_SMALL_BYTES) {
        transfers_may_send(exchange); /* so that the first bytes need not be moved */
    }
    return request_add_body(exchange->request, bytes);
}

bool exchange_is_evicting(const struct exchange *exchange)
{
    return exchange->requests->transfers.is_evicting;
}

bool exchange_is_bodyless(const struct exchange *exchange)
{
    return exchange->request->body.len == 0;
}

struct error *exchange_error(struct exchange *exchange)
{
    return &exchange->request->err;
}

void exchange_refuse(struct exchange *exchange, int http_status)
{
    request_refuse(exchange->request, http_status);
}

bool exchange_is_refused(const struct exchange *exchange)
{
    return exchange->request->http_status != 0;
}

void exchange_give_up(struct exchange *exchange, enum status code, const char *why, int http_status)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    list_remove(&exchange->wait_link); /* the answer may have to wait as well */
    if (!exchange_is_refused(exchange)) {
        const char *what = exchange->phase == EXCHANGE_HEAD ? "head" : "body";
        error_set(exchange_error(exchange), code, "request %s: %s", what, why);
        exchange_refuse(exchange, http_status);
    }
    exchange->ops->refuse(exchange);
}

void exchange_run(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->phase == EXCHANGE_CALL);
    request_run(exchange->request);
}

void exchange_cancel(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    struct request *request = exchange->request;
    exchange->request = NULL;
    list_remove(&exchange->wait_link);
    if (request) {
        request_abandon(request);
    }
}

/* ---- the answer goes out --------------------------------------------------------------------- */

enum exchange_written exchange_write(struct exchange *exchange, const struct http_answer *answer,
                                     const struct span *parts, unsigned count, bool is_last)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->phase == EXCHANGE_CALL && !exchange->writer && count <= EXCHANGE_PARTS_MAX);
    must((answer != NULL) == (exchange->sent_bytes == 0));
    struct request *request = exchange->request;
    unsigned sent_count = exchange->is_head_only ? 0 : count;
    enum exchange_written written =
        exchange->ops->write(exchange, answer, parts, sent_count, is_last);
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

void exchange_end(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    must(exchange->request && !exchange->writer);
    exchange->request = NULL;
    list_remove(&exchange->wait_link);
    exchange->ops->end(exchange);
}

char *exchange_scratch(struct exchange *exchange)
{
    return exchange->request->scratch;
}

bool exchange_is_answering(const struct exchange *exchange)
{
    return exchange->phase == EXCHANGE_FLUSH ||
           (exchange->phase == EXCHANGE_CALL && !request_is_waited_for(exchange->request));
}

/* ---- memory ---------------------------------------------------------------------------------- */

void exchange_wait_for_memory(struct exchange *exchange, uint64_t since_ms)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    transfers_wait_for_memory(exchange);
    exchange->wait_since_ms = since_ms;
}

bool exchange_is_paced(const struct exchange *exchange)
{
    return exchange->phase == EXCHANGE_BODY || exchange_is_answering(exchange);
}

bool exchange_is_parked(const struct exchange *exchange)
{
    return exchange->phase == EXCHANGE_CALL && request_is_parked(exchange->request);
}

struct body *exchange_upload(const struct exchange *exchange)
{
    return exchange->phase == EXCHANGE_BODY ? &exchange->request->body : NULL;
}

size_t exchange_heap_bytes(const struct exchange *exchange)
{
    const struct request *request = exchange->request;
    size_t bytes = exchange->kept_bytes;
    if (exchange->phase == EXCHANGE_BODY) {
        bytes += request->body.buffer ? 0 : request->body.len;
    } else if (request && exchange_is_answering(exchange)) {
        bytes += request_answer_heap_bytes(request);
    }
    return bytes;
}

size_t exchange_held_bytes(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    const struct request *request = exchange->request;
    size_t bytes = exchange_heap_bytes(exchange);
    if (exchange->phase == EXCHANGE_BODY || exchange_is_parked(exchange)) {
        bytes += body_pool_bytes(&request->body);
    } else if (request && exchange_is_answering(exchange)) {
        bytes += request_answer_pool_bytes(request);
    }
    return bytes;
}

void exchange_evict(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    list_remove(&exchange->wait_link);
    if (exchange_is_parked(exchange)) {
        request_give_up(exchange->request);
    } else if (exchange->phase == EXCHANGE_BODY) {
        exchange_give_up(exchange, ST_EXHAUSTED, "too slow while others need its memory", 429);
    } else {
        exchange->ops->abort(exchange);
    }
}

/* The body waits for memory: reading goes on when there is some, or the request is refused in the
 * end. */
static bool retry_body(struct exchange *exchange)
{
    uint64_t now_ms = uv_now(&exchange->requests->uses.loop->uv);
    bool is_last = now_ms - exchange->wait_since_ms >= TRANSFERS_WAIT_MS_MAX;
    if (transfers_may_send(exchange)) {
        pace_resume(&exchange->pace, exchange->wait_since_ms, now_ms);
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
    return !is_over || exchange->phase != EXCHANGE_FLUSH;
}

bool exchange_retry(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    switch (exchange->phase) {
    case EXCHANGE_BODY:
        return retry_body(exchange);
    case EXCHANGE_CALL:
        return request_retry(exchange->request);
    case EXCHANGE_FLUSH:
        return retry_flush(exchange);
    case EXCHANGE_IDLE:
    case EXCHANGE_HEAD:
        return true; /* it has been answered in the meantime */
    }
    unreachable();
}
