/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/generation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <uv.h>

#include "base/check.h"
#include "protocol/number.h"
#include "runtime/call/invocation.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "runtime/sched/sequence.h"
#include "server/generate/constraint.h"
#include "server/generate/generator.h"
#include "server/generate/reply.h"
#include "server/generate/stops.h"
#include "server/generate/tools.h"
#include "server/generate/words.h"
#include "server/request.h"
#include "server/server.h"
#include "server/serving.h"
#include "server/stats.h"

/* Tokens of an answer when the request does not say, as other servers have it. */
#define COMPLETION_TOKENS 16
#define GENERATE_TOKENS 20

/* Text of one answer, and of all choices of a request. */
#define TEXT_BYTES_MAX (64 << 20)

#define GENERATION_MAGIC 0x67656e65u

/* A prompt as ids, in the request's arena. */
struct prompt {
    const uint32_t *ids;
    uint32_t count;
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
    uint32_t fed_count;  /* tokens that the sequence has had */
    uint32_t step_count; /* those that the present step adds */
    enum reply_reason reason;
    bool has_begun; /* an event of the choice is out */
    struct sampler sampler;
    struct stops stops;
    struct words_stream *stream;
    size_t told_bytes;        /* of the text: in events so far */
    struct reply_mark *marks; /* owned: if logarithms are wanted; room for |answer_max| */
    uint32_t mark_count, told_marks;
    float *row; /* owned: logits that are not float32, converted */
    /* ---- the request ---- */
    bool is_counted; /* in generator->active */
    bool is_over;
    struct buf choices; /* of an answer that is no stream */
    /* ---- times; the loop's ---- */
    uint64_t queued_ns, waited_ns, computed_ns; /* of all steps */
    uint64_t first_ns, last_ns;                 /* when tokens came */
};

static struct generation *generation_of(const struct request *request)
{
    struct generation *generation = request->infer.generation;
    OBJ_CHECK(generation, GENERATION_MAGIC);
    return generation;
}

static enum status no_memory(struct error *err)
{
    return error_set(err, ST_EXHAUSTED, "generation: out of memory");
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Any thread: the sequence is not left in the table. */
static void end_sequence(struct infer_call *call)
{
    if (call->sequence) {
        rt_sequence_end(call->sequence);
        rt_sequence_close(call->sequence);
        call->sequence = NULL;
    }
}

void generation_free(struct request *request)
{
    struct generation *generation = request->infer.generation;
    if (!generation) {
        return;
    }
    OBJ_CHECK(generation, GENERATION_MAGIC);
    end_sequence(&request->infer.call);
    if (generation->is_counted) {
        atomic_fetch_sub(&generation->generator->active, 1);
    }
    constraint_free(generation->constraint);
    sampler_fini(&generation->sampler);
    stops_fini(&generation->stops);
    words_stream_free(generation->stream);
    buf_fini(&generation->choices);
    free(generation->tokens);
    free(generation->marks);
    free(generation->row);
    generation->magic = 0;
    free(generation);
    request->infer.generation = NULL;
}

static enum status generation_new(struct request *request, struct error *err)
{
    struct generation *generation = calloc(1, sizeof(*generation));
    if (!generation) {
        return no_memory(err);
    }
    generation->magic = GENERATION_MAGIC;
    buf_init(&generation->choices, TEXT_BYTES_MAX);
    stops_init(&generation->stops, NULL, 0, TEXT_BYTES_MAX);
    request->infer.generation = generation;
    return ST_OK;
}

/* ---- PARSE ----------------------------------------------------------------------------------- */

static int find(struct request *request)
{
    if (!request->match.model[0]) {
        return 200; /* the body names the model */
    }
    enum status status = infer_find_model(request, &request->infer.call, request->match.model,
                                          request->match.version, &request->err);
    if (status == ST_WOULD_LOAD) {
        request->err.code = ST_OK;
        return 200;
    }
    return status == ST_OK ? 200 : status == ST_NOT_FOUND ? 404 : 503;
}

static enum status find_model(struct request *request, struct generation *generation,
                              struct error *err)
{
    struct infer_call *call = &request->infer.call;
    const char *name = generation->ask.model ? generation->ask.model : request->match.model;
    if (!call->model) {
        TRY(infer_find_model(request, call, name, request->match.version, err));
    }
    struct generator *generator = call->model->generator;
    if (!generator) {
        return error_set(err, ST_INVALID,
                         "model '%s' is no language model with a tokenizer, see "
                         "docs/language-models.md",
                         call->model->name);
    }
    generation->generator = generator;
    /* For logs: the target may have no name. */
    snprintf(request->match.model, sizeof(request->match.model), "%s", call->model->name);
    return ST_OK;
}

static enum status check_ids(const struct generation *generation, const char *what,
                             const uint32_t *ids, uint32_t count, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] >= generation->generator->vocab) {
            return error_set(err, ST_INVALID, "%s: expected ids below %u, got %u", what,
                             generation->generator->vocab, ids[i]);
        }
    }
    return ST_OK;
}

