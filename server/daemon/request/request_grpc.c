/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/request_grpc.h"

#include <string.h>

#include "base/check.h"
#include "protocol/grpc_infer.h"
#include "protocol/grpc_json.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/access.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request_priv.h"
#include "server/daemon/request/request_watch.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/request/transfers.h"
#include "server/http/http.h"

/* Bytes of a compressed message of a handler, without its coding. */
#define MESSAGE_BYTES_MAX BODY_SMALL_BYTES

/* ---- the head -------------------------------------------------------------------------------- */

static int refuse_type(struct request *request, struct span type)
{
    if (!grpc_is_foreign_type(type, &request->err)) {
        error_set(&request->err, ST_UNSUPPORTED,
                  "Content-Type: expected application/grpc, got '%.*s'", SPAN_SHORT(type));
    }
    return 415;
}

static int check_head(struct request *request)
{
    struct span name = head_value(&request->head, HTTP_GRPC_ENCODING);
    struct span timeout = head_value(&request->head, HTTP_GRPC_TIMEOUT);
    uint64_t us;
    if (!coding_find(name, &request->grpc.coding)) {
        error_set(&request->err, ST_UNSUPPORTED,
                  "grpc-encoding: expected identity, gzip or deflate, got '%.*s'",
                  SPAN_SHORT(name));
        return 415;
    }
    if (head_has(&request->head, HTTP_GRPC_TIMEOUT) && !grpc_read_timeout(timeout, &us)) {
        error_set(&request->err, ST_INVALID,
                  "grpc-timeout: expected up to eight digits and one of H, M, S, m, u, n, got "
                  "'%.*s'",
                  SPAN_SHORT(timeout));
        return 400;
    }
    return 200;
}

static int refuse_rest(struct request *request)
{
    error_set(&request->err, ST_INVALID, "expected one message, got bytes behind it");
    return 400;
}

int request_grpc_begin(struct request *request, int http_status)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    bool has_route = request->match.id != ROUTE_COUNT;
    if (has_route && !request_route(request)->grpc.is_on) {
        return http_status;
    }
    struct span type = head_value(&request->head, HTTP_CONTENT_TYPE);
    bool is_grpc = grpc_is_type(type);
    if (has_route && !is_grpc) {
        return refuse_type(request, type);
    }
    if (!is_grpc) {
        return http_status;
    }
    if (!head_takes_trailers(&request->head)) {
        error_set(&request->err, ST_INVALID,
                  "TE: gRPC needs trailers, which this client does not take");
        return 400;
    }
    request->grpc.is_on = true;
    if (http_status == 404) {
        error_set(&request->err, ST_UNSUPPORTED, "no method '%.*s'",
                  SPAN_SHORT(head_path(&request->head)));
        return 501;
    }
    return http_status == 200 ? check_head(request) : http_status;
}

/* Its fields up to the limit are known. */
void request_grpc_note_refusal(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    request->grpc.is_on |= request->http_status == 431 &&
                           grpc_is_type(head_value(&request->head, HTTP_CONTENT_TYPE)) &&
                           head_takes_trailers(&request->head);
}

/* HTTP may have announced the length itself. */
int request_grpc_announce(struct request *request, struct span bytes)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct body *body = &request->body;
    if (!request->grpc.is_on || request_route(request)->grpc.is_stream) {
        return 0;
    }
    if (body->announced) {
        return bytes.len <= body->announced - body->len ? 0 : refuse_rest(request);
    }
    if (body->len > 0 || bytes.len < GRPC_PREFIX_BYTES) {
        return 0;
    }
    size_t message = load_be32(bytes.ptr + 1), len = message + GRPC_PREFIX_BYTES;
    size_t tensor =
        grpc_find_tensor(span_of(bytes.ptr + GRPC_PREFIX_BYTES, bytes.len - GRPC_PREFIX_BYTES));
    if (bytes.len > len) {
        return refuse_rest(request);
    }
    enum status status = body_announce(body, len, tensor + GRPC_PREFIX_BYTES, &request->err);
    return status == ST_OK ? 0 : http_status_of(status);
}

