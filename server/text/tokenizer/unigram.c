/* SPDX-License-Identifier: MIT */
/*
 * Unigram: of all ways to cut a text into tokens, the one with the largest sum of scores (Viterbi).
 * The two libraries differ in details that decide ties. tokenizers adds doubles. SentencePiece adds
 * floats, scores user-defined pieces by their length, and joins unknown characters later.
 */
#include "config.h"

#include <stdlib.h>

#include "server/text/tokenizer/tokenizer_priv.h"

#define NONE UINT32_MAX

static void reach(struct lattice_node *node, double score, uint32_t from, uint32_t id)
{
    if (node->from == NONE || score > node->score) {
        *node = (struct lattice_node){score, from, id};
    }
}

/* SentencePiece ignores the score of a user-defined piece since 0.2.2: the longer, the better. */
static double score_of(const struct token_model *model, uint32_t id, size_t len)
{
    bool is_user_defined = model->piece_types && model->piece_types[id] == PIECE_USER_DEFINED;
    return is_user_defined ? 0.1 * (double)(len - 1) : model->scores[id];
}

static void walk(struct encoder *encoder, struct span word)
{
    const struct token_model *model = &encoder->tokenizer->model;
    const struct trie *trie = &model->trie;
    struct lattice_node *lattice = encoder->lattice;
    bool is_float = model->piece_types != NULL;
    size_t char_len;
    for (size_t at = 0; at < word.len; at += char_len) {
        double here = lattice[at].score;
        bool has_char = false;
        uint32_t node = 0;
        (void)unicode_next(word.ptr + at, &char_len);
        for (size_t end = at; end < word.len;) {
            node = trie_step(trie, node, word.ptr[end++]);
            if (!node) {
                break;
            }
            uint32_t id = trie->nodes[node].value;
            if (id == TRIE_NONE) {
                continue;
            }
            double sum = score_of(model, id, end - at);
            sum = is_float ? (double)((float)sum + (float)here) : sum + here;
            reach(&lattice[end], sum, (uint32_t)at, id);
            has_char |= end - at == char_len;
        }
        if (!has_char) {
            double sum = model->unk_score + here;
            reach(&lattice[at + char_len], is_float ? (double)(float)sum : sum, (uint32_t)at,
                  model->unk_id);
        }
    }
}

/* The places where tokens end, from the back to the front; in the |from| of the node before. */
static size_t turn_round(struct lattice_node *lattice, size_t size)
{
    /* |from| of each node on the way becomes the end of the token that begins there. */
    uint32_t end = (uint32_t)size, next = NONE, next_id = 0;
    size_t count = 0;
    while (true) {
        uint32_t from = lattice[end].from, id = lattice[end].id;
        lattice[end].from = next;
        lattice[end].id = next_id;
        if (end == 0) {
            return count;
        }
        next = end;
        next_id = id;
        end = from;
        count++;
    }
}

static enum status put_bytes(struct encoder *encoder, struct span text, bool *out_done)
{
    const struct token_model *model = &encoder->tokenizer->model;
    *out_done = false;
    for (size_t i = 0; i < text.len; i++) {
        if (model->fallback_ids[text.ptr[i]] == VOCAB_NONE) {
            return ST_OK;
        }
    }
    for (size_t i = 0; i < text.len; i++) {
        TRY(encoder_add(encoder, model->fallback_ids[text.ptr[i]]));
    }
    *out_done = true;
    return ST_OK;
}

/* A run of unknown characters. */
static enum status put_unknown(struct encoder *encoder, struct span text)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    const struct token_model *model = &tokenizer->model;
    if (!model->piece_types) {
        uint32_t id = vocab_find(&tokenizer->vocab, text);
        if (id != VOCAB_NONE) {
            return encoder_add(encoder, id);
        }
    }
    if (model->byte_fallback) {
        bool is_done;
        TRY(put_bytes(encoder, text, &is_done));
        if (is_done) {
            return ST_OK;
        }
    }
    return model->unk_id == VOCAB_NONE
               ? error_set(encoder->err, ST_INVALID,
                           "the text has a character that no token of the vocabulary has")
               : encoder_add(encoder, model->unk_id);
}

static enum status put_tokens(struct encoder *encoder, struct span word)
{
    const struct token_model *model = &encoder->tokenizer->model;
    const struct lattice_node *lattice = encoder->lattice;
    for (size_t at = 0; at < word.len;) {
        uint32_t id = lattice[at].id;
        size_t end = lattice[at].from, start = at;
        at = end;
        if (id != model->unk_id) {
            TRY(encoder_add(encoder, id));
            continue;
        }
        while (model->fuse_unk && at < word.len && lattice[at].id == model->unk_id) {
            at = lattice[at].from;
        }
        TRY(put_unknown(encoder, span_of(word.ptr + start, at - start)));
    }
    return ST_OK;
}

enum status unigram_encode(struct encoder *encoder, struct span word)
{
    TRY(encoder_reserve(encoder, (void **)&encoder->lattice, &encoder->lattice_capacity,
                        word.len + 1, sizeof(*encoder->lattice)));
    for (size_t i = 0; i <= word.len; i++) {
        encoder->lattice[i] = (struct lattice_node){.from = NONE};
    }
    walk(encoder, word);
    (void)turn_round(encoder->lattice, word.len);
    return put_tokens(encoder, word);
}