static enum status check_bounds(const struct generation *generation, struct error *err)
{
    const struct ask *ask = &generation->ask;
    for (uint32_t i = 0; i < ask->sampler.bias_count; i++) {
        TRY(check_ids(generation, "logit_bias", &ask->sampler.biases[i].id, 1, err));
    }
    return check_ids(generation, "stop_token_ids", ask->stop_ids, ask->stop_id_count, err);
}

static enum status refuse_length(const struct request *request, uint32_t count, bool is_least,
                                 struct error *err)
{
    const struct generation *generation = generation_of(request);
    return error_set(err, ST_INVALID,
                     "the prompt has %u tokens%s, the context of model '%s' has %u, with at least "
                     "one for the answer",
                     count, is_least ? " or more" : "", request->infer.call.model->name,
                     generation->generator->context);
}

/* The ids of one prompt, in the arena. |room| has the context and one more. */
static enum status make_prompt(struct request *request, const struct ask_prompt *given, bool is_raw,
                               uint32_t *room, struct prompt *out, struct error *err)
{
    const struct generation *generation = generation_of(request);
    uint32_t context = generation->generator->context, count = given->id_count;
    const uint32_t *ids = given->ids;
    if (!ids) {
        TRY(words_encode(generation->generator->words, given->text, is_raw, room, context, &count,
                         err));
        ids = room;
    }
    if (count >= context) {
        return refuse_length(request, count, count > WORDS_COUNT_MAX, err);
    }
    TRY(check_ids(generation, "prompt", ids, count, err));
    if (count == 0 && generation->generator->has_bos) {
        ids = &generation->generator->bos;
        count = 1;
    }
    if (count == 0) {
        return error_set(err, ST_INVALID, "the prompt has no tokens, expected at least one");
    }
    uint32_t *copy = arena_array(&request->infer.arena, count, sizeof(*copy));
    if (!copy) {
        return arena_fail(&request->infer.arena, "the prompt", err);
    }
    memcpy(copy, ids, count * sizeof(*copy));
    *out = (struct prompt){copy, count};
    return ST_OK;
}

static enum status make_prompts(struct request *request, struct error *err)
{
    struct generation *generation = generation_of(request);
    const struct ask *ask = &generation->ask;
    generation->prompts =
        arena_array(&request->infer.arena, ask->prompt_count, sizeof(generation->prompts[0]));
    if (!generation->prompts) {
        return arena_fail(&request->infer.arena, "the prompts", err);
    }
    for (uint32_t i = 0; i < ask->prompt_count; i++) {
        TRY(make_prompt(request, &ask->prompts[i], false, generation->tokens,
                        &generation->prompts[i], err));
        generation->reply.prompt_tokens += generation->prompts[i].count;
    }
    return ST_OK;
}

/* Templates may build much while they render. */
#define CHAT_BYTES_MAX (64 << 20)

/* The only prompt of a chat. */
static enum status render_chat(struct request *request, struct arena *arena, struct buf *text,
                               struct error *err)
{
    struct generation *generation = generation_of(request);
    struct prompt *prompt = arena_alloc(&request->infer.arena, sizeof(*prompt));
    if (!prompt) {
        return arena_fail(&request->infer.arena, "the prompt", err);
    }
    TRY(chat_render(&generation->generator->chat, &generation->ask, arena, text, err));
    const struct ask_prompt given = {.text = buf_span(text)};
    TRY(make_prompt(request, &given, true, generation->tokens, prompt, err));
    generation->prompts = prompt;
    generation->ask.prompt_count = 1;
    generation->reply.prompt_tokens = prompt->count;
    return ST_OK;
}

