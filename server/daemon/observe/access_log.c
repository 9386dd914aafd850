/* SPDX-License-Identifier: MIT */
/*
 * Under systemd the lines go to the journal with fields: PTED_STATUS and so on, by which journalctl
 * finds them. Without its socket they are lines of JSON on stderr, as elsewhere.
 */
#include "config.h"

#include "server/daemon/observe/access_log.h"

#include <string.h>

#include "base/check.h"
#include "server/daemon/generation/generation.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request.h"
#include "server/http/transport.h"
#include "server/process/log.h"

#define NS_PER_US 1000

/* Bytes of texts of clients. */
#define ID_BYTES_MAX 128
#define PATH_BYTES_MAX 400
#define AGENT_BYTES_MAX 200
#define SUBJECT_BYTES_MAX 200
#define ERROR_BYTES_MAX 240
/* The rest of a line: names of members, numbers, times, the trace, the address. */
#define REST_BYTES_MAX 1300
_Static_assert(LINE_ESCAPED *(ID_BYTES_MAX + 2 * PATH_BYTES_MAX + AGENT_BYTES_MAX +
                              SUBJECT_BYTES_MAX + ERROR_BYTES_MAX + MODEL_NAME_MAX) +
                       REST_BYTES_MAX <=
                   LINE_BYTES_MAX,
               "any request fits into a line");

/* A line is JSON, or an entry of the journal with its fields. */
struct entry {
    struct line line;
    bool is_journal;
};

/* ---- members --------------------------------------------------------------------------------- */

/* The name of a member, and in JSON in one piece: each line has twenty of them. Three arguments, so
 * that the compiler knows the last. */
#define NAME(text) text, ",\"" text "\":", sizeof(",\"" text "\":") - 1
#define NAME_ARGUMENTS const char *name, const char *json, size_t json_bytes

/* Of the journal: PTED_STATUS= */
static void put_field(struct line *line, const char *name, struct span text, size_t max)
{
    line_add(line, (const char[]){LINE_SINK_FIELD_END}, 1);
    line_add_str(line, "PTED_");
    for (const char *at = name; *at; at++) {
        line_add(line, (const char[]){*at >= 'a' && *at <= 'z' ? (char)(*at - 32) : *at}, 1);
    }
    line_add(line, "=", 1);
    line_add_text(line, text, max);
}

static void put_number_field(struct line *line, const char *name, uint64_t value)
{
    put_field(line, name, span_of(NULL, 0), 0);
    line_add_number(line, value);
}

/* Returns the place behind ,"status": with room for |len| more bytes. */
__attribute__((always_inline)) static inline char *begin_member(struct line *line, const char *json,
                                                                size_t json_bytes, size_t len)
{
    char *at = line_room(line, json_bytes + len);
    memcpy(at, json, json_bytes);
    return at + json_bytes;
}

__attribute__((always_inline)) static inline void put_number(struct entry *entry, NAME_ARGUMENTS,
                                                             uint64_t value)
{
    struct line *line = &entry->line;
    if (entry->is_journal) {
        put_number_field(line, name, value);
    } else {
        char *at = begin_member(line, json, json_bytes, LINE_DIGITS_MAX);
        line_commit(line, line_print_number(at, value));
    }
}

__attribute__((always_inline)) static inline void put_text(struct entry *entry, NAME_ARGUMENTS,
                                                           struct span text, size_t max)
{
    struct line *line = &entry->line;
    size_t room = LINE_ESCAPED * (text.len < max ? text.len : max) + 2;
    if (entry->is_journal) {
        put_field(line, name, text, max);
    } else {
        char *at = begin_member(line, json, json_bytes, room);
        line_commit(line, line_print_quoted(at, text, max));
    }
}

static void add_time(struct line *line)
{
    line_commit(line, line_print_time(line_room(line, LINE_TIME_BYTES)));
}

/* ---- a line ---------------------------------------------------------------------------------- */

static uint64_t us_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns) / NS_PER_US : 0;
}

