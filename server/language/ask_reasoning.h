/* SPDX-License-Identifier: MIT */
/*
 * How much a model is to think before it answers: members of chats and of POST /v1/responses. Each
 * function reads one value. ST_INVALID with its path; ST_EXHAUSTED.
 */
#ifndef PTED_SERVER_LANGUAGE_ASK_REASONING_H
#define PTED_SERVER_LANGUAGE_ASK_REASONING_H

#include "base/arena.h"
#include "base/status.h"
#include "protocol/json.h"
#include "server/language/ask.h"

/* "low"; "none" is a wish not to think. */
MUST_CHECK enum status ask_effort(struct json *in, struct arena *arena, struct ask *ask,
                                  struct error *err);

/* {"effort": "low"}, or, as OpenRouter's clients send it, {"enabled": false}. */
MUST_CHECK enum status ask_reasoning(struct json *in, struct arena *arena, struct ask *ask,
                                     struct error *err);

#endif
