/* SPDX-License-Identifier: MIT */
/* Generations and the states of earlier ones (runtime/sched/prefix.h): a choice begins behind the
 * tokens that such a state has had, and leaves its own state when it ends. */
#include "config.h"

#include "server/daemon/generation/generation_priv.h"

#include "runtime/call/invocation.h"
#include "runtime/program/state.h"
#include "runtime/sched/prefix.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/generation/runs.h"
#include "server/daemon/serving/serving.h"
#include "server/http/client.h"

static struct rt_prefixes *prefixes_of(const struct infer *infer)
{
    return rt_sequences_prefixes(infer->serving->sequences);
}

/* States are found by requests with the same access token only: how soon an answer comes would tell
 * others what has been asked. */
static struct rt_prefix_key key_of(const struct infer *infer, uint32_t count)
{
    return (struct rt_prefix_key){
        .method = infer->call.model->method,
        .owner = infer->client->token_name ? infer->client->token_name : "",
        .tokens = generation_of(infer)->tokens,
        .count = count,
        .client = client_that_lasts(infer->client->id),
    };
}

void generation_prefix_begin(struct generation *generation)
{
    generation->has_looked = false;
    generation->is_settled = true;
    generation->is_positional = generator_is_positional(generation->generator);
}

/* Opens a sequence with |count| tokens of |kept|, or all of them. False: there is no room for both.
 * The generation then begins anew, and |kept| can give way when its sequence is opened. */
static bool open_with(struct infer *infer, struct rt_state *kept, int64_t count)
{
    struct error err;
    bool is_open = runs_open_sequence(infer, "generation", &err) == ST_OK;
    if (is_open) {
        rt_state_share(rt_sequence_state(infer->call.sequence), kept, count);
    }
    return is_open;
}

/* The number of tokens that the new sequence of the request has from a kept state. */
static uint32_t use_kept(struct infer *infer)
{
    const struct rt_prefix_key key = key_of(infer, generation_of(infer)->token_count);
    struct rt_state *kept = NULL;
    bool has_more = false;
    uint32_t count = rt_prefixes_find(prefixes_of(infer), &key, &kept, &has_more);
    if (count > 0 && !open_with(infer, kept, has_more ? count : RT_STATE_ALL_ROWS)) {
        count = 0;
    }
    rt_state_unref(kept);
    return count;
}

void generation_prefix_find(struct infer *infer)
{
    struct generation *generation = generation_of(infer);
    if (generation->has_looked || generation->ask.computes_all ||
        !generator_has_cache(generation->generator)) {
        return;
    }
    generation->has_looked = true;
    if (generation_scores(generation)) {
        return; /* a kept state has no logits */
    }
    must(generation->fed_count == 0 && !infer->call.sequence);
    generation->fed_count = use_kept(infer);
    generation->cached_count = generation->fed_count;
    if (generation->choice % generation->ask.n == 0) { /* prompts are counted once, too */
        generation->reply.cached_tokens += generation->cached_count;
    }
}

void generation_prefix_note(struct infer *infer)
{
    struct generation *generation = generation_of(infer);
    struct rt_sequence *sequence = infer->call.sequence;
    int64_t first = generation->fed_count, end = first + generation->step_count;
    generation->is_settled = true;
    generation->is_positional = generation->is_positional && sequence &&
                                rt_state_wrote(rt_sequence_state(sequence), first, end);
}

void generation_prefix_keep(struct infer *infer)
{
    struct generation *generation = generation_of(infer);
    struct rt_sequence *sequence = infer->call.sequence;
    if (sequence && generation->is_settled && generator_has_cache(generation->generator)) {
        const struct rt_prefix_key key = key_of(infer, generation->fed_count);
        rt_prefixes_keep(prefixes_of(infer), &key, rt_sequence_state(sequence),
                         generation->is_positional, &generation->generator->is_retired);
    }
}
