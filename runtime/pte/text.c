/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/text.h"

/* Bytes of the character that |lead| begins, and the first code point that needs so many; or 0. */
static size_t character_bytes(uint8_t lead, uint32_t *out_min)
{
    if (lead < 0x80) {
        *out_min = 0;
        return 1;
    }
    if ((lead & 0xe0) == 0xc0) {
        *out_min = 0x80;
        return 2;
    }
    if ((lead & 0xf0) == 0xe0) {
        *out_min = 0x800;
        return 3;
    }
    *out_min = 0x10000;
    return (lead & 0xf8) == 0xf0 ? 4 : 0;
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

bool pte_text_is_plain(struct span text)
{
    size_t len;
    for (size_t i = 0; i < text.len; i += len) {
        uint32_t min;
        len = character_bytes(text.ptr[i], &min);
        if (len == 0 || !in_range(i, len, text.len)) {
            return false;
        }
        uint32_t c = len == 1 ? text.ptr[i] : text.ptr[i] & (0x7fu >> len);
        for (size_t k = 1; k < len; k++) {
            uint8_t next = text.ptr[i + k];
            if ((next & 0xc0) != 0x80) {
                return false;
            }
            c = c << 6 | (next & 0x3fu);
        }
        if (c < min || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || is_control(c)) {
            return false;
        }
    }
    return true;
}
