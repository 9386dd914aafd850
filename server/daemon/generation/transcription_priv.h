/* SPDX-License-Identifier: MIT */
/* Shared by transcription.c, transcription_encode.c and transcription_parse.c. */
#ifndef PTED_SERVER_DAEMON_GENERATION_TRANSCRIPTION_PRIV_H
#define PTED_SERVER_DAEMON_GENERATION_TRANSCRIPTION_PRIV_H

#include <stdatomic.h>

#include "base/check.h"
#include "runtime/sched/sched.h"
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

enum ahead_state {
    AHEAD_NONE,     /* or its result has been taken */
    AHEAD_RUNS,     /* or waits to run */
    AHEAD_AWAITED,  /* and the run of the request that takes its result has begun */
    AHEAD_LEFT_OFF, /* and the request is over */
    AHEAD_OVER,
};

/*
 * The encoder's run for the window behind the present one, while that one is decoded. A job of its
 * own, in the queue of the encoder's model. At the end of the window the request's run waits for
 * it, by its place in |lane|, and takes its result; if there is none, the encoder runs in its turn.
 */
struct transcription_ahead {
    struct model *model; /* ref held: the encoder's; NULL: each window is encoded in its turn */
    _Atomic(enum ahead_state) state;
    struct rt_sched_job job;
    struct rt_sched_lane lane;
    struct rt_sched_ticket ticket, wait; /* the job's; of the run that waits for it */
    /* ---- the job's until AHEAD_OVER ---- */
    struct rt_invocation *invocation; /* owned; NULL once it is over */
    bool has_result;
    struct shape shape; /* of the result */
    /* ---- the request's ---- */
    struct hal_buffer *hidden; /* owned: where the result is put; NULL: there has been no room */
    size_t input_bytes;
};

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
    bool is_encoding; /* the present step is the encoder's */
    bool is_taking;   /* ...and takes the result of |ahead| */
    struct transcription_ahead ahead;
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

/* ---- transcription_encode.c ------------------------------------------------------------------ */

/* Are windows to be encoded ahead? Takes what that needs beside memory. */
void transcription_open_ahead(struct infer *infer, struct transcription *t);

/* Returns the memory for requests that it holds. */
size_t transcription_ahead_bytes(const struct transcription *t);

/* Step DECODE of the encoder: makes the call, with the features of the window. */
MUST_CHECK enum status transcription_encode(struct infer *infer, struct transcription *t,
                                            struct error *err);

/* Fills in the job of a run that takes the result of |ahead|; its start(). */
struct rt_sched_queue *transcription_await(struct infer *infer, struct transcription *t);
void transcription_take(struct infer *infer, struct transcription *t);

/* Step SAMPLE of the encoder: its result is there, for all steps of the window. The next window is
 * begun, if it is to be encoded ahead. */
MUST_CHECK enum status transcription_keep_hidden(struct infer *infer, struct transcription *t,
                                                 struct error *err);

/* leave() of struct infer_life. */
bool transcription_leave(struct infer *infer);

/* Call when nothing runs. */
void transcription_close_ahead(struct transcription *t);

/* ---- transcription.c ------------------------------------------------------------------------- */

/* Charges the memory of the answer so far and of what it takes to go on, see
 * infer_count_answer(). */
MUST_CHECK enum status transcription_count_bytes(struct infer *infer, struct error *err);

/* Begins the window that begins with sample |window|: puts its tokens in front of the answer. */
void transcription_begin_window(struct transcription *t, uint64_t window);

#endif
