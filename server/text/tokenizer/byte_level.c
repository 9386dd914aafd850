/* SPDX-License-Identifier: MIT */
/*
 * The byte level's alphabet: printable characters of Latin-1 stand for themselves, the other 68
 * bytes are U+0100 and following, in order (GPT-2's bytes_to_unicode()).
 */
#include "config.h"

#include "server/text/tokenizer/tokenizer_priv.h"

#define SELF8(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7

const uint16_t byte_level_code[256] = {
    SELF8(256), SELF8(264), SELF8(272), SELF8(280), /* 0x00 to 0x1f */
    288,                                            /* the blank */
    33,         34,         35,         36,         37,         38,         39,
    SELF8(40),  SELF8(48),  SELF8(56),  SELF8(64),  SELF8(72),  SELF8(80),  SELF8(88),
    SELF8(96),  SELF8(104), SELF8(112), 120,        121,        122,        123,
    124,        125,        126,        289,        /* 0x7f */
    SELF8(290), SELF8(298), SELF8(306), SELF8(314), /* 0x80 to 0x9f */
    322,                                            /* 0xa0 */
    161,        162,        163,        164,        165,        166,        167,
    168,        169,        170,        171,        172,        323, /* 0xad */
    174,        175,        SELF8(176), SELF8(184), SELF8(192), SELF8(200), SELF8(208),
    SELF8(216), SELF8(224), SELF8(232), SELF8(240), SELF8(248)};

int byte_level_byte(uint32_t code)
{
    if (code >= 256) {
        return code < 289   ? (int)code - 256
               : code < 290 ? 0x7f
               : code < 323 ? (int)code - 290 + 0x80
               : code < 324 ? 0xad
                            : -1;
    }
    return byte_level_code[code] == code ? (int)code : -1;
}

void byte_level_add(struct buf *out, struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        unicode_add(out, byte_level_code[bytes.ptr[i]]);
    }
}