/* ---- the message of a handler ---------------------------------------------------------------- */

static struct span find_text(struct span message, const struct grpc_field_info *field)
{
    struct protobuf in;
    struct protobuf_field item;
    struct span text = span_str("");
    protobuf_init(&in, message);
    while (field && protobuf_next(&in, &item)) {
        if (item.number == field->number && item.type == PROTOBUF_BYTES) {
            text = item.bytes;
        }
    }
    return text;
}

static enum status take_name(struct span text, const struct grpc_field_info *field,
                             char out[MODEL_NAME_MAX + 1], struct error *err)
{
    bool is_plain = text.len <= MODEL_NAME_MAX;
    for (size_t i = 0; is_plain && i < text.len; i++) {
        is_plain = text.ptr[i] >= ' ' && text.ptr[i] != 0x7f;
    }
    if (!is_plain) {
        return error_set(err, ST_INVALID, "%s: expected at most %d characters", field->name,
                         MODEL_NAME_MAX);
    }
    model_name_copy(text, out);
    return ST_OK;
}

/* The names of fields are those of the table. */
static enum status take_names(struct request *request, struct span message, struct error *err)
{
    const struct route_grpc *route = &request_route(request)->grpc;
    const struct grpc_message_info info = grpc_message_info(grpc_methods[route->method].request);
    const struct grpc_field_info *name = grpc_find_name(&info, "model_name");
    const struct grpc_field_info *version = grpc_find_name(&info, "version");
    name = name ? name : grpc_find_name(&info, "name");
    name = name ? name : grpc_find_name(&info, "service");
    if (route->names == GRPC_NAMES_NOTHING) {
        return ST_OK;
    }
    must(name);
    bool is_model = route->names == GRPC_NAMES_MODEL;
    TRY(take_name(find_text(message, name), name,
                  is_model ? request->match.model : request->match.region, err));
    struct span text = find_text(message, version);
    if (text.len > 0 && !model_name_parse_version(text, &request->match.version)) {
        return error_set(err, ST_INVALID, "version: expected a number, got '%.*s'",
                         SPAN_SHORT(text));
    }
    return ST_OK;
}

/* Makes |request->out| the body. */
static enum status replace_body(struct request *request, struct error *err)
{
    TRY(buf_check(&request->out, "the message", err));
    body_reset(&request->body);
    TRY(body_add(&request->body, buf_span(&request->out), err));
    buf_reset(&request->out);
    return ST_OK;
}

/* Reading is for more clients than changing. */
static enum status check_change(struct request *request, struct error *err)
{
    bool is_empty = span_is(body_span(&request->body), "{}");
    if (!request_route(request)->grpc.may_change || is_empty) {
        return ST_OK;
    }
    request->grpc.refusal = access_raise(request, TOKEN_SCOPE_ADMIN, err);
    return request->grpc.refusal ? err->code : ST_OK;
}

