/* SPDX-License-Identifier: MIT */
/*
 * Attributes have the names of OpenTelemetry's semantic conventions for HTTP servers; names of the
 * rest begin with "pted.".
 */
#include "config.h"

#include "server/daemon/observe/spans.h"

#include <string.h>
#include <time.h>

#include "base/check.h"
#include "protocol/oip_settings.h"
#include "server/daemon/observe/otlp.h"
#include "server/daemon/request/request.h"
#include "server/http/transport.h"

#define KIND_INTERNAL 1
#define KIND_SERVER 2

/* Bytes of texts of clients. */
#define PATH_BYTES_MAX 400
#define AGENT_BYTES_MAX 200
#define ERROR_BYTES_MAX 240
#define REST_BYTES_MAX 3000 /* of six spans */
_Static_assert(LINE_ESCAPED *(PATH_BYTES_MAX + AGENT_BYTES_MAX + ERROR_BYTES_MAX + MODEL_NAME_MAX) +
                       REST_BYTES_MAX <=
                   LINE_BYTES_MAX,
               "the spans of any request fit into a line");

/* ---- pieces ---------------------------------------------------------------------------------- */

static void add_time(struct line *line, const char *name, uint64_t ns)
{
    line_add_str(line, ",\"");
    line_add_str(line, name);
    line_add_str(line, "\":\"");
    line_add_number(line, ns);
    line_add_str(line, "\"");
}

/* From {"traceId" to the times; |name| is a string of JSON. The object stays open. */
static void begin_span(struct line *line, const struct trace *trace, const char *span_id,
                       const char *parent_id, int kind)
{
    line_add_str(line, "{\"traceId\":\"");
    line_add(line, trace->id, sizeof(trace->id));
    line_add_str(line, "\",\"spanId\":\"");
    line_add(line, span_id, TRACE_SPAN_CHARS);
    if (parent_id) {
        line_add_str(line, "\",\"parentSpanId\":\"");
        line_add(line, parent_id, TRACE_SPAN_CHARS);
    }
    line_add_str(line, "\",\"kind\":");
    line_add_number(line, (uint64_t)kind);
}

/* Leaves room for the value, which closes three brackets. */
static void begin_attribute(struct line *line, const char *key, const char *type)
{
    line_add_str(line, line->text[line->len - 1] == '[' ? "{\"key\":\"" : ",{\"key\":\"");
    line_add_str(line, key);
    line_add_str(line, "\",\"value\":{\"");
    line_add_str(line, type);
    line_add_str(line, "\":");
}

static void add_text(struct line *line, const char *key, struct span text, size_t max)
{
    if (text.len) {
        begin_attribute(line, key, "stringValue");
        line_add_quoted(line, text, max);
        line_add_str(line, "}}");
    }
}

/* OTLP's JSON has integers of 64 bits as strings. */
static void add_number(struct line *line, const char *key, uint64_t value)
{
    begin_attribute(line, key, "intValue");
    line_add_str(line, "\"");
    line_add_number(line, value);
    line_add_str(line, "\"}}");
}

/* ---- the spans of a request ------------------------------------------------------------------ */

static void add_attributes(struct line *line, const struct request *request)
{
    const char *method = request->method ? request->method : "-";
    line_add_str(line, ",\"attributes\":[");
    add_text(line, "http.request.method", span_str(method), TRANSPORT_REMOTE_MAX);
    add_text(line, "http.route", span_str(route_pattern(request->match.id)), PATH_BYTES_MAX);
    add_text(line, "url.path", head_path(&request->head), PATH_BYTES_MAX);
    add_text(line, "client.address", span_str(request->sender.remote), TRANSPORT_REMOTE_MAX);
    add_text(line, "network.peer.address", span_str(request->sender.via ? request->sender.via : ""),
             TRANSPORT_REMOTE_MAX);
    add_text(line, "user_agent.original", head_value(&request->head, HTTP_USER_AGENT),
             AGENT_BYTES_MAX);
    add_number(line, "http.response.status_code", (uint64_t)request_status(request));
    add_text(line, "pted.model", span_str(request->match.model), MODEL_NAME_MAX);
    if (request_has_run(request)) {
        add_number(line, "pted.batch_size",
                   request->infer.job.batch_size ? request->infer.job.batch_size : 1);
    }
    line_add_str(line, "]");
}

static void add_status(struct line *line, const struct request *request)
{
    if (request_status(request) >= 500) {
        line_add_str(line, ",\"status\":{\"code\":2");
        if (request_is_loops(request) && request->err.code != ST_OK) {
            char text[ERROR_TEXT_MAX];
            line_add_str(line, ",\"message\":");
            line_add_quoted(line, span_str(error_log_text(&request->err, text)), ERROR_BYTES_MAX);
        }
        line_add_str(line, "}");
    }
}

/* A span below |parent|, with an id that is written to |span_id|. */
static void add_span(struct trace_source *traces, struct line *line, struct request *request,
                     const char *name, const char *parent, char span_id[TRACE_SPAN_CHARS],
                     uint64_t from_ns, uint64_t to_ns)
{
    trace_make_span(traces, span_id);
    line_add_str(line, ",");
    begin_span(line, &request->trace.context, span_id, parent, KIND_INTERNAL);
    line_add_str(line, ",\"name\":\"");
    line_add_str(line, name);
    line_add_str(line, "\"");
    add_time(line, "startTimeUnixNano", from_ns);
    add_time(line, "endTimeUnixNano", to_ns > from_ns ? to_ns : from_ns);
    line_add_str(line, "}");
}

static void add_phase(struct trace_source *traces, struct line *line, struct request *request,
                      const char *name, uint64_t from_ns, uint64_t to_ns)
{
    char span_id[TRACE_SPAN_CHARS];
    add_span(traces, line, request, name, request->trace.context.span, span_id, from_ns, to_ns);
}

