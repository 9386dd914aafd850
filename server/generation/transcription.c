/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/generation/transcription.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/program/oracle.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "runtime/sched/sequence.h"
#include "server/generate/heard.h"
#include "server/generate/reply.h"
#include "server/generate/sampler.h"
#include "server/generate/transcriber.h"
#include "server/generate/words.h"
#include "server/generation/speech_ask.h"
#include "server/generation/speech_reply.h"
#include "server/infer/stats.h"
#include "server/media/log_mel.h"
#include "server/media/sound.h"
#include "server/request/request.h"
#include "server/server.h"
#include "server/serving/serving.h"

#define TRANSCRIPTION_MAGIC 0x74726e73u

/* Choosing from a larger vocabulary takes too long for the loop. */
#define INLINE_VOCAB_MAX 8192

/* Tokens in front of an answer, beside those of the client's prompt: start, language, task, times;
 * and the one that begins the prompt. */
#define HEAD_TOKENS_MAX 5

struct transcription {
    uint32_t magic;
    struct speech_ask ask;           /* its texts are gone after PARSE */
    struct transcriber *transcriber; /* of the request's model, which the request holds */
    bool is_counted;                 /* in transcriber->active */
    const struct transcriber_language *language; /* NULL: not known yet, or never */
    bool has_times;
    struct heard heard;
    struct speech_reply reply;
    struct sampler sampler;
    float *logits; /* owned: those that may be chosen */
    /* ---- the sound ---- */
    struct hal_buffer *sound; /* owned: samples */
    uint64_t sample_count;
    uint64_t window; /* the first sample of the present window */
    /* ---- the window ---- */
    bool is_encoding;          /* the present step is the encoder's */
    struct hal_buffer *hidden; /* owned: what the encoder gave, reserved once */
    size_t hidden_bytes;
    struct shape hidden_shape;
    uint32_t *tokens; /* owned: room for the context */
    uint32_t token_count, fed_count, step_count;
    uint32_t start_at; /* index of the token that starts */
    uint32_t *prompt;  /* owned: of the client, for the first window */
    uint32_t prompt_count;
    /* ---- the answer ---- */
    size_t told_bytes; /* of the text */
    bool is_over;
    uint64_t chosen_count; /* tokens so far: the same index is never used twice by the sampler */
    /* ---- times; the loop's ---- */
    uint64_t queued_ns, waited_ns, computed_ns; /* of all steps */
    uint64_t last_ns;                           /* when a token came; 0: none has */
};

static struct transcription *transcription_of(const struct request *request)
{
    struct transcription *t = request->infer.transcription;
    OBJ_CHECK(t, TRANSCRIPTION_MAGIC);
    return t;
}

