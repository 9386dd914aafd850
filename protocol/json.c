/* SPDX-License-Identifier: MIT */
/*
 * The pull reader. It remembers one level for each open bracket, and the keys of the open objects.
 * So its memory has a fixed size, and no function recurses.
 */
#include "config.h"

#include "protocol/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/table.h"
#include "protocol/json_priv.h"
#include "protocol/number.h"

#define PATH_TEXT_MAX 160
#define PATH_KEY_MAX 32 /* of one key in a path */
#define TOKEN_TEXT_MAX 24

void json_init(struct json *in, struct span text)
{
    if (!text.ptr) {
        text = span_str(""); /* NULL + 0 is undefined */
    }
    in->start = in->at = in->value = text.ptr;
    in->end = text.ptr + text.len;
    in->is_closed = in->may_repeat = in->is_derived = false;
    in->depth = in->key_count = in->indexed_depth = 0;
    in->depth_max = JSON_DEPTH_MAX;
}

/* The current key of |level|; NULL in an array and before the first key. */
static const struct json_string *current_key(const struct json *in, unsigned level)
{
    unsigned end = level + 1 < in->depth ? in->levels[level + 1].key_base : in->key_count;
    return in->levels[level].is_object && end > in->levels[level].key_base ? &in->keys[end - 1]
                                                                           : NULL;
}

static void print_path(const struct json *in, char text[PATH_TEXT_MAX])
{
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < in->depth && len < PATH_TEXT_MAX - 1; i++) {
        const struct json_string *key = current_key(in, i);
        int wanted = 0;
        if (key) {
            int shown = key->raw.len > PATH_KEY_MAX ? PATH_KEY_MAX : (int)key->raw.len;
            bool is_index = i > 0 && i < in->indexed_depth;
            const char *before = is_index ? "[\"" : i ? "." : "";
            wanted = snprintf(text + len, PATH_TEXT_MAX - len, "%s%.*s%s", before, shown,
                              (const char *)key->raw.ptr, is_index ? "\"]" : "");
        } else if (in->levels[i].has_item && !in->levels[i].is_object) {
            wanted = snprintf(text + len, PATH_TEXT_MAX - len, "[%u]", in->levels[i].item_index);
        }
        len += wanted > 0 ? (size_t)wanted : 0;
    }
}

__attribute__((format(printf, 5, 0))) static enum status
fail_at(const struct json *in, const uint8_t *where, struct error *err, enum status code,
        const char *fmt, va_list args)
{
    char path[PATH_TEXT_MAX], what[ERROR_TEXT_MAX];
    print_path(in, path);
    vsnprintf(what, sizeof(what), fmt, args);
    if (in->is_derived) {
        return error_set(err, code, "%s%s%.120s", path, *path ? ": " : "", what);
    }
    return error_set(err, code, "%s%s%.120s (byte %zu)", path, *path ? ": " : "", what,
                     (size_t)(where - in->start));
}

enum status json_fail(const struct json *in, struct error *err, enum status code, const char *fmt,
                      ...)
{
    va_list args;
    va_start(args, fmt);
    fail_at(in, in->value, err, code, fmt, args);
    va_end(args);
    return code;
}

/* About the byte that comes next. */
__attribute__((format(printf, 3, 4))) static enum status
fail_here(const struct json *in, struct error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fail_at(in, in->at, err, ST_INVALID, fmt, args);
    va_end(args);
    return ST_INVALID;
}

const uint8_t *json_pass_space(const uint8_t *at, const uint8_t *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

bool json_begins_with(const uint8_t *at, const uint8_t *end, const char *key)
{
    size_t len = strlen(key);
    at = json_pass_space(at + 1, end);
    return len + 2 <= (size_t)(end - at) && at[0] == '"' && memcmp(at + 1, key, len) == 0 &&
           at[len + 1] == '"';
}

static void skip_space(struct json *in)
{
    in->at = json_pass_space(in->at, in->end);
}

enum json_type json_peek(struct json *in)
{
    skip_space(in);
    in->value = in->at;
    if (in->at == in->end) {
        return JSON_NOTHING;
    }
    switch (*in->at) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'n':
        return JSON_NULL;
    case 'N':
    case 'I':
    case '-':
        return JSON_NUMBER;
    default:
        return *in->at >= '0' && *in->at <= '9' ? JSON_NUMBER : JSON_NOTHING;
    }
}

const char *json_type_text(enum json_type type)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_NUMBER] = "a number",  [JSON_BOOL] = "a boolean", [JSON_NULL] = "null",
    };
    TABLE_ENDS_WITH(names, JSON_NULL);
    must(type < JSON_NOTHING);
    return names[type];
}

