/* SPDX-License-Identifier: MIT */
/*
 * Logarithms of probabilities in answers of language models (struct sampler_mark): of the tokens of
 * an answer, in the forms of OpenAI's API, and of those of its prompt. A completion that echoes its
 * prompt has both in one list. prompt_logprobs is a list as vLLM 0.11 prints it: of each choice of
 * completions, of the whole answer of chats. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_REPLY_MARKS_H
#define PTED_SERVER_LANGUAGE_REPLY_MARKS_H

#include "server/language/reply.h"

#define REPLY_WORD_BYTES_MAX 4096 /* of a token */

/* Prints "token", "logprob" and "bytes", as members of an object. |word| is room for a token. */
void reply_marks_print_token(const struct words *words, const struct sampler_choice *choice,
                             struct buf *word, struct buf *out);

/* Prints `,"logprobs":` and what the request wants of it, or null. */
void reply_marks_print(const struct reply *reply, const struct reply_piece *piece, struct buf *out);

/* Prints the tokens of |piece| with their logarithms as a list: {"token", "logprob", "bytes",
 * "top_logprobs"}. */
void reply_marks_print_list(const struct reply *reply, const struct reply_piece *piece,
                            struct buf *out);

/* Prints |count| tokens as one object, as Cohere has them: {"text", "token_ids", "logprobs"}. */
void reply_marks_print_chunk(const struct reply *reply, const struct sampler_mark *marks,
                             uint32_t count, struct buf *out);

/* Prints `,"prompt_logprobs":` and the list, if the request wants it. */
void reply_marks_print_prompt(const struct reply *reply, const struct reply_piece *piece,
                              struct buf *out);

#endif
