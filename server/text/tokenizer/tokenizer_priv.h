/* SPDX-License-Identifier: MIT */
/*
 * The inside of a tokenizer. A file of any format becomes the same six parts: added tokens,
 * normalizer, pre-tokenizer, model, decoder, and a template for the tokens around a text.
 */
#ifndef PTED_SERVER_TEXT_TOKENIZER_TOKENIZER_PRIV_H
#define PTED_SERVER_TEXT_TOKENIZER_TOKENIZER_PRIV_H

#include <pthread.h>

#include "base/arena.h"
#include "server/text/tokenizer/charsmap.h"
#include "server/text/tokenizer/pattern.h"
#include "server/text/tokenizer/tokenizer.h"
#include "server/text/tokenizer/trie.h"
#include "server/text/tokenizer/unicode.h"
#include "server/text/tokenizer/vocab.h"

#define TOKENIZER_STEPS_MAX 24 /* of one chain, without the sequences that hold them */
#define TOKENIZER_FILE_MAX ((size_t)64 << 20)
#define TOKENIZER_ARENA_MAX ((size_t)64 << 20)
#define ENCODER_BYTES_MAX ((size_t)256 << 20) /* of a text in one of its forms */

#define META "\xe2\x96\x81" /* U+2581, which stands for a blank */
#define META_LEN 3

/* ---- models ---------------------------------------------------------------------------------- */

enum model_type { MODEL_BPE, MODEL_WORDPIECE, MODEL_UNIGRAM, MODEL_WORDLEVEL };

/* A pair of neighbours and what becomes of it. */
struct merge {
    uint64_t pair; /* left << 32 | right; UINT64_MAX: a free slot */
    uint32_t rank; /* lower ones first */
    uint32_t id;
};

struct token_model {
    enum model_type type;
    uint32_t unk_id; /* VOCAB_NONE: none */
    bool byte_fallback;
    bool fuse_unk;
    uint32_t fallback_ids[256]; /* of <0x00> to <0xFF>; VOCAB_NONE */

    /* BPE */
    struct merge *merges; /* owned */
    size_t merge_slots, merge_count;
    bool takes_bytes;       /* symbols are bytes, not characters */
    bool is_raw;            /* tokens are stored as bytes, not in the byte level alphabet */
    bool ignore_merges;     /* a word that is a token is that token */
    bool cuts_at_meta;      /* no token holds U+2581 behind another character */
    uint32_t byte_ids[256]; /* if |takes_bytes| */
    struct span prefix, suffix;
    struct vocab parts; /* SentencePiece: characters of tokens that are no tokens themselves */

    /* WordPiece, Unigram */
    struct trie trie;
    uint32_t prefix_node; /* WordPiece: behind |prefix|; 0: no token begins so */
    bool has_prefix;
    uint32_t chars_max; /* of a word */
    double *scores;     /* owned, by id */
    double unk_score;

    /* SentencePiece */
    uint8_t *piece_types; /* owned, by id; NULL: another format */
    struct trie user_defined;
    bool has_user_defined;
};

/* ---- the chains ------------------------------------------------------------------------------ */

enum normal_kind {
    NORMAL_FORM,
    NORMAL_LOWERCASE,
    NORMAL_STRIP_ACCENTS,
    NORMAL_STRIP,
    NORMAL_REPLACE,
    NORMAL_PREPEND,
    NORMAL_CHARSMAP,
    NORMAL_NMT,
    NORMAL_BYTES,
    NORMAL_BERT_CLEAN,
    NORMAL_BERT_CHINESE,
    NORMAL_BERT_ACCENTS,
};

struct normal_step {
    enum normal_kind kind;
    enum unicode_form form;
    bool strips_left, strips_right;
    struct pattern *pattern; /* owned; NULL: |literal| */
    struct span literal, content;
    struct charsmap *charsmap; /* owned */
};

enum split_kind {
    SPLIT_PATTERN,
    SPLIT_LITERAL,
    SPLIT_SPACE,
    SPLIT_PUNCTUATION,
    SPLIT_DIGITS,
    SPLIT_WORDS,
    SPLIT_METASPACE,
    SPLIT_BYTES, /* as the byte level's alphabet, where other steps follow */
    SPLIT_PREFIX_SPACE,
    SPLIT_LENGTH,
};

enum split_behavior {
    BEHAVIOR_REMOVED,
    BEHAVIOR_ISOLATED,
    BEHAVIOR_MERGED_WITH_PREVIOUS,
    BEHAVIOR_MERGED_WITH_NEXT,
    BEHAVIOR_CONTIGUOUS,
};

enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };

struct split_step {
    enum split_kind kind;
    enum split_behavior behavior;
    bool is_inverted;
    struct pattern *pattern; /* owned */
    struct span literal;     /* or the replacement of Metaspace */
    enum prepend_scheme scheme;
    bool splits; /* Metaspace */
    size_t length;
};

