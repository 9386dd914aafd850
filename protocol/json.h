/* SPDX-License-Identifier: MIT */
/*
 * A strict pull reader of JSON (RFC 8259) and a writer.
 *
 * The caller asks for what it expects, in the order of the text; nothing is built and nothing is
 * allocated. Refused, each with the path and the byte offset: anything outside the grammar, invalid
 * UTF-8, lone surrogates, a key that repeats in its object, nesting deeper than JSON_DEPTH_MAX,
 * more than JSON_KEYS_MAX keys of objects that are open at one time, and text behind the value.
 * The only extension: NaN, Infinity and -Infinity are numbers, because clients send them.
 *
 * Errors read "inputs[0].shape[1]: expected an integer, got a string (byte 57)"; the reader knows
 * the path itself. After an error the reader must not be used again.
 *
 *     json_init(&in, text);
 *     TRY(json_object(&in, err));
 *     while (true) {
 *         TRY(json_member(&in, &key, err));
 *         if (in.is_closed) { break; }
 *         ...read or json_skip() one value...
 *     }
 *     TRY(json_end(&in, err));
 *
 * The text is borrowed while the reader and the strings it handed out are in use. Any thread.
 */
#ifndef PTED_PROTOCOL_JSON_H
#define PTED_PROTOCOL_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

#define JSON_DEPTH_MAX 64
#define JSON_LEVELS_MAX 160 /* levels of nesting that a reader has room for */
/* inputs of a request as members, members around them and in one of them */
#define JSON_KEYS_MAX 320

enum json_type {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_BOOL,
    JSON_NULL,
    JSON_NOTHING, /* the end of the text, or a byte that starts no value */
};

/* A string as it stands in the text, between its quotes; known to be valid. */
struct json_string {
    struct span raw;
    size_t bytes; /* when decoded; equal to raw.len when nothing is escaped */
};

struct json_level {
    bool is_object;
    bool has_item;       /* at least one member or element was begun */
    uint16_t key_base;   /* keys[key_base..] are this object's, the last one is the current */
    uint32_t item_index; /* of the current element of an array */
};

struct json {
    const uint8_t *start, *at, *end;
    const uint8_t *value; /* where the value read last begins */
    bool is_closed;       /* the last json_member() or json_element() met the closing bracket */
    bool may_repeat;      /* keys may repeat in their object; false after json_init() */
    bool is_derived;      /* made of another text, so errors say no offsets; likewise */
    uint16_t depth, key_count;
    uint16_t depth_max;     /* JSON_DEPTH_MAX after json_init(); may be set up to JSON_LEVELS_MAX */
    uint16_t indexed_depth; /* keys of levels below it are ["b"] in paths, others .b; 0 at first */
    struct json_level levels[JSON_LEVELS_MAX];
    struct json_string keys[JSON_KEYS_MAX];
};

void json_init(struct json *in, struct span text);

/* Returns the type of the value that comes next; consumes nothing but white space. */
enum json_type json_peek(struct json *in);

/* Enters an object or an array; then ask for members or elements until |is_closed|. */
MUST_CHECK enum status json_object(struct json *in, struct error *err);
MUST_CHECK enum status json_array(struct json *in, struct error *err);
MUST_CHECK enum status json_member(struct json *in, struct json_string *out_key, struct error *err);
MUST_CHECK enum status json_element(struct json *in, struct error *err);

/* Forgets the keys of the innermost open object but the last one, for paths: those to come are not
 * compared with them, the caller finds repeats itself. For objects of many members. */
void json_forget_keys(struct json *in);

/* Reads a value. An integer is a token without fraction and exponent. */
MUST_CHECK enum status json_read_string(struct json *in, struct json_string *out,
                                        struct error *err);
MUST_CHECK enum status json_read_i64(struct json *in, int64_t *out, struct error *err);
MUST_CHECK enum status json_read_u64(struct json *in, uint64_t *out, struct error *err);
MUST_CHECK enum status json_read_f64(struct json *in, double *out, struct error *err);
MUST_CHECK enum status json_read_bool(struct json *in, bool *out, struct error *err);
MUST_CHECK enum status json_read_null(struct json *in, struct error *err);

