/* SPDX-License-Identifier: MIT */
/*
 * From the logits of a step to the next token. The steps that a request may ask for have a fixed
 * order:
 *
 *     logit_bias, then the penalties     added to or taken from the logits
 *     temperature                        0 takes the largest logit and ends here
 *     top_k, then top_p of what is left, then min_p of the largest probability
 *
 * The number that chooses comes from a counter: it is a function of the seed and of the index of
 * the token, so the same request gives the same tokens whatever else the daemon does. A heap gives
 * the largest logits one by one, as many as the choice looks at; with top_p alone, buckets of
 * logits tell where to look.
 *
 * A sampler belongs to one generation and one thread at a time. Its memory is bounded by the
 * vocabulary, and is allocated when a step first needs it.
 */
#ifndef PTED_SERVER_LANGUAGE_SAMPLER_H
#define PTED_SERVER_LANGUAGE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The most tokens that top_logprobs may ask for. */
#define SAMPLER_TOP_MAX 20

struct sampler_bias {
    uint32_t id;
    float value;
};

struct sampler_options {
    double temperature; /* 0: the largest logit */
    double top_p;       /* 1: all tokens */
    double min_p;       /* 0: all tokens */
    uint32_t top_k;     /* 0: all tokens */
    double repetition;  /* 1: none; divides the positive logits of tokens in prompt and answer */
    double frequency;   /* taken from a logit for each time that the token is in the answer */
    double presence;    /* taken once if it is in the answer */
    const struct sampler_bias *biases; /* borrowed; each id is in the vocabulary */
    uint32_t bias_count;
    uint64_t seed;
};

struct sampler_choice {
    uint32_t id;
    float logprob; /* natural logarithm of the probability that the model itself gives it */
};

/* A token of an answer or a prompt, with the most probable ones in its place. */
struct sampler_mark {
    struct sampler_choice chosen;
    uint32_t rank; /* of the chosen one, see sampler_rank(); 0: not wanted */
    uint32_t offset; /* characters of the text before it: 0 until somebody who knows sets it */
    uint32_t top_count;
    struct sampler_choice top[SAMPLER_TOP_MAX];
};

struct sampler_entry;

struct sampler {
    struct sampler_options options;
    uint32_t vocab;
    float *logits;                 /* owned: changed ones; NULL: not needed yet */
    struct sampler_entry *entries; /* owned: the heap; likewise */
    uint32_t popped;               /* so many of the largest are in order behind the heap */
    uint32_t *counts;              /* owned: of tokens in the answer; NULL: no penalties */
    uint8_t *is_in_prompt;         /* owned; likewise */
};

/* |options| are copied, except the biases. Nothing is allocated. */
void sampler_init(struct sampler *sampler, const struct sampler_options *options, uint32_t vocab);
void sampler_fini(struct sampler *sampler);

/* Call when the token is in the prompt, or has been added to the answer: penalties count it.
 * ST_EXHAUSTED. */
MUST_CHECK enum status sampler_note(struct sampler *sampler, uint32_t id, bool is_prompt,
                                    struct error *err);

/*
 * Chooses the token with |index|, which counts from 0 in each answer, and from another base in each
 * further answer of a request (n > 1), so that answers differ. |allowed| is a set of bits, one for
 * each token, or NULL: others are never chosen. Logits that are NaN are never chosen either.
 * ST_EXHAUSTED; ST_INVALID: no token can be chosen.
 */
MUST_CHECK enum status sampler_choose(struct sampler *sampler, const float *logits,
                                      const uint64_t *allowed, uint64_t index, uint32_t *out_id,
                                      struct error *err);

/* Notes the logarithms of the chosen token |id| and of the |top_count| most probable ones, which
 * are at most SAMPLER_TOP_MAX. ST_EXHAUSTED. */
MUST_CHECK enum status sampler_mark_token(struct sampler *sampler, const float *logits, uint32_t id,
                                          uint32_t top_count, struct sampler_mark *out,
                                          struct error *err);

/* Returns the logarithm of the probability of |id|, as the model itself gives it. */
float sampler_logprob(const float *logits, uint32_t vocab, uint32_t id);

/* Returns the place of |id| among all tokens, from 1: one more than those with a larger logit. */
uint32_t sampler_rank(const float *logits, uint32_t vocab, uint32_t id);

/* Returns the memory that it takes now. */
size_t sampler_bytes(const struct sampler *sampler);

/* Do |count| choices take so long with a large vocabulary that the loop may not make them? */
bool sampler_is_long(const struct sampler *sampler, bool needs_logprobs, uint32_t count);

#endif
