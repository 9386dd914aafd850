/* SPDX-License-Identifier: MIT */
/*
 * Bytes become frames, and frames become requests. take() cuts the bytes; give() hands a piece of
 * one frame to nghttp2, whose callbacks note what it means, and then tells the stream.
 */
#include "config.h"

#include <string.h>

#include "server/daemon/connection/http2_priv.h"
#include "server/http/head.h"

/* The rest of a frame of a body is read in place if it is as long as this. */
#define DIRECT_BYTES_MIN 8192
/* A frame of a body from this size on is a large one. A client that sends one sends others, so the
 * head of the next one is read with few bytes behind it. */
#define LARGE_BYTES_MIN (32 << 10)
#define FEW_BYTES 4096
/* The text of a frame GOAWAY, which nghttp2 keeps until it is complete. */
#define GOAWAY_BYTES_MAX 16384
/* A compressed head is not longer than this many times its fields. */
#define BLOCK_FACTOR 2
#define PRIORITY_UPDATE 16 /* RFC 9218, section 7.1 */

struct frame {
    uint32_t len;
    uint8_t type, flags;
    uint32_t stream;
};

/* ---- what nghttp2 says ----------------------------------------------------------------------- */

static bool is_request_head(const nghttp2_frame *frame)
{
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

static struct http2_stream *find(struct http2 *http2, int32_t id)
{
    struct http2_stream *stream = nghttp2_session_get_stream_user_data(http2->frames, id);
    if (stream) {
        OBJ_CHECK(stream, HTTP2_STREAM_MAGIC);
    }
    return stream;
}

static int on_begin_headers(nghttp2_session *frames, const nghttp2_frame *frame, void *user)
{
    struct http2 *http2 = http2_of(user);
    if (!is_request_head(frame)) {
        return 0;
    }
    struct http2_stream *stream = http2_stream_begin(http2, frame->hd.stream_id);
    if (!stream) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return nghttp2_session_set_stream_user_data(frames, frame->hd.stream_id, stream);
}

/* Trailers of a request are checked by nghttp2, and dropped. */
static int on_header(nghttp2_session *frames, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user)
{
    (void)frames, (void)flags;
    struct http2 *http2 = http2_of(user);
    struct http2_stream *stream = find(http2, frame->hd.stream_id);
    if (stream && is_request_head(frame) &&
        !http2_stream_add_field(stream, span_of(name, name_len), span_of(value, value_len))) {
        http2_note_flood(http2, HTTP2_FLOOD_HEADS);
    }
    return 0;
}

static int on_frame_recv(nghttp2_session *frames, const nghttp2_frame *frame, void *user)
{
    (void)frames;
    struct http2 *http2 = http2_of(user);
    struct http2_stream *stream = find(http2, frame->hd.stream_id);
    if (stream && is_request_head(frame)) {
        http2->begun = stream;
    }
    if (!stream && frame->hd.type == NGHTTP2_RST_STREAM) { /* it is over already */
        http2_note_flood(http2, HTTP2_FLOOD_RESETS);
    }
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK)) {
        http2->settings_deadline_ms = UINT64_MAX;
    }
    bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (stream && may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        http2->ended = stream;
    }
    return 0;
}

static int on_data_chunk_recv(nghttp2_session *frames, uint8_t flags, int32_t id,
                              const uint8_t *bytes, size_t len, void *user)
{
    (void)flags;
    struct http2 *http2 = http2_of(user);
    struct http2_stream *stream = find(http2, id);
    if (!stream) {
        return nghttp2_session_consume(frames, id, len);
    }
    must(!http2->fed); /* a piece is of one frame */
    http2->fed = stream;
    http2->chunk = span_of(bytes, len);
    return 0;
}

static int on_invalid_frame_recv(nghttp2_session *frames, const nghttp2_frame *frame, int code,
                                 void *user)
{
    (void)frames, (void)frame, (void)code;
    http2_note_flood(http2_of(user), HTTP2_FLOOD_INVALID);
    return 0;
}

