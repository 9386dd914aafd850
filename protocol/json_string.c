/* SPDX-License-Identifier: MIT */
/*
 * JSON strings. json_string_scan() checks a string once, when the reader meets it. Functions that
 * decode or compare it later rely on valid escapes and valid UTF-8.
 */
#include "config.h"

#include "protocol/json.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/utf8.h"
#include "protocol/json_priv.h"

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits, or -1. */
static int32_t read_hex4(const uint8_t *p, const uint8_t *end)
{
    int32_t value = 0;
    if (end - p < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(p[i]);
        if (digit < 0) {
            return -1;
        }
        value = value << 4 | digit;
    }
    return value;
}

static unsigned utf8_bytes(int32_t code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

/* The code point of "\uXXXX" or of a surrogate pair at |*p|, which is behind the 'u'; -1 if bad. */
static int32_t read_unicode_escape(const uint8_t **p, const uint8_t *end)
{
    int32_t code = read_hex4(*p, end);
    if (code < 0) {
        return -1;
    }
    *p += 4;
    if (code < 0xd800 || code > 0xdfff) {
        return code;
    }
    if (code > 0xdbff || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u') {
        return -1;
    }
    int32_t low = read_hex4(*p + 2, end);
    if (low < 0xdc00 || low > 0xdfff) {
        return -1;
    }
    *p += 6;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* How many of these eight bytes, in the order of memory, are ASCII characters that need no escape,
 * before the first byte that is not? A borrow can only reach bytes behind that first one. */
static unsigned count_plain_ascii(const uint8_t *p)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t word = load_le64(p);
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    uint64_t marks = ((word - ones * 0x20) | (quote - ones) | (backslash - ones) | word) & highs;
    return marks ? (unsigned)__builtin_ctzll(marks) / 8 : 8;
}

/* The byte that an escape stands for, from the byte after the backslash; 0 for 'u' and for bytes
 * that form no escape. */
static uint8_t unescape(uint8_t c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return c;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return 0;
    }
}

/* Moves |*at| behind the escape there and adds the length of its decoded bytes. Returns NULL or the
 * error. */
static const char *check_escape(const uint8_t **at, const uint8_t *end, size_t *bytes)
{
    const uint8_t *p = *at + 1;
    if (p < end && unescape(*p)) {
        *at = p + 1;
        *bytes += 1;
        return NULL;
    }
    if (p == end || *p != 'u') {
        return "unknown escape in a string";
    }
    p++;
    int32_t code = read_unicode_escape(&p, end);
    if (code < 0) {
        return "malformed \\u escape or lone surrogate in a string";
    }
    *at = p;
    *bytes += utf8_bytes(code);
    return NULL;
}

const char *json_string_scan(const uint8_t **at, const uint8_t *end, struct json_string *out)
{
    const uint8_t *first = ++*at;
    size_t bytes = 0;
    while (true) {
        while (end - *at >= 8) {
            unsigned count = count_plain_ascii(*at);
            *at += count;
            bytes += count;
            if (count < 8) {
                break;
            }
        }
        if (*at == end) {
            return "the text ends in a string";
        }
        uint8_t c = **at;
        if (c == '"') {
            break;
        }
        if (c == '\\') {
            const char *wrong = check_escape(at, end, &bytes);
            if (wrong) {
                return wrong;
            }
            continue;
        }
        if (c < 0x20) {
            return "control character in a string";
        }
        size_t len = c < 0x80 ? 1 : utf8_sequence(*at, end);
        if (len == 0) {
            return "invalid UTF-8 in a string";
        }
        *at += len;
        bytes += len;
    }
    *out = (struct json_string){span_of(first, (size_t)(*at - first)), bytes};
    ++*at;
    return NULL;
}

