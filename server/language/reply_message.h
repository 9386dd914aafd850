/* SPDX-License-Identifier: MIT */
/*
 * Answers in the form of Anthropic's Messages API: an object with blocks, or events of blocks. Of
 * the stages of server/language/reply.h. Source: docs.anthropic.com, "Streaming Messages".
 */
#ifndef PTED_SERVER_LANGUAGE_REPLY_MESSAGE_H
#define PTED_SERVER_LANGUAGE_REPLY_MESSAGE_H

#include "server/language/reply.h"

void reply_message_print(const struct reply *reply, const struct reply_piece *piece,
                         struct buf *out);
void reply_message_print_events(struct reply *reply, const struct reply_piece *piece,
                                struct buf *out);

/* {"type": "error", "error": {"type", "message"}}, and the same as the last event of a stream. */
void reply_message_print_error(struct buf *out, const char *text, int http_status);
void reply_message_print_error_event(struct reply *reply, struct buf *out, const char *text,
                                     int http_status);

#endif
