/* SPDX-License-Identifier: MIT */
/* The head of a request: its route, its access, its query, its trace; and the limits and the memory
 * of the body that it announces. */
#include "config.h"

#include "server/daemon/request/request_priv.h"

#include <stdio.h>

#include "base/check.h"
#include "base/resource.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/access.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request_stream.h"
#include "server/daemon/request/requests.h"
#include "server/http/client.h"
#include "server/http/forwarded.h"
#include "server/http/http.h"
#include "server/process/log.h"

/* Greatest body of a request that is answered on the loop. */
#define CONTROL_BYTES_MAX (256 << 10)

void request_refuse(struct request *request, int http_status)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(http_status >= 400);
    must(request->err.code != ST_OK);
    request->http_status = http_status;
    request_grpc_note_refusal(request);
    request->match.none = route_none_of(head_target(&request->head)); /* it may not be set yet */
}

static size_t read_announced_json(const struct request *request)
{
    struct span value = head_value(&request->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
    size_t bytes = 0;
    for (size_t i = 0; i < value.len && i < 9; i++) {
        bytes = bytes * 10 + (size_t)(value.ptr[i] - '0') % 10;
    }
    return bytes;
}

static enum status announce_body(struct request *request, const struct exchange_head *head)
{
    /* A handler parses only small bodies on the loop. */
    const struct route *route = request_route(request);
    bool is_small = route->handler && !route->is_long;
    size_t max = request->requests->uses.params->body_bytes_max;
    request->body.max_bytes = is_small && max > CONTROL_BYTES_MAX ? CONTROL_BYTES_MAX : max;
    if (head->content_length > request->body.max_bytes && !route->grpc.has_calls) {
        return error_set(
            &request->err, ST_TOO_LARGE, "Content-Length: expected at most %zu bytes%s, got %llu",
            request->body.max_bytes, request->body.max_bytes == max ? " (--body-bytes-max)" : "",
            (unsigned long long)head->content_length);
    }
    if (!head->has_body || route->grpc.has_calls) {
        return ST_OK;
    }
    request->announced_json = read_announced_json(request);
    return body_announce(&request->body, (size_t)head->content_length, request->announced_json,
                         &request->err);
}

/* The daemon has to allow ?profile=1. */
static int check_query(struct request *request)
{
    const struct route *route = request_route(request);
    if (route->ignores_queries) {
        return 200;
    }
    if (query_parse(head_target(&request->head), route->queries, &request->infer.query,
                    &request->err) != ST_OK) {
        return 400;
    }
    if (request->infer.query.wants_profile &&
        request->requests->uses.params->profile_spans_max == 0) {
        error_set(&request->err, ST_INVALID,
                  "profile=1: calls are not profiled here, see --profile-spans-max");
        return 403;
    }
    return 200;
}

static int find_route(struct request *request, const struct exchange_head *head)
{
    if (access_is_preflight(request, head)) {
        request->match.id = ROUTE_PREFLIGHT;
        return 200;
    }
    return route_find(head_target(&request->head), head->method, &request->match, &request->err);
}

/* The route and the query, which the head has; in |*out_is_known| whether it led to a call before.
 */
static int recall_route(struct request *request, const struct exchange_head *head,
                        bool *out_is_known)
{
    const struct exchange_known *known = &request->exchange->known;
    *out_is_known = head->is_known && known->is_set;
    if (!*out_is_known) {
        return find_route(request, head);
    }
    request->match = known->match;
    request->infer.query = known->query;
    return 200;
}

static void learn_route(const struct request *request)
{
    request->exchange->known = (struct exchange_known){
        .is_set = !request_route(request)->handler,
        .match = request->match,
        .query = request->infer.query,
    };
}

/* Before the first models are there, it is not known what the daemon has. Calls wait for them. */
static int check_started(struct request *request)
{
    const struct route *route = request_route(request);
    if (!request->requests->uses.loop->is_starting || route->is_for_probes || !route->handler) {
        return 200;
    }
    error_set(&request->err, ST_UNAVAILABLE, "models are loading");
    return 503;
}

/* Probes are answered always. */
static int count_in(struct request *request)
{
    struct share *requests = &request->requests->admitted;
    if (request_route(request)->is_for_probes && !request_route(request)->grpc.watches) {
        return 200;
    }
    enum share_taken taken = share_take(requests, request->client.id, 1);
    request->sender.is_counted = taken == SHARE_TAKEN;
    if (!request->sender.is_counted) {
        resource_refuse(RESOURCE_REQUESTS, requests, taken, request->client.id, &request->err);
    }
    return request->sender.is_counted ? 200 : 429;
}

/* A proxy whose word is believed may say whose request it has passed on. If it does not, or not
 * understandably, the client is the proxy. */
static void name_client(struct request *request)
{
    static const enum http_field fields[] = {
        [OPTIONS_X_FORWARDED_FOR] = HTTP_X_FORWARDED_FOR,
        [OPTIONS_FORWARDED] = HTTP_FORWARDED,
    };
    const struct requests_uses *uses = &request->requests->uses;
    struct address client;
    struct error err;
    char text[ADDRESS_TEXT_MAX];
    bool is_found;
    if (!request->exchange->is_proxy) {
        return;
    }
    if (forwarded_find(uses->proxies, &request->head, fields[uses->options->proxy_says], &client,
                       &is_found, &err) != ST_OK &&
        log_gate_admits(&uses->loop->log, LOG_KIND_PROXY, request->exchange->client)) {
        log_line(LOG_WARNING, "proxy %s: %s", request->exchange->remote, err.text);
    }
    if (is_found) {
        address_print(&client, text);
        snprintf(request->sender.named, sizeof(request->sender.named), "%.*s",
                 TRANSPORT_REMOTE_MAX - 1, text);
        request->sender.remote = request->sender.named;
        request->sender.via = request->exchange->remote;
        request->client.id = client_of_address(&client);
    }
}

bool request_begin(struct request *request, const struct exchange_head *head)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->exchange && request->step == STEP_READ && request->serving);
    request->method = head->method_name;
    name_client(request);
    bool is_known;
    request->exchange->known.is_set &= !head->is_learnt;
    int status = request_grpc_begin(request, recall_route(request, head, &is_known));
    status = status == 200 ? access_begin(request) : status;
    status = status == 200 ? check_started(request) : status;
    status = status == 200 ? count_in(request) : status;
    status = status == 200 && !is_known ? check_query(request) : status;
    if (status == 200 && head->is_learnt) {
        learn_route(request);
    }
    if (status == 200) {
        enum status announced = announce_body(request, head);
        status = announced == ST_OK ? 200 : http_status_of(announced);
    }
    request->infer.version = request->match.version;
    if (status == 200 && !request_route(request)->handler) {
        status =
            infer_begin(&request->infer, request_route(request)->ops, request_route(request)->codec,
                        request->requests->uses.loop->is_starting, &request->err);
    }
    if (status == 200 && request_route(request)->grpc.has_calls) {
        enum status opened = request_stream_open(request, &request->err);
        status = opened == ST_OK ? 200 : http_status_of(opened);
    }
    if (status != 200) {
        request_refuse(request, status);
    }
    return status == 200;
}

const struct trace *request_trace(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const struct requests_uses *uses = &request->requests->uses;
    uint8_t count = request->head.counts[HTTP_TRACEPARENT];
    if (count > 0 && !request->trace.is_known) {
        struct span field = head_value(&request->head, HTTP_TRACEPARENT);
        trace_begin(&request->requests->traces, count == 1 ? field : span_str(""),
                    &request->trace.context);
        request->trace.is_known = true;
    } else if (count == 0 && request->infer.ops && !request->trace.is_decided) {
        request->trace.is_decided = true;
        request->trace.is_known = uses->ops->begin_trace(uses->owner, &request->trace.context);
    }
    return request->trace.is_known ? &request->trace.context : NULL;
}
