/* SPDX-License-Identifier: MIT */
/*
 * Texts and pairs of texts as the ids that an encoder takes: within its length, cut if the client
 * wants that. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_TEXTS_H
#define PTED_SERVER_LANGUAGE_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

struct words;

struct texts_ids {
    const uint32_t *ids; /* in the arena */
    uint32_t count;
    uint32_t second; /* tokens from this one on are of the second text of a pair */
    bool is_cut;     /* there were more */
};

/* A text, or a pair of texts; borrowed. */
struct texts {
    struct span items[2];
    uint32_t count; /* 1 or 2 */
    uint32_t max;   /* tokens */
    bool cuts;      /* longer ones are cut, not refused */
};

/*
 * Encodes the ids of the texts. If there are more than |max|, the ends of the texts are cut off, as
 * the library tokenizers does it (for pairs "longest_first"), and the tokens around the texts stay;
 * without |cuts| they are refused with both numbers.
 */
MUST_CHECK enum status texts_encode(const struct words *words, const struct texts *texts,
                                    struct arena *arena, struct texts_ids *out, struct error *err);

/* Fails with "it has 900 tokens, the model takes at most 512". */
enum status texts_refuse_length(size_t count, uint32_t max, struct error *err);

#endif
