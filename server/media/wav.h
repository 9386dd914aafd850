/* SPDX-License-Identifier: MIT */
/*
 * The length of a WAV file, before libsndfile sees it: libsndfile takes a file that lost its end on
 * the way, and its sound is then what is left. Programs that write into a pipe do not know how long
 * a sound will be, and say the largest length there is, or nearly: such a file ends where it ends.
 *
 * Source: Microsoft and IBM, Multimedia Programming Interface and Data Specifications 1.0, chapter
 * 2 (chunks). Any thread.
 */
#ifndef PTED_SERVER_MEDIA_WAV_H
#define PTED_SERVER_MEDIA_WAV_H

#include "base/bytes.h"
#include "base/status.h"

/* ST_INVALID: "a damaged WAV file: expected 3200 bytes of samples, got 1600". */
MUST_CHECK enum status wav_verify_length(struct span file, struct error *err);

#endif
