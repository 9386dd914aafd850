/* SPDX-License-Identifier: MIT */
/*
 * Discrete Fourier transforms of one length, |lanes| of them side by side: element k of lane v is
 * at [k * lanes + v] of an array of real and one of imaginary parts. Lengths with small prime
 * factors go stage by stage (Stockham's order, no bit reversal; the innermost loop runs over lanes
 * and what earlier stages have gathered, so it vectorises); others as a convolution with a chirp
 * (Bluestein), whose length is a power of two.
 *
 * What depends on the length alone is in a table, made once: rt_fft_table(). Nothing allocates; any
 * thread.
 */
#ifndef PTED_RUNTIME_OPS_FFT_CORE_H
#define PTED_RUNTIME_OPS_FFT_CORE_H

#include <stdbool.h>
#include <stdint.h>

#define RT_FFT_FACTORS_MAX 24

struct rt_fft_plan {
    int64_t n;
    int64_t m; /* length that is transformed: n, or the power of two of a chirp's convolution */
    uint32_t factor_count;
    uint8_t factors[RT_FFT_FACTORS_MAX]; /* of m */
};

/* For 1 <= n <= 2^24. */
struct rt_fft_plan rt_fft_plan(int64_t n);

/* Elements of the table, and of each of the four work arrays a lane. */
int64_t rt_fft_table_count(const struct rt_fft_plan *plan);
int64_t rt_fft_work_count(const struct rt_fft_plan *plan);

/* Fills the table; |work| has 4 * rt_fft_work_count() elements. */
void rt_fft_table(const struct rt_fft_plan *plan, double *table, double *work);

/*
 * Transforms work[0] (real) and work[1] (imaginary parts), n elements a lane, with exp(-2 pi i /
 * n); work[2] and work[3] are space. The result's arrays are work[0] and work[1] when it returns.
 * For the inverse transform the caller takes the real for the imaginary parts, before and after.
 */
void rt_fft_f32(const struct rt_fft_plan *plan, const float *table, int64_t lanes, float *work[4]);
void rt_fft_f64(const struct rt_fft_plan *plan, const double *table, int64_t lanes,
                double *work[4]);

#endif
