/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/generation/generation_priv.h"

#include <stdlib.h>
#include <sys/random.h>

#include <uv.h>

#include "runtime/call/invocation.h"
#include "runtime/program/program.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/infer/infer_one.h"
#include "server/daemon/infer/stats.h"
#include "server/daemon/serving/serving.h"
#include "server/process/alarm.h"

#define NS_PER_MS 1000000u

/* Steps of the loop may take 2 ms: the text of that many tokens takes some 0.5 ms. */
#define PROMPT_INLINE_MAX 4096
#define MARK_TEXT_BYTES 64          /* of a token with its logarithm */
#define CALLS_INLINE_MAX (64 << 10) /* bytes in which calls are looked for, and of tools */

/* ---- life ------------------------------------------------------------------------------------ */

void generation_end_sequence(struct infer *infer)
{
    struct infer_call *call = &infer->call;
    if (call->sequence) {
        generation_prefix_keep(infer);
        runs_end_sequence(call);
    }
}

void generation_count_out(struct infer *infer)
{
    struct generation *generation = generation_of(infer);
    seats_leave(infer);
    if (generation->is_decoding) {
        atomic_fetch_sub(&generation->generator->decoding, 1);
        generation->is_decoding = false;
    }
}

void generation_let_go(struct generation *generation)
{
    constraint_free(generation->constraint);
    sampler_fini(&generation->sampler);
    stops_fini(&generation->stops);
    words_stream_free(generation->stream);
    tools_reader_free(generation->reader);
    thinking_fini(&generation->thinking);
    buf_fini(&generation->raw);
    buf_fini(&generation->marks);
    buf_fini(&generation->prompt_marks);
    buf_fini(&generation->prompt_offsets);
    free(generation->tokens);
    free(generation->row);
    generation->constraint = NULL;
    generation->stream = NULL;
    generation->reader = NULL;
    generation->tokens = NULL;
    generation->row = NULL;
}

static void free_generation(struct infer *infer)
{
    struct generation *generation = generation_of(infer);
    generation_end_sequence(infer);
    generation_count_out(infer);
    generation_let_go(generation);
    generation->magic = 0;
    free(generation);
}

/* The heap of a stream of words is small. */
static size_t held_heap(const struct generation *generation)
{
    const struct generator *generator = generation->generator;
    size_t bytes = generation->stops.text.capacity + generation->marks.capacity +
                   sampler_bytes(&generation->sampler) + thinking_bytes(&generation->thinking);
    bytes += generation->tokens ? (generator->context + 1) * sizeof(generation->tokens[0]) : 0;
    bytes += generation->row ? generator->vocab * sizeof(generation->row[0]) : 0;
    bytes += generation->reader ? tools_reader_bytes(generation->reader) : 0;
    bytes += generation->constraint ? constraint_bytes(generation->constraint) : 0;
    return bytes + generation_score_bytes(generation);
}

/* Of the text so far: the buffer of an earlier request may be larger than this one makes it. */
static size_t text_bytes(const struct buf *out)
{
    return out->len < out->capacity / 2 ? 2 * out->len : out->capacity;
}

enum status generation_count_bytes(struct infer *infer, struct error *err)
{
    const struct generation *generation = generation_of(infer);
    size_t bytes = held_heap(generation);
    bytes += generation->ask.is_stream ? 0 : text_bytes(infer->out); /* transfers_update() */
    return infer_count_answer(infer, bytes, err);
}

uint64_t generation_random_bits(void)
{
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits)) {
        bits ^= uv_hrtime(); /* a kernel that has no entropy yet */
    }
    return bits;
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

/* The ids of the next step: [1, n]. */
static enum status put_tokens(struct infer *infer, uint32_t first, struct error *err)
{
    struct generation *generation = generation_of(infer);
    const struct form *form = generation->form;
    uint32_t width = form->is_step_fixed ? form->step_max : generation->step_count;
    const struct shape shape = {.rank = 2, .dims = {1, width}};
    void *memory;
    TRY(infer_input(infer, &infer->call, 0, DT_I64, &shape, &memory, err));
    int64_t *ids = memory;
    for (uint32_t i = 0; i < width; i++) {
        ids[i] = i < generation->step_count ? generation->tokens[first + i] : 0;
    }
    return ST_OK;
}

