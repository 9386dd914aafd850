/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/chat_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/cli/cli.h"

#define PATH "/v1/chat/completions"
#define EVENT_BYTES_MAX ((size_t)4 << 20)
#define DIM "\x1b[2m"
#define PLAIN "\x1b[0m"
#define POLL_MS 50 /* so long until a signal is seen */

struct stream {
    struct transfer *transfer;
    struct chat_answer *answer;
    struct buf event; /* the bytes of it that have come */
    bool is_terminal;
    bool is_dim; /* the last text was a thought */
    const volatile int *stop;
    uint64_t began_ns;
    enum status status; /* of reading the events */
    struct error err;
};

void chat_answer_init(struct chat_answer *answer)
{
    *answer = (struct chat_answer){.token_count = 0};
    buf_init(&answer->text, CHAT_ANSWER_BYTES_MAX);
}

void chat_answer_fini(struct chat_answer *answer)
{
    buf_fini(&answer->text);
}

/* ---- text for a terminal --------------------------------------------------------------------- */

static size_t length_of(uint8_t first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* C0, DEL and C1 may be commands; U+202A to U+202E and U+2066 to U+2069 turn lines round. */
static bool is_hostile(const uint8_t *c, size_t len)
{
    if (len == 1) {
        return (c[0] < 0x20 && c[0] != '\n' && c[0] != '\t') || c[0] == 0x7f;
    }
    if (len == 2) {
        return c[0] == 0xc2 && c[1] < 0xa0;
    }
    return len == 3 && c[0] == 0xe2 &&
           ((c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) ||
            (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

/* Appends |text| as a terminal may have it: controls other than tab and newline, and characters
 * that change the direction of writing, become U+FFFD. |text| has whole characters. */
static void clean_text(struct span text, struct buf *out)
{
    for (size_t at = 0; at < text.len;) {
        size_t len = length_of(text.ptr[at]);
        len = len < text.len - at ? len : text.len - at;
        if (is_hostile(text.ptr + at, len)) {
            buf_add_str(out, "\xef\xbf\xbd");
        } else {
            buf_add(out, text.ptr + at, len);
        }
        at += len;
    }
}

static enum status show(struct stream *s, struct span text, struct error *err)
{
    struct buf clean;
    buf_init(&clean, 4 * EVENT_BYTES_MAX);
    if (s->is_terminal) {
        clean_text(text, &clean);
        text = buf_span(&clean);
    }
    if (buf_failed(&clean)) {
        buf_fini(&clean);
        return error_no_memory(err, "the text");
    }
    fwrite(text.ptr, 1, text.len, stdout);
    buf_fini(&clean);
    return cli_flush(err);
}

/* Thoughts look other than the answer, and stand apart from it. */
static void set_dim(struct stream *s, bool is_dim)
{
    if (s->is_dim != is_dim) {
        fputs(is_dim ? DIM : PLAIN "\n\n", stdout);
        s->is_dim = is_dim;
    }
}

static bool can_dim(const struct stream *s)
{
    const char *terminal = getenv("TERM");
    return s->is_terminal && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

static enum status take_thought(struct stream *s, const struct json_string *string,
                                struct error *err)
{
    struct buf text;
    s->answer->has_thought |= string->bytes > 0;
    if (string->bytes == 0 || !can_dim(s)) {
        return ST_OK;
    }
    s->answer->shows_thought = true;
    set_dim(s, true);
    buf_init(&text, EVENT_BYTES_MAX);
    uint8_t *room = buf_reserve(&text, string->bytes);
    enum status status = room ? ST_OK : error_no_memory(err, "the text");
    if (room) {
        json_string_decode(string, room);
        buf_commit(&text, string->bytes);
        status = show(s, buf_span(&text), err);
    }
    buf_fini(&text);
    return status;
}

static enum status take_text(struct stream *s, const struct json_string *string, struct error *err)
{
    struct buf *text = &s->answer->text;
    size_t before = text->len;
    if (string->bytes == 0) {
        return ST_OK;
    }
    uint8_t *room = buf_reserve(text, string->bytes);
    if (!room) {
        return error_set(err, ST_CORRUPT, "the answer is too long");
    }
    json_string_decode(string, room);
    buf_commit(text, string->bytes);
    if (s->answer->first_ns == 0) {
        s->answer->first_ns = uv_hrtime() - s->began_ns;
    }
    set_dim(s, false);
    return show(s, span_of(text->ptr + before, string->bytes), err);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* {"role": "assistant", "content": "..."}. Servers name thoughts in one of two ways, or in both. */
static enum status read_delta(struct stream *s, struct json *in, struct error *err)
{
    bool has_thought = false;
    TRY(json_object(in, err));
    while (true) {
        struct json_string key, text;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "content") && json_peek(in) == JSON_STRING) {
            TRY(json_read_string(in, &text, err));
            TRY(take_text(s, &text, err));
        } else if (!has_thought && json_peek(in) == JSON_STRING &&
                   (json_string_is(&key, "reasoning_content") ||
                    json_string_is(&key, "reasoning"))) {
            has_thought = true;
            TRY(json_read_string(in, &text, err));
            TRY(take_thought(s, &text, err));
        } else {
            TRY(json_skip(in, err));
        }
    }
}

static enum status read_choice(struct stream *s, struct json *in, struct error *err)
{
    TRY(json_object(in, err));
    while (true) {
        struct json_string key, text;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "delta") && json_peek(in) == JSON_OBJECT) {
            TRY(read_delta(s, in, err));
        } else if (json_string_is(&key, "finish_reason") && json_peek(in) == JSON_STRING) {
            TRY(json_read_string(in, &text, err));
            s->answer->is_cut = json_string_is(&text, "length");
        } else {
            TRY(json_skip(in, err));
        }
    }
}

static enum status read_choices(struct stream *s, struct json *in, struct error *err)
{
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        TRY(read_choice(s, in, err));
    }
}

static enum status read_details(struct stream *s, struct json *in, struct error *err)
{
    TRY(json_object(in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "reasoning_tokens") && json_peek(in) == JSON_NUMBER) {
            TRY(json_read_u64(in, &s->answer->thought_count, err));
        } else {
            TRY(json_skip(in, err));
        }
    }
}

