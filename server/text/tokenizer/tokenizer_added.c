/* SPDX-License-Identifier: MIT */
/* Added tokens: texts with ids of their own, which are found before a text is split into words. */
#include "config.h"

#include <stdlib.h>

#include "server/text/tokenizer/tokenizer_priv.h"

static enum status make_added_trie(struct tokenizer *tokenizer, bool is_normalized,
                                   struct trie *trie, bool *out_has, struct error *err)
{
    size_t count = 0, bytes = tokenizer->added_count + 1;
    struct trie_entry *entries = calloc(bytes, sizeof(*entries));
    if (!entries) {
        return error_no_memory(err, "the added tokens");
    }
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        if (tokenizer->added[i].is_normalized == is_normalized) {
            entries[count++] =
                (struct trie_entry){.text = tokenizer->added[i].text, .value = (uint32_t)i};
        }
    }
    *out_has = count > 0;
    enum status status = trie_init(trie, entries, count, err);
    free(entries);
    return status;
}

/* A token that is looked for in the normal form is brought into that form, and decodes to it. */
static enum status normalize_added(struct tokenizer *tokenizer, struct encoder *encoder,
                                   struct error *err)
{
    encoder->err = err;
    for (size_t i = 0; i < tokenizer->added_count; i++) {
        struct added_token *added = &tokenizer->added[i];
        if (added->is_normalized && tokenizer->normal_count > 0) {
            struct span form;
            size_t first_len = 0;
            TRY(normal_run(encoder, added->text, &first_len, &form));
            if (!span_equal(form, added->text) && !vocab_has(&tokenizer->forms, added->id)) {
                TRY(vocab_add_again(&tokenizer->forms, added->id, form, err));
            }
            TRY(tokenizer_copy(tokenizer, form, &added->text, err));
        }
    }
    return ST_OK;
}

/* The library leaves out a token whose text, as it decodes to, is a special token's as the file has
 * it. */
static void mark_left_out(struct tokenizer *tokenizer)
{
    for (uint32_t id = 0; id < tokenizer->size; id++) {
        uint32_t found = id;
        bool is_known = !vocab_has(&tokenizer->forms, id) ||
                        tokenizer_find(tokenizer, vocab_text(&tokenizer->forms, id), &found);
        if (is_known && (tokenizer->flags[found] & TOKEN_SPECIAL)) {
            tokenizer->flags[id] |= TOKEN_LEFT_OUT;
        }
    }
}

enum status added_finish(struct tokenizer *tokenizer, struct error *err)
{
    struct encoder *encoder = encoder_new(tokenizer);
    if (!encoder) {
        return error_no_memory(err, "the added tokens");
    }
    enum status status = normalize_added(tokenizer, encoder, err);
    encoder_free(encoder);
    TRY(status);
    mark_left_out(tokenizer);
    TRY(make_added_trie(tokenizer, false, &tokenizer->raw_added, &tokenizer->has_raw_added, err));
    return make_added_trie(tokenizer, true, &tokenizer->normal_added, &tokenizer->has_normal_added,
                           err);
}

static bool is_word_at(struct span text, size_t at)
{
    size_t len;
    return at < text.len && unicode_is_word(unicode_next(text.ptr + at, &len));
}

static bool is_word_before(struct span text, size_t at)
{
    return at > 0 && is_word_at(text, at - unicode_last_len(span_of(text.ptr, at)));
}

static size_t skip_spaces_back(struct span text, size_t at, size_t least)
{
    while (at > least) {
        size_t len = unicode_last_len(span_of(text.ptr, at)), ignored;
        if (!unicode_is_space(unicode_next(text.ptr + at - len, &ignored))) {
            break;
        }
        at -= len;
    }
    return at < least ? least : at;
}

/* Behind the spaces at |at|. [*start, *end) are spaces that were found before, so that a run of
 * spaces that are tokens themselves is not searched again for each of them. */
static size_t skip_spaces(struct span text, size_t at, size_t *start, size_t *end)
{
    size_t len, from = at;
    if (at >= *start && at <= *end) {
        return *end;
    }
    while (at < text.len && unicode_is_space(unicode_next(text.ptr + at, &len))) {
        at += len;
    }
    *start = from;
    *end = at;
    return at;
}

/* The longest added token at |at|, if it counts; its length in |*out_len| even if it does not. */
static const struct added_token *find_added(struct encoder *encoder, const struct trie *trie,
                                            struct span text, size_t at, size_t *out_len)
{
    uint32_t value;
    *out_len = trie_longest(trie, span_of(text.ptr + at, text.len - at), &value);
    if (*out_len == 0) {
        return NULL;
    }
    const struct added_token *added = &encoder->tokenizer->added[value];
    if ((added->is_special && !encoder->parses_special) ||
        (added->is_single_word && (is_word_before(text, at) || is_word_at(text, at + *out_len)))) {
        return NULL;
    }
    return added;
}

enum status added_cut(struct encoder *encoder, const struct trie *trie, struct span text,
                      size_t first_len, added_part_f *part)
{
    size_t done = 0, spaces = SIZE_MAX, spaces_end = 0, len;
    for (size_t at = 0; at < text.len;) {
        if (!trie->root_child[text.ptr[at]]) {
            at++;
            continue;
        }
        const struct added_token *added = find_added(encoder, trie, text, at, &len);
        if (!added) {
            at += len ? len : 1;
            continue;
        }
        size_t start = at > done ? at : done, end = at + len;
        start = added->strips_left ? skip_spaces_back(text, start, done) : start;
        if (start > done) {
            TRY(part(encoder, span_of(text.ptr + done, start - done),
                     first_behind(first_len, done)));
        }
        at = end;
        end = added->strips_right ? skip_spaces(text, end, &spaces, &spaces_end) : end;
        if (start < end || !added->strips_left) { /* else the token before took its blanks */
            TRY(encoder_add(encoder, added->id));
        }
        done = end;
    }
    return done < text.len ? part(encoder, span_of(text.ptr + done, text.len - done),
                                  first_behind(first_len, done))
                           : ST_OK;
}
