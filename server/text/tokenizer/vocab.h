/* SPDX-License-Identifier: MIT */
/*
 * The tokens of a tokenizer by id and by text. Ids may have holes; a text or an id that comes twice
 * is refused. Built by one thread, then immutable.
 *
 * The hash has a seed, so that a file cannot be made whose tokens all collide.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_VOCAB_H
#define PTED_SERVER_TEXT_TOKENIZER_VOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "base/wide.h"

#define VOCAB_TOKENS_MAX ((uint32_t)4 << 20)
#define VOCAB_BYTES_MAX ((size_t)32 << 20)
#define VOCAB_NONE UINT32_MAX /* no token */

struct vocab_token {
    uint32_t at; /* in the pool; VOCAB_NONE: there is no such token */
    uint32_t len;
};

struct vocab {
    uint64_t seed;
    uint8_t *pool; /* owned; the texts one behind the other */
    size_t pool_len, pool_capacity;
    struct vocab_token *tokens; /* owned, by id */
    uint32_t size;              /* largest id + 1 */
    size_t capacity;
    uint32_t count;
    uint32_t longest;  /* bytes of the longest text */
    bool has_repeated; /* a text has several ids */
    uint64_t *slots;   /* owned; the upper half of the hash, and id + 1; 0: free */
    size_t slot_count;
};

/* |seed| from vocab_seed(). */
void vocab_init(struct vocab *vocab, uint64_t seed);
void vocab_fini(struct vocab *vocab);

/* Different in each process. */
uint64_t vocab_seed(void);

/* Reserves room for |count| tokens of |bytes| together; only a hint. */
MUST_CHECK enum status vocab_reserve(struct vocab *vocab, uint32_t count, size_t bytes,
                                     struct error *err);

/* Fails with ST_CORRUPT (twice), ST_TOO_LARGE and ST_EXHAUSTED. The text is copied. */
MUST_CHECK enum status vocab_add(struct vocab *vocab, uint32_t id, struct span text,
                                 struct error *err);

/* Does the same, but another id may have the text: the id that was added last is found. */
MUST_CHECK enum status vocab_add_again(struct vocab *vocab, uint32_t id, struct span text,
                                       struct error *err);

/* Returns the id of |text|, or VOCAB_NONE. */
uint32_t vocab_find(const struct vocab *vocab, struct span text);

static inline bool vocab_has(const struct vocab *vocab, uint32_t id)
{
    return id < vocab->size && vocab->tokens[id].at != VOCAB_NONE;
}

/* Empty for an id without a token. */
static inline struct span vocab_text(const struct vocab *vocab, uint32_t id)
{
    return vocab_has(vocab, id) ? span_of(vocab->pool + vocab->tokens[id].at, vocab->tokens[id].len)
                                : span_of(NULL, 0);
}

static inline uint64_t vocab_mix(uint64_t a, uint64_t b)
{
    struct wide_product product = wide_multiply(a, b);
    return product.low ^ product.high;
}

static inline uint64_t vocab_hash(uint64_t seed, const uint8_t *at, size_t len)
{
    uint64_t hash = seed ^ (len * UINT64_C(0x9e3779b97f4a7c15)), word = 0;
    for (; len >= 8; at += 8, len -= 8) {
        memcpy(&word, at, 8);
        hash = vocab_mix(hash ^ word, UINT64_C(0xbf58476d1ce4e5b9));
    }
    word = 0;
    if (len >= 4) {
        uint32_t low, high;
        memcpy(&low, at, 4);
        memcpy(&high, at + len - 4, 4);
        word = (uint64_t)high << 32 | low;
    } else if (len > 0) {
        word = (uint64_t)at[0] << 16 | (uint64_t)at[len >> 1] << 8 | at[len - 1];
    }
    return vocab_mix(hash ^ word, UINT64_C(0x94d049bb133111eb));
}

#endif
