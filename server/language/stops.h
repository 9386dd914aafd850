/* SPDX-License-Identifier: MIT */
/*
 * The text of an answer while it grows, and the strings that end it. Text that may still become
 * such a string is held back until it cannot any more; the string itself is not part of the answer.
 * Text is added in whole characters, so what is given out never ends within one.
 *
 * One thread at a time.
 */
#ifndef PTED_SERVER_LANGUAGE_STOPS_H
#define PTED_SERVER_LANGUAGE_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

struct stops {
    const struct span *texts; /* borrowed; none is empty */
    uint32_t count;
    struct buf text;    /* all so far; without the string that has ended it */
    size_t ready_bytes; /* of it no further text can take back */
    bool is_stopped;
    struct span stopper; /* the string that has ended it; else empty */
};

void stops_init(struct stops *stops, const struct span *texts, uint32_t count, size_t bytes_max);
void stops_fini(struct stops *stops);

/* Call when another answer begins. */
void stops_restart(struct stops *stops);

/* Text was appended to |text|: looks for the strings. One that is complete ends the text; of
 * several that one which begins first. */
void stops_look(struct stops *stops);

/* Call when no more text comes: nothing is held back any more. */
void stops_end(struct stops *stops);

#endif
