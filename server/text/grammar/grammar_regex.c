/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions: literals, ".", classes, escapes, groups, "|", quantifiers, anchors and
 * look-ahead. A quantifier may be lazy: the same texts match. Look-behind, back references and word
 * borders are refused.
 */
#include "config.h"

#include <string.h>

#include "base/utf8.h"
#include "server/text/grammar/grammar_priv.h"

#define CODE_MAX 0x10ffff
#define RANGES_MAX 256

struct range {
    uint32_t lo, hi;
};

struct class
{
    struct range ranges[RANGES_MAX];
    size_t count;
};

struct regex {
    struct grammar_builder *builder;
    struct span source;
    size_t at;
    bool in_json;
    bool looks; /* grammar_meet() is needed: it has anchors that do not stand at its ends alone, or
                   look-ahead */
    int depth;
    int look_depth;
};

static const struct part *codes(struct grammar_builder *builder, uint32_t lo, uint32_t hi,
                                bool in_json)
{
    return in_json ? grammar_json_codes(builder, lo, hi) : grammar_codes(builder, lo, hi);
}

/* ---- characters ------------------------------------------------------------------------------ */

uint32_t grammar_code(struct span source, size_t *at)
{
    const uint8_t *from = source.ptr + *at;
    size_t len = *from > 0x7f ? utf8_sequence(from, source.ptr + source.len) : 1;
    len = len ? len : 1; /* never: sources are UTF-8 */
    *at += len;
    return len == 1 ? *from : utf8_code(from, len);
}

static bool add_range(struct grammar_builder *builder, struct class *class, uint32_t lo,
                      uint32_t hi)
{
    if (class->count == RANGES_MAX) {
        grammar_refuse(builder, ST_TOO_LARGE, "a class of more than %d ranges", RANGES_MAX);
        return false;
    }
    class->ranges[class->count++] = (struct range){lo, hi};
    return true;
}

static void sort_ranges(struct class *class)
{
    for (size_t i = 1; i < class->count; i++) {
        struct range one = class->ranges[i];
        size_t at = i;
        for (; at > 0 && class->ranges[at - 1].lo > one.lo; at--) {
            class->ranges[at] = class->ranges[at - 1];
        }
        class->ranges[at] = one;
    }
}

/* The ranges that |class| has not. */
static bool invert(struct grammar_builder *builder, struct class *class)
{
    struct class out = {.count = 0};
    uint32_t next = 0;
    sort_ranges(class);
    for (size_t i = 0; i < class->count; i++) {
        if (class->ranges[i].lo > next &&
            !add_range(builder, &out, next, class->ranges[i].lo - 1)) {
            return false;
        }
        next = class->ranges[i].hi >= next ? class->ranges[i].hi + 1 : next;
    }
    if (next <= CODE_MAX && !add_range(builder, &out, next, CODE_MAX)) {
        return false;
    }
    *class = out;
    return true;
}

static const struct part *class_part(struct grammar_builder *builder, const struct class *class,
                                     bool in_json)
{
    const struct part *out = grammar_never(builder);
    for (size_t i = 0; i < class->count && out; i++) {
        out = grammar_or(builder, out,
                         codes(builder, class->ranges[i].lo, class->ranges[i].hi, in_json));
    }
    return out;
}

