/* SPDX-License-Identifier: MIT */
/*
 * Values from JSON as Python's json.loads() reads it: what a client sends for a template is not
 * ours to judge. A name that repeats has its last value, at its first place; integers have any
 * size; 1e400 is infinite; NaN and the infinities are numbers. Half of a surrogate pair becomes
 * U+FFFD, since texts are UTF-8.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "server/text/value/value.h"

#define DIGITS_MAX 4300   /* of an integer, as in Python */
#define REPEATS_SORTED 16 /* members that are compared one by one */
#define NUMBER_BYTES 64   /* of a float that is not copied */

struct reader {
    const uint8_t *start, *at, *end;
    const struct value_limits *limits;
    struct arena *arena;
    uint32_t values_left;
    uint16_t depth;
    struct error *err;
};

static enum status read_value(struct reader *reader, struct value *out);

static enum status no_memory(const struct reader *reader)
{
    return arena_fail(reader->arena, "the values of the text", reader->err);
}

static enum status refuse(const struct reader *reader, enum status code, const char *what)
{
    return error_set(reader->err, code, "%s (byte %zu)", what,
                     (size_t)(reader->at - reader->start));
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n' ||
                                        *reader->at == '\r' || *reader->at == '\t')) {
        reader->at++;
    }
}

static bool take(struct reader *reader, char byte)
{
    skip_space(reader);
    bool is_here = reader->at < reader->end && *reader->at == (uint8_t)byte;
    reader->at += is_here;
    return is_here;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Four digits of base 16 at |at|; UINT32_MAX: other ones. */
static uint32_t hex4(const uint8_t *at, const uint8_t *end)
{
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t byte = at + i < end ? at[i] : 0, low = byte | 0x20;
        bool is_digit = byte >= '0' && byte <= '9';
        if (!is_digit && !(low >= 'a' && low <= 'f')) {
            return UINT32_MAX;
        }
        code = code << 4 | (uint32_t)(is_digit ? byte - '0' : low - 'a' + 10);
    }
    return code;
}

static size_t put_code(uint8_t *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (uint8_t)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; code >>= 6) {
        to[i] = (uint8_t)(0x80 | (code & 0x3f));
    }
    to[0] = (uint8_t)((len == 2 ? 0xc0 : len == 3 ? 0xe0 : 0xf0) | code);
    return len;
}

