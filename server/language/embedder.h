/* SPDX-License-Identifier: MIT */
/*
 * Encoders of texts: a method is recognised as one when its file is loaded.
 *
 * A method is one if its inputs are named as the exporters of sentence encoders name them, and if
 * there is a tokenizer (server/language/sidecar.h says where):
 *
 *     input_ids, ids, tokens          int64 or int32 [b, n]; needed
 *     attention_mask, mask            integers, bool or float32 [b, n]: 1 for tokens of the text
 *     token_type_ids, segment_ids     integers [b, n]: 1 for tokens of the second text of a pair
 *     position_ids, positions         integers [b, n]: 0, 1, 2, ...
 *
 * With a card that says "embedding" the inputs may have no names: then they are these, in this
 * order. The result is the one called sentence_embedding or last_hidden_state, or the first: floats
 * [b, n, d], a state for each token, which are pooled, or [b, d], one vector for each text. [b, 1]
 * and [b] are scores: the method is a cross-encoder, which reads pairs of texts. b is 1, or varies.
 *
 * A method with [b, n, d] whose d is the size of the vocabulary gives logits of words and is no
 * encoder, unless a card says "embedding".
 *
 * Constant after embedder_new(); any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_EMBEDDER_H
#define PTED_SERVER_LANGUAGE_EMBEDDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"

struct rt_method;
struct words;

#define EMBEDDER_MAGIC 0x656d6265u

enum embedder_pooling {
    EMBEDDER_UNSAID,
    EMBEDDER_MEAN, /* of the states of all tokens */
    EMBEDDER_CLS,  /* the state of the first token */
    EMBEDDER_LAST, /* the state of the last token */
    /* of logits of words: for each word log(1 + x), x the greatest of all tokens, at least 0 */
    EMBEDDER_SPLADE,
    EMBEDDER_NONE, /* the program has done it */
};

enum embedder_input {
    EMBEDDER_IDS,
    EMBEDDER_MASK,
    EMBEDDER_TYPES,
    EMBEDDER_POSITIONS,
    EMBEDDER_INPUTS
};

#define EMBEDDER_ABSENT UINT32_MAX

/* Why a method counts as an encoder, the surest reason first. A classifier of texts has the inputs
 * and the shapes of one, too; so where a request names no model, the surest one is meant. */
enum embedder_claim {
    EMBEDDER_SAID,    /* the card says "embedding" */
    EMBEDDER_NAMED,   /* the result is called as one of vectors or states */
    EMBEDDER_SHAPED,  /* the result may be one */
    EMBEDDER_CLASSES, /* but it rather has scores of classes */
    EMBEDDER_CLAIMS
};

/* Settings of an encoder from its card. */
struct embedder_options {
    bool is_said;     /* it is an encoder, whatever its inputs are called */
    bool has_classes; /* the card has labels or an answer for a result */
    bool has_steps;   /* the card has steps behind a result, such as a softmax */
    enum embedder_pooling pooling;
    bool is_not_normalized;
    uint64_t max_tokens; /* 0: as many as the program takes */
    const char *prefix;  /* put before each text; NULL: nothing */
};

struct embedder {
    uint32_t magic;
    uint32_t inputs[EMBEDDER_INPUTS]; /* raw index, or EMBEDDER_ABSENT */
    enum dtype dtypes[EMBEDDER_INPUTS];
    uint32_t result; /* raw index */
    enum dtype floats;
    bool has_states; /* the result is [b, n, d] */
    bool is_ranker;  /* it gives a score for a pair of texts */
    enum embedder_claim claim;
    uint32_t width;      /* d; 1 of a ranker */
    uint32_t tokens_max; /* of a text */
    uint32_t length;     /* n, if it is fixed: shorter texts are padded; 0: it varies */
    uint32_t rows_max;   /* b */
    enum embedder_pooling pooling;
    bool normalizes;
    bool has_steps;      /* scores of classes are as the card wants them */
    char *prefix;        /* owned; or NULL */
    uint32_t pad;        /* the id of padding */
    struct words *words; /* owned */
};

/*
 * |path|, |tokenizer|: as of generator_new(). |*out| is NULL if the method is no encoder.
 * ST_INVALID: the settings do not fit the method, or texts have to be padded and there is no mask;
 * and errors of reading the tokenizer. Blocks.
 */
MUST_CHECK enum status embedder_new(const struct rt_method *method, const char *path,
                                    const char *tokenizer, const struct embedder_options *options,
                                    struct embedder **out, struct error *err);
void embedder_free(struct embedder *embedder); /* NULL is fine */

/* Does |method| have the inputs and results of an encoder, with or without a tokenizer? */
bool embedder_fits(const struct rt_method *method);

/* Computes the vector of one text at |out|, which has |width| floats, not normalised: |row| has the
 * states of |length| tokens, of which the first |count| are the text's; or the vector itself. */
void embedder_pool(const struct embedder *embedder, const uint8_t *row, uint32_t count, float *out);

/* Copies the states of the first |count| tokens of |row| to |out|, |width| floats each. */
void embedder_take_states(const struct embedder *embedder, const uint8_t *row, uint32_t count,
                          float *out);

/* Divides by the length, if that is not 0. */
void embedder_normalize(float *vector, uint32_t width);

#endif
