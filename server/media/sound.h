/* SPDX-License-Identifier: MIT */
/*
 * Files of sound (WAV, FLAC, MP3, Ogg with Vorbis or Opus) as samples: one channel, the mean of
 * those in the file, at the rate that is asked for, as floats from -1 to 1. A library reads the
 * file from memory alone (sound_reader.h); libsoxr changes the rate where that is needed. What
 * encoders of MP3 and Opus add before and behind the sound is not part of it.
 *
 *     sound_open     looks at the head, and compares it with the limits; no samples yet
 *     sound_read     all of them, into memory of the caller
 *     sound_close
 *
 * The file is hostile: the length that it declares is compared with the limits before anybody takes
 * memory for it, and no more samples are written than that. A sound belongs to one thread at a
 * time. All functions may take long: none runs on the loop.
 */
#ifndef PTED_SERVER_MEDIA_SOUND_H
#define PTED_SERVER_MEDIA_SOUND_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct sound;

struct sound_limits {
    uint64_t seconds_max;
    uint32_t channels_max;
    uint32_t rate_max; /* of the file, in Hz */
};

/* All libraries, now. ST_UNSUPPORTED: one is missing; the error has the name of its package. */
MUST_CHECK enum status sound_load(struct error *err);

/*
 * |file| is borrowed until sound_close(). |rate| of the samples is in Hz. ST_INVALID: it is no such
 * file, or is damaged; ST_TOO_LARGE: beyond a limit; ST_UNSUPPORTED: a library is missing;
 * ST_EXHAUSTED.
 */
MUST_CHECK enum status sound_open(struct span file, uint32_t rate,
                                  const struct sound_limits *limits, struct sound **out,
                                  struct error *err);
void sound_close(struct sound *sound); /* NULL is fine */

/* Samples that sound_read() writes, at most. */
uint64_t sound_count_max(const struct sound *sound);

/* Returns the bytes of all samples of all channels in the file, as floats: a measure of the time
 * that sound_read() takes. */
uint64_t sound_decoded_bytes(const struct sound *sound);

/* Once. |out| has room for sound_count_max() samples. Errors as above. */
MUST_CHECK enum status sound_read(struct sound *sound, float *out, uint64_t *out_count,
                                  struct error *err);

#endif
