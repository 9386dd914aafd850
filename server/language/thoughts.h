/* SPDX-License-Identifier: MIT */
/*
 * What chat templates are told of thoughts (server/language/thinking.h): those of earlier messages,
 * and whether the client wants the model to think. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_THOUGHTS_H
#define PTED_SERVER_LANGUAGE_THOUGHTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "server/text/template/template.h"

struct ask;

/*
 * Gives |message|, a map, its thought under each name that templates ask for: reasoning_content,
 * reasoning and thinking. Clients send it under one of the first two, as a text or as parts with
 * texts. False: no memory.
 */
MUST_CHECK bool thoughts_settle(struct value *message, struct arena *arena);

/* Sets reasoning_effort, enable_thinking and thinking in |context| as |ask| says, where
 * chat_template_kwargs has not set them. False: no memory. */
MUST_CHECK bool thoughts_ask(const struct ask *ask, struct arena *arena, struct value *context);

#endif
