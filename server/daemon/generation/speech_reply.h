/* SPDX-License-Identifier: MIT */
/* Answers of speech models, as OpenAI's API has them: JSON, text, subtitles (SRT, WebVTT), or
 * server-sent events with pieces of the text. Times are in seconds, or as subtitles have them. */
#ifndef PTED_SERVER_DAEMON_GENERATION_SPEECH_REPLY_H
#define PTED_SERVER_DAEMON_GENERATION_SPEECH_REPLY_H

#include "base/buf.h"
#include "base/bytes.h"
#include "server/daemon/generation/speech_ask.h"
#include "server/language/transcript.h"

struct speech_reply {
    const struct transcript *transcript;
    enum speech_form form;
    bool is_translation;
    bool wants_logprobs;
    const char *language; /* its name, or NULL: unknown */
    double temperature;
    uint64_t sample_count; /* of the sound */
    uint32_t rate;
    uint64_t prompt_tokens, answer_tokens;
};

/* Returns "application/json", "text/plain; charset=utf-8" ... */
const char *speech_reply_type(enum speech_form form);

/* Returns the bytes that the answer, or the end of its events, has, about. */
size_t speech_reply_bytes(const struct speech_reply *reply);

void speech_reply_print(const struct speech_reply *reply, struct buf *out);

/* Events: a piece of the text, with its tokens from |from| to |to|; and the end with all of it. */
void speech_reply_print_piece(const struct speech_reply *reply, struct span text, size_t from,
                              size_t to, struct buf *out);
void speech_reply_print_end(const struct speech_reply *reply, struct buf *out);

#endif
