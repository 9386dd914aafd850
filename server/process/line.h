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
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

#define LINE_BYTES_MAX (12 << 10) /* with the line's end */
#define LINE_ESCAPED 6            /* bytes that a byte of text becomes at most */
#define LINE_DIGITS_MAX 20        /* of a number */

struct line {
    char text[LINE_BYTES_MAX];
    size_t len;
};

/* Returns the place of |len| more bytes, which must fit. */
static inline char *line_room(struct line *line, size_t len)
{
    must(in_range(line->len, len, sizeof(line->text)));
    return line->text + line->len;
}

/* Ends the line at |end|, which lies in what line_room() has given. */
static inline void line_commit(struct line *line, const char *end)
{
    line->len = (size_t)(end - line->text);
}

/* Adds bytes, which must fit. */
static inline void line_add(struct line *line, const void *bytes, size_t len)
{
    memcpy(line_room(line, len), bytes, len);
    line->len += len;
}

/* Adds a text; the compiler knows the length of a literal. */
static inline void line_add_str(struct line *line, const char *text)
{
    line_add(line, text, strlen(text));
}

/* Writes the time to |at|, where LINE_TIME_BYTES may be written, as 2026-11-24T09:46:38.123456Z.
 * Returns their end. Any thread. */
#define LINE_TIME_BYTES (sizeof("2026-11-24T09:46:38.123456Z") - 1)
char *line_print_time(char *at);

/* Writes decimal digits to |at|, where LINE_DIGITS_MAX bytes may be written. Returns their end. */
char *line_print_number(char *at, uint64_t value);

/*
 * Writes the first |max| bytes of |text| to |at|, where there is room for LINE_ESCAPED times as
 * many, and two quotes: controls, bytes that are not UTF-8 and characters that disturb a line as
 * \u202e. With quotes around it, where " and \ are escaped too, it is a string of JSON. Returns the
 * end.
 */
char *line_print_text(char *at, struct span text, size_t max);
char *line_print_quoted(char *at, struct span text, size_t max);

/* Adds the same. */
void line_add_number(struct line *line, uint64_t value);
void line_add_text(struct line *line, struct span text, size_t max);
void line_add_quoted(struct line *line, struct span text, size_t max);

#endif