static int on_stream_close(nghttp2_session *frames, int32_t id, uint32_t code, void *user)
{
    (void)frames, (void)code;
    struct http2_stream *stream = find(http2_of(user), id);
    if (stream) {
        http2_stream_note_closed(stream);
    }
    return 0;
}

void http2_read_set(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame_recv);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
}

/* Tells the streams what the last piece was. Each may be closed by now; it is not freed yet. */
static void tell_streams(struct http2 *http2)
{
    struct http2_stream *begun = http2->begun, *fed = http2->fed, *ended = http2->ended;
    http2->begun = http2->fed = http2->ended = NULL;
    if (begun) {
        http2_stream_end_head(begun);
    }
    if (fed) {
        http2_stream_take(fed, http2->chunk);
    }
    if (ended) {
        http2_stream_end(ended);
    }
}

static void give(struct http2 *http2, struct span bytes)
{
    must(!http2->is_inside);
    http2->is_inside = true;
    ssize_t rc = nghttp2_session_mem_recv(http2->frames, bytes.ptr, bytes.len);
    http2->is_inside = false;
    tell_streams(http2);
    if (rc < 0) { /* its state is not known any more: nothing can be said to the client */
        http2->is_broken = true;
    }
    http2_end_flood(http2);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static struct frame read_head(const uint8_t bytes[HTTP2_HEAD_BYTES])
{
    return (struct frame){
        .len = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2],
        .type = bytes[3],
        .flags = bytes[4],
        .stream = ((uint32_t)bytes[5] << 24 | (uint32_t)bytes[6] << 16 | (uint32_t)bytes[7] << 8 |
                   bytes[8]) &
                  0x7fffffffu,
    };
}

/* While an exchange gives its memory back, another frame is being read. */
static bool may_begin(struct http2 *http2)
{
    return turns_may_begin(&http2->session.conns->loop->turns, &http2->session.turn,
                           !exchange_is_evicting(&http2->own));
}

/* A head comes in a frame, and others continue it. */
static void note_block(struct http2 *http2, const struct frame *frame)
{
    if (frame->type == NGHTTP2_HEADERS) {
        http2_flood_refill(&http2->floods, HTTP2_FLOOD_CONTINUATIONS);
        http2->block_bytes = 0;
        http2->block_since_ms = http2_now(http2);
    } else {
        http2_note_flood(http2, HTTP2_FLOOD_CONTINUATIONS);
    }
    http2->is_in_block = !(frame->flags & NGHTTP2_FLAG_END_HEADERS);
    http2->block_bytes += frame->len;
    if (http2->block_bytes > BLOCK_FACTOR * http2_params(http2)->header_bytes_max) {
        http2_note_flood(http2, HTTP2_FLOOD_HEADS);
    }
}

/* Its bytes may be padded; then not all of them are of the body. */
static void note_data(struct http2 *http2, const struct frame *frame)
{
    if (frame->len == 0 && !(frame->flags & NGHTTP2_FLAG_END_STREAM)) {
        http2_note_flood(http2, HTTP2_FLOOD_EMPTY);
    }
    http2->data_stream = frame->flags & NGHTTP2_FLAG_PADDED ? 0 : (int32_t)frame->stream;
    http2->is_data_large =
        frame->len >= LARGE_BYTES_MIN && !(frame->flags & NGHTTP2_FLAG_END_STREAM);
}

/* What a client repeats at little cost is counted before it costs us anything. */
static void note_frame(struct http2 *http2, const struct frame *frame)
{
    switch (frame->type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
        note_block(http2, frame);
        break;
    case NGHTTP2_DATA:
        note_data(http2, frame);
        break;
    case NGHTTP2_GOAWAY:
        if (frame->len > GOAWAY_BYTES_MAX) {
            (void)nghttp2_session_terminate_session(http2->frames, NGHTTP2_FRAME_SIZE_ERROR);
        }
        http2_note_flood(http2, HTTP2_FLOOD_OTHERS);
        break;
    case NGHTTP2_RST_STREAM:
        break; /* on_stream_close() sees what it ends */
    case NGHTTP2_PING:
        http2_note_flood(http2, HTTP2_FLOOD_PINGS);
        break;
    case NGHTTP2_SETTINGS:
        http2_note_flood(http2, HTTP2_FLOOD_SETTINGS);
        break;
    case NGHTTP2_PRIORITY:
        if (frame->stream == 0) { /* nghttp2 looks at none of them */
            (void)nghttp2_session_terminate_session(http2->frames, NGHTTP2_PROTOCOL_ERROR);
        }
        http2_note_flood(http2, HTTP2_FLOOD_PRIORITIES);
        break;
    case PRIORITY_UPDATE:
        http2_note_flood(http2, HTTP2_FLOOD_PRIORITIES);
        break;
    case NGHTTP2_WINDOW_UPDATE:
        http2_note_flood(http2, HTTP2_FLOOD_WINDOWS);
        break;
    default:
        http2_note_flood(http2, HTTP2_FLOOD_OTHERS);
    }
}

