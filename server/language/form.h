/* SPDX-License-Identifier: MIT */
/*
 * The methods of a language model, and how calls of them are made: by the inputs and results that
 * they have. Most programs have one method for all steps. Some have two: one takes the many tokens
 * of a prompt, the other one takes a single token. Exporters call them
 *
 *     prefill          decode        (export_llm's examples, transformers)
 *     prefill_forward  kv_forward    (static forms)
 *
 * Both have to keep the same mutable buffers, so that one goes on where the other has ended. If
 * they do not, and the first one takes single tokens as well, it is the language model by itself.
 *
 * Multimodal models have a method that makes embeddings of tokens, so that those of a picture can
 * come between them, and another one that takes embeddings:
 *
 *     token_embedding  text_decoder  (ExecuTorch's runner of multimodal models, optimum-executorch)
 *
 * Loading makes one more method of the two, which takes tokens (form_composition()).
 *
 * Programs whose caches go from call to call are made such ones when they are loaded
 * (server/language/exported.h).
 */
#ifndef PTED_SERVER_LANGUAGE_FORM_H
#define PTED_SERVER_LANGUAGE_FORM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"

struct rt_composition;
struct rt_method;

/*
 * Inputs behind the tokens, int64 [1, n], in any order: the position of the first token or of each,
 * int64 [1] or [n]; the position of each, int64 [1, n]; a mask, bool [1, 1, n, columns], true where
 * a token sees the one whose position is the column.
 */
struct form {
    struct rt_method *method; /* borrowed from its program; NULL: there is no such method */
    /* Raw indices; 0: there is none (tokens are input 0). */
    uint32_t position_input, row_input, mask_input;
    bool has_positions;    /* one for each token, not for the first alone */
    uint32_t mask_columns; /* 0: as many as the context has tokens */
    bool has_all_logits;   /* [1, n, vocab]: those of the last token give the next one */
    bool gives_all_logits; /* n may be all tokens of a call, and not the last one alone */
    uint32_t step_max;     /* tokens that one call takes */
    bool is_step_fixed;    /* it takes just as many, not fewer */
};

/* Of a language model: its steps, and, if that is another method, the parts of its prompts. */
struct forms {
    struct form step, prefill;
};

/*
 * Is |method| the one that gives a language model its name, the method of its steps? False: it is
 * no language model, or belongs to one as the method of its prompts.
 */
bool forms_find(const struct rt_method *method, struct forms *out);

/* Returns the method that a program with embeddings apart gets when it is loaded: its default
 * one. */
const struct rt_composition *form_composition(void);

/* Is what earlier tokens gave in the program's mutable buffers? */
bool form_has_cache(const struct form *form);

/* Columns of the mask at most, so tokens that a call can see; INT64_MAX: it takes no mask. */
int64_t form_columns_max(const struct form *form);

/* Do the inputs of |form| by themselves say that the method is a language model? */
bool form_is_certain(const struct form *form);

/* Returns why a call does not say where its first token is, by |form|; REASON_NONE: it does. */
enum reason form_why_not_positional(const struct form *form);

/* Returns how a call with the next of |left| tokens is made, none of which has a logit yet. */
const struct form *forms_choose(const struct forms *forms, uint32_t left);

/* Returns the same where the logits of every token are wanted: a call of all tokens if a method
 * gives them, or else a call of one token. */
const struct form *forms_choose_scored(const struct forms *forms, uint32_t left);

#endif
