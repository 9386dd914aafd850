/* SPDX-License-Identifier: MIT */
/* The step PARSE of a transcription: its form, its model, its prompt, its sound. */
#include "config.h"

#include "server/daemon/generation/transcription_priv.h"

#include <stdlib.h>
#include <string.h>

#include "hal/buffer.h"
#include "hal/pool.h"
#include "server/daemon/infer/codec.h"
#include "server/language/transcriber.h"
#include "server/language/words.h"
#include "server/media/sound.h"

/* Tokens in front of an answer: start, language, task, times, and the token that begins the
 * client's prompt; the prompt itself not counted. */
#define HEAD_TOKENS_MAX 5

static enum status transcription_new(struct infer *infer, struct error *err)
{
    struct transcription *t = calloc(1, sizeof(*t));
    if (!t) {
        return error_no_memory(err, "a transcription");
    }
    t->magic = TRANSCRIPTION_MAGIC;
    infer->own = t;
    return ST_OK;
}

static bool is_speech_model(const struct model *model)
{
    return model->uses.transcribes;
}

static enum status find_model(struct infer *infer, struct transcription *t, struct error *err)
{
    struct infer_call *call = &infer->call;
    if (t->ask.model[0] == '\0') {
        TRY(runs_find_only(infer, is_speech_model, "speech model", t->ask.model, err));
    }
    TRY(infer_find_model(infer, call, t->ask.model, 0, err));
    t->transcriber = call->model->transcriber;
    snprintf(infer->model_name, MODEL_NAME_MAX + 1, "%s", call->model->name);
    return t->transcriber ? ST_OK : model_refuse_texts(call->model, "speech model", err);
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
    uint32_t max = transcriber->context / 2;
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
    struct words_room room = {.max = text.len < WORDS_COUNT_MAX ? (uint32_t)text.len + 1
                                                                : WORDS_COUNT_MAX};
    uint32_t *ids = room.ids = malloc(room.max * sizeof(*ids));
    enum status status = ids && !buf_failed(&spaced)
                             ? words_encode(transcriber->words, buf_span(&spaced), true, &room, err)
                             : error_no_memory(err, "a transcription");
    buf_fini(&spaced);
    t->prompt = ids;
    TRY(status);
    uint32_t count = room.count;
    if (count > room.max) {
        return error_set(err, ST_TOO_LARGE, "prompt: it has too many tokens");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] >= transcriber->vocab || words_is_special(transcriber->words, ids[i])) {
            return error_set(err, ST_INVALID, "prompt: expected plain text, got a special token");
        }
    }
    t->prompt_count = count < max ? count : max;
    memmove(ids, ids + (count - t->prompt_count), t->prompt_count * sizeof(*ids));
    uint32_t *kept = realloc(ids, (t->prompt_count + 1) * sizeof(*ids));
    t->prompt = kept ? kept : ids;
    return ST_OK;
}

/* Memory for requests: where it is short for now, the request waits, and begins again. */
static enum status reserve(struct infer *infer, size_t bytes, struct hal_buffer **out,
                           struct error *err)
{
    enum status status = hal_pool_reserve(infer->pool, bytes, out, err);
    return status == ST_EXHAUSTED ? infer_refuse_memory(infer, bytes, true, err) : status;
}

static enum status read_samples(struct infer *infer, struct transcription *t, struct sound *sound,
                                struct error *err)
{
    TRY(work_add(&infer->work, sound_decoded_bytes(sound), err));
    TRY(reserve(infer, sound_count_max(sound) * sizeof(float), &t->sound, err));
    return sound_read(sound, hal_buffer_map(t->sound), &t->sample_count, err);
}