/* \d \w \s and their opposites, of ASCII; false: it is none of them. */
static bool add_named(struct grammar_builder *builder, struct class *class, uint32_t letter)
{
    static const struct {
        char name;
        struct range ranges[4];
    } named[] = {{'d', {{'0', '9'}}},
                 {'w', {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
                 {'s', {{9, 13}, {' ', ' '}}}};
    for (size_t i = 0; i < 3; i++) {
        struct class one = {.count = 0};
        for (size_t k = 0; k < 4 && named[i].ranges[k].hi; k++) {
            one.ranges[one.count++] = named[i].ranges[k];
        }
        if (letter == (uint32_t)named[i].name - 32) {
            if (!invert(builder, &one)) {
                return true;
            }
        } else if (letter != (uint32_t)named[i].name) {
            continue;
        }
        for (size_t k = 0; k < one.count; k++) {
            add_range(builder, class, one.ranges[k].lo, one.ranges[k].hi);
        }
        return true;
    }
    return false;
}

static bool take_hex(struct grammar_builder *builder, struct span source, size_t *at, size_t count,
                     uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t byte = *at < source.len ? source.ptr[*at] : 0;
        uint8_t low = byte | 0x20;
        bool is_digit = byte >= '0' && byte <= '9';
        if (!is_digit && !(low >= 'a' && low <= 'f')) {
            grammar_refuse(builder, ST_INVALID, "expected %zu digits of base 16 at byte %zu", count,
                           *at);
            return false;
        }
        *out = *out << 4 | (uint32_t)(is_digit ? byte - '0' : low - 'a' + 10);
        (*at)++;
    }
    if (*out > CODE_MAX) {
        grammar_refuse(builder, ST_INVALID, "there is no character %#x", *out);
        return false;
    }
    return true;
}

bool grammar_escape(struct grammar_builder *builder, struct span source, size_t *at, uint32_t *out)
{
    static const char letters[] = "nrtfv", values[] = "\n\r\t\f\v";
    if (*at == source.len) {
        grammar_refuse(builder, ST_INVALID, "a backslash at the end");
        return false;
    }
    size_t place = *at;
    uint32_t letter = grammar_code(source, at);
    const char *known = letter && letter < 0x80 ? strchr(letters, (int)letter) : NULL;
    if (known) {
        *out = (uint32_t)values[known - letters];
        return true;
    }
    if (letter == 'x' || letter == 'u' || letter == 'U') {
        return take_hex(builder, source, at, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, out);
    }
    bool is_word = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                   (letter >= '0' && letter <= '9') || letter > 0x7f;
    if (is_word && letter != '0') {
        grammar_refuse(builder, ST_UNSUPPORTED, "the escape at byte %zu is not supported", place);
        return false;
    }
    *out = letter == '0' ? 0 : letter;
    return true;
}

/* One end of a range; |*is_named|: it was a \d or the like, which is added. */
static bool take_end(struct grammar_builder *builder, struct span source, size_t *at,
                     struct class *class, uint32_t *out, bool *is_named)
{
    *is_named = false;
    *out = grammar_code(source, at);
    if (*out != '\\') {
        return true;
    }
    if (*at < source.len && add_named(builder, class, source.ptr[*at])) {
        (*at)++;
        *is_named = true;
        return builder->status == ST_OK;
    }
    return grammar_escape(builder, source, at, out);
}

static bool take_range(struct grammar_builder *builder, struct span source, size_t *at,
                       struct class *class)
{
    uint32_t lo, hi;
    bool is_named;
    size_t place = *at;
    if (!take_end(builder, source, at, class, &lo, &is_named)) {
        return false;
    }
    if (is_named) {
        return true;
    }
    hi = lo;
    if (*at + 1 < source.len && source.ptr[*at] == '-' && source.ptr[*at + 1] != ']') {
        (*at)++;
        if (!take_end(builder, source, at, class, &hi, &is_named)) {
            return false;
        }
        if (is_named || hi < lo) {
            grammar_refuse(builder, ST_INVALID, "the range at byte %zu has no order", place);
            return false;
        }
    }
    return add_range(builder, class, lo, hi);
}

const struct part *grammar_class(struct grammar_builder *builder, struct span source, size_t *at,
                                 bool in_json)
{
    struct class class = {.count = 0};
    size_t place = (*at)++;
    bool is_inverted = *at < source.len && source.ptr[*at] == '^';
    *at += is_inverted;
    while (*at < source.len && source.ptr[*at] != ']') {
        if (!take_range(builder, source, at, &class)) {
            return NULL;
        }
    }
    if (*at == source.len) {
        return grammar_refuse(builder, ST_INVALID, "the class at byte %zu is not closed", place);
    }
    (*at)++;
    if (is_inverted && !invert(builder, &class)) {
        return NULL;
    }
    return class_part(builder, &class, in_json);
}

/* ---- quantifiers ----------------------------------------------------------------------------- */

static bool take_number(struct span source, size_t *at, uint32_t *out)
{
    size_t first = *at;
    *out = 0;
    while (*at < source.len && source.ptr[*at] >= '0' && source.ptr[*at] <= '9') {
        *out = *out > GRAMMAR_REPEAT_MAX ? *out : *out * 10 + (uint32_t)(source.ptr[*at] - '0');
        (*at)++;
    }
    return *at > first;
}

/* "{2}", "{2,}", "{2,5}", "{,5}" behind the brace. */
static bool take_bounds(struct span source, size_t *at, uint32_t *min, uint32_t *max)
{
    bool has_min = take_number(source, at, min);
    *max = *min;
    if (*at < source.len && source.ptr[*at] == ',') {
        (*at)++;
        if (!take_number(source, at, max)) {
            *max = UINT32_MAX;
            if (!has_min) {
                return false;
            }
        }
    } else if (!has_min) {
        return false;
    }
    bool is_closed = *at < source.len && source.ptr[*at] == '}';
    *at += is_closed;
    return is_closed;
}

const struct part *grammar_quantify(struct grammar_builder *builder, struct span source, size_t *at,
                                    const struct part *part)
{
    for (int i = 0; *at < source.len && part; i++) {
        uint32_t min = 0, max = UINT32_MAX;
        uint8_t byte = source.ptr[*at];
        size_t place = *at;
        if (byte != '*' && byte != '+' && byte != '?' && byte != '{') {
            break;
        }
        if (i == 2) {
            return grammar_refuse(builder, ST_INVALID, "too many quantifiers at byte %zu", place);
        }
        (*at)++;
        if (byte == '?') {
            max = 1;
        } else if (byte == '+') {
            min = 1;
        } else if (byte == '{' && !take_bounds(source, at, &min, &max)) {
            return grammar_refuse(builder, ST_INVALID, "malformed bounds at byte %zu", place);
        }
        part = grammar_repeat(builder, part, min, max);
    }
    return part;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static const struct part *parse_choice(struct regex *regex);

static bool is_at(const struct regex *regex, const char *text)
{
    size_t len = strlen(text);
    return regex->source.len - regex->at >= len &&
           memcmp(regex->source.ptr + regex->at, text, len) == 0;
}

/* What stands between parentheses. |place|: of the first one. */
static const struct part *parse_inside(struct regex *regex, size_t place)
{
    if (regex->depth == GRAMMAR_NESTING_MAX) {
        return grammar_refuse(regex->builder, ST_TOO_LARGE, "groups are nested too deep");
    }
    regex->depth++;
    const struct part *part = parse_choice(regex);
    regex->depth--;
    if (part && !is_at(regex, ")")) {
        return grammar_refuse(regex->builder, ST_INVALID, "the group at byte %zu is not closed",
                              place);
    }
    regex->at++;
    return part;
}

static const struct part *parse_look(struct regex *regex, size_t place)
{
    bool is_negative = is_at(regex, "?!");
    regex->at += 2;
    regex->look_depth++;
    const struct part *part = parse_inside(regex, place);
    regex->look_depth--;
    regex->looks = true;
    return grammar_look(regex->builder,
                        grammar_then(regex->builder, part, grammar_rest(regex->builder)),
                        is_negative);
}

static const struct part *parse_group(struct regex *regex)
{
    size_t place = regex->at++;
    if (is_at(regex, "?=") || is_at(regex, "?!")) {
        return parse_look(regex, place);
    }
    if (is_at(regex, "?:")) {
        regex->at += 2;
    } else if (is_at(regex, "?")) {
        return grammar_refuse(regex->builder, ST_UNSUPPORTED,
                              "the group at byte %zu is not supported", place);
    }
    return parse_inside(regex, place);
}

static const struct part *parse_anchor(struct regex *regex)
{
    bool is_begin = regex->source.ptr[regex->at] == '^';
    if (is_begin && regex->look_depth > 0) {
        return grammar_refuse(regex->builder, ST_UNSUPPORTED,
                              "the anchor at byte %zu, within a look-ahead, is not supported",
                              regex->at);
    }
    regex->at++;
    regex->looks = true;
    return is_begin ? grammar_part(regex->builder, (struct part){.kind = PART_BEGIN})
                    : grammar_look(regex->builder, grammar_empty(regex->builder), false);
}

static const struct part *parse_escape(struct regex *regex)
{
    struct class class = {.count = 0};
    uint32_t code;
    regex->at++;
    if (regex->at < regex->source.len &&
        add_named(regex->builder, &class, regex->source.ptr[regex->at])) {
        regex->at++;
        return class_part(regex->builder, &class, regex->in_json);
    }
    return grammar_escape(regex->builder, regex->source, &regex->at, &code)
               ? codes(regex->builder, code, code, regex->in_json)
               : NULL;
}

static const struct part *parse_atom(struct regex *regex)
{
    struct class any = {.ranges = {{0, '\n' - 1}, {'\n' + 1, CODE_MAX}}, .count = 2};
    uint8_t byte = regex->source.ptr[regex->at];
    switch (byte) {
    case '(':
        return parse_group(regex);
    case '[':
        return grammar_class(regex->builder, regex->source, &regex->at, regex->in_json);
    case '\\':
        return parse_escape(regex);
    case '.':
        regex->at++;
        return class_part(regex->builder, &any, regex->in_json);
    case '*':
    case '+':
    case '?':
    case '{':
        return grammar_refuse(regex->builder, ST_INVALID, "nothing to repeat at byte %zu",
                              regex->at);
    case '^':
    case '$':
        return parse_anchor(regex);
    default: {
        uint32_t code = grammar_code(regex->source, &regex->at);
        return codes(regex->builder, code, code, regex->in_json);
    }
    }
}

/* Bounds, and a question mark or plus sign that only says which match is taken. */
static const struct part *parse_repeated(struct regex *regex)
{
    const struct part *part = parse_atom(regex);
    uint8_t byte = part && regex->at < regex->source.len ? regex->source.ptr[regex->at] : 0;
    if (!byte || !strchr("*+?{", byte)) {
        return part;
    }
    size_t end = regex->at + 1;
    while (byte == '{' && end < regex->source.len && regex->source.ptr[end - 1] != '}') {
        end++;
    }
    struct span one = span_of(regex->source.ptr, end);
    part = grammar_quantify(regex->builder, one, &regex->at, part);
    regex->at += part && is_at(regex, "?");
    if (part &&
        (is_at(regex, "*") || is_at(regex, "+") || is_at(regex, "?") || is_at(regex, "{"))) {
        return grammar_refuse(regex->builder, ST_UNSUPPORTED, "too many quantifiers at byte %zu",
                              regex->at);
    }
    return part;
}

/* Parts are joined from the right, so that their chain is not nested. */
static const struct part *parse_sequence(struct regex *regex)
{
    const struct part *out = grammar_empty(regex->builder);
    while (out && regex->at < regex->source.len && !is_at(regex, "|") && !is_at(regex, ")")) {
        out = grammar_then(regex->builder, out, parse_repeated(regex));
    }
    return out;
}

static const struct part *parse_choice(struct regex *regex)
{
    const struct part *out = parse_sequence(regex);
    while (out && is_at(regex, "|")) {
        regex->at++;
        out = grammar_or(regex->builder, out, parse_sequence(regex));
    }
    return out;
}

/* Is the last byte an anchor, and not an escaped character? */
static bool ends_with_anchor(struct span regex)
{
    size_t slashes = 0;
    if (regex.len == 0 || regex.ptr[regex.len - 1] != '$') {
        return false;
    }
    while (slashes + 1 < regex.len && regex.ptr[regex.len - 2 - slashes] == '\\') {
        slashes++;
    }
    return slashes % 2 == 0;
}

/* Does a "|" stand outside of groups, classes and escapes? */
static bool has_choice(struct span regex)
{
    int depth = 0;
    bool in_class = false;
    for (size_t i = 0; i < regex.len; i++) {
        uint8_t byte = regex.ptr[i];
        if (byte == '\\') {
            i++;
        } else if (in_class || byte == '[') {
            in_class = byte != ']';
        } else if (byte == '|' && depth == 0) {
            return true;
        } else {
            depth += (byte == '(') - (byte == ')');
        }
    }
    return false;
}

/* Anything before and behind it, where it need not match the whole. */
static const struct part *widen(struct grammar_builder *builder, const struct part *part,
                                bool before, bool behind)
{
    const struct part *any =
        grammar_repeat(builder, grammar_json_codes(builder, 0, CODE_MAX), 0, UINT32_MAX);
    part = before ? grammar_then(builder, any, part) : part;
    return behind ? grammar_then(builder, part, any) : part;
}

const struct part *grammar_regex(struct grammar_builder *builder, struct span regex, bool in_json)
{
    if (regex.len > GRAMMAR_SOURCE_MAX || !json_is_utf8(regex)) {
        return grammar_refuse(builder, ST_INVALID,
                              "a regular expression is UTF-8 of at most %u bytes",
                              GRAMMAR_SOURCE_MAX);
    }
    /* Anchors at the ends of the whole cost nothing. */
    bool is_one = !has_choice(regex);
    bool has_begin = is_one && regex.len > 0 && regex.ptr[0] == '^';
    bool has_end = is_one && ends_with_anchor(regex);
    struct regex state = {.builder = builder, .in_json = in_json};
    state.source = span_of(regex.ptr + has_begin, regex.len - has_begin - has_end);
    const struct part *out = parse_choice(&state);
    if (out && state.at < state.source.len) {
        return grammar_refuse(builder, ST_INVALID, "a group is closed that is not open at byte %zu",
                              state.at + has_begin);
    }
    out = in_json ? widen(builder, out, !has_begin, !has_end) : out;
    out = out && state.looks ? grammar_meet(builder, &out, 1) : out;
    return out && out->kind == PART_NEVER && state.looks
               ? grammar_refuse(builder, ST_INVALID, "no text matches the expression")
               : out;
}

enum status grammar_parse_regex(struct span regex, struct grammar **out, struct error *err)
{
    struct grammar_builder builder;
    grammar_builder_init(&builder, err);
    uint32_t rule = grammar_rule_new(&builder);
    grammar_rule_set(&builder, rule, grammar_regex(&builder, regex, false));
    return grammar_builder_finish(&builder, out);
}

enum status grammar_parse_choice(const struct value *texts, struct grammar **out, struct error *err)
{
    struct grammar_builder builder;
    grammar_builder_init(&builder, err);
    uint32_t rule = grammar_rule_new(&builder);
    size_t count = texts->kind == VALUE_LIST ? texts->list->count : 0;
    const struct part *any = grammar_never(&builder);
    for (size_t i = 0; i < count; i++) {
        const struct value *text = &texts->list->items[i];
        any = text->kind == VALUE_STRING
                  ? grammar_or(&builder, any, grammar_text(&builder, text->string))
                  : grammar_refuse(&builder, ST_INVALID, "expected a list of texts, got %s in it",
                                   value_kind_text(text->kind));
    }
    if (count == 0) {
        any = grammar_refuse(&builder, ST_INVALID, "expected a list of texts that is not empty");
    }
    grammar_rule_set(&builder, rule, any);
    return grammar_builder_finish(&builder, out);
}
