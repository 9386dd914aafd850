/* SPDX-License-Identifier: MIT */
/* Shared by models: a cache of words; and the small models. */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "server/text/tokenizer/tokenizer_priv.h"

void model_init(struct token_model *model)
{
    *model = (struct token_model){.unk_id = VOCAB_NONE};
    for (unsigned i = 0; i < 256; i++) {
        model->fallback_ids[i] = model->byte_ids[i] = VOCAB_NONE;
    }
}

void model_fini(struct token_model *model)
{
    free(model->merges);
    free(model->scores);
    free(model->piece_types);
    vocab_fini(&model->parts);
    trie_fini(&model->trie);
    trie_fini(&model->user_defined);
}

enum status model_make_trie(struct trie *trie, const struct vocab *vocab, const uint8_t *types,
                            unsigned type_set, struct error *err)
{
    struct trie_entry *entries = calloc(vocab->count ? vocab->count : 1, sizeof(*entries));
    size_t count = 0;
    if (!entries) {
        return error_no_memory(err, "the vocabulary");
    }
    for (uint32_t id = 0; id < vocab->size; id++) {
        if (vocab_has(vocab, id) && (!types || type_set >> types[id] & 1)) {
            entries[count++] = (struct trie_entry){.text = vocab_text(vocab, id), .value = id};
        }
    }
    enum status status = trie_init(trie, entries, count, err);
    free(entries);
    return status;
}

void model_find_fallback(struct token_model *model, const struct vocab *vocab)
{
    static const char digits[] = "0123456789ABCDEF";
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
        model->fallback_ids[byte] = vocab_find(vocab, span_of(text, sizeof(text)));
    }
}

/* The longest token at each place, the first without the prefix and the others with it. */
static enum status encode_wordpiece(struct encoder *encoder, struct span word)
{
    const struct token_model *model = &encoder->tokenizer->model;
    const struct trie *trie = &model->trie;
    size_t start = 0, first = encoder->out->count, chars = 0;
    for (size_t i = 0; i < word.len; i++) {
        chars += (word.ptr[i] & 0xc0) != 0x80;
    }
    bool is_bad = chars > model->chars_max;
    while (!is_bad && start < word.len) {
        uint32_t node = start > 0 ? model->prefix_node : 0, id = VOCAB_NONE;
        size_t end = start;
        if (start > 0 && model->has_prefix && node == 0) {
            is_bad = true;
            break;
        }
        for (size_t i = start; i < word.len; i++) {
            node = trie_step(trie, node, word.ptr[i]);
            if (!node) {
                break;
            }
            if (trie->nodes[node].value != TRIE_NONE) {
                id = trie->nodes[node].value;
                end = i + 1;
            }
        }
        is_bad = id == VOCAB_NONE;
        if (!is_bad) {
            TRY(encoder_add(encoder, id));
            start = end;
        }
    }
    if (!is_bad) {
        return ST_OK;
    }
    encoder->out->count = first;
    return encoder_add(encoder, model->unk_id);
}

static enum status encode_wordlevel(struct encoder *encoder, struct span word)
{
    uint32_t id = vocab_find(&encoder->tokenizer->vocab, word);
    return encoder_add(encoder, id == VOCAB_NONE ? encoder->tokenizer->model.unk_id : id);
}

static enum status encode_any(struct encoder *encoder, struct span word)
{
    switch (encoder->tokenizer->model.type) {
    case MODEL_BPE:
        return bpe_encode(encoder, word);
    case MODEL_UNIGRAM:
        return unigram_encode(encoder, word);
    case MODEL_WORDPIECE:
        return encode_wordpiece(encoder, word);
    case MODEL_WORDLEVEL:
        return encode_wordlevel(encoder, word);
    }
    unreachable();
}

/* A text has few different words: the ids of a word are kept, if word and ids are short. */
static enum status encode_word(struct encoder *encoder, struct span word)
{
    struct token_list *out = encoder->out;
    if (word.len > WORD_BYTES_MAX || !encoder->words) {
        return encode_any(encoder, word);
    }
    uint64_t hash = vocab_hash(encoder->tokenizer->vocab.seed, word.ptr, word.len);
    struct word *kept = &encoder->words[(hash >> 20) & (WORD_SLOTS - 1)];
    if (kept->hash == hash && kept->len == word.len &&
        memcmp(kept->text, word.ptr, word.len) == 0) {
        for (unsigned i = 0; i < kept->id_count; i++) {
            TRY(encoder_add(encoder, kept->ids[i]));
        }
        return ST_OK;
    }
    size_t first = out->count;
    TRY(encode_any(encoder, word));
    if (out->count - first <= WORD_IDS_MAX) {
        kept->hash = hash;
        kept->len = (uint8_t)word.len;
        kept->id_count = (uint8_t)(out->count - first);
        memcpy(kept->text, word.ptr, word.len);
        if (kept->id_count) {
            memcpy(kept->ids, out->ids + first, kept->id_count * sizeof(kept->ids[0]));
        }
    }
    return ST_OK;
}

/* Where the next word of a text without a pre-tokenizer begins: before U+2581 behind another
 * character. */
static size_t find_cut(struct span text, size_t from)
{
    for (size_t at = from + 1; at + META_LEN <= text.len; at++) {
        const uint8_t *found = memchr(text.ptr + at, META[0] & 0xff, text.len - at);
        if (!found) {
            break;
        }
        at = (size_t)(found - text.ptr);
        if (at + META_LEN <= text.len && memcmp(found, META, META_LEN) == 0 &&
            (at < from + META_LEN || memcmp(found - META_LEN, META, META_LEN) != 0)) {
            return at;
        }
    }
    return text.len;
}

enum status model_encode(struct encoder *encoder, struct span word)
{
    if (word.len == 0) {
        return ST_OK;
    }
    if (!encoder->tokenizer->model.cuts_at_meta) {
        return encode_word(encoder, word);
    }
    for (size_t at = 0, end; at < word.len; at = end) {
        end = find_cut(word, at);
        TRY(encode_word(encoder, span_of(word.ptr + at, end - at)));
    }
    return ST_OK;
}
