/* SPDX-License-Identifier: MIT */
/*
 * Speech models of Whisper's shape: a program is recognised as one when its file is loaded. It has
 * the methods of ExecuTorch's exporters:
 *
 *     encoder        float32 [1, bands, frames], features (server/media/log_mel.h); or the samples
 *                    themselves, [n] or [1, n]: then it computes its features. Gives [1, t, d]
 *     text_decoder   ids of tokens, int64 [1, n]; what the encoder gave; the position of the first
 *                    token, int64 [1], or of each. Gives logits, float32 [1, n, vocab]
 *
 * Its words come from the tokenizer beside it, as for a language model (generator.h), and so do
 * generation_config.json and the constant methods get_max_seq_len and get_eos_id. The text of a
 * special token tells its meaning, such as <|startoftranscript|>: all of Whisper's tokenizers have
 * the same texts.
 *
 * Constant after transcriber_new(), except the count of requests; any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_TRANSCRIBER_H
#define PTED_SERVER_LANGUAGE_TRANSCRIBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/share.h"
#include "base/status.h"

struct log_mel;
struct rt_method;
struct words;

#define TRANSCRIBER_MAGIC 0x74736362u
#define TRANSCRIBER_LANGUAGES_MAX 128
#define TRANSCRIBER_SUPPRESSED_MAX 1024

struct transcriber_language {
    char code[8]; /* "en" */
    uint32_t id;  /* of its token */
};

struct transcriber_ids {
    uint32_t items[TRANSCRIBER_SUPPRESSED_MAX];
    uint32_t count;
};

struct transcriber {
    uint32_t magic;
    struct rt_method *encoder; /* borrowed from the program, which the model holds */
    /* ---- what it hears ---- */
    uint32_t rate;           /* Hz */
    uint32_t window_samples; /* that one call of the encoder takes */
    bool is_window_fixed;    /* fewer are followed by silence */
    uint8_t input_rank;      /* of the encoder's input */
    struct log_mel *log_mel; /* owned; NULL: the encoder takes samples */
    uint32_t bands, frames;
    int64_t hidden[3]; /* the shape of the encoder's result */
    /* ---- its tokens ---- */
    uint32_t step_max; /* tokens that a call of the decoder takes */
    bool is_step_fixed, has_positions;
    uint32_t vocab, context;
    struct words *words; /* owned */
    uint32_t start, end, transcribe, translate, no_times, previous, no_speech;
    bool has_translate, has_previous, has_no_speech, has_no_times;
    uint32_t first_time, time_count; /* tokens of times; count 0: it knows none */
    uint32_t time_samples;           /* from one to the next */
    uint32_t first_time_max;         /* index of the latest time that a window may begin with */
    struct transcriber_language languages[TRANSCRIBER_LANGUAGES_MAX];
    uint32_t language_count; /* 0: it knows one language, and is not told which */
    struct transcriber_ids suppressed, suppressed_first;
    struct share seats; /* of requests that are under way, see server/daemon/infer/seats.h */
};

/*
 * |method| and |path| as for generator_new(). |*out| is NULL if the method is no text_decoder of
 * such a program, or has no tokenizer. ST_INVALID: the parts do not fit; and errors of reading
 * them. Blocks.
 */
MUST_CHECK enum status transcriber_new(struct rt_method *method, const char *path,
                                       const char *tokenizer, struct transcriber **out,
                                       struct error *err);
void transcriber_free(struct transcriber *transcriber); /* NULL is fine */

/* Does |method| have the inputs and results of the decoder of a speech model, with or without
 * words? */
bool transcriber_fits(const struct rt_method *method);

/* Finds a language by code ("de") or English name ("German", any case). NULL: unknown to the
 * model. */
const struct transcriber_language *transcriber_find_language(const struct transcriber *transcriber,
                                                             const char *text);

/* Returns "german" of "de"; the code itself if its name is not known. */
const char *transcriber_language_name(const char *code);

#endif
