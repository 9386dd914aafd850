/* SPDX-License-Identifier: MIT */
/*
 * From the source of a template to lexemes. White space around tags is removed here, by the rules
 * of Jinja's lexer with trim_blocks and lstrip_blocks.
 */
#include "config.h"

#include <string.h>

#include "base/array.h"
#include "protocol/json.h"
#include "server/text/template/pytext.h"
#include "server/text/template/template_priv.h"

#define BRACKETS_MAX 256

struct lexer {
    const uint8_t *start, *at, *end;
    const uint8_t *counted; /* the place that |line| belongs to */
    const uint8_t *line_start;
    uint32_t line;
    struct arena *arena;
    struct lexemes *lexemes;
    struct error *err;
    bool is_line_start; /* the last match ended with a newline */
    char brackets[BRACKETS_MAX];
    size_t bracket_count;
};

static struct position position_of(struct lexer *lexer, const uint8_t *at)
{
    for (; lexer->counted < at; lexer->counted++) {
        if (*lexer->counted == '\n') {
            lexer->line++;
            lexer->line_start = lexer->counted + 1;
        }
    }
    return (struct position){lexer->line, (uint32_t)(at - lexer->line_start) + 1};
}

static enum status refuse(struct lexer *lexer, const uint8_t *at, enum status code,
                          const char *what)
{
    struct position position = position_of(lexer, at);
    return error_set(lexer->err, code, "line %u, column %u: %s", position.line, position.column,
                     what);
}

static enum status add(struct lexer *lexer, enum lexeme_kind kind, uint16_t op, struct span text)
{
    struct lexemes *lexemes = lexer->lexemes;
    if (!ARENA_ROOM(lexer->arena, lexemes->items, lexemes->capacity, lexemes->count + 1)) {
        return arena_fail(lexer->arena, "the tokens of a template", lexer->err);
    }
    lexemes->items[lexemes->count++] = (struct lexeme){
        .kind = kind, .op = op, .position = position_of(lexer, text.ptr), .text = text};
    return ST_OK;
}

static bool is_at(const struct lexer *lexer, const uint8_t *at, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(lexer->end - at) >= len && memcmp(at, text, len) == 0;
}

static const uint8_t *skip_space(const struct lexer *lexer, const uint8_t *at)
{
    size_t len;
    while (at < lexer->end && (len = pytext_space(at, lexer->end)) > 0) {
        at += len;
    }
    return at;
}

/* ---- text between tags ----------------------------------------------------------------------- */

/* Removes white space from the end of |text|, which stands before a tag with |sign|. */
static struct span strip_before(const struct lexer *lexer, struct span text, char sign,
                                bool is_variable)
{
    if (sign == '-') {
        return pytext_strip(text, NULL, false, true);
    }
    if (sign == '+' || is_variable) {
        return text;
    }
    size_t line = text.len;
    while (line > 0 && text.ptr[line - 1] != '\n') {
        line--;
    }
    if (line == 0 && !lexer->is_line_start) {
        return text;
    }
    bool is_blank =
        pytext_strip(span_of(text.ptr + line, text.len - line), NULL, true, false).len == 0;
    return is_blank ? span_of(text.ptr, line) : text;
}

static enum status add_text(struct lexer *lexer, struct span text)
{
    return text.len ? add(lexer, LEXEME_DATA, 0, text) : ST_OK;
}

static char sign_at(const struct lexer *lexer, const uint8_t *at)
{
    return at < lexer->end && (*at == '-' || *at == '+') ? (char)*at : 0;
}

/* Is |at| the end of a block tag or comment with the closing |end|? Moves behind it and what it
 * swallows. */
static bool take_end(struct lexer *lexer, const char *end, bool may_plus, bool may_trim)
{
    const uint8_t *at = lexer->at;
    char sign = sign_at(lexer, at);
    if (sign == '+' && !may_plus) {
        return false;
    }
    at += sign != 0;
    if (!is_at(lexer, at, end)) {
        return false;
    }
    at += 2;
    if (sign == '-') {
        at = skip_space(lexer, at);
    } else if (sign == 0 && may_trim && at < lexer->end && *at == '\n') {
        at++;
    }
    lexer->at = at;
    lexer->is_line_start = at[-1] == '\n';
    return true;
}

static enum status take_comment(struct lexer *lexer, const uint8_t *open)
{
    for (; lexer->at < lexer->end; lexer->at++) {
        if (take_end(lexer, "#}", true, true)) {
            return ST_OK;
        }
    }
    return refuse(lexer, open, ST_INVALID, "a comment is not closed");
}

/* A word between blanks, at |at| behind "{%" and its sign; returns the place behind it or NULL. */
static const uint8_t *word_at(const struct lexer *lexer, const uint8_t *at, const char *word)
{
    at = skip_space(lexer, at);
    if (!is_at(lexer, at, word)) {
        return NULL;
    }
    return skip_space(lexer, at + strlen(word));
}

