/* SPDX-License-Identifier: MIT */
/*
 * Differences between the engines, and their translation:
 *
 * - \s and \S: PCRE2's have U+180E and follow its version of Unicode. They become lists of ranges.
 * - \w: PCRE2's lacks marks. It becomes a list of properties. \W stands outside of classes only. -
 * \d, \p{L} and other general categories: the same. - \p{Han} and other scripts: PCRE2 means the
 * extensions of scripts too; they become \p{sc:Han}. - ^ and $: by dialect. \A and \z: the same. -
 * [a[bc]]: a class in a class is a union; PCRE2 knows none. It is dissolved, if not negated. - &&,
 * possessive braces ({1,3}+), conditionals, references, named groups, other escapes: the
 *   first is refused, the second means the same, all others are refused.
 */
#include "config.h"

#include "server/text/pattern_translate.h"

#include <ctype.h>
#include <string.h>

#include "server/text/unicode.h"

#define SPACES                                                                                     \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"    \
    "\\x{205f}\\x{3000}"
#define NOT_SPACES                                                                                 \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{"     \
    "1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-"  \
    "\\x{10ffff}"
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

struct translation {
    struct span source;
    size_t at;
    enum pattern_dialect dialect;
    unsigned class_depth; /* 0: outside of classes */
    struct buf *out;
    struct error *err;
};

static enum status refuse(struct translation *in, const char *what)
{
    return error_set(in->err, ST_UNSUPPORTED, "regular expression, byte %zu: %s is not supported",
                     in->at, what);
}

static bool at_text(const struct translation *in, const char *text)
{
    size_t len = strlen(text);
    return in_range(in->at, len, in->source.len) && memcmp(in->source.ptr + in->at, text, len) == 0;
}

/* The names of categories are the same; other names are scripts. */
static bool is_category(struct span name)
{
    return name.len <= 2 || span_is(name, "Any");
}

