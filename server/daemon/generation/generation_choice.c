/* SPDX-License-Identifier: MIT */
/* The choices of a generation, one after the other: how one begins, its tokens, its text and its
 * end. */
#include "config.h"

#include "server/daemon/generation/generation_priv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uv.h>

#include "protocol/number.h"
#include "runtime/call/invocation.h"

/* Tokens of an answer when the request does not say, as other servers have it. */
#define COMPLETION_TOKENS 16
#define GENERATE_TOKENS 20

#define NS_PER_S 1000000000u

/* The tools that an answer may call. An answer that must have another form is no call, even if it
 * looks like one. */
static struct span called_tools(const struct generation *generation)
{
    enum ask_shape shape = generation->ask.shape;
    return shape == ASK_ANY_TEXT || shape == ASK_CALL ? generation->ask.tools : span_str("");
}

/* ---- the beginning --------------------------------------------------------------------------- */

static uint32_t answer_max(const struct generation *generation, uint32_t prompt_count)
{
    uint32_t left = generation->generator->context - prompt_count, wanted;
    wanted = generation->ask.max_tokens != UINT32_MAX ? generation->ask.max_tokens
             : generation->ask.form == ASK_COMPLETION ? COMPLETION_TOKENS
             : generation->ask.form == ASK_GENERATE   ? GENERATE_TOKENS
                                                      : left;
    return wanted < left ? wanted : left;
}

/* The text of a token may depend on some tokens before it: whether a blank stands between them, or
 * a character goes on. */
#define TOKENS_BEFORE 8

static bool has_places(const struct generation *generation)
{
    return generation->ask.wants_logprobs && generation->ask.form == ASK_COMPLETION;
}

/*
 * Returns where the token |id|, which has just been pushed, stands in the text; |before| is the
 * text's length before that. A token stands where its own bytes do, if they have come. Else they
 * are held back, or the text has something else: no blank at its beginning, or U+FFFD.
 */
static uint32_t place_token(struct generation *generation, uint32_t id, size_t before)
{
    struct generation_place *place = &generation->place;
    const struct words *words = generation->generator->words;
    const struct buf *text = &generation->stops.text;
    struct buf *own = &generation->raw;
    struct error ignored;
    buf_reset(own);
    (void)!words_bytes(words, id, own, &ignored); /* then it is shorter, or empty */
    size_t come = text->len - before, len = own->len;
    uint32_t characters =
        words_is_special(words, id) ? 0 : (uint32_t)reply_count_characters(buf_span(own));
    bool has_come =
        len > 0 && come >= len && memcmp(text->ptr + text->len - len, own->ptr, len) == 0;
    if (come > 0) {
        place->total += (uint32_t)reply_count_characters(span_of(text->ptr + before, come));
    }
    uint32_t offset = has_come ? place->total - characters : place->next;
    place->next = come > 0 ? place->total : place->next + characters;
    return offset;
}

/* Of a token of the answer, which has a mark. */
static void place_mark(struct generation *generation, uint32_t id, size_t before)
{
    struct buf *marks = &generation->marks;
    if (has_places(generation)) {
        struct sampler_mark *last = (void *)(marks->ptr + marks->len - sizeof(*last));
        last->offset = place_token(generation, id, before);
    }
}

/* Of a token of a prompt that is echoed. */
static void place_echo(struct generation *generation, uint32_t id, size_t before)
{
    if (has_places(generation)) {
        uint32_t offset = place_token(generation, id, before);
        buf_add(&generation->prompt_offsets, &offset, sizeof(offset));
    }
}

/* The stream has the end of the prompt; its text is part of the answer if it is to be echoed. */
static enum status push_prompt(struct generation *generation, const struct prompt *prompt,
                               struct error *err)
{
    struct stops *stops = &generation->stops;
    bool echoes = generation->ask.echoes;
    uint32_t first = echoes || prompt->count < TOKENS_BEFORE ? 0 : prompt->count - TOKENS_BEFORE;
    for (uint32_t i = first; i < prompt->count; i++) {
        size_t before = stops->text.len;
        TRY(words_stream_push(generation->stream, prompt->ids[i], &stops->text, err));
        if (echoes) {
            place_echo(generation, prompt->ids[i], before);
        }
    }
    if (!echoes) {
        buf_reset(&stops->text);
    }
    return buf_failed(&stops->text) || buf_failed(&generation->prompt_offsets)
               ? generation_no_memory(err)
               : ST_OK;
}

