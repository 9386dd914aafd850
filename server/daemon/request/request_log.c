/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/request_log.h"

#include <stdio.h>

#include "base/check.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/process/line.h"
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

static void add(struct line *line, const char *name, const char *text)
{
    line_add_str(line, name);
    line_add_str(line, text);
}

static void add_number(struct line *line, const char *name, uint64_t value)
{
    line_add_str(line, name);
    line_add_number(line, value);
}

static void add_path(struct line *line, const struct request *request)
{
    struct span path = path_of(request);
    line_add_str(line, " path=");
    if (path.len) {
        line_add(line, path.ptr, path.len);
    }
}

static void add_status(struct line *line, int status)
{
    if (status == HTTP_GONE) {
        line_add_str(line, " status=gone");
    } else {
        add_number(line, " status=", (uint64_t)status);
    }
}

static void add_times(struct line *line, const struct request *request)
{
    const struct rt_sched_job *job = &request->infer.job;
    bool has_run = request_has_run(request);
    uint64_t arrived_ns = request->infer.arrived_ns ? request->infer.arrived_ns : UINT64_MAX;
    add_number(line, " queue_us=", has_run ? us_between(job->queued_ns, job->started_ns) : 0);
    add_number(line, " compute_us=", has_run ? us_between(job->started_ns, job->finished_ns) : 0);
    add_number(line, " total_us=", us_between(arrived_ns, uv_hrtime()));
}

/* Of a request that a worker or the scheduler still has, the line says what the loop knows. */
void request_log_end(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (!logs_all(request)) {
        return;
    }
    int status = request_status(request);
    enum log_level level = status != HTTP_GONE && is_ours(status) ? LOG_WARNING : LOG_INFO;
    if (!log_has_level(level)) {
        return;
    }
    struct line line;
    line.len = 0;
    add(&line, "request remote=", request->sender.remote);
    if (request->sender.via) {
        add(&line, " via=", request->sender.via);
    }
    add(&line, " method=", request->method ? request->method : "-");
    add_path(&line, request);
    add_status(&line, status);
    add_number(&line, " in=", request->head.bytes + request->body_bytes);
    add_number(&line, " out=", request->exchange->sent_bytes);
    add(&line, " model=", request->match.model[0] ? request->match.model : "-");
    add_times(&line, request);
    if (request_is_loops(request) && request->err.code != ST_OK) {
        char text[ERROR_TEXT_MAX];
        add(&line, " error=", error_log_text(&request->err, text));
    }
    log_text(level, span_of(line.text, line.len));
}

bool request_has_run(const struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const struct rt_sched_job *job = &request->infer.job;
    return request_is_loops(request) && request->infer.arrived_ns > 0 && request->infer.ops &&
           job->queued_ns >= request->infer.arrived_ns && job->started_ns >= job->queued_ns &&
           job->finished_ns >= job->started_ns;
}
