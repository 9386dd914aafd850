/* SPDX-License-Identifier: MIT */
/* Strings and numbers of templates, as Python writes them. */
#include "config.h"

#include <string.h>

#include "protocol/number.h"
#include "server/text/template/template_parse_priv.h"

static void add_code(uint8_t *to, size_t *len, uint32_t code)
{
    if (code < 0x80) {
        to[(*len)++] = (uint8_t)code;
        return;
    }
    int rest = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t marks[] = {0, 0xc0, 0xe0, 0xf0};
    to[(*len)++] = (uint8_t)(marks[rest] | code >> (6 * rest));
    while (rest-- > 0) {
        to[(*len)++] = (uint8_t)(0x80 | (code >> (6 * rest) & 0x3f));
    }
}

/* Reads |count| digits of base 16 at |at|; false: there are fewer. */
static bool read_hex(struct span text, size_t at, size_t count, uint32_t *code)
{
    *code = 0;
    if (!in_range(at, count, text.len)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        static const char digits[] = "0123456789abcdef";
        uint8_t byte = text.ptr[at + i];
        const char *digit = byte ? strchr(digits, byte | 0x20) : NULL;
        if (!digit || (byte < '0')) {
            return false;
        }
        *code = *code << 4 | (uint32_t)(digit - digits);
    }
    return *code <= 0x10ffff && (*code < 0xd800 || *code > 0xdfff);
}

/* The escape behind a backslash at |at|; returns the bytes that it takes, 0: malformed. */
static size_t decode_escape(struct span text, size_t at, uint8_t *to, size_t *len)
{
    static const char letters[] = "\\'\"abfnrtv", codes[] = "\\'\"\a\b\f\n\r\t\v";
    uint8_t byte = text.ptr[at];
    const char *letter = byte ? strchr(letters, byte) : NULL;
    uint32_t code = 0;
    size_t digits = byte == 'x' ? 2 : byte == 'u' ? 4 : byte == 'U' ? 8 : 0;
    if (letter) {
        to[(*len)++] = (uint8_t)codes[letter - letters];
        return 1;
    }
    if (byte == '\n') {
        return 1;
    }
    if (digits) {
        if (!read_hex(text, at + 1, digits, &code)) {
            return 0;
        }
        add_code(to, len, code);
        return 1 + digits;
    }
    if (byte == 'N') {
        return 0;
    }
    size_t count = 0;
    while (count < 3 && at + count < text.len && (text.ptr[at + count] & 0xf8) == '0') {
        code = code * 8 + (text.ptr[at + count] - (uint32_t)'0');
        count++;
    }
    if (count) {
        add_code(to, len, code);
        return count;
    }
    to[(*len)++] = '\\';
    to[(*len)++] = byte;
    return 1;
}

/* Appends the text of one string lexeme to |to|, which has room. */
static bool decode_string(struct parser *parser, const struct lexeme *lexeme, uint8_t *to,
                          size_t *len)
{
    for (size_t i = 0; i < lexeme->text.len; i++) {
        if (lexeme->text.ptr[i] != '\\') {
            to[(*len)++] = lexeme->text.ptr[i];
            continue;
        }
        size_t taken = i + 1 < lexeme->text.len ? decode_escape(lexeme->text, i + 1, to, len) : 0;
        if (taken == 0) {
            parser_refuse(parser, lexeme->position, ST_UNSUPPORTED,
                          "an escape of this string is not understood");
            return false;
        }
        i += taken;
    }
    return true;
}

/* Strings that stand side by side are one. */
struct node *parser_string(struct parser *parser)
{
    struct node *node = parser_node(parser, NODE_CONSTANT, parser->at->position);
    size_t size = 1, len = 0;
    for (const struct lexeme *at = parser->at; at->kind == LEXEME_STRING; at++) {
        size += at->text.len;
    }
    uint8_t *text = node ? arena_alloc(parser->arena, size) : NULL;
    if (!text) {
        return parser_node(parser, NODE_CONSTANT, parser->at->position); /* fails again */
    }
    for (; parser->at->kind == LEXEME_STRING; parser->at++) {
        if (!decode_string(parser, parser->at, text, &len)) {
            return NULL;
        }
    }
    node->constant = value_string(span_of(text, len));
    return node;
}

struct node *parser_number(struct parser *parser)
{
    const struct lexeme *lexeme = parser->at++;
    struct node *node = parser_node(parser, NODE_CONSTANT, lexeme->position);
    uint8_t text[64];
    size_t len = 0;
    if (!node) {
        return NULL;
    }
    for (size_t i = 0; i < lexeme->text.len && len < sizeof(text); i++) {
        if (lexeme->text.ptr[i] != '_') {
            text[len++] = lexeme->text.ptr[i];
        }
    }
    size_t zeros = 0;
    while (zeros + 1 < len && text[zeros] == '0' && text[zeros + 1] >= '0' &&
           text[zeros + 1] <= '9') {
        zeros++;
    }
    const uint8_t *at = text + zeros;
    bool is_read = len < sizeof(text);
    if (lexeme->kind == LEXEME_INT) {
        node->constant = value_int(0);
        is_read =
            is_read && number_parse_i64(&at, text + len, &node->constant.integer) == NUMBER_OK;
    } else {
        node->constant = value_double(0);
        is_read = is_read && number_parse_f64(&at, text + len, &node->constant.number) == NUMBER_OK;
    }
    if (!is_read) {
        return parser_refuse(parser, lexeme->position, ST_UNSUPPORTED,
                             "the number %.*s is too large", SPAN_SHORT(lexeme->text));
    }
    return node;
}
