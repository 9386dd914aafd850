/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/tools_json.h"

#include <string.h>

#include "server/language/tools_priv.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Behind a value. */
static enum tools_json_state behind(const struct tools_json *json)
{
    return json->depth > 0 ? TOOLS_JSON_BEHIND : TOOLS_JSON_DONE;
}

static bool is_in_object(const struct tools_json *json)
{
    return json->objects >> (json->depth - 1) & 1;
}

static enum tools_json_state open(struct tools_json *json, bool is_object)
{
    if (json->depth == TOOLS_JSON_DEPTH_MAX) {
        return TOOLS_JSON_BAD;
    }
    uint64_t bit = (uint64_t)1 << json->depth++;
    json->objects = is_object ? json->objects | bit : json->objects & ~bit;
    return is_object ? TOOLS_JSON_FIRST : TOOLS_JSON_ITEM;
}

static enum tools_json_state close(struct tools_json *json, uint8_t c)
{
    if (c != (is_in_object(json) ? '}' : ']')) {
        return TOOLS_JSON_BAD;
    }
    json->depth--;
    return behind(json);
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum tools_json_state begin_word(struct tools_json *json, const char *rest)
{
    json->word = rest;
    return TOOLS_JSON_WORD;
}

static enum tools_json_state begin_string(struct tools_json *json, bool is_key)
{
    json->is_key = is_key;
    json->is_latter = false;
    return TOOLS_JSON_STRING;
}

static enum tools_json_state begin_value(struct tools_json *json, uint8_t c)
{
    switch (c) {
    case '{':
    case '[':
        return open(json, c == '{');
    case '"':
        return begin_string(json, false);
    case 't':
        return begin_word(json, "rue");
    case 'f':
        return begin_word(json, "alse");
    case 'n':
        return begin_word(json, "ull");
    case '-':
        return TOOLS_JSON_MINUS;
    case '0':
        return TOOLS_JSON_ZERO;
    default:
        return is_digit(c) ? TOOLS_JSON_WHOLE : TOOLS_JSON_BAD;
    }
}

static enum tools_json_state take_word(struct tools_json *json, uint8_t c)
{
    if (c != (uint8_t)*json->word) {
        return TOOLS_JSON_BAD;
    }
    return *++json->word ? TOOLS_JSON_WORD : behind(json);
}

/* ---- strings --------------------------------------------------------------------------------- */

static enum tools_json_state take_character(struct tools_json *json, uint8_t c)
{
    if (c == '"') {
        return json->is_key ? TOOLS_JSON_COLON : behind(json);
    }
    return c == '\\' ? TOOLS_JSON_ESCAPE : c < 0x20 ? TOOLS_JSON_BAD : TOOLS_JSON_STRING;
}

static enum tools_json_state begin_code(struct tools_json *json)
{
    json->digits = json->code = 0;
    return TOOLS_JSON_HEX;
}

static enum tools_json_state take_escape(struct tools_json *json, uint8_t c)
{
    if (c == 'u') {
        return begin_code(json);
    }
    return c && strchr("\"\\/bfnrt", c) ? TOOLS_JSON_STRING : TOOLS_JSON_BAD;
}

static enum tools_json_state end_code(struct tools_json *json)
{
    bool is_former = json->code >= 0xd800 && json->code < 0xdc00;
    bool is_latter = json->code >= 0xdc00 && json->code < 0xe000;
    if (is_latter != json->is_latter) {
        return TOOLS_JSON_BAD;
    }
    json->is_latter = is_former;
    return is_former ? TOOLS_JSON_HALF : TOOLS_JSON_STRING;
}

static enum tools_json_state take_hex(struct tools_json *json, uint8_t c)
{
    uint32_t digit;
    if (is_digit(c)) {
        digit = c - '0';
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
        digit = (c | 0x20) - 'a' + 10u;
    } else {
        return TOOLS_JSON_BAD;
    }
    json->code = json->code << 4 | digit;
    return ++json->digits == 4 ? end_code(json) : TOOLS_JSON_HEX;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool may_end(enum tools_json_state state)
{
    return state == TOOLS_JSON_ZERO || state == TOOLS_JSON_WHOLE || state == TOOLS_JSON_FRACTION ||
           state == TOOLS_JSON_EXPONENT;
}

/* BEHIND or DONE: |c| is not the number's. */
static enum tools_json_state take_number(const struct tools_json *json, uint8_t c)
{
    bool is_e = c == 'e' || c == 'E';
    switch (json->state) {
    case TOOLS_JSON_MINUS:
        return c == '0' ? TOOLS_JSON_ZERO : is_digit(c) ? TOOLS_JSON_WHOLE : TOOLS_JSON_BAD;
    case TOOLS_JSON_POINT:
        return is_digit(c) ? TOOLS_JSON_FRACTION : TOOLS_JSON_BAD;
    case TOOLS_JSON_E:
        return c == '+' || c == '-' ? TOOLS_JSON_SIGN
               : is_digit(c)        ? TOOLS_JSON_EXPONENT
                                    : TOOLS_JSON_BAD;
    case TOOLS_JSON_SIGN:
        return is_digit(c) ? TOOLS_JSON_EXPONENT : TOOLS_JSON_BAD;
    case TOOLS_JSON_ZERO:
    case TOOLS_JSON_WHOLE:
        return is_digit(c) && json->state == TOOLS_JSON_WHOLE ? TOOLS_JSON_WHOLE
               : c == '.'                                     ? TOOLS_JSON_POINT
               : is_e                                         ? TOOLS_JSON_E
                                                              : behind(json);
    case TOOLS_JSON_FRACTION:
        return is_digit(c) ? TOOLS_JSON_FRACTION : is_e ? TOOLS_JSON_E : behind(json);
    default:
        return is_digit(c) ? TOOLS_JSON_EXPONENT : behind(json);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Between values; |c| is no blank. */
static enum tools_json_state take_mark(struct tools_json *json, uint8_t c)
{
    bool is_end = c == '}' || c == ']';
    switch (json->state) {
    case TOOLS_JSON_VALUE:
        return begin_value(json, c);
    case TOOLS_JSON_ITEM:
        return is_end ? close(json, c) : begin_value(json, c);
    case TOOLS_JSON_FIRST:
    case TOOLS_JSON_KEY:
        return c == '"'                                    ? begin_string(json, true)
               : is_end && json->state == TOOLS_JSON_FIRST ? close(json, c)
                                                           : TOOLS_JSON_BAD;
    case TOOLS_JSON_COLON:
        return c == ':' ? TOOLS_JSON_VALUE : TOOLS_JSON_BAD;
    default: /* behind a value */
        return c != ',' ? close(json, c) : is_in_object(json) ? TOOLS_JSON_KEY : TOOLS_JSON_VALUE;
    }
}

static enum tools_json_state take_text(struct tools_json *json, uint8_t c)
{
    switch (json->state) {
    case TOOLS_JSON_STRING:
        return take_character(json, c);
    case TOOLS_JSON_ESCAPE:
        return take_escape(json, c);
    case TOOLS_JSON_HEX:
        return take_hex(json, c);
    case TOOLS_JSON_HALF:
        return c == '\\' ? TOOLS_JSON_LATTER : TOOLS_JSON_BAD;
    case TOOLS_JSON_LATTER:
        return c == 'u' ? begin_code(json) : TOOLS_JSON_BAD;
    default:
        return take_word(json, c);
    }
}

/* False: |c| comes behind the value, or makes it none. */
static bool take(struct tools_json *json, uint8_t c)
{
    if (json->state >= TOOLS_JSON_MINUS) {
        json->state = take_number(json, c);
        if (json->state != TOOLS_JSON_BEHIND) {
            return json->state < TOOLS_JSON_DONE;
        }
    }
    if (json->state <= TOOLS_JSON_BEHIND) {
        json->state = tools_is_blank(c) ? json->state : take_mark(json, c);
    } else {
        json->state = take_text(json, c);
    }
    return json->state != TOOLS_JSON_BAD;
}

size_t tools_json_read(struct tools_json *json, struct span text)
{
    size_t at = 0;
    while (at < text.len && json->state < TOOLS_JSON_DONE && take(json, text.ptr[at])) {
        at++;
    }
    return at;
}

void tools_json_end(struct tools_json *json)
{
    json->state = json->depth == 0 && may_end(json->state) ? TOOLS_JSON_DONE : json->state;
}