static enum status no_memory(struct error *err)
{
    return error_set(err, ST_EXHAUSTED, "transcription: out of memory");
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

void transcription_free(struct request *request)
{
    struct transcription *t = request->infer.transcription;
    if (!t) {
        return;
    }
    OBJ_CHECK(t, TRANSCRIPTION_MAGIC);
    rt_invocation_free(request->infer.call.invocation); /* before the memory that it uses */
    request->infer.call.invocation = NULL;
    end_sequence(&request->infer.call);
    if (t->is_counted) {
        atomic_fetch_sub(&t->transcriber->active, 1);
    }
    heard_fini(&t->heard);
    sampler_fini(&t->sampler);
    hal_buffer_unref(t->sound);
    hal_buffer_unref(t->hidden);
    free(t->logits);
    free(t->tokens);
    free(t->prompt);
    t->magic = 0;
    free(t);
    request->infer.transcription = NULL;
}

static enum status transcription_new(struct request *request, struct error *err)
{
    struct transcription *t = calloc(1, sizeof(*t));
    if (!t) {
        return no_memory(err);
    }
    t->magic = TRANSCRIPTION_MAGIC;
    request->infer.transcription = t;
    return ST_OK;
}

/* ---- PARSE ----------------------------------------------------------------------------------- */

static int find(struct request *request)
{
    (void)request;
    return 200; /* the body names the model */
}

static enum status find_model(struct request *request, struct transcription *t, struct error *err)
{
    struct infer_call *call = &request->infer.call;
    TRY(infer_find_model(request, call, t->ask.model, 0, err));
    t->transcriber = call->model->transcriber;
    snprintf(request->match.model, sizeof(request->match.model), "%s", call->model->name);
    return t->transcriber ? ST_OK
                          : error_set(err, ST_INVALID,
                                      "model '%s' is no speech model with a tokenizer, see "
                                      "docs/speech.md",
                                      call->model->name);
}

/* No more than so many at a time. */
static enum status count_in(struct request *request, struct transcription *t, struct error *err)
{
    const struct model *model = request->infer.call.model;
    uint32_t max = (uint32_t)model->params.generation_count_max;
    uint32_t before = atomic_fetch_add(&t->transcriber->active, 1);
    t->is_counted = true;
    return before < max ? ST_OK
                        : error_set(err, ST_EXHAUSTED,
                                    "model '%s' has %u transcriptions under way, expected fewer "
                                    "than %u, see --generation-count-max",
                                    model->name, before, max);
}

static enum status find_language(struct transcription *t, struct error *err)
{
    const char *text = t->ask.language;
    if (t->ask.is_translation && !t->transcriber->has_translate) {
        return error_set(err, ST_UNSUPPORTED, "the model does not translate");
    }
    if (*text == '\0' || t->transcriber->language_count == 0) {
        return ST_OK; /* it will be heard, or there is only one */
    }
    t->language = transcriber_find_language(t->transcriber, text);
    return t->language ? ST_OK
                       : error_set(err, ST_INVALID,
                                   "language: '%s' is none of the %u that the model knows, "
                                   "expected one as 'en' or 'english'",
                                   text, t->transcriber->language_count);
}

/* The end of |text| in at most |len| bytes, which begins with a whole character. */
static struct span end_of(struct span text, size_t len)
{
    size_t from = text.len > len ? text.len - len : 0;
    while (from > 0 && from < text.len && (text.ptr[from] & 0xc0) == 0x80) {
        from++;
    }
    return span_of(text.ptr + from, text.len - from);
}

/* The client's prompt: as many of its last tokens as half of the context has room for. */
static enum status read_prompt(struct transcription *t, struct error *err)
{
    const struct transcriber *transcriber = t->transcriber;
    uint32_t max = transcriber->context / 2, count = 0;
    max = max > HEAD_TOKENS_MAX ? max - HEAD_TOKENS_MAX : 0;
    struct span text = t->ask.prompt;
    if (text.len == 0 || !transcriber->has_previous || max == 0) {
        return ST_OK;
    }
    text = end_of(text, words_bytes_max(transcriber->words, max));
    struct buf spaced; /* tokens of words begin with a blank */
    buf_init(&spaced, text.len + 1);
    buf_add_str(&spaced, text.ptr[0] == ' ' ? "" : " ");
    buf_add(&spaced, text.ptr, text.len);
    uint32_t room = text.len < WORDS_COUNT_MAX ? (uint32_t)text.len + 1 : WORDS_COUNT_MAX;
    uint32_t *ids = malloc(room * sizeof(*ids));
    enum status status =
        ids && !buf_failed(&spaced)
            ? words_encode(transcriber->words, buf_span(&spaced), true, ids, room, &count, err)
            : no_memory(err);
    buf_fini(&spaced);
    t->prompt = ids;
    TRY(status);
    if (count > room) {
        return error_set(err, ST_TOO_LARGE, "prompt: it has too many tokens");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] >= transcriber->vocab || words_is_special(transcriber->words, ids[i])) {
            return error_set(err, ST_INVALID, "prompt: expected plain text, got a special token");
        }
    }
    t->prompt_count = count < max ? count : max;
    memmove(ids, ids + (count - t->prompt_count), t->prompt_count * sizeof(*ids));
    return ST_OK;
}

/* Memory for requests: where it is short for now, the request waits, and begins again. */
static enum status reserve(struct request *request, size_t bytes, struct hal_buffer **out,
                           struct error *err)
{
    enum status status = hal_pool_reserve(request->infer.pool, bytes, out, err);
    return status == ST_EXHAUSTED ? infer_refuse_memory(request, bytes, err) : status;
}

