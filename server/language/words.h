/* SPDX-License-Identifier: MIT */
/*
 * The words of a language model: text to the ids of its tokens, and back. Either a tokenizer says
 * what they are (server/text/tokenizer/tokenizer.h), or they are the 256 bytes.
 *
 * Words are immutable and may be used by any thread; a stream belongs to one thread at a time.
 */
#ifndef PTED_SERVER_LANGUAGE_WORDS_H
#define PTED_SERVER_LANGUAGE_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

struct token_list;
struct words;

#define WORDS_BYTES 256 /* the words of a model that knows bytes */

/* Tokens of a text are counted so far. */
#define WORDS_COUNT_MAX (1u << 20)

/* Makes words that are bytes. ST_EXHAUSTED. */
MUST_CHECK enum status words_new_bytes(struct words **out, struct error *err);

/* Loads the words of the tokenizer at |path|, a file or a folder: see tokenizer_load(). Blocks. */
MUST_CHECK enum status words_load(const char *path, struct words **out, struct error *err);
void words_free(struct words *words); /* NULL is fine */

/* Do both make the same of every text, because they were made from the same? */
bool words_are_same(const struct words *a, const struct words *b);

/* Returns one more than the largest id. */
uint32_t words_count(const struct words *words);

/* Returns the most bytes that |count| tokens are taken for: each is as long as the longest token of
 * the vocabulary, and at least 256 bytes, because one may stand for a run of unknown characters. */
size_t words_bytes_max(const struct words *words, uint32_t count);

/* Encoding takes up to 60 bytes of memory for each byte of a text, so a text that |max| tokens have
 * no room for is refused before that: "it has 900 bytes, expected at most 3 tokens, which ...". */
MUST_CHECK enum status words_verify_bytes(const struct words *words, struct span text, uint32_t max,
                                          struct error *err);

/* Room for the ids of a text. */
struct words_room {
    uint32_t *ids; /* borrowed; |max| of them */
    uint32_t max;
    uint32_t count; /* of the text: larger than |max| if only the first ids had room, or more than
                       WORDS_COUNT_MAX if there are too many to count, and then there are none */
};

/*
 * Puts the ids of |text| into |room|. |is_raw|: the text comes from a template, so nothing is put
 * around it, and a special token that is written in it is one.
 */
MUST_CHECK enum status words_encode(const struct words *words, struct span text, bool is_raw,
                                    struct words_room *room, struct error *err);

/*
 * Appends the ids of a text, or of a pair if |count| is 2, to |out|. |is_plain|: nothing is put
 * around them. |*out_second| is the index in |out| from which on tokens are of the second kind, or
 * the count of |out|. ST_TOO_LARGE: more than WORDS_COUNT_MAX.
 */
MUST_CHECK enum status words_encode_texts(const struct words *words, const struct span *texts,
                                          uint32_t count, bool is_plain, struct token_list *out,
                                          size_t *out_second, struct error *err);

/* Returns the id of padding, or 0 if the tokenizer knows none. */
uint32_t words_pad(const struct words *words);

/* Appends what the token stands for within a text: its bytes, which need not be UTF-8. */
MUST_CHECK enum status words_bytes(const struct words *words, uint32_t id, struct buf *out,
                                   struct error *err);

/* Finds a special token, which stands for no text of an answer. */
bool words_is_special(const struct words *words, uint32_t id);

/* Finds the id of the token that is stored as |text|. */
bool words_find(const struct words *words, struct span text, uint32_t *out_id);

/* Appends the text of |ids|. */
MUST_CHECK enum status words_decode(const struct words *words, const uint32_t *ids, uint32_t count,
                                    struct buf *out, struct error *err);

/* ---- ids that come one by one ---------------------------------------------------------------- */

struct words_stream;

MUST_CHECK enum status words_stream_new(const struct words *words, struct words_stream **out,
                                        struct error *err);
void words_stream_free(struct words_stream *stream); /* NULL is fine */

/* Appends the text that no later id can change, in whole characters. Bytes that make none become
 * U+FFFD. */
MUST_CHECK enum status words_stream_push(struct words_stream *stream, uint32_t id, struct buf *out,
                                         struct error *err);

/* Appends what was held back. Another text may follow. */
MUST_CHECK enum status words_stream_end(struct words_stream *stream, struct buf *out,
                                        struct error *err);

#endif