enum status request_grpc_read(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const struct route_grpc *route = &request_route(request)->grpc;
    must(route->is_on);
    struct span message;
    if (request->grpc.is_read || route->is_stream) {
        return ST_OK;
    }
    request->grpc.is_read = true;
    TRY(infer_take_message(&request->infer, MESSAGE_BYTES_MAX, &message, err));
    TRY(take_names(request, message, err));
    TRY(grpc_to_json(message, grpc_methods[route->method].request, route->wraps_request,
                     &request->out, err));
    TRY(replace_body(request, err));
    return check_change(request, err);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static bool is_stream(const struct request *request)
{
    return request->grpc.is_on && request_route(request)->grpc.is_stream;
}

bool request_grpc_is_busy(const struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return request->grpc.is_writing || request->grpc.is_in_turn;
}

/* What is left of the stream has its turn, if the turn of this answer is over. A broken one, too:
 * its request ends there. */
static void send_answer(struct request *request)
{
    struct request_grpc *grpc = &request->grpc;
    grpc->is_writing = true;
    enum exchange_written written = request_answer_send(request, false);
    if (written == EXCHANGE_WAITS) {
        transfers_update(request->exchange);
        return;
    }
    grpc->is_writing = false;
    grpc->is_in_turn = true;
    grpc->is_broken = written == EXCHANGE_BROKEN;
    buf_reset(&request->out);
    turns_add(&request->requests->uses.loop->turns, &request->turn); /* it may be over */
}

/* |*out_status|: to refuse the request with, or 0. True: an answer is on its way. */
static bool answer_next(struct request *request, int *out_status)
{
    *out_status = 0;
    if (!is_stream(request) || !exchange_may_answer(request->exchange)) {
        return false;
    }
    enum status status = request_route(request)->handler(request, &request->err);
    *out_status = status == ST_OK ? 0 : http_status_of(status);
    if (status != ST_OK || request->out.len == 0) {
        return false;
    }
    send_answer(request);
    return true;
}

int request_grpc_feed(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    int http_status = 0;
    if (!request_grpc_is_busy(request)) {
        (void)answer_next(request, &http_status);
    }
    return http_status;
}

bool request_grpc_go_on(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(!request_grpc_is_busy(request));
    int http_status = 0;
    if (!request->http_status && answer_next(request, &http_status)) {
        return false;
    }
    if (http_status) {
        request_refuse(request, http_status);
    }
    bool is_watch = request_route(request)->grpc.watches && !request->http_status;
    if (is_watch && !http_status) {
        request_watch_begin(request);
    }
    return http_status || (request->grpc.is_complete && !is_watch);
}

/* ---- the answer ------------------------------------------------------------------------------ */

enum status request_grpc_print(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    static const uint8_t prefix[GRPC_PREFIX_BYTES];
    const struct route_grpc *route = &request_route(request)->grpc;
    enum grpc_message answer = grpc_methods[route->method].answer;
    if (route->is_stream) {
        return ST_OK;
    }
    struct buf json = request->out, *out = &request->out;
    enum status status = ST_OK;
    buf_init(out, json.max_bytes);
    buf_add(out, prefix, sizeof(prefix));
    if (grpc_message_info(answer).field_count > 0) {
        status = grpc_from_json(buf_span(&json), answer, route->wraps_answer, out, err);
    }
    if (status == ST_OK) {
        status = buf_check(out, "the answer", err);
    }
    if (status == ST_OK) {
        status = grpc_print_prefix(out->ptr, false, out->len - GRPC_PREFIX_BYTES, err);
    }
    buf_fini(&json);
    return status;
}

unsigned request_grpc_describe(struct request *request, struct http_answer *answer)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct request_grpc *grpc = &request->grpc;
    unsigned count = 0;
    size_t len = number_print_u64(grpc->status, grpc_status_of(answer->status));
    grpc->trailers[count++] = (struct http_trailer){"grpc-status", span_of(grpc->status, len)};
    if (answer->status != 200) {
        size_t bytes = grpc_print_text(request->err.text, grpc->text, sizeof(grpc->text));
        grpc->trailers[count++] = (struct http_trailer){"grpc-message", span_of(grpc->text, bytes)};
    }
    if (answer->retry_after_s) {
        len = number_print_u64(grpc->pushback, (uint64_t)answer->retry_after_s * 1000);
        grpc->trailers[count++] =
            (struct http_trailer){"grpc-retry-pushback-ms", span_of(grpc->pushback, len)};
    }
    answer->status = 200;
    answer->is_stream = true; /* no length: trailers follow */
    answer->content_type = "application/grpc";
    answer->message_accept = answer->accept_encoding ? "identity, " CODINGS_ACCEPTED : NULL;
    answer->content_encoding = answer->accept_encoding = answer->allow = NULL;
    answer->json_bytes = 0;
    answer->message_encoding =
        request->infer.coding == CODING_IDENTITY ? NULL : coding_name(request->infer.coding);
    return count;
}