/* An escape \uXXXX, whose digits come next, with the second one of a pair. */
static enum status read_code(struct reader *reader, uint8_t **to)
{
    uint32_t code = hex4(reader->at, reader->end), low;
    if (code == UINT32_MAX) {
        return refuse(reader, ST_INVALID, "expected four digits of base 16");
    }
    reader->at += 4;
    if (code >= 0xd800 && code < 0xdc00 && reader->end - reader->at >= 6 && reader->at[0] == '\\' &&
        reader->at[1] == 'u') {
        low = hex4(reader->at + 2, reader->end);
        if (low != UINT32_MAX && low >= 0xdc00 && low < 0xe000) {
            reader->at += 6;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    code = code >= 0xd800 && code < 0xe000 ? 0xfffd : code;
    *to += put_code(*to, code);
    return ST_OK;
}

static enum status read_escape(struct reader *reader, uint8_t **to)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint8_t letter = reader->at < reader->end ? *reader->at : 0;
    const char *known = letter ? strchr(letters, letter) : NULL;
    if (letter == 'u') {
        reader->at++;
        return read_code(reader, to);
    }
    if (!known) {
        return refuse(reader, ST_INVALID, "there is no such escape");
    }
    reader->at++;
    *(*to)++ = (uint8_t)values[known - letters];
    return ST_OK;
}

/* The bytes up to the quote that closes the string, with escapes; SIZE_MAX: none closes it. */
static size_t raw_length(const struct reader *reader)
{
    for (const uint8_t *at = reader->at; at < reader->end; at++) {
        if (*at == '"') {
            return (size_t)(at - reader->at);
        }
        at += *at == '\\';
    }
    return SIZE_MAX;
}

/* The string whose quote was taken. No escape is shorter than what it stands for. */
static enum status read_string(struct reader *reader, struct value *out)
{
    size_t len = raw_length(reader);
    if (len == SIZE_MAX) {
        return refuse(reader, ST_INVALID, "the text ends in a string");
    }
    uint8_t *text = arena_alloc(reader->arena, len + 1), *to = text;
    if (!text) {
        return no_memory(reader);
    }
    while (*reader->at != '"') {
        uint8_t byte = *reader->at;
        size_t count = byte < 0x80 ? 1 : utf8_sequence(reader->at, reader->end);
        if (count == 0 || byte < 0x20) {
            return refuse(reader, ST_INVALID,
                          count ? "a control character in a string" : "no UTF-8");
        }
        if (byte == '\\') {
            reader->at++;
            TRY(read_escape(reader, &to));
            continue;
        }
        memcpy(to, reader->at, count);
        to += count;
        reader->at += count;
    }
    reader->at++;
    *out = value_string(span_of(text, (size_t)(to - text)));
    return ST_OK;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

static size_t count_digits(const uint8_t *at, const uint8_t *end)
{
    size_t count = 0;
    while (at + count < end && at[count] >= '0' && at[count] <= '9') {
        count++;
    }
    return count;
}

/* The length of the number that stands next; 0: none does. |*is_whole|: without fraction and
 * exponent. */
static size_t number_length(const struct reader *reader, bool *is_whole)
{
    const uint8_t *at = reader->at, *end = reader->end;
    at += at < end && *at == '-';
    size_t digits = at < end && *at == '0' ? 1 : count_digits(at, end), more;
    if (digits == 0) {
        return 0;
    }
    at += digits;
    *is_whole = true;
    if (at < end && *at == '.' && (more = count_digits(at + 1, end)) > 0) {
        at += 1 + more;
        *is_whole = false;
    }
    if (at < end && (*at | 0x20) == 'e') {
        size_t sign = at + 1 < end && (at[1] == '+' || at[1] == '-');
        if ((more = count_digits(at + 1 + sign, end)) > 0) {
            at += 1 + sign + more;
            *is_whole = false;
        }
    }
    return (size_t)(at - reader->at);
}

static enum status read_integer(struct reader *reader, size_t len, struct value *out)
{
    bool is_negative = *reader->at == '-', fits = true;
    int64_t value = 0;
    for (size_t i = is_negative; i < len && fits; i++) {
        int64_t digit = reader->at[i] - '0';
        fits = !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, is_negative ? -digit : digit, &value);
    }
    *out = fits ? value_int(value)
                : (struct value){.kind = VALUE_LONG, .string = span_of(reader->at, len)};
    if (len - is_negative > DIGITS_MAX) {
        return refuse(reader, ST_TOO_LARGE, "an integer of more than 4300 digits");
    }
    if (!fits) {
        uint8_t *copy = arena_alloc(reader->arena, len + 1);
        if (!copy) {
            return no_memory(reader);
        }
        memcpy(copy, reader->at, len);
        out->string = span_of(copy, len);
    }
    return ST_OK;
}

static enum status read_float(struct reader *reader, size_t len, struct value *out)
{
    char room[NUMBER_BYTES],
        *text = len < NUMBER_BYTES ? room : arena_alloc(reader->arena, len + 1);
    if (!text) {
        return no_memory(reader);
    }
    memcpy(text, reader->at, len);
    text[len] = 0;
    *out = value_double(strtod(text, NULL)); /* the locale is "C": a process of ours sets none */
    return ST_OK;
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t len = strlen(word);
    bool is_here = (size_t)(reader->end - reader->at) >= len && memcmp(reader->at, word, len) == 0;
    reader->at += is_here ? len : 0;
    return is_here;
}

static enum status read_scalar(struct reader *reader, struct value *out)
{
    static const struct {
        const char *word;
        struct value value;
    } words[] = {{"null", {.kind = VALUE_NONE}},
                 {"true", {.kind = VALUE_BOOL, .boolean = true}},
                 {"false", {.kind = VALUE_BOOL, .boolean = false}},
                 {"NaN", {.kind = VALUE_DOUBLE, .number = (double)NAN}},
                 {"Infinity", {.kind = VALUE_DOUBLE, .number = (double)INFINITY}},
                 {"-Infinity", {.kind = VALUE_DOUBLE, .number = -(double)INFINITY}}};
    bool is_whole;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (take_word(reader, words[i].word)) {
            *out = words[i].value;
            return ST_OK;
        }
    }
    size_t len = number_length(reader, &is_whole);
    if (len == 0) {
        return refuse(reader, ST_INVALID, "expected a value");
    }
    TRY(is_whole ? read_integer(reader, len, out) : read_float(reader, len, out));
    reader->at += len;
    return ST_OK;
}

/* ---- lists and maps -------------------------------------------------------------------------- */

static enum status read_list(struct reader *reader, struct value *out)
{
    if (!value_list_new(reader->arena, out)) {
        return no_memory(reader);
    }
    if (take(reader, ']')) {
        return ST_OK;
    }
    while (true) {
        struct value item;
        TRY(read_value(reader, &item));
        if (!value_list_add(reader->arena, out, item)) {
            return no_memory(reader);
        }
        if (take(reader, ']')) {
            return ST_OK;
        }
        if (!take(reader, ',')) {
            return refuse(reader, ST_INVALID, "expected ',' or ']'");
        }
    }
}