/* Takes the text of a raw block; lexer->at is behind its first tag. */
static enum status take_raw(struct lexer *lexer, const uint8_t *open)
{
    const uint8_t *text = lexer->at;
    for (; lexer->at < lexer->end; lexer->at++) {
        if (!is_at(lexer, lexer->at, "{%")) {
            continue;
        }
        const uint8_t *tag = lexer->at;
        char sign = sign_at(lexer, tag + 2);
        const uint8_t *behind = word_at(lexer, tag + 2 + (sign != 0), "endraw");
        if (!behind) {
            continue;
        }
        struct span data = strip_before(lexer, span_of(text, (size_t)(tag - text)), sign, false);
        lexer->at = behind;
        if (take_end(lexer, "%}", true, true)) {
            return add_text(lexer, data);
        }
        lexer->at = tag;
    }
    return refuse(lexer, open, ST_INVALID, "a raw block is not closed");
}

/* "{% raw %}": does it begin here? */
static bool take_raw_begin(struct lexer *lexer, const uint8_t *tag, char sign)
{
    const uint8_t *behind = word_at(lexer, tag + 2 + (sign != 0), "raw");
    if (!behind) {
        return false;
    }
    lexer->at = behind;
    return take_end(lexer, "%}", false, false);
}

/* ---- lexemes of expressions ------------------------------------------------------------------ */