static enum status make_chat(struct request *request, struct error *err)
{
    struct arena arena;
    struct buf text;
    arena_init(&arena, CHAT_BYTES_MAX);
    buf_init(&text, CHAT_BYTES_MAX);
    enum status status = render_chat(request, &arena, &text, err);
    buf_fini(&text);
    arena_fini(&arena);
    return status == ST_UNSUPPORTED
               ? error_prefix(err, "model '%s': ", request->infer.call.model->name)
               : status;
}

/* No more than so many at a time. */
static enum status count_in(struct request *request, struct error *err)
{
    struct generation *generation = generation_of(request);
    const struct model *model = request->infer.call.model;
    uint32_t max = (uint32_t)model->params.generation_count_max;
    uint32_t before = atomic_fetch_add(&generation->generator->active, 1);
    generation->is_counted = true;
    return before < max ? ST_OK
                        : error_set(err, ST_EXHAUSTED,
                                    "model '%s' has %u generations under way, expected fewer than "
                                    "%u, see --generation-count-max",
                                    model->name, before, max);
}

static uint64_t random_bits(void)
{
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits)) {
        bits ^= uv_hrtime(); /* a kernel that has no entropy yet */
    }
    return bits;
}

static void begin_reply(struct request *request)
{
    struct generation *generation = generation_of(request);
    struct reply *reply = &generation->reply;
    reply->ask = &generation->ask;
    reply->words = generation->generator->words;
    reply->model = request->infer.call.model->name;
    reply->version = request->infer.call.model->version_text;
    reply->created = (int64_t)time(NULL);
    snprintf(reply->id, sizeof(reply->id), "%016" PRIx64, random_bits());
}

static uint32_t answer_max(const struct generation *generation, uint32_t prompt_count)
{
    uint32_t left = generation->generator->context - prompt_count, wanted;
    wanted = generation->ask.max_tokens != UINT32_MAX ? generation->ask.max_tokens
             : generation->ask.form == ASK_COMPLETION ? COMPLETION_TOKENS
             : generation->ask.form == ASK_GENERATE   ? GENERATE_TOKENS
                                                      : left;
    return wanted < left ? wanted : left;
}

/* What the text of a token is may depend on some before it: whether a blank stands between them, or
 * a character goes on. */
#define TOKENS_BEFORE 8

/* The stream has the end of the prompt; its text is part of the answer if it is to be echoed. */
static enum status push_prompt(struct generation *generation, const struct prompt *prompt,
                               struct error *err)
{
    struct stops *stops = &generation->stops;
    bool echoes = generation->ask.echoes;
    uint32_t first = echoes || prompt->count < TOKENS_BEFORE ? 0 : prompt->count - TOKENS_BEFORE;
    for (uint32_t i = first; i < prompt->count; i++) {
        TRY(words_stream_push(generation->stream, prompt->ids[i], &stops->text, err));
    }
    if (!echoes) {
        buf_reset(&stops->text);
    }
    return buf_failed(&stops->text) ? no_memory(err) : ST_OK;
}

/* The next choice: its prompt, and nothing of the last one. */
static enum status begin_choice(struct generation *generation, struct error *err)
{
    const struct prompt *prompt = &generation->prompts[generation->choice / generation->ask.n];
    memcpy(generation->tokens, prompt->ids, prompt->count * sizeof(prompt->ids[0]));
    generation->token_count = generation->prompt_count = prompt->count;
    generation->answer_max = answer_max(generation, prompt->count);
    generation->answer_count = generation->fed_count = generation->step_count = 0;
    generation->reason = REPLY_GOES_ON;
    generation->has_begun = false;
    generation->told_bytes = generation->mark_count = generation->told_marks = 0;
    stops_restart(&generation->stops);
    sampler_fini(&generation->sampler);
    sampler_init(&generation->sampler, &generation->ask.sampler, generation->generator->vocab);
    for (uint32_t i = 0; i < prompt->count; i++) {
        TRY(sampler_note(&generation->sampler, prompt->ids[i], true, err));
    }
    TRY(push_prompt(generation, prompt, err));
    stops_end(&generation->stops); /* a prompt does not end its own answer */
    return generation->constraint ? constraint_begin(generation->constraint, err) : ST_OK;
}

