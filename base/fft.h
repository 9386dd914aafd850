/* SPDX-License-Identifier: MIT */
/*
 * Discrete Fourier transforms of one length, |lanes| of them side by side: element k of lane v is
 * at [k * lanes + v] of an array of real and one of imaginary parts. Lengths with small prime
 * factors are computed stage by stage (Stockham's order, without bit reversal; the innermost loop
 * runs over lanes and over the elements that earlier stages have gathered, so it vectorises). Other
 * lengths are a convolution with a chirp (Bluestein), whose length is a power of two.
 *
 * fft_table() computes once for a length: factors, roots of unity, the chirp. No function
 * allocates; all run on any thread.
 */
#ifndef PTED_BASE_FFT_H
#define PTED_BASE_FFT_H

#include <stdbool.h>
#include <stdint.h>

#define FFT_FACTORS_MAX 24

struct fft_scheme {
    int64_t n;
    int64_t m; /* length of the transform itself: n, or for a chirp the power of two of its
                  convolution */
    uint32_t factor_count;
    uint8_t factors[FFT_FACTORS_MAX]; /* factors of m */
};

/* For 1 <= n <= 2^24. */
struct fft_scheme fft_scheme(int64_t n);

/* Returns the elements of the table, and elements for each lane of each of the four work arrays. */
int64_t fft_table_count(const struct fft_scheme *scheme);
int64_t fft_work_count(const struct fft_scheme *scheme);

/* Fills the table; |work| has 4 * fft_work_count() elements. */
void fft_table(const struct fft_scheme *scheme, double *table, double *work);

/*
 * Transforms work[0] (real parts) and work[1] (imaginary parts), n elements for each lane, with
 * exp(-2 pi i / n); work[2] and work[3] are scratch. On return work[0] and work[1] point to the
 * result's arrays. For the inverse transform the caller exchanges real and imaginary parts before
 * and after.
 */
void fft_f32(const struct fft_scheme *scheme, const float *table, int64_t lanes, float *work[4]);
void fft_f64(const struct fft_scheme *scheme, const double *table, int64_t lanes, double *work[4]);

#endif