/* The head of a frame, as far as it has come. Returns the bytes taken; 0: it has to wait. */
static size_t take_head(struct http2 *http2, struct span bytes)
{
    size_t missing = HTTP2_HEAD_BYTES - http2->head_len;
    size_t taken = bytes.len < missing ? bytes.len : missing;
    memcpy(http2->head + http2->head_len, bytes.ptr, taken);
    if (taken < missing) {
        http2->head_len += (uint32_t)taken;
        return taken;
    }
    struct frame frame = read_head(http2->head);
    if (frame.type == NGHTTP2_HEADERS && !may_begin(http2)) {
        return 0;
    }
    http2->data_stream = 0;
    note_frame(http2, &frame);
    http2_end_flood(http2);
    http2->head_len = 0;
    http2->frame_left = frame.len;
    give(http2, span_of(http2->head, HTTP2_HEAD_BYTES));
    return taken;
}

/* Bytes of what is being read, with |*left| to come. */
static size_t take_rest(struct http2 *http2, struct span bytes, uint32_t *left)
{
    size_t taken = bytes.len < *left ? bytes.len : *left;
    *left -= (uint32_t)taken;
    give(http2, span_of(bytes.ptr, taken));
    return taken;
}

static size_t take(struct http2 *http2, struct span bytes)
{
    if (http2->preface_left) {
        return take_rest(http2, bytes, &http2->preface_left);
    }
    return http2->frame_left ? take_rest(http2, bytes, &http2->frame_left)
                             : take_head(http2, bytes);
}

struct transport_room http2_read_room(struct http2 *http2)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    uint8_t *shared = http2->session.conns->read_buffer;
    struct transport_room room = {0};
    if (http2->frame_left >= DIRECT_BYTES_MIN && http2->data_stream && !http2_is_over(http2)) {
        struct http2_stream *stream = find(http2, http2->data_stream);
        room = stream ? http2_stream_room(stream, http2->frame_left) : room;
        if (room.len == 0 && http2->frame_left >= LARGE_BYTES_MIN) { /* the body grows by these */
            room = (struct transport_room){shared, FEW_BYTES};
        }
    } else if (http2->frame_left < DIRECT_BYTES_MIN && http2->is_data_large) {
        room = (struct transport_room){shared, http2->frame_left + FEW_BYTES};
    }
    return room.len ? room : (struct transport_room){shared, CONNS_READ_BYTES};
}

/* A client that does not take what it asked for may not ask for more. */
static bool has_room(struct http2 *http2)
{
    if (nghttp2_session_get_outbound_queue_size(http2->frames) >= HTTP2_QUEUED_MAX) {
        http2_write_flush(http2);
    }
    return !http2_is_over(http2) && http2->held_bytes < HTTP2_HELD_BYTES_MAX &&
           nghttp2_session_get_outbound_queue_size(http2->frames) < HTTP2_QUEUED_MAX;
}

size_t http2_read_feed(struct http2 *http2, struct span bytes)
{
    OBJ_CHECK(http2, HTTP2_MAGIC);
    size_t used = 0;
    while (used < bytes.len && has_room(http2)) {
        size_t taken = take(http2, span_of(bytes.ptr + used, bytes.len - used));
        if (taken == 0) {
            break;
        }
        used += taken;
    }
    return used;
}