static void number(const struct generation *generation, void *memory, uint32_t count)
{
    int64_t *positions = memory;
    for (uint32_t i = 0; i < count; i++) {
        positions[i] = (int64_t)generation->fed_count + i;
    }
}

/* The position of the first of them, or of each. */
static enum status put_position(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    const struct form *form = generation->form;
    uint32_t count = form->has_positions ? generation->step_count : 1;
    const struct shape shape = {.rank = 1, .dims = {count}};
    void *memory;
    TRY(infer_input(infer, &infer->call, form->position_input, DT_I64, &shape, &memory, err));
    number(generation, memory, count);
    return ST_OK;
}

/* The position of each of them: [1, n]. */
static enum status put_row(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    const struct shape shape = {.rank = 2, .dims = {1, generation->step_count}};
    void *memory;
    TRY(infer_input(infer, &infer->call, generation->form->row_input, DT_I64, &shape, &memory,
                    err));
    number(generation, memory, generation->step_count);
    return ST_OK;
}

/* Each token sees those before it, and itself. */
static enum status put_mask(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    const struct form *form = generation->form;
    uint32_t rows = generation->step_count;
    uint32_t columns = form->mask_columns ? form->mask_columns : generation->generator->context;
    const struct shape shape = {.rank = 4, .dims = {1, 1, rows, columns}};
    void *memory;
    TRY(infer_input(infer, &infer->call, form->mask_input, DT_BOOL, &shape, &memory, err));
    bool *sees = memory;
    for (uint32_t i = 0; i < rows; i++, sees += columns) {
        for (uint32_t j = 0; j < columns; j++) {
            sees[j] = j <= generation->fed_count + i;
        }
    }
    return ST_OK;
}

