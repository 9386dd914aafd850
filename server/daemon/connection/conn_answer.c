/* SPDX-License-Identifier: MIT */
/*
 * The answer of HTTP/1. Its head and its parts go to the transport in one call. If the transport
 * does not take all of it at once, a short rest is copied, so that a slow client does not hold its
 * request. With a long rest the request keeps its memory until the client has taken it.
 *
 * A stream is chunked. For a client of HTTP/1.0 it ends with the connection. The next write of a
 * stream comes when the one before it has been taken. Trailers are written behind a stream if the
 * client has said that it takes them, and dropped otherwise.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "server/daemon/connection/conn_priv.h"
#include "server/http/http1.h"

/* An answer with at most this much left is copied. */
#define UNSENT_BYTES_MAX (64 << 10)

/* Beside the parts: the head with the line of the first chunk, and the end of the chunk. */
#define SPANS_MAX (EXCHANGE_PARTS_MAX + 2)
_Static_assert(SPANS_MAX <= TRANSPORT_SPANS_MAX, "one call of the transport takes an answer");
_Static_assert(HTTP1_HEAD_BYTES_MAX + HTTP1_CHUNK_BYTES_MAX + HTTP1_LAST_CHUNK_BYTES_MAX <=
                   EXCHANGE_SCRATCH_BYTES,
               "the scratch memory has room for what stands around the parts");

static const char chunk_end[] = "\r\n", last_chunk[] = "0\r\n\r\n", both[] = "\r\n0\r\n\r\n";

static struct conn *conn_of_exchange(struct exchange *exchange)
{
    struct conn *conn;
    OBJ_CAST(conn, LIST_ENTRY(exchange, struct conn, exchange), CONN_MAGIC);
    return conn;
}

static struct conn *conn_of_rest(const struct transport_rest *rest)
{
    struct conn *conn;
    OBJ_CAST(conn, rest->user, CONN_MAGIC);
    return conn;
}

/* ---- the rest of a write --------------------------------------------------------------------- */

/* From now on the client takes an answer. */
static void begin_flushing(struct conn *conn)
{
    conn->queued_bytes = transport_pending(conn->session.transport, TRANSPORT_OUT);
    pace_begin(&conn->exchange.answer.pace, uv_now(&conn->session.conns->loop->uv));
    conn_set_deadline(conn, conn_params(conn)->write_timeout);
}

void conn_answer_look(struct conn *conn)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    size_t queued = transport_pending(conn->session.transport, TRANSPORT_OUT);
    if (queued < conn->queued_bytes) {
        size_t taken = conn->queued_bytes - queued;
        pace_move(&conn->exchange.answer.pace, taken, uv_now(&conn->session.conns->loop->uv));
        conn->queued_bytes = queued;
        conn_set_deadline(conn, conn_params(conn)->write_timeout);
    }
}

static void drop_unsent(struct conn *conn)
{
    free(conn->unsent);
    conn->unsent = NULL;
    conn->unsent_bytes = 0;
}

static void on_copy_taken(struct transport_rest *rest, bool is_ok)
{
    struct conn *conn = conn_of_rest(rest);
    must(conn->unsent);
    drop_unsent(conn);
    conn->is_broken |= !is_ok;
    conn_count_bytes(conn);
    if (conn->state == CONN_FLUSH) {
        exchange_end_flush(&conn->exchange);
        conn_next(conn);
    }
}

static void on_parts_taken(struct transport_rest *rest, bool is_ok)
{
    struct conn *conn = conn_of_rest(rest);
    conn->is_broken |= !is_ok;
    exchange_note_written(&conn->exchange, is_ok);
}

static bool queue(struct conn *conn, const struct span *spans, unsigned count,
                  void (*done)(struct transport_rest *rest, bool is_ok))
{
    conn->answer_rest.user = conn;
    conn->answer_rest.done = done;
    return transport_write(conn->session.transport, spans, count, &conn->answer_rest) == 0;
}

/* Copies the rest of an answer, |bytes| in all, so that its request need not wait for the client.
 * False: no memory. */
static bool keep_rest(struct conn *conn, const struct span *spans, unsigned count, size_t bytes)
{
    must(!conn->unsent);
    conn->unsent = malloc(bytes);
    if (!conn->unsent) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        memcpy(conn->unsent + conn->unsent_bytes, spans[i].ptr, spans[i].len);
        conn->unsent_bytes += spans[i].len;
    }
    must(conn->unsent_bytes == bytes);
    const struct span rest = span_of(conn->unsent, bytes);
    if (!queue(conn, &rest, 1, on_copy_taken)) {
        drop_unsent(conn);
        conn->is_broken = true;
    }
    return true;
}

/* Drops the first |done| bytes of |spans|; returns how many bytes are left. */
static size_t advance(struct span *spans, unsigned *count, size_t done)
{
    size_t left = 0;
    unsigned first = 0;
    while (first < *count && done >= spans[first].len) {
        done -= spans[first++].len;
    }
    *count -= first;
    memmove(spans, spans + first, *count * sizeof(spans[0]));
    if (*count) {
        spans[0] = span_of(spans[0].ptr + done, spans[0].len - done);
    }
    for (unsigned i = 0; i < *count; i++) {
        left += spans[i].len;
    }
    return left;
}

static enum exchange_written note_broken(struct conn *conn)
{
    conn->is_broken = true;
    return EXCHANGE_BROKEN;
}

