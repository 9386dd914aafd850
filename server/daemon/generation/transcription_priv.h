/* SPDX-License-Identifier: MIT */
/* Shared by transcription.c and transcription_parse.c. */
#ifndef PTED_SERVER_DAEMON_GENERATION_TRANSCRIPTION_PRIV_H
#define PTED_SERVER_DAEMON_GENERATION_TRANSCRIPTION_PRIV_H

#include "base/check.h"
#include "server/daemon/generation/runs.h"
#include "server/daemon/generation/speech_ask.h"
#include "server/daemon/generation/speech_reply.h"
#include "server/daemon/generation/transcription.h"
#include "server/daemon/infer/infer.h"
#include "server/language/sampler.h"
#include "server/language/transcript.h"

struct transcriber;
struct transcriber_language;

#define TRANSCRIPTION_MAGIC 0x74726e73u

struct transcription {
    uint32_t magic;
    struct speech_ask ask;           /* its texts are gone after PARSE */
    struct transcriber *transcriber; /* of the request's model, which the request holds */
    const struct transcriber_language *language; /* NULL: not known yet, or never */
    bool has_times;
    struct transcript transcript;
    struct speech_reply reply;
    struct sampler sampler;
    float *logits; /* owned: logits of tokens that may be chosen */
    /* ---- the sound ---- */
    struct hal_buffer *sound; /* owned: samples */
    uint64_t sample_count;
    uint64_t window; /* the first sample of the present window */
    /* ---- the window ---- */
    bool is_encoding;          /* the present step is the encoder's */
    struct hal_buffer *hidden; /* owned: the encoder's result, reserved once */
    size_t hidden_bytes;
    struct shape hidden_shape;
    uint32_t *tokens; /* owned: room for the context */
    uint32_t token_count, fed_count, step_count;
    uint32_t start_at; /* index of the token that starts */
    uint32_t *prompt;  /* owned: of the client, for the first window */
    uint32_t prompt_count;
    /* ---- the answer ---- */
    size_t told_bytes, told_tokens;
    bool is_over;
    uint64_t chosen_count; /* tokens so far: the same index is never used twice by the sampler */
    /* ---- times; the loop's ---- */
    struct runs_times times;
    uint64_t last_ns; /* when a token came; 0: none has */
};

static inline struct transcription *transcription_of(const struct infer *infer)
{
    struct transcription *t;
    OBJ_CAST(t, infer->own, TRANSCRIPTION_MAGIC);
    return t;
}

/* Charges the memory of the answer so far and of what it takes to go on, see
 * infer_count_answer(). */
MUST_CHECK enum status transcription_count_bytes(struct infer *infer, struct error *err);

/* Begins the window that begins with sample |window|: puts its tokens in front of the answer. */
void transcription_begin_window(struct transcription *t, uint64_t window);

#endif
