/* SPDX-License-Identifier: MIT */
/*
 * The transcript of a sound: the tokens of the present window, by the rules of Whisper's times, and
 * the segments of text that they make.
 *
 * With times a segment of text stands between the tokens of its begin and its end. Times never go
 * back, come in pairs, and count from the begin of the window. After a window that ends within a
 * segment, the next one begins with that segment; one whose last segment is whole, by the next
 * sound. Without times a window is one segment.
 *
 * Source: the paper (server/media/log_mel.h), and its authors' description of long sounds. Belongs
 * to one thread at a time.
 */
#ifndef PTED_SERVER_LANGUAGE_TRANSCRIPT_H
#define PTED_SERVER_LANGUAGE_TRANSCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

struct transcriber;
struct words_stream;

/* More are not believed of a file: then the answer is too long. */
#define TRANSCRIPT_SEGMENTS_MAX (1u << 16)

struct transcript_segment {
    uint64_t window;              /* sample at which its window begins */
    uint64_t begin, end;          /* samples */
    size_t text_at, text_len;     /* in |text| */
    size_t token_at, token_count; /* in |tokens|: text and times */
    float logprob;                /* mean of its tokens */
    float no_speech;              /* probability that its window has no speech; NAN: unknown */
};

struct transcript {
    const struct transcriber *transcriber;
    struct words_stream *stream; /* owned */
    bool has_times;
    /* ---- what is settled ---- */
    struct buf text;
    struct buf tokens;                   /* uint32_t */
    struct buf logprobs;                 /* float, of each token */
    struct transcript_segment *segments; /* owned */
    uint32_t segment_count;
    size_t segment_capacity;
    /* ---- the window ---- */
    uint64_t window; /* its first sample */
    uint32_t count;  /* tokens of the answer in it */
    bool last_is_time, before_is_time;
    uint32_t last_time; /* index; UINT32_MAX: none yet */
    bool is_open;       /* a segment has begun, or has text */
    struct transcript_segment open;
    double logprob_sum;
    uint32_t window_segments; /* that the window has closed */
    float no_speech;
};

MUST_CHECK enum status transcript_init(struct transcript *transcript,
                                       const struct transcriber *transcriber, bool has_times,
                                       struct error *err);
void transcript_fini(struct transcript *transcript);

/* Returns the memory that it takes now. */
size_t transcript_bytes(const struct transcript *transcript);

/* Begins the window that begins with sample |window|. */
void transcript_begin(struct transcript *transcript, uint64_t window);

/* Takes those logits away that the next token cannot have. */
void transcript_limit(const struct transcript *transcript, float *logits);

/* Adds the next token, with its logarithm; not a token that ends the window. ST_TOO_LARGE,
 * ST_EXHAUSTED. */
MUST_CHECK enum status transcript_add(struct transcript *transcript, uint32_t id, float logprob,
                                      struct error *err);

/* Is the token neither a time nor special? */
bool transcript_is_text(const struct transcript *transcript, uint32_t id);

/* Returns how many tokens, and how many bytes of text, will not change any more: with times, those
 * of whole segments. */
size_t transcript_settled_tokens(const struct transcript *transcript);
size_t transcript_settled_bytes(const struct transcript *transcript);

/* Call when the window is over. |sound_end| is where the sound ends; |*out_next| where the next
 * window begins, which is behind this one's begin. */
MUST_CHECK enum status transcript_end(struct transcript *transcript, uint64_t sound_end,
                                      uint64_t *out_next, struct error *err);

#endif