/* Reading files and texts is within it. */
static void add_prepare(struct trace_source *traces, struct line *line, struct request *request,
                        uint64_t epoch_ns)
{
    const struct infer_media *media = &request->infer.media;
    char prepare[TRACE_SPAN_CHARS], decode[TRACE_SPAN_CHARS];
    add_span(traces, line, request, "prepare", request->trace.context.span, prepare,
             epoch_ns + request->infer.arrived_ns, epoch_ns + request->infer.job.queued_ns);
    if (media->ended_ns) {
        add_span(traces, line, request, "decode", prepare, decode, epoch_ns + media->began_ns,
                 epoch_ns + media->ended_ns);
    }
}

/* |epoch_ns|: the time since 1970 at which the clock of the job's times was 0. */
static void add_phases(struct trace_source *traces, struct line *line, struct request *request,
                       uint64_t epoch_ns, uint64_t now_ns)
{
    const struct rt_sched_job *job = &request->infer.job;
    uint64_t encoded_ns =
        request->infer.encoded_ns > job->finished_ns ? request->infer.encoded_ns : now_ns;
    add_prepare(traces, line, request, epoch_ns);
    add_phase(traces, line, request, "queue", epoch_ns + job->queued_ns,
              epoch_ns + job->started_ns);
    add_phase(traces, line, request, "compute", epoch_ns + job->started_ns,
              epoch_ns + job->finished_ns);
    add_phase(traces, line, request, "encode", epoch_ns + job->finished_ns, epoch_ns + encoded_ns);
}

/* "POST /v2/models/{m}/infer", of the pattern: names of spans are few. */
static void add_name(struct line *line, const struct request *request)
{
    const char *route = request->match.id < ROUTE_COUNT ? route_pattern(request->match.id) : "";
    line_add_str(line, ",\"name\":\"");
    line_add_text(line, span_str(request->method ? request->method : "-"), TRANSPORT_REMOTE_MAX);
    line_add_str(line, *route ? " " : "");
    line_add_str(line, route);
    line_add_str(line, "\"");
}

void spans_request(struct spans *spans, struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const struct trace *trace = spans->writer && !spans->is_off ? request_trace(request) : NULL;
    struct timespec wall;
    struct line line;
    if (!trace || !(trace->flags & TRACE_FLAG_SAMPLED)) {
        return;
    }
    uint64_t now_ns = uv_hrtime();
    clock_gettime(CLOCK_REALTIME, &wall);
    uint64_t epoch_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - now_ns;
    line.len = 0;
    begin_span(&line, trace, trace->span, trace->has_parent ? trace->parent : NULL, KIND_SERVER);
    add_name(&line, request);
    add_time(&line, "startTimeUnixNano",
             epoch_ns + (request->infer.arrived_ns ? request->infer.arrived_ns : now_ns));
    add_time(&line, "endTimeUnixNano", epoch_ns + now_ns);
    add_attributes(&line, request);
    add_status(&line, request);
    line_add_str(&line, "}");
    if (request_has_run(request)) {
        add_phases(spans->traces, &line, request, epoch_ns, now_ns);
    }
    line_add_str(&line, "\n");
    line_writer_add(spans->writer, line.text, line.len);
}

/* ---- traces and their collector -------------------------------------------------------------- */

bool spans_begin_trace(struct spans *spans, struct trace *out_trace)
{
    if (!spans->writer || spans->is_off || spans->every == 0 || spans->left == 0 ||
        spans->call_count++ % spans->every != 0) {
        return false;
    }
    spans->left -= spans->left > 0;
    trace_begin(spans->traces, span_str(""), out_trace);
    out_trace->flags = TRACE_FLAG_SAMPLED;
    return true;
}

enum status spans_open(struct spans *spans, struct trace_source *traces,
                       const struct options *options, struct error *err)
{
    struct line_sink *sink;
    spans->traces = traces;
    spans->every = options->params.trace_sample;
    spans->left = -1;
    if (!options->otlp_endpoint) {
        return ST_OK;
    }
    TRY(otlp_sink(options->otlp_endpoint, options->otlp_service ? options->otlp_service : "pted",
                  &sink, err));
    return line_writer_new(sink, (size_t)options->params.otlp_bytes, &spans->writer, err);
}

/* ---- settings that change while the daemon serves -------------------------------------------- */

enum status spans_change(struct spans *spans, const struct params *params,
                         const struct oip_trace_change *change, struct error *err)
{
    if (!spans->writer &&
        (change->level == OIP_TRACE_ON || change->rate.is_set || change->count.is_set)) {
        return error_set(err, ST_UNSUPPORTED,
                         "trace settings: there is no collector, see --otlp-endpoint");
    }
    if (change->level != OIP_TRACE_SAME) {
        spans->is_off = change->level == OIP_TRACE_OFF;
    }
    if (change->rate.is_set || change->rate.is_default) {
        spans->every = change->rate.is_set ? (uint64_t)change->rate.value : params->trace_sample;
    }
    if (change->count.is_set || change->count.is_default) {
        spans->left = change->count.is_set ? change->count.value : -1;
    }
    return ST_OK;
}

void spans_print_settings(const struct spans *spans, struct buf *out)
{
    const struct oip_trace_settings settings = {
        .is_on = spans->writer && !spans->is_off,
        .rate = spans->every,
        .count = spans->left,
    };
    oip_print_trace(out, &settings);
}

void spans_close(struct spans *spans)
{
    line_writer_free(spans->writer);
    spans->writer = NULL;
}

struct line_writer_counts spans_counts(const struct spans *spans)
{
    return spans->writer ? line_writer_counts(spans->writer) : (struct line_writer_counts){0};
}