/* What the method has to know of the tokens before the step. */
static enum status put_past(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    const struct form *form = generation->form;
    if (form->row_input) {
        TRY(put_row(infer, err));
    }
    if (form->mask_input) {
        TRY(put_mask(infer, err));
    }
    return form->position_input ? put_position(infer, err) : ST_OK;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Tokens of a prompt that a step takes. Others that wait for their next token wait for this step.
 */
static uint32_t prefill_max(const struct generation *generation, const struct params *params)
{
    const struct generator *generator = generation->generator;
    uint32_t max = (uint32_t)params->prefill_tokens_max;
    uint32_t shared = (uint32_t)params->prefill_tokens_shared;
    uint32_t others = atomic_load(&generator->decoding) - generation->is_decoding;
    /* With a seed the parts are the same, whoever else is there. */
    const struct form *form = generation->form;
    if (form->is_step_fixed) {
        return form->step_max;
    }
    if (generation->ask.has_seed) {
        max = least(max, shared);
    } else if (others > 0 && shared < max) {
        max = generator_part(generator, others, shared);
    }
    return max < form->step_max ? max : form->step_max;
}

/* So many of |left| tokens of a prompt, |max| at most, that no single one is left for the next
 * part, if |max| is 3 or more. Attention sums one query in another order than several
 * (runtime/ops/attention.c), so a part of one token would change the last bits. */
static uint32_t part_of(uint32_t left, uint32_t max)
{
    uint32_t part = least(left, max);
    return left - part == 1 && part > 2 ? part - 1 : part;
}

static void choose_step(struct generation *generation, const struct params *params)
{
    const struct generator *generator = generation->generator;
    uint32_t left = generation->token_count - generation->fed_count, max = UINT32_MAX;
    if (generation_scores(generation)) {
        generation->form = generation_score_form(generation, left, &max);
    } else {
        generation->form = forms_choose(&generator->forms, left);
    }
    if (!generator_has_cache(generator)) { /* it remembers nothing */
        generation->step_count = least(generation->token_count, max);
    } else {
        max = least(max, prefill_max(generation, params));
        generation->step_count =
            generation->form->is_step_fixed ? least(left, max) : part_of(left, max);
    }
    must(generation->step_count > 0);
}

/* Tokens that have had their step when the present one is over. */
static uint32_t step_end(const struct generation *generation)
{
    bool has_cache = generator_has_cache(generation->generator);
    return (has_cache ? generation->fed_count : 0) + generation->step_count;
}

static enum status decode(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    TRY(generation_count_bytes(infer, err));
    generation_prefix_find(infer);
    generation->is_settled = false;
    choose_step(generation, &infer->call.model->params);
    generation_drafts_choose(infer);
    if (generation->draft_count > 0) {
        return generation_drafts_decode(infer, err);
    }
    TRY(infer_invoke(infer, generation->form->method, err));
    bool has_cache = generator_has_cache(generation->generator);
    TRY(put_tokens(infer, has_cache ? generation->fed_count : 0, err));
    return has_cache ? put_past(infer, err) : ST_OK;
}

static enum status open_states(struct infer *infer, struct error *err)
{
    struct infer_call *call = &infer->call;
    TRY(runs_open_sequence(infer, "generation", err));
    runs_give_state(call);
    return ST_OK;
}

/*
 * Prompts take turns of --prefill-tokens-max tokens. The parts of a turn may be shorter, for the
 * sake of answers that get tokens, but no other prompt comes between them: the first prompt is done
 * first.
 */
static uint64_t keep_turn(struct generation *generation, const struct params *params)
{
    if (generation->turn_left < generation->step_count) {
        uint32_t max = (uint32_t)params->prefill_tokens_max;
        generation->turn_left = max > generation->step_count ? max : generation->step_count;
        generation->turn_ns = uv_hrtime(); /* the scheduler's clock */
    }
    generation->turn_left -= generation->step_count;
    return generation->turn_ns;
}

static struct rt_sched_queue *enter(struct infer *infer)
{
    struct rt_sched_queue *queue = infer_one_enter(infer);
    struct generation *generation = generation_of(infer);
    if (generation->draft_count > 0 || generation->form->method != infer->call.model->method) {
        infer->job.rows = 0; /* all its rows belong to one answer, or are of another method */
    }
    infer->job.returns = infer->job.rows > 0; /* the next token follows */
    if (generation->answer_count == 0) {
        infer->job.since_ns = keep_turn(generation, &infer->call.model->params);
    }
    return queue;
}

/* ---- the end of RUN -------------------------------------------------------------------------- */

/* The times of the step, and of the token that it gives. */
static void count_run(struct infer *infer)
{
    struct generation *generation = generation_of(infer);
    const struct rt_sched_job *job = &infer->job;
    struct model_stats *stats = infer->call.model->stats;
    runs_add_times(&generation->times, job);
    bool is_prefill = generation->answer_count == 0;
    stats_add_step(stats, job);
    generation_drafts_count(infer);
    if (is_prefill) {
        counter_add(&stats->prompt_tokens, generation->step_count);
        counter_add(&stats->cached_tokens, generation->cached_count);
        counter_add(&stats->prefix_hits, generation->cached_count > 0);
        generation->cached_count = 0;
    }
    if (step_end(generation) < generation->token_count) {
        return;
    }
    uint64_t now_ns = uv_hrtime();
    counter_add(&stats->answer_tokens, generation->answer_max > 0);
    if (generation->first_ns == 0) {
        generation->first_ns = now_ns;
        generation->is_decoding = true;
        atomic_fetch_add(&generation->generator->decoding, 1);
        histogram_add(&stats->first_tokens, &histogram_times, now_ns - infer->arrived_ns);
    } else if (!is_prefill) {
        histogram_add(&stats->next_tokens, &histogram_times, now_ns - generation->last_ns);
    }
    generation->last_ns = now_ns;
}

/* May the token begin another choice, and take long to copy, note and echo its prompt? */
static bool may_begin_long(const struct generation *generation)
{
    uint32_t next = generation->choice + 1;
    return next < generation->choice_count &&
           generation->prompts[next / generation->ask.n].count > PROMPT_INLINE_MAX;
}

/* The token may end the answer, and then calls of tools are looked for in all of it. */
static bool may_find_long(const struct generation *generation)
{
    size_t tools = generation->ask.tools.len;
    return tools > 0 && tools + generation->stops.text.len > CALLS_INLINE_MAX;
}

/* The token may end the answer, and then the marks of all its tokens are printed. */
static bool may_print_long(const struct infer *infer)
{
    const struct generation *generation = generation_of(infer);
    size_t marks = generation->marks.len / sizeof(struct sampler_mark);
    size_t bytes = marks * (generation->ask.top_count + 1) * MARK_TEXT_BYTES;
    return bytes > infer->env->params->inline_bytes_max;
}

/* Tokenizers, long prompts, grammars, large vocabularies, long texts with calls, many marks. */
static bool is_long(const struct infer *infer, enum infer_step step)
{
    if (step == INFER_PARSE) {
        return true;
    }
    const struct generation *generation = generation_of(infer);
    if (step == INFER_DECODE) {
        return generation->first_ns == 0;
    }
    return step == INFER_SAMPLE &&
           (generation->constraint || ask_scores_prompt(&generation->ask) ||
            may_begin_long(generation) || may_find_long(generation) || may_print_long(infer) ||
            sampler_is_long(&generation->sampler, generation->ask.wants_logprobs,
                            generation->draft_count + 1));
}

/* ---- SAMPLE ---------------------------------------------------------------------------------- */

static enum status sample(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    uint32_t end = step_end(generation);
    if (generation->taken_count == 0) {
        generation_prefix_note(infer);
        TRY(generation_score_take(infer, err));
    }
    if (generation->taken_count == 0 && end < generation->token_count) {
        generation->fed_count = end;
        return ST_OK;
    }
    return generation_drafts_sample(infer, err);
}

static bool is_stream(const struct infer *infer)
{
    return generation_of(infer)->ask.is_stream;
}

static bool is_over(const struct infer *infer)
{
    return generation_of(infer)->is_over;
}

static void print_error_event(const struct infer *infer, const struct error *why, int http_status,
                              struct buf *out)
{
    reply_print_error_event(&generation_of(infer)->reply, out, why->text, http_status);
}

struct generation_counts generation_counts(const struct infer *infer)
{
    if (infer->ops != &generation_ops || !infer->own) {
        return (struct generation_counts){0};
    }
    const struct generation *generation = generation_of(infer);
    return (struct generation_counts){
        .prompt_tokens = generation->reply.prompt_tokens,
        .answer_tokens = generation->reply.answer_tokens,
        .first_ns = generation->first_ns ? generation->first_ns - infer->arrived_ns : 0,
    };
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static size_t encode_bytes(const struct infer *infer)
{
    return infer->out->len;
}

static enum status print(struct infer *infer, struct error *err)
{
    (void)err;
    reply_print_rest(&generation_of(infer)->reply, infer->out);
    infer->encoded.is_message = generation_of(infer)->ask.is_message;
    return ST_OK;
}

/* States that were kept are dropped some time after their last use. */
static void count(const struct infer *infer, int http_status, uint64_t now_ns)
{
    const struct params *params = infer->env->params;
    infer_one_count(infer, http_status, now_ns);
    if (infer->own && infer->call.model) {
        generation_drafts_count(infer); /* of the last step */
    }
    alarm_set(infer->env->alarm, now_ns + params->sequence_timeout * NS_PER_MS);
}

const struct infer_ops generation_ops = {
    .life =
        {
            .is_apart = true,
            .find = generation_parse_find,
            .is_long = is_long,
            .parse = runs_parse,
            .decode = decode,
            .count = count,
            .free = free_generation,
        },
    .run =
        {
            .open_states = open_states,
            .enter = enter,
            .count_run = count_run,
            .sample = sample,
            .is_over = is_over,
        },
    .print =
        {
            .encode_bytes = encode_bytes,
            .print = print,
            .is_stream = is_stream,
            .print_error_event = print_error_event,
        },
};
