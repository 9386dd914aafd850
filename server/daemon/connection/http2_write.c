/* SPDX-License-Identifier: MIT */
/*
 * Answers become frames. The fields are those of HTTP/1 (server/http/http1.h): its lines are taken
 * apart, so each field of an answer is printed in one place.
 *
 * nghttp2 asks for the bytes of a body when windows allow them (on_source()) and lets us put them
 * into the flight ourselves (on_data()). Parts of an answer up to COPY_BYTES_MAX are copied into
 * the text of the flight, others go from where they lie.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "server/daemon/connection/http2_priv.h"
#include "server/http/http1.h"

/* Bytes of a flight. After these no frame is added to it. */
#define FLIGHT_BYTES (128 << 10)
#define COPY_BYTES_MAX 1024
/* A frame of an answer with the default size, and its head. */
#define FRAME_BYTES (16384 + HTTP2_HEAD_BYTES)
#define TEXT_BYTES (64 << 10)
/* Spans that one frame may take, however its bytes lie. */
#define FRAME_SPANS (2 * (FRAME_BYTES / COPY_BYTES_MAX) + 4)
/* Lines of a head, and trailers. */
#define FIELDS_MAX (40 + HTTP_TRAILERS_MAX)

_Static_assert(TEXT_BYTES >= 2 * FRAME_BYTES, "a flight has at least a frame");
_Static_assert(TRANSPORT_SPANS_MAX >= 2 * FRAME_SPANS, "likewise");

/* What is written next; one for the thread of the loop. */
struct flight {
    struct span spans[TRANSPORT_SPANS_MAX];
    unsigned count;
    size_t bytes, text_len;
    uint8_t text[TEXT_BYTES]; /* frames and small parts of bodies */
};

static struct flight flight;

/* ---- a flight -------------------------------------------------------------------------------- */

static void add_text(const uint8_t *bytes, size_t len)
{
    must(flight.text_len + len <= sizeof(flight.text));
    uint8_t *at = flight.text + flight.text_len;
    struct span *last = flight.count ? &flight.spans[flight.count - 1] : NULL;
    memcpy(at, bytes, len);
    if (last && last->ptr + last->len == at) {
        *last = span_of(last->ptr, last->len + len);
    } else {
        must(flight.count < TRANSPORT_SPANS_MAX);
        flight.spans[flight.count++] = span_of(at, len);
    }
    flight.text_len += len;
    flight.bytes += len;
}

static void add_bytes(struct span bytes)
{
    if (bytes.len <= COPY_BYTES_MAX) {
        add_text(bytes.ptr, bytes.len);
        return;
    }
    must(flight.count < TRANSPORT_SPANS_MAX);
    flight.spans[flight.count++] = bytes;
    flight.bytes += bytes.len;
}

static bool has_room(void)
{
    return flight.bytes < FLIGHT_BYTES && flight.text_len + FRAME_BYTES <= TEXT_BYTES &&
           flight.count + FRAME_SPANS <= TRANSPORT_SPANS_MAX;
}

static void drop_unsent(struct http2 *http2)
{
    free(http2->unsent);
    http2->unsent = NULL;
    http2->unsent_bytes = 0;
    http2_count_bytes(http2);
    if (http2->own.outgoing == EXCHANGE_FLUSH) {
        exchange_end_flush(&http2->own);
    }
}

static void on_taken(struct transport_rest *rest, bool is_ok)
{
    struct http2 *http2 = http2_of(rest->user);
    must(http2->unsent);
    drop_unsent(http2);
    http2->is_broken |= !is_ok;
    if (http2->session.state != SESSION_CLOSING) {
        http2_settle_later(http2);
    }
}

/* Copies the flight but for its first |done| bytes. False: no memory. */
static bool keep_rest(struct http2 *http2, size_t done)
{
    uint8_t *at = malloc(flight.bytes - done);
    http2->unsent = at;
    http2->unsent_bytes = flight.bytes - done;
    for (unsigned i = 0; at && i < flight.count; i++) {
        struct span span = flight.spans[i];
        size_t skipped = done < span.len ? done : span.len;
        memcpy(at, span.ptr + skipped, span.len - skipped);
        at += span.len - skipped;
        done -= skipped;
    }
    return at != NULL;
}

