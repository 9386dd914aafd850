/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/transcript.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "server/language/transcriber.h"
#include "server/language/words.h"

#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define NO_TIME UINT32_MAX

enum status transcript_init(struct transcript *transcript, const struct transcriber *transcriber,
                            bool has_times, struct error *err)
{
    must(!has_times || transcriber->time_count > 0);
    *transcript = (struct transcript){.transcriber = transcriber, .has_times = has_times};
    buf_init(&transcript->text, TEXT_BYTES_MAX);
    buf_init(&transcript->tokens, TEXT_BYTES_MAX);
    buf_init(&transcript->logprobs, TEXT_BYTES_MAX);
    return words_stream_new(transcriber->words, &transcript->stream, err);
}

void transcript_fini(struct transcript *transcript)
{
    words_stream_free(transcript->stream);
    buf_fini(&transcript->text);
    buf_fini(&transcript->tokens);
    buf_fini(&transcript->logprobs);
    free(transcript->segments);
    *transcript = (struct transcript){0};
}

size_t transcript_bytes(const struct transcript *transcript)
{
    return transcript->text.capacity + transcript->tokens.capacity + transcript->logprobs.capacity +
           transcript->segment_capacity * sizeof(transcript->segments[0]);
}

/* ---- which tokens may come ------------------------------------------------------------------- */

static bool is_time(const struct transcript *transcript, uint32_t id)
{
    const struct transcriber *t = transcript->transcriber;
    return id >= t->first_time && id - t->first_time < t->time_count;
}

bool transcript_is_text(const struct transcript *transcript, uint32_t id)
{
    return !is_time(transcript, id) && !words_is_special(transcript->transcriber->words, id);
}

static void forbid(float *logits, uint32_t from, uint32_t to)
{
    for (uint32_t id = from; id < to; id++) {
        logits[id] = -INFINITY;
    }
}

static void forbid_list(const struct transcriber *t, const struct transcriber_ids *ids,
                        float *logits)
{
    for (uint32_t i = 0; i < ids->count; i++) {
        if (ids->items[i] < t->vocab) {
            logits[ids->items[i]] = -INFINITY;
        }
    }
}

/* All but times, and the end where |keeps_end|. */
static void forbid_text(const struct transcriber *t, bool keeps_end, float *logits)
{
    float end = logits[t->end];
    forbid(logits, 0, t->first_time);
    forbid(logits, t->first_time + t->time_count, t->vocab);
    logits[t->end] = keeps_end ? end : -INFINITY;
}

/* A time comes if all times together are more probable than any other token. */
static bool are_times_likely(const struct transcriber *t, const float *logits)
{
    float text = -INFINITY, time = -INFINITY;
    uint32_t last = t->first_time + t->time_count;
    for (uint32_t id = 0; id < t->vocab; id++) {
        bool is_one = id >= t->first_time && id < last;
        float *max = is_one ? &time : &text;
        *max = logits[id] > *max ? logits[id] : *max;
    }
    double sum = 0;
    for (uint32_t id = t->first_time; time > -INFINITY && id < last; id++) {
        sum += exp((double)logits[id] - time);
    }
    return time > -INFINITY && time + log(sum) > text;
}

/* Times, which come in pairs and never go back. */
static void limit_times(const struct transcript *transcript, float *logits)
{
    const struct transcriber *t = transcript->transcriber;
    uint32_t begin = t->first_time, end = begin + t->time_count;
    logits[t->no_times] = -INFINITY;
    if (transcript->count == 0) {
        forbid_text(t, false, logits);
        if (t->first_time_max < t->time_count - 1) {
            forbid(logits, begin + t->first_time_max + 1, end);
        }
        return;
    }
    if (transcript->last_is_time && transcript->before_is_time) {
        forbid(logits, begin, end);
    } else if (transcript->last_is_time) {
        forbid_text(t, true, logits);
    }
    if (transcript->last_time != NO_TIME) {
        bool may_repeat = transcript->last_is_time && !transcript->before_is_time;
        forbid(logits, begin, begin + transcript->last_time + !may_repeat);
    }
    if (are_times_likely(t, logits)) {
        forbid_text(t, false, logits);
    }
}

void transcript_limit(const struct transcript *transcript, float *logits)
{
    const struct transcriber *t = transcript->transcriber;
    forbid_list(t, &t->suppressed, logits);
    if (transcript->count == 0) {
        forbid_list(t, &t->suppressed_first, logits);
    }
    if (transcript->has_times) {
        limit_times(transcript, logits);
    } else if (t->time_count > 0) {
        forbid(logits, t->first_time, t->first_time + t->time_count);
    }
}

/* ---- segments -------------------------------------------------------------------------------- */

static uint64_t sample_of(const struct transcript *transcript, uint32_t time)
{
    return transcript->window + (uint64_t)time * transcript->transcriber->time_samples;
}

static size_t token_count(const struct transcript *transcript)
{
    return transcript->tokens.len / sizeof(uint32_t);
}

static bool is_unsettled(const struct transcript *transcript)
{
    return transcript->has_times && transcript->is_open;
}

size_t transcript_settled_tokens(const struct transcript *transcript)
{
    return is_unsettled(transcript) ? transcript->open.token_at : token_count(transcript);
}

size_t transcript_settled_bytes(const struct transcript *transcript)
{
    return is_unsettled(transcript) ? transcript->open.text_at : transcript->text.len;
}

