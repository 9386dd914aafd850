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

/* Is |c| one of a name: letters of any script, digits, "_", "-" and "."? */
bool tools_literal_is_of_name(uint8_t c);

/* Prints the member that comes next, a name or a text, |mark| and a value, as one of an object.
 * False: there is none, or it is nested too deep. */
bool tools_literal_member(struct tools_literal *in, const char *mark);

#endif
