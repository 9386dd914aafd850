/* SPDX-License-Identifier: MIT */
/*
 * Generations whose prompt is scored: the logarithm of each token behind those before it. A step
 * gives them if the method gives the logits of all its tokens. Of a method that gives those of the
 * last token alone, such a prompt runs token by token, or, without a cache, once for each of its
 * beginnings.
 */
#include "config.h"

#include "server/daemon/generation/generation_priv.h"

#include "runtime/call/invocation.h"

/* Logits that one run of SAMPLE looks at, some 20 ms. */
#define WORK_MAX (1u << 22)

/* Of a token in a list, with its logarithm, as text: for the account of memory. */
#define PRINTED_BYTES 64

/* Tokens of the prompt that need no mark: the first one, which nothing stands before, and those
 * that have one. */
static uint32_t marked(const struct generation *generation)
{
    return 1 + (uint32_t)(generation->prompt_marks.len / sizeof(struct sampler_mark));
}

static uint32_t top_count(const struct ask *ask)
{
    uint32_t echoed = ask->echoes && ask->wants_logprobs ? ask->top_count : 0;
    return echoed > ask->prompt_top_count ? echoed : ask->prompt_top_count;
}

void generation_score_begin(struct generation *generation)
{
    if (generation->choice % generation->ask.n == 0) {
        buf_reset(&generation->prompt_marks);
    }
}

bool generation_scores(const struct generation *generation)
{
    return ask_scores_prompt(&generation->ask) && marked(generation) < generation->prompt_count;
}

const struct form *generation_score_form(const struct generation *generation, uint32_t left,
                                         uint32_t *max)
{
    const struct form *form = forms_choose_scored(&generation->generator->forms, left);
    if (!form->gives_all_logits) {
        *max = generator_has_cache(generation->generator) ? 1 : marked(generation);
    }
    return form;
}

/* The program says how many rows of logits there may be, and gives as many. */
static enum status check_rows(const struct generation *generation, const struct rt_result *result,
                              struct error *err)
{
    const struct generator *generator = generation->generator;
    uint64_t rows = result->bytes.len / dtype_bytes(generator->logits) / generator->vocab;
    return !generation->form->gives_all_logits || rows >= generation->step_count
               ? ST_OK
               : error_set(err, ST_UNSUPPORTED,
                           "logprobs of the prompt: the model gives logits of %u of %u tokens",
                           (uint32_t)rows, generation->step_count);
}

/* Marks the next token: the logits are those of token |index| of the step. */
static enum status mark_next(struct generation *generation, const struct rt_result *result,
                             uint32_t index, struct error *err)
{
    struct sampler_mark mark;
    const struct ask *ask = &generation->ask;
    uint32_t id = generation->tokens[marked(generation)];
    const float *logits = generation_logits(generation, result, index);
    TRY(sampler_mark_token(&generation->sampler, logits, id, top_count(ask), &mark, err));
    if (ask->wants_prompt_logprobs) {
        mark.rank = sampler_rank(logits, generation->generator->vocab, id);
    }
    buf_add(&generation->prompt_marks, &mark, sizeof(mark));
    return buf_failed(&generation->prompt_marks) ? generation_no_memory(err) : ST_OK;
}

enum status generation_score_take(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    const struct rt_result *result = rt_invocation_result(infer->call.invocation, 0);
    uint32_t before = generator_has_cache(generation->generator) ? generation->fed_count : 0;
    uint32_t end = before + generation->step_count;
    if (!generation_scores(generation)) {
        return ST_OK;
    }
    TRY(check_rows(generation, result, err));
    for (uint64_t work = 0; generation_scores(generation) && marked(generation) <= end;
         work += generation->generator->vocab) {
        if (work >= WORK_MAX) {
            TRY(generation_count_bytes(infer, err));
            return error_set(err, ST_WOULD_BE_HEAVY, "%s", status_text(ST_WOULD_BE_HEAVY));
        }
        TRY(mark_next(generation, result, marked(generation) - before - 1, err));
    }
    return generation_count_bytes(infer, err);
}

size_t generation_score_bytes(const struct generation *generation)
{
    size_t count = generation->prompt_marks.len / sizeof(struct sampler_mark);
    return generation->prompt_marks.capacity + generation->prompt_offsets.capacity +
           count * (2 + top_count(&generation->ask)) * PRINTED_BYTES;
}
