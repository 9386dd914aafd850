/* SPDX-License-Identifier: MIT */
/*
 * While |is_inside| is set, a function of this file is on the stack, and the functions that calls
 * reach only note what has happened; settle() looks at it when no function is, no turn is to come
 * and no write waits. It is the only one that ends the request. What the rules of memory take from
 * a stream is noted too: that may happen while any function asks for memory, so nothing is
 * cancelled but the call itself.
 */
#include "config.h"

#include "server/daemon/request/request_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/grpc.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/access.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request_priv.h"
#include "server/daemon/request/request_stream_priv.h"

#define US_PER_MS 1000u

static const struct exchange_ops call_ops;

static struct stream_call *call_of(struct exchange *exchange)
{
    struct stream_call *call;
    OBJ_CAST(call, LIST_ENTRY(exchange, struct stream_call, exchange), CALL_MAGIC);
    return call;
}

static struct request_stream *stream_of(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    OBJ_CHECK(request->grpc.stream, STREAM_MAGIC);
    return request->grpc.stream;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void drop_calls(struct request_stream *stream)
{
    for (struct list *node = stream->calls.next, *next; node != &stream->calls; node = next) {
        struct stream_call *call = LIST_ENTRY(node, struct stream_call, link);
        next = node->next;
        if (call != stream->writing) {
            stream_call_drop(call);
        }
    }
}

static void reap(struct request_stream *stream)
{
    while (!list_is_empty(&stream->over)) {
        stream_call_free(LIST_ENTRY(stream->over.next, struct stream_call, link));
    }
}

/* Its message is complete, or it has been refused. The call may be over then. */
static void run_call(struct stream_call *call)
{
    struct request_stream *stream = call->stream;
    if (stream->reading == call) {
        stream->skipped = stream->left - stream->prefix_len; /* that has come already */
        stream->left = 0;
        stream->prefix_len = 0;
        stream->reading = NULL;
    }
    stream->ready = stream->ready == call ? NULL : stream->ready;
    exchange_run(&call->exchange);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool is_backlog(const struct request_stream *stream)
{
    return stream->request->body.len > stream->request->grpc.taken;
}

/* Is the prefix of the message that comes yet to be taken, which came in pieces? */
static bool has_prefix(const struct request_stream *stream)
{
    return stream->reading && stream->prefix_len > 0;
}

static bool is_full(const struct request_stream *stream)
{
    return stream->count >= stream_params(stream)->stream_call_count_max;
}

/* Takes no message any more. */
static bool is_ending(const struct request_stream *stream)
{
    return !stream->request->exchange || stream->request->http_status || stream->is_broken;
}

static bool is_blocked(const struct request_stream *stream)
{
    const struct stream_call *reading = stream->reading;
    bool is_begun = reading || stream->skipped > 0;
    return stream->ready || stream->writing || is_ending(stream) ||
           (reading && transfer_is_waiting(&reading->exchange.upload)) ||
           (!is_begun && is_full(stream));
}

static void end_message(struct request_stream *stream)
{
    struct stream_call *call = stream->reading;
    stream_call_note_order(call);
    stream->reading = NULL;
    if (stream_call_has_elder(call)) {
        stream->ready = call;
    } else {
        run_call(call);
    }
}

static void refuse_call(struct stream_call *call, int http_status)
{
    if (!exchange_is_refused(&call->exchange)) {
        exchange_refuse(&call->exchange, http_status);
    }
    run_call(call);
}

/* Takes more of the message that comes; its prefix is a part of the body. */
static void add_to_message(struct request_stream *stream, struct span *bytes)
{
    struct stream_call *call = stream->reading;
    uint8_t *room;
    size_t room_len;
    if (!exchange_room(&call->exchange, 0, &room, &room_len)) {
        transfers_wait_for_memory(&call->exchange.upload);
        return;
    }
    bool is_prefix = stream->prefix_len > 0;
    struct span from = is_prefix ? span_of(stream->prefix, stream->prefix_len) : *bytes;
    struct span part = span_of(from.ptr, from.len < stream->left ? from.len : (size_t)stream->left);
    stream->left -= part.len;
    stream->prefix_len = 0;
    if (!is_prefix) {
        *bytes = span_of(bytes->ptr + part.len, bytes->len - part.len);
    }
    int status = exchange_add_body(&call->exchange, part);
    if (status) {
        refuse_call(call, status);
    } else if (stream->left == 0) {
        end_message(stream);
    }
}

/* Returns the prefix of the next message once it is there, else NULL. It is taken from |bytes| only
 * if it comes in pieces. */
static const uint8_t *find_prefix(struct request_stream *stream, struct span *bytes)
{
    size_t missing = sizeof(stream->prefix) - stream->prefix_len;
    if (stream->prefix_len == 0 && bytes->len >= missing) {
        return bytes->ptr;
    }
    size_t taken = bytes->len < missing ? bytes->len : missing;
    memcpy(stream->prefix + stream->prefix_len, bytes->ptr, taken);
    stream->prefix_len = (uint8_t)(stream->prefix_len + taken);
    *bytes = span_of(bytes->ptr + taken, bytes->len - taken);
    return stream->prefix_len == sizeof(stream->prefix) ? stream->prefix : NULL;
}

static int check_prefix(struct request_stream *stream, const uint8_t *prefix)
{
    struct error *err = &stream->request->err;
    uint64_t max = stream_params(stream)->body_bytes_max;
    if (prefix[0] > 1) {
        return http_status_of(grpc_refuse_prefix(prefix[0], err));
    }
    if (load_be32(prefix + 1) + (uint64_t)GRPC_PREFIX_BYTES > max) {
        error_set(err, ST_TOO_LARGE,
                  "message: expected at most %llu bytes with its prefix (--body-bytes-max), got "
                  "%llu",
                  (unsigned long long)max,
                  load_be32(prefix + 1) + (unsigned long long)GRPC_PREFIX_BYTES);
        return 413;
    }
    return 0;
}

static void begin_head(struct stream_call *call)
{
    static const struct exchange_head head = {
        .method = ROUTE_POST_ONLY, .method_name = "POST", .has_body = true};
    int status = stream_call_add_head(call);
    if (status) {
        refuse_call(call, status);
    } else if (!exchange_end_head(&call->exchange, &head)) {
        run_call(call);
    }
}

/* Returns the status to refuse the stream with, or 0. */
static int begin_message(struct request_stream *stream, struct span *bytes)
{
    const uint8_t *prefix = find_prefix(stream, bytes);
    int status = prefix ? check_prefix(stream, prefix) : 0;
    if (!prefix || status) {
        return status;
    }
    stream->reading = stream_call_begin(stream, &call_ops);
    if (!stream->reading) {
        error_no_memory(&stream->request->err, "a call");
        return 503;
    }
    stream->left = load_be32(prefix + 1) + (uint64_t)GRPC_PREFIX_BYTES;
    begin_head(stream->reading);
    return 0;
}

static int take_next(struct request_stream *stream, struct span *bytes)
{
    if (stream->skipped > 0) {
        size_t taken = bytes->len < stream->skipped ? bytes->len : (size_t)stream->skipped;
        stream->skipped -= taken;
        *bytes = span_of(bytes->ptr + taken, bytes->len - taken);
        return 0;
    }
    if (!stream->reading) {
        return begin_message(stream, bytes);
    }
    add_to_message(stream, bytes);
    return 0;
}

/* Takes messages until something stands against it, or the turn is over; at least a piece. */
static int take(struct request_stream *stream, struct span *bytes)
{
    struct turns *turns = &stream->request->requests->uses.loop->turns;
    int status = 0;
    bool is_first = true;
    while (!status && (bytes->len > 0 || has_prefix(stream)) && !is_blocked(stream) &&
           (is_first || turns_has_time(turns))) {
        status = take_next(stream, bytes);
        is_first = false;
    }
    return status;
}

/* Keeps what cannot be taken now; there is little of it, as no more is asked for. */
static int keep(struct request_stream *stream, struct span bytes)
{
    struct request *request = stream->request;
    if (bytes.len == 0) {
        return 0;
    }
    enum status status = body_add(&request->body, bytes, &request->err);
    return status == ST_OK ? 0 : http_status_of(status);
}

static int take_backlog(struct request_stream *stream)
{
    struct request *request = stream->request;
    struct span body = body_span(&request->body);
    struct span rest = span_of(body.ptr + request->grpc.taken, body.len - request->grpc.taken);
    int status = take(stream, &rest);
    request->grpc.taken = body.len - rest.len;
    if (rest.len == 0) {
        body_reset(&request->body);
        request->grpc.taken = 0;
    }
    return status;
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum exchange_written send_part(struct stream_call *call)
{
    struct request_stream *stream = call->stream;
    struct request *request = stream->request;
    for (unsigned i = 0; i < call->span_count; i++) {
        call->exchange.sent_bytes += call->spans[i].len;
    }
    enum exchange_written written = request_answer_relay(request, call->spans, call->span_count);
    if (written == EXCHANGE_WAITS) {
        stream->writing = call;
        stream->is_writing = true;
        transfers_update(request->exchange);
        return written;
    }
    stream->is_broken |= written == EXCHANGE_BROKEN;
    stream_call_free_part(call);
    return written;
}

/* An error in the place of an answer is the end of its call. */
static void note_part(struct stream_call *call, bool is_ok)
{
    if (call->exchange.writer) {
        exchange_note_written(&call->exchange, is_ok);
    } else {
        stream_call_leave(call);
    }
}

/* The requests of answers that errors have taken the place of end, with their memory. */
static void free_given(struct request_stream *stream)
{
    struct list *node = stream->waiting.next;
    for (; stream->has_given_way && node != &stream->waiting; node = node->next) {
        struct exchange *exchange = &LIST_ENTRY(node, struct stream_call, waiting_link)->exchange;
        if (!exchange->request && exchange->writer) {
            exchange_note_written(exchange, false);
            transfers_update(exchange); /* the answer's memory is free */
        }
    }
    stream->has_given_way = false;
}

/* Answers whose client was slow, or whose turn it was not. */
static void send_waiting(struct request_stream *stream)
{
    struct turns *turns = &stream->request->requests->uses.loop->turns;
    struct list *node = stream->waiting.next;
    bool is_first = true;
    while (node != &stream->waiting && !stream->writing && !stream->is_broken &&
           (is_first || turns_has_time(turns))) {
        struct stream_call *call = LIST_ENTRY(node, struct stream_call, waiting_link);
        node = node->next;
        if (!stream_call_is_its_turn(call)) {
            continue;
        }
        list_remove(&call->waiting_link);
        is_first = false;
        enum exchange_written written = send_part(call);
        if (written != EXCHANGE_WAITS) {
            note_part(call, written == EXCHANGE_WRITTEN);
            node = stream->waiting.next; /* it may be another's turn */
        }
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

static bool has_answer_to_send(const struct request_stream *stream)
{
    struct list *node = stream->waiting.next;
    for (; node != &stream->waiting; node = node->next) {
        if (stream_call_is_its_turn(LIST_ENTRY(node, struct stream_call, waiting_link))) {
            return !stream->writing;
        }
    }
    return false;
}

static bool has_call_to_run(const struct request_stream *stream)
{
    return stream->ready && !is_ending(stream) && !stream_call_has_elder(stream->ready);
}

/* Is a message left that will not be taken? */
static bool has_rest(const struct request_stream *stream)
{
    return stream->request->http_status && (stream->reading || stream->ready || is_backlog(stream));
}

/* The client has ended the stream where a message goes on. */
static bool is_cut(const struct request_stream *stream)
{
    const struct request *request = stream->request;
    return request->grpc.is_complete && !request->http_status && !is_backlog(stream) &&
           !has_prefix(stream) && request_stream_is_inside(stream) && !is_blocked(stream);
}

/* Is there something that a turn would do? */
static bool has_work(const struct request_stream *stream)
{
    bool has_more = is_backlog(stream) || has_prefix(stream) || stream->is_asked;
    return stream->is_broken || !stream->request->exchange || stream->has_given_way ||
           has_answer_to_send(stream) || has_call_to_run(stream) || has_rest(stream) ||
           (has_more && !is_blocked(stream)) || is_cut(stream);
}

static bool is_over(const struct request_stream *stream)
{
    const struct request *request = stream->request;
    return (request->http_status || (request->grpc.is_complete && !is_backlog(stream))) &&
           stream->count == 0;
}

/* Is its client to be told that the stream is broken? That is not put off until it reads. */
static bool has_to_abort(const struct request_stream *stream)
{
    return stream->is_broken && stream->request->exchange;
}

/* Does the write of an answer have to end first? */
static bool waits_for_write(const struct request_stream *stream)
{
    return stream->is_writing && !stream->has_given_way && !has_to_abort(stream);
}

/* The stream goes on in a later turn of the loop: now others may be on the stack that look at its
 * calls. */
static void wake(struct request_stream *stream)
{
    struct request *request = stream->request;
    if (stream->is_inside || stream->is_in_turn || waits_for_write(stream) ||
        (!has_work(stream) && !is_over(stream))) {
        return;
    }
    stream->is_in_turn = true;
    turns_put(&request->requests->uses.loop->turns, &request->turn);
}

/* Nothing more is taken of a stream that has been refused; calls that run are answered. */
static void end_reading(struct request_stream *stream)
{
    struct request *request = stream->request;
    if (stream->reading) {
        stream_call_drop(stream->reading);
    }
    if (stream->ready) {
        stream_call_drop(stream->ready);
    }
    stream->skipped = 0;
    stream->prefix_len = 0;
    body_reset(&request->body);
    request->grpc.taken = 0;
}

/* The end of each function that others call. The request may be over then. */
static void settle(struct request_stream *stream)
{
    struct request *request = stream->request;
    if (stream->is_inside || stream->is_in_turn) {
        return;
    }
    if (has_to_abort(stream)) {
        request->exchange->ops->abort(request->exchange); /* request_stream_leave() */
        return;
    }
    if (stream->is_writing) {
        return;
    }
    reap(stream);
    if (!request->exchange) {
        drop_calls(stream);
        reap(stream);
        request_leave(request);
        return;
    }
    if (is_cut(stream)) {
        error_set(&request->err, ST_INVALID, "the stream ends within a message");
        request_refuse(request, 400);
    }
    if (request->http_status) {
        end_reading(stream);
    }
    if (is_over(stream)) {
        reap(stream);
        request_proceed(request);
        return;
    }
    bool reads_on = stream->is_asked && !is_backlog(stream) && !is_blocked(stream);
    stream->is_asked &= !reads_on;
    wake(stream);
    if (reads_on) {
        exchange_read_on(request->exchange); /* the stream may be over then */
    }
}

/* Does what can be done now, with |bytes| behind those that have come before. */
static int go_on(struct request_stream *stream, struct span bytes)
{
    int status = 0;
    must(!stream->is_inside);
    stream->is_inside = true;
    free_given(stream);
    send_waiting(stream);
    if (has_call_to_run(stream)) {
        run_call(stream->ready);
    }
    if (is_backlog(stream) || has_prefix(stream)) {
        status = keep(stream, bytes);
        status = status ? status : take_backlog(stream);
    } else if (bytes.len > 0) {
        status = take(stream, &bytes);
        status = status ? status : keep(stream, bytes);
    }
    stream->is_inside = false;
    return is_ending(stream) ? 0 : status;
}

/* ---- the protocol of calls ------------------------------------------------------------------- */

static enum exchange_written write_part(struct exchange *exchange, const struct exchange_part *part)
{
    struct stream_call *call = call_of(exchange);
    struct request_stream *stream = call->stream;
    if (!stream->request->exchange || stream->is_broken || !stream_call_take_part(call, part)) {
        stream->is_broken = true;
        stream_call_free_part(call);
        return EXCHANGE_BROKEN;
    }
    if (call->span_count == 0) {
        stream_call_free_part(call);
        return EXCHANGE_WRITTEN;
    }
    if (!stream->writing && stream_call_is_its_turn(call)) {
        return send_part(call);
    }
    list_push_back(&stream->waiting, &call->waiting_link);
    pace_begin(&exchange->answer.pace, stream_now(stream));
    return EXCHANGE_WAITS;
}

static void end_call(struct exchange *exchange)
{
    struct stream_call *call = call_of(exchange);
    struct request_stream *stream = call->stream;
    stream_call_leave(call);
    wake(stream);
}

static void resume_call(struct exchange *exchange)
{
    wake(call_of(exchange)->stream);
}

static void run_refused(struct exchange *exchange)
{
    struct request_stream *stream = call_of(exchange)->stream;
    run_call(call_of(exchange));
    wake(stream);
}

/* An error takes the place of an answer that waits for others: its client need not be slow. */
static bool give_way(struct stream_call *call)
{
    struct request *request = call->exchange.request;
    error_set(&request->err, ST_EXHAUSTED,
              "the answer waits for those before it while others need its memory");
    request_refuse(request, 429);
    stream_call_free_part(call);
    return stream_call_take_error(call);
}

/* The client could not tell an answer that is broken off from one that goes on. So all end. */
static void break_off(struct exchange *exchange)
{
    struct stream_call *call = call_of(exchange);
    struct request_stream *stream = call->stream;
    if (call != stream->writing && give_way(call)) {
        stream->has_given_way = true;
    } else {
        stream->is_broken = true;
    }
    exchange_cancel(exchange);
    wake(stream);
}

/* The client takes an answer of the stream at the pace of the exchange around it. */
static struct exchange *find_outer(struct exchange *exchange)
{
    return call_of(exchange)->stream->request->exchange;
}

static const struct exchange_ops call_ops = {
    .write = write_part,
    .end = end_call,
    .resume = resume_call,
    .refuse = run_refused,
    .abort = break_off,
    .outer = find_outer,
};

/* ---- for requests ---------------------------------------------------------------------------- */

static uint64_t due_of(const struct request *request)
{
    uint64_t us, now_ms = uv_now(&request->requests->uses.loop->uv);
    return grpc_read_timeout(head_value(&request->head, HTTP_GRPC_TIMEOUT), &us)
               ? now_ms + us / US_PER_MS
               : UINT64_MAX;
}

enum status request_stream_open(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(!request->grpc.stream);
    if (!request->exchange->ops->is_duplex) {
        return error_set(err, ST_UNSUPPORTED, "a stream of calls needs HTTP/2");
    }
    struct request_stream *stream = calloc(1, sizeof(*stream));
    if (!stream) {
        return error_no_memory(err, "a stream of calls");
    }
    stream->magic = STREAM_MAGIC;
    stream->request = request;
    list_init(&stream->calls);
    list_init(&stream->over);
    list_init(&stream->waiting);
    stream->due_ms = due_of(request);
    request->grpc.stream = stream;
    access_end(request); /* each call has a place of the token's own */
    return ST_OK;
}

void request_stream_free(struct request_stream *stream)
{
    if (stream) {
        OBJ_CHECK(stream, STREAM_MAGIC);
        must(stream->count == 0 && !stream->is_inside && !stream->is_in_turn);
        reap(stream);
        stream->magic = 0;
        free(stream);
    }
}

int request_stream_feed(struct request *request, struct span bytes)
{
    struct request_stream *stream = stream_of(request);
    request->body_bytes += bytes.len;
    if (request->http_status || stream->is_broken) {
        return 0;
    }
    reap(stream);
    int status = go_on(stream, bytes);
    if (!status) {
        settle(stream);
    }
    return status;
}

/* Later: who refuses the stream may look at a call of it. */
void request_stream_end_body(struct request *request)
{
    wake(stream_of(request));
}

static void go_on_later(struct request_stream *stream)
{
    struct request *request = stream->request;
    int status = request->exchange && !stream->is_broken ? go_on(stream, span_str("")) : 0;
    if (status) {
        request_refuse(request, status);
    }
    settle(stream);
}

void request_stream_take_turn(struct request *request)
{
    struct request_stream *stream = stream_of(request);
    must(stream->is_in_turn);
    stream->is_in_turn = false;
    go_on_later(stream);
}

void request_stream_note_written(struct request *request, bool is_ok)
{
    struct request_stream *stream = stream_of(request);
    struct stream_call *call = stream->writing;
    must(stream->is_writing && call);
    stream->is_writing = false;
    stream->is_broken |= !is_ok;
    stream->writing = NULL;
    stream_call_free_part(call);
    stream->is_inside = true;
    note_part(call, is_ok && request->exchange);
    stream->is_inside = false;
    if (request->exchange) {
        transfers_update(request->exchange); /* the client has nothing left to take */
    }
    if (!stream->is_in_turn) {
        go_on_later(stream);
    }
}

void request_stream_leave(struct request *request)
{
    struct request_stream *stream = stream_of(request);
    wake(stream);
}

bool request_stream_may_take(struct request_stream *stream)
{
    OBJ_CHECK(stream, STREAM_MAGIC);
    stream->is_asked |= is_blocked(stream) || is_backlog(stream);
    return !stream->is_asked;
}

bool request_stream_is_inside(const struct request_stream *stream)
{
    OBJ_CHECK(stream, STREAM_MAGIC);
    return stream->reading || stream->prefix_len > 0 || stream->skipped > 0;
}

bool request_stream_is_busy(const struct request_stream *stream)
{
    OBJ_CHECK(stream, STREAM_MAGIC);
    return stream->count > (stream->reading != NULL) || is_blocked(stream);
}
