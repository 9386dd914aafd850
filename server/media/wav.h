/* SPDX-License-Identifier: MIT */
/*
 * The length of a WAV file, before libsndfile sees it: libsndfile takes a file that lost its end on
 * the way, and its sound is then what is left. Programs that write into a pipe do not know how long
 * a sound will be, and say 0, or the largest length there is, or nearly: such a file ends where it
 * ends.
 *
 * Sources: Microsoft and IBM, Multimedia Programming Interface and Data Specifications 1.0, chapter
 * 2 (chunks); EBU Tech 3306 (RF64). Any thread.
 */
#ifndef PTED_SERVER_MEDIA_WAV_H
#define PTED_SERVER_MEDIA_WAV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

/* What has to stand in a file that does not say its length. */
struct wav_length {
    size_t at;            /* the field's place in the file */
    uint32_t field_bytes; /* 4 or 8; 0: the file says its length itself */
    uint64_t bytes;
};

/* Of a RIFF or an RF64. ST_INVALID: "a damaged WAV file: expected 3200 bytes of samples, got 1600".
 */
MUST_CHECK enum status wav_check_length(struct span file, struct wav_length *out,
                                        struct error *err);

#endif