static enum status read_sound(struct infer *infer, struct transcription *t, struct error *err)
{
    const struct params *params = infer->env->params;
    const struct sound_limits limits = {
        .seconds_max = params->sound_seconds_max,
        .channels_max = (uint32_t)params->sound_channels_max,
        .rate_max = (uint32_t)params->sound_rate_max,
    };
    struct sound *sound;
    infer_media_start(infer);
    enum status status = sound_open(t->ask.file, t->transcriber->rate, &limits, &sound, err);
    if (status == ST_OK) {
        status = read_samples(infer, t, sound, err);
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

static enum status reserve_rest(struct infer *infer, struct transcription *t, struct error *err)
{
    const struct transcriber *transcriber = t->transcriber;
    t->hidden_bytes = sizeof(float);
    for (int i = 0; i < 3; i++) {
        if (!mul_size(t->hidden_bytes, (size_t)transcriber->hidden[i], &t->hidden_bytes)) {
            return error_set(err, ST_TOO_LARGE, "the result of the encoder is too large");
        }
    }
    TRY(reserve(infer, t->hidden_bytes, &t->hidden, err));
    t->tokens = malloc(transcriber->context * sizeof(t->tokens[0]));
    t->logits = malloc(transcriber->vocab * sizeof(t->logits[0]));
    return t->tokens && t->logits ? ST_OK : error_no_memory(err, "a transcription");
}

static void begin_reply(struct transcription *t)
{
    t->reply = (struct speech_reply){
        .transcript = &t->transcript,
        .form = t->ask.form,
        .is_translation = t->ask.is_translation,
        .wants_logprobs = t->ask.wants_logprobs,
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

/* The model is known, and the request has been counted. */
static enum status parse_counted(struct infer *infer, struct transcription *t, struct error *err)
{
    TRY(find_language(t, err));
    TRY(read_prompt(t, err));
    TRY(read_sound(infer, t, err));
    TRY(reserve_rest(infer, t, err));
    t->has_times = wants_times(t);
    const struct sampler_options options = {
        .temperature = t->ask.temperature, .top_p = 1, .repetition = 1};
    sampler_init(&t->sampler, &options, t->transcriber->vocab);
    TRY(transcript_init(&t->transcript, t->transcriber, t->has_times, err));
    begin_reply(t);
    infer->call.sample_count = 1;
    transcription_open_ahead(infer, t);
    transcription_begin_window(t, 0);
    return transcription_count_bytes(infer, err);
}

static enum status parse_new(struct infer *infer, bool is_translation, struct error *err)
{
    struct transcription *t = transcription_of(infer);
    TRY(speech_ask_parse(head_value(infer->head, HTTP_CONTENT_TYPE), body_span(infer->body),
                         &t->ask, err));
    t->ask.is_translation = is_translation;
    TRY(find_model(infer, t, err));
    if (t->transcriber->context <= HEAD_TOKENS_MAX) {
        return error_set(err, ST_INVALID, "the context of the model has only %u tokens",
                         t->transcriber->context);
    }
    TRY(seats_take(infer, &t->transcriber->seats, "transcriptions", err));
    return parse_counted(infer, t, err);
}

/* A request that waits for memory, or whose error takes a while to be sent, has nothing. */
static enum status parse_form(struct infer *infer, bool is_translation, struct error *err)
{
    TRY(transcription_new(infer, err));
    enum status status = parse_new(infer, is_translation, err);
    if (status != ST_OK) {
        infer_drop_own(infer);
    }
    return status;
}

static enum status parse_transcribe(struct infer *infer, struct infer_call *call,
                                    const struct oip_body *parts, struct span *out_rest,
                                    struct error *err)
{
    (void)call;
    (void)parts;
    (void)out_rest;
    return parse_form(infer, false, err);
}

static enum status parse_translate(struct infer *infer, struct infer_call *call,
                                   const struct oip_body *parts, struct span *out_rest,
                                   struct error *err)
{
    (void)call;
    (void)parts;
    (void)out_rest;
    return parse_form(infer, true, err);
}

const struct codec transcription_transcribe = {.parse = parse_transcribe,
                                               .name_input = codec_name_none};

const struct codec transcription_translate = {.parse = parse_translate,
                                              .name_input = codec_name_none};