static enum status read_samples(struct request *request, struct transcription *t,
                                struct sound *sound, struct error *err)
{
    TRY(infer_check_work(request, sound_decoded_bytes(sound), err));
    TRY(reserve(request, sound_count_max(sound) * sizeof(float), &t->sound, err));
    return sound_read(sound, hal_buffer_map(t->sound), &t->sample_count, err);
}

static enum status read_sound(struct request *request, struct transcription *t, struct error *err)
{
    const struct params *params = request->server->params;
    const struct sound_limits limits = {
        .seconds_max = params->sound_seconds_max,
        .channels_max = (uint32_t)params->sound_channels_max,
        .rate_max = (uint32_t)params->sound_rate_max,
    };
    struct sound *sound;
    infer_media_start(request);
    enum status status = sound_open(t->ask.file, t->transcriber->rate, &limits, &sound, err);
    if (status == ST_OK) {
        status = read_samples(request, t, sound, err);
        sound_close(sound);
    }
    if (status == ST_OK && t->sample_count == 0) {
        error_set(err, ST_INVALID, "expected a sound, got no samples");
        status = err->code;
    }
    return status == ST_OK || status == ST_EXHAUSTED || status == ST_TOO_LARGE ||
                   status == ST_WOULD_BE_HEAVY
               ? status
               : error_prefix(err, "file: ");
}

static enum status reserve_rest(struct request *request, struct transcription *t, struct error *err)
{
    const struct transcriber *transcriber = t->transcriber;
    t->hidden_bytes = sizeof(float);
    for (int i = 0; i < 3; i++) {
        if (!mul_size(t->hidden_bytes, (size_t)transcriber->hidden[i], &t->hidden_bytes)) {
            return error_set(err, ST_TOO_LARGE, "what the encoder gives is too large");
        }
    }
    TRY(reserve(request, t->hidden_bytes, &t->hidden, err));
    t->tokens = malloc(transcriber->context * sizeof(t->tokens[0]));
    t->logits = malloc(transcriber->vocab * sizeof(t->logits[0]));
    return t->tokens && t->logits ? ST_OK : no_memory(err);
}

/* What a window begins with. Its language may have to be heard first. */
static void add_task(struct transcription *t)
{
    const struct transcriber *transcriber = t->transcriber;
    if (t->language) {
        t->tokens[t->token_count++] = t->language->id;
        t->tokens[t->token_count++] =
            t->ask.is_translation ? transcriber->translate : transcriber->transcribe;
    }
    if (!t->has_times && transcriber->has_no_times) {
        t->tokens[t->token_count++] = transcriber->no_times;
    }
}

static bool needs_language(const struct transcription *t)
{
    return t->transcriber->language_count > 0 && !t->language;
}

static void begin_window(struct transcription *t, uint64_t window)
{
    t->window = window;
    t->is_encoding = true;
    t->token_count = t->fed_count = t->step_count = 0;
    if (window == 0 && t->prompt_count > 0) {
        t->tokens[t->token_count++] = t->transcriber->previous;
        memcpy(t->tokens + t->token_count, t->prompt, t->prompt_count * sizeof(t->prompt[0]));
        t->token_count += t->prompt_count;
    }
    t->start_at = t->token_count;
    t->tokens[t->token_count++] = t->transcriber->start;
    if (!needs_language(t)) {
        add_task(t);
    }
    heard_begin(&t->heard, window);
}

static void begin_reply(struct transcription *t)
{
    t->reply = (struct speech_reply){
        .heard = &t->heard,
        .form = t->ask.form,
        .is_translation = t->ask.is_translation,
        .temperature = t->ask.temperature,
        .sample_count = t->sample_count,
        .rate = t->transcriber->rate,
    };
}

/* Times cut a long sound where nobody speaks, and answers with times need them. */
static bool wants_times(const struct transcription *t)
{
    bool is_text = t->ask.form == SPEECH_JSON || t->ask.form == SPEECH_TEXT;
    return t->transcriber->time_count > 0 &&
           (!is_text || t->sample_count > t->transcriber->window_samples);
}

