/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/text/tokenizer/vocab.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/array.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t process_seed;

static void make_seed(void)
{
    if (getrandom(&process_seed, sizeof(process_seed), GRND_NONBLOCK) !=
        (ssize_t)sizeof(process_seed)) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        process_seed = (uint64_t)now.tv_nsec * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)now.tv_sec;
    }
}

uint64_t vocab_seed(void)
{
    pthread_once(&once, make_seed);
    return process_seed;
}

void vocab_init(struct vocab *vocab, uint64_t seed)
{
    *vocab = (struct vocab){.seed = seed};
}

void vocab_fini(struct vocab *vocab)
{
    free(vocab->pool);
    free(vocab->tokens);
    free(vocab->slots);
    *vocab = (struct vocab){0};
}

static enum status reserve_pool(struct vocab *vocab, size_t needed, struct error *err)
{
    if (needed > VOCAB_BYTES_MAX) {
        return error_set(err, ST_TOO_LARGE, "the tokens have more than %zu bytes together",
                         VOCAB_BYTES_MAX);
    }
    return ARRAY_ROOM(vocab->pool, vocab->pool_capacity, needed)
               ? ST_OK
               : error_no_memory(err, "the vocabulary");
}

static enum status reserve_tokens(struct vocab *vocab, uint32_t needed, struct error *err)
{
    size_t old = vocab->capacity;
    if (needed > VOCAB_TOKENS_MAX) {
        return error_set(err, ST_TOO_LARGE, "token %u: the largest id may be %u", needed - 1,
                         VOCAB_TOKENS_MAX - 1);
    }
    if (!ARRAY_ROOM(vocab->tokens, vocab->capacity, needed)) {
        return error_no_memory(err, "the vocabulary");
    }
    for (size_t i = old; i < vocab->capacity; i++) {
        vocab->tokens[i] = (struct vocab_token){VOCAB_NONE, 0};
    }
    return ST_OK;
}

static void put_slot(uint64_t *slots, size_t slot_count, uint64_t hash, uint32_t id)
{
    size_t at = (size_t)hash & (slot_count - 1);
    while (slots[at]) {
        at = (at + 1) & (slot_count - 1);
    }
    slots[at] = (hash & UINT64_C(0xffffffff00000000)) | (id + 1);
}

static uint32_t find_hash(const struct vocab *vocab, uint64_t hash, struct span text);

/* At most half of the slots are in use. */
static enum status reserve_slots(struct vocab *vocab, uint32_t count, struct error *err)
{
    size_t slot_count = vocab->slot_count ? vocab->slot_count : 64;
    while (slot_count / 2 < count) {
        slot_count *= 2;
    }
    if (slot_count == vocab->slot_count) {
        return ST_OK;
    }
    uint64_t *slots = calloc(slot_count, sizeof(*slots));
    if (!slots) {
        return error_no_memory(err, "the vocabulary");
    }
    for (uint32_t id = 0; id < vocab->size; id++) {
        if (vocab_has(vocab, id)) {
            struct span text = vocab_text(vocab, id);
            uint64_t hash = vocab_hash(vocab->seed, text.ptr, text.len);
            if (find_hash(vocab, hash, text) == id) {
                put_slot(slots, slot_count, hash, id);
            }
        }
    }
    free(vocab->slots);
    vocab->slots = slots;
    vocab->slot_count = slot_count;
    return ST_OK;
}

enum status vocab_reserve(struct vocab *vocab, uint32_t count, size_t bytes, struct error *err)
{
    TRY(reserve_pool(vocab, bytes, err));
    TRY(reserve_tokens(vocab, count, err));
    return reserve_slots(vocab, count, err);
}

/* The slot of |text|; NULL: it has none. */
static uint64_t *find_slot(const struct vocab *vocab, uint64_t hash, struct span text)
{
    if (!vocab->slot_count) {
        return NULL;
    }
    for (size_t at = (size_t)hash & (vocab->slot_count - 1); vocab->slots[at];
         at = (at + 1) & (vocab->slot_count - 1)) {
        uint64_t slot = vocab->slots[at];
        if ((slot ^ hash) >> 32 == 0) {
            const struct vocab_token *token = &vocab->tokens[(uint32_t)slot - 1];
            if (token->len == text.len &&
                (text.len == 0 || memcmp(vocab->pool + token->at, text.ptr, text.len) == 0)) {
                return &vocab->slots[at];
            }
        }
    }
    return NULL;
}

static uint32_t find_hash(const struct vocab *vocab, uint64_t hash, struct span text)
{
    const uint64_t *slot = find_slot(vocab, hash, text);
    return slot ? (uint32_t)*slot - 1 : VOCAB_NONE;
}

uint32_t vocab_find(const struct vocab *vocab, struct span text)
{
    return find_hash(vocab, vocab_hash(vocab->seed, text.ptr, text.len), text);
}

static enum status add(struct vocab *vocab, uint32_t id, struct span text, bool may_repeat,
                       struct error *err)
{
    if (id >= VOCAB_TOKENS_MAX) {
        return error_set(err, ST_TOO_LARGE, "token '%.*s' has id %u; the largest may be %u",
                         SPAN_SHORT(text), id, VOCAB_TOKENS_MAX - 1);
    }
    if (vocab_has(vocab, id)) {
        return error_set(err, ST_CORRUPT, "tokens '%.*s' and '%.*s' have the same id %u",
                         SPAN_SHORT(vocab_text(vocab, id)), SPAN_SHORT(text), id);
    }
    size_t needed;
    if (!add_size(vocab->pool_len, text.len, &needed)) {
        return error_no_memory(err, "the vocabulary");
    }
    TRY(reserve_pool(vocab, needed, err));
    TRY(reserve_tokens(vocab, id + 1, err));
    TRY(reserve_slots(vocab, vocab->count + 1, err));
    uint64_t hash = vocab_hash(vocab->seed, text.ptr, text.len);
    uint64_t *slot = find_slot(vocab, hash, text);
    if (slot && !may_repeat) {
        return error_set(err, ST_CORRUPT, "ids %u and %u have the same token '%.*s'",
                         (uint32_t)*slot - 1, id, SPAN_SHORT(text));
    }
    if (text.len) {
        memcpy(vocab->pool + vocab->pool_len, text.ptr, text.len);
    }
    vocab->tokens[id] = (struct vocab_token){(uint32_t)vocab->pool_len, (uint32_t)text.len};
    vocab->pool_len = needed;
    vocab->size = id >= vocab->size ? id + 1 : vocab->size;
    vocab->count++;
    vocab->longest = text.len > vocab->longest ? (uint32_t)text.len : vocab->longest;
    vocab->has_repeated |= slot != NULL;
    if (slot) {
        *slot = (*slot & UINT64_C(0xffffffff00000000)) | (id + 1);
    } else {
        put_slot(vocab->slots, vocab->slot_count, hash, id);
    }
    return ST_OK;
}

enum status vocab_add(struct vocab *vocab, uint32_t id, struct span text, struct error *err)
{
    return add(vocab, id, text, false, err);
}

enum status vocab_add_again(struct vocab *vocab, uint32_t id, struct span text, struct error *err)
{
    return add(vocab, id, text, true, err);
}