/* The letters that come next, if they are no word of JSON: Python's nan, True and None. */
static size_t count_letters(const struct json *in)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity"};
    size_t len = 0, max = (size_t)(in->end - in->at);
    while (len < max && ((in->at[len] | 0x20) >= 'a' && (in->at[len] | 0x20) <= 'z')) {
        len++;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (len == strlen(words[i]) && memcmp(in->at, words[i], len) == 0) {
            return 0;
        }
    }
    return len;
}

const char *json_next_text(struct json *in, char text[JSON_NEXT_TEXT_MAX])
{
    enum json_type type = json_peek(in);
    size_t letters = count_letters(in);
    if (letters > 0) {
        int shown = letters < JSON_NEXT_TEXT_MAX - 3 ? (int)letters : JSON_NEXT_TEXT_MAX - 3;
        snprintf(text, JSON_NEXT_TEXT_MAX, "'%.*s'", shown, (const char *)in->at);
        return text;
    }
    if (type != JSON_NOTHING) {
        return json_type_text(type);
    }
    if (in->at == in->end) {
        return "the end of the text";
    }
    bool is_shown = *in->at > 0x20 && *in->at < 0x7f;
    snprintf(text, JSON_NEXT_TEXT_MAX, is_shown ? "'%c'" : "byte 0x%02x", *in->at);
    return text;
}

bool json_is_trailing_comma(const uint8_t *start, const uint8_t *at, const uint8_t *end)
{
    if (at == end || (*at != ']' && *at != '}')) {
        return false;
    }
    while (at > start && (at[-1] == ' ' || at[-1] == '\n' || at[-1] == '\r' || at[-1] == '\t')) {
        at--;
    }
    return at > start && at[-1] == ',';
}

/* Sets the error "expected |wanted|, got ...". */
static enum status fail_type(struct json *in, struct error *err, const char *wanted)
{
    char text[JSON_NEXT_TEXT_MAX];
    skip_space(in);
    if (json_is_trailing_comma(in->start, in->at, in->end)) {
        return fail_here(in, err, JSON_TRAILING_COMMA, *in->at);
    }
    return fail_here(in, err, "expected %s, got %s", wanted, json_next_text(in, text));
}

static enum status open_level(struct json *in, bool is_object, struct error *err)
{
    if (in->depth == in->depth_max) {
        return json_fail(in, err, ST_TOO_LARGE, "nested deeper than %d", in->depth_max);
    }
    in->levels[in->depth++] =
        (struct json_level){.is_object = is_object, .key_base = in->key_count};
    in->at++;
    in->is_closed = false;
    return ST_OK;
}

static void close_level(struct json *in)
{
    in->at++;
    in->key_count = in->levels[--in->depth].key_base;
    in->is_closed = true;
}

enum status json_object(struct json *in, struct error *err)
{
    return json_peek(in) == JSON_OBJECT ? open_level(in, true, err)
                                        : fail_type(in, err, "an object");
}

enum status json_array(struct json *in, struct error *err)
{
    return json_peek(in) == JSON_ARRAY ? open_level(in, false, err)
                                       : fail_type(in, err, "an array");
}

/* Moves to the next item of the innermost level, across a comma unless the item is the first; or
 * out of the level if it ends. */
static enum status next_item(struct json *in, char closing, struct error *err)
{
    must(in->depth > 0);
    struct json_level *level = &in->levels[in->depth - 1];
    must(level->is_object == (closing == '}'));
    skip_space(in);
    if (in->at < in->end && *in->at == closing) {
        close_level(in);
        return ST_OK;
    }
    in->is_closed = false;
    if (level->has_item) {
        if (in->at == in->end || *in->at != ',') {
            return fail_type(in, err, closing == '}' ? "',' or '}'" : "',' or ']'");
        }
        in->at++;
        level->item_index++;
    }
    level->has_item = true;
    return ST_OK;
}

enum status json_element(struct json *in, struct error *err)
{
    return next_item(in, ']', err);
}

/* Reads the string whose opening quote is at in->at. */
static enum status read_quoted(struct json *in, struct json_string *out, struct error *err)
{
    const char *wrong = json_string_scan(&in->at, in->end, out);
    return wrong ? fail_here(in, err, "%s", wrong) : ST_OK;
}

enum status json_read_string(struct json *in, struct json_string *out, struct error *err)
{
    return json_peek(in) == JSON_STRING ? read_quoted(in, out, err)
                                        : fail_type(in, err, "a string");
}

static enum status add_key(struct json *in, const struct json_string *key, struct error *err)
{
    unsigned base = in->levels[in->depth - 1].key_base;
    if (in->may_repeat) {
        in->key_count = (uint16_t)base;
    }
    if (in->key_count == JSON_KEYS_MAX) {
        return json_fail(in, err, ST_TOO_LARGE, "more than %d keys in open objects", JSON_KEYS_MAX);
    }
    in->keys[in->key_count++] = *key;
    for (unsigned i = base; i < in->key_count - 1u; i++) {
        if (json_string_equal(&in->keys[i], key)) {
            return json_fail(in, err, ST_INVALID, "the key repeats in its object");
        }
    }
    return ST_OK;
}

