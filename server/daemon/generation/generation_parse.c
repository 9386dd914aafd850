/* SPDX-License-Identifier: MIT */
/* Step PARSE of a generation: from the body to the prompts as ids. */
#include "config.h"

#include "server/daemon/generation/generation_priv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "runtime/call/batch.h"
#include "server/daemon/infer/codec.h"
#include "server/language/ask_message.h"
#include "server/language/infill_fit.h"

#define LINES_OF_JSON "application/x-ndjson"

int generation_parse_find(struct infer *infer, struct error *err)
{
    if (!infer->model_name[0]) {
        return 200; /* the body names the model */
    }
    return infer_find_target(infer, err);
}

static bool is_language_model(const struct model *model)
{
    return model->uses.generates;
}

static enum status find_model(struct infer *infer, struct generation *generation, struct error *err)
{
    struct infer_call *call = &infer->call;
    char only[MODEL_NAME_MAX + 1];
    const char *name = generation->ask.model ? generation->ask.model : infer->model_name;
    if (!call->model && !*name) {
        TRY(runs_find_only(infer, is_language_model, "language model", only, err));
        name = only;
    }
    if (!call->model) {
        TRY(infer_find_model(infer, call, name, infer->version, err));
    }
    struct generator *generator = call->model->generator;
    if (!generator) {
        return model_refuse_texts(call->model, "language model", err);
    }
    generation->generator = generator;
    /* For logs: the target may have no name. */
    snprintf(infer->model_name, MODEL_NAME_MAX + 1, "%s", call->model->name);
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

static enum status refuse_length(const struct infer *infer, uint32_t count, bool is_least,
                                 struct error *err)
{
    const struct generation *generation = generation_of(infer);
    return error_set(err, ST_INVALID,
                     "the prompt has %u tokens%s, the context of model '%s' has %u, with at least "
                     "one for the answer",
                     count, is_least ? " or more" : "", infer->call.model->name,
                     generation->generator->context);
}

/* The ids of one prompt, in the arena. |room| has the context and one more. */
static enum status make_prompt(struct infer *infer, const struct ask_prompt *given, bool is_raw,
                               uint32_t *room, struct prompt *out, struct error *err)
{
    const struct generation *generation = generation_of(infer);
    uint32_t context = generation->generator->context, count = given->id_count;
    const uint32_t *ids = given->ids;
    const struct words *words = generation->generator->words;
    const struct ask *ask = &generation->ask;
    struct span suffix = ask->suffix;
    if (ask->form == ASK_INFILL) {
        struct words_room own = {.ids = room, .max = context};
        const struct infill_gap gap = {.before = given->text,
                                       .after = suffix,
                                       .begun = ask->begun,
                                       .extras = ask->extras,
                                       .extra_count = ask->extra_count,
                                       .answer_max = ask->max_tokens};
        TRY(infill_fit(&generation->generator->infill, words, &gap, &own, err));
        ids = room;
        count = own.count;
    } else if (suffix.len > 0) {
        struct words_room own = {.ids = room, .max = context};
        TRY(infill_encode(&generation->generator->infill, words, given, suffix, &own, err));
        ids = room;
        count = own.count;
    } else if (!ids) {
        if (words_verify_bytes(words, given->text, context, err) != ST_OK) {
            return error_prefix(err, "the prompt: ");
        }
        struct words_room own = {.ids = room, .max = context};
        TRY(words_encode(words, given->text, is_raw, &own, err));
        ids = room;
        count = own.count;
    }
    if (count >= context) {
        return refuse_length(infer, count, count > WORDS_COUNT_MAX, err);
    }
    TRY(check_ids(generation, "prompt", ids, count, err));
    if (count == 0 && generation->generator->has_bos) {
        ids = &generation->generator->bos;
        count = 1;
    }
    if (count == 0) {
        return error_set(err, ST_INVALID, "the prompt has no tokens, expected at least one");
    }
    uint32_t *copy = arena_array(&infer->arena, count, sizeof(*copy));
    if (!copy) {
        return arena_fail(&infer->arena, "the prompt", err);
    }
    memcpy(copy, ids, count * sizeof(*copy));
    *out = (struct prompt){copy, count};
    return ST_OK;
}

/* Answers between two texts end with further tokens. */
static enum status begin_infill(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    const struct infill_rules *rules = &generation->generator->infill;
    struct ask *ask = &generation->ask;
    TRY(infill_check(rules, ask->form == ASK_INFILL ? "input_suffix" : "suffix",
                     infer->call.model->name, err));
    if (rules->end_count == 0 || ask->ignores_ends) {
        return ST_OK;
    }
    size_t given = ask->stop_id_count;
    uint32_t *ids = arena_array(&infer->arena, given + rules->end_count, sizeof(*ids));
    if (!ids) {
        return arena_fail(&infer->arena, "the tokens that end an answer", err);
    }
    if (given > 0) {
        memcpy(ids, ask->stop_ids, given * sizeof(*ids));
    }
    memcpy(ids + given, rules->ends, rules->end_count * sizeof(*ids));
    ask->stop_ids = ids;
    ask->stop_id_count += rules->end_count;
    return ST_OK;
}

static enum status make_prompts(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    const struct ask *ask = &generation->ask;
    generation->prompts =
        arena_array(&infer->arena, ask->prompt_count, sizeof(generation->prompts[0]));
    if (!generation->prompts) {
        return arena_fail(&infer->arena, "the prompts", err);
    }
    TRY(ask_has_gap(ask) ? begin_infill(infer, err) : ST_OK);
    for (uint32_t i = 0; i < ask->prompt_count; i++) {
        TRY(make_prompt(infer, &ask->prompts[i], false, generation->tokens, &generation->prompts[i],
                        err));
        generation->reply.prompt_tokens += generation->prompts[i].count;
    }
    return ST_OK;
}

/* Guesses may be checked, now or once that has been tried: else the prediction is of no use. */
static bool may_guess(const struct infer *infer)
{
    const struct model *model = infer->call.model;
    const struct generator *generator = generation_of(infer)->generator;
    return generator_is_positional(generator) && model->params.draft_tokens_max > 0 &&
           rt_batch_has_states(model->method) && !atomic_load(&generator->never_guesses);
}

/*
 * The tokens of the prediction: at most as many as an answer can have. It says what text may come,
 * so it is cut into tokens as a part of one. A text that has more tokens than words_encode() counts
 * says nothing.
 */
static enum status take_prediction(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    const struct generator *generator = generation->generator;
    struct span text = generation->ask.prediction;
    uint32_t max = generator->context;
    struct words_room room = {.ids = generation->tokens, .max = max};
    size_t bytes_max = words_bytes_max(generator->words, max);
    if (text.len == 0 || !may_guess(infer)) {
        return ST_OK;
    }
    bytes_max = bytes_max < WORDS_COUNT_MAX ? bytes_max : WORDS_COUNT_MAX;
    text.len = text.len <= bytes_max ? text.len : utf8_floor(text.ptr, bytes_max);
    TRY(words_encode(generator->words, text, true, &room, err));
    if (room.count > WORDS_COUNT_MAX) {
        return ST_OK; /* there are no ids */
    }
    uint32_t count = room.count < max ? room.count : max;
    uint32_t *said = arena_array(&infer->arena, count, sizeof(*said));
    if (!said) {
        return arena_fail(&infer->arena, "the prediction", err);
    }
    memcpy(said, generation->tokens, count * sizeof(*said));
    generation->said = said;
    generation->said_count = count;
    return ST_OK;
}

/* Templates may build much while they render. */
#define CHAT_BYTES_MAX (64 << 20)

/* The only prompt of a chat. */
static enum status render_chat(struct infer *infer, struct arena *arena, struct buf *text,
                               struct error *err)
{
    struct generation *generation = generation_of(infer);
    struct prompt *prompt = arena_alloc(&infer->arena, sizeof(*prompt));
    if (!prompt) {
        return arena_fail(&infer->arena, "the prompt", err);
    }
    TRY(chat_render(&generation->generator->chat, &generation->ask, arena, text, err));
    const struct ask_prompt given = {.text = buf_span(text)};
    TRY(make_prompt(infer, &given, true, generation->tokens, prompt, err));
    if (generation->generator->thinking.thinks) {
        generation->thinking_start =
            thinking_start_of(&generation->generator->thinking, given.text);
    }
    generation->prompts = prompt;
    generation->ask.prompt_count = 1;
    generation->reply.prompt_tokens = prompt->count;
    return ST_OK;
}

static enum status make_chat(struct infer *infer, struct error *err)
{
    struct arena arena;
    struct buf text;
    arena_init(&arena, CHAT_BYTES_MAX);
    buf_init(&text, CHAT_BYTES_MAX);
    enum status status = render_chat(infer, &arena, &text, err);
    buf_fini(&text);
    arena_fini(&arena);
    return status == ST_UNSUPPORTED ? error_prefix(err, "model '%s': ", infer->call.model->name)
                                    : status;
}

static void begin_reply(struct infer *infer)
{
    struct generation *generation = generation_of(infer);
    struct reply *reply = &generation->reply;
    reply->ask = &generation->ask;
    reply->words = generation->generator->words;
    reply->model = infer->call.model->name;
    reply->version = infer->call.model->version_text;
    reply->created = (int64_t)time(NULL);
    snprintf(reply->id, sizeof(reply->id), "%016" PRIx64, generation_random_bits());
}

static enum status generation_new(struct infer *infer, struct error *err)
{
    struct generation *generation = calloc(1, sizeof(*generation));
    if (!generation) {
        return generation_no_memory(err);
    }
    generation->magic = GENERATION_MAGIC;
    stops_init(&generation->stops, NULL, 0, GENERATION_TEXT_BYTES_MAX);
    thinking_init(&generation->thinking, NULL, GENERATION_TEXT_BYTES_MAX);
    buf_init(&generation->raw, GENERATION_TEXT_BYTES_MAX);
    infer->own = generation;
    infer->call.joined = -1; /* stats_add_step() counts what has run */
    return ST_OK;
}

/* The model is known. Rendering and tokenizing take long and have few threads, so they come after
 * the request has been counted. */
static enum status parse_counted(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    struct ask *ask = &generation->ask;
    generation->tokens =
        malloc(((size_t)generation->generator->context + 1) * sizeof(generation->tokens[0]));
    if (!generation->tokens) {
        return generation_no_memory(err);
    }
    TRY(ask_is_chat(ask) ? make_chat(infer, err) : make_prompts(infer, err));
    TRY(take_prediction(infer, err));
    TRY(constraint_new(ask, generation->generator, &generation->constraint, err));
    begin_reply(infer);
    infer->id = ask->id;
    infer->call.sample_count = 1;
    TRY(generation_choice_begin_all(generation, err));
    return generation_count_bytes(infer, err);
}

/* A prompt with a suffix, or for a model without a template, is taken as it is. */
static void settle_raw(struct generation *generation)
{
    struct ask *ask = &generation->ask;
    const struct chat *chat = &generation->generator->chat;
    bool has_none = !chat->template && !chat->is_refused;
    bool is_plain = ask->suffix.len > 0 || (has_none && !ask->instructions.len);
    ask->is_raw |= ask->form == ASK_OLLAMA_GENERATE && is_plain;
}

/* Of a form that is a row of route.def. */
static enum status parse_form(struct infer *infer, enum ask_form form, bool is_stream,
                              const struct oip_body *parts, struct error *err)
{
    TRY(generation_new(infer, err));
    struct generation *generation = generation_of(infer);
    struct ask *ask = &generation->ask;
    TRY(ask_parse(form, parts->json, (uint32_t)infer->env->params->json_depth_max, &infer->arena,
                  ask, err));
    ask->is_stream |= is_stream;
    ask->is_message = infer->call.codec->is_message;
    infer->has_keep = ask->has_keep;
    infer->keep_ns = ask->keep_ns;
    TRY(find_model(infer, generation, err));
    ask_take_defaults(ask, &generation->generator->defaults);
    settle_raw(generation);
    TRY(check_bounds(generation, err));
    TRY(seats_take(infer, &generation->generator->seats, "generations", err));
    enum status status = parse_counted(infer, err);
    if (status != ST_OK) {
        generation_count_out(infer); /* its error may take a while to be sent */
        generation_let_go(generation);
    }
    return status;
}

enum status generation_parse_generate(struct infer *infer, bool is_stream,
                                      const struct oip_body *body, struct error *err)
{
    return parse_form(infer, ASK_GENERATE, is_stream, body, err);
}

#define PARSE(name, form, is_stream)                                                               \
    static enum status name(struct infer *infer, struct infer_call *call,                          \
                            const struct oip_body *parts, struct span *out_rest,                   \
                            struct error *err)                                                     \
    {                                                                                              \
        (void)call;                                                                                \
        (void)out_rest;                                                                            \
        return parse_form(infer, (form), (is_stream), parts, err);                                 \
    }
PARSE(parse_completion, ASK_COMPLETION, false)
PARSE(parse_chat, ASK_CHAT, false)
PARSE(parse_response, ASK_RESPONSE, false)
PARSE(parse_cohere, ASK_COHERE, false)
PARSE(parse_llama, ASK_LLAMA, false)
PARSE(parse_infill, ASK_INFILL, false)
PARSE(parse_ollama_chat, ASK_OLLAMA_CHAT, false)
PARSE(parse_ollama_generate, ASK_OLLAMA_GENERATE, false)
PARSE(parse_generate, ASK_GENERATE, false)
PARSE(parse_generate_stream, ASK_GENERATE, true)
#undef PARSE

static enum status parse_message(struct infer *infer, struct infer_call *call,
                                 const struct oip_body *parts, struct span *out_rest,
                                 struct error *err)
{
    (void)call;
    (void)out_rest;
    TRY(ask_message_verify_version(head_value(infer->head, HTTP_ANTHROPIC_VERSION), err));
    return parse_form(infer, ASK_MESSAGE, false, parts, err);
}

const struct codec generation_completion = {.parse = parse_completion,
                                            .name_input = codec_name_none};
const struct codec generation_chat = {.parse = parse_chat, .name_input = codec_name_none};
const struct codec generation_response = {.parse = parse_response, .name_input = codec_name_none};
const struct codec generation_message = {.parse = parse_message, .name_input = codec_name_none};
const struct codec generation_cohere = {.parse = parse_cohere, .name_input = codec_name_none};
const struct codec generation_llama = {.parse = parse_llama, .name_input = codec_name_none};
const struct codec generation_infill = {.parse = parse_infill, .name_input = codec_name_none};
const struct codec generation_ollama_chat = {
    .parse = parse_ollama_chat, .name_input = codec_name_none, .stream_type = LINES_OF_JSON};
const struct codec generation_ollama_generate = {
    .parse = parse_ollama_generate, .name_input = codec_name_none, .stream_type = LINES_OF_JSON};
const struct codec generation_generate = {.parse = parse_generate, .name_input = codec_name_none};
const struct codec generation_generate_stream = {.parse = parse_generate_stream,
                                                 .name_input = codec_name_none};