static void put_phases(struct entry *entry, const struct request *request, uint64_t now_ns)
{
    const struct rt_sched_job *job = &request->infer.job;
    if (request_has_run(request)) {
        uint64_t encoded_ns =
            request->infer.encoded_ns > job->finished_ns ? request->infer.encoded_ns : now_ns;
        put_number(entry, NAME("batch"), job->batch_size > 0 ? job->batch_size : 1);
        uint64_t decode_us = infer_media_ns(&request->infer.media) / NS_PER_US;
        uint64_t prepare_us = us_between(request->infer.arrived_ns, job->queued_ns);
        put_number(entry, NAME("prepare_us"), prepare_us > decode_us ? prepare_us - decode_us : 0);
        if (request->infer.media.ended_ns) {
            put_number(entry, NAME("decode_us"), decode_us);
        }
        put_number(entry, NAME("queue_us"), us_between(job->queued_ns, job->started_ns));
        put_number(entry, NAME("compute_us"), us_between(job->started_ns, job->finished_ns));
        put_number(entry, NAME("encode_us"), us_between(job->finished_ns, encoded_ns));
    }
    put_number(entry, NAME("total_us"),
               request->infer.arrived_ns ? us_between(request->infer.arrived_ns, now_ns) : 0);
}

static void put_trace(struct entry *entry, const struct trace *trace)
{
    put_text(entry, NAME("trace_id"), span_of(trace->id, sizeof(trace->id)), sizeof(trace->id));
    put_text(entry, NAME("span_id"), span_of(trace->span, sizeof(trace->span)),
             sizeof(trace->span));
    if (trace->has_parent) {
        put_text(entry, NAME("parent_id"), span_of(trace->parent, sizeof(trace->parent)),
                 sizeof(trace->parent));
    }
}

/* ---- who asks for what ----------------------------------------------------------------------- */

static struct access_origin *origin_of(struct access_log *log, const struct exchange *exchange)
{
    return &log->origins[(uintptr_t)exchange / sizeof(*exchange) % ACCESS_ORIGINS];
}

static bool has_origin(const struct access_origin *origin, const struct request *request,
                       struct span path)
{
    return origin->method && origin->method == request->method && !request->sender.via &&
           span_equal(path, span_of(origin->path, origin->path_len)) &&
           strcmp(origin->remote, request->sender.remote) == 0;
}

/* Keeps |text|, unless it is too long. */
static void keep_origin(struct access_origin *origin, const struct request *request,
                        struct span path, struct span text)
{
    size_t remote_len = strlen(request->sender.remote);
    origin->method = NULL;
    if (request->sender.via || path.len > sizeof(origin->path) || text.len > sizeof(origin->text) ||
        remote_len >= sizeof(origin->remote)) {
        return;
    }
    origin->method = request->method;
    memcpy(origin->remote, request->sender.remote, remote_len + 1);
    memcpy(origin->path, path.ptr, path.len);
    memcpy(origin->text, text.ptr, text.len);
    origin->path_len = path.len;
    origin->text_len = text.len;
}

static void put_origin(struct access_log *log, struct entry *entry, const struct request *request)
{
    struct access_origin *origin = origin_of(log, request->exchange);
    struct span path = head_path(&request->head);
    size_t begin = entry->line.len;
    if (has_origin(origin, request, path)) {
        line_add(&entry->line, origin->text, origin->text_len);
        return;
    }
    put_text(entry, NAME("remote"), span_str(request->sender.remote), TRANSPORT_REMOTE_MAX);
    if (request->sender.via) {
        put_text(entry, NAME("via"), span_str(request->sender.via), TRANSPORT_REMOTE_MAX);
    }
    put_text(entry, NAME("method"), span_str(request->method ? request->method : ""),
             TRANSPORT_REMOTE_MAX);
    put_text(entry, NAME("path"), path, PATH_BYTES_MAX);
    keep_origin(origin, request, path, span_of(entry->line.text + begin, entry->line.len - begin));
}

/* ---- what came of it ------------------------------------------------------------------------- */

/* The field X-Request-Id, or else the id in the body, if it was kept. */
static struct span id_of(const struct request *request)
{
    struct span id = head_value(&request->head, HTTP_X_REQUEST_ID);
    return id.len || !request_is_loops(request) ? id : request->infer.id;
}

static void put_tokens(struct entry *entry, const struct request *request)
{
    const struct generation_counts counts = generation_counts(&request->infer);
    if (counts.prompt_tokens) {
        put_number(entry, NAME("prompt_tokens"), counts.prompt_tokens);
        put_number(entry, NAME("answer_tokens"), counts.answer_tokens);
        put_number(entry, NAME("first_token_us"), counts.first_ns / NS_PER_US);
    }
}