static bool is_plain_property(struct span name)
{
    static const char *const names[] = {"Alphabetic",  "Emoji",     "Extended_Pictographic",
                                        "Ideographic", "Lowercase", "Uppercase"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (span_is(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* \p{...} or \pL; |at| is on the letter p. */
static enum status put_property(struct translation *in)
{
    char letter = (char)in->source.ptr[in->at++];
    struct span name = span_of(in->source.ptr + in->at, 1);
    if (at_text(in, "{")) {
        const uint8_t *start = in->source.ptr + in->at + 1;
        const uint8_t *end = memchr(start, '}', in->source.len - in->at - 1);
        if (!end) {
            return error_set(in->err, ST_CORRUPT, "regular expression: '}' is missing");
        }
        name = span_of(start, (size_t)(end - start));
        in->at += name.len + 2;
    } else if (in->at < in->source.len) {
        in->at++;
    }
    if (name.len > 0 && name.ptr[0] == '^') {
        letter = letter == 'p' ? 'P' : 'p';
        name = span_of(name.ptr + 1, name.len - 1);
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!isalpha(name.ptr[i]) && name.ptr[i] != '_' && name.ptr[i] != '&') {
            return refuse(in, "this property");
        }
    }
    const char *prefix = is_category(name) || is_plain_property(name) ? "" : "sc:";
    buf_printf(in->out, "\\%c{%s%.*s}", letter, prefix, SPAN_SHORT(name));
    return ST_OK;
}

static enum status put_hex(struct translation *in)
{
    size_t digits = in->source.ptr[in->at] == 'u' ? 4 : 2, start = in->at + 1, end = start;
    if (start < in->source.len && in->source.ptr[start] == '{') {
        end = ++start;
        digits = 8;
    }
    while (end < in->source.len && end - start < digits && isxdigit(in->source.ptr[end])) {
        end++;
    }
    if (end == start || (digits == 4 && end - start != 4)) {
        return refuse(in, "this escape");
    }
    buf_printf(in->out, "\\x{%.*s}", (int)(end - start), (const char *)in->source.ptr + start);
    in->at = end;
    if (digits == 8) {
        if (end == in->source.len || in->source.ptr[end] != '}') {
            return refuse(in, "this escape");
        }
        in->at++;
    }
    return ST_OK;
}

static void put_set(struct translation *in, const char *set)
{
    buf_printf(in->out, in->class_depth ? "%s" : "[%s]", set);
    in->at++;
}

/* |at| is behind the backslash. */
static enum status put_escape(struct translation *in)
{
    if (in->at == in->source.len) {
        return error_set(in->err, ST_CORRUPT, "regular expression: it ends with a backslash");
    }
    uint8_t c = in->source.ptr[in->at];
    switch (c) {
    case 's':
        put_set(in, SPACES);
        return ST_OK;
    case 'S':
        put_set(in, NOT_SPACES);
        return ST_OK;
    case 'w':
        put_set(in, WORD);
        return ST_OK;
    case 'W':
        if (in->class_depth) {
            return refuse(in, "\\W in a class");
        }
        put_set(in, "^" WORD);
        return ST_OK;
    case 'p':
    case 'P':
        return put_property(in);
    case 'x':
    case 'u':
        return put_hex(in);
    case 'A':
    case 'z':
        if (in->class_depth) {
            return refuse(in, "this escape");
        }
        break;
    default:
        if (isalnum(c) && !strchr("dDnrtfv", c)) {
            return refuse(in, "this escape");
        }
        if (c == 'v') { /* a set in PCRE2, one character elsewhere */
            buf_add_str(in->out, "\\x{b}");
            in->at++;
            return ST_OK;
        }
        if (c >= 0x80) {
            return ST_OK; /* the character itself */
        }
        break;
    }
    buf_add_char(in->out, '\\');
    buf_add_char(in->out, (char)c);
    in->at++;
    return ST_OK;
}

static enum status put_group(struct translation *in)
{
    static const char *const openings[] = {"(?:", "(?=",  "(?!",  "(?<=",  "(?<!",
                                           "(?>", "(?i:", "(?s:", "(?-i:", "(?i)"};
    if (!at_text(in, "(?")) {
        buf_add_str(in->out, "("); /* nobody reads what it captures */
        in->at++;
        return ST_OK;
    }
    for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
        if (at_text(in, openings[i])) {
            buf_add_str(in->out, openings[i]);
            in->at += strlen(openings[i]);
            return ST_OK;
        }
    }
    return refuse(in, "this group");
}

static enum status put_in_class(struct translation *in)
{
    uint8_t c = in->source.ptr[in->at];
    if (at_text(in, "&&")) {
        return refuse(in, "an intersection of classes");
    }
    if (c == '[') {
        if (at_text(in, "[^") || at_text(in, "[:")) {
            return refuse(in, "this class in a class");
        }
        in->class_depth++;
    } else if (c == ']') {
        if (--in->class_depth == 0) {
            buf_add_char(in->out, ']');
        }
    } else {
        buf_add_char(in->out, (char)c);
    }
    in->at++;
    return ST_OK;
}

static enum status put_outside(struct translation *in)
{
    uint8_t c = in->source.ptr[in->at];
    if (c == '(') {
        return put_group(in);
    }
    if (c == '[') {
        bool is_negated = at_text(in, "[^");
        in->class_depth = 1;
        in->at += is_negated ? 2 : 1;
        buf_add_str(in->out, is_negated ? "[^" : "[");
        if (at_text(in, "]")) {
            buf_add_str(in->out, "\\]");
            in->at++;
        }
        return ST_OK;
    }
    in->at++;
    if (c == '^' || c == '$') {
        const char *ends = c == '^' ? "\\A" : "\\z";
        const char *lines = c == '^' ? "(?m:^)" : "(?m:$)";
        buf_add_str(in->out, in->dialect == PATTERN_LINES ? lines : ends);
    } else {
        buf_add_char(in->out, (char)c);
    }
    return ST_OK;
}

enum status pattern_translate(struct span source, enum pattern_dialect dialect, struct buf *out,
                              struct error *err)
{
    struct translation in = {.source = source, .dialect = dialect, .out = out, .err = err};
    if (source.len > PATTERN_BYTES_MAX) {
        return error_set(err, ST_TOO_LARGE, "a regular expression of %zu bytes, more than %d",
                         source.len, PATTERN_BYTES_MAX);
    }
    while (in.at < source.len) {
        if (source.ptr[in.at] == '\\') {
            in.at++;
            TRY(put_escape(&in));
        } else if (in.class_depth) {
            TRY(put_in_class(&in));
        } else {
            TRY(put_outside(&in));
        }
    }
    if (in.class_depth) {
        return error_set(err, ST_CORRUPT, "regular expression: ']' is missing");
    }
    if (buf_failed(out)) {
        return out->lacks_memory
                   ? error_set(err, ST_EXHAUSTED, "no memory for a regular expression")
                   : error_set(err, ST_TOO_LARGE, "a regular expression is too long");
    }
    return ST_OK;
}
