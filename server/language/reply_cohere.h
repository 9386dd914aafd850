/* SPDX-License-Identifier: MIT */
/*
 * Answers in the form of Cohere's /v2/chat: an object with a message, or events of its contents and
 * calls. Of the stages of server/language/reply.h. Source: cohere-python 7.3, V2ChatResponse and
 * V2ChatStreamResponse.
 */
#ifndef PTED_SERVER_LANGUAGE_REPLY_COHERE_H
#define PTED_SERVER_LANGUAGE_REPLY_COHERE_H

#include "server/language/reply.h"

void reply_cohere_print(const struct reply *reply, const struct reply_piece *piece,
                        struct buf *out);
void reply_cohere_print_events(struct reply *reply, const struct reply_piece *piece,
                               struct buf *out);
void reply_cohere_print_end(const struct reply *reply, struct buf *out);

/* Prints the last event of a stream that fails. Other errors have embed_reply_print_message(). */
void reply_cohere_print_error_event(struct reply *reply, struct buf *out, const char *text,
                                    int http_status);

#endif
