/* SPDX-License-Identifier: MIT */
/*
 * A request to a speech model. It takes the steps of request.def like a generation
 * (server/daemon/generation/generation.h), but for each window of the sound there is a step of the
 * encoder first:
 *
 *     PARSE   the fields of the body; the file becomes samples, in memory for requests
 *     DECODE  of the encoder: the features of a window; of the decoder: the ids of tokens that it
 *             has not had yet, what the encoder gave, which stays where the device wrote it
 *     RUN     a job of the scheduler
 *     SAMPLE  the next token (server/language/transcript.h), or the next window, or the end
 *     SEND    an event of a stream
 *
 * The caches of the decoder are a sequence with a key that no client can name, one for each window.
 * A transcription belongs to its request, and follows the rules for the request's parts.
 */
#ifndef PTED_SERVER_DAEMON_GENERATION_TRANSCRIPTION_H
#define PTED_SERVER_DAEMON_GENERATION_TRANSCRIPTION_H

#include "server/daemon/infer/infer.h"

struct infer;

/* For the routes of route.def. */
extern const struct infer_ops transcription_ops;
extern const struct codec transcription_transcribe, transcription_translate;

#endif