static enum status read_usage(struct stream *s, struct json *in, struct error *err)
{
    TRY(json_object(in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "completion_tokens") && json_peek(in) == JSON_NUMBER) {
            TRY(json_read_u64(in, &s->answer->token_count, err));
        } else if (json_string_is(&key, "completion_tokens_details") &&
                   json_peek(in) == JSON_OBJECT) {
            TRY(read_details(s, in, err));
        } else {
            TRY(json_skip(in, err));
        }
    }
}

/* The server's reason why the stream ends here. */
static enum status read_error(struct json *in, struct error *err)
{
    const uint8_t *begin = in->at;
    TRY(json_skip(in, err));
    struct buf shown;
    buf_init(&shown, 4096);
    transfer_show(span_of(begin, (size_t)(in->at - begin)), 200, &shown);
    error_set(err, ST_UNAVAILABLE, "the answer ended: %.*s", SPAN_FMT(buf_span(&shown)));
    buf_fini(&shown);
    return err->code;
}

static enum status read_member(struct json *in, const struct json_string *key, void *user,
                               struct error *err)
{
    struct stream *s = user;
    if (json_string_is(key, "choices") && json_peek(in) == JSON_ARRAY) {
        return read_choices(s, in, err);
    }
    if (json_string_is(key, "usage") && json_peek(in) == JSON_OBJECT) {
        return read_usage(s, in, err);
    }
    return json_string_is(key, "error") && json_peek(in) != JSON_NULL ? read_error(in, err)
                                                                      : json_skip(in, err);
}

/* A line "data: ..."; other lines are comments and fields that nobody needs here. */
static enum status read_line(struct stream *s, struct span line, struct error *err)
{
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
    return transfer_blame_event(json_read_members(text, read_member, s, err), err);
}

static enum status read_lines(struct stream *s, struct error *err)
{
    const uint8_t *at = s->event.ptr, *end = at + s->event.len;
    while (at < end) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) {
            break;
        }
        TRY(read_line(s, span_of(at, (size_t)(newline - at)), err));
        at = newline + 1;
    }
    size_t left = (size_t)(end - at);
    if (left > 0) {
        memmove(s->event.ptr, at, left);
    }
    s->event.len = left;
    return ST_OK;
}