/* Decodes one character or escape of a checked string to 1 to 4 bytes. */
static unsigned decode_one(const uint8_t **p, const uint8_t *end, uint8_t out[4])
{
    uint8_t c = *(*p)++;
    if (c != '\\') {
        out[0] = c;
        return 1;
    }
    c = *(*p)++;
    if (c != 'u') {
        out[0] = unescape(c);
        return 1;
    }
    uint32_t code = (uint32_t)read_unicode_escape(p, end);
    unsigned len = utf8_bytes((int32_t)code);
    if (len == 1) {
        out[0] = (uint8_t)code;
        return 1;
    }
    for (unsigned i = len - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (uint8_t)(0xf00u >> len | code);
    return len;
}

void json_string_decode(const struct json_string *string, uint8_t *dst)
{
    const uint8_t *p = string->raw.ptr, *end = p + string->raw.len;
    if (string->raw.len == string->bytes) {
        if (string->bytes) {
            memcpy(dst, p, string->bytes);
        }
        return;
    }
    const uint8_t *first = dst;
    while (p < end) {
        uint8_t bytes[4];
        unsigned len = decode_one(&p, end, bytes);
        memcpy(dst, bytes, len);
        dst += len;
    }
    must((size_t)(dst - first) == string->bytes);
}

enum status json_string_copy(const struct json_string *string, struct arena *arena,
                             const char *what, struct span *out, struct error *err)
{
    uint8_t *copy = arena_alloc(arena, string->bytes + 1);
    if (!copy) {
        return arena_fail(arena, what, err);
    }
    json_string_decode(string, copy);
    copy[string->bytes] = '\0';
    *out = span_of(copy, string->bytes);
    return ST_OK;
}

enum status json_string_take(const struct json_string *string, struct arena *arena,
                             const char *what, struct span *out, struct error *err)
{
    if (string->raw.len == string->bytes) {
        *out = string->raw;
        return ST_OK;
    }
    uint8_t *bytes = arena_alloc(arena, string->bytes);
    if (!bytes) {
        return arena_fail(arena, what, err);
    }
    json_string_decode(string, bytes);
    *out = span_of(bytes, string->bytes);
    return ST_OK;
}

/* Walks a string byte by decoded byte. */
struct cursor {
    const uint8_t *at, *end;
    unsigned next, count;
    uint8_t bytes[4];
};

static int next_byte(struct cursor *cursor)
{
    if (cursor->next == cursor->count) {
        if (cursor->at == cursor->end) {
            return -1;
        }
        cursor->next = 0;
        cursor->count = decode_one(&cursor->at, cursor->end, cursor->bytes);
    }
    return cursor->bytes[cursor->next++];
}

bool json_string_equal(const struct json_string *a, const struct json_string *b)
{
    if (a->bytes != b->bytes) {
        return false;
    }
    if (a->raw.len == a->bytes && b->raw.len == b->bytes) {
        return span_equal(a->raw, b->raw);
    }
    struct cursor left = {.at = a->raw.ptr, .end = a->raw.ptr + a->raw.len};
    struct cursor right = {.at = b->raw.ptr, .end = b->raw.ptr + b->raw.len};
    int c;
    do {
        c = next_byte(&left);
        if (c != next_byte(&right)) {
            return false;
        }
    } while (c >= 0);
    return true;
}

bool json_string_is_text(const struct json_string *string, struct span text)
{
    struct cursor cursor = {.at = string->raw.ptr, .end = string->raw.ptr + string->raw.len};
    if (string->bytes != text.len) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (next_byte(&cursor) != text.ptr[i]) {
            return false;
        }
    }
    return true;
}

bool json_is_utf8(struct span text)
{
    const uint8_t *p = text.ptr, *end = p + text.len;
    while (p < end) {
        size_t len = *p < 0x80 ? 1 : utf8_sequence(p, end);
        if (len == 0) {
            return false;
        }
        p += len;
    }
    return true;
}

static void print_escape(struct buf *out, uint8_t c)
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *s = shorts; *s; s += 2) {
        if ((uint8_t)s[0] == c) {
            buf_add_char(out, '\\');
            buf_add_char(out, s[1]);
            return;
        }
    }
    buf_printf(out, "\\u%04x", c);
}

/* Longer texts are copied in pieces. */
#define SHORT_BYTES 32

/* A short text in which nothing has to be escaped, such as most names. False: it is another one. */
static bool print_short(struct buf *out, struct span text)
{
    uint8_t *room = text.len <= SHORT_BYTES ? buf_reserve(out, text.len + 2) : NULL;
    size_t i = 0;
    if (!room) {
        return false;
    }
    for (; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') {
            return false;
        }
        room[1 + i] = c;
    }
    room[0] = room[1 + i] = '"';
    buf_commit(out, text.len + 2);
    return true;
}

/* Any text; apart, so that the others need no frame. */
__attribute__((noinline)) static void print_any(struct buf *out, struct span text)
{
    const uint8_t *p = text.ptr, *end = p + text.len;
    buf_add_char(out, '"');
    while (p < end) {
        const uint8_t *plain = p;
        size_t len = 1;
        while (end - p >= 8 && count_plain_ascii(p) == 8) {
            p += 8;
        }
        while (p < end && len && *p >= 0x20 && *p != '"' && *p != '\\') {
            len = *p < 0x80 ? 1 : utf8_sequence(p, end);
            p += len;
        }
        buf_add(out, plain, (size_t)(p - plain));
        if (p == end) {
            break;
        }
        if (len == 0) {
            buf_add_str(out, "\xef\xbf\xbd");
        } else {
            print_escape(out, *p);
        }
        p++;
    }
    buf_add_char(out, '"');
}

void json_print_string(struct buf *out, struct span text)
{
    if (!print_short(out, text)) {
        print_any(out, text);
    }
}
