/* SPDX-License-Identifier: MIT */
/*
 * A line for a log, put together without printf(), because each request may need one. Texts of
 * clients are cut first and then escaped; a byte becomes LINE_ESCAPED bytes at most, so a line has
 * a bound that its maker can state. One thread a line.
 */
#ifndef PTED_SERVER_PROCESS_LINE_H
#define PTED_SERVER_PROCESS_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define LINE_BYTES_MAX (12 << 10) /* with the line's end */
#define LINE_ESCAPED 6      /* bytes that a byte of text becomes at most */

struct line {
    char text[LINE_BYTES_MAX];
    size_t len;
};

/* Adds bytes, which must fit. */
void line_add(struct line *line, const void *bytes, size_t len);
void line_add_str(struct line *line, const char *text);
void line_add_number(struct line *line, uint64_t value); /* decimal digits */

/*
 * Adds the first |max| bytes of |text|: controls, bytes that are not UTF-8 and characters that
 * disturb a line as \u202e. With quotes around it, where " and \ are escaped too, it is a string of
 * JSON.
 */
void line_add_text(struct line *line, struct span text, size_t max);
void line_add_quoted(struct line *line, struct span text, size_t max);

#endif
