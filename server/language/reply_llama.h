/* SPDX-License-Identifier: MIT */
/*
 * Answers in the form of llama.cpp's /completion and /infill: an object, or events, of which the
 * last one has "stop": true and what is known of the whole answer. Of the stages of
 * server/language/reply.h.
 */
#ifndef PTED_SERVER_LANGUAGE_REPLY_LLAMA_H
#define PTED_SERVER_LANGUAGE_REPLY_LLAMA_H

#include "server/language/reply.h"

void reply_llama_print(const struct reply *reply, const struct reply_piece *piece, struct buf *out);
void reply_llama_print_events(struct reply *reply, const struct reply_piece *piece,
                              struct buf *out);

#endif