static enum status parse_form(struct request *request, bool is_translation, struct error *err)
{
    transcription_free(request); /* an earlier attempt may have found no file or no memory */
    TRY(transcription_new(request, err));
    struct transcription *t = transcription_of(request);
    TRY(speech_ask_parse(head_value(&request->head, HTTP_CONTENT_TYPE),
                         body_span(request->infer.body), &t->ask, err));
    t->ask.is_translation = is_translation;
    TRY(find_model(request, t, err));
    if (t->transcriber->context <= HEAD_TOKENS_MAX) {
        return error_set(err, ST_INVALID, "the context of the model has only %u tokens",
                         t->transcriber->context);
    }
    TRY(count_in(request, t, err));
    TRY(find_language(t, err));
    TRY(read_prompt(t, err));
    TRY(read_sound(request, t, err));
    TRY(reserve_rest(request, t, err));
    t->has_times = wants_times(t);
    const struct sampler_options options = {
        .temperature = t->ask.temperature, .top_p = 1, .repetition = 1};
    sampler_init(&t->sampler, &options, t->transcriber->vocab);
    TRY(heard_init(&t->heard, t->transcriber, t->has_times, err));
    begin_reply(t);
    request->infer.call.sample_count = 1;
    begin_window(t, 0);
    return ST_OK;
}

static enum status parse_transcribe(struct request *request, struct infer_call *call,
                                    const struct oip_body *parts, struct span *out_rest,
                                    struct error *err)
{
    (void)call;
    (void)parts;
    (void)out_rest;
    return parse_form(request, false, err);
}

static enum status parse_translate(struct request *request, struct infer_call *call,
                                   const struct oip_body *parts, struct span *out_rest,
                                   struct error *err)
{
    (void)call;
    (void)parts;
    (void)out_rest;
    return parse_form(request, true, err);
}

