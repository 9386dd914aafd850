/* SPDX-License-Identifier: MIT */
/*
 * Borrowed bytes, and the only place where range arithmetic is written down. Sizes that come from a
 * file or a socket go through these functions: none of them can wrap.
 */
#ifndef PTED_BASE_BYTES_H
#define PTED_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Borrowed bytes: another object owns them. They are not terminated and may have any value. */
struct span {
    const uint8_t *ptr;
    size_t len;
};

static inline struct span span_of(const void *ptr, size_t len)
{
    return (struct span){(const uint8_t *)ptr, len};
}

static inline struct span span_str(const char *text)
{
    return span_of(text, strlen(text));
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Compares byte by byte, as memcmp() does; a prefix sorts first. */
static inline int span_compare(struct span a, struct span b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static inline bool span_is(struct span a, const char *text)
{
    return span_equal(a, span_str(text));
}

/* Is |a| this word, whose letters may be capitals or not? */
static inline bool span_is_word(struct span a, const char *word)
{
    return a.len == strlen(word) && strncasecmp((const char *)a.ptr, word, a.len) == 0;
}

static inline bool span_begins(struct span text, const char *prefix)
{
    size_t len = strlen(prefix);
    return text.len >= len && memcmp(text.ptr, prefix, len) == 0;
}

/* Is |byte| one of the characters of |set|, which is short? */
static inline bool byte_is_in(uint8_t byte, const char *set)
{
    bool is_in = false;
    for (; *set; set++) {
        is_in |= byte == (uint8_t)*set;
    }
    return is_in;
}

/* |text| without the characters of |blanks| at its beginning and end. */
static inline struct span span_trim(struct span text, const char *blanks)
{
    while (text.len > 0 && byte_is_in(text.ptr[0], blanks)) {
        text = span_of(text.ptr + 1, text.len - 1);
    }
    while (text.len > 0 && byte_is_in(text.ptr[text.len - 1], blanks)) {
        text.len--;
    }
    return text;
}

/* Does something stand in |text| before the end |end|? */
static inline bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

/* The two arguments for printf's "%.*s"; cuts the text after 4096 bytes. */
#define SPAN_FMT(s) (int)((s).len > 4096 ? 4096 : (s).len), (const char *)(s).ptr

/* The same for messages, which have little room: cuts the text after 64 bytes. */
#define SPAN_SHORT(s) (int)((s).len > 64 ? 64 : (s).len), (const char *)(s).ptr

/* Does [off, off+len) lie in [0, size)? Subtraction form: off+len is never computed. */
static inline bool in_range(uint64_t off, uint64_t len, uint64_t size)
{
    return off <= size && len <= size - off;
}

/* Stores the result and returns true, or returns false if the result does not fit. */
static inline bool add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool sub_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_sub_overflow(a, b, out);
}

/* |align| is a power of two. The caller guarantees that |n| + |align| cannot wrap. */
static inline size_t align_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

/* Reads big-endian at any alignment. */
static inline uint16_t load_be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Reads little-endian at any alignment. */
static inline uint16_t load_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t load_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t load_le64(const uint8_t *p)
{
    return (uint64_t)load_le32(p) | (uint64_t)load_le32(p + 4) << 32;
}

#endif
