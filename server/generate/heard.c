/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/generate/heard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/generate/transcriber.h"
#include "server/generate/words.h"

#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define NO_TIME UINT32_MAX

enum status heard_init(struct heard *heard, const struct transcriber *transcriber, bool has_times,
                       struct error *err)
{
    must(!has_times || transcriber->time_count > 0);
    *heard = (struct heard){.transcriber = transcriber, .has_times = has_times};
    buf_init(&heard->text, TEXT_BYTES_MAX);
    buf_init(&heard->tokens, TEXT_BYTES_MAX);
    return words_stream_new(transcriber->words, &heard->stream, err);
}

void heard_fini(struct heard *heard)
{
    words_stream_free(heard->stream);
    buf_fini(&heard->text);
    buf_fini(&heard->tokens);
    free(heard->segments);
    *heard = (struct heard){0};
}

/* ---- which tokens may come ------------------------------------------------------------------- */

static bool is_time(const struct heard *heard, uint32_t id)
{
    const struct transcriber *t = heard->transcriber;
    return id >= t->first_time && id - t->first_time < t->time_count;
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
static void limit_times(const struct heard *heard, float *logits)
{
    const struct transcriber *t = heard->transcriber;
    uint32_t begin = t->first_time, end = begin + t->time_count;
    logits[t->no_times] = -INFINITY;
    if (heard->count == 0) {
        forbid_text(t, false, logits);
        if (t->first_time_max < t->time_count - 1) {
            forbid(logits, begin + t->first_time_max + 1, end);
        }
        return;
    }
    if (heard->last_is_time && heard->before_is_time) {
        forbid(logits, begin, end);
    } else if (heard->last_is_time) {
        forbid_text(t, true, logits);
    }
    if (heard->last_time != NO_TIME) {
        bool may_repeat = heard->last_is_time && !heard->before_is_time;
        forbid(logits, begin, begin + heard->last_time + !may_repeat);
    }
    if (are_times_likely(t, logits)) {
        forbid_text(t, false, logits);
    }
}

void heard_limit(const struct heard *heard, float *logits)
{
    const struct transcriber *t = heard->transcriber;
    forbid_list(t, &t->suppressed, logits);
    if (heard->count == 0) {
        forbid_list(t, &t->suppressed_first, logits);
    }
    if (heard->has_times) {
        limit_times(heard, logits);
    } else if (t->time_count > 0) {
        forbid(logits, t->first_time, t->first_time + t->time_count);
    }
}

/* ---- segments -------------------------------------------------------------------------------- */

static uint64_t sample_of(const struct heard *heard, uint32_t time)
{
    return heard->window + (uint64_t)time * heard->transcriber->time_samples;
}

static size_t token_count(const struct heard *heard)
{
    return heard->tokens.len / sizeof(uint32_t);
}

static void open_segment(struct heard *heard, uint64_t begin)
{
    heard->is_open = true;
    heard->logprob_sum = 0;
    heard->open = (struct heard_segment){
        .window = heard->window,
        .begin = begin,
        .text_at = heard->text.len,
        .token_at = token_count(heard),
        .no_speech = heard->no_speech,
    };
}

void heard_begin(struct heard *heard, uint64_t window)
{
    heard->window = window;
    heard->count = heard->window_segments = 0;
    heard->last_is_time = heard->before_is_time = heard->is_open = false;
    heard->last_time = NO_TIME;
    heard->no_speech = NAN;
}

static enum status make_room(struct heard *heard, struct error *err)
{
    if (heard->segment_count < heard->segment_room) {
        return ST_OK;
    }
    uint32_t room = heard->segment_room ? 2 * heard->segment_room : 16;
    if (room > HEARD_SEGMENTS_MAX) {
        return error_set(err, ST_TOO_LARGE, "the sound has more than %u segments",
                         HEARD_SEGMENTS_MAX);
    }
    struct heard_segment *segments = realloc(heard->segments, room * sizeof(*segments));
    if (!segments) {
        return error_set(err, ST_EXHAUSTED, "speech: out of memory");
    }
    heard->segments = segments;
    heard->segment_room = room;
    return ST_OK;
}

static bool has_text(const struct heard *heard)
{
    return heard->is_open && heard->text.len > heard->open.text_at;
}

static enum status close_segment(struct heard *heard, uint64_t end, struct error *err)
{
    TRY(make_room(heard, err));
    TRY(words_stream_end(heard->stream, &heard->text, err));
    struct heard_segment *segment = &heard->segments[heard->segment_count++];
    *segment = heard->open;
    segment->end = end > segment->begin ? end : segment->begin;
    segment->text_len = heard->text.len - segment->text_at;
    segment->token_count = token_count(heard) - segment->token_at;
    segment->logprob = (float)(heard->logprob_sum / (double)segment->token_count);
    heard->window_segments++;
    heard->is_open = false;
    return ST_OK;
}

/* Forgets the segment that is open. */
static enum status drop_segment(struct heard *heard, struct error *err)
{
    TRY(words_stream_end(heard->stream, &heard->text, err));
    heard->text.len = heard->open.text_at;
    heard->tokens.len = heard->open.token_at * sizeof(uint32_t);
    heard->is_open = false;
    return ST_OK;
}

static enum status add_time(struct heard *heard, uint32_t id, float logprob, struct error *err)
{
    uint32_t time = id - heard->transcriber->first_time;
    bool is_end = has_text(heard) || (heard->is_open && !heard->last_is_time);
    if (!is_end) {
        heard->tokens.len = heard->is_open ? heard->open.token_at * sizeof(uint32_t)
                                           : heard->tokens.len; /* the later of two begins */
        open_segment(heard, sample_of(heard, time));
    }
    buf_add(&heard->tokens, &id, sizeof(id));
    heard->logprob_sum += (double)logprob;
    heard->last_time = time;
    return is_end ? close_segment(heard, sample_of(heard, time), err) : ST_OK;
}

enum status heard_add(struct heard *heard, uint32_t id, float logprob, struct error *err)
{
    const struct transcriber *t = heard->transcriber;
    bool is_one = is_time(heard, id);
    enum status status = ST_OK;
    if (is_one) {
        status = add_time(heard, id, logprob, err);
    } else {
        if (!heard->is_open) {
            open_segment(heard, heard->last_time == NO_TIME ? heard->window
                                                            : sample_of(heard, heard->last_time));
        }
        buf_add(&heard->tokens, &id, sizeof(id));
        heard->logprob_sum += (double)logprob;
        if (!words_is_special(t->words, id)) {
            status = words_stream_push(heard->stream, id, &heard->text, err);
        }
    }
    heard->before_is_time = heard->last_is_time || heard->count == 0;
    heard->last_is_time = is_one;
    heard->count++;
    TRY(status);
    return buf_failed(&heard->text) || buf_failed(&heard->tokens)
               ? error_set(err, ST_TOO_LARGE, "the answer is too long")
               : ST_OK;
}

enum status heard_end(struct heard *heard, uint64_t sound_end, uint64_t *out_next,
                      struct error *err)
{
    const struct transcriber *t = heard->transcriber;
    uint64_t next = heard->window + t->window_samples;
    uint64_t last = heard->window_segments ? heard->segments[heard->segment_count - 1].end : 0;
    bool is_cut = heard->has_times && last > heard->window && heard->is_open;
    if (heard->is_open && (is_cut || !has_text(heard))) {
        TRY(drop_segment(heard, err));
    } else if (heard->is_open) {
        TRY(close_segment(heard, next < sound_end ? next : sound_end, err));
    }
    *out_next = is_cut ? last : next;
    return ST_OK;
}
