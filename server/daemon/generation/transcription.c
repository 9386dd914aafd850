/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/generation/transcription_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/call/invocation.h"
#include "runtime/program/oracle.h"
#include "runtime/program/program.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer_one.h"
#include "server/daemon/infer/stats.h"
#include "server/daemon/serving/serving.h"
#include "server/language/reply.h"
#include "server/language/transcriber.h"

/* Choosing from a larger vocabulary takes too long for the loop. */
#define INLINE_VOCAB_MAX 8192

/* ---- life ------------------------------------------------------------------------------------ */

enum status transcription_count_bytes(struct infer *infer, struct error *err)
{
    const struct transcription *t = transcription_of(infer);
    size_t bytes = transcript_bytes(&t->transcript) + sampler_bytes(&t->sampler) +
                   t->transcriber->vocab * sizeof(t->logits[0]) +
                   ((size_t)t->transcriber->context + t->prompt_count) * sizeof(t->tokens[0]);
    return infer_count_answer(infer, bytes, err);
}

static void free_transcription(struct infer *infer)
{
    struct transcription *t = transcription_of(infer);
    rt_invocation_free(infer->call.invocation); /* before the memory that it uses */
    infer->call.invocation = NULL;
    runs_end_sequence(&infer->call);
    seats_leave(infer);
    transcript_fini(&t->transcript);
    sampler_fini(&t->sampler);
    hal_buffer_unref(t->sound);
    hal_buffer_unref(t->hidden);
    transcription_close_ahead(t);
    free(t->logits);
    free(t->tokens);
    free(t->prompt);
    t->magic = 0;
    free(t);
}

/* ---- PARSE ----------------------------------------------------------------------------------- */

static int find(struct infer *infer, struct error *err)
{
    (void)infer;
    (void)err;
    return 200; /* the body names the model */
}

/* Adds the first tokens of a window. Its language may have to be heard first. */
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

