/* SPDX-License-Identifier: MIT */
/*
 * A request to a language model. It takes the steps of request.def like a call, but the steps
 * DECODE to SAMPLE once for each token:
 *
 *     PARSE   the members of the body; the prompts as ids of tokens
 *     DECODE  a call of the model with the ids that its sequence has not had yet: a part of the
 *             prompt, or the last token
 *     RUN     a job of the scheduler like any other, in the lane of the sequence
 *     SAMPLE  the next token from the logits, the text that it makes, and whether that is the end
 *     SEND    an event of a stream; it waits until the client has taken it
 *
 * So fairness, priorities and cancellation hold for each token, and a generation whose client has
 * gone ends within a step. The choices of a request (several prompts, n > 1) follow each other.
 *
 * The sequence of a generation is in the table of all sequences, so their limits hold. Its key has
 * a number and a name, as no key of a client has, so nobody else can use it.
 *
 * A generation belongs to its request, and follows the rules for the request's parts
 * (server/daemon/request/request.h).
 */
#ifndef PTED_SERVER_DAEMON_GENERATION_GENERATION_H
#define PTED_SERVER_DAEMON_GENERATION_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/daemon/infer/infer.h"
#include "server/language/ask.h"

struct generation;
struct infer;

/* For the routes of route.def. */
extern const struct infer_ops generation_ops;
extern const struct codec generation_completion, generation_chat, generation_response,
    generation_message, generation_cohere, generation_llama, generation_infill, generation_generate,
    generation_generate_stream, generation_ollama_chat, generation_ollama_generate;

/* Tokens so far, for logs; of another kind of request, or before PARSE, none. */
struct generation_counts {
    uint64_t prompt_tokens, answer_tokens;
    uint64_t first_ns; /* from the complete request to the first token; 0: there is none */
};

struct generation_counts generation_counts(const struct infer *infer);

#endif
