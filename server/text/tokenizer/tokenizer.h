/* SPDX-License-Identifier: MIT */
/*
 * Tokenizers: text to the numbers of tokens and back, as the files say that models come with.
 *
 * Three formats are read: tokenizer.json of Hugging Face, tokenizer.model of SentencePiece, and
 * lists of ranks as tiktoken has them. docs/reference/tokenizers.md says what of each is read and
 * what is refused. A tokenizer is immutable after tokenizer_load(), so any number of threads may
 * use it at once; a stream belongs to one thread at a time. No function here takes a lock that
 * another call may hold for long.
 *
 * Texts may have any bytes. Bytes that are not UTF-8 count as U+FFFD, one for each longest wrong
 * part, as Python's errors="replace" does.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_TOKENIZER_H
#define PTED_SERVER_TEXT_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

struct tokenizer;

/* The patterns that are known by name, for lists of ranks: the list has only tokens, but neither
 * the pattern that cuts a text nor the special tokens. */
enum tokenizer_pattern {
    TOKENIZER_PATTERN_AUTO, /* by the number of ranks, see docs/reference/tokenizers.md */
    TOKENIZER_PATTERN_GPT2, /* also r50k and p50k */
    TOKENIZER_PATTERN_CL100K,
    TOKENIZER_PATTERN_O200K,
    TOKENIZER_PATTERN_LLAMA3,
};

/* Loads the file at |path|, or the first of tokenizer.json, tokenizer.model and *.tiktoken in the
 * folder at |path|. The content decides on the format, not the name. Blocks; the text of an error
 * begins with the path of the file, and with line and column if the file is JSON. Fails with
 * ST_NOT_FOUND, ST_CORRUPT (damaged), ST_UNSUPPORTED (a construct that is not known), ST_TOO_LARGE,
 * ST_UNAVAILABLE (a library is missing) and ST_EXHAUSTED. */
MUST_CHECK enum status tokenizer_load(const char *path, struct tokenizer **out, struct error *err);

/* Does the same with a pattern for lists of ranks; other formats ignore it. */
MUST_CHECK enum status tokenizer_load_pattern(const char *path, enum tokenizer_pattern pattern,
                                              struct tokenizer **out, struct error *err);

/* Finds the pattern of this name: "auto", "gpt2", "cl100k", "o200k", "llama3". */
bool tokenizer_pattern_find(const char *name, enum tokenizer_pattern *out);

/* Does the same from the content of a file. */
MUST_CHECK enum status tokenizer_parse(struct span file, enum tokenizer_pattern pattern,
                                       struct tokenizer **out, struct error *err);

void tokenizer_free(struct tokenizer *tokenizer);

/* Were both made from files of the same content? Whatever is at their paths now. */
bool tokenizer_is_same(const struct tokenizer *a, const struct tokenizer *b);

/* ---- text to tokens -------------------------------------------------------------------------- */

enum tokenizer_flags {
    /* with the tokens that the file's post-processor puts around a text */
    TOKENIZER_ADD_SPECIAL = 1,
    TOKENIZER_PARSE_SPECIAL = 2, /* special tokens that are written in the text become their ids */
};

/* Numbers of tokens; grows. */
struct token_list {
    uint32_t *ids; /* owned */
    size_t count, capacity;
};

void token_list_init(struct token_list *list);
void token_list_fini(struct token_list *list);

/* Fails with ST_EXHAUSTED: no memory; the list is unchanged. */
MUST_CHECK enum status token_list_add(struct token_list *list, uint32_t id, struct error *err);

/* Appends the tokens of |text| to |out|. Fails with ST_TOO_LARGE if the text has more than
 * |tokens_max| tokens (or |text| more than TOKENIZER_TEXT_MAX bytes), with ST_INVALID if a pattern
 * of the file needs too many steps for it, and with ST_EXHAUSTED; |out| then has what it had.
 * The time is n log n, also for texts that are made to be slow. */