static void add_token(struct transcript *transcript, uint32_t id, float logprob)
{
    buf_add(&transcript->tokens, &id, sizeof(id));
    buf_add(&transcript->logprobs, &logprob, sizeof(logprob));
    transcript->logprob_sum += (double)logprob;
}

/* Forgets the tokens of the segment that is open. */
static void drop_tokens(struct transcript *transcript)
{
    transcript->tokens.len = transcript->open.token_at * sizeof(uint32_t);
    transcript->logprobs.len = transcript->open.token_at * sizeof(float);
}

static void open_segment(struct transcript *transcript, uint64_t begin)
{
    transcript->is_open = true;
    transcript->logprob_sum = 0;
    transcript->open = (struct transcript_segment){
        .window = transcript->window,
        .begin = begin,
        .text_at = transcript->text.len,
        .token_at = token_count(transcript),
        .no_speech = transcript->no_speech,
    };
}

void transcript_begin(struct transcript *transcript, uint64_t window)
{
    transcript->window = window;
    transcript->count = transcript->window_segments = 0;
    transcript->last_is_time = transcript->before_is_time = transcript->is_open = false;
    transcript->last_time = NO_TIME;
    transcript->no_speech = NAN;
}

static enum status make_room(struct transcript *transcript, struct error *err)
{
    uint32_t count = transcript->segment_count;
    if (count == TRANSCRIPT_SEGMENTS_MAX) {
        return error_set(err, ST_TOO_LARGE, "the sound has more than %u segments",
                         TRANSCRIPT_SEGMENTS_MAX);
    }
    return ARRAY_ROOM(transcript->segments, transcript->segment_capacity, count + 1)
               ? ST_OK
               : error_no_memory(err, "speech");
}

static bool has_text(const struct transcript *transcript)
{
    return transcript->is_open && transcript->text.len > transcript->open.text_at;
}

static enum status close_segment(struct transcript *transcript, uint64_t end, struct error *err)
{
    TRY(make_room(transcript, err));
    TRY(words_stream_end(transcript->stream, &transcript->text, err));
    struct transcript_segment *segment = &transcript->segments[transcript->segment_count++];
    *segment = transcript->open;
    segment->end = end > segment->begin ? end : segment->begin;
    segment->text_len = transcript->text.len - segment->text_at;
    segment->token_count = token_count(transcript) - segment->token_at;
    segment->logprob = (float)(transcript->logprob_sum / (double)segment->token_count);
    transcript->window_segments++;
    transcript->is_open = false;
    return ST_OK;
}

/* Forgets the segment that is open. */
static enum status drop_segment(struct transcript *transcript, struct error *err)
{
    TRY(words_stream_end(transcript->stream, &transcript->text, err));
    transcript->text.len = transcript->open.text_at;
    drop_tokens(transcript);
    transcript->is_open = false;
    return ST_OK;
}

static enum status add_time(struct transcript *transcript, uint32_t id, float logprob,
                            struct error *err)
{
    uint32_t time = id - transcript->transcriber->first_time;
    bool is_end = has_text(transcript) || (transcript->is_open && !transcript->last_is_time);
    if (!is_end) {
        if (transcript->is_open) {
            drop_tokens(transcript); /* the later of two begins */
        }
        open_segment(transcript, sample_of(transcript, time));
    }
    add_token(transcript, id, logprob);
    transcript->last_time = time;
    return is_end ? close_segment(transcript, sample_of(transcript, time), err) : ST_OK;
}

enum status transcript_add(struct transcript *transcript, uint32_t id, float logprob,
                           struct error *err)
{
    const struct transcriber *t = transcript->transcriber;
    bool is_one = is_time(transcript, id);
    enum status status = ST_OK;
    if (is_one) {
        status = add_time(transcript, id, logprob, err);
    } else {
        if (!transcript->is_open) {
            open_segment(transcript, transcript->last_time == NO_TIME
                                         ? transcript->window
                                         : sample_of(transcript, transcript->last_time));
        }
        add_token(transcript, id, logprob);
        if (!words_is_special(t->words, id)) {
            status = words_stream_push(transcript->stream, id, &transcript->text, err);
        }
    }
    transcript->before_is_time = transcript->last_is_time || transcript->count == 0;
    transcript->last_is_time = is_one;
    transcript->count++;
    TRY(status);
    TRY(buf_check(&transcript->text, "the answer", err));
    TRY(buf_check(&transcript->logprobs, "the answer", err));
    return buf_check(&transcript->tokens, "the answer", err);
}

enum status transcript_end(struct transcript *transcript, uint64_t sound_end, uint64_t *out_next,
                           struct error *err)
{
    const struct transcriber *t = transcript->transcriber;
    uint64_t next = transcript->window + t->window_samples;
    uint64_t last =
        transcript->window_segments ? transcript->segments[transcript->segment_count - 1].end : 0;
    bool is_cut = transcript->has_times && last > transcript->window && transcript->is_open;
    if (transcript->is_open && (is_cut || !has_text(transcript))) {
        TRY(drop_segment(transcript, err));
    } else if (transcript->is_open) {
        TRY(close_segment(transcript, next < sound_end ? next : sound_end, err));
    }
    *out_next = is_cut ? last : next;
    return ST_OK;
}
