/* SPDX-License-Identifier: MIT */
/*
 * The members of requests to /v1/messages that Anthropic's API has in a form of its own. They
 * become what a chat has: messages and tools as JSON.
 *
 *     system: a text, or blocks             a message of the system before all others
 *     messages[].content: a text, or blocks
 *       text                                a part of the message
 *       thinking                            reasoning_content of the assistant's message
 *       redacted_thinking                   passed over: only its author can read it
 *       tool_use                            a call of the assistant's message
 *       tool_result                         a message of a tool, before the user's texts
 *     tools: {"name", "input_schema"}       {"type": "function", "function": {...}}
 *     tool_choice                           auto, none, any: some tool, tool: the one of that name
 *
 * If the last message is the assistant's and calls nothing, the answer goes on from it. Strings are
 * copied as they stand in the body. Everything is in the arena or borrows from the body.
 *
 * Source: docs.anthropic.com, "Messages", version 2023-06-01.
 */
#ifndef PTED_SERVER_LANGUAGE_ASK_MESSAGE_H
#define PTED_SERVER_LANGUAGE_ASK_MESSAGE_H

#include "base/arena.h"
#include "base/status.h"
#include "protocol/json.h"
#include "server/language/ask.h"

/* Checks the field anthropic-version, which may be empty. ST_INVALID. */
MUST_CHECK enum status ask_message_verify_version(struct span version, struct error *err);

/* Reads one member. ST_INVALID with its path; ST_EXHAUSTED. */
MUST_CHECK enum status ask_message_system(struct json *in, struct arena *arena, struct ask *ask,
                                          struct error *err);
MUST_CHECK enum status ask_message_turns(struct json *in, struct arena *arena, struct ask *ask,
                                         struct error *err);
MUST_CHECK enum status ask_message_tools(struct json *in, struct arena *arena, struct ask *ask,
                                         struct error *err);
MUST_CHECK enum status ask_message_thinking(struct json *in, struct ask *ask, struct error *err);
MUST_CHECK enum status ask_message_choice(struct json *in, struct arena *arena, struct ask *ask,
                                          struct error *err);

#endif