static enum status parse(struct request *request, const struct oip_body *parts, struct error *err)
{
    struct infer_call *call = &request->infer.call;
    enum status status = call->codec->parse(request, call, parts, NULL, err);
    if (status != ST_OK) {
        transcription_free(request); /* a request that waits for memory holds none */
    }
    return status;
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

/* The samples of the window, then silence. */
static void put_samples(const struct transcription *t, uint64_t count, float *out, uint64_t room)
{
    const float *samples = hal_buffer_map(t->sound);
    memcpy(out, samples + t->window, (size_t)count * sizeof(float));
    memset(out + count, 0, (size_t)(room - count) * sizeof(float));
}

static enum status put_features(struct transcription *t, struct infer_call *call, struct error *err)
{
    const struct transcriber *transcriber = t->transcriber;
    uint64_t left = t->sample_count - t->window, max = transcriber->window_samples;
    uint64_t count = left < max ? left : max;
    uint64_t room = transcriber->is_window_fixed || count < 2 ? max : count;
    struct shape shape = {.rank = transcriber->input_rank};
    void *memory;
    shape.dims[0] = 1;
    shape.dims[shape.rank - 1] = (int64_t)room;
    if (transcriber->log_mel) {
        shape.dims[1] = transcriber->bands;
        shape.dims[2] = transcriber->frames;
    }
    TRY(rt_invocation_input(call->invocation, 0, DT_F32, &shape, &memory, err));
    if (transcriber->log_mel) {
        const float *samples = hal_buffer_map(t->sound);
        return log_mel_compute(transcriber->log_mel, samples + t->window, count,
                               transcriber->frames, memory, err);
    }
    put_samples(t, count, memory, room);
    return ST_OK;
}

static enum status decode_encoder(struct request *request, struct transcription *t,
                                  struct error *err)
{
    struct infer *infer = &request->infer;
    struct infer_call *call = &infer->call;
    TRY(rt_invocation_new(t->transcriber->encoder, infer->pool, &call->invocation, err));
    rt_invocation_run_in(call->invocation, infer->run_pool);
    TRY(put_features(t, call, err));
    return ST_OK;
}

static enum status put_tokens(struct transcription *t, struct infer_call *call, struct error *err)
{
    const struct shape shape = {.rank = 2, .dims = {1, t->step_count}};
    uint32_t position_count = t->transcriber->has_positions ? t->step_count : 1;
    const struct shape positions = {.rank = 1, .dims = {position_count}};
    void *ids, *at;
    TRY(rt_invocation_input(call->invocation, 0, DT_I64, &shape, &ids, err));
    for (uint32_t i = 0; i < t->step_count; i++) {
        ((int64_t *)ids)[i] = t->tokens[t->fed_count + i];
    }
    TRY(rt_invocation_input(call->invocation, 2, DT_I64, &positions, &at, err));
    for (uint32_t i = 0; i < position_count; i++) {
        ((int64_t *)at)[i] = (int64_t)t->fed_count + i;
    }
    return ST_OK;
}

static enum status decode_token(struct request *request, struct transcription *t, struct error *err)
{
    struct infer *infer = &request->infer;
    struct infer_call *call = &infer->call;
    uint32_t left = t->token_count - t->fed_count, max = t->transcriber->step_max;
    t->step_count = left < max ? left : max;
    TRY(rt_invocation_new(call->model->method, infer->pool, &call->invocation, err));
    rt_invocation_run_in(call->invocation, infer->run_pool);
    TRY(put_tokens(t, call, err));
    const struct rt_buffer_desc hidden = {
        .dtype = DT_F32, .shape = t->hidden_shape, .buffer = t->hidden};
    return rt_invocation_bind_input(call->invocation, 1, &hidden, err);
}

static enum status decode(struct request *request, struct error *err)
{
    struct transcription *t = transcription_of(request);
    must(request->infer.call.invocation == NULL);
    return t->is_encoding ? decode_encoder(request, t, err) : decode_token(request, t, err);
}

/* A key with a number and a name: no client has such a one. */
static enum status open_states(struct request *request, struct error *err)
{
    static _Atomic(uint64_t) last_number;
    struct infer_call *call = &request->infer.call;
    if (transcription_of(request)->is_encoding ||
        rt_program_state_bytes(call->model->program) == 0) {
        return ST_OK;
    }
    if (!call->sequence) {
        const struct rt_sequence_key key = {.program = call->model->program,
                                            .number = atomic_fetch_add(&last_number, 1) + 1,
                                            .name = span_str("transcription")};
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
    request->job.rows = 0; /* windows of different sounds are not joined */
    return queue;
}

/* ---- the end of RUN -------------------------------------------------------------------------- */

/* A run of the decoder is over; the text's token is chosen behind the last one of the prompt. */
static void count_step(const struct request *request, struct transcription *t)
{
    struct model_stats *stats = request->infer.call.model->stats;
    bool is_prompt = t->heard.count == 0;
    counter_add(&stats->prompt_tokens, is_prompt ? t->step_count : 0);
    if (t->fed_count + t->step_count < t->token_count) {
        return;
    }
    uint64_t now_ns = uv_hrtime();
    counter_add(&stats->answer_tokens, 1);
    if (t->last_ns == 0) {
        histogram_add(&stats->first_tokens, &histogram_times, now_ns - request->arrived_ns);
    } else if (!is_prompt) { /* the encoder ran before the first token of another window */
        histogram_add(&stats->next_tokens, &histogram_times, now_ns - t->last_ns);
    }
    t->last_ns = now_ns;
}

static enum status finish(struct request *request, enum status status, struct error *err)
{
    struct transcription *t = transcription_of(request);
    const struct rt_sched_job *job = &request->job;
    if (status == ST_OK) {
        if (!t->is_encoding) {
            count_step(request, t);
        }
        t->queued_ns = t->queued_ns ? t->queued_ns : job->queued_ns;
        t->waited_ns += job->started_ns - job->queued_ns;
        t->computed_ns += job->finished_ns - job->started_ns;
        request->offload = t->is_encoding || t->transcriber->vocab > INLINE_VOCAB_MAX;
    }
    return infer_one_finish(request, status, err);
}

/* ---- SAMPLE ---------------------------------------------------------------------------------- */

/* The encoder is done: what it gave is kept for the steps of the decoder. */
static enum status keep_hidden(struct transcription *t, const struct rt_result *result,
                               struct error *err)
{
    if (result->bytes.len > t->hidden_bytes) {
        return error_set(err, ST_TOO_LARGE, "the encoder gives %zu bytes, expected at most %zu",
                         result->bytes.len, t->hidden_bytes);
    }
    memcpy(hal_buffer_map(t->hidden), result->bytes.ptr, result->bytes.len);
    t->hidden_shape = result->shape;
    t->is_encoding = false;
    return ST_OK;
}

/* What the logits behind the token that starts say: is there speech, and of which language? */
static void look_at_start(struct transcription *t, const float *logits)
{
    const struct transcriber *transcriber = t->transcriber;
    if (transcriber->has_no_speech) {
        t->heard.no_speech =
            expf(sampler_logprob(logits, transcriber->vocab, transcriber->no_speech));
    }
    if (needs_language(t)) {
        const struct transcriber_language *best = &transcriber->languages[0];
        for (uint32_t i = 1; i < transcriber->language_count; i++) {
            const struct transcriber_language *language = &transcriber->languages[i];
            best = logits[language->id] > logits[best->id] ? language : best;
        }
        t->language = best;
        add_task(t);
    }
}

/* Text that will not change any more: with times, that of whole segments. */
static size_t settled_bytes(const struct heard *heard)
{
    return heard->has_times && heard->is_open ? heard->open.text_at : heard->text.len;
}

static void tell(struct request *request, struct transcription *t)
{
    size_t end = settled_bytes(&t->heard);
    if (!t->ask.is_stream || end <= t->told_bytes) {
        return;
    }
    struct span text = span_of(t->heard.text.ptr + t->told_bytes, end - t->told_bytes);
    bool is_first = t->told_bytes == 0;
    t->told_bytes = end;
    for (; is_first && text.len > 0 && text.ptr[0] == ' '; text.len--) {
        text.ptr++;
    }
    if (text.len > 0) {
        speech_reply_print_piece(text, &request->out);
    }
}

/* The times of all steps, put together as if they were those of one: for statistics and logs. */
static void join_times(const struct transcription *t, struct rt_sched_job *job)
{
    job->queued_ns = t->queued_ns;
    job->started_ns = job->queued_ns + t->waited_ns;
    job->finished_ns = job->started_ns + t->computed_ns;
}

static enum status end_window(struct request *request, struct transcription *t, struct error *err)
{
    uint64_t next;
    end_sequence(&request->infer.call);
    TRY(heard_end(&t->heard, t->sample_count, &next, err));
    must(next > t->window);
    tell(request, t);
    if (next < t->sample_count) {
        begin_window(t, next);
        request->offload = true; /* features take long */
        return ST_OK;
    }
    t->is_over = true;
    t->reply.language = t->language ? transcriber_language_name(t->language->code) : NULL;
    join_times(t, &request->job);
    if (t->ask.is_stream) {
        speech_reply_print_end(&t->reply, &request->out);
    }
    return ST_OK;
}

static enum status take_token(struct request *request, struct transcription *t, const float *logits,
                              struct error *err)
{
    const struct transcriber *transcriber = t->transcriber;
    struct sampler_choice chosen;
    uint32_t ignored;
    memcpy(t->logits, logits, transcriber->vocab * sizeof(t->logits[0]));
    heard_limit(&t->heard, t->logits);
    TRY(sampler_choose(&t->sampler, t->logits, NULL, t->chosen_count++, true, &chosen, 0, NULL,
                       &ignored, err));
    t->reply.answer_tokens++;
    if (chosen.id == transcriber->end) {
        return end_window(request, t, err);
    }
    TRY(heard_add(&t->heard, chosen.id, chosen.logprob, err));
    if (t->token_count == transcriber->context) {
        return end_window(request, t, err);
    }
    t->tokens[t->token_count++] = chosen.id;
    tell(request, t);
    return ST_OK;
}

static enum status take_step(struct request *request, struct transcription *t,
                             const struct rt_result *result, struct error *err)
{
    uint32_t vocab = t->transcriber->vocab, first = t->fed_count;
    uint64_t rows = result->bytes.len / sizeof(float) / vocab;
    const float *logits = (const float *)(const void *)result->bytes.ptr;
    if (rows < t->step_count) {
        return error_set(err, ST_INVALID, "the decoder gives %llu rows of logits, expected %u",
                         (unsigned long long)rows, t->step_count);
    }
    t->fed_count += t->step_count;
    if (t->start_at >= first && t->start_at < t->fed_count) {
        look_at_start(t, logits + (size_t)(t->start_at - first) * vocab);
    }
    if (t->fed_count < t->token_count) {
        t->reply.prompt_tokens += t->step_count;
        return ST_OK;
    }
    bool is_prompt = t->heard.count == 0;
    t->reply.prompt_tokens += is_prompt ? t->step_count : 0;
    return take_token(request, t, logits + (size_t)(t->step_count - 1) * vocab, err);
}

static enum status sample(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct transcription *t = transcription_of(request);
    struct infer_call *call = &request->infer.call;
    must(call->invocation != NULL);
    const struct rt_result *result = rt_invocation_result(call->invocation, 0);
    enum status status =
        t->is_encoding ? keep_hidden(t, result, err) : take_step(request, t, result, err);
    rt_invocation_free(call->invocation);
    call->invocation = NULL;
    TRY(status);
    return buf_failed(&request->out) ? error_set(err, ST_TOO_LARGE, "the answer is too long")
                                     : ST_OK;
}

static bool has_events(const struct request *request)
{
    return transcription_of(request)->ask.is_stream && request->out.len > 0;
}

static bool is_over(const struct request *request)
{
    return transcription_of(request)->is_over;
}

static void print_error_event(const struct request *request, struct buf *out)
{
    reply_print_error_data(out, request->err.text, request->http_status);
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static size_t encode_bytes(const struct request *request)
{
    return transcription_of(request)->heard.text.len;
}

static enum status print(struct request *request, struct error *err)
{
    struct transcription *t = transcription_of(request);
    struct oip_encoded *encoded = &request->infer.encoded;
    encoded->spans = arena_array(&request->infer.arena, 1, sizeof(struct span));
    if (!encoded->spans) {
        return arena_fail(&request->infer.arena, "the answer", err);
    }
    oip_encode_begin(encoded);
    speech_reply_print(&t->reply, &request->out);
    oip_encode_end_json(&request->out, encoded);
    request->content_type = speech_reply_type(t->ask.form);
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

static size_t held_bytes(const struct request *request)
{
    const struct transcription *t = request->infer.transcription;
    size_t own = t ? t->sample_count * sizeof(float) + t->hidden_bytes : 0;
    return infer_one_held_bytes(request) + own;
}

static void count(const struct request *request, uint64_t now_ns)
{
    const struct transcription *t = request->infer.transcription;
    infer_one_count(request, now_ns);
    if (t && t->is_over) {
        struct model_stats *stats = request->infer.call.model->stats;
        counter_add(&stats->transcriptions, 1);
        counter_add(&stats->sound_us, t->sample_count * 1000000 / t->transcriber->rate);
    }
}

const struct infer_ops transcription_ops = {
    .is_long = true,
    .is_apart = true,
    .find = find,
    .parse = parse,
    .decode = decode,
    .open_states = open_states,
    .undo = infer_one_undo,
    .prepare = infer_one_prepare,
    .demand = infer_one_demand,
    .held_bytes = held_bytes,
    .enter = enter,
    .start = infer_one_start,
    .cancel = infer_one_cancel,
    .finish = finish,
    .sample = sample,
    .has_events = has_events,
    .is_over = is_over,
    .print_error_event = print_error_event,
    .encode_bytes = encode_bytes,
    .print = print,
    .release = release,
    .hand_over = hand_over,
    .count = count,
    .reset = transcription_free,
};

const struct infer_codec transcription_transcribe = {.parse = parse_transcribe,
                                                     .name_input = infer_call_name_none};
const struct infer_codec transcription_translate = {.parse = parse_translate,
                                                    .name_input = infer_call_name_none};