enum decode_kind {
    DECODE_JOIN, /* without a decoder: tokens with blanks between them */
    DECODE_BYTE_LEVEL,
    DECODE_RAW_BYTES,
    DECODE_BYTE_FALLBACK,
    DECODE_METASPACE,
    DECODE_WORDPIECE,
    DECODE_REPLACE,
    DECODE_STRIP,
    DECODE_FUSE,
    DECODE_BPE,
    DECODE_CTC,
    DECODE_SENTENCEPIECE,
};

struct decode_step {
    enum decode_kind kind;
    struct pattern *pattern; /* owned */
    struct span literal, content;
    bool cleans_up;
    enum prepend_scheme scheme;
    size_t start, stop;
    bool holds; /* one token, but only at the end: a later step needs it whole */
};

enum template_kind { TEMPLATE_FIRST, TEMPLATE_SECOND, TEMPLATE_IDS };

struct template_item {
    enum template_kind kind;
    uint32_t type_id;
    const uint32_t *ids;
    size_t id_count;
};

struct template
{
    const struct template_item *items;
    size_t count;
};

struct added_token {
    struct span text;
    uint32_t id;
    bool is_special, is_normalized, strips_left, strips_right, is_single_word;
};

/* How SentencePiece treats blanks. */
struct sentencepiece {
    bool adds_dummy_prefix, removes_extra_spaces, escapes_spaces, suffixes_space;
    struct charsmap *charsmap; /* owned */
    struct span unk_surface;
};

struct encoder;

struct tokenizer {
    uint32_t magic;
    struct arena arena;
    struct vocab vocab; /* the model's */
    struct vocab extra; /* added tokens that the model does not have */
    struct vocab forms; /* what added tokens decode to, where that is not their text */
    uint32_t size;
    uint8_t *flags; /* owned, by id: TOKEN_... */
    struct token_model model;
    struct added_token *added; /* in the arena */
    size_t added_count;
    struct trie raw_added, normal_added; /* values are places in |added| */
    bool has_raw_added, has_normal_added;
    struct normal_step normal[TOKENIZER_STEPS_MAX];
    size_t normal_count;
    struct split_step split[TOKENIZER_STEPS_MAX];
    size_t split_count;
    bool marks_first; /* a step asks where a text begins: PREPEND_FIRST */
    struct decode_step decode[TOKENIZER_STEPS_MAX];
    size_t decode_count;
    struct template single, pair;
    bool is_sentencepiece;
    struct sentencepiece sentencepiece;
    uint32_t roles[TOKENIZER_PAD + 1];
    pthread_mutex_t mutex; /* of |encoders| */
    struct encoder *encoders;
    unsigned encoder_count;
    uint64_t digest[2]; /* of the file */
};

#define TOKENIZER_MAGIC 0x7e9a41c3u
#define TOKEN_ADDED 1
#define TOKEN_SPECIAL 2
#define TOKEN_LEFT_OUT 4 /* of a text without special tokens */

/* ---- encoders: what one thread needs for a text ---------------------------------------------- */

#define WORD_BYTES_MAX 22
#define WORD_IDS_MAX 8
#define WORD_SLOTS 16384

/* A word that was met before, and its tokens. */
struct word {
    uint64_t hash;
    uint8_t len, id_count;
    uint8_t text[WORD_BYTES_MAX];
    uint32_t ids[WORD_IDS_MAX];
};

struct symbol {
    uint32_t id;
    uint32_t previous, next; /* places; UINT32_MAX: none */
    bool is_gone, is_frozen;
};

/* The pairs of a long word that may be joined, see bpe.c. */
#define PAIR_TAILS 4096 /* a power of two */

struct pair_node {
    uint32_t left; /* place of the left symbol */
    uint32_t next; /* of its list; UINT32_MAX: none */
};

/* Pairs of one rank that become the same token, in the order of their places. */
struct pair_list {
    uint64_t order; /* rank << 32 | place of the first pair's left symbol */
    uint32_t id;
    uint32_t node; /* the first */
};

/* The end of a list that grows; the latest of those with the same remainder of the rank. A queue
 * that is empty has none, so words need not clear them. */
struct pair_tail {
    uint32_t rank, id;
    uint32_t last; /* node; UINT32_MAX: none */
};

struct pair_queue {
    struct pair_list *lists; /* owned; a heap */
    size_t list_count, capacity;
    struct pair_node *nodes; /* owned */
    size_t node_count, node_capacity;
    uint32_t free_node; /* the first node that is free again */
    struct pair_tail tails[PAIR_TAILS];
};

struct lattice_node {
    double score;
    uint32_t from; /* where the token that ends here begins; UINT32_MAX: not reached */
    uint32_t id;
};

struct encoder {
    struct encoder *next;
    const struct tokenizer *tokenizer;
    struct token_list *out; /* borrowed, during a call */
    size_t count_max;
    bool parses_special;
    struct error *err;
    struct pattern_scratch *scratch;
    struct unicode_codes codes;
    struct buf repaired, normal[2], word;
    struct buf stage[TOKENIZER_STEPS_MAX];
    struct word *words; /* owned; NULL until first needed */
    struct symbol *symbols;
    size_t symbol_capacity, symbol_count;
    struct pair_queue queue;
    struct lattice_node *lattice;
    size_t lattice_capacity;
};

