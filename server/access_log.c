/* SPDX-License-Identifier: MIT */
/*
 * A line is put together without printf(), because each request may need one. Texts of clients are
 * cut first and then quoted; a byte becomes six at most, so the line has a bound.
 */
#include "config.h"

#include "server/access_log.h"

#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/utf8.h"
#include "server/http/transport.h"
#include "server/process/log.h"
#include "server/request.h"
#include "server/server.h"

#define NS_PER_US 1000

/* Bytes of texts of clients. */
#define ID_BYTES_MAX 128
#define PATH_BYTES_MAX 400
#define AGENT_BYTES_MAX 200
#define ERROR_BYTES_MAX 240
/* The rest of a line: names of members, numbers, times, the trace, the address. */
#define REST_BYTES_MAX 1200
#define QUOTED(bytes) (6 * (bytes))
_Static_assert(QUOTED(ID_BYTES_MAX + PATH_BYTES_MAX + AGENT_BYTES_MAX + ERROR_BYTES_MAX +
                      MODEL_NAME_MAX) +
                       REST_BYTES_MAX <=
                   LINE_WRITER_LINE_MAX,
               "any request fits into a line");

struct line {
    char text[LINE_WRITER_LINE_MAX];
    size_t len;
};

/* ---- pieces ---------------------------------------------------------------------------------- */

static void put(struct line *line, const void *bytes, size_t len)
{
    must(in_range(line->len, len, sizeof(line->text)));
    memcpy(line->text + line->len, bytes, len);
    line->len += len;
}

static void put_str(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

static void put_number(struct line *line, const char *name, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    put_str(line, name);
    put(line, digits + at, sizeof(digits) - at);
}

/* "\u202e", of a character in the first plane. */
static void put_escape(struct line *line, uint32_t code)
{
    static const char hex[] = "0123456789abcdef";
    const char text[6] = {
        '\\', 'u', hex[code >> 12 & 15], hex[code >> 8 & 15], hex[code >> 4 & 15], hex[code & 15]};
    put(line, text, sizeof(text));
}

/* The |len| bytes at |p|, which are a sequence, or one byte if |len| is 0. */
static void put_character(struct line *line, const uint8_t *p, size_t len)
{
    if (len == 0) {
        put_escape(line, 0xfffd);
    } else if (len == 1 && (*p == '"' || *p == '\\')) {
        put(line, (const char[]){'\\', (char)*p}, 2);
    } else if (len == 1) {
        put_escape(line, *p);
    } else if (utf8_is_disruptive(utf8_code(p, len))) {
        put_escape(line, utf8_code(p, len));
    } else {
        put(line, p, len);
    }
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* |name| is the text up to the value, quote included. */
static void put_text(struct line *line, const char *name, struct span text, size_t max)
{
    const uint8_t *p = text.ptr, *end = p + (text.len < max ? text.len : max);
    put_str(line, name);
    while (p < end) {
        const uint8_t *plain = p;
        while (p < end && is_plain(*p)) {
            p++;
        }
        put(line, plain, (size_t)(p - plain));
        if (p < end) {
            size_t len = *p < 0x80 ? 1 : utf8_sequence(p, end);
            put_character(line, p, len);
            p += len ? len : 1;
        }
    }
    put(line, "\"", 1);
}

/* "2026-11-24T09:46:38.123456Z"; the part up to the seconds is made once a second. */
static void put_time(struct line *line)
{
    static char text[sizeof("2026-11-24T09:46:38")];
    static time_t printed;
    struct timespec now;
    char rest[8] = {'.', 0, 0, 0, 0, 0, 0, 'Z'};
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != printed) {
        struct tm utc;
        gmtime_r(&now.tv_sec, &utc);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
        printed = now.tv_sec;
    }
    long us = now.tv_nsec / NS_PER_US;
    for (int i = 6; i > 0; i--, us /= 10) {
        rest[i] = (char)('0' + us % 10);
    }
    put(line, text, sizeof(text) - 1);
    put(line, rest, sizeof(rest));
}

/* ---- a line ---------------------------------------------------------------------------------- */

static uint64_t us_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns) / NS_PER_US : 0;
}

/* The request is with a thread or on the device while its client leaves: its parts are not ours. */
static bool is_ours(const struct request *request)
{
    return !request->is_on_worker && request->step != STEP_RUN;
}

/* Its job is not that of an earlier request. */
static bool has_run(const struct request *request)
{
    const struct rt_sched_job *job = &request->job;
    return is_ours(request) && request->arrived_ns > 0 && request->infer.ops &&
           job->queued_ns >= request->arrived_ns && job->started_ns >= job->queued_ns &&
           job->finished_ns >= job->started_ns;
}

