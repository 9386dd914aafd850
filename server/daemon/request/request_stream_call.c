/* SPDX-License-Identifier: MIT */
/* One call of a stream: its head, its order among the others, and what it writes. */
#include "config.h"

#include "server/daemon/request/request_stream_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* ---- its life -------------------------------------------------------------------------------- */

static int add_field(struct stream_call *call, const char *name, struct span value)
{
    struct head *head = exchange_fields(&call->exchange);
    head_add_name(head, span_str(name));
    int status = head_add_value(head, value, exchange_error(&call->exchange));
    head_end_field(head);
    return status;
}

/* What is left of the time of the stream. */
static int add_timeout(struct stream_call *call)
{
    uint64_t now_ms = stream_now(call->stream), due_ms = call->stream->due_ms;
    uint64_t left_ms = due_ms > now_ms ? due_ms - now_ms : 0;
    char text[16];
    if (due_ms == UINT64_MAX || left_ms > 99999999) {
        return 0;
    }
    int len = snprintf(text, sizeof(text), left_ms ? "%llum" : "1n", (unsigned long long)left_ms);
    return add_field(call, "grpc-timeout", span_of(text, (size_t)len));
}

/* The head of the stream is that of each call. */
int stream_call_add_head(struct stream_call *call)
{
    static const struct {
        const char *name;
        enum http_field field;
    } fields[] = {
        {"content-type", HTTP_CONTENT_TYPE},   {"te", HTTP_TE},
        {"grpc-encoding", HTTP_GRPC_ENCODING}, {"authorization", HTTP_AUTHORIZATION},
        {"x-api-key", HTTP_X_API_KEY},         {"traceparent", HTTP_TRACEPARENT},
        {"user-agent", HTTP_USER_AGENT},
    };
    static const char target[] = "/inference.GRPCInferenceService/ModelInfer";
    const struct head *from = &call->stream->request->head;
    int status = head_add_target(exchange_fields(&call->exchange), stream_params(call->stream),
                                 span_str(target), exchange_error(&call->exchange));
    for (size_t i = 0; !status && i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (head_has(from, fields[i].field)) {
            status = add_field(call, fields[i].name, head_value(from, fields[i].field));
        }
    }
    return status ? status : add_timeout(call);
}

/* Whoever sends the stream sends its calls. */
static void describe_client(struct stream_call *call)
{
    const struct request *request = call->stream->request;
    const struct exchange *from = request->exchange;
    struct exchange *exchange = &call->exchange;
    exchange->via = request->sender.via;
    exchange->client = call->stream->request->sender.via ? request->client.id : from->client;
    exchange->role = from->role;
    exchange->is_local = from->is_local;
    exchange->is_for_grpc = from->is_for_grpc;
    exchange->tls_version = from->tls_version;
    exchange->tls_subject = from->tls_subject;
    exchange->token_memory = from->token_memory;
}

void stream_call_free_part(struct stream_call *call)
{
    if (call->spans != call->here) {
        free(call->spans);
    }
    call->spans = NULL;
    call->span_count = 0;
    buf_reset(&call->error);
}

void stream_call_free(struct stream_call *call)
{
    stream_call_free_part(call);
    buf_fini(&call->error);
    exchange_fini(&call->exchange);
    list_remove(&call->link);
    list_remove(&call->waiting_link);
    call->magic = 0;
    free(call);
}

struct stream_call *stream_call_begin(struct request_stream *stream, const struct exchange_ops *ops)
{
    const struct request *request = stream->request;
    struct stream_call *call = calloc(1, sizeof(*call));
    if (!call) {
        return NULL;
    }
    call->magic = CALL_MAGIC;
    call->stream = stream;
    list_init(&call->link);
    list_init(&call->waiting_link);
    buf_init(&call->error, GRPC_STREAM_ERROR_BYTES_MAX);
    exchange_init(&call->exchange, request->requests, ops, request->sender.remote);
    describe_client(call);
    if (!exchange_begin(&call->exchange)) {
        stream_call_free(call);
        return NULL;
    }
    call->exchange.request->infer.is_in_stream = true;
    list_push_back(&stream->calls, &call->link);
    stream->count++;
    return call;
}

void stream_call_leave(struct stream_call *call)
{
    struct request_stream *stream = call->stream;
    must(stream->count > 0 && call != stream->writing);
    stream->count--;
    stream->reading = stream->reading == call ? NULL : stream->reading;
    stream->ready = stream->ready == call ? NULL : stream->ready;
    list_remove(&call->link);
    list_remove(&call->waiting_link);
    list_push_back(&stream->over, &call->link);
}