MUST_CHECK enum status tokenizer_encode(const struct tokenizer *tokenizer, struct span text,
                                        unsigned flags, size_t tokens_max, struct token_list *out,
                                        struct error *err);

/* Does the same for a pair of texts, as the file's post-processor joins them (for rerankers). If
 * |out_second| is not NULL it becomes the number of type 1 tokens' first index in |out|, or the
 * count of |out| if there is none. */
MUST_CHECK enum status tokenizer_encode_pair(const struct tokenizer *tokenizer,
                                             const struct span texts[2], unsigned flags,
                                             size_t tokens_max, struct token_list *out,
                                             size_t *out_second, struct error *err);

#define TOKENIZER_TEXT_MAX ((size_t)64 << 20)

/* ---- tokens to text -------------------------------------------------------------------------- */

/* Appends the text of |ids|. Ids outside of the vocabulary are left out, as the Python library
 * does. Bytes of tokens that make no UTF-8 become U+FFFD. Fails with ST_TOO_LARGE or ST_EXHAUSTED
 * if |out| does. */
MUST_CHECK enum status tokenizer_decode(const struct tokenizer *tokenizer, const uint32_t *ids,
                                        size_t count, bool skip_special, struct buf *out,
                                        struct error *err);

/* Tokens that come one after the other. All that was pushed and the end give the text that
 * tokenizer_decode() gives for all ids together; each push gives whole characters only, and as
 * many as no later token can change. */
struct tokenizer_stream {
    const struct tokenizer *tokenizer; /* borrowed */
    bool skip_special;
    struct decoding *decoding; /* owned; NULL until the first push */
};

void tokenizer_stream_init(struct tokenizer_stream *stream, const struct tokenizer *tokenizer,
                           bool skip_special);
void tokenizer_stream_fini(struct tokenizer_stream *stream);
MUST_CHECK enum status tokenizer_stream_push(struct tokenizer_stream *stream, uint32_t id,
                                             struct buf *out, struct error *err);

/* Appends what was held back. The stream may then be used for another text. */
MUST_CHECK enum status tokenizer_stream_end(struct tokenizer_stream *stream, struct buf *out,
                                            struct error *err);

/* ---- the vocabulary -------------------------------------------------------------------------- */

/* Returns one more than the largest id, added tokens included. There may be ids without a token. */
uint32_t tokenizer_size(const struct tokenizer *tokenizer);

/* Returns the bytes of the longest token as it is stored, which no token's part of a text exceeds:
 * unless a normalizer shortens texts, or an unknown token stands for several characters. */
uint32_t tokenizer_longest(const struct tokenizer *tokenizer);

/* Finds the id of the token that is stored as |text|. */
bool tokenizer_find(const struct tokenizer *tokenizer, struct span text, uint32_t *out_id);

/* Returns the token as it is stored, e.g. "Ġthe" or "▁the" or "<0x0A>"; empty: there is no such
 * token. An added token that is found in the normal form of texts has that form. */
struct span tokenizer_text(const struct tokenizer *tokenizer, uint32_t id);

bool tokenizer_is_special(const struct tokenizer *tokenizer, uint32_t id);

/* Gives the bytes that the token stands for inside of a text, without what a decoder does at the
 * beginning of one: " the" for "Ġthe", "\n" for "<0x0A>". Constrained output needs them. Appends
 * nothing for special tokens and ids without a token. */
MUST_CHECK enum status tokenizer_bytes(const struct tokenizer *tokenizer, uint32_t id,
                                       struct buf *out, struct error *err);

/* The role of a token, if the file tells it: SentencePiece says all four; tokenizer.json tells the
 * unknown token in its model, and the others by the post-processor's first and last token and by
 * customary names. Cards and tokenizer_config.json know better. */
enum tokenizer_role {
    TOKENIZER_BOS,
    TOKENIZER_EOS,
    TOKENIZER_UNK,
    TOKENIZER_PAD,
};
bool tokenizer_find_role(const struct tokenizer *tokenizer, enum tokenizer_role role,
                         uint32_t *out_id);

#endif
