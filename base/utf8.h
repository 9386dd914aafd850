/* SPDX-License-Identifier: MIT */
/* Well-formed UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing over U+10FFFF.
 */
#ifndef PTED_BASE_UTF8_H
#define PTED_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the well-formed sequence at |p|, where a byte above 0x7f stands; 0: there
 * is none. */
static inline size_t utf8_sequence(const uint8_t *p, const uint8_t *end)
{
    size_t len = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
    if (*p < 0xc2 || *p > 0xf4 || (size_t)(end - p) < len) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    int is_bad = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
                 (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f);
    return is_bad ? 0 : len;
}

/* Returns the code point of a sequence of |len| bytes for which utf8_sequence() gave |len|. */
static inline uint32_t utf8_code(const uint8_t *p, size_t len)
{
    uint32_t code = *p & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        code = code << 6 | (p[i] & 0x3fu);
    }
    return code;
}

/* Returns the most bytes of |text|, at most |len|, that end with a whole character; text[len]
 * exists. */
static inline size_t utf8_floor(const uint8_t *text, size_t len)
{
    while (len > 0 && (text[len] & 0xc0) == 0x80) {
        len--;
    }
    return len;
}

/* Marks the bytes of |word| that are zero, or that stand above one that is. */
static inline uint64_t utf8_mark_zeros(uint64_t word)
{
    return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
}

/* Are the eight bytes of |word| printable ASCII? */
static inline bool utf8_are_printable(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t controls = (word - ones * 0x20) & ~word & ones * 0x80;
    return ((word & ones * 0x80) | controls | utf8_mark_zeros(word ^ ones * 0x7f)) == 0;
}

/* Is it a C1 control, a separator of lines or paragraphs, or does it change the direction? */
static inline bool utf8_is_disruptive(uint32_t code)
{
    return (code >= 0x80 && code <= 0x9f) || code == 0x61c || (code >= 0x200e && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

#endif
