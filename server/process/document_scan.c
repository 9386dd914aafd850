/* SPDX-License-Identifier: MIT */
/*
 * The check of a document before cJSON reads it: the whole grammar, in one pass over the text,
 * without recursion, and without memory except for the list of places.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/utf8.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "server/process/document_priv.h"

struct scan {
    struct span text;
    uint8_t *at;
    const uint8_t *end;
    struct buf *places;
    uint32_t value_count, values_max;
    uint32_t depth;
    bool is_object[DOCUMENT_DEPTH_MAX]; /* of each open bracket; otherwise an array */
    bool has_item;                      /* the innermost bracket has a value already */
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* Characters, not bytes, as editors count columns. */
static uint32_t column_of(const uint8_t *line, const uint8_t *at)
{
    uint32_t column = 1;
    for (; line < at; line++) {
        column += (*line & 0xc0) != 0x80;
    }
    return column;
}

/* ": ", " (line 4294967295, column 4294967295)" and the terminator: a long text is cut before the
 * place, never the place. */
#define PLACE_BYTES_MAX 41

enum status document_fail_at(struct span text, size_t offset, const char *path, const char *what,
                             enum status code, struct error *err)
{
    const uint8_t *at = text.ptr + offset, *line = text.ptr, *found;
    uint32_t number = 1;
    while (line < at && (found = memchr(line, '\n', (size_t)(at - line)))) {
        line = found + 1;
        number++;
    }
    size_t before = strlen(path) + PLACE_BYTES_MAX;
    int room = before < ERROR_TEXT_MAX ? (int)(ERROR_TEXT_MAX - before) : 0;
    return error_set(err, code, "%s%s%.*s (line %u, column %u)", path, *path ? ": " : "", room,
                     what, number, column_of(line, at));
}

void document_print_error(struct buf *out, const char *path, const struct error *error)
{
    const char *place = NULL;
    unsigned line, column;
    for (const char *at = error->text; (at = strstr(at, " (line ")); at++) {
        place = at;
    }
    if (place && sscanf(place, " (line %9u, column %9u)", &line, &column) == 2) {
        buf_printf(out, "%s:%u:%u: %.*s", path, line, column, (int)(place - error->text),
                   error->text);
    } else {
        buf_printf(out, "%s: %s", path, error->text);
    }
}

