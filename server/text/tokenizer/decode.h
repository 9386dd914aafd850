/* SPDX-License-Identifier: MIT */
/*
 * Decoders at work: tokens go in one after the other, text comes out. Each step of the chain has a
 * state, so all tokens at once and one by one give the same text.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_DECODE_H
#define PTED_SERVER_TEXT_TOKENIZER_DECODE_H

#include "server/text/tokenizer/tokenizer_priv.h"

struct decode_state {
    uint64_t token_count; /* that came in */
    struct buf held;      /* bytes or a token that wait for the next token */
    struct buf scratch;
    bool has_held;
    size_t cut; /* DECODE_STRIP: characters that were cut */
    bool is_cut_done;
    bool has_text; /* DECODE_SENTENCEPIECE */
    bool saw_blank;
};

struct decoding {
    const struct tokenizer *tokenizer; /* borrowed */
    bool skips_special;
    struct buf *out; /* borrowed, during a call */
    struct pattern_scratch *scratch;
    struct buf token;
    struct decode_state states[TOKENIZER_STEPS_MAX];
};

void decoding_init(struct decoding *decoding, const struct tokenizer *tokenizer,
                   bool skips_special);
void decoding_fini(struct decoding *decoding);
MUST_CHECK enum status decoding_push(struct decoding *decoding, uint32_t id, struct buf *out,
                                     struct error *err);

/* Gives the text that is held back. The decoding is then as at the beginning. */
MUST_CHECK enum status decoding_end(struct decoding *decoding, struct buf *out, struct error *err);

/* Appends the bytes that a token of this |text| stands for in the middle of a text. */
MUST_CHECK enum status decoding_token_bytes(const struct tokenizer *tokenizer, struct span text,
                                            struct buf *out, struct error *err);

#endif
