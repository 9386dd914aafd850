/* SPDX-License-Identifier: MIT */
/* Shared by the files of http2.h. Loop thread. */
#ifndef PTED_SERVER_DAEMON_CONNECTION_HTTP2_PRIV_H
#define PTED_SERVER_DAEMON_CONNECTION_HTTP2_PRIV_H

#include <nghttp2/nghttp2.h>

#include "base/bytes.h"
#include "base/check.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/http2.h"
#include "server/daemon/loop/loop.h"
#include "server/process/options.h"

/* Bytes of bodies that wait for memory, of one connection; then it is not read. */
#define HTTP2_HELD_BYTES_MAX (256 << 10)

/* Bytes of bodies that calls hold back, of one connection; then they take a part of its window. */
#define HTTP2_HELD_BACK_BYTES_MAX (1 << 20)

/* Bytes of a frame that a client may send. */
#define HTTP2_FRAME_BYTES_MAX (1 << 20)

/* Frames that wait to be sent, beside data; then no more are read. */
#define HTTP2_QUEUED_MAX 64

static inline const struct params *http2_params(const struct http2 *http2)
{
    return http2->session.conns->params;
}

static inline uint64_t http2_now(const struct http2 *http2)
{
    return uv_now(&http2->session.conns->loop->uv);
}

static inline struct http2 *http2_of(void *user)
{
    struct http2 *http2;
    OBJ_CAST(http2, user, HTTP2_MAGIC);
    return http2;
}

static inline struct http2_stream *http2_stream_of(struct exchange *exchange)
{
    struct http2_stream *stream;
    OBJ_CAST(stream, LIST_ENTRY(exchange, struct http2_stream, exchange), HTTP2_STREAM_MAGIC);
    return stream;
}

/* Can nothing be said to the client any more? */
static inline bool http2_is_over(const struct http2 *http2)
{
    return http2->is_broken || http2->session.state == SESSION_LINGER ||
           http2->session.state == SESSION_CLOSING;
}

/* Has settle() run in a turn of the loop: a call may be on the stack now. */
void http2_settle_later(struct http2 *http2);

/* Call when a stream has become open or is not any more: the state of the session follows. */
void http2_note_open(struct http2 *http2);

/* Call when the bytes that were read ahead or wait in a flight have changed. */
void http2_count_bytes(struct http2 *http2);

/* Notes that the client has done what |flood| bounds; inside of nghttp2, too. */
void http2_note_flood(struct http2 *http2, enum http2_flood flood);

/* Ends the connection, if the client does too much of something: it is told that, and nothing more
 * is read. */
void http2_end_flood(struct http2 *http2);

/* Reads on after http2->is_stopped, if nothing stands against it. */
void http2_read_on(struct http2 *http2);

/* ---- http2_read.c ---------------------------------------------------------------------------- */

void http2_read_set(nghttp2_session_callbacks *callbacks);

/* Returns where the next bytes may lie: in the body that they certainly belong to, or in the memory
 * that all connections share. */
struct transport_room http2_read_room(struct http2 *http2);

/* Takes bytes until a request has to wait for its turn; returns the bytes taken. */
size_t http2_read_feed(struct http2 *http2, struct span bytes);

/* ---- http2_stream.c -------------------------------------------------------------------------- */

/* Begins a request. NULL: there is no memory. */
struct http2_stream *http2_stream_begin(struct http2 *http2, int32_t id);

/* Takes a field of its head; false: the list is so long that the connection ends. */
MUST_CHECK bool http2_stream_add_field(struct http2_stream *stream, struct span name,
                                       struct span value);

/* Call when the head is complete; when some of the body has come; when the client sends nothing
 * more. */
void http2_stream_end_head(struct http2_stream *stream);
void http2_stream_take(struct http2_stream *stream, struct span bytes);
/* Returns where the next bytes of the body belong, at most |missing|. Length 0: there is no place
 * yet. */
struct transport_room http2_stream_room(struct http2_stream *stream, size_t missing);
void http2_stream_end(struct http2_stream *stream);

/* Gives the client --body-timeout from now for the next bytes. */
void http2_stream_await(struct http2_stream *stream);

/* Call when nghttp2 forgets it. */
void http2_stream_note_closed(struct http2_stream *stream);

/* Looks whether a deadline has passed, or one half is too slow; |is_window_slow|: see
 * http2_write_is_window_slow(). */
void http2_stream_check(struct http2_stream *stream, bool is_window_slow, uint64_t now_ms);

/* Ends the calls of closed streams and frees them. False: there was none. */
bool http2_stream_reap(struct http2 *http2);

/* Ends the calls of all streams and frees them: the transport is closed. */
void http2_stream_reap_all(struct http2 *http2);

/* ---- http2_write.c --------------------------------------------------------------------------- */

void http2_write_set(nghttp2_session_callbacks *callbacks);

enum exchange_written http2_write_part(struct exchange *exchange, const struct exchange_part *part);

/* Sends an interim answer (RFC 9110, section 15.2.1). */
void http2_write_continue(struct http2_stream *stream);

/* Drops what is left of the part: nobody takes it. */
void http2_write_drop(struct http2_stream *stream);

/* Sends what there is to send, as far as the transport takes it. */
void http2_write_flush(struct http2 *http2);

/* Tells calls that their parts are out. False: there were none. */
bool http2_write_tell(struct http2 *http2);

/* Notes the bytes of a flight that the client has taken since the last look; false: it is too slow
 * or takes too long. */
MUST_CHECK bool http2_write_check(struct http2 *http2, uint64_t now_ms);

/* Do answers wait for the window of the connection, which the client opens too slowly or too late?
 * Call it at each look at the streams. */
bool http2_write_is_window_slow(struct http2 *http2, uint64_t now_ms);

#endif
