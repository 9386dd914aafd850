/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/line.h"

#include <stdbool.h>
#include <string.h>

#include "base/check.h"
#include "base/utf8.h"

void line_add(struct line *line, const void *bytes, size_t len)
{
    must(in_range(line->len, len, sizeof(line->text)));
    memcpy(line->text + line->len, bytes, len);
    line->len += len;
}

void line_add_str(struct line *line, const char *text)
{
    line_add(line, text, strlen(text));
}

void line_add_number(struct line *line, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    line_add(line, digits + at, sizeof(digits) - at);
}

/* "\u202e", of a character in the first plane. */
static void add_escape(struct line *line, uint32_t code)
{
    static const char hex[] = "0123456789abcdef";
    const char text[LINE_ESCAPED] = {
        '\\', 'u', hex[code >> 12 & 15], hex[code >> 8 & 15], hex[code >> 4 & 15], hex[code & 15]};
    line_add(line, text, sizeof(text));
}

static bool is_plain(uint8_t c, bool is_quoted)
{
    return c >= 0x20 && c < 0x7f && !(is_quoted && (c == '"' || c == '\\'));
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
        while (p < end && is_plain(*p, is_quoted)) {
            p++;
        }
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
