/* SPDX-License-Identifier: MIT */
/*
 * Strings as Python's str knows them, over UTF-8: white space, cases, printable characters, places
 * that count code points. The tables are of Unicode 14, as Python 3.11 has them. Text must be
 * UTF-8; a byte that is not is taken as one character and is neither space nor letter. Any thread.
 */
#ifndef PTED_SERVER_TEXT_TEMPLATE_PYTEXT_H
#define PTED_SERVER_TEXT_TEMPLATE_PYTEXT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/bytes.h"

/* Returns the bytes of the character at |at|, which is before |end|. */
size_t pytext_char(const uint8_t *at, const uint8_t *end);

/* Returns the bytes of the white space at |at|; 0: there is none. */
size_t pytext_space(const uint8_t *at, const uint8_t *end);

/* Returns how many code points; and the byte where code point |index| begins, at most text.len. */
size_t pytext_length(struct span text);
size_t pytext_offset(struct span text, size_t index);

/* Without the characters of |chars|, or white space if |chars| is NULL, at the ends that are said.
 */
struct span pytext_strip(struct span text, const struct span *chars, bool at_begin, bool at_end);

/* Returns where |part| first or last begins in text, or SIZE_MAX. */
size_t pytext_find(struct span text, struct span part);
size_t pytext_find_last(struct span text, struct span part);

/* Returns the bytes of the line end at |at| by str.splitlines(); 0: there is none. */
size_t pytext_line_end(const uint8_t *at, const uint8_t *end);

/* Appends |text| as str.lower() and str.upper() change it. The final form of sigma is not
 * chosen. */
void pytext_print_lower(struct span text, struct buf *out);
void pytext_print_upper(struct span text, struct buf *out);

/* str.title(), and str.capitalize(): letters that begin a word have their upper case. */
void pytext_print_title(struct span text, struct buf *out);
void pytext_print_capital(struct span text, struct buf *out);

/* repr() */
void pytext_print_repr(struct span text, struct buf *out);

/* Has the text letters of only this case, and one at least? */
bool pytext_is_lower(struct span text);
bool pytext_is_upper(struct span text);

#endif