void transcription_begin_window(struct transcription *t, uint64_t window)
{
    t->window = window;
    t->is_encoding = true;
    t->is_taking = atomic_load(&t->ahead.state) != AHEAD_NONE;
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
    transcript_begin(&t->transcript, window);
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

static enum status put_tokens(struct infer *infer, struct transcription *t, struct error *err)
{
    struct infer_call *call = &infer->call;
    const struct shape shape = {.rank = 2, .dims = {1, t->step_count}};
    uint32_t position_count = t->transcriber->has_positions ? t->step_count : 1;
    const struct shape positions = {.rank = 1, .dims = {position_count}};
    void *ids, *at;
    TRY(infer_input(infer, call, 0, DT_I64, &shape, &ids, err));
    for (uint32_t i = 0; i < t->step_count; i++) {
        ((int64_t *)ids)[i] = t->tokens[t->fed_count + i];
    }
    TRY(infer_input(infer, call, 2, DT_I64, &positions, &at, err));
    for (uint32_t i = 0; i < position_count; i++) {
        ((int64_t *)at)[i] = (int64_t)t->fed_count + i;
    }
    return ST_OK;
}

static enum status decode_token(struct infer *infer, struct transcription *t, struct error *err)
{
    struct infer_call *call = &infer->call;
    uint32_t left = t->token_count - t->fed_count, max = t->transcriber->step_max;
    t->step_count = left < max ? left : max;
    TRY(infer_invoke(infer, call->model->method, err));
    TRY(put_tokens(infer, t, err));
    const struct rt_buffer_desc hidden = {
        .dtype = DT_F32, .shape = t->hidden_shape, .buffer = t->hidden};
    return rt_invocation_bind_input(call->invocation, 1, &hidden, err);
}

static enum status decode(struct infer *infer, struct error *err)
{
    struct transcription *t = transcription_of(infer);
    TRY(transcription_count_bytes(infer, err));
    return t->is_taking     ? ST_OK
           : t->is_encoding ? transcription_encode(infer, t, err)
                            : decode_token(infer, t, err);
}

static enum status open_states(struct infer *infer, struct error *err)
{
    if (transcription_of(infer)->is_encoding) {
        return ST_OK;
    }
    TRY(runs_open_sequence(infer, "transcription", err));
    runs_give_state(&infer->call);
    return ST_OK;
}

static enum status prepare(struct infer *infer, enum rt_prepare_mode mode, struct error *err)
{
    return transcription_of(infer)->is_taking ? ST_OK : infer_one_ops.run.prepare(infer, mode, err);
}

static struct rt_sched_queue *enter(struct infer *infer)
{
    struct transcription *t = transcription_of(infer);
    if (t->is_taking) {
        return transcription_await(infer, t);
    }
    struct rt_sched_queue *queue = infer_one_enter(infer);
    infer->job.rows = 0; /* windows of different sounds are not joined */
    return queue;
}

static bool start(struct infer *infer, enum hal_caller caller, struct error *err)
{
    struct transcription *t = transcription_of(infer);
    if (!t->is_taking) {
        return infer_one_ops.run.start(infer, caller, err);
    }
    transcription_take(infer, t);
    return true;
}

/* What a run waits for is over soon. */
static bool cancel(struct infer *infer)
{
    return !transcription_of(infer)->is_taking && infer_one_ops.run.cancel(infer);
}

/* ---- the end of RUN -------------------------------------------------------------------------- */

/* A run of the decoder is over; the text's token is chosen behind the last one of the prompt. */
static void count_token(const struct infer *infer, struct transcription *t)
{
    struct model_stats *stats = infer->call.model->stats;
    bool is_prompt = t->transcript.count == 0;
    counter_add(&stats->prompt_tokens, is_prompt ? t->step_count : 0);
    if (t->fed_count + t->step_count < t->token_count) {
        return;
    }
    uint64_t now_ns = uv_hrtime();
    counter_add(&stats->answer_tokens, 1);
    if (t->last_ns == 0) {
        histogram_add(&stats->first_tokens, &histogram_times, now_ns - infer->arrived_ns);
    } else if (!is_prompt) { /* the encoder ran before the first token of another window */
        histogram_add(&stats->next_tokens, &histogram_times, now_ns - t->last_ns);
    }
    t->last_ns = now_ns;
}

static void count_run(struct infer *infer)
{
    struct transcription *t = transcription_of(infer);
    if (!t->is_encoding) {
        count_token(infer, t);
    }
    if (t->is_taking) { /* what the request has waited for the encoder is as if it had run then */
        t->times.computed_ns += infer->job.finished_ns - infer->job.queued_ns;
    } else {
        runs_add_times(&t->times, &infer->job);
    }
}

/* The token may end a stream, and the last event has all of the answer. */
static bool may_end_long(const struct infer *infer)
{
    const struct transcription *t = transcription_of(infer);
    return t->ask.is_stream && speech_reply_bytes(&t->reply) > infer->env->params->inline_bytes_max;
}

/* Files, features, what the encoder gives, large vocabularies, the ends of long streams. */
static bool is_long(const struct infer *infer, enum infer_step step)
{
    if (step == INFER_PARSE) {
        return true;
    }
    const struct transcription *t = transcription_of(infer);
    return (step == INFER_DECODE && t->is_encoding) ||
           (step == INFER_SAMPLE &&
            (t->is_encoding || t->transcriber->vocab > INLINE_VOCAB_MAX || may_end_long(infer)));
}

/* ---- SAMPLE ---------------------------------------------------------------------------------- */

/* Reads the logits behind the start token: is there speech, and of which language? */
static void look_at_start(struct transcription *t, const float *logits)
{
    const struct transcriber *transcriber = t->transcriber;
    if (transcriber->has_no_speech) {
        t->transcript.no_speech =
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

static void tell(struct infer *infer, struct transcription *t)
{
    size_t end = transcript_settled_bytes(&t->transcript);
    if (!t->ask.is_stream || end <= t->told_bytes) {
        return;
    }
    struct span text = span_of(t->transcript.text.ptr + t->told_bytes, end - t->told_bytes);
    bool is_first = t->told_tokens == 0;
    t->told_bytes = end;
    for (; is_first && text.len > 0 && text.ptr[0] == ' '; text.len--) {
        text.ptr++;
    }
    if (text.len > 0) { /* tokens of a blank alone are told with the next piece */
        size_t from = t->told_tokens;
        t->told_tokens = transcript_settled_tokens(&t->transcript);
        speech_reply_print_piece(&t->reply, text, from, t->told_tokens, infer->out);
    }
}

static enum status end_window(struct infer *infer, struct transcription *t, struct error *err)
{
    uint64_t next;
    runs_end_sequence(&infer->call);
    TRY(transcript_end(&t->transcript, t->sample_count, &next, err));
    must(next > t->window);
    tell(infer, t);
    if (next < t->sample_count) {
        transcription_begin_window(t, next);
        return ST_OK;
    }
    t->is_over = true;
    seats_leave(infer);
    t->reply.language = t->language ? transcriber_language_name(t->language->code) : NULL;
    runs_join_times(&t->times, &infer->job);
    if (t->ask.is_stream) {
        speech_reply_print_end(&t->reply, infer->out);
    }
    return ST_OK;
}

static enum status take_token(struct infer *infer, struct transcription *t, const float *logits,
                              struct error *err)
{
    const struct transcriber *transcriber = t->transcriber;
    uint32_t chosen;
    memcpy(t->logits, logits, transcriber->vocab * sizeof(t->logits[0]));
    transcript_limit(&t->transcript, t->logits);
    TRY(sampler_choose(&t->sampler, t->logits, NULL, t->chosen_count++, &chosen, err));
    t->reply.answer_tokens++;
    if (chosen == transcriber->end) {
        return end_window(infer, t, err);
    }
    float logprob = sampler_logprob(t->logits, transcriber->vocab, chosen);
    TRY(transcript_add(&t->transcript, chosen, logprob, err));
    if (t->token_count == transcriber->context) {
        return end_window(infer, t, err);
    }
    t->tokens[t->token_count++] = chosen;
    tell(infer, t);
    return ST_OK;
}

static enum status take_step(struct infer *infer, struct transcription *t,
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
    bool is_prompt = t->transcript.count == 0;
    t->reply.prompt_tokens += is_prompt ? t->step_count : 0;
    return take_token(infer, t, logits + (size_t)(t->step_count - 1) * vocab, err);
}

static enum status sample(struct infer *infer, struct error *err)
{
    struct transcription *t = transcription_of(infer);
    TRY(t->is_encoding ? transcription_keep_hidden(infer, t, err)
                       : take_step(infer, t, rt_invocation_result(infer->call.invocation, 0), err));
    return buf_check(infer->out, "the answer", err);
}

static bool is_stream(const struct infer *infer)
{
    return transcription_of(infer)->ask.is_stream;
}

static bool is_over(const struct infer *infer)
{
    return transcription_of(infer)->is_over;
}

static void print_error_event(const struct infer *infer, const struct error *why, int http_status,
                              struct buf *out)
{
    (void)infer;
    reply_print_error_data(out, why->text, http_status);
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static size_t encode_bytes(const struct infer *infer)
{
    return speech_reply_bytes(&transcription_of(infer)->reply);
}

static enum status print(struct infer *infer, struct error *err)
{
    struct transcription *t = transcription_of(infer);
    (void)err;
    speech_reply_print(&t->reply, infer->out);
    infer->content_type = speech_reply_type(t->ask.form);
    return ST_OK;
}

static size_t own_bytes(const struct infer *infer)
{
    const struct transcription *t = transcription_of(infer);
    return t->sample_count * sizeof(float) + t->hidden_bytes + transcription_ahead_bytes(t);
}

static void count(const struct infer *infer, int http_status, uint64_t now_ns)
{
    const struct transcription *t = infer->own;
    infer_one_count(infer, http_status, now_ns);
    if (t && t->is_over) {
        struct model_stats *stats = infer->call.model->stats;
        counter_add(&stats->transcriptions, 1);
        counter_add(&stats->sound_us, t->sample_count * 1000000 / t->transcriber->rate);
    }
}

const struct infer_ops transcription_ops = {
    .life =
        {
            .is_apart = true,
            .find = find,
            .is_long = is_long,
            .parse = runs_parse,
            .decode = decode,
            .own_bytes = own_bytes,
            .count = count,
            .leave = transcription_leave,
            .free = free_transcription,
        },
    .run =
        {
            .open_states = open_states,
            .prepare = prepare,
            .enter = enter,
            .start = start,
            .cancel = cancel,
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
