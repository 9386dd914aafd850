/* SPDX-License-Identifier: MIT */
/*
 * Calls of tools in the text of an answer, as models write them when they are told of tools:
 *
 *     <tool_call>{"name": "f", "arguments": {...}}</tool_call>    Qwen, Hermes; several of them
 *     {"name": "f", "parameters": {...}}                          Llama 3, the whole answer
 *     [{"name": "f", "arguments": {...}}, ...]                    Mistral, behind its special token
 *
 * A call counts only if the request has a tool of that name. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_TOOLS_H
#define PTED_SERVER_LANGUAGE_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

#define TOOLS_CALLS_MAX 64

struct tools_call {
    struct span name;      /* a string of JSON with its quotes */
    struct span arguments; /* an object of JSON, as the model wrote it */
};

struct tools_calls {
    struct tools_call calls[TOOLS_CALLS_MAX];
    uint32_t count;
    bool is_cut;       /* the answer has ended within its only call, so |arguments| are no JSON */
    size_t text_bytes; /* of the text before the first call: the rest of the answer */
};

/* |tools| is the JSON of the request, an array. The spans of |out| borrow from |text|. Without any
 * call |out->count| is 0, and all of the text is the answer. */
void tools_find(struct span tools, struct span text, struct tools_calls *out);

/*
 * Does the same, for an answer that has to be a call and is none for tools_find(). Mostly it has
 * ended too early: its one call, as far as it goes. |chosen|: the function to call; empty: any. A
 * call of which not even the name is there is none, and no text either. The call may also be whole
 * and have arguments that tools_find() refuses, such as keys that repeat.
 */
void tools_find_cut(struct span tools, struct span chosen, struct span text,
                    struct tools_calls *out);

/* Returns the bytes at the beginning of |text|, which may grow, that are certainly not part of a
 * call. |known|: how many there were before it grew, which are not looked at again; 0 at first. */
size_t tools_plain_bytes(struct span text, size_t known);

#endif