static void put_phases(struct line *line, const struct request *request, uint64_t now_ns)
{
    const struct rt_sched_job *job = &request->job;
    if (has_run(request)) {
        uint64_t encoded_ns = request->encoded_ns > job->finished_ns ? request->encoded_ns : now_ns;
        put_number(line, ",\"batch\":", job->batch_size > 0 ? job->batch_size : 1);
        put_number(line, ",\"prepare_us\":", us_between(request->arrived_ns, job->queued_ns));
        put_number(line, ",\"queue_us\":", us_between(job->queued_ns, job->started_ns));
        put_number(line, ",\"compute_us\":", us_between(job->started_ns, job->finished_ns));
        put_number(line, ",\"encode_us\":", us_between(job->finished_ns, encoded_ns));
    }
    put_number(line,
               ",\"total_us\":", request->arrived_ns ? us_between(request->arrived_ns, now_ns) : 0);
}

static void put_trace(struct line *line, const struct trace *trace)
{
    put_str(line, ",\"trace_id\":\"");
    put(line, trace->id, sizeof(trace->id));
    put_str(line, "\",\"span_id\":\"");
    put(line, trace->span, sizeof(trace->span));
    if (trace->has_parent) {
        put_str(line, "\",\"parent_id\":\"");
        put(line, trace->parent, sizeof(trace->parent));
    }
    put_str(line, "\"");
}

/* The field X-Request-Id, or else the id in the body, if it was kept. */
static struct span id_of(const struct request *request)
{
    struct span id = head_value(&request->head, HTTP_X_REQUEST_ID);
    return id.len || !is_ours(request) ? id : request->infer.id;
}

static void put_request(struct line *line, struct request *request)
{
    const struct exchange *exchange = request->exchange;
    struct span id = id_of(request), agent = head_value(&request->head, HTTP_USER_AGENT);
    put_text(line, ",\"remote\":\"", span_str(exchange->remote), TRANSPORT_REMOTE_MAX);
    put_text(line, ",\"method\":\"", span_str(request->method ? request->method : ""),
             TRANSPORT_REMOTE_MAX);
    put_text(line, ",\"path\":\"", head_target(&request->head), PATH_BYTES_MAX);
    put_number(line, ",\"status\":", (uint64_t)request_status(request));
    put_number(line, ",\"bytes_in\":", request->head.bytes + request->body_bytes);
    put_number(line, ",\"bytes_out\":", exchange->sent_bytes);
    if (id.len) {
        put_text(line, ",\"id\":\"", id, ID_BYTES_MAX);
    }
    if (request->match.model[0]) {
        put_text(line, ",\"model\":\"", span_str(request->match.model), MODEL_NAME_MAX);
    }
    if (agent.len) {
        put_text(line, ",\"user_agent\":\"", agent, AGENT_BYTES_MAX);
    }
    const struct trace *trace = request_trace(request);
    if (trace) {
        put_trace(line, trace);
    }
}

static bool is_wanted(struct access_log *log, const struct options *options, int status)
{
    if (options->access_log == OPTIONS_ACCESS_ALL || status >= 400) {
        return true;
    }
    return options->access_log == OPTIONS_ACCESS_SAMPLED &&
           log->good_count++ % options->params.access_log_sample == 0;
}

/* Lines are lost: the log says so, now and then. */
static void tell_lost(struct server *server)
{
    struct access_log *log = &server->access_log;
    uint64_t lost = line_writer_counts(log->writer).lost;
    if (lost != log->lost_count && server_may_log(server, LOG_KIND_ACCESS)) {
        log_line(LOG_WARNING, "access log: %llu lines were lost so far", (unsigned long long)lost);
        log->lost_count = lost;
    }
}

void access_log_request(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct server *server = request->server;
    struct access_log *log = &server->access_log;
    if (!log->writer || !is_wanted(log, server->options, request_status(request))) {
        return;
    }
    struct line line;
    line.len = 0;
    if (log->is_journal) {
        put_str(&line, "<6>"); /* info, as sd-daemon(3) has it */
    }
    put_str(&line, "{\"time\":\"");
    put_time(&line);
    put_str(&line, "\"");
    put_request(&line, request);
    put_phases(&line, request, uv_hrtime());
    if (is_ours(request) && request->err.code != ST_OK) {
        put_text(&line, ",\"error\":\"", span_str(request->err.text), ERROR_BYTES_MAX);
    }
    put_str(&line, "}\n");
    line_writer_add(log->writer, line.text, line.len);
    tell_lost(server);
}

/* ---- the file -------------------------------------------------------------------------------- */

enum status access_log_open(struct access_log *log, const struct options *options,
                            struct error *err)
{
    if (options->access_log == OPTIONS_ACCESS_OFF) {
        return ST_OK;
    }
    log->is_journal = !options->access_log_file && log_stderr_is_journal();
    return line_writer_new(options->access_log_file, (size_t)options->params.access_log_bytes,
                           &log->writer, err);
}

void access_log_close(struct access_log *log)
{
    line_writer_free(log->writer);
    log->writer = NULL;
}

enum status access_log_reopen(struct access_log *log, struct error *err)
{
    return log->writer ? line_writer_reopen(log->writer, err) : ST_OK;
}

struct line_writer_counts access_log_counts(const struct access_log *log)
{
    return log->writer ? line_writer_counts(log->writer) : (struct line_writer_counts){0};
}