static bool is_name_byte(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           (byte >= '0' && byte <= '9');
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static const uint8_t *skip_digits(const struct lexer *lexer, const uint8_t *at)
{
    while (at < lexer->end &&
           (is_digit(*at) || (*at == '_' && at + 1 < lexer->end && is_digit(at[1])))) {
        at++;
    }
    return at;
}

static const uint8_t *skip_exponent(const struct lexer *lexer, const uint8_t *at)
{
    const uint8_t *digits = at + 1;
    if (at >= lexer->end || (*at != 'e' && *at != 'E')) {
        return at;
    }
    digits += sign_at(lexer, digits) != 0;
    return digits < lexer->end && is_digit(*digits) ? skip_digits(lexer, digits) : at;
}

static enum status take_number(struct lexer *lexer)
{
    const uint8_t *first = lexer->at, *at = skip_digits(lexer, first), *whole = at;
    const struct lexemes *lexemes = lexer->lexemes;
    bool is_item = lexemes->count > 0 && lexemes->items[lexemes->count - 1].op == '.';
    if (*first == '0' && at < lexer->end && at == first + 1 && strchr("xXoObB", *at)) {
        return refuse(lexer, first, ST_UNSUPPORTED, "numbers are written in decimal");
    }
    if (!is_item) {
        if (at + 1 < lexer->end && *at == '.' && is_digit(at[1])) {
            at = skip_digits(lexer, at + 1);
        }
        at = skip_exponent(lexer, at);
    }
    lexer->at = at;
    return add(lexer, at == whole ? LEXEME_INT : LEXEME_FLOAT, 0,
               span_of(first, (size_t)(at - first)));
}

static enum status take_string(struct lexer *lexer)
{
    const uint8_t *open = lexer->at;
    for (lexer->at++; lexer->at < lexer->end; lexer->at++) {
        if (*lexer->at == '\\' && lexer->at + 1 < lexer->end) {
            lexer->at++;
        } else if (*lexer->at == *open) {
            lexer->at++;
            return add(lexer, LEXEME_STRING, 0, span_of(open + 1, (size_t)(lexer->at - open) - 2));
        }
    }
    return refuse(lexer, open, ST_INVALID, "a string is not closed");
}

/* Keeps the open brackets, so that "}}" closes two maps and not the tag. */
static enum status take_bracket(struct lexer *lexer, char bracket)
{
    static const char open[] = "([{", closed[] = ")]}";
    if (strchr(open, bracket)) {
        if (lexer->bracket_count == BRACKETS_MAX) {
            return refuse(lexer, lexer->at, ST_TOO_LARGE, "brackets are nested too deep");
        }
        lexer->brackets[lexer->bracket_count++] = closed[strchr(open, bracket) - open];
        return ST_OK;
    }
    if (lexer->bracket_count == 0 || lexer->brackets[lexer->bracket_count - 1] != bracket) {
        return refuse(lexer, lexer->at, ST_INVALID, "a bracket is closed that is not open");
    }
    lexer->bracket_count--;
    return ST_OK;
}

static enum status take_operator(struct lexer *lexer)
{
    static const char *const twos[] = {"==", "!=", ">=", "<=", "//", "**"};
    const uint8_t *at = lexer->at;
    for (size_t i = 0; i < sizeof(twos) / sizeof(twos[0]); i++) {
        if (is_at(lexer, at, twos[i])) {
            lexer->at += 2;
            return add(lexer, LEXEME_OPERATOR, OP2(at[0], at[1]), span_of(at, 2));
        }
    }
    if (*at == 0 || !strchr("+-/*%~[](){}><=.:|,;", *at)) {
        return refuse(lexer, at, ST_INVALID, "a character that belongs to no expression");
    }
    if (strchr("([{)]}", *at)) {
        TRY(take_bracket(lexer, (char)*at));
    }
    lexer->at++;
    return add(lexer, LEXEME_OPERATOR, *at, span_of(at, 1));
}

static enum status take_lexeme(struct lexer *lexer)
{
    const uint8_t *first = lexer->at;
    if (is_digit(*first)) {
        return take_number(lexer);
    }
    if (is_name_byte(*first)) {
        while (lexer->at < lexer->end && is_name_byte(*lexer->at)) {
            lexer->at++;
        }
        return add(lexer, LEXEME_NAME, 0, span_of(first, (size_t)(lexer->at - first)));
    }
    if (*first == '"' || *first == '\'') {
        return take_string(lexer);
    }
    if (*first > 0x7f) {
        return refuse(lexer, first, ST_UNSUPPORTED, "a name with letters that are not ASCII");
    }
    return take_operator(lexer);
}

/* The inside of a tag, up to and with its end. */
static enum status take_inside(struct lexer *lexer, const uint8_t *open, bool is_variable)
{
    lexer->bracket_count = 0;
    while (true) {
        const uint8_t *end = lexer->at = skip_space(lexer, lexer->at);
        if (lexer->at == lexer->end) {
            return refuse(lexer, open, ST_INVALID, "a tag is not closed");
        }
        if (lexer->bracket_count == 0 &&
            take_end(lexer, is_variable ? "}}" : "%}", !is_variable, !is_variable)) {
            return add(lexer, is_variable ? LEXEME_VARIABLE_END : LEXEME_BLOCK_END, 0,
                       span_of(end, 2));
        }
        TRY(take_lexeme(lexer));
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool is_tag(const struct lexer *lexer, const uint8_t *at)
{
    return *at == '{' && at + 1 < lexer->end && (at[1] == '{' || at[1] == '%' || at[1] == '#');
}

/* The text up to the next tag, and that tag. */
static enum status take_piece(struct lexer *lexer)
{
    const uint8_t *text = lexer->at, *tag = text;
    while (tag < lexer->end && !is_tag(lexer, tag)) {
        tag++;
    }
    if (tag == lexer->end) {
        lexer->at = tag;
        return add_text(lexer, span_of(text, (size_t)(tag - text)));
    }
    char sign = sign_at(lexer, tag + 2);
    bool is_variable = tag[1] == '{';
    TRY(add_text(lexer,
                 strip_before(lexer, span_of(text, (size_t)(tag - text)), sign, is_variable)));
    if (tag[1] == '%' && take_raw_begin(lexer, tag, sign)) {
        return take_raw(lexer, tag);
    }
    lexer->at = tag + 2 + (sign != 0);
    lexer->is_line_start = false;
    if (tag[1] == '#') {
        return take_comment(lexer, tag);
    }
    TRY(add(lexer, is_variable ? LEXEME_VARIABLE_BEGIN : LEXEME_BLOCK_BEGIN, 0, span_of(tag, 2)));
    return take_inside(lexer, tag, is_variable);
}

/* Every newline becomes "\n"; one at the end goes. */
static struct span normalise(struct span source, uint8_t *to)
{
    size_t len = 0;
    for (size_t i = 0; i < source.len; i++) {
        if (source.ptr[i] == '\r') {
            to[len++] = '\n';
            i += i + 1 < source.len && source.ptr[i + 1] == '\n';
        } else {
            to[len++] = source.ptr[i];
        }
    }
    len -= len > 0 && to[len - 1] == '\n';
    return span_of(to, len);
}

enum status template_lex(struct span source, struct arena *arena, struct lexemes *out,
                         struct error *err)
{
    if (source.len > TEMPLATE_SOURCE_MAX) {
        return error_set(err, ST_TOO_LARGE, "a template of %zu bytes, at most %u are read",
                         source.len, TEMPLATE_SOURCE_MAX);
    }
    if (!json_is_utf8(source)) {
        return error_set(err, ST_INVALID, "the template is not UTF-8");
    }
    uint8_t *copy = arena_alloc(arena, source.len + 1);
    if (!copy) {
        return arena_fail(arena, "the source of a template", err);
    }
    struct span text = normalise(source, copy);
    struct lexer lexer = {.start = text.ptr,
                          .at = text.ptr,
                          .end = text.ptr + text.len,
                          .counted = text.ptr,
                          .line_start = text.ptr,
                          .line = 1,
                          .arena = arena,
                          .lexemes = out,
                          .err = err,
                          .is_line_start = true};
    *out = (struct lexemes){0};
    while (lexer.at < lexer.end) {
        TRY(take_piece(&lexer));
    }
    return add(&lexer, LEXEME_END, 0, span_of(lexer.end, 0));
}