__attribute__((format(printf, 5, 6))) static enum status fail(const struct scan *s,
                                                              const uint8_t *at, enum status code,
                                                              struct error *err, const char *fmt,
                                                              ...)
{
    char what[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return document_fail_at(s->text, (size_t)(at - s->text.ptr), "", what, code, err);
}

/* Sets the error "expected |wanted|, got ..." about the byte that comes next. */
static enum status fail_expected(const struct scan *s, const char *wanted, struct error *err)
{
    if (s->at == s->end) {
        return fail(s, s->at, ST_INVALID, err, "expected %s, got the end of the file", wanted);
    }
    if (json_is_trailing_comma(s->text.ptr, s->at, s->end)) {
        return fail(s, s->at, ST_INVALID, err, JSON_TRAILING_COMMA, *s->at);
    }
    bool is_shown = *s->at > 0x20 && *s->at < 0x7f;
    return fail(s, s->at, ST_INVALID, err,
                is_shown ? "expected %s, got '%c'" : "expected %s, got 0x%02x", wanted, *s->at);
}

/* ---- blanks and comments --------------------------------------------------------------------- */

/* Where the comment that begins at |at| ends; NULL: it does not. */
static const uint8_t *find_comment_end(const uint8_t *at, const uint8_t *end)
{
    if (at[1] == '/') {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        return newline ? newline : end;
    }
    for (at += 2; end - at >= 2; at++) {
        if (at[0] == '*' && at[1] == '/') {
            return at + 2;
        }
    }
    return NULL;
}

/* Line ends stay, so that what is behind keeps its line. */
static enum status blank_comment(struct scan *s, struct error *err)
{
    const uint8_t *end = find_comment_end(s->at, s->end);
    if (!end) {
        return fail(s, s->at, ST_INVALID, err, "the comment has no end");
    }
    for (; s->at < end; s->at++) {
        *s->at = *s->at == '\n' ? '\n' : ' ';
    }
    return ST_OK;
}

static bool is_comment(const struct scan *s)
{
    return s->end - s->at >= 2 && s->at[0] == '/' && (s->at[1] == '/' || s->at[1] == '*');
}

static enum status skip_blanks(struct scan *s, struct error *err)
{
    while (s->at < s->end) {
        if (is_comment(s)) {
            TRY(blank_comment(s, err));
        } else if (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t') {
            s->at++;
        } else {
            break;
        }
    }
    return ST_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool has_nul_escape(const struct json_string *string)
{
    const uint8_t *p = string->raw.ptr, *end = p + string->raw.len;
    while ((p = memchr(p, '\\', (size_t)(end - p)))) {
        if (end - p >= 6 && memcmp(p, "\\u0000", 6) == 0) {
            return true;
        }
        p += 2;
    }
    return false;
}

static enum status scan_string(struct scan *s, struct error *err)
{
    struct json_string string;
    const uint8_t *at = s->at;
    const char *wrong = json_string_scan(&at, s->end, &string);
    if (wrong) {
        return fail(s, at, ST_INVALID, err, "%s", wrong);
    }
    if (has_nul_escape(&string)) {
        return fail(s, s->at, ST_INVALID, err, "expected text without NUL");
    }
    s->at += at - s->at;
    return ST_OK;
}

/* NaN and Infinity, which number_parse_f64() takes, have no place in a document. */
static bool is_number(const struct scan *s)
{
    const uint8_t *digit = s->at + (*s->at == '-');
    return digit < s->end && *digit >= '0' && *digit <= '9';
}

static enum status scan_number(struct scan *s, struct error *err)
{
    const uint8_t *at = s->at;
    double value;
    enum number_result result =
        is_number(s) ? number_parse_f64(&at, s->end, &value) : NUMBER_SYNTAX;
    if (result == NUMBER_RANGE) {
        return fail(s, s->at, ST_INVALID, err, "the number is out of range");
    }
    if (result != NUMBER_OK) {
        return fail(s, s->at, ST_INVALID, err, "malformed number");
    }
    if (at - s->at > DOCUMENT_NUMBER_MAX) {
        return fail(s, s->at, ST_TOO_LARGE, err, "the number has more than %d characters",
                    DOCUMENT_NUMBER_MAX);
    }
    s->at += at - s->at;
    return ST_OK;
}

static enum status scan_word(struct scan *s, const char *word, struct error *err)
{
    size_t len = strlen(word);
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0) {
        return fail(s, s->at, ST_INVALID, err, "expected true, false or null, got another word");
    }
    s->at += len;
    return ST_OK;
}

static enum status open_bracket(struct scan *s, struct error *err)
{
    if (s->depth == DOCUMENT_DEPTH_MAX) {
        return fail(s, s->at, ST_TOO_LARGE, err, "the values are nested deeper than %d",
                    DOCUMENT_DEPTH_MAX);
    }
    s->is_object[s->depth++] = *s->at++ == '{';
    s->has_item = false;
    return ST_OK;
}

static enum status note_place(struct scan *s, struct error *err)
{
    uint32_t place = (uint32_t)(s->at - s->text.ptr);
    if (s->value_count == s->values_max) {
        return fail(s, s->at, ST_TOO_LARGE, err, "the file has more than %u values", s->values_max);
    }
    s->value_count++;
    buf_add(s->places, &place, sizeof(place));
    return ST_OK;
}

/* A whole scalar, or the opening bracket of an object or an array. */
static enum status scan_value(struct scan *s, struct error *err)
{
    if (s->at == s->end) {
        return fail_expected(s, "a value", err);
    }
    TRY(note_place(s, err));
    s->has_item = true;
    switch (*s->at) {
    case '{':
    case '[':
        return open_bracket(s, err);
    case '"':
        return scan_string(s, err);
    case 't':
        return scan_word(s, "true", err);
    case 'f':
        return scan_word(s, "false", err);
    case 'n':
        return scan_word(s, "null", err);
    default:
        return *s->at == '-' || (*s->at >= '0' && *s->at <= '9') ? scan_number(s, err)
                                                                 : fail_expected(s, "a value", err);
    }
}

/* ---- objects and arrays ---------------------------------------------------------------------- */

static enum status scan_key(struct scan *s, struct error *err)
{
    if (s->at == s->end || *s->at != '"') {
        return fail_expected(s, "a key", err);
    }
    TRY(scan_string(s, err));
    TRY(skip_blanks(s, err));
    if (s->at == s->end || *s->at != ':') {
        return fail_expected(s, "':'", err);
    }
    s->at++;
    return skip_blanks(s, err);
}

/* The next item of the innermost bracket, or its end. */
static enum status scan_item(struct scan *s, struct error *err)
{
    bool is_object = s->is_object[s->depth - 1];
    TRY(skip_blanks(s, err));
    if (s->at < s->end && *s->at == (is_object ? '}' : ']')) {
        s->at++;
        s->depth--;
        s->has_item = true;
        return ST_OK;
    }
    if (s->has_item) {
        if (s->at == s->end || *s->at != ',') {
            return fail_expected(s, is_object ? "',' or '}'" : "',' or ']'", err);
        }
        s->at++;
        TRY(skip_blanks(s, err));
    }
    if (is_object) {
        TRY(scan_key(s, err));
    }
    return scan_value(s, err);
}

/* Also in comments. */
static enum status check_characters(const struct scan *s, struct error *err)
{
    const uint8_t *p = s->at;
    while (p < s->end) {
        size_t len = *p < 0x80 ? 1 : utf8_sequence(p, s->end);
        if (*p == '\0' || len == 0) {
            return fail(s, p, ST_INVALID, err, "%s", len ? "NUL in the text" : "invalid UTF-8");
        }
        p += len;
    }
    return ST_OK;
}

enum status document_scan(struct buf *text, uint32_t values_max, struct buf *places,
                          struct error *err)
{
    must(text->len > 0 && text->len <= INT32_MAX);
    struct scan s = {.text = span_of(text->ptr, text->len - 1), .places = places};
    s.at = text->ptr;
    s.end = s.at + s.text.len;
    s.values_max = values_max;
    TRY(check_characters(&s, err));
    TRY(skip_blanks(&s, err));
    TRY(scan_value(&s, err));
    while (s.depth > 0) {
        TRY(scan_item(&s, err));
    }
    TRY(skip_blanks(&s, err));
    return s.at == s.end ? ST_OK : fail_expected(&s, "the end of the file", err);
}
