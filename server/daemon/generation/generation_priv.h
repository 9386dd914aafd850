/* SPDX-License-Identifier: MIT */
/* Shared by generation.c and its parts, generation_*.c. Rules as in generation.h. */
#ifndef PTED_SERVER_DAEMON_GENERATION_GENERATION_PRIV_H
#define PTED_SERVER_DAEMON_GENERATION_GENERATION_PRIV_H

#include "base/check.h"
#include "server/daemon/generation/generation.h"
#include "server/daemon/generation/runs.h"
#include "server/daemon/infer/infer.h"
#include "server/language/constraint.h"
#include "server/language/generator.h"
#include "server/language/reply.h"
#include "server/language/stops.h"
#include "server/language/thinking.h"
#include "server/language/tools.h"
#include "server/language/words.h"

struct rt_result;

/* Text of one answer. */
#define GENERATION_TEXT_BYTES_MAX (64 << 20)

#define GENERATION_MAGIC 0x67656e65u

/* A prompt as ids, in the request's arena. */
struct prompt {
    const uint32_t *ids;
    uint32_t count;
};

/* Guesses that calls have checked, and how many of them were right. */
struct generation_drafts {
    uint64_t checked, right;
};

/* In characters of the text, if tokens are told with their offsets. */
struct generation_place {
    uint32_t total; /* of the text so far */
    uint32_t next;  /* where the next token stands, as far as is known */
};

struct generation {
    uint32_t magic;
    struct ask ask;
    struct generator *generator;   /* of the request's model, which the request holds */
    struct constraint *constraint; /* owned; NULL: the answer may be any text */
    struct prompt *prompts;
    uint32_t choice_count; /* prompts times n */
    struct reply reply;
    /* ---- the present choice ---- */
    uint32_t choice;      /* its index */
    uint32_t *tokens;     /* owned: the prompt and the answer so far; room for the context */
    uint32_t token_count; /* of both */
    uint32_t prompt_count, answer_count;
    uint32_t answer_max;
    uint32_t fed_count;      /* tokens that the sequence has had */
    uint32_t step_count;     /* ids that the present step adds */
    const struct form *form; /* of the present step */
    uint32_t draft_count;    /* of them, at the end: guesses */
    uint32_t taken_count;    /* tokens that SAMPLE has taken from the present step so far */
    uint32_t right_count;    /* of them: right guesses */
    uint32_t taken_fed;      /* |fed_count| when it has taken the first one */
    struct drafts drafts;    /* guesses at the next tokens */
    const uint32_t *said;    /* in the request's arena: tokens that the answer may be like */
    uint32_t said_count;
    struct generation_drafts drafted; /* of all choices */
    uint32_t cached_count;            /* tokens that the sequence has from a kept state */
    bool has_looked;                  /* for such a state */
    bool is_settled;                  /* the sequence has had exactly |fed_count| tokens */
    bool is_positional;               /* as far as has been seen; see rt_method_is_positional() */
    enum reply_reason reason;
    bool has_begun; /* an event of the choice is out */
    struct sampler sampler;
    struct stops stops;
    struct words_stream *stream;
    enum thinking_start thinking_start; /* of each choice */
    struct thinking thinking;           /* |stops| has the text behind thoughts */
    struct buf raw;                     /* text of the present token, thoughts and all */
    size_t told_thought_bytes;          /* of the thoughts: in events so far */
    size_t told_bytes;                  /* of the text: in events so far */
    struct tools_reader *reader;        /* owned: of |stops.text|; NULL: calls do not count */
    uint32_t told_calls;                /* in events so far, at least their beginning */
    size_t told_argument_bytes;         /* of the last of them */
    struct buf marks;        /* struct sampler_mark, if logarithms are wanted: of tokens not told */
    size_t settled_marks;    /* bytes of them: of tokens of the answer, and of no marker */
    struct buf prompt_marks; /* likewise: of the prompt's tokens but the first, if wanted */
    struct buf prompt_offsets; /* uint32_t, likewise: of all of an echoed prompt */
    struct generation_place place;
    float *row; /* owned: logits that are not float32, converted */
    /* ---- the request ---- */
    bool is_decoding; /* in generator->decoding */
    bool is_over;
    /* ---- the turn among prompts; the loop's ---- */
    uint64_t turn_ns;   /* when it began; 0: none has */
    uint32_t turn_left; /* tokens */
    /* ---- times; the loop's ---- */
    struct runs_times times;
    uint64_t first_ns, last_ns;       /* when tokens came */
    struct generation_drafts counted; /* the part of |drafted| that is in the model's counts */
};