/* Writes |bytes| bytes in all. Changes |spans|. */
static enum exchange_written write_spans(struct conn *conn, struct span *spans, unsigned count,
                                         size_t bytes, bool may_copy)
{
    ssize_t done = transport_write(conn->session.transport, spans, count, NULL);
    if (done < 0) {
        return note_broken(conn);
    }
    if ((size_t)done == bytes) {
        return EXCHANGE_WRITTEN;
    }
    size_t left = advance(spans, &count, (size_t)done);
    bool is_kept = may_copy && left <= UNSENT_BYTES_MAX && keep_rest(conn, spans, count, left);
    if (!is_kept && !queue(conn, spans, count, on_parts_taken)) {
        return note_broken(conn);
    }
    begin_flushing(conn);
    return is_kept ? EXCHANGE_WRITTEN : EXCHANGE_WAITS;
}

/* ---- one write of an answer ------------------------------------------------------------------ */

static size_t print_head(struct conn *conn, const struct http_answer *answer, char *out)
{
    conn->is_chunked = answer->is_stream && !conn->is_http_1_0 && !conn->exchange.is_head_only;
    if (conn->session.conns->loop->is_draining || session_is_old(&conn->session) ||
        (answer->is_stream && conn->is_http_1_0)) {
        conn->is_keep_alive = false;
    }
    unsigned flags = (conn->is_keep_alive ? 0 : HTTP1_CLOSE) |
                     (conn->is_http_1_0 ? HTTP1_KEEP_ALIVE : 0) |
                     (conn->is_chunked ? HTTP1_CHUNKED : 0);
    return http1_print_head(answer, flags, out);
}

static size_t sum_of(const struct span *spans, unsigned count)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        bytes += spans[i].len;
    }
    return bytes;
}

/* The bytes behind the parts, of which there are |bytes|. A chunk without bytes would end the
 * answer. |text|: memory for trailers. */
static struct span chunk_tail(const struct conn *conn, const struct exchange_part *part,
                              size_t bytes, char *text)
{
    if (!part->is_last) {
        return bytes ? span_of(chunk_end, sizeof(chunk_end) - 1) : span_of(chunk_end, 0);
    }
    if (part->trailer_count && conn->takes_trailers) {
        return span_of(
            text, http1_print_last_chunk(part->trailers, part->trailer_count, bytes == 0, text));
    }
    return bytes ? span_of(both, sizeof(both) - 1) : span_of(last_chunk, sizeof(last_chunk) - 1);
}

enum exchange_written conn_answer_write(struct exchange *exchange, const struct exchange_part *part)
{
    struct conn *conn = conn_of_exchange(exchange);
    struct span spans[SPANS_MAX];
    unsigned count = part->count;
    char *text = exchange_scratch(exchange);
    size_t text_bytes = part->answer ? print_head(conn, part->answer, text) : 0;
    must(conn->state == CONN_BUSY && !conn->unsent && count <= EXCHANGE_PARTS_MAX);
    if (count) {
        memcpy(spans + 1, part->spans, count * sizeof(spans[0]));
    }
    if (conn->is_chunked) {
        size_t chunk = sum_of(part->spans, count);
        text_bytes += chunk ? http1_print_chunk(chunk, text + text_bytes) : 0;
        spans[1 + count++] = chunk_tail(conn, part, chunk, text + text_bytes);
    }
    spans[0] = span_of(text, text_bytes);
    size_t bytes = sum_of(spans, count + 1);
    exchange->sent_bytes += bytes;
    counter_add(&conn->session.conns->counts.sent_bytes, bytes);
    return write_spans(conn, spans, count + 1, bytes, part->is_last);
}

void conn_answer_end(struct exchange *exchange)
{
    must(exchange->outgoing == EXCHANGE_NO_ANSWER && !exchange->request);
    struct conn *conn = conn_of_exchange(exchange);
    if (conn->state == CONN_CLOSING) {
        return;
    }
    if (conn->unsent) {
        conn_set_state(conn, CONN_FLUSH);
        conn_count_bytes(conn);
        exchange_begin_flush(exchange);
    } else {
        conn_next(conn);
    }
}

/* ---- answers without a call ------------------------------------------------------------------ */

static void on_continue_taken(struct transport_rest *rest, bool is_ok)
{
    (void)rest;
    (void)is_ok; /* the answer's own write fails with the same error */
}

void conn_answer_continue(struct conn *conn)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    must(conn->state == CONN_BODY && conn->wants_continue);
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct span span = span_of(text, sizeof(text) - 1);
    conn->wants_continue = false;
    ssize_t done = transport_write(conn->session.transport, &span, 1, NULL);
    if (done >= 0 && (size_t)done < span.len) {
        span = span_of(text + done, span.len - (size_t)done);
        conn->continue_rest.done = on_continue_taken;
        (void)transport_write(conn->session.transport, &span, 1, &conn->continue_rest);
    }
}

void conn_answer_turn_away(struct conn *conn, enum share_taken why)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    must(conn->state == CONN_IDLE && !conn->session.has_place);
    counter_add(&conn->session.conns->counts.turned_away, 1);
    struct error err;
    char body[sizeof(err.text) + 16];
    (void)places_refuse(&conn->session.conns->places, &conn->session, why, &err);
    snprintf(body, sizeof(body), "{\"error\":\"%s\"}", err.text); /* words and numbers */
    const struct http_answer answer = {.status = 503,
                                       .content_type = "application/json",
                                       .content_length = strlen(body),
                                       .retry_after_s = 1};
    char text[HTTP1_HEAD_BYTES_MAX];
    const struct span spans[] = {
        span_of(text, http1_print_head(&answer, HTTP1_CLOSE, text)),
        span_str(body),
    };
    (void)transport_write(conn->session.transport, spans, 2, NULL);
    conn_linger(conn);
}