/* Passes over one value of any type, checking it as strictly as if it were read. */
MUST_CHECK enum status json_skip(struct json *in, struct error *err);

/* Skips an array quickly: only brackets and strings are recognised, several bytes at a time. The
 * caller must check the elements later. |out| is the array's text with its brackets. */
MUST_CHECK enum status json_array_text(struct json *in, struct span *out, struct error *err);

/* Passes over an object, an array or a string, of which just the brackets and the ends of strings
 * are looked at, so what is in it may be wrong: the caller reads |out|, its text, with another
 * reader. */
MUST_CHECK enum status json_skip_loosely(struct json *in, struct span *out, struct error *err);

/* Returns the elements of the array that comes next, at most |max|, without consuming any; the
 * array may be wrong behind them. 0: no array comes. */
uint32_t json_count_elements(const struct json *in, uint32_t max);

/* Checks that nothing but white space is left. */
MUST_CHECK enum status json_end(struct json *in, struct error *err);

/* Reads, or passes over, the value of member |key|; |user| is the caller's. */
typedef enum status json_member_f(struct json *in, const struct json_string *key, void *user,
                                  struct error *err);

/* |text| is one object: reads each of its members. */
MUST_CHECK enum status json_read_members(struct span text, json_member_f *read, void *user,
                                         struct error *err);

/* Reports an error of the caller's about the value read last; adds its path and offset. */
enum status json_fail(const struct json *in, struct error *err, enum status code, const char *fmt,
                      ...) __attribute__((format(printf, 4, 5)));

/* Tells whether the bracket at |at| closes behind a comma. Many languages allow that, JSON does
 * not. */
bool json_is_trailing_comma(const uint8_t *start, const uint8_t *at, const uint8_t *end);

/* The error about it; the argument is the bracket. */
#define JSON_TRAILING_COMMA "trailing comma: JSON has none before '%c'"

/* Returns "an object", "null" and so on, for "expected ..., got ...". Not for JSON_NOTHING. */
const char *json_type_text(enum json_type type);

/* Checks the string that opens at |*at| and moves |*at| behind it. Returns NULL; or the error, and
 * then |*at| points to the bad byte. */
const char *json_string_scan(const uint8_t **at, const uint8_t *end, struct json_string *out);

/* Decodes into |dst|, which has room for string->bytes. */
void json_string_decode(const struct json_string *string, uint8_t *dst);

/*
 * Decodes the string for as long as |arena| lives. json_string_copy() makes a copy with a NUL
 * behind it. json_string_take() makes none of a string without escapes: |*out| lies in the text
 * then. They fail as arena_fail() does, for |what|.
 */
struct arena;
MUST_CHECK enum status json_string_copy(const struct json_string *string, struct arena *arena,
                                        const char *what, struct span *out, struct error *err);
MUST_CHECK enum status json_string_take(const struct json_string *string, struct arena *arena,
                                        const char *what, struct span *out, struct error *err);

/* Do they decode to the same bytes? */
bool json_string_equal(const struct json_string *a, const struct json_string *b);

/* Does it decode to |text|? */
bool json_string_is_text(const struct json_string *string, struct span text);

/* Is the string equal to |text|, a literal of ours that needs no escapes? */
static inline bool json_string_is(const struct json_string *string, const char *text)
{
    const struct span name = span_str(text);
    if (string->bytes != name.len) {
        return false; /* most strings have no escapes; the compiler knows the length of a literal */
    }
    return string->raw.len == name.len ? span_equal(string->raw, name)
                                       : json_string_is_text(string, name);
}

/* Is |text| valid UTF-8? */
bool json_is_utf8(struct span text);

/* Writes |text| quoted. Bytes that are not UTF-8 become U+FFFD, so that the output is always JSON.
 */
void json_print_string(struct buf *out, struct span text);

#endif