static void begin_waiting(struct http2 *http2)
{
    http2->queued_bytes = transport_pending(http2->session.transport, TRANSPORT_OUT);
    pace_begin(&http2->own.answer.pace, http2_now(http2));
    http2->flight_deadline_ms = http2_now(http2) + http2_params(http2)->write_timeout;
    http2_count_bytes(http2);
    if (http2->own.outgoing == EXCHANGE_NO_ANSWER) {
        exchange_begin_flush(&http2->own);
    }
}

/* False: the transport is broken. */
static bool send_flight(struct http2 *http2)
{
    struct transport *transport = http2->session.transport;
    ssize_t done = transport_write(transport, flight.spans, flight.count, NULL);
    counter_add(&http2->session.conns->counts.sent_bytes, flight.bytes);
    if (done < 0) {
        return false;
    }
    if ((size_t)done == flight.bytes) {
        return true;
    }
    http2->rest.user = http2;
    http2->rest.done = on_taken;
    if (keep_rest(http2, (size_t)done)) {
        const struct span rest = span_of(http2->unsent, http2->unsent_bytes);
        if (transport_write(transport, &rest, 1, &http2->rest) == 0) {
            begin_waiting(http2);
            return true;
        }
    }
    drop_unsent(http2);
    return false;
}

/* Fills the flight with frames; false: nghttp2 has given up. */
static bool gather(struct http2 *http2)
{
    flight.count = 0;
    flight.bytes = flight.text_len = 0;
    ssize_t len = 1;
    http2->is_inside = true;
    while (len > 0 && has_room()) {
        const uint8_t *bytes;
        len = nghttp2_session_mem_send(http2->frames, &bytes);
        if (len > 0) {
            add_text(bytes, (size_t)len);
        }
    }
    http2->is_inside = false;
    return len >= 0;
}

void http2_write_flush(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    must(!http2->is_inside);
    while (!http2->unsent && !http2_is_over(http2)) {
        if (!gather(http2) || (flight.bytes && !send_flight(http2))) {
            http2->is_broken = true;
            http2_settle_later(http2);
        }
        if (!flight.bytes) {
            return;
        }
        if (!turns_has_time(&http2->session.conns->loop->turns)) {
            http2_settle_later(http2);
            return;
        }
    }
}

bool http2_write_check(struct http2 *http2, uint64_t now_ms)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    if (!http2->unsent) {
        return true;
    }
    size_t queued = transport_pending(http2->session.transport, TRANSPORT_OUT);
    if (queued < http2->queued_bytes) {
        pace_move(&http2->own.answer.pace, http2->queued_bytes - queued, now_ms);
        http2->queued_bytes = queued;
        http2->flight_deadline_ms = now_ms + http2_params(http2)->write_timeout;
    }
    return now_ms < http2->flight_deadline_ms && !exchange_is_answer_slow(&http2->own, now_ms);
}

static bool is_any_answering(const struct http2 *http2)
{
    for (struct list *node = http2->streams.next; node != &http2->streams; node = node->next) {
        if (exchange_is_answering(&LIST_ENTRY(node, struct http2_stream, link)->exchange)) {
            return true;
        }
    }
    return false;
}

bool http2_write_is_window_slow(struct http2 *http2, uint64_t now_ms)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    if (nghttp2_session_get_remote_window_size(http2->frames) > 0 || !is_any_answering(http2)) {
        http2->is_window_used = false;
        return false;
    }
    if (!http2->is_window_used) {
        http2->is_window_used = true;
        pace_begin(&http2->window_pace, now_ms);
        http2->window_deadline_ms = now_ms + http2_params(http2)->write_timeout;
    }
    return now_ms >= http2->window_deadline_ms ||
           pace_is_too_slow(&http2->window_pace, http2_params(http2), now_ms);
}

/* ---- the body of an answer ------------------------------------------------------------------- */

static void free_part(struct http2_part *part)
{
    free(part->spans);
    *part = (struct http2_part){0};
}

void http2_write_drop(struct http2_stream *stream)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    free_part(&stream->part);
    list_remove(&stream->out_link);
}

/* All of the part is in the flight. */
static void note_out(struct http2_stream *stream)
{
    if (list_is_empty(&stream->out_link)) {
        list_push_back(&stream->http2->out, &stream->out_link);
    }
}

static nghttp2_nv field_of(struct span name, struct span value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.ptr,
                        .namelen = name.len,
                        .value = (uint8_t *)(uintptr_t)value.ptr,
                        .valuelen = value.len};
}