enum status json_member(struct json *in, struct json_string *out_key, struct error *err)
{
    struct json_string key;
    TRY(next_item(in, '}', err));
    if (in->is_closed) {
        return ST_OK;
    }
    if (json_peek(in) != JSON_STRING) {
        return fail_type(in, err, "a key");
    }
    TRY(read_quoted(in, &key, err));
    TRY(add_key(in, &key, err));
    skip_space(in);
    if (in->at == in->end || *in->at != ':') {
        return fail_type(in, err, "':'");
    }
    in->at++;
    *out_key = key;
    return ST_OK;
}

void json_forget_keys(struct json *in)
{
    must(in->depth > 0);
    unsigned base = in->levels[in->depth - 1].key_base;
    if (in->key_count > base + 1u) {
        in->keys[base] = in->keys[in->key_count - 1];
        in->key_count = (uint16_t)(base + 1);
    }
}

struct span json_number_text(const uint8_t *at, const uint8_t *end)
{
    size_t len = 0;
    while (len < TOKEN_TEXT_MAX && at + len < end && at[len] &&
           strchr("+-.0123456789EeINafinty", at[len])) {
        len++;
    }
    return span_of(at, len);
}

/* Why the number at in->at is not |wanted|. */
static enum status fail_number(struct json *in, enum number_result result, const char *wanted,
                               struct error *err)
{
    struct span token = json_number_text(in->at, in->end);
    switch (result) {
    case NUMBER_NOT_INTEGER:
        return fail_here(in, err, "expected %s, got %.*s", wanted, SPAN_FMT(token));
    case NUMBER_RANGE:
        return fail_here(in, err, "expected %s, got %.*s, which is out of range", wanted,
                         SPAN_FMT(token));
    default:
        return fail_here(in, err, "expected %s, got a malformed number", wanted);
    }
}

enum status json_read_i64(struct json *in, int64_t *out, struct error *err)
{
    if (json_peek(in) != JSON_NUMBER) {
        return fail_type(in, err, "an integer");
    }
    enum number_result result = number_parse_i64(&in->at, in->end, out);
    return result == NUMBER_OK ? ST_OK : fail_number(in, result, "an integer", err);
}

enum status json_read_u64(struct json *in, uint64_t *out, struct error *err)
{
    if (json_peek(in) != JSON_NUMBER) {
        return fail_type(in, err, "a whole number");
    }
    enum number_result result = number_parse_u64(&in->at, in->end, out);
    return result == NUMBER_OK ? ST_OK : fail_number(in, result, "a whole number", err);
}

enum status json_read_f64(struct json *in, double *out, struct error *err)
{
    if (json_peek(in) != JSON_NUMBER) {
        return fail_type(in, err, "a number");
    }
    enum number_result result = number_parse_f64(&in->at, in->end, out);
    return result == NUMBER_OK ? ST_OK : fail_number(in, result, "a number", err);
}

static bool take_word(struct json *in, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0) {
        return false;
    }
    in->at += len;
    return true;
}

enum status json_read_bool(struct json *in, bool *out, struct error *err)
{
    if (json_peek(in) != JSON_BOOL) {
        return fail_type(in, err, "a boolean");
    }
    bool is_true = take_word(in, "true");
    if (!is_true && !take_word(in, "false")) {
        return fail_here(in, err, "expected true or false, got another word");
    }
    *out = is_true;
    return ST_OK;
}

enum status json_read_null(struct json *in, struct error *err)
{
    if (json_peek(in) != JSON_NULL) {
        return fail_type(in, err, "null");
    }
    return take_word(in, "null") ? ST_OK : fail_here(in, err, "expected null, got another word");
}

/* Skips a whole scalar, or only the opening bracket of an array or object. */
static enum status skip_one(struct json *in, struct error *err)
{
    struct json_string string;
    double number;
    bool boolean;
    switch (json_peek(in)) {
    case JSON_OBJECT:
        return json_object(in, err);
    case JSON_ARRAY:
        return json_array(in, err);
    case JSON_STRING:
        return json_read_string(in, &string, err);
    case JSON_NUMBER:
        return json_read_f64(in, &number, err);
    case JSON_BOOL:
        return json_read_bool(in, &boolean, err);
    case JSON_NULL:
        return json_read_null(in, err);
    case JSON_NOTHING:
        break;
    }
    return fail_type(in, err, "a value");
}

