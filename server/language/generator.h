/* SPDX-License-Identifier: MIT */
/*
 * Language models: a method is recognised as one when its file is loaded.
 *
 * A method is one if it takes the ids of tokens (int64, [1, n]), perhaps the position of the first
 * of them (int64, [1], or one for each token), and gives logits as floats ([1, n, vocab] or [1,
 * vocab]), and if its program says so: by one of the constant methods that ExecuTorch's exporter
 * writes (get_vocab_size, get_max_seq_len, get_max_context_len, use_kv_cache), or because a
 * tokenizer was given for it. Prompts may have a method of their own
 * (server/language/form.h). With a position, earlier tokens are in the program's mutable buffers;
 * without one, each step computes all tokens again.
 *
 * Its words come from a tokenizer (server/language/words.h): the named file, or
 * NAME.tokenizer.json, NAME.tokenizer.model, tokenizer.json or tokenizer.model beside NAME.pte. The
 * files tokenizer_config.json, chat_template.jinja and generation_config.json are read from the
 * same folder, if they are there. A program without a tokenizer, with 256 words, reads and writes
 * bytes.
 *
 * Constant after generator_new(), except the vocabulary, which the first constrained answer makes,
 * and the calls of several tokens, which are tried while the model is served; any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_GENERATOR_H
#define PTED_SERVER_LANGUAGE_GENERATOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/reason.h"
#include "base/share.h"
#include "base/status.h"
#include "server/language/ask.h"
#include "server/language/chat.h"
#include "server/language/drafts.h"
#include "server/language/form.h"
#include "server/language/infill.h"
#include "server/language/thinking.h"
#include "server/language/tools.h"

struct grammar_vocabulary;
struct rt_method;
struct words;

/* Tokens that end an answer, at most. */
#define GENERATOR_ENDS_MAX 32

/* Tokens of a prompt that a call takes beside others, at least. */
#define GENERATOR_PART_MIN 8

/* The text of one token, at most. */
#define GENERATOR_TOKEN_BYTES_MAX (1 << 20)

#define GENERATOR_MAGIC 0x67656e72u

/* What the model's card says, instead of the files beside the program. */
struct generator_said {
    struct ask_defaults defaults;
    const uint32_t *ends; /* ids that end an answer; NULL: those of generation_config.json */
    uint32_t end_count;
    struct thinking_said thinking;
    const char *tools; /* the name of a row of tools.def; NULL: that of the template */
    struct infill_said infill;
};

struct generator {
    uint32_t magic;
    struct forms forms; /* of calls of its methods */
    enum dtype logits;
    uint32_t vocab;
    uint32_t context;       /* tokens of a prompt and its answer, at most */
    enum reason why_whole;  /* why only all of a kept state can be used; REASON_NONE: any part */
    atomic_bool is_retired; /* a newer model has its place: its states are not kept */
    uint32_t ends[GENERATOR_ENDS_MAX];
    uint32_t end_count;
    bool has_bos;
    uint32_t bos;
    struct ask_defaults defaults; /* of requests */
    struct words *words;          /* owned */
    struct chat chat;
    struct thinking_rules thinking; /* of answers to chats */
    struct tools_rules tools;       /* likewise */
    struct infill_rules infill;
    struct share seats; /* of generations that are under way, see server/daemon/infer/seats.h */
    _Atomic(uint32_t) decoding; /* generations that have got a token */
    /* Tokens of one answer that one call takes, see runtime/call/speculation.h; 1: not known yet,
     * or not possible. Set once, after |speculation_ns|: the times of such calls, by tokens. */
    _Atomic(uint32_t) speculation_tokens;
    uint64_t speculation_ns[DRAFTS_MAX + 2];
    struct error why_one;      /* the loop's: why it is 1 */
    atomic_bool never_guesses; /* it was tried, and stays 1 */
    pthread_mutex_t lock;
    struct grammar_vocabulary *vocabulary; /* under |lock|; owned; NULL: not needed yet */
};

/*
 * |path|: of the program, or NULL if the tokenizer is not looked for beside it; |tokenizer|: a file
 * or folder that was said, or NULL; |said| may be NULL. |*out| is NULL if the method is no language
 * model, or has no tokenizer. ST_INVALID: the tokenizer is of another model; and errors of reading
 * it. Blocks.
 */
MUST_CHECK enum status generator_new(struct rt_method *method, const char *path,
                                     const char *tokenizer, const struct generator_said *said,
                                     struct generator **out, struct error *err);
void generator_free(struct generator *generator); /* NULL is fine */

/* Does |method| have the inputs and results of a language model, with or without a tokenizer, and
 * is it the one that has its name? */
bool generator_fits(const struct rt_method *method);

/* Can any part of a kept state be used? See rt_method_is_positional(). */
static inline bool generator_is_positional(const struct generator *generator)
{
    return generator->why_whole == REASON_NONE;
}

/* Does it keep what earlier tokens gave, in the program's mutable buffers? */
static inline bool generator_has_cache(const struct generator *generator)
{
    return form_has_cache(&generator->forms.step);
}

/* Returns why calls of |method|, which fits, do not say where their first token is; REASON_NONE:
 * they do. */
enum reason generator_why_not_positional(const struct rt_method *method);

/* Appends what the token stands for in constrained output: nothing for a special token, unless it
 * is a mark of calls of tools; then TOOLS_TOKEN_BYTE and its characters, which other tokens cannot
 * spell. */
MUST_CHECK enum status generator_token_text(const struct generator *generator, uint32_t id,
                                            struct buf *out, struct error *err);

/*
 * Finds the texts of all tokens, for constrained output: made by the first call, which takes long;
 * others wait meanwhile. It lives as long as the generator. ST_TOO_LARGE, ST_EXHAUSTED.
 */
MUST_CHECK enum status generator_find_vocabulary(struct generator *generator,
                                                 const struct grammar_vocabulary **out,
                                                 struct error *err);

bool generator_is_end(const struct generator *generator, uint32_t id);

/*
 * Returns how many tokens of a prompt, |most| at most, a call takes while |others| answers wait for
 * it with their next token. A part of as many tokens as there are answers takes about as long as
 * their own step; of GENERATOR_PART_MIN in any case. Where a call of one token takes most of the
 * time of longer ones, the others lose little by a longer part: tokens are added until they take
 * half as long as the first one. |most| if the times are not known. Times of the trial decide, not
 * those of the moment, so the parts do not depend on how busy the machine is.
 */
uint32_t generator_part(const struct generator *generator, uint32_t others, uint32_t most);

#endif