static inline struct generation *generation_of(const struct infer *infer)
{
    struct generation *generation;
    OBJ_CAST(generation, infer->own, GENERATION_MAGIC);
    return generation;
}

static inline enum status generation_no_memory(struct error *err)
{
    return error_no_memory(err, "a generation");
}

/* Call on any thread: the sequence is not left in the table; its state may be kept. */
void generation_end_sequence(struct infer *infer);

/* Charges the memory of the answer so far and of what it takes to go on, see
 * infer_count_answer(). */
MUST_CHECK enum status generation_count_bytes(struct infer *infer, struct error *err);

/* Call when the answer is complete: frees what it took. */
void generation_let_go(struct generation *generation);

/* Counts the request out: it is no longer one of those under way; any number of times. */
void generation_count_out(struct infer *infer);

uint64_t generation_random_bits(void);

/* ---- generation_parse.c ---------------------------------------------------------------------- */

/* Parses the JSON of a request to generate. */
MUST_CHECK enum status generation_parse_generate(struct infer *infer, bool is_stream,
                                                 const struct oip_body *body, struct error *err);

/* Of struct infer_ops. */
int generation_parse_find(struct infer *infer, struct error *err);

/* ---- generation_choice.c --------------------------------------------------------------------- */

/* Call when the prompts are there: makes what all choices need, and begins the first one. */
MUST_CHECK enum status generation_choice_begin_all(struct generation *generation,
                                                   struct error *err);

/* Call before generation_choice_take(). ST_WOULD_BE_HEAVY: the grammar of the request makes that
 * take long; call this again in a heavy task, which ends behind it, until it says so no more. */
MUST_CHECK enum status generation_choice_weigh(struct infer *infer, struct error *err);

/* Call when the logits of the last token so far are |result|: takes the next token and tells it.
 * After the last one of a choice the next choice begins, or the generation is over. */
MUST_CHECK enum status generation_choice_take(struct infer *infer, const struct rt_result *result,
                                              struct error *err);

/* Returns the logits behind token |index| of the step with |result|; valid until the next call. */
const float *generation_logits(struct generation *generation, const struct rt_result *result,
                               uint32_t index);

/* ---- generation_score.c ---------------------------------------------------------------------- */

/* Call when a choice begins: choices of one prompt share its marks. */
void generation_score_begin(struct generation *generation);

/* Are marks of the prompt wanted that are not there? */
bool generation_scores(const struct generation *generation);

/* Returns how the next step of a prompt whose marks are wanted is made. |*max| is lowered to the
 * tokens that it may have, or, of a model without a cache, set to those that it has. */
const struct form *generation_score_form(const struct generation *generation, uint32_t left,
                                         uint32_t *max);

/* Takes marks of the prompt from the results of the step, if they are wanted. ST_WOULD_BE_HEAVY:
 * call it again, see generation_choice_weigh(). */
MUST_CHECK enum status generation_score_take(struct infer *infer, struct error *err);

/* Returns the memory of the marks, and of their text when a choice will be printed. */
size_t generation_score_bytes(const struct generation *generation);

/* ---- generation_drafts.c --------------------------------------------------------------------- */

/* Call when a choice begins. */
void generation_drafts_begin(struct generation *generation);

/* Call before a step of the answer: decides how many guesses it checks, |draft_count|. */
void generation_drafts_choose(const struct infer *infer);

/* Decodes the call of a step that checks guesses. */
MUST_CHECK enum status generation_drafts_decode(struct infer *infer, struct error *err);

/* Takes the tokens that the call of a step has given: one, and one for each guess that was right.
 * ST_WOULD_BE_HEAVY: call it again, see generation_choice_weigh(). */
MUST_CHECK enum status generation_drafts_sample(struct infer *infer, struct error *err);

/* Call on the loop: the model's counts get what has been checked since the last time. */
void generation_drafts_count(const struct infer *infer);

/* ---- generation_prefix.c --------------------------------------------------------------------- */

/* Call when a choice begins: it may look for a state that has had some of its tokens. */
void generation_prefix_begin(struct generation *generation);

/* Call before the first step of a choice: sets |fed_count|. If a state was found and there is room,
 * the sequence is open, with its content. */
void generation_prefix_find(struct infer *infer);

/* Call when a step has run, and |fed_count| does not count it yet. */
void generation_prefix_note(struct infer *infer);

/* Call when the sequence is about to end. */
void generation_prefix_keep(struct infer *infer);

#endif