/* The answer does not matter any more. */
void stream_call_drop(struct stream_call *call)
{
    struct exchange *exchange = &call->exchange;
    if (exchange->request) {
        exchange_cancel(exchange);
    }
    stream_call_leave(call);
    if (exchange->writer) {
        exchange_note_written(exchange, false);
    }
}

/* ---- its order ------------------------------------------------------------------------------- */

bool stream_call_has_elder(const struct stream_call *call)
{
    const struct request_stream *stream = call->stream;
    struct list *node = stream->calls.next;
    for (; node != &stream->calls; node = node->next) {
        const struct stream_call *other = LIST_ENTRY(node, struct stream_call, link);
        if (other == call) {
            return false;
        }
        if ((call->is_unknown && (other->sequence || other->is_unknown)) ||
            (call->sequence && (other->is_unknown || other->sequence == call->sequence))) {
            return true;
        }
    }
    return false;
}

void stream_call_note_order(struct stream_call *call)
{
    struct span body = body_span(&call->exchange.request->body);
    struct grpc_order order = {.id = span_str(""), .is_unknown = true};
    if (body.ptr[0] == 0) { /* as its prefix says, it is not compressed */
        order =
            grpc_read_order(span_of(body.ptr + GRPC_PREFIX_BYTES, body.len - GRPC_PREFIX_BYTES));
    }
    call->sequence = order.sequence;
    call->is_unknown = order.is_unknown;
    call->is_free = order.id.len > 0;
    call->id_len = order.id.len < sizeof(call->id) ? (uint8_t)order.id.len : 0;
    memcpy(call->id, order.id.ptr, call->id_len);
}

/* May its answers stand between others? It has an id, or is a generation; a worker may be about to
 * find that. */
static bool is_free(struct stream_call *call)
{
    const struct request *request = call->exchange.request;
    if (request && !request->is_on_worker && request->infer.ops) {
        call->is_free |= request->infer.id.len > 0 || infer_has_runs(&request->infer);
    }
    return call->is_free;
}

bool stream_call_is_its_turn(struct stream_call *call)
{
    struct request_stream *stream = call->stream;
    if (is_free(call)) {
        return true;
    }
    struct list *node = stream->calls.next;
    for (; node != &stream->calls; node = node->next) {
        struct stream_call *other = LIST_ENTRY(node, struct stream_call, link);
        if (other == call || !is_free(other)) {
            return other == call;
        }
    }
    unreachable();
}

/* ---- its answer ------------------------------------------------------------------------------ */

bool stream_call_take_error(struct stream_call *call)
{
    const struct request *request = call->exchange.request;
    grpc_print_stream_error(span_of(call->id, call->id_len), request->err.text, &call->error);
    call->spans = call->here;
    call->here[0] = buf_span(&call->error);
    call->span_count = 1;
    return !buf_failed(&call->error);
}

/* The prefix of the answer gives way to what stands in front of it here. */
static bool take_answer(struct stream_call *call, const struct exchange_part *part)
{
    struct request *request = call->exchange.request;
    size_t bytes = 0, head_len;
    for (unsigned i = 0; i < part->count; i++) {
        bytes += part->spans[i].len;
    }
    must(part->count > 0 && part->count < EXCHANGE_PARTS_MAX);
    must(part->spans[0].len >= GRPC_PREFIX_BYTES);
    if (grpc_print_stream_head(call->head, bytes - GRPC_PREFIX_BYTES, true, &head_len,
                               &request->err) != ST_OK) {
        return stream_call_take_error(call);
    }
    unsigned count = part->count + 1;
    call->spans = count <= STREAM_SPANS_HERE ? call->here : malloc(count * sizeof(*call->spans));
    if (!call->spans) {
        return false;
    }
    memcpy(call->spans + 1, part->spans, part->count * sizeof(*part->spans));
    call->spans[0] = span_of(call->head, head_len);
    call->spans[1] =
        span_of(part->spans[0].ptr + GRPC_PREFIX_BYTES, part->spans[0].len - GRPC_PREFIX_BYTES);
    call->span_count = count;
    return true;
}

/* Events of a generation are messages of the stream as they stand. */
static bool take_events(struct stream_call *call, const struct exchange_part *part)
{
    must(part->count == 1);
    call->spans = call->here;
    call->here[0] = part->spans[0];
    call->span_count = part->spans[0].len > 0;
    return true;
}

bool stream_call_take_part(struct stream_call *call, const struct exchange_part *part)
{
    const struct request *request = call->exchange.request;
    return request->http_status               ? stream_call_take_error(call)
           : infer_is_stream(&request->infer) ? take_events(call, part)
                                              : take_answer(call, part);
}
