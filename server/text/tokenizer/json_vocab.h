/* SPDX-License-Identifier: MIT */
/*
 * The two large members of tokenizer.json, "vocab" and "merges" of "model": they are read from the
 * text itself. As a tree of cJSON they would take a hundred bytes for each value, and most of the
 * time of loading. The rest of the document is read with server/process/document.h.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_JSON_VOCAB_H
#define PTED_SERVER_TEXT_TOKENIZER_JSON_VOCAB_H

#include "server/text/tokenizer/tokenizer_priv.h"

/* Where the members are in the file; empty: not there. */
struct json_vocab {
    struct span file;
    struct span vocab, merges;
};

/* Finds them. Errors of JSON elsewhere are found later, by the document. */
void json_vocab_find(struct span file, struct json_vocab *out);

/* Gives a copy of the file in which the members are the number 0 and blanks, so that each other
 * value has its line and its column. */
MUST_CHECK enum status json_vocab_blank(const struct json_vocab *vocab, struct buf *out,
                                        struct error *err);

bool json_vocab_is_list(const struct json_vocab *vocab);

/* {"a": 0, ...} */
MUST_CHECK enum status json_vocab_read_ids(const struct json_vocab *vocab, struct vocab *out,
                                           struct error *err);

/* [["a", -1.5], ...]; the scores go to model->scores. */
MUST_CHECK enum status json_vocab_read_scores(const struct json_vocab *vocab, struct vocab *out,
                                              struct token_model *model, struct error *err);

/* ["a b", ...] or [["a", "b"], ...] */
MUST_CHECK enum status json_vocab_read_merges(const struct json_vocab *vocab,
                                              const struct vocab *tokens, struct token_model *model,
                                              struct error *err);

#endif
