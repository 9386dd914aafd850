/* SPDX-License-Identifier: MIT */
/*
 * Generations and guesses at their tokens (server/language/drafts.h). A step may check guesses: its
 * call has the last token and the guesses behind it as steps of one sequence, and gives the logits
 * behind each. Each token is chosen as in a step of its own, from the same logits and with the same
 * random number, and the first one that is not the guess ends the step. So an answer has the tokens
 * that it has without guesses, whatever the request asks for.
 *
 * While other answers of the model are under way no guesses are checked: their tokens, which are
 * certain, run as rows of one call.
 */
#include "config.h"

#include "server/daemon/generation/generation_priv.h"

#include "runtime/call/invocation.h"
#include "runtime/call/speculation.h"
#include "server/daemon/infer/stats.h"

void generation_drafts_begin(struct generation *generation)
{
    generation->draft_count = 0;
    drafts_init(&generation->drafts, generation->said, generation->said_count);
}

/* ---- before a step --------------------------------------------------------------------------- */

/* Guesses that would still belong to the answer, and that the method has room for: the last token
 * of an answer needs no step. */
static uint32_t room_for(const struct generation *generation, const struct rt_method *method,
                         uint32_t tokens_max)
{
    int64_t left = (int64_t)generation->answer_max - generation->answer_count - 1;
    int64_t room = rt_speculation_position_max(method) - generation->fed_count;
    int64_t max = left < room ? left : room;
    max = max < tokens_max - 1 ? max : tokens_max - 1;
    return max > 0 ? (uint32_t)max : 0;
}

/* The next step is one token of the answer, and the state is as guesses need it. */
static bool may_guess(const struct generation *generation, uint32_t tokens_max)
{
    return tokens_max > 1 && generation->answer_count > 0 && generation->step_count == 1 &&
           generation->fed_count + 1 == generation->token_count && generation->is_positional;
}

void generation_drafts_choose(const struct infer *infer)
{
    struct generation *generation = generation_of(infer);
    struct generator *generator = generation->generator;
    struct drafts *drafts = &generation->drafts;
    uint32_t tokens_max = atomic_load(&generator->speculation_tokens);
    generation->draft_count = drafts->count = 0;
    generation->taken_count = generation->right_count = 0;
    if (!may_guess(generation, tokens_max)) {
        return;
    }
    drafts_find(drafts, generation->tokens, generation->token_count,
                room_for(generation, infer->call.model->method, tokens_max));
    if (share_used(&generator->seats) <= 1) {
        generation->draft_count = drafts_choose(drafts, generator->speculation_ns, tokens_max);
        generation->step_count += generation->draft_count;
    }
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

static enum status put_input(struct rt_invocation *invocation, uint32_t index, uint8_t rank,
                             int64_t value, struct error *err)
{
    const struct shape shape = {.rank = rank, .dims = {1, 1}};
    void *memory;
    TRY(rt_invocation_input(invocation, index, DT_I64, &shape, &memory, err));
    *(int64_t *)memory = value;
    return ST_OK;
}

enum status generation_drafts_decode(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    struct infer_call *call = &infer->call;
    struct rt_method *method = call->model->method;
    uint32_t inputs = rt_method_input_count(method);
    const struct form *form = &generation->generator->forms.step;
    TRY(rt_speculation_new(method, infer->pool, generation->step_count, &call->invocation, err));
    infer_run_in(infer);
    for (uint32_t i = 0; i < generation->step_count; i++) {
        uint32_t id =
            i == 0 ? generation->tokens[generation->fed_count] : generation->drafts.ids[i - 1];
        TRY(put_input(call->invocation, i * inputs, 2, id, err));
        int64_t position = (int64_t)generation->fed_count + i;
        if (form->row_input) {
            TRY(put_input(call->invocation, i * inputs + form->row_input, 2, position, err));
        }
        TRY(put_input(call->invocation, i * inputs + form->position_input, 1, position, err));
    }
    return rt_speculation_ready(method, call->invocation, err);
}

/* ---- SAMPLE ---------------------------------------------------------------------------------- */

/* The choice that has just got a token goes on. */
static bool goes_on(const struct generation *generation, uint32_t choice)
{
    return !generation->is_over && generation->choice == choice;
}

static void count(struct generation *generation, uint32_t checked, uint32_t right, bool is_said)
{
    generation->drafted.checked += checked;
    generation->drafted.right += right;
    if (is_said) {
        generation->reply.accepted_tokens += right;
        generation->reply.rejected_tokens += checked - right;
    }
}

enum status generation_drafts_sample(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    struct infer_call *call = &infer->call;
    struct drafts *drafts = &generation->drafts;
    uint32_t checked = generation->draft_count, choice = generation->choice;
    uint32_t results = rt_method_result_count(call->model->method);
    bool has_cache = generator_has_cache(generation->generator), is_said = drafts->is_said;
    bool misses = false, is_on = true;
    if (generation->taken_count == 0) {
        generation->taken_fed =
            (has_cache ? generation->fed_count : 0) + generation->step_count - checked;
    }
    for (uint32_t i = generation->taken_count; i <= checked && !misses && is_on; i++) {
        TRY(generation_choice_weigh(infer, err));
        generation->fed_count = generation->taken_fed + i;
        generation->taken_count = i + 1;
        TRY(generation_choice_take(infer, rt_invocation_result(call->invocation, i * results),
                                   err));
        is_on = goes_on(generation, choice);
        if (is_on && i < drafts->count) {
            misses = generation->tokens[generation->token_count - 1] != drafts->ids[i];
            generation->right_count += !misses;
        }
    }
    uint32_t right = generation->right_count;
    count(generation, checked, right < checked ? right : checked, is_said);
    if (is_on) { /* else the drafts belong to the next choice */
        drafts_note(drafts, right, misses);
    }
    return ST_OK;
}

/* ---- counts ---------------------------------------------------------------------------------- */

void generation_drafts_count(const struct infer *infer)
{
    struct generation *generation = generation_of(infer);
    struct model_stats *stats = infer->call.model->stats;
    const struct generation_drafts *drafted = &generation->drafted;
    struct generation_drafts *counted = &generation->counted;
    uint64_t right = drafted->right - counted->right;
    counter_add(&stats->draft_tokens, drafted->checked - counted->checked);
    counter_add(&stats->accepted_tokens, right);
    counter_add(&stats->answer_tokens, right); /* beside the token that any step gives */
    for (uint64_t i = 0; i < right; i++) {
        histogram_add(&stats->next_tokens, &histogram_times, 0); /* they came with it */
    }
    *counted = *drafted;
}