/* Returns NULL: no memory. */
struct encoder *encoder_new(const struct tokenizer *tokenizer);
void encoder_free(struct encoder *encoder);

/* Appends a token; ST_TOO_LARGE beyond the maximum. */
MUST_CHECK enum status encoder_add_slow(struct encoder *encoder, uint32_t id);
static inline enum status encoder_add(struct encoder *encoder, uint32_t id)
{
    struct token_list *out = encoder->out;
    if (out->count < out->capacity && out->count < encoder->count_max) {
        out->ids[out->count++] = id;
        return ST_OK;
    }
    return encoder_add_slow(encoder, id);
}

/* Makes an array of at least |count| elements; the content is lost. */
MUST_CHECK enum status encoder_reserve(struct encoder *encoder, void **array, size_t *capacity,
                                       size_t count, size_t size);
MUST_CHECK enum status encoder_check(struct encoder *encoder, const struct buf *buf);

/* tokenizer_free()'s and the loaders' */
struct tokenizer *tokenizer_new(struct error *err);
MUST_CHECK enum status tokenizer_copy(struct tokenizer *tokenizer, struct span text,
                                      struct span *out, struct error *err);

MUST_CHECK enum status tokenizer_parse_json(struct tokenizer *tokenizer, struct span file,
                                            struct error *err);
MUST_CHECK enum status tokenizer_parse_sentencepiece(struct tokenizer *tokenizer, struct span file,
                                                     struct error *err);
MUST_CHECK enum status tokenizer_parse_ranks(struct tokenizer *tokenizer, struct span file,
                                             enum tokenizer_pattern pattern, struct error *err);

/* ---- added tokens ---------------------------------------------------------------------------- */

/* Makes the tries for added_cut() and what the tokens decode to, from the vocabulary and its flags.
 */
MUST_CHECK enum status added_finish(struct tokenizer *tokenizer, struct error *err);

/* |first_len|: so many bytes at the beginning come from the first character of the whole text, as
 * the client wrote it. 0: the whole text does not begin here. */
typedef enum status added_part_f(struct encoder *encoder, struct span text, size_t first_len);

/* Gives what lies between added tokens to |part|. */
MUST_CHECK enum status added_cut(struct encoder *encoder, const struct trie *trie, struct span text,
                                 size_t first_len, added_part_f *part);

/* ---- models ---------------------------------------------------------------------------------- */

void model_init(struct token_model *model);
void model_fini(struct token_model *model);

/* Encodes one word, a piece of text from the pre-tokenizer. */
MUST_CHECK enum status model_encode(struct encoder *encoder, struct span word);

MUST_CHECK enum status bpe_reserve(struct token_model *model, size_t merges, struct error *err);
MUST_CHECK enum status bpe_add_merge(struct token_model *model, uint64_t seed, uint32_t left,
                                     uint32_t right, uint32_t rank, uint32_t id, struct error *err);
MUST_CHECK enum status bpe_encode(struct encoder *encoder, struct span word);
void bpe_init_queue(struct pair_queue *queue);
void bpe_find_bytes(struct token_model *model, const struct vocab *vocab);
void bpe_find_cuts(struct token_model *model, const struct vocab *vocab);

MUST_CHECK enum status unigram_encode(struct encoder *encoder, struct span word);

/* Makes a trie of the ids of the vocabulary that |takes| accepts (NULL: all). */
MUST_CHECK enum status model_make_trie(struct trie *trie, const struct vocab *vocab,
                                       const uint8_t *types, unsigned type_set, struct error *err);

/* Finds the ids of <0x00> to <0xFF>. */
void model_find_fallback(struct token_model *model, const struct vocab *vocab);

/* ---- chains ---------------------------------------------------------------------------------- */

/* Runs the normalizer; |*out| lies in the encoder or is |text|. |*first_len| is that of |text|, and
 * becomes that of |*out| if the tokenizer marks the beginning of texts. */
MUST_CHECK enum status normal_run(struct encoder *encoder, struct span text, size_t *first_len,
                                  struct span *out);

/* Cuts |text| by the steps from |step| on and gives the parts to the model. */
MUST_CHECK enum status split_run(struct encoder *encoder, size_t step, struct span text,
                                 size_t first_len);

/* Returns the |first_len| of the part that begins at |start|. */
static inline size_t first_behind(size_t first_len, size_t start)
{
    return first_len > start ? first_len - start : 0;
}

MUST_CHECK enum status sentencepiece_encode(struct encoder *encoder, struct span text,
                                            bool is_first);

/* The byte level's alphabet: a character for each byte. */
extern const uint16_t byte_level_code[256];
/* Returns the byte of |code|, or -1. */
int byte_level_byte(uint32_t code);
void byte_level_add(struct buf *out, struct span bytes);

/* SentencePiece's types of pieces; see sentencepiece_model.proto. */
enum piece_type {
    PIECE_NORMAL = 1,
    PIECE_UNKNOWN = 2,
    PIECE_CONTROL = 3,
    PIECE_USER_DEFINED = 4,
    PIECE_UNUSED = 5,
    PIECE_BYTE = 6,
};

#endif
