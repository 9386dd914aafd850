/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/request_log.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/process/log.h"

/* Of a target, so that room remains for the text behind it in a line. */
#define PATH_BYTES_MAX 400
#define NS_PER_US 1000

/* A 4xx is the client's affair, and so is a version of HTTP that there is not; the rest is ours. */
static bool is_ours(int http_status)
{
    return http_status >= 500 && http_status != 505;
}

static struct span path_of(const struct request *request)
{
    struct span path = head_path(&request->head);
    return span_of(path.ptr, path.len < PATH_BYTES_MAX ? path.len : PATH_BYTES_MAX);
}

static bool logs_all(const struct request *request)
{
    return request->requests->uses.options->log_requests == OPTIONS_LOG_ALL;
}

void request_log_error(struct request *request, int http_status, const struct error *why, int index)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(why->code != ST_OK);
    char place[16] = "", text[ERROR_TEXT_MAX];
    if (index < 0 && logs_all(request)) {
        return; /* the request's own line has it */
    }
    if (request->match.id == ROUTE_READY && http_status == 503) {
        return; /* a probe that learns "not yet" has found no fault */
    }
    if (!log_gate_admits(&request->requests->uses.loop->log,
                         is_ours(http_status) ? LOG_KIND_FAILED : LOG_KIND_REFUSED,
                         request->client.id)) {
        return;
    }
    if (index >= 0) {
        snprintf(place, sizeof(place), " [%d]", index);
    }
    log_line(is_ours(http_status) ? LOG_WARNING : LOG_INFO, "%d %.*s%s: %s", http_status,
             SPAN_FMT(path_of(request)), place, error_log_text(why, text));
}

static uint64_t us_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns) / NS_PER_US : 0;
}

/* Of a request that a worker or the scheduler still has, the line says what the loop knows. */
void request_log_end(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (!logs_all(request)) {
        return;
    }
    const struct rt_sched_job *job = &request->infer.job;
    int status = request_status(request);
    bool has_run = request_has_run(request);
    bool has_failed = request_is_loops(request) && request->err.code != ST_OK;
    char status_text[12] = "gone", text[ERROR_TEXT_MAX];
    if (status != HTTP_GONE) {
        snprintf(status_text, sizeof(status_text), "%d", status);
    }
    log_line(
        status != HTTP_GONE && is_ours(status) ? LOG_WARNING : LOG_INFO,
        "request remote=%s%s%s method=%s path=%.*s status=%s in=%zu out=%" PRIu64 " model=%s "
        "queue_us=%" PRIu64 " compute_us=%" PRIu64 " total_us=%" PRIu64 "%s%s",
        request->sender.remote, request->sender.via ? " via=" : "",
        request->sender.via ? request->sender.via : "", request->method ? request->method : "-",
        SPAN_FMT(path_of(request)), status_text, request->head.bytes + request->body_bytes,
        request->exchange->sent_bytes, request->match.model[0] ? request->match.model : "-",
        has_run ? us_between(job->queued_ns, job->started_ns) : 0,
        has_run ? us_between(job->started_ns, job->finished_ns) : 0,
        us_between(request->infer.arrived_ns ? request->infer.arrived_ns : UINT64_MAX, uv_hrtime()),
        has_failed ? " error=" : "", has_failed ? error_log_text(&request->err, text) : "");
}

bool request_has_run(const struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const struct rt_sched_job *job = &request->infer.job;
    return request_is_loops(request) && request->infer.arrived_ns > 0 && request->infer.ops &&
           job->queued_ns >= request->infer.arrived_ns && job->started_ns >= job->queued_ns &&
           job->finished_ns >= job->started_ns;
}
