/* SPDX-License-Identifier: MIT */
/*
 * Drafts: guesses at the next tokens of an answer, which one call of the model then checks
 * (runtime/call/speculation.h). They come from texts that are there already: the prompt, the answer
 * so far, and a text that the client expects the answer to be like. Where the last tokens have
 * stood before in these, the tokens that followed there are the guess. A guess costs no call, so
 * each token shows how often guesses are right, whether or not a call has checked them.
 *
 * Belongs to one generation and one thread at a time. Allocates nothing.
 */
#ifndef PTED_SERVER_LANGUAGE_DRAFTS_H
#define PTED_SERVER_LANGUAGE_DRAFTS_H

#include <stdbool.h>
#include <stdint.h>

/* Guesses at a time, which one call checks together with the token before them. */
#define DRAFTS_MAX 7

/* Matches of so many tokens and more are alike. */
#define DRAFTS_MATCH_MAX 4

struct drafts {
    const uint32_t *said; /* borrowed: the tokens of the client's text; NULL: none */
    uint32_t said_count;
    uint32_t said_at;              /* where the answer is in it, as far as is known */
    float rates[DRAFTS_MATCH_MAX]; /* right guesses of all, lately, by the length of the match */
    /* ---- the present guess ---- */
    uint32_t ids[DRAFTS_MAX];
    uint32_t count; /* 0: there is none */
    uint32_t match; /* tokens that are the same before it, up to DRAFTS_MATCH_MAX */
    bool is_said;   /* it comes from the client's text */
};

void drafts_init(struct drafts *drafts, const uint32_t *said, uint32_t said_count);

/* Guesses up to |max| tokens, at most DRAFTS_MAX, that follow the |count| tokens so far. Looks at
 * the last 65536 of them, and at twice as many of the client's text. */
void drafts_find(struct drafts *drafts, const uint32_t *tokens, uint32_t count, uint32_t max);

/*
 * Returns how many of the guessed tokens a call should check: so many that the answer is expected
 * to come soonest, by |ns|, the times of calls by their tokens: 1, 2, up to |tokens_max|. 0: none.
 */
uint32_t drafts_choose(const struct drafts *drafts, const uint64_t *ns, uint32_t tokens_max);

/* Call when the next tokens are known: the first |right| guesses were right, and the next one, if
 * |misses|, was not. */
void drafts_note(struct drafts *drafts, uint32_t right, bool misses);

#endif