enum status json_skip(struct json *in, struct error *err)
{
    unsigned outside = in->depth;
    TRY(skip_one(in, err));
    while (in->depth > outside) {
        struct json_string key;
        if (in->levels[in->depth - 1].is_object) {
            TRY(json_member(in, &key, err));
        } else {
            TRY(json_element(in, err));
        }
        if (!in->is_closed) {
            TRY(skip_one(in, err));
        }
    }
    in->is_closed = false;
    return ST_OK;
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));

static inline bytes16 mark_brackets(const uint8_t *p)
{
    bytes16 v;
    memcpy(&v, p, sizeof(v));
    return (bytes16)(v == '[') | (bytes16)(v == ']') | (bytes16)(v == '"');
}

static inline bool is_bracket(uint8_t c)
{
    return c == '[' || c == ']' || c == '"';
}

/* Does any of the 32 bytes open or close an array or a string? */
static inline bool has_bracket(const uint8_t *p)
{
    bytes16 marks = mark_brackets(p) | mark_brackets(p + 16);
    uint64_t words[2];
    memcpy(words, &marks, sizeof(words));
    return words[0] | words[1];
}

/* Marks which of the eight bytes equal |byte|, by their highest bits; marks above the lowest may be
 * wrong. */
static inline uint64_t mark_equal(uint64_t word, uint8_t byte)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t differences = word ^ ones * byte;
    return (differences - ones) & ~differences & ones * 0x80;
}

/* The first byte that opens or closes an array or a string, or |end|. */
static const uint8_t *find_bracket(const uint8_t *at, const uint8_t *end)
{
    while (end - at >= 32 && !has_bracket(at)) {
        at += 32;
    }
    for (; end - at >= 8; at += 8) {
        uint64_t word = load_le64(at);
        uint64_t marks = mark_equal(word, '[') | mark_equal(word, ']') | mark_equal(word, '"');
        if (marks) {
            return at + __builtin_ctzll(marks) / 8;
        }
    }
    while (at < end && !is_bracket(*at)) {
        at++;
    }
    return at;
}

uint32_t json_count_elements(const struct json *in, uint32_t max)
{
    struct json ahead = *in;
    struct error ignored;
    uint32_t count = 0;
    if (json_array(&ahead, &ignored) != ST_OK) {
        return 0;
    }
    while (count < max && json_element(&ahead, &ignored) == ST_OK && !ahead.is_closed &&
           json_skip(&ahead, &ignored) == ST_OK) {
        count++;
    }
    return count;
}

enum status json_array_text(struct json *in, struct span *out, struct error *err)
{
    if (json_peek(in) != JSON_ARRAY) {
        return fail_type(in, err, "an array");
    }
    const uint8_t *first = in->at++;
    size_t open_count = 1;
    do {
        in->at = find_bracket(in->at, in->end);
        if (in->at == in->end) {
            return fail_here(in, err, "the text ends in an array");
        }
        if (*in->at == '"') {
            struct json_string string;
            TRY(read_quoted(in, &string, err));
            continue;
        }
        open_count += *in->at == '[';
        open_count -= *in->at == ']';
        in->at++;
    } while (open_count > 0);
    *out = span_of(first, (size_t)(in->at - first));
    return ST_OK;
}

/* Behind the quote that closes the string; NULL: none does. */
static const uint8_t *skip_string(const uint8_t *at, const uint8_t *end)
{
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\' && at + 1 < end;
    }
    return at < end ? at + 1 : NULL;
}

enum status json_skip_loosely(struct json *in, struct span *out, struct error *err)
{
    enum json_type type = json_peek(in);
    const uint8_t *first = in->at, *at = first;
    size_t open_count = 0;
    if (type != JSON_ARRAY && type != JSON_OBJECT && type != JSON_STRING) {
        return fail_type(in, err, "an object, an array or a string");
    }
    do {
        while (at < in->end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}') {
            at++; /* brackets differ from braces in this bit */
        }
        if (at < in->end && *at == '"') {
            at = skip_string(at, in->end);
        } else if (at < in->end) {
            open_count += *at == '[' || *at == '{';
            open_count -= *at == ']' || *at == '}';
            at++;
        }
        if (!at || (at == in->end && open_count > 0)) {
            in->at = in->end;
            return fail_here(in, err, "the text ends in a value");
        }
    } while (open_count > 0);
    in->at = at;
    *out = span_of(first, (size_t)(at - first));
    return ST_OK;
}

enum status json_end(struct json *in, struct error *err)
{
    must(in->depth == 0);
    skip_space(in);
    return in->at == in->end ? ST_OK : fail_type(in, err, "the end of the text");
}

enum status json_read_members(struct span text, json_member_f *read, void *user, struct error *err)
{
    struct json in;
    json_init(&in, text);
    TRY(json_object(&in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(&in, &key, err));
        if (in.is_closed) {
            return json_end(&in, err);
        }
        TRY(read(&in, &key, user, err));
    }
}