/* Tokens of an answer, whatever its prompt. */
static uint32_t mark_max(const struct generation *generation)
{
    uint32_t context = generation->generator->context;
    return generation->ask.max_tokens < context ? generation->ask.max_tokens + 1 : context;
}

static enum status begin_choices(struct generation *generation, struct error *err)
{
    struct ask *ask = &generation->ask;
    generation->choice_count = ask->prompt_count * ask->n;
    stops_fini(&generation->stops);
    stops_init(&generation->stops, ask->stops, ask->stop_count, TEXT_BYTES_MAX);
    ask->sampler.seed = ask->has_seed ? ask->sampler.seed : random_bits();
    if (ask->wants_logprobs) {
        generation->marks = calloc(mark_max(generation), sizeof(generation->marks[0]));
    }
    if (generation->generator->logits != DT_F32) {
        generation->row = malloc(generation->generator->vocab * sizeof(float));
    }
    if ((ask->wants_logprobs && !generation->marks) ||
        (generation->generator->logits != DT_F32 && !generation->row)) {
        return no_memory(err);
    }
    TRY(words_stream_new(generation->generator->words, &generation->stream, err));
    return begin_choice(generation, err);
}

/* Of a form that is a row of route.def. */
static enum status parse_form(struct request *request, enum ask_form form, bool is_stream,
                              const struct oip_body *parts, struct error *err)
{
    generation_free(request); /* an earlier attempt may have found no file or no memory */
    TRY(generation_new(request, err));
    struct generation *generation = generation_of(request);
    struct ask *ask = &generation->ask;
    TRY(ask_parse(form, parts->json, (uint32_t)request->server->params->json_depth_max,
                  &request->infer.arena, ask, err));
    ask->is_stream |= is_stream;
    TRY(find_model(request, generation, err));
    TRY(check_bounds(generation, err));
    generation->tokens =
        malloc(((size_t)generation->generator->context + 1) * sizeof(generation->tokens[0]));
    if (!generation->tokens) {
        return no_memory(err);
    }
    TRY(form == ASK_CHAT ? make_chat(request, err) : make_prompts(request, err));
    TRY(count_in(request, err));
    TRY(constraint_new(ask, generation->generator, &generation->constraint, err));
    begin_reply(request);
    request->infer.id = ask->id;
    request->infer.call.sample_count = 1;
    return begin_choices(generation, err);
}

static enum status parse_completion(struct request *request, struct infer_call *call,
                                    const struct oip_body *parts, struct span *out_rest,
                                    struct error *err)
{
    (void)call;
    (void)out_rest;
    return parse_form(request, ASK_COMPLETION, false, parts, err);
}

static enum status parse_chat(struct request *request, struct infer_call *call,
                              const struct oip_body *parts, struct span *out_rest,
                              struct error *err)
{
    (void)call;
    (void)out_rest;
    return parse_form(request, ASK_CHAT, false, parts, err);
}

static enum status parse_generate(struct request *request, struct infer_call *call,
                                  const struct oip_body *parts, struct span *out_rest,
                                  struct error *err)
{
    (void)call;
    (void)out_rest;
    return parse_form(request, ASK_GENERATE, false, parts, err);
}

static enum status parse_generate_stream(struct request *request, struct infer_call *call,
                                         const struct oip_body *parts, struct span *out_rest,
                                         struct error *err)
{
    (void)call;
    (void)out_rest;
    return parse_form(request, ASK_GENERATE, true, parts, err);
}