/* The next choice: its prompt, and nothing of the last one. */
static enum status begin_choice(struct generation *generation, struct error *err)
{
    const struct prompt *prompt = &generation->prompts[generation->choice / generation->ask.n];
    memcpy(generation->tokens, prompt->ids, prompt->count * sizeof(prompt->ids[0]));
    generation->token_count = generation->prompt_count = prompt->count;
    generation->answer_max = answer_max(generation, prompt->count);
    generation->answer_count = generation->fed_count = generation->step_count = 0;
    generation->turn_left = 0; /* this prompt has a turn of its own */
    generation_prefix_begin(generation);
    generation_drafts_begin(generation);
    generation->reason = REPLY_GOES_ON;
    generation->has_begun = false;
    generation->told_bytes = 0;
    generation->told_calls = 0;
    generation->told_argument_bytes = 0;
    if (generation->reader) {
        tools_reader_restart(generation->reader);
    }
    generation_score_begin(generation);
    generation->place = (struct generation_place){0};
    buf_reset(&generation->prompt_offsets);
    buf_reset(&generation->marks);
    generation->settled_marks = generation->told_thought_bytes = 0;
    stops_restart(&generation->stops);
    thinking_restart(&generation->thinking, generation->thinking_start);
    if (generation->constraint && !thinking_find_open(&generation->thinking, &(uint32_t){0})) {
        generation->thinking.may_open = false;
    }
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

/* Reads the calls of the answers, if they may have some. */
static enum status begin_calls(struct generation *generation, struct error *err)
{
    const struct ask *ask = &generation->ask;
    bool needs_call = ask->shape == ASK_CALL;
    const struct tools_wanted wanted = {
        .tools = called_tools(generation),
        .chosen = needs_call ? ask->chosen_tool : span_str(""),
        .needs_call = needs_call,
        .call_max = ask->has_one_call ? 1 : TOOLS_CALLS_MAX,
    };
    return wanted.tools.len > 0 ? tools_reader_new(generation->generator->tools.family, &wanted,
                                                   &generation->reader, err)
                                : ST_OK;
}

enum status generation_choice_begin_all(struct generation *generation, struct error *err)
{
    struct ask *ask = &generation->ask;
    generation->choice_count = ask->prompt_count * ask->n;
    stops_fini(&generation->stops);
    stops_init(&generation->stops, ask->stops, ask->stop_count, GENERATION_TEXT_BYTES_MAX);
    bool is_chat = ask_is_chat(ask);
    generation->reply.thinks = is_chat && generation->generator->thinking.thinks;
    generation->thinking.keeps_calls = is_chat && called_tools(generation).len > 0;
    if (generation->reply.thinks) {
        generation->thinking.rules = &generation->generator->thinking;
    }
    ask->sampler.seed = ask->has_seed ? ask->sampler.seed : generation_random_bits();
    buf_init(&generation->marks, mark_max(generation) * sizeof(struct sampler_mark));
    buf_init(&generation->prompt_marks,
             generation->generator->context * sizeof(struct sampler_mark));
    buf_init(&generation->prompt_offsets, generation->generator->context * sizeof(uint32_t));
    if (generation->generator->logits != DT_F32) {
        generation->row = malloc(generation->generator->vocab * sizeof(float));
        if (!generation->row) {
            return generation_no_memory(err);
        }
    }
    TRY(words_stream_new(generation->generator->words, &generation->stream, err));
    TRY(begin_calls(generation, err));
    return begin_choice(generation, err);
}

/* ---- the next token -------------------------------------------------------------------------- */

const float *generation_logits(struct generation *generation, const struct rt_result *result,
                               uint32_t index)
{
    const struct generator *generator = generation->generator;
    uint32_t vocab = generator->vocab;
    uint64_t rows = result->bytes.len / dtype_bytes(generator->logits) / vocab;
    uint64_t row =
        generation->form->has_all_logits && generation->step_count <= rows ? index : rows - 1;
    must(rows > 0 && index < generation->step_count);
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

/* A thought may be any text. */
static bool is_constrained(const struct generation *generation)
{
    return generation->constraint && !thinking_is_apart(&generation->thinking);
}

/* |*out_id| is not set if the answer ends here, because it is complete. */
static enum status choose_token(struct generation *generation, const struct rt_result *result,
                                uint32_t *out_id, struct error *err)
{
    const struct ask *ask = &generation->ask;
    const uint64_t *allowed = NULL;
    if (is_constrained(generation)) {
        uint32_t open;
        bool may_open = thinking_find_open(&generation->thinking, &open);
        TRY(constraint_mask(generation->constraint, may_open ? &open : NULL, &allowed, err));
        if (!allowed) {
            generation->reason = REPLY_STOP;
            return ST_OK;
        }
    }
    const float *logits = generation_logits(generation, result, generation->step_count - 1);
    uint64_t index = (uint64_t)generation->choice << 32 | generation->answer_count;
    TRY(sampler_choose(&generation->sampler, logits, allowed, index, out_id, err));
    if (ask->wants_logprobs) {
        struct sampler_mark mark;
        TRY(sampler_mark_token(&generation->sampler, logits, *out_id, ask->top_count, &mark, err));
        mark.offset = generation->place.next;
        buf_add(&generation->marks, &mark, sizeof(mark));
        if (buf_failed(&generation->marks)) {
            return generation_no_memory(err);
        }
    }
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

/* The text of a token: of the thought and of the answer. */
static enum status push_text(struct generation *generation, uint32_t id, struct error *err)
{
    struct buf *out = &generation->stops.text, *raw = &generation->raw;
    const struct thinking_rules *rules = generation->thinking.rules;
    const struct thinking_token *token = rules ? thinking_rules_find(rules, id) : NULL;
    bool has_tools = called_tools(generation).len > 0;
    bool is_mark = has_tools && tools_rules_have(&generation->generator->tools, id);
    if (!rules && !is_mark) {
        return words_stream_push(generation->stream, id, out, err);
    }
    buf_reset(raw);
    if (has_tools && id == generation->generator->tools.begin) {
        thinking_close(&generation->thinking, out); /* some models forget to */
    }
    if (token) {
        TRY(words_stream_end(generation->stream, raw, err));
        buf_add(raw, token->marker.bytes, token->marker.len);
    } else if (is_mark) { /* a special token, which is no text elsewhere */
        TRY(words_stream_end(generation->stream, raw, err));
        TRY(words_bytes(generation->generator->words, id, raw, err));
    } else {
        TRY(words_stream_push(generation->stream, id, raw, err));
    }
    thinking_push(&generation->thinking, buf_span(raw), out);
    return buf_failed(raw) || thinking_failed(&generation->thinking) ? generation_no_memory(err)
                                                                     : ST_OK;
}

/* Behind a thought, |text| of the answer has come with the token |id|, the last one of the thought,
 * or a mark of a call, which ends it: what the form does not allow is dropped. */
static enum status constrain_rest(struct generation *generation, uint32_t id, size_t before,
                                  bool *out_is_complete, struct error *err)
{
    struct buf *text = &generation->stops.text;
    struct span rest = span_of(text->ptr + before, text->len - before);
    if (tools_rules_have(&generation->generator->tools, id)) {
        buf_reset(&generation->raw);
        TRY(generator_token_text(generation->generator, id, &generation->raw, err));
        rest = buf_span(&generation->raw);
    }
    bool is_taken = false;
    TRY(constraint_advance_text(generation->constraint, rest, &is_taken, out_is_complete, err));
    text->len = is_taken ? text->len : before;
    return ST_OK;
}

/* Like push_text(); the answer's text keeps to its form. */
static enum status push_token(struct generation *generation, uint32_t id, bool *out_is_complete,
                              struct error *err)
{
    bool was_constrained = is_constrained(generation);
    size_t before = generation->stops.text.len;
    TRY(push_text(generation, id, err));
    bool is_apart = thinking_is_apart(&generation->thinking);
    if (was_constrained && !is_apart) {
        generation->thinking.may_open = false; /* it is an answer */
        return constraint_advance(generation->constraint, id, out_is_complete, err);
    }
    return generation->constraint && !is_apart && generation->stops.text.len > before
               ? constrain_rest(generation, id, before, out_is_complete, err)
               : ST_OK;
}

/* Tokens of thoughts and of their markers have no logarithms in the answer. |was_inside| a thought
 * and |marker_count| are of the time before the token. */
static void settle_marks(struct generation *generation, bool was_inside, uint32_t marker_count)
{
    const struct thinking *thinking = &generation->thinking;
    bool is_thought = was_inside || thinking->place == THINKING_INSIDE;
    generation->reply.thought_tokens += is_thought;
    if (is_thought || thinking->marker_count > marker_count) {
        generation->marks.len = generation->settled_marks;
    } else if (thinking->held.len == 0) {
        generation->settled_marks = generation->marks.len;
    }
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
    bool was_inside = generation->thinking.place == THINKING_INSIDE;
    uint32_t marker_count = generation->thinking.marker_count;
    size_t before = stops->text.len;
    TRY(push_token(generation, id, &is_complete, err));
    place_mark(generation, id, before);
    settle_marks(generation, was_inside, marker_count);
    stops_look(stops);
    if (stops->is_stopped || is_complete) {
        generation->reason = REPLY_STOP;
    } else if (generation->answer_count >= generation->answer_max) {
        generation->reason = REPLY_LENGTH;
    }
    return buf_failed(&stops->text) ? generation_no_memory(err) : ST_OK;
}

static enum status settle_text(struct generation *generation, struct error *err)
{
    struct buf rest;
    struct stops *stops = &generation->stops;
    buf_init(&rest, GENERATION_TEXT_BYTES_MAX);
    enum status status = words_stream_end(generation->stream, &rest, err);
    if (status == ST_OK && !stops->is_stopped) {
        thinking_push(&generation->thinking, buf_span(&rest), &stops->text);
        thinking_end(&generation->thinking, &stops->text);
        stops_look(stops);
        generation->reason = stops->is_stopped ? REPLY_STOP : generation->reason;
        stops_end(stops);
    }
    if (generation->thinking.place != THINKING_INSIDE) {
        generation->settled_marks = generation->marks.len; /* with the token that ends it */
    }
    buf_fini(&rest);
    return status;
}

/* ---- what the client is told ----------------------------------------------------------------- */

/* The calls of the answer so far; NULL: it has no reader. What was read is not read again: an
 * answer may be long, and this is asked for each of its tokens. */
static const struct tools_calls *read_calls(struct generation *generation, bool is_over)
{
    const struct stops *stops = &generation->stops;
    struct span text = span_of(stops->text.ptr, stops->ready_bytes);
    return generation->reader ? tools_reader_read(generation->reader, text, is_over) : NULL;
}

/* |calls|: those so far, or NULL. Their beginning ends the text. */
static struct reply_piece piece_of(struct generation *generation, const struct tools_calls *calls)
{
    const struct stops *stops = &generation->stops;
    const struct buf *thought = &generation->thinking.text;
    size_t told = generation->told_bytes, thought_told = generation->told_thought_bytes;
    size_t end = calls ? calls->text_bytes : stops->ready_bytes;
    end = end > told ? end : told;
    must(end <= stops->ready_bytes);
    bool has_prompt = ask_scores_prompt(&generation->ask) && !generation->has_begun;
    return (struct reply_piece){
        .choice = generation->choice,
        .text = span_of(stops->text.ptr + told, end - told),
        .marks = (const struct sampler_mark *)(const void *)generation->marks.ptr,
        .mark_count = (uint32_t)(generation->settled_marks / sizeof(struct sampler_mark)),
        .prompt = has_prompt ? generation->tokens : NULL,
        .prompt_offsets = (const uint32_t *)(const void *)generation->prompt_offsets.ptr,
        .prompt_marks = (const struct sampler_mark *)(const void *)generation->prompt_marks.ptr,
        .prompt_count = has_prompt ? generation->prompt_count : 0,
        .text_offset = told,
        .thought = span_of(thought->ptr + thought_told, thought->len - thought_told),
        .thought_offset = thought_told,
        .is_first = !generation->has_begun,
        .calls = calls && calls->count > 0 ? calls : NULL,
        .told_calls = generation->told_calls,
        .told_argument_bytes = generation->told_argument_bytes,
        .reason = generation->reason,
    };
}

static uint64_t less(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns > b_ns ? a_ns - b_ns : 0;
}

/* What an answer in Ollama's form says of times. */
static void note_times(const struct infer *infer, struct generation *generation)
{
    struct reply *reply = &generation->reply;
    struct timespec wall;
    uint64_t now_ns = uv_hrtime();
    clock_gettime(CLOCK_REALTIME, &wall);
    reply->wall_ns = (uint64_t)wall.tv_sec * NS_PER_S + (uint64_t)wall.tv_nsec;
    reply->total_ns = less(now_ns, infer->arrived_ns);
    reply->load_ns = infer->waited_ns;
    reply->answer_ns = less(now_ns, generation->first_ns); /* a token has come, so it is set */
    reply->prompt_ns = less(reply->total_ns - reply->answer_ns, infer->waited_ns);
}

/* The last piece of a choice. The model may have written calls of tools. */
static void tell_end(struct infer *infer, struct generation *generation)
{
    const struct tools_calls *calls = read_calls(generation, true);
    struct reply_piece piece = piece_of(generation, calls);
    if (piece.calls && piece.reason == REPLY_STOP && !calls->is_cut) {
        piece.reason = REPLY_TOOLS;
    }
    generation->reply.reason = piece.reason;
    generation->reply.stop = generation->stops.stopper;
    note_times(infer, generation);
    if (generation->ask.is_stream) {
        reply_print_event(&generation->reply, &piece, infer->out);
    } else {
        reply_print_choice(&generation->reply, &piece, infer->out);
    }
}

/* Those of tokens that are settled have been told. */
static void forget_marks(struct generation *generation)
{
    struct buf *marks = &generation->marks;
    size_t left = marks->len - generation->settled_marks;
    if (left > 0) {
        memmove(marks->ptr, marks->ptr + generation->settled_marks, left);
    }
    marks->len = left;
    generation->settled_marks = 0;
}

/* What |piece| says has been told. */
static void note_told(struct generation *generation, const struct reply_piece *piece)
{
    generation->told_bytes = piece->text_offset + piece->text.len;
    generation->told_thought_bytes += piece->thought.len;
    if (piece->calls) {
        generation->told_calls = piece->calls->count;
        generation->told_argument_bytes =
            piece->calls->calls[piece->calls->count - 1].arguments.len;
    }
    forget_marks(generation);
    generation->has_begun = true;
}

/* An event, if there is something to say. */
static void tell(struct infer *infer, struct generation *generation)
{
    if (generation->reason != REPLY_GOES_ON) {
        tell_end(infer, generation);
        return;
    }
    if (!generation->ask.is_stream) {
        return;
    }
    struct reply_piece piece = piece_of(generation, read_calls(generation, false));
    if (piece.calls && piece.calls->is_cut) {
        piece.thought.len = 0; /* it waits until the call is whole */
    }
    if (piece.text.len > 0 || piece.thought.len > 0 || reply_has_news_of_calls(&piece)) {
        note_times(infer, generation);
        reply_print_event(&generation->reply, &piece, infer->out);
        note_told(generation, &piece);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The choice has its end; the next one begins, or the answer is complete. */
static enum status end_choice(struct infer *infer, struct error *err)
{
    struct generation *generation = generation_of(infer);
    generation_end_sequence(infer);
    if (++generation->choice < generation->choice_count) {
        return begin_choice(generation, err);
    }
    generation->is_over = true;
    generation_count_out(infer);
    runs_join_times(&generation->times, &infer->job);
    if (generation->ask.is_stream) {
        reply_print_end(&generation->reply, infer->out);
    }
    generation_let_go(generation);
    return generation->ask.is_stream ? generation_count_bytes(infer, err) : ST_OK;
}

enum status generation_choice_weigh(struct infer *infer, struct error *err)
{
    const struct generation *generation = generation_of(infer);
    struct error ignored;
    if (!generation->constraint) {
        return ST_OK;
    }
    bool is_heavy = constraint_weigh(generation->constraint, &ignored) == ST_WOULD_BE_HEAVY;
    TRY(generation_count_bytes(infer, err));
    return is_heavy ? error_set(err, ST_WOULD_BE_HEAVY, "%s", status_text(ST_WOULD_BE_HEAVY))
                    : ST_OK;
}

enum status generation_choice_take(struct infer *infer, const struct rt_result *result,
                                   struct error *err)
{
    struct generation *generation = generation_of(infer);
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
    tell(infer, generation);
    if (generation->reason != REPLY_GOES_ON) {
        TRY(end_choice(infer, err));
    }
    return buf_check(infer->out, "the answer", err);
}
