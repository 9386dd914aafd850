/* SPDX-License-Identifier: MIT */
/*
 * Members of POST /v1/responses that chats have in another form. They are written as the messages
 * and the tools of a chat, so that everything behind works as for a chat.
 *
 *     instructions                          a message of the system, before all others
 *     input: a text, or a list of items
 *       message                             a message; its parts are texts
 *       function_call                       a call of the assistant's message before it
 *       function_call_output                a message of a tool
 *       reasoning                           the thought of the assistant's message behind it: its
 *                                           content, or its summary
 *     tools: {"type": "function", "name"}   {"type": "function", "function": {"name"}}
 *
 * Strings are copied as they stand in the body. Everything is in the arena or borrows from the
 * body.
 */
#ifndef PTED_SERVER_LANGUAGE_ASK_RESPONSE_H
#define PTED_SERVER_LANGUAGE_ASK_RESPONSE_H

#include "base/arena.h"
#include "base/status.h"
#include "protocol/json.h"
#include "server/language/ask.h"

/* Reads one member. ST_INVALID with its path; ST_EXHAUSTED. */
MUST_CHECK enum status ask_response_input(struct json *in, struct arena *arena, struct ask *ask,
                                          struct error *err);
MUST_CHECK enum status ask_response_instructions(struct json *in, struct ask *ask,
                                                 struct error *err);
MUST_CHECK enum status ask_response_tools(struct json *in, struct arena *arena, struct ask *ask,
                                          struct error *err);

#endif
