/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/line.h"

#include <stdbool.h>

#include "base/utf8.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));

void line_add_number(struct line *line, uint64_t value)
{
    char digits[2 * LINE_DIGITS_MAX]; /* so many bytes are copied, whatever their number */
    char *end = digits + LINE_DIGITS_MAX, *at = end;
    for (; value >= 10; value /= 10) {
        *--at = (char)('0' + value % 10);
    }
    *--at = (char)('0' + value);
    memcpy(line_room(line, LINE_DIGITS_MAX), at, LINE_DIGITS_MAX);
    line->len += (size_t)(end - at);
}

/* "\u202e", of a character in the first plane. */
static void add_escape(struct line *line, uint32_t code)
{
    static const char hex[] = "0123456789abcdef";
    const char text[LINE_ESCAPED] = {
        '\\', 'u', hex[code >> 12 & 15], hex[code >> 8 & 15], hex[code >> 4 & 15], hex[code & 15]};
    line_add(line, text, sizeof(text));
}

static inline bool is_plain(uint8_t c, bool is_quoted)
{
    return (uint8_t)(c - 0x20) < 0x7f - 0x20 && !(is_quoted && (c == '"' || c == '\\'));
}

/* Are all of the 16 bytes at |p| plain, quoted or not? */
static bool are_plain(const uint8_t *p)
{
    bytes16 v;
    uint64_t words[2];
    memcpy(&v, p, sizeof(v));
    bytes16 marks =
        (bytes16)(v < 0x20) | (bytes16)(v >= 0x7f) | (bytes16)(v == '"') | (bytes16)(v == '\\');
    memcpy(words, &marks, sizeof(words));
    return (words[0] | words[1]) == 0;
}

/* The first byte at |p| or behind it that is not plain, or |end|. */
static const uint8_t *pass_plain(const uint8_t *p, const uint8_t *end, bool is_quoted)
{
    while (end - p >= 16 && are_plain(p)) {
        p += 16;
    }
    while (p < end && is_plain(*p, is_quoted)) {
        p++;
    }
    return p;
}

/* The |len| bytes at |p|, which are a sequence, or one byte if |len| is 0. */
static void add_character(struct line *line, const uint8_t *p, size_t len)
{
    if (len == 0) {
        add_escape(line, 0xfffd);
    } else if (len == 1 && (*p == '"' || *p == '\\')) {
        line_add(line, (const char[]){'\\', (char)*p}, 2);
    } else if (len == 1) {
        add_escape(line, *p);
    } else if (utf8_is_disruptive(utf8_code(p, len))) {
        add_escape(line, utf8_code(p, len));
    } else {
        line_add(line, p, len);
    }
}

static void add_escaped(struct line *line, struct span text, size_t max, bool is_quoted)
{
    const uint8_t *p = text.ptr, *end = p + (text.len < max ? text.len : max);
    while (p < end) {
        const uint8_t *plain = p;
        p = pass_plain(p, end, is_quoted);
        line_add(line, plain, (size_t)(p - plain));
        if (p < end) {
            size_t len = *p < 0x80 ? 1 : utf8_sequence(p, end);
            add_character(line, p, len);
            p += len ? len : 1;
        }
    }
}

void line_add_text(struct line *line, struct span text, size_t max)
{
    add_escaped(line, text, max, false);
}

void line_add_quoted(struct line *line, struct span text, size_t max)
{
    line_add(line, "\"", 1);
    add_escaped(line, text, max, true);
    line_add(line, "\"", 1);
}