static size_t add_trailers(const struct http_trailer *trailers, unsigned count, nghttp2_nv *fields)
{
    for (unsigned i = 0; i < count; i++) {
        fields[i] = field_of(span_str(trailers[i].name), trailers[i].value);
    }
    return count;
}

/* The last byte of the body; trailers come behind it. */
static bool end_body(struct http2_stream *stream, uint32_t *flags)
{
    const struct http2_part *part = &stream->part;
    nghttp2_nv fields[HTTP_TRAILERS_MAX];
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!part->trailer_count) {
        return true;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    size_t count = add_trailers(part->trailers, part->trailer_count, fields);
    return nghttp2_submit_trailer(stream->http2->frames, stream->id, fields, count) == 0;
}

/* How much of the body may go now? */
static ssize_t on_source(nghttp2_session *frames, int32_t id, uint8_t *out, size_t len,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)frames, (void)id, (void)out, (void)user;
    struct http2_stream *stream = source->ptr;
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    const struct http2_part *part = &stream->part;
    size_t count = part->left < len ? part->left : len;
    bool is_end = part->is_set && part->is_last && count == part->left;
    if (!part->is_set || (count == 0 && !is_end)) {
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (is_end && !end_body(stream, flags)) {
        return NGHTTP2_ERR_CALLBACK_FAILURE; /* no memory */
    }
    if (count == 0 && part->trailer_count) {
        note_out(
            stream); /* nghttp2 sends no empty frame before trailers: on_data() is not called */
    }
    return (ssize_t)count;
}

/* Puts the next |len| bytes of the part into the flight. */
static void add_part(struct http2_part *part, size_t len)
{
    must(len <= part->left);
    part->left -= len;
    while (len > 0) {
        struct span *span = part->spans ? &part->spans[part->at] : &part->only;
        size_t taken = span->len < len ? span->len : len;
        add_bytes(span_of(span->ptr, taken));
        *span = span_of(span->ptr + taken, span->len - taken);
        len -= taken;
        part->at += span->len == 0 && part->at + 1 < part->count;
    }
}

/* nghttp2 goes on with the next frame of a body by itself. So one that the flight has no room for
 * waits for the next flight. */
static int on_data(nghttp2_session *frames, nghttp2_frame *frame, const uint8_t *head, size_t len,
                   nghttp2_data_source *source, void *user)
{
    (void)frames, (void)frame, (void)user;
    struct http2_stream *stream = source->ptr;
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    struct exchange *exchange = &stream->exchange;
    uint64_t now_ms = http2_now(stream->http2);
    if (!has_room()) {
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    add_text(head, HTTP2_HEAD_BYTES);
    add_part(&stream->part, len);
    exchange->sent_bytes += HTTP2_HEAD_BYTES + len;
    http2_flood_earn(&stream->http2->floods);
    pace_move(&stream->http2->window_pace, len, now_ms);
    stream->http2->window_deadline_ms = now_ms + http2_params(stream->http2)->write_timeout;
    if (stream->is_slow_to_take) {
        pace_move(&exchange->answer.pace, len, now_ms);
        stream->deadline_ms = now_ms + http2_params(stream->http2)->write_timeout;
    }
    if (stream->part.left == 0) {
        note_out(stream);
    }
    return 0;
}

void http2_write_set(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_data);
}

/* ---- one write of an answer ------------------------------------------------------------------ */

/* Takes the lines of a head of HTTP/1 apart; |text| ends with an empty line. No value has a CR. */
static size_t take_lines(char *text, size_t len, nghttp2_nv *fields)
{
    static const struct span status = {(const uint8_t *)":status", 7};
    size_t count = 0;
    char *at = text, *end = text + len - 2;
    fields[count++] = field_of(status, span_of(text + strlen("HTTP/1.1 "), 3));
    at = (char *)memchr(at, '\r', len) + 2;
    while (at < end) {
        char *name = at;
        for (; *at != ':'; at++) {
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + 'a' - 'A' : *at);
        }
        char *value = at + 2, *line_end = memchr(value, '\r', (size_t)(end + 1 - value));
        must(line_end && count < FIELDS_MAX - HTTP_TRAILERS_MAX);
        fields[count++] = field_of(span_of(name, (size_t)(at - name)),
                                   span_of(value, (size_t)(line_end - value)));
        at = line_end + 2;
    }
    return count;
}

