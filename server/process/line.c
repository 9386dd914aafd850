/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/line.h"

#include <stdbool.h>
#include <time.h>

#include "base/utf8.h"

/* ---- numbers --------------------------------------------------------------------------------- */

char *line_print_number(char *at, uint64_t value)
{
    char digits[2 * LINE_DIGITS_MAX]; /* so many bytes are copied, whatever their number */
    char *end = digits + LINE_DIGITS_MAX, *first = end;
    for (; value >= 10; value /= 10) {
        *--first = (char)('0' + value % 10);
    }
    *--first = (char)('0' + value);
    memcpy(at, first, LINE_DIGITS_MAX);
    return at + (end - first);
}

/* "2026-11-24T09:46:38", made once a second by each thread. */
#define SECOND_BYTES (sizeof("2026-11-24T09:46:38") - 1)
static const char *second_text(time_t second)
{
    static _Thread_local char text[SECOND_BYTES + 1];
    static _Thread_local time_t printed;
    if (text[0] == '\0' || second != printed) {
        struct tm utc;
        gmtime_r(&second, &utc);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
        printed = second;
    }
    return text;
}

char *line_print_time(char *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    memcpy(at, second_text(now.tv_sec), SECOND_BYTES);
    memcpy(at + SECOND_BYTES, ".000000Z", LINE_TIME_BYTES - SECOND_BYTES);
    unsigned us = (unsigned)now.tv_nsec / 1000;
    for (size_t i = LINE_TIME_BYTES - 2; us > 0; i--, us /= 10) {
        at[i] = (char)('0' + us % 10);
    }
    return at + LINE_TIME_BYTES;
}

void line_add_number(struct line *line, uint64_t value)
{
    line_commit(line, line_print_number(line_room(line, LINE_DIGITS_MAX), value));
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* "\u202e", of a character in the first plane. */
static char *print_escape(char *at, uint32_t code)
{
    static const char hex[] = "0123456789abcdef";
    const char text[LINE_ESCAPED] = {
        '\\', 'u', hex[code >> 12 & 15], hex[code >> 8 & 15], hex[code >> 4 & 15], hex[code & 15]};
    memcpy(at, text, sizeof(text));
    return at + sizeof(text);
}

static inline bool is_plain(uint8_t c, bool is_quoted)
{
    return (uint8_t)(c - 0x20) < 0x7f - 0x20 && !(is_quoted && (c == '"' || c == '\\'));
}

/* Are all of the eight characters plain, quoted or not? */
static inline bool are_plain(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u;
    return utf8_are_printable(word) &&
           (utf8_mark_zeros(word ^ ones * '"') | utf8_mark_zeros(word ^ ones * '\\')) == 0;
}

/* The |len| bytes at |p|, which are a sequence, or one byte if |len| is 0. */
static char *print_character(char *at, const uint8_t *p, size_t len)
{
    if (len == 0) {
        return print_escape(at, 0xfffd);
    }
    if (len == 1 && (*p == '"' || *p == '\\')) {
        at[0] = '\\';
        at[1] = (char)*p;
        return at + 2;
    }
    if (len == 1) {
        return print_escape(at, *p);
    }
    if (utf8_is_disruptive(utf8_code(p, len))) {
        return print_escape(at, utf8_code(p, len));
    }
    memcpy(at, p, len);
    return at + len;
}

static inline char *print_escaped(char *at, struct span text, size_t max, bool is_quoted)
{
    const uint8_t *p = text.ptr, *end = p + (text.len < max ? text.len : max);
    while (p < end) {
        for (; end - p >= 8 && are_plain(load_le64(p)); p += 8, at += 8) {
            memcpy(at, p, 8);
        }
        while (p < end && is_plain(*p, is_quoted)) {
            *at++ = (char)*p++;
        }
        if (p < end) {
            size_t len = *p < 0x80 ? 1 : utf8_sequence(p, end);
            at = print_character(at, p, len);
            p += len ? len : 1;
        }
    }
    return at;
}

char *line_print_text(char *at, struct span text, size_t max)
{
    return print_escaped(at, text, max, false);
}

char *line_print_quoted(char *at, struct span text, size_t max)
{
    *at++ = '"';
    at = print_escaped(at, text, max, true);
    *at++ = '"';
    return at;
}

/* The most bytes that the first |max| of |text| take, in quotes. */
static size_t quoted_bytes(struct span text, size_t max)
{
    return LINE_ESCAPED * (text.len < max ? text.len : max) + 2;
}

void line_add_text(struct line *line, struct span text, size_t max)
{
    line_commit(line, line_print_text(line_room(line, quoted_bytes(text, max) - 2), text, max));
}

void line_add_quoted(struct line *line, struct span text, size_t max)
{
    line_commit(line, line_print_quoted(line_room(line, quoted_bytes(text, max)), text, max));
}
