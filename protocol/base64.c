/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/base64.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

#define NO_DIGIT 64

size_t base64_bytes(struct span text)
{
    size_t padding = 0;
    while (padding < 2 && padding < text.len && text.ptr[text.len - 1 - padding] == '=') {
        padding++;
    }
    size_t bytes = text.len / 4 * 3;
    return bytes > padding ? bytes - padding : 0;
}

/* 'A' is 0, '/' is 63. */
static uint32_t digit_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A' + 0u;
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26u;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52u;
    }
    return c == '+' ? 62 : c == '/' ? 63 : NO_DIGIT;
}

/* Decodes four characters to |count| bytes, 1 to 3. False: they do not encode |count| bytes. */
static bool decode_group(const uint8_t *text, uint8_t *dst, size_t count)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t digit = i > count ? 0 : digit_of(text[i]);
        if (digit == NO_DIGIT || (i > count && text[i] != '=')) {
            return false;
        }
        bits = bits << 6 | digit;
    }
    for (size_t i = 0; i < count; i++) {
        dst[i] = (uint8_t)(bits >> (16 - 8 * i));
    }
    return count == 3 || (bits & (0xffffu >> (8 * (count - 1)))) == 0;
}

enum status base64_decode(struct span text, void *dst, size_t bytes, struct error *err)
{
    uint8_t *out = dst;
    must(text.len == base64_text_bytes(bytes));
    for (size_t at = 0, done = 0; done < bytes; at += 4, done += 3) {
        if (!decode_group(text.ptr + at, out + done, bytes - done < 3 ? bytes - done : 3)) {
            return error_set(err, ST_INVALID, ": malformed base64 in characters %zu to %zu", at,
                             at + 3);
        }
    }
    return ST_OK;
}

void base64_print(struct buf *out, struct span bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t *to = buf_reserve(out, base64_text_bytes(bytes.len));
    if (!to) {
        return;
    }
    for (size_t at = 0; at < bytes.len; at += 3, to += 4) {
        size_t left = bytes.len - at;
        uint32_t bits = (uint32_t)bytes.ptr[at] << 16;
        bits |= left > 1 ? (uint32_t)bytes.ptr[at + 1] << 8 : 0;
        bits |= left > 2 ? bytes.ptr[at + 2] : 0;
        to[0] = (uint8_t)digits[bits >> 18];
        to[1] = (uint8_t)digits[bits >> 12 & 63];
        to[2] = left > 1 ? (uint8_t)digits[bits >> 6 & 63] : '=';
        to[3] = left > 2 ? (uint8_t)digits[bits & 63] : '=';
    }
    buf_commit(out, base64_text_bytes(bytes.len));
}