/* Without a body the trailers are fields of the only head. */
static bool submit_head(struct http2_stream *stream, const struct exchange_part *part)
{
    char text[HTTP1_HEAD_BYTES_MAX + 1];
    nghttp2_nv fields[FIELDS_MAX];
    size_t len = http1_print_head(part->answer, 0, text);
    text[len] = '\0';
    size_t count = take_lines(text, len, fields);
    bool is_whole = part->is_last && stream->part.left == 0;
    if (is_whole) {
        count += add_trailers(part->trailers, part->trailer_count, fields + count);
    }
    nghttp2_data_provider body = {.source = {.ptr = stream}, .read_callback = on_source};
    stream->exchange.sent_bytes += HTTP2_HEAD_BYTES + len;
    int rc = nghttp2_submit_response(stream->http2->frames, stream->id, fields, count,
                                     is_whole ? NULL : &body);
    if (rc == 0 && is_whole) {
        note_out(stream);
    }
    return rc == 0;
}

/* Keeps the part; false: no memory. */
static bool take_part(struct http2_stream *stream, const struct exchange_part *part)
{
    struct http2_part *own = &stream->part;
    must(!own->is_set && !own->spans);
    *own = (struct http2_part){.is_set = true,
                               .is_last = part->is_last,
                               .count = part->count,
                               .trailers = part->trailers,
                               .trailer_count = part->trailer_count};
    for (unsigned i = 0; i < part->count; i++) {
        own->left += part->spans[i].len;
    }
    if (part->count > 1) {
        own->spans = malloc(part->count * sizeof(own->spans[0]));
        if (!own->spans) {
            own->is_set = false;
            return false;
        }
        memcpy(own->spans, part->spans, part->count * sizeof(own->spans[0]));
    } else if (part->count == 1) {
        own->only = part->spans[0];
    }
    return true;
}

static bool submit(struct http2_stream *stream, const struct exchange_part *part)
{
    if (part->answer) {
        return submit_head(stream, part);
    }
    if (!part->is_last && stream->part.left == 0) {
        note_out(stream); /* nothing at all */
        return true;
    }
    int rc = nghttp2_session_resume_data(stream->http2->frames, stream->id);
    return rc == 0 || rc == NGHTTP2_ERR_INVALID_ARGUMENT; /* it has not asked in vain yet */
}

enum exchange_written http2_write_part(struct exchange *exchange, const struct exchange_part *part)
{
    struct http2_stream *stream = http2_stream_of(exchange);
    struct http2 *http2 = stream->http2;
    must(!http2->is_inside);
    if (http2_is_over(http2) || stream->is_closed) {
        return EXCHANGE_BROKEN;
    }
    if (!take_part(stream, part) || !submit(stream, part)) {
        http2_write_drop(stream);
        return EXCHANGE_BROKEN;
    }
    stream->is_answered |= part->is_last;
    http2_write_flush(http2);
    bool is_out = !list_is_empty(&stream->out_link);
    if (is_out || http2->is_broken) {
        http2_write_drop(stream);
    }
    if (!list_is_empty(&http2->out)) {
        http2_settle_later(http2); /* of others */
    }
    if (is_out || http2->is_broken) {
        return is_out ? EXCHANGE_WRITTEN : EXCHANGE_BROKEN;
    }
    stream->is_slow_to_take = true;
    stream->deadline_ms = http2_now(http2) + http2_params(http2)->write_timeout;
    pace_begin(&exchange->answer.pace, http2_now(http2));
    return EXCHANGE_WAITS;
}

bool http2_write_tell(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    bool was_any = false;
    while (!list_is_empty(&http2->out)) {
        struct http2_stream *stream = LIST_ENTRY(http2->out.next, struct http2_stream, out_link);
        OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
        was_any = true;
        stream->is_slow_to_take = false;
        http2_stream_await(stream);
        http2_write_drop(stream);
        exchange_note_written(&stream->exchange, true);
    }
    return was_any;
}

void http2_write_continue(struct http2_stream *stream)
{
    OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    const nghttp2_nv field = field_of(span_str(":status"), span_str("100"));
    (void)nghttp2_submit_headers(stream->http2->frames, NGHTTP2_FLAG_NONE, stream->id, NULL, &field,
                                 1, NULL);
}