/* Less than all of it ends the transfer. The text of an error is kept for transfer_check(). */
static size_t on_bytes(char *bytes, size_t size, size_t count, void *data)
{
    struct stream *s = data;
    long http_status = 0;
    s->transfer->client->curl->easy_getinfo(s->transfer->easy, CURLINFO_RESPONSE_CODE,
                                            &http_status);
    if (http_status != 200) {
        buf_add(&s->transfer->body, bytes, size * count);
        return buf_failed(&s->transfer->body) ? 0 : size * count;
    }
    buf_add(&s->event, bytes, size * count);
    if (buf_failed(&s->event)) {
        s->status = error_set(&s->err, ST_TOO_LARGE, "the server sent an event that is too long");
    } else {
        s->status = read_lines(s, &s->err);
    }
    return s->status == ST_OK && !*s->stop ? size * count : 0;
}

/* ---- the request ----------------------------------------------------------------------------- */

/* Instead of easy_perform(), which does not end when a signal comes. */
static CURLcode perform(struct stream *s)
{
    const struct curl *curl = s->transfer->client->curl;
    CURLM *multi = curl->multi_init();
    CURLcode code = CURLE_OUT_OF_MEMORY;
    int running = 1, left;
    if (!multi || curl->multi_add_handle(multi, s->transfer->easy) != CURLM_OK) {
        running = 0;
    }
    while (running && !*s->stop) {
        if (curl->multi_perform(multi, &running) != CURLM_OK ||
            (running && curl->multi_poll(multi, NULL, 0, POLL_MS, NULL) != CURLM_OK)) {
            break;
        }
    }
    if (multi) {
        const CURLMsg *message = curl->multi_info_read(multi, &left);
        code = message ? message->data.result : code;
        curl->multi_remove_handle(multi, s->transfer->easy);
        curl->multi_cleanup(multi);
    }
    return code;
}

/* A long answer is no late one, so the time limit is for silence. */
static void set_limits(const struct stream *s)
{
    const struct client *client = s->transfer->client;
    long seconds = (long)(client->options.timeout_ms / 1000);
    client->curl->easy_setopt(s->transfer->easy, CURLOPT_TIMEOUT_MS, 0L);
    client->curl->easy_setopt(s->transfer->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    client->curl->easy_setopt(s->transfer->easy, CURLOPT_LOW_SPEED_TIME, seconds ? seconds : 1L);
    client->curl->easy_setopt(s->transfer->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    client->curl->easy_setopt(s->transfer->easy, CURLOPT_WRITEDATA, s);
}

static enum status run(struct stream *s, struct error *err)
{
    s->began_ns = uv_hrtime();
    CURLcode code = perform(s);
    s->answer->all_ns = uv_hrtime() - s->began_ns;
    if (s->status != ST_OK) {
        *err = s->err;
        return s->status;
    }
    if (*s->stop) {
        s->answer->is_stopped = true;
        return ST_OK;
    }
    TRY(transfer_end(s->transfer, code, err));
    return transfer_check(s->transfer, err);
}

enum status chat_stream_run(struct transfer *transfer, struct span body, bool is_terminal,
                            const volatile int *stop, struct chat_answer *answer, struct error *err)
{
    const struct transfer_request request = {
        .path = PATH,
        .is_post = true,
        .body = &body,
        .body_count = 1,
        .answer_bytes_max = CHAT_ANSWER_BYTES_MAX,
    };
    struct stream s = {.transfer = transfer,
                       .answer = answer,
                       .is_terminal = is_terminal,
                       .stop = stop,
                       .status = ST_OK};
    buf_init(&s.event, EVENT_BYTES_MAX);
    enum status status = transfer_prepare(transfer, &request, err);
    if (status == ST_OK) {
        set_limits(&s);
        status = run(&s, err);
    }
    if (s.is_dim) {
        fputs(PLAIN, stdout);
    }
    buf_fini(&s.event);
    return status;
}
