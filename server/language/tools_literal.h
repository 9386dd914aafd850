/* SPDX-License-Identifier: MIT */
/*
 * Values as models write them in calls of tools that are no JSON, printed as JSON: literals of
 * Python, and those of Gemma, whose texts stand between marks of their own. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_TOOLS_LITERAL_H
#define PTED_SERVER_LANGUAGE_TOOLS_LITERAL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/bytes.h"

/* Where reading is. */
struct tools_literal {
    const uint8_t *at, *end;
    struct span quote; /* around texts; empty: those of Python */
    struct buf *out;
    uint32_t depth;
};

/* Passes over white space, then over |text|. False: it is not there, and nothing has changed but
 * the white space. */
bool tools_literal_take(struct tools_literal *in, const char *text);

/* Takes a name: letters of any script, digits, "_", "-" and ".". Empty: there is none. */
struct span tools_literal_name(struct tools_literal *in);

/* Prints the value that comes next. False: there is none, or it is nested too deep. */
bool tools_literal_value(struct tools_literal *in);

/* Prints the members that come next, with |mark| between a name and its value, up to |close|, as an
 * object. False: they are malformed. */
bool tools_literal_members(struct tools_literal *in, const char *mark, const char *close);

#endif
