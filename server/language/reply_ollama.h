/* SPDX-License-Identifier: MIT */
/*
 * Answers in the form of Ollama's /api/chat and /api/generate: one object, or an object a line, of
 * which the last one has "done", the counts and the times. Of the stages of
 * server/language/reply.h. Source: the page "API" of Ollama's documentation.
 */
#ifndef PTED_SERVER_LANGUAGE_REPLY_OLLAMA_H
#define PTED_SERVER_LANGUAGE_REPLY_OLLAMA_H

#include "server/language/reply.h"

void reply_ollama_print(const struct reply *reply, const struct reply_piece *piece,
                        struct buf *out);
void reply_ollama_print_lines(struct reply *reply, const struct reply_piece *piece,
                              struct buf *out);

/* {"error": "..."} as the last line of a stream. */
void reply_ollama_print_error_line(struct reply *reply, struct buf *out, const char *text,
                                   int http_status);

/* Prints a time, in ns since 1970, as a string of RFC 3339. */
void reply_ollama_print_time(struct buf *out, uint64_t wall_ns);

#endif