static void put_request(struct entry *entry, struct request *request, int status)
{
    const struct exchange *exchange = request->exchange;
    struct span id = id_of(request), agent = head_value(&request->head, HTTP_USER_AGENT);
    put_number(entry, NAME("status"), (uint64_t)status);
    put_number(entry, NAME("bytes_in"), request->head.bytes + request->body_bytes);
    put_number(entry, NAME("bytes_out"), exchange->sent_bytes);
    if (id.len) {
        put_text(entry, NAME("id"), id, ID_BYTES_MAX);
    }
    if (request->match.model[0]) {
        put_text(entry, NAME("model"), span_str(request->match.model), MODEL_NAME_MAX);
    }
    if (request_is_loops(request)) {
        put_tokens(entry, request);
    }
    if (request->client.token_name) {
        put_text(entry, NAME("token"), span_str(request->client.token_name), TOKEN_NAME_MAX);
    }
    if (exchange->tls_version) {
        put_text(entry, NAME("tls"), span_str(exchange->tls_version), TRANSPORT_REMOTE_MAX);
    }
    if (exchange->tls_subject) {
        put_text(entry, NAME("tls_subject"), span_str(exchange->tls_subject), SUBJECT_BYTES_MAX);
    }
    if (agent.len) {
        put_text(entry, NAME("user_agent"), agent, AGENT_BYTES_MAX);
    }
    const struct trace *trace = request_trace(request);
    if (trace) {
        put_trace(entry, trace);
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
static void tell_lost(struct access_log *log)
{
    uint64_t lost = line_writer_counts(log->writer).lost;
    if (lost != log->lost_count &&
        log_gate_admits(&log->loop->log, LOG_KIND_ACCESS, SHARE_NOBODY)) {
        log_line(LOG_WARNING, "access log: %llu lines were lost so far", (unsigned long long)lost);
        log->lost_count = lost;
    }
}

/* The time; the journal knows it, and shows its people a sentence. */
static void begin(struct entry *entry, const struct request *request, int status)
{
    struct line *line = &entry->line;
    if (!entry->is_journal) {
        line_add_str(line, "{\"time\":\"");
        add_time(line);
        line_add_str(line, "\"");
        return;
    }
    line_add_str(line, "PRIORITY=6\036SYSLOG_IDENTIFIER=pted\036MESSAGE=");
    line_add_text(line, span_str(request->method ? request->method : "-"), TRANSPORT_REMOTE_MAX);
    line_add_str(line, " ");
    line_add_text(line, head_path(&request->head), PATH_BYTES_MAX);
    line_add_str(line, " ");
    line_add_number(line, (uint64_t)status);
}

void access_log_request(struct access_log *log, struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    int status = log->writer ? request_status(request) : 0;
    if (!log->writer || !is_wanted(log, log->options, status)) {
        return;
    }
    struct entry entry;
    entry.line.len = 0;
    entry.is_journal = log->is_journal;
    begin(&entry, request, status);
    put_origin(log, &entry, request);
    put_request(&entry, request, status);
    put_phases(&entry, request, uv_hrtime());
    if (request_is_loops(request) && request->err.code != ST_OK) {
        char text[ERROR_TEXT_MAX];
        put_text(&entry, NAME("error"), span_str(error_log_text(&request->err, text)),
                 ERROR_BYTES_MAX);
    }
    line_add_str(&entry.line, entry.is_journal ? "\n" : "}\n");
    line_writer_add(log->writer, entry.line.text, entry.line.len);
    tell_lost(log);
}

/* ---- the file -------------------------------------------------------------------------------- */

enum status access_log_open(struct access_log *log, struct loop *loop,
                            const struct options *options, struct error *err)
{
    must(!log->writer);
    log->loop = loop;
    log->options = options;
    if (options->access_log == OPTIONS_ACCESS_OFF) {
        return ST_OK;
    }
    struct line_sink *sink;
    log->is_journal = !options->access_log_file && log_stderr_is_journal() &&
                      line_sink_journal(LINE_SINK_JOURNAL_PATH, &sink, err) == ST_OK;
    if (!log->is_journal) {
        TRY(line_sink_file(options->access_log_file, &sink, err));
    }
    return line_writer_new(sink, (size_t)options->params.access_log_bytes, &log->writer, err);
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
