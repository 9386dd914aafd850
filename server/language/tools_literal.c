/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/tools_literal.h"

#include <string.h>

#include "protocol/json.h"
#include "server/language/tools_priv.h"

#define DEPTH_MAX 32

static void skip_blanks(struct tools_literal *in)
{
    while (in->at < in->end && tools_is_blank(*in->at)) {
        in->at++;
    }
}

static bool is_next(const struct tools_literal *in, struct span text)
{
    return (size_t)(in->end - in->at) >= text.len && memcmp(in->at, text.ptr, text.len) == 0;
}

bool tools_literal_take(struct tools_literal *in, const char *text)
{
    struct span wanted = span_str(text);
    skip_blanks(in);
    bool is_there = is_next(in, wanted);
    in->at += is_there ? wanted.len : 0;
    return is_there;
}

bool tools_literal_is_of_name(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c >= 0x80;
}

static struct span name(struct tools_literal *in)
{
    skip_blanks(in);
    const uint8_t *begin = in->at;
    while (in->at < in->end && tools_literal_is_of_name(*in->at)) {
        in->at++;
    }
    return span_of(begin, (size_t)(in->at - begin));
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Between marks, as it stands. */
static bool quoted(struct tools_literal *in)
{
    const uint8_t *begin = in->at + in->quote.len;
    const uint8_t *close = memmem(begin, (size_t)(in->end - begin), in->quote.ptr, in->quote.len);
    if (!close) {
        return false;
    }
    json_print_string(in->out, span_of(begin, (size_t)(close - begin)));
    in->at = close + in->quote.len;
    return true;
}

/* What the escape at |*at| stands for; false: it stands for itself. */
static bool escape_of(uint8_t c, char *out)
{
    static const char names[] = "nrtbf\\'\"/0", values[] = "\n\r\t\b\f\\'\"/\0";
    const char *found = memchr(names, c, sizeof(names) - 1);
    if (found) {
        *out = values[found - names];
    }
    return found != NULL;
}

/* The number in \uXXXX at |at|, of |left| bytes; UINT32_MAX: there is none. */
static uint32_t code_at(const uint8_t *at, ptrdiff_t left)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    uint32_t code = left >= 6 && at[0] == '\\' && at[1] == 'u' ? 0 : UINT32_MAX;
    for (size_t i = 2; code != UINT32_MAX && i < 6; i++) {
        const char *digit = memchr(digits, at[i], sizeof(digits) - 1);
        code = digit ? code << 4 | (uint32_t)((digit - digits) & 15) : UINT32_MAX;
    }
    return code;
}

/* The bytes of a character that is written as \uXXXX, which is JSON's, too; 0: there is none. One
 * surrogate alone is no character. */
static size_t unicode_escape(const struct tools_literal *in)
{
    ptrdiff_t left = in->end - in->at;
    uint32_t code = code_at(in->at, left);
    if (code == UINT32_MAX || code >> 11 != 0xd800 >> 11) {
        return code == UINT32_MAX ? 0 : 6;
    }
    bool is_pair = code < 0xdc00 && code_at(in->at + 6, left - 6) >> 10 == 0xdc00 >> 10;
    return is_pair ? 12 : 0;
}

static void put_json(struct tools_literal *in, struct span text)
{
    size_t before = in->out->len;
    json_print_string(in->out, text);
    if (buf_failed(in->out)) {
        return;
    }
    size_t len = in->out->len - before - 2; /* without its quotes */
    memmove(in->out->ptr + before, in->out->ptr + before + 1, len);
    in->out->len = before + len;
}

/* 'it''s', "a\n", with Python's escapes. */
static bool python_text(struct tools_literal *in)
{
    uint8_t quote = *in->at++;
    buf_add_char(in->out, '"');
    while (in->at < in->end && *in->at != quote) {
        char c = 0;
        size_t escape = unicode_escape(in);
        const uint8_t *begin = in->at;
        if (*in->at != '\\') {
            while (in->at < in->end && *in->at != quote && *in->at != '\\') {
                in->at++;
            }
            put_json(in, span_of(begin, (size_t)(in->at - begin)));
        } else if (escape > 0) {
            buf_add(in->out, in->at, escape);
            in->at += escape;
        } else if (in->at + 1 < in->end && escape_of(in->at[1], &c)) {
            put_json(in, span_of(&c, 1));
            in->at += 2;
        } else {
            put_json(in, span_of(begin, 1));
            in->at++;
        }
    }
    bool is_closed = in->at < in->end;
    in->at += is_closed;
    buf_add_char(in->out, '"');
    return is_closed;
}

