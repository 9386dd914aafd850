/* SPDX-License-Identifier: MIT */
/*
 * SentencePiece's precompiled map of characters: a double array of the sequences that are replaced,
 * and the replacements, each terminated. It has the form of Darts-clone (units of 32 bits), behind
 * a length of 4 bytes. Every number in it is checked when it is used, since the array is large and
 * a text meets few of its units. Immutable; any thread.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_CHARSMAP_H
#define PTED_SERVER_TEXT_TOKENIZER_CHARSMAP_H

#include "base/bytes.h"
#include "base/status.h"

struct charsmap;

/* Copies |bytes|. ST_CORRUPT if the parts do not fit. */
MUST_CHECK enum status charsmap_new(struct span bytes, struct charsmap **out, struct error *err);
void charsmap_free(struct charsmap *map);

/* Returns the longest, or the shortest, sequence that |text| begins with: its length, or 0. */
size_t charsmap_longest(const struct charsmap *map, struct span text, struct span *out);
size_t charsmap_shortest(const struct charsmap *map, struct span text, struct span *out);

#endif
