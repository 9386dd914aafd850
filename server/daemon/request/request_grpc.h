/* SPDX-License-Identifier: MIT */
/*
 * Calls of gRPC: HTTP requests whose body and answer are messages, and whose outcome is in trailers
 * (protocol/grpc.h). Calls of models read and print their messages themselves
 * (server/daemon/infer/codec_grpc.h). A handler is that of the HTTP side: its request's message
 * becomes the JSON of its body, and its JSON a message (protocol/grpc_json.h).
 *
 * Threads as in request.h.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_REQUEST_GRPC_H
#define PTED_SERVER_DAEMON_REQUEST_REQUEST_GRPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/status.h"
#include "protocol/grpc.h"
#include "protocol/grpc_schema.h"
#include "protocol/number.h"
#include "server/http/coding.h"
#include "server/http/http.h"

struct request;
struct request_stream;

#define REQUEST_GRPC_TRAILERS 3

/* Of a request. */
struct request_grpc {
    bool is_on;       /* the client speaks gRPC, so an error is a status in the trailers */
    bool is_read;     /* of a handler: the message has become the body */
    bool is_writing;  /* of a stream: an answer in |out| is on its way */
    bool is_in_turn;  /* of a stream: it goes on in a turn of the loop, or */
    bool is_broken;   /* ...ends there, as its answer cannot be sent */
    bool is_complete; /* of a stream: its request has come to an end */
    size_t taken;     /* of a stream: bytes of the body that have been answered */
    struct request_stream *stream; /* owned; of a stream of calls; NULL: of all others */
    unsigned question_count;
    struct list watch_link; /* of one that watches: in requests->watches */
    uint32_t told;          /* likewise: what the last answer said, and 1 more; 0: there is none */
    int refusal;            /* of the HTTP side, beside the error; 0: the error's own */
    enum coding coding;     /* of compressed messages */
    uint8_t status[NUMBER_TEXT_MAX], pushback[NUMBER_TEXT_MAX]; /* text of trailers, as is */
    char text[GRPC_TEXT_BYTES_MAX];
    struct http_trailer trailers[REQUEST_GRPC_TRAILERS];
};

/* What the message of a handler names: the target of its HTTP side. */
enum request_grpc_names { GRPC_NAMES_NOTHING, GRPC_NAMES_MODEL, GRPC_NAMES_OTHER };

/* Of a route. */
struct route_grpc {
    bool is_on;
    enum grpc_method method;
    enum request_grpc_names names;
    bool wraps_request; /* JSON of requests is their first field, see protocol/grpc_json.h */
    bool wraps_answer;  /* likewise, of answers */
    bool may_change;    /* a request that sets something needs the scope admin */
    bool is_stream;     /* the handler reads and prints messages itself, one at a time: the body's
                           from grpc.taken on, if it is whole. It is called as they come */
    bool watches;       /* of a stream: one message, and answers until the client goes
                           (request_watch.h) */
    bool has_calls;     /* of a stream: each message is a call (request_stream.h); the handler has
                           nothing to print */
};

/* Call when the route is found, with the |http_status| of that: is it a call of gRPC, and can it be
 * answered? 200, or the status to answer with. */
int request_grpc_begin(struct request *request, int http_status);

/* Call before |bytes| are added to the body. The prefix of a message says how long the body is, and
 * its first fields where the first tensor lies. Returns the status to refuse the request with, or
 * 0. */
MUST_CHECK int request_grpc_announce(struct request *request, struct span bytes);

/* Call before the handler of a route of gRPC, each time: puts the JSON of its message into the
 * body, once, and the names in it where those of a target are. */
MUST_CHECK enum status request_grpc_read(struct request *request, struct error *err);

/* Call when more of the body has come, in step READ: answers the next message of a stream, if it is
 * whole, before the client sends another one. A turn of the loop answers one; request_go_on() is
 * called for those behind it, perhaps in here, so the request may be over. Returns the status to
 * refuse the request with, or 0. */
MUST_CHECK int request_grpc_feed(struct request *request);

/* Call when the body is complete, and when such an answer is out or it is the turn of the next one.
 * Returns whether the request leaves step READ; if not, it may be over as above. */
MUST_CHECK bool request_grpc_go_on(struct request *request);

/* Is an answer of a stream on its way, or a turn to come? Then nothing else goes on with it. */
bool request_grpc_is_busy(const struct request *request);

/* Call when a request is refused: the head may be too large for request_grpc_begin(). */
void request_grpc_note_refusal(struct request *request);

/* Makes a message of the JSON that the handler has printed. */
MUST_CHECK enum status request_grpc_print(struct request *request, struct error *err);

/* Changes what the answer says to the form of gRPC; |request->grpc.trailers| have its outcome.
 * Returns their number. */
unsigned request_grpc_describe(struct request *request, struct http_answer *answer);

#endif
