/* SPDX-License-Identifier: MIT */
/*
 * Answers of POST /v1/responses (server/language/reply.h): an object with a list of items, a
 * message or calls of functions, or a stream of events that build it. Each event has its type as
 * its name, a number that counts up, and what it changes; the last one has the whole object.
 */
#ifndef PTED_SERVER_LANGUAGE_REPLY_RESPONSE_H
#define PTED_SERVER_LANGUAGE_REPLY_RESPONSE_H

#include "server/language/reply.h"

/* Prints the object, whose whole answer is |piece|. |reply->reason| gives its status. */
void reply_response_print(const struct reply *reply, const struct reply_piece *piece,
                          struct buf *out);

/* Prints the events of one piece; for the last piece also the events that end the items and the
 * object. */
void reply_response_print_events(struct reply *reply, const struct reply_piece *piece,
                                 struct buf *out);

void reply_response_print_error_event(struct reply *reply, struct buf *out, const char *text,
                                      int http_status);

#endif
