/* SPDX-License-Identifier: MIT */
/*
 * A stream of calls: ModelStreamInfer of gRPC, whose client sends requests as it likes and gets
 * answers as they come. Each message is a request of its own, with an exchange whose protocol the
 * stream is: so a call of a stream has the limits, the memory, the statistics, the log and the
 * errors of a ModelInfer alone. The request around them stays in step READ until its client has
 * ended it and all calls are over.
 *
 * Up to --stream-call-count-max calls are under way. A message beyond them is not taken, nor is one
 * while an answer waits for the client, so a client that does not read is not read. Calls of one
 * sequence follow each other. Answers without an id go out in the order of their requests, others
 * as they come, and so does each token of a generation.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_REQUEST_STREAM_H
#define PTED_SERVER_DAEMON_REQUEST_REQUEST_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/status.h"

struct request;
struct request_stream;

/* Call when the head of a request whose route is a stream of calls has been admitted. ST_EXHAUSTED,
 * ST_UNSUPPORTED: its protocol answers no request before that has ended. */
MUST_CHECK enum status request_stream_open(struct request *request, struct error *err);

/* Call when the request is given back: no call is left. */
void request_stream_free(struct request_stream *stream);

/* Call when more of the messages has come. Returns the status to refuse the stream with, or 0. */
MUST_CHECK int request_stream_feed(struct request *request, struct span bytes);

/* Call when the request has been complete, or refused; in its turn of the loop; when a write of its
 * answer that had to wait is done; and when its client has gone. The request may be over then. */
void request_stream_end_body(struct request *request);
void request_stream_take_turn(struct request *request);
void request_stream_note_written(struct request *request, bool is_ok);
void request_stream_leave(struct request *request);

/* Does it take more of its messages now? If not, it reads on by exchange_read_on() later. */
bool request_stream_may_take(struct request_stream *stream);

/* Is a message coming? Do calls have to be answered, so that the client need send nothing? */
bool request_stream_is_inside(const struct request_stream *stream);
bool request_stream_is_busy(const struct request_stream *stream);

#endif
