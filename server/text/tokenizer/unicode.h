/* SPDX-License-Identifier: MIT */
/*
 * Properties of characters, by the tables of utf8proc. The library is loaded when a tokenizer first
 * needs it. docs/reference/tokenizers.md says which versions of Unicode the engines have, and how
 * they differ.
 *
 * All texts here are valid UTF-8. Any thread.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_UNICODE_H
#define PTED_SERVER_TEXT_TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

/* Loads utf8proc; ST_UNAVAILABLE: it is not there. The functions below that say so need it. */
MUST_CHECK enum status unicode_load(struct error *err);

/* Returns the character at |at| in a valid text, which does not end there; it has |*out_len|
 * bytes. */
static inline uint32_t unicode_next(const uint8_t *at, size_t *out_len)
{
    if (*at < 0x80) {
        *out_len = 1;
        return *at;
    }
    if (*at < 0xe0) {
        *out_len = 2;
        return (uint32_t)(*at & 0x1f) << 6 | (at[1] & 0x3fu);
    }
    if (*at < 0xf0) {
        *out_len = 3;
        return (uint32_t)(*at & 0x0f) << 12 | (uint32_t)(at[1] & 0x3f) << 6 | (at[2] & 0x3fu);
    }
    *out_len = 4;
    return (uint32_t)(*at & 0x07) << 18 | (uint32_t)(at[1] & 0x3f) << 12 |
           (uint32_t)(at[2] & 0x3f) << 6 | (at[3] & 0x3fu);
}

/* Returns the length of the last character of a valid text. */
size_t unicode_last_len(struct span text);

/* Writes |code|; returns the number of bytes, at most 4. */
size_t unicode_put(uint32_t code, uint8_t out[4]);
void unicode_add(struct buf *out, uint32_t code);

/* Appends |bytes| with U+FFFD for each longest part that is no UTF-8. */
void unicode_repair(struct span bytes, struct buf *out);

/* Returns how many bytes at the end of |bytes| may be the beginning of a character; 0 to 3. */
size_t unicode_tail(struct span bytes);

/* White_Space of Unicode, which has not changed since version 6.3; needs no library. */
bool unicode_is_space(uint32_t code);

/* These need the library. */
bool unicode_is_mark(uint32_t code);            /* M */
bool unicode_is_nonspacing_mark(uint32_t code); /* Mn */
bool unicode_is_numeric(uint32_t code);         /* N */
bool unicode_is_punctuation(uint32_t code);     /* P, and the symbols of ASCII */
bool unicode_is_other(uint32_t code);           /* Cc, Cf, Co */
bool unicode_is_word(uint32_t code);            /* letters, marks, Nd, Pc, joiners */
void unicode_add_lower(struct buf *out, uint32_t code);
uint32_t unicode_lower(uint32_t code); /* the lower case that is one character */

/* Does a grapheme begin between |left| and |right|? |state| is 0 at the beginning of a text. */
bool unicode_is_boundary(uint32_t left, uint32_t right, int32_t *state);

enum unicode_form { UNICODE_NFC, UNICODE_NFD, UNICODE_NFKC, UNICODE_NFKD };

/* Appends |text| in a normal form. The time is n log n. |codes| is memory that is kept for the next
 * call: owned by the caller, freed by unicode_codes_fini(). */
struct unicode_codes {
    int32_t *ptr;
    size_t capacity;
};
void unicode_codes_fini(struct unicode_codes *codes);
MUST_CHECK enum status unicode_normalize(struct span text, enum unicode_form form,
                                         struct unicode_codes *codes, struct buf *out,
                                         struct error *err);

#endif
