/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/percent.h"

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool percent_decode(struct span text, char *out, size_t max)
{
    size_t len = 0;
    out[0] = '\0'; /* a caller may show it, even if it is refused */
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c == '%') {
            int high = in_range(i + 1, 2, text.len) ? hex_digit(text.ptr[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(text.ptr[i + 2]) : -1;
            if (low < 0) {
                return false;
            }
            c = (uint8_t)(high << 4 | low);
            i += 2;
        }
        if (c < 0x20 || c == 0x7f || len == max) {
            return false;
        }
        out[len++] = (char)c;
        out[len] = '\0';
    }
    return true;
}