static bool text_value(struct tools_literal *in)
{
    if (in->quote.len > 0 && is_next(in, in->quote)) {
        return quoted(in);
    }
    return (*in->at == '"' || *in->at == '\'') && python_text(in);
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool word_value(struct tools_literal *in)
{
    static const struct {
        const char *word, *json;
    } words[] = {{"True", "true"}, {"False", "false"}, {"None", "null"},
                 {"true", "true"}, {"false", "false"}, {"null", "null"}};
    struct span word = name(in);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (span_is(word, words[i].word)) {
            buf_add_str(in->out, words[i].json);
            return true;
        }
    }
    return false;
}

static bool number_value(struct tools_literal *in)
{
    struct json json;
    struct error ignored;
    double value;
    const uint8_t *begin = in->at;
    while (in->at < in->end && memchr("+-.0123456789eE", *in->at, 15)) {
        in->at++;
    }
    struct span text = span_of(begin, (size_t)(in->at - begin));
    json_init(&json, text);
    bool is_number = json_peek(&json) == JSON_NUMBER &&
                     json_read_f64(&json, &value, &ignored) == ST_OK &&
                     json_end(&json, &ignored) == ST_OK;
    if (is_number) {
        buf_add(in->out, text.ptr, text.len);
    }
    return is_number;
}

static bool value(struct tools_literal *in);

static bool list_value(struct tools_literal *in)
{
    in->at++;
    buf_add_char(in->out, '[');
    for (bool is_first = true; !tools_literal_take(in, "]"); is_first = false) {
        if (!is_first) {
            if (!tools_literal_take(in, ",")) {
                return false;
            }
            if (tools_literal_take(in, "]")) {
                break;
            }
            buf_add_char(in->out, ',');
        }
        if (!value(in)) {
            return false;
        }
    }
    buf_add_char(in->out, ']');
    return true;
}

/* A key of a dictionary: a text, or, with marks of their own for texts, a name. */
static bool key(struct tools_literal *in, bool may_be_bare)
{
    skip_blanks(in);
    if (in->at < in->end && text_value(in)) {
        return true;
    }
    struct span bare = may_be_bare ? name(in) : span_str("");
    json_print_string(in->out, bare);
    return bare.len > 0;
}

static bool member(struct tools_literal *in, const char *mark, bool may_be_bare)
{
    if (!key(in, may_be_bare) || !tools_literal_take(in, mark)) {
        return false;
    }
    buf_add_char(in->out, ':');
    return value(in);
}

bool tools_literal_member(struct tools_literal *in, const char *mark)
{
    return member(in, mark, true);
}

/* Behind its brace. */
static bool members(struct tools_literal *in)
{
    buf_add_char(in->out, '{');
    for (bool is_first = true; !tools_literal_take(in, "}"); is_first = false) {
        if (!is_first) {
            if (!tools_literal_take(in, ",")) {
                return false;
            }
            if (tools_literal_take(in, "}")) {
                break;
            }
            buf_add_char(in->out, ',');
        }
        if (!member(in, ":", in->quote.len > 0)) {
            return false;
        }
    }
    buf_add_char(in->out, '}');
    return true;
}

static bool value(struct tools_literal *in)
{
    skip_blanks(in);
    if (in->at == in->end || in->depth == DEPTH_MAX) {
        return false;
    }
    in->depth++;
    uint8_t c = *in->at;
    bool is_read;
    if (c == '[') {
        is_read = list_value(in);
    } else if (c == '{') {
        in->at++;
        is_read = members(in);
    } else if (c == '-' || c == '+' || (c >= '0' && c <= '9')) {
        is_read = number_value(in);
    } else {
        is_read = text_value(in) || word_value(in);
    }
    in->depth--;
    return is_read;
}