/* A member by its name, and the one that came first of the same. */
struct named {
    struct span name;
    size_t at;
};

static int by_name(const void *a, const void *b)
{
    const struct named *one = a, *two = b;
    size_t len = one->name.len < two->name.len ? one->name.len : two->name.len;
    int order = len ? memcmp(one->name.ptr, two->name.ptr, len) : 0;
    order = order ? order : (one->name.len > two->name.len) - (one->name.len < two->name.len);
    return order ? order : (one->at > two->at) - (one->at < two->at);
}

/* The last value of a name goes to its first place; the others go. |names| has all, sorted. */
static void drop_repeats(struct value_map *map, const struct named *names)
{
    size_t count = 0;
    for (size_t i = 0; i < map->count;) {
        size_t last = i;
        while (last + 1 < map->count && span_equal(names[i].name, names[last + 1].name)) {
            last++;
            map->members[names[last].at].key.kind = VALUE_NONE;
        }
        map->members[names[i].at].value = map->members[names[last].at].value;
        i = last + 1;
    }
    for (size_t i = 0; i < map->count; i++) {
        if (map->members[i].key.kind != VALUE_NONE) {
            map->members[count++] = map->members[i];
        }
    }
    map->count = count;
}

static bool has_repeats(const struct value_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (span_equal(map->members[i].key.string, map->members[k].key.string)) {
                return true;
            }
        }
    }
    return false;
}

static enum status settle_repeats(struct reader *reader, struct value_map *map)
{
    if (map->count <= REPEATS_SORTED && !has_repeats(map)) {
        return ST_OK;
    }
    struct named *names = calloc(map->count, sizeof(*names));
    if (!names) {
        return error_no_memory(reader->err, "the values of the text");
    }
    for (size_t i = 0; i < map->count; i++) {
        names[i] = (struct named){map->members[i].key.string, i};
    }
    qsort(names, map->count, sizeof(*names), by_name);
    drop_repeats(map, names);
    free(names);
    return ST_OK;
}

static enum status read_map(struct reader *reader, struct value *out)
{
    if (!value_map_new(reader->arena, out)) {
        return no_memory(reader);
    }
    if (take(reader, '}')) {
        return ST_OK;
    }
    while (true) {
        struct value key, value;
        if (!take(reader, '"')) {
            return refuse(reader, ST_INVALID, "expected a name");
        }
        TRY(read_string(reader, &key));
        if (!take(reader, ':')) {
            return refuse(reader, ST_INVALID, "expected ':'");
        }
        TRY(read_value(reader, &value));
        if (!value_map_add(reader->arena, out, key, value)) {
            return no_memory(reader);
        }
        if (take(reader, '}')) {
            return settle_repeats(reader, out->map);
        }
        if (!take(reader, ',')) {
            return refuse(reader, ST_INVALID, "expected ',' or '}'");
        }
    }
}

static enum status read_value(struct reader *reader, struct value *out)
{
    skip_space(reader);
    if (reader->values_left == 0) {
        return error_set(reader->err, ST_TOO_LARGE, "more than %u values",
                         reader->limits->values_max);
    }
    reader->values_left--;
    if (take(reader, '"')) {
        return read_string(reader, out);
    }
    bool is_list = take(reader, '[');
    if (!is_list && !take(reader, '{')) {
        return read_scalar(reader, out);
    }
    if (reader->depth == reader->limits->depth_max) {
        return error_set(reader->err, ST_TOO_LARGE, "nested deeper than %u levels",
                         (unsigned)reader->limits->depth_max);
    }
    reader->depth++;
    TRY(is_list ? read_list(reader, out) : read_map(reader, out));
    reader->depth--;
    return ST_OK;
}

enum status value_parse(struct span text, const struct value_limits *limits, struct arena *arena,
                        struct value *out, struct error *err)
{
    struct reader reader = {.start = text.ptr,
                            .at = text.ptr,
                            .end = text.ptr + text.len,
                            .limits = limits,
                            .arena = arena,
                            .values_left = limits->values_max,
                            .err = err};
    *out = (struct value){.kind = VALUE_NONE};
    if (text.len > limits->bytes_max) {
        return error_set(err, ST_TOO_LARGE, "JSON of %zu bytes, at most %zu are read", text.len,
                         limits->bytes_max);
    }
    TRY(read_value(&reader, out));
    skip_space(&reader);
    return reader.at == reader.end ? ST_OK
                                   : refuse(&reader, ST_INVALID, "expected the end of the text");
}
