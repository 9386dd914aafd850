/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_stream.h"

#include <string.h>

#include "protocol/json.h"
#include "server/cli/transfer.h"

#define EVENT_BYTES_MAX ((size_t)4 << 20)

void bench_stream_init(struct bench_stream *stream)
{
    *stream = (struct bench_stream){.first_ns = 0};
    buf_init(&stream->event, EVENT_BYTES_MAX);
}

void bench_stream_fini(struct bench_stream *stream)
{
    buf_fini(&stream->event);
}

void bench_stream_begin(struct bench_stream *stream, struct bench_histogram *gaps)
{
    buf_reset(&stream->event);
    stream->first_ns = stream->last_ns = 0;
    stream->prompt_tokens = stream->answer_tokens = stream->bytes = 0;
    stream->has_usage = false;
    stream->gaps = gaps;
    stream->err.code = ST_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

struct event {
    struct bench_stream *stream;
    bool has_text;
};

static enum status read_choice(struct json *in, struct event *event, struct error *err)
{
    TRY(json_object(in, err));
    while (true) {
        struct json_string key, text;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "text") && json_peek(in) == JSON_STRING) {
            TRY(json_read_string(in, &text, err));
            event->has_text |= text.bytes > 0;
        } else {
            TRY(json_skip(in, err));
        }
    }
}

static enum status read_choices(struct json *in, struct event *event, struct error *err)
{
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        TRY(read_choice(in, event, err));
    }
}

static enum status read_usage(struct json *in, struct bench_stream *stream, struct error *err)
{
    bool has_prompt = false, has_answer = false;
    TRY(json_object(in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            stream->has_usage |= has_prompt && has_answer;
            return ST_OK;
        }
        if (json_string_is(&key, "prompt_tokens") && json_peek(in) == JSON_NUMBER) {
            has_prompt = true;
            TRY(json_read_u64(in, &stream->prompt_tokens, err));
        } else if (json_string_is(&key, "completion_tokens") && json_peek(in) == JSON_NUMBER) {
            has_answer = true;
            TRY(json_read_u64(in, &stream->answer_tokens, err));
        } else {
            TRY(json_skip(in, err));
        }
    }
}

/* The server's reason why the stream ends here. */
static enum status read_error(struct json *in, struct error *err)
{
    const uint8_t *begin = in->at;
    struct buf shown;
    TRY(json_skip(in, err));
    buf_init(&shown, 4096);
    transfer_show(span_of(begin, (size_t)(in->at - begin)), 200, &shown);
    error_set(err, ST_UNAVAILABLE, "the answer ended: %.*s", SPAN_FMT(buf_span(&shown)));
    buf_fini(&shown);
    return err->code;
}

static enum status read_member(struct json *in, const struct json_string *key, void *user,
                               struct error *err)
{
    struct event *event = user;
    if (json_string_is(key, "choices") && json_peek(in) == JSON_ARRAY) {
        return read_choices(in, event, err);
    }
    if (json_string_is(key, "usage") && json_peek(in) == JSON_OBJECT) {
        return read_usage(in, event->stream, err);
    }
    return json_string_is(key, "error") && json_peek(in) != JSON_NULL ? read_error(in, err)
                                                                      : json_skip(in, err);
}

static void note_text(struct bench_stream *stream, uint64_t now_ns)
{
    if (stream->first_ns == 0) {
        stream->first_ns = now_ns;
    } else {
        bench_histogram_add(stream->gaps, now_ns - stream->last_ns);
    }
    stream->last_ns = now_ns;
}

/* A line "data: ..."; other lines are comments and fields that nobody needs here. */
static enum status read_line(struct bench_stream *stream, struct span line, uint64_t now_ns,
                             struct error *err)
{
    struct event event = {.stream = stream};
    if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
        line.len--;
    }
    if (line.len < 5 || memcmp(line.ptr, "data:", 5) != 0) {
        return ST_OK;
    }
    size_t from = line.len > 5 && line.ptr[5] == ' ' ? 6 : 5;
    struct span text = span_of(line.ptr + from, line.len - from);
    if (text.len == 0 || span_is(text, "[DONE]")) {
        return ST_OK;
    }
    enum status status = json_read_members(text, read_member, &event, err);
    if (event.has_text) {
        note_text(stream, now_ns);
    }
    return transfer_blame_event(status, err);
}

bool bench_stream_take(struct bench_stream *stream, const void *bytes, size_t len, uint64_t now_ns)
{
    struct buf *event = &stream->event;
    enum status status = ST_OK;
    buf_add(event, bytes, len);
    stream->bytes += len;
    if (buf_failed(event)) {
        error_set(&stream->err, ST_CORRUPT, "the server sent an event of more than %zu bytes",
                  EVENT_BYTES_MAX);
        return false;
    }
    const uint8_t *at = event->ptr, *end = at + event->len, *newline;
    while (status == ST_OK && at < end && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        status = read_line(stream, span_of(at, (size_t)(newline - at)), now_ns, &stream->err);
        at = newline + 1;
    }
    size_t left = (size_t)(end - at);
    if (left > 0) {
        memmove(event->ptr, at, left);
    }
    event->len = left;
    return status == ST_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

enum status bench_stream_end(struct bench_stream *stream, uint64_t since_ns, uint64_t now_ns,
                             struct bench_language *out, struct error *err)
{
    if (stream->err.code != ST_OK) {
        *err = stream->err;
        return err->code;
    }
    if (stream->first_ns == 0) {
        return error_set(err, ST_CORRUPT, "the answer has no event with text");
    }
    uint64_t later_ns = now_ns - stream->first_ns;
    bench_histogram_add(&out->ttft, stream->first_ns - since_ns);
    if (!stream->has_usage) {
        out->uncounted++;
        return ST_OK;
    }
    out->prompt_tokens += stream->prompt_tokens;
    out->answer_tokens += stream->answer_tokens;
    out->first_ns += stream->first_ns - since_ns;
    if (stream->answer_tokens > 1) {
        out->later_tokens += stream->answer_tokens - 1;
        out->later_ns += later_ns;
        bench_histogram_add(&out->tpot, later_ns / (stream->answer_tokens - 1));
    }
    return ST_OK;
}
