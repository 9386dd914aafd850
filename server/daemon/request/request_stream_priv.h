/* SPDX-License-Identifier: MIT */
/* Shared by request_stream.c and request_stream_call.c. Loop thread. */
#ifndef PTED_SERVER_DAEMON_REQUEST_REQUEST_STREAM_PRIV_H
#define PTED_SERVER_DAEMON_REQUEST_REQUEST_STREAM_PRIV_H

#include "base/buf.h"
#include "base/list.h"
#include "protocol/grpc.h"
#include "protocol/grpc_stream.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"

#define STREAM_MAGIC 0x73747265u
#define CALL_MAGIC 0x63616c6cu

/* An id that is longer is not repeated beside an error. */
#define STREAM_ID_BYTES_MAX 256
/* Spans of an answer that need no memory of their own. */
#define STREAM_SPANS_HERE 4

struct stream_call {
    uint32_t magic;
    struct request_stream *stream;
    struct exchange exchange;
    struct list link;         /* in stream->calls, by arrival; later in stream->over */
    struct list waiting_link; /* in stream->waiting */
    uint64_t sequence;        /* see struct grpc_order */
    bool is_unknown;          /* likewise; it may belong to any sequence */
    bool is_free;             /* its answers may stand between others, as far as is known */
    uint8_t id_len;
    char id[STREAM_ID_BYTES_MAX - 1];
    /* The write of its answer that is under way: */
    uint8_t head[GRPC_STREAM_HEAD_BYTES_MAX];
    struct buf error; /* its only span, of an error */
    struct span here[STREAM_SPANS_HERE], *spans;
    unsigned span_count;
};

struct request_stream {
    uint32_t magic;
    struct request *request;     /* that it belongs to */
    struct list calls;           /* that are not over, by arrival */
    struct list over;            /* to be freed: nobody uses them any more */
    struct list waiting;         /* whose answers wait, for the client or for their turn */
    struct stream_call *reading; /* whose message comes, */
    struct stream_call *ready;   /* or has come, but its sequence has another call */
    struct stream_call *writing; /* whose answer the client takes now */
    uint32_t count;              /* of |calls| */
    uint8_t prefix[GRPC_PREFIX_BYTES];
    uint8_t prefix_len; /* bytes of a prefix that came in pieces */
    uint64_t left;      /* bytes of the message of |reading|, with those of its prefix */
    uint64_t skipped;   /* bytes to come of a message that has been refused */
    uint64_t due_ms;    /* grpc-timeout, on the clock of the loop; UINT64_MAX: none */
    bool is_asked;      /* the client has more, which is to be asked for later */
    bool is_inside, is_in_turn, is_writing;
    bool is_broken;     /* nothing reaches the client any more, or may reach it */
    bool has_given_way; /* errors have taken the place of answers, whose memory is still held */
};

static inline const struct params *stream_params(const struct request_stream *stream)
{
    return stream->request->requests->uses.params;
}

static inline uint64_t stream_now(const struct request_stream *stream)
{
    return uv_now(&stream->request->requests->uses.loop->uv);
}

/* ---- request_stream_call.c ------------------------------------------------------------------- */

/* Adds a call, the last of the stream. NULL: there is no memory. */
struct stream_call *stream_call_begin(struct request_stream *stream,
                                      const struct exchange_ops *ops);

/* Gives it the head of the stream. Returns 0, or the status to refuse the call with. */
int stream_call_add_head(struct stream_call *call);

/* Call when it is over, and its answer is not being written: nobody uses it any more. It is freed
 * later, by stream_call_free(). stream_call_drop() ends it before that. */
void stream_call_leave(struct stream_call *call);
void stream_call_drop(struct stream_call *call);
void stream_call_free(struct stream_call *call);

/* Call when its message is complete, for what decides its order. */
void stream_call_note_order(struct stream_call *call);

/* Is another call of its sequence under way? Then it comes later. */
bool stream_call_has_elder(const struct stream_call *call);

/* May its answer go now? One without an id is known by its place alone. */
bool stream_call_is_its_turn(struct stream_call *call);

/* Makes the part, or the error of the request, what the call writes. False: there is no memory. */
bool stream_call_take_part(struct stream_call *call, const struct exchange_part *part);
bool stream_call_take_error(struct stream_call *call);

/* Call when that is written, or will not be. */
void stream_call_free_part(struct stream_call *call);

#endif
