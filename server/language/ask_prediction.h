/* SPDX-License-Identifier: MIT */
/*
 * The member "prediction" of a chat: a text that the answer may be like, as
 * {"type": "content", "content": TEXT}, or with a list of parts of type text as its content. It
 * never changes the answer; guesses at the next tokens come from it (server/language/drafts.h).
 */
#ifndef PTED_SERVER_LANGUAGE_ASK_PREDICTION_H
#define PTED_SERVER_LANGUAGE_ASK_PREDICTION_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"
#include "protocol/json.h"

/* Reads the text, in the arena. ST_INVALID with its path; ST_EXHAUSTED. */
MUST_CHECK enum status ask_prediction(struct json *in, struct arena *arena, struct span *out,
                                      struct error *err);

#endif
