/* SPDX-License-Identifier: MIT */
/*
 * Prompts with a gap (fill in the middle): a text before it, a text behind it, and tokens that say
 * to a model which is which. server/language/infill.def has the families; a card may name the
 * tokens. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_INFILL_H
#define PTED_SERVER_LANGUAGE_INFILL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct ask_prompt;
struct words;
struct words_room;

#define INFILL_ENDS_MAX 6

/* What a card says: the name of a row, or the tokens; |middle| may be NULL beside them. NULL: it
 * says nothing. */
struct infill_said {
    const char *name, *prefix, *suffix, *middle;
};

/* Of a vocabulary. */
struct infill_rules {
    bool is_known; /* it has such tokens */
    bool has_middle;
    uint32_t prefix, suffix, middle;
    bool has_repository, has_file; /* tokens before a name of a repository, of a file */
    uint32_t repository, file;
    uint32_t ends[INFILL_ENDS_MAX]; /* further tokens that end an answer */
    uint32_t end_count;
};

/* Finds the tokens. |said| may be NULL. ST_INVALID: the card names a row that is none, or a token
 * that the vocabulary has not. */
MUST_CHECK enum status infill_rules_init(struct infill_rules *rules, const struct words *words,
                                         const struct infill_said *said, struct error *err);

/* Fails with ST_INVALID if there are no such tokens, and says what is missing of model |name|,
 * which |member| of a request needs. */
MUST_CHECK enum status infill_check(const struct infill_rules *rules, const char *member,
                                    const char *name, struct error *err);

/*
 * Puts the ids of a prompt into |room|: what the tokenizer puts before any text, |before|, which is
 * a text or ids, and |after|, with the tokens of the rules. |room->count| as words_encode() has it.
 * ST_INVALID: a text has more bytes than |room->max| tokens can have.
 */
MUST_CHECK enum status infill_encode(const struct infill_rules *rules, const struct words *words,
                                     const struct ask_prompt *before, struct span after,
                                     struct words_room *room, struct error *err);

/* Appends the ids of a text behind a gap: without the blank that some tokenizers put before a text.
 * |room->count| as words_encode() has it. */
MUST_CHECK enum status infill_encode_rest(const struct words *words, struct span text,
                                          struct words_room *room, struct error *err);

#endif
