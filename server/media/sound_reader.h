/* SPDX-License-Identifier: MIT */
/*
 * What reads the formats of sound, one row of functions for each library: libsndfile WAV, FLAC and
 * Ogg, libmpg123 MP3. libsndfile would read MP3, too, but it trusts the rate of the first frame: of
 * a file of variable rate that does not say its length it returns the first quarter and no error.
 */
#ifndef PTED_SERVER_MEDIA_SOUND_READER_H
#define PTED_SERVER_MEDIA_SOUND_READER_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

/* A sample rate of a file below this is refused: such a sound has no words in it. */
#define SOUND_RATE_MIN 1000

/* The number of frames of a file that does not say it. */
#define SOUND_FRAMES_UNKNOWN UINT64_MAX

/* As the file says; frames have a sample of each channel. The caller compares all of it with its
 * limits. */
struct sound_head {
    int32_t channels, rate;
    uint64_t frames;
};

/* One thread at a time. Errors: ST_INVALID, for a damaged file; ST_UNSUPPORTED: the library is
 * missing; ST_EXHAUSTED. */
struct sound_reader {
    /* Sets |*out|, for close(), if it fails, too. |file| is borrowed until then. */
    enum status (*open)(struct span file, struct sound_head *head, void **out, struct error *err);
    /* Writes at most |max| frames at |out|; fewer only at the end. */
    enum status (*read)(void *state, float *out, uint64_t max, uint64_t *out_frames,
                        struct error *err);
    void (*close)(void *state); /* NULL is fine */
};

extern const struct sound_reader sound_sndfile, sound_mpg123;

#endif
