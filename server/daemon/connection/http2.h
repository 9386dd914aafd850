/* SPDX-License-Identifier: MIT */
/*
 * One connection that speaks HTTP/2 (RFC 9113), by nghttp2. It is a session
 * (server/daemon/connection/session.h) with many requests at a time: each is a stream with an
 * exchange of its own.
 *
 * Reading. The bytes are cut into frames here, and nghttp2 gets a piece of one frame at a time. So
 * what attackers repeat is counted before it costs anything, and a frame that begins a request
 * waits for its turn of the loop. Nothing is called from inside nghttp2: its callbacks note what
 * has come, and the exchange learns it afterwards.
 *
 * Writing. nghttp2 chooses the frames. A flight of them goes to the transport in one call, the
 * bodies from where they lie. What the transport does not take is copied, so at most one flight of
 * a connection waits, and no call is held by it. What a client's windows do not allow stays with
 * the calls, at the pace of the client.
 *
 * The payload of a large frame of a body is read to where the body lies. Clients that can send such
 * frames are told that they may.
 *
 * Windows. A window of a stream is 64 KiB until there is memory for a larger body, and it is given
 * back as the body takes the bytes. Bytes of a body that waits for memory are kept, up to a bound
 * for the connection; then the connection is not read.
 *
 * Signs of life. A client whose requests wait for answers may be gone without a word. When nothing
 * has come of it for --idle-timeout it gets a PING, which it has to answer.
 *
 * The end. A stream is freed by settle() alone, which runs when no call is on the stack; a
 * connection when its transport says that it is closed. Until then calls may still look at them.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_HTTP2_H
#define PTED_SERVER_DAEMON_CONNECTION_HTTP2_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "server/daemon/connection/http2_flood.h"
#include "server/daemon/connection/protocol.h"
#include "server/daemon/connection/session.h"
#include "server/daemon/request/exchange.h"
#include "server/http/transport.h"

struct http2;
struct nghttp2_session;

#define HTTP2_MAGIC 0x68747032u
#define HTTP2_STREAM_MAGIC 0x68327374u

/* Of the head of a frame (RFC 9113, section 4.1). */
#define HTTP2_HEAD_BYTES 9

/* The longest target that is worth comparing. */
#define HTTP2_KNOWN_BYTES_MAX 128

/* One write of an answer that windows or the transport have yet to take. */
struct http2_part {
    struct span *spans; /* NULL: |only| is all; else owned */
    struct span only;
    unsigned count, at;                  /* spans; the first one with bytes left */
    size_t left;                         /* bytes */
    const struct http_trailer *trailers; /* borrowed from the call until the part is out */
    unsigned trailer_count;
    bool is_set, is_last;
};

struct http2_stream {
    uint32_t magic;
    int32_t id;
    struct http2 *http2;
    struct exchange exchange;
    struct http2_part part;
    struct list link;        /* in http2->streams */
    struct list closed_link; /* in http2->closed: nghttp2 has forgotten it */
    struct list out_link;    /* in http2->out: its part is out, and the call has yet to know */
    struct buf held;         /* bytes of the body that wait for memory, or for the call */
    uint64_t deadline_ms;    /* of the half that the client has to move */
    uint64_t content_length;
    size_t head_bytes;     /* as RFC 9113, section 6.5.2, counts a list of fields */
    const char *method;    /* a constant; NULL: not said yet */
    struct span authority; /* in the text of the head */
    /* Bytes of |held| that still take a part of the connection's window, and the others, which are
     * in http2->held_back. Of the first, those that wait for memory are in http2->held_bytes. */
    size_t held_window, held_back, held_counted;
    bool is_open; /* its head is complete, and the call is not over */
    bool is_closed;
    bool is_complete; /* the client sends nothing more; the call learns it behind |held| */
    bool has_length;  /* |content_length| is known */
    bool has_wide_window;
    bool has_priority;    /* the client has said one */
    bool wants_continue;  /* the client waits for the interim answer 100 */
    bool is_answered;     /* the last write has been made */
    bool is_slow_to_take; /* a part waits for the client since |deadline_ms| was set */
};

/* Where the target of the last stream with a call led to: that of the next one is probably the
 * same. */
struct http2_known {
    struct exchange_known route;
    enum route_method method;
    uint8_t target[HTTP2_KNOWN_BYTES_MAX];
    size_t target_len;
};

struct http2 {
    uint32_t magic;
    struct session session;
    struct exchange own;            /* never begins: counts the memory that belongs to no stream */
    struct nghttp2_session *frames; /* owned */
    struct list streams, closed, out;
    uint32_t open_count; /* streams that are open */
    size_t held_bytes;   /* of all streams, that wait for memory */
    size_t held_back;    /* of all streams, that calls hold back beside the window */

    struct buf ahead;   /* bytes that wait for their turn */
    uint64_t read_turn; /* when it was last read from */
    uint32_t preface_left;
    uint8_t head[HTTP2_HEAD_BYTES]; /* of the frame that is being read */
    uint32_t head_len;
    uint32_t frame_left;     /* bytes of it */
    int32_t data_stream;     /* the stream of that frame, if it has bytes of a body alone; or 0 */
    bool is_data_large;      /* the last frame of a body was; the next one probably is, too */
    size_t block_bytes;      /* compressed */
    uint64_t block_since_ms; /* when it began */
    struct http2_stream *begun; /* what nghttp2 has said of the last piece: a head is complete, */
    struct http2_stream *fed;   /* |chunk| is of the body of this one, */
    struct span chunk;
    struct http2_stream *ended; /* this one is complete */

    uint8_t *unsent; /* owned: the rest of a flight, or NULL */
    size_t unsent_bytes;
    size_t queued_bytes; /* bytes of it at the time of the last progress */
    struct transport_rest rest;
    uint64_t flight_deadline_ms; /* for |unsent| */

    bool is_window_used;     /* the window of the connection is, and calls wait for it; then the */
    struct pace window_pace; /* bytes of all of them since, */
    uint64_t window_deadline_ms; /* and when the next ones have to go */

    uint64_t
        settings_deadline_ms; /* for the client's word that it knows ours; UINT64_MAX: it does */
    uint64_t heard_ms;        /* when something came of the client */
    uint64_t ping_ms;         /* when it was asked for a sign of life since then; 0: not */
    uint64_t warned_ms;       /* when it was told that it has to leave soon; 0: not */

    struct token_memory token_memory;
    struct http2_known known;
    struct http2_floods floods;
    enum http2_flood flood; /* that nghttp2 has shown; HTTP2_FLOOD_COUNT: none */
    bool is_in_block;       /* a head is being read */
    bool is_inside;         /* a function of nghttp2 is on the stack */
    bool is_stopped;        /* the transport is not read */
    bool is_broken;         /* nothing reaches the client any more */
    bool is_leaving;        /* no request begins any more */
    bool is_refused;        /* the client has been told that it does too much of something */
};

extern const struct protocol http2_protocol;

#endif
