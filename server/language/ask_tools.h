/* SPDX-License-Identifier: MIT */
/*
 * Which tools an answer may or has to call: the member tool_choice of chats and of POST
 * /v1/responses. ST_INVALID with its path; ST_EXHAUSTED.
 */
#ifndef PTED_SERVER_LANGUAGE_ASK_TOOLS_H
#define PTED_SERVER_LANGUAGE_ASK_TOOLS_H

#include "base/arena.h"
#include "base/status.h"
#include "protocol/json.h"
#include "server/language/ask.h"

/*
 * Reads "none", "auto", "required", {"type": "function", "function": {"name": "f"}}, with or
 * without the inner object, or {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools":
 * [...]}}, likewise.
 */
MUST_CHECK enum status ask_tool_choice(struct json *in, struct arena *arena, struct ask *ask,
                                       struct error *err);

/* Leaves only those of the request's tools that tool_choice allows, if it names any. */
MUST_CHECK enum status ask_tools_keep_allowed(struct arena *arena, struct ask *ask,
                                              struct error *err);

#endif