static enum status parse(struct request *request, const struct oip_body *parts, struct error *err)
{
    struct infer_call *call = &request->infer.call;
    return call->codec->parse(request, call, parts, NULL, err);
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

/* The ids of the next step: [1, n]. */
static enum status put_tokens(struct generation *generation, struct infer_call *call,
                              uint32_t first, struct error *err)
{
    const struct generator *generator = generation->generator;
    uint32_t width = generator->is_step_fixed ? generator->step_max : generation->step_count;
    const struct shape shape = {.rank = 2, .dims = {1, width}};
    void *memory;
    TRY(rt_invocation_input(call->invocation, 0, DT_I64, &shape, &memory, err));
    int64_t *ids = memory;
    for (uint32_t i = 0; i < width; i++) {
        ids[i] = i < generation->step_count ? generation->tokens[first + i] : 0;
    }
    return ST_OK;
}

/* The position of the first of them, or of each. */
static enum status put_position(struct generation *generation, struct infer_call *call,
                                struct error *err)
{
    const struct generator *generator = generation->generator;
    uint32_t count = generator->has_positions ? generation->step_count : 1;
    const struct shape shape = {.rank = 1, .dims = {count}};
    void *memory;
    TRY(rt_invocation_input(call->invocation, generator->position_input, DT_I64, &shape, &memory,
                            err));
    int64_t *positions = memory;
    for (uint32_t i = 0; i < count; i++) {
        positions[i] = (int64_t)generation->fed_count + i;
    }
    return ST_OK;
}

static void choose_step(struct generation *generation, const struct params *params)
{
    const struct generator *generator = generation->generator;
    uint32_t left = generation->token_count - generation->fed_count;
    uint32_t max = (uint32_t)params->prefill_tokens_max;
    max = max < generator->step_max ? max : generator->step_max;
    if (generator->position_input == 0) {
        generation->step_count = generation->token_count; /* it remembers nothing */
    } else {
        generation->step_count = left < max ? left : max;
    }
    must(generation->step_count > 0);
}

static enum status decode(struct request *request, struct error *err)
{
    struct generation *generation = generation_of(request);
    struct infer_call *call = &request->infer.call;
    struct infer *infer = &request->infer;
    must(call->invocation == NULL);
    choose_step(generation, &call->model->params);
    TRY(rt_invocation_new(call->model->method, infer->pool, &call->invocation, err));
    rt_invocation_run_in(call->invocation, infer->run_pool);
    bool has_position = generation->generator->position_input != 0;
    TRY(put_tokens(generation, call, has_position ? generation->fed_count : 0, err));
    return has_position ? put_position(generation, call, err) : ST_OK;
}

/* A key with a number and a name: no client has such a one. */
static enum status open_states(struct request *request, struct error *err)
{
    static _Atomic(uint64_t) last_number;
    struct infer_call *call = &request->infer.call;
    if (rt_program_state_bytes(call->model->program) == 0) {
        return ST_OK;
    }
    if (!call->sequence) {
        const struct rt_sequence_key key = {.program = call->model->program,
                                            .number = atomic_fetch_add(&last_number, 1) + 1,
                                            .name = span_str("generation")};
        if (rt_sequences_open(request->serving->sequences, &key, true, &call->sequence, err) !=
            ST_OK) {
            return error_prefix(err, "model '%s': ", call->model->name);
        }
    }
    rt_invocation_set_state(call->invocation, rt_sequence_state(call->sequence));
    return ST_OK;
}

static struct rt_sched_queue *enter(struct request *request)
{
    struct rt_sched_queue *queue = infer_one_enter(request);
    request->job.returns = request->job.rows > 0; /* the next token follows */
    return queue;
}

/* ---- the end of RUN -------------------------------------------------------------------------- */

/* On the loop: the times of the step, and of the token that it gives. */
static void count_step(struct request *request)
{
    struct generation *generation = generation_of(request);
    const struct rt_sched_job *job = &request->job;
    struct model_stats *stats = request->infer.call.model->stats;
    generation->queued_ns = generation->queued_ns ? generation->queued_ns : job->queued_ns;
    generation->waited_ns += job->started_ns - job->queued_ns;
    generation->computed_ns += job->finished_ns - job->started_ns;
    bool is_prefill = generation->answer_count == 0;
    stats_add_step(stats, job);
    if (is_prefill) {
        counter_add(&stats->prompt_tokens, generation->step_count);
    }
    if (generation->fed_count + generation->step_count < generation->token_count &&
        generation->generator->position_input != 0) {
        return;
    }
    uint64_t now_ns = uv_hrtime();
    counter_add(&stats->answer_tokens, generation->answer_max > 0);
    if (generation->first_ns == 0) {
        generation->first_ns = now_ns;
        histogram_add(&stats->first_tokens, &histogram_times, now_ns - request->arrived_ns);
    } else if (!is_prefill) {
        histogram_add(&stats->next_tokens, &histogram_times, now_ns - generation->last_ns);
    }
    generation->last_ns = now_ns;
}

static enum status finish(struct request *request, enum status status, struct error *err)
{
    struct generation *generation = generation_of(request);
    if (status == ST_OK) {
        count_step(request);
        bool wants_logprobs = generation->ask.wants_logprobs;
        request->offload =
            generation->constraint || sampler_is_long(&generation->sampler, wants_logprobs);
    }
    return infer_one_finish(request, status, err);
}

/* ---- SAMPLE ---------------------------------------------------------------------------------- */

/* The logits behind the last token of the step. */
static const float *find_logits(struct generation *generation, const struct rt_result *result)
{
    const struct generator *generator = generation->generator;
    uint32_t vocab = generator->vocab;
    uint64_t rows = result->bytes.len / dtype_bytes(generator->logits) / vocab;
    uint64_t row = generator->has_all_logits && generation->step_count <= rows
                       ? generation->step_count - 1u
                       : rows - 1;
    must(rows > 0);
    if (generator->logits == DT_F32) {
        return (const float *)(const void *)result->bytes.ptr + row * vocab;
    }
    const uint16_t *halves = (const uint16_t *)(const void *)result->bytes.ptr + row * vocab;
    for (uint32_t i = 0; i < vocab; i++) {
        generation->row[i] =
            generator->logits == DT_F16 ? number_from_f16(halves[i]) : number_from_bf16(halves[i]);
    }
    return generation->row;
}

/* |*out_id| is not set if the answer ends here, because it is complete. */
static enum status choose_token(struct generation *generation, const struct rt_result *result,
                                uint32_t *out_id, struct error *err)
{
    const struct ask *ask = &generation->ask;
    struct reply_mark mark = {0};
    const uint64_t *allowed = NULL;
    if (generation->constraint) {
        TRY(constraint_mask(generation->constraint, &allowed, err));
        if (!allowed) {
            generation->reason = REPLY_STOP;
            return ST_OK;
        }
    }
    const float *logits = find_logits(generation, result);
    uint64_t index = (uint64_t)generation->choice << 32 | generation->answer_count;
    TRY(sampler_choose(&generation->sampler, logits, allowed, index, ask->wants_logprobs,
                       &mark.chosen, ask->top_count, mark.top, &mark.top_count, err));
    if (ask->wants_logprobs) {
        must(generation->mark_count < mark_max(generation));
        generation->marks[generation->mark_count++] = mark;
    }
    *out_id = mark.chosen.id;
    return sampler_note(&generation->sampler, *out_id, false, err);
}

static bool ends_answer(const struct generation *generation, uint32_t id)
{
    const struct ask *ask = &generation->ask;
    for (uint32_t i = 0; i < ask->stop_id_count; i++) {
        if (ask->stop_ids[i] == id) {
            return true;
        }
    }
    return !ask->ignores_ends && generator_is_end(generation->generator, id);
}

/* The answer has one token more: its text, and whether that is the end. */
static enum status add_token(struct generation *generation, uint32_t id, struct error *err)
{
    struct stops *stops = &generation->stops;
    generation->tokens[generation->token_count++] = id;
    generation->answer_count++;
    generation->reply.answer_tokens++;
    if (ends_answer(generation, id)) {
        generation->reason = REPLY_STOP;
        return ST_OK;
    }
    bool is_complete = false;
    if (generation->constraint) {
        TRY(constraint_advance(generation->constraint, id, &is_complete, err));
    }
    TRY(words_stream_push(generation->stream, id, &stops->text, err));
    stops_look(stops);
    if (stops->is_stopped || is_complete) {
        generation->reason = REPLY_STOP;
    } else if (generation->answer_count >= generation->answer_max) {
        generation->reason = REPLY_LENGTH;
    }
    return buf_failed(&stops->text) ? no_memory(err) : ST_OK;
}

static enum status settle_text(struct generation *generation, struct error *err)
{
    struct buf rest;
    struct stops *stops = &generation->stops;
    buf_init(&rest, TEXT_BYTES_MAX);
    enum status status = words_stream_end(generation->stream, &rest, err);
    if (status == ST_OK && !stops->is_stopped) {
        buf_add(&stops->text, rest.ptr, rest.len);
        stops_look(stops);
        generation->reason = stops->is_stopped ? REPLY_STOP : generation->reason;
        stops_end(stops);
    }
    buf_fini(&rest);
    return status;
}

/* The tools that an answer may call: what has to have a form is no call, even if it looks so. */
static struct span called_tools(const struct generation *generation)
{
    return generation->constraint ? span_str("") : generation->ask.tools;
}

/* Text that may be told: not what may be the beginning of a call of a tool. */
static size_t text_end(const struct generation *generation)
{
    const struct stops *stops = &generation->stops;
    size_t plain = called_tools(generation).len ? tools_plain_bytes(buf_span(&stops->text))
                                                : stops->ready_bytes;
    return plain < stops->ready_bytes ? plain : stops->ready_bytes;
}

static struct reply_piece piece_of(struct generation *generation, size_t end)
{
    const struct stops *stops = &generation->stops;
    size_t told = generation->told_bytes;
    must(end >= told && end <= stops->ready_bytes);
    return (struct reply_piece){
        .choice = generation->choice,
        .text = span_of(stops->text.ptr + told, end - told),
        .marks = generation->marks ? generation->marks + generation->told_marks : NULL,
        .mark_count = generation->mark_count - generation->told_marks,
        .text_offset = told,
        .is_first = !generation->has_begun,
        .reason = generation->reason,
    };
}

/* The last piece of a choice. The model may have written calls of tools. */
static void tell_end(struct request *request, struct generation *generation)
{
    const struct stops *stops = &generation->stops;
    struct tools_calls calls;
    tools_find(called_tools(generation), span_of(stops->text.ptr, stops->ready_bytes), &calls);
    size_t told = generation->told_bytes, end = calls.text_bytes;
    struct reply_piece piece = piece_of(generation, end > told ? end : told);
    if (calls.count > 0) {
        piece.calls = &calls;
        piece.reason = piece.reason == REPLY_STOP ? REPLY_TOOLS : piece.reason;
    }
    if (generation->ask.is_stream) {
        reply_print_event(&generation->reply, &piece, &request->out);
    } else {
        reply_print_choice(&generation->reply, &piece, &generation->choices);
    }
}

/* An event, if there is something to say. */
static void tell(struct request *request, struct generation *generation)
{
    if (generation->reason != REPLY_GOES_ON) {
        tell_end(request, generation);
        return;
    }
    size_t end = text_end(generation);
    if (generation->ask.is_stream && end > generation->told_bytes) {
        const struct reply_piece piece = piece_of(generation, end);
        reply_print_event(&generation->reply, &piece, &request->out);
        generation->told_bytes = end;
        generation->told_marks = generation->mark_count;
        generation->has_begun = true;
    }
}

/* The times of all steps, put together as if they were those of one: for statistics and logs. */
static void join_times(const struct generation *generation, struct rt_sched_job *job)
{
    job->queued_ns = generation->queued_ns;
    job->started_ns = job->queued_ns + generation->waited_ns;
    job->finished_ns = job->started_ns + generation->computed_ns;
}

/* The choice has its end; the next one begins, or the answer is complete. */
static enum status end_choice(struct request *request, struct error *err)
{
    struct generation *generation = generation_of(request);
    end_sequence(&request->infer.call);
    if (++generation->choice < generation->choice_count) {
        return begin_choice(generation, err);
    }
    generation->is_over = true;
    join_times(generation, &request->job);
    if (generation->ask.is_stream) {
        reply_print_end(&generation->reply, &request->out);
    }
    return ST_OK;
}

static enum status take_token(struct request *request, const struct rt_result *result,
                              struct error *err)
{
    struct generation *generation = generation_of(request);
    uint32_t id = 0;
    if (generation->answer_max == 0) {
        generation->reason = REPLY_LENGTH; /* somebody wants only the echo, or the usage */
    } else {
        TRY(choose_token(generation, result, &id, err));
        if (generation->reason == REPLY_GOES_ON) {
            TRY(add_token(generation, id, err));
        }
    }
    if (generation->reason != REPLY_GOES_ON) {
        TRY(settle_text(generation, err));
    }
    tell(request, generation);
    if (generation->reason != REPLY_GOES_ON) {
        TRY(end_choice(request, err));
    }
    return buf_failed(&request->out) || buf_failed(&generation->choices)
               ? error_set(err, ST_TOO_LARGE, "the answer is too long")
               : ST_OK;
}

enum status generation_sample(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct generation *generation = generation_of(request);
    struct infer_call *call = &request->infer.call;
    must(call->invocation != NULL);
    bool has_cache = generation->generator->position_input != 0;
    generation->fed_count =
        has_cache ? generation->fed_count + generation->step_count : generation->step_count;
    enum status status = generation->fed_count < generation->token_count
                             ? ST_OK
                             : take_token(request, rt_invocation_result(call->invocation, 0), err);
    rt_invocation_free(call->invocation);
    call->invocation = NULL;
    return status;
}

bool generation_has_events(const struct request *request)
{
    return generation_of(request)->ask.is_stream && request->out.len > 0;
}

bool generation_is_over(const struct request *request)
{
    return generation_of(request)->is_over;
}

void generation_print_error(const struct request *request, struct buf *out)
{
    reply_print_error_event(generation_of(request)->ask.form, out, request->err.text,
                            request->http_status);
}

struct generation_counts generation_counts(const struct request *request)
{
    const struct generation *generation = request->infer.generation;
    if (!generation) {
        return (struct generation_counts){0};
    }
    OBJ_CHECK(generation, GENERATION_MAGIC);
    return (struct generation_counts){
        .prompt_tokens = generation->reply.prompt_tokens,
        .answer_tokens = generation->reply.answer_tokens,
        .first_ns = generation->first_ns ? generation->first_ns - request->arrived_ns : 0,
    };
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static size_t encode_bytes(const struct request *request)
{
    return generation_of(request)->choices.len;
}

static enum status print(struct request *request, struct error *err)
{
    struct generation *generation = generation_of(request);
    struct oip_encoded *encoded = &request->infer.encoded;
    encoded->spans = arena_array(&request->infer.arena, 1, sizeof(struct span));
    if (!encoded->spans) {
        return arena_fail(&request->infer.arena, "the answer", err);
    }
    oip_encode_begin(encoded);
    reply_print_whole(&generation->reply, buf_span(&generation->choices), &request->out);
    oip_encode_end_json(&request->out, encoded);
    return oip_encode_end(&request->out, encoded, err);
}

static void release(struct request *request)
{
    must(request->infer.call.invocation == NULL); /* each step frees its own */
}

static enum status hand_over(struct request *request, struct hal_pool *pool, struct error *err)
{
    (void)request;
    (void)pool;
    (void)err;
    return ST_OK; /* the answer is text */
}

const struct infer_ops generation_ops = {
    .is_long = true,
    .is_apart = true,
    .find = find,
    .parse = parse,
    .decode = decode,
    .open_states = open_states,
    .undo = infer_one_undo,
    .prepare = infer_one_prepare,
    .demand = infer_one_demand,
    .held_bytes = infer_one_held_bytes,
    .enter = enter,
    .start = infer_one_start,
    .cancel = infer_one_cancel,
    .finish = finish,
    .encode_bytes = encode_bytes,
    .print = print,
    .release = release,
    .hand_over = hand_over,
    .count = infer_one_count,
};

const struct infer_codec generation_completion = {.parse = parse_completion};
const struct infer_codec generation_chat = {.parse = parse_chat};
const struct infer_codec generation_generate = {.parse = parse_generate};
const struct infer_codec generation_generate_stream = {.parse = parse_generate_stream};
