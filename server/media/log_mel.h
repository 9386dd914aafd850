/* SPDX-License-Identifier: MIT */
/*
 * The input of Whisper: the logarithms of the energy in bands of Mel's scale, 100 times a second.
 *
 *     samples at 16 kHz, with 200 more at either end, mirrored
 *     frames of 400 samples, 160 apart, times a Hann window; their spectra of 201 energies
 *     bands: triangles between points that are equally far apart on Slaney's scale (linear up to
 *     1 kHz, logarithmic above), each of area 1
 *     log10, of at least 1e-10; at least the largest of all minus 8; plus 4, over 4
 *
 * Source: "Robust Speech Recognition via Large-Scale Weak Supervision" (Radford et al., 2022), and
 * Slaney's Auditory Toolbox (1998) for the scale. Constant after log_mel_new(); any thread.
 */
#ifndef PTED_SERVER_MEDIA_LOG_MEL_H
#define PTED_SERVER_MEDIA_LOG_MEL_H

#include <stdint.h>

#include "base/status.h"

#define LOG_MEL_RATE 16000
#define LOG_MEL_HOP 160
#define LOG_MEL_BANDS_MAX 256

struct log_mel;

/* Fails with ST_EXHAUSTED. */
MUST_CHECK enum status log_mel_new(uint32_t bands, struct log_mel **out, struct error *err);
void log_mel_free(struct log_mel *log_mel); /* NULL is fine */

/*
 * Computes the features of |count| samples, which silence follows up to |frames| frames: [bands,
 * frames] at |out|. Samples beyond those are not looked at. |frames| is 2 or more. ST_EXHAUSTED.
 */
MUST_CHECK enum status log_mel_compute(const struct log_mel *log_mel, const float *samples,
                                       uint64_t count, uint32_t frames, float *out,
                                       struct error *err);

#endif
