/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/log_mel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/fft.h"

#define LOG_MEL_MAGIC 0x6c6d656cu

#define WINDOW 400
#define BINS (WINDOW / 2 + 1)
#define PI 3.14159265358979323846

/* Spectra of real numbers come in pairs: one is the real part of a transform, one the imaginary. */
#define LANES 8
#define BLOCK (2 * LANES)

/* Below this energy there is nothing. */
#define ENERGY_MIN 1e-10

/* The bins of a band that are not 0. */
struct band {
    uint32_t first, count;
    double weights[BINS];
};

struct log_mel {
    uint32_t magic;
    uint32_t band_count;
    struct fft_scheme scheme;
    double *table; /* owned: of the transform */
    double window[WINDOW];
    struct band bands[];
};

/* ---- Slaney's scale -------------------------------------------------------------------------- */

#define LINEAR_HZ (200.0 / 3) /* a mel, below 1 kHz */
#define LOG_FROM_HZ 1000.0
#define LOG_FROM_MEL (LOG_FROM_HZ / LINEAR_HZ)

static double log_step(void)
{
    return log(6.4) / 27;
}

static double mel_of(double hz)
{
    return hz < LOG_FROM_HZ ? hz / LINEAR_HZ : LOG_FROM_MEL + log(hz / LOG_FROM_HZ) / log_step();
}

static double hz_of(double mel)
{
    return mel < LOG_FROM_MEL ? mel * LINEAR_HZ
                              : LOG_FROM_HZ * exp(log_step() * (mel - LOG_FROM_MEL));
}

/* The triangle from |low| over |mid| to |high|. */
static void make_band(struct band *band, double low, double mid, double high)
{
    for (uint32_t bin = 0; bin < BINS; bin++) {
        double hz = (double)bin * LOG_MEL_RATE / WINDOW;
        double rise = (hz - low) / (mid - low), fall = (high - hz) / (high - mid);
        double weight = rise < fall ? rise : fall;
        if (weight > 0) {
            band->first = band->count == 0 ? bin : band->first;
            band->weights[band->count++] = weight * 2 / (high - low);
        }
    }
}

static void make_bands(struct log_mel *log_mel)
{
    double step = mel_of(LOG_MEL_RATE / 2.0) / (log_mel->band_count + 1);
    for (uint32_t i = 0; i < log_mel->band_count; i++) {
        make_band(&log_mel->bands[i], hz_of(i * step), hz_of((i + 1) * step),
                  hz_of((i + 2) * step));
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status log_mel_new(uint32_t bands, struct log_mel **out, struct error *err)
{
    must(bands > 0 && bands <= LOG_MEL_BANDS_MAX);
    struct log_mel *log_mel = calloc(1, sizeof(*log_mel) + bands * sizeof(log_mel->bands[0]));
    *out = NULL;
    if (!log_mel) {
        return error_no_memory(err, "log-mel features");
    }
    log_mel->magic = LOG_MEL_MAGIC;
    log_mel->band_count = bands;
    log_mel->scheme = fft_scheme(WINDOW);
    size_t count = (size_t)fft_table_count(&log_mel->scheme);
    size_t work = 4 * (size_t)fft_work_count(&log_mel->scheme);
    log_mel->table = malloc((count + work) * sizeof(double));
    if (!log_mel->table) {
        log_mel_free(log_mel);
        return error_no_memory(err, "log-mel features");
    }
    fft_table(&log_mel->scheme, log_mel->table, log_mel->table + count);
    for (int i = 0; i < WINDOW; i++) {
        log_mel->window[i] = 0.5 - 0.5 * cos(2 * PI * i / WINDOW);
    }
    make_bands(log_mel);
    *out = log_mel;
    return ST_OK;
}

void log_mel_free(struct log_mel *log_mel)
{
    if (log_mel) {
        OBJ_CHECK(log_mel, LOG_MEL_MAGIC);
        free(log_mel->table);
        log_mel->magic = 0;
        free(log_mel);
    }
}

/* ---- features -------------------------------------------------------------------------------- */

/* A sound that silence follows, up to |len|. */
struct wave {
    const float *samples;
    int64_t count, len;
};

static double sample_at(const struct wave *wave, int64_t index)
{
    index = index < 0 ? -index : index;
    index = index >= wave->len ? 2 * (wave->len - 1) - index : index;
    return index >= 0 && index < wave->count ? (double)wave->samples[index] : 0;
}

/* The two frames of a lane. */
static void load_lane(const struct log_mel *log_mel, const struct wave *wave, uint32_t frame,
                      uint32_t lane, double *const work[4])
{
    for (int64_t i = 0; i < WINDOW; i++) {
        int64_t at = (int64_t)frame * LOG_MEL_HOP - WINDOW / 2 + i;
        work[0][i * LANES + lane] = log_mel->window[i] * sample_at(wave, at);
        work[1][i * LANES + lane] = log_mel->window[i] * sample_at(wave, at + LOG_MEL_HOP);
    }
}

/* The energies of two real signals that were transformed together, as one complex signal. */
static void split_lane(double *const work[4], uint32_t lane, double *even, double *odd)
{
    for (uint32_t bin = 0; bin < BINS; bin++) {
        uint32_t at = bin * LANES + lane, back = (WINDOW - bin) % WINDOW * LANES + lane;
        double re = work[0][at], im = work[1][at], re2 = work[0][back], im2 = work[1][back];
        double a = re + re2, b = im - im2, c = im + im2, d = re2 - re;
        even[bin] = (a * a + b * b) / 4;
        odd[bin] = (c * c + d * d) / 4;
    }
}

static void put_frame(const struct log_mel *log_mel, const double *energies, uint32_t frame,
                      uint32_t frames, float *out)
{
    for (uint32_t i = 0; i < log_mel->band_count && frame < frames; i++) {
        const struct band *band = &log_mel->bands[i];
        double sum = 0;
        for (uint32_t k = 0; k < band->count; k++) {
            sum += band->weights[k] * energies[band->first + k];
        }
        out[(size_t)i * frames + frame] = (float)log10(sum > ENERGY_MIN ? sum : ENERGY_MIN);
    }
}

static void scale(float *values, size_t count)
{
    float max = values[0];
    for (size_t i = 1; i < count; i++) {
        max = values[i] > max ? values[i] : max;
    }
    for (size_t i = 0; i < count; i++) {
        float value = values[i] > max - 8 ? values[i] : max - 8;
        values[i] = (value + 4) / 4;
    }
}

static void compute_block(const struct log_mel *log_mel, const struct wave *wave, uint32_t first,
                          uint32_t frames, double *memory, float *out)
{
    double energies[2][BINS];
    size_t size = (size_t)fft_work_count(&log_mel->scheme) * LANES;
    double *work[4] = {memory, memory + size, memory + 2 * size, memory + 3 * size};
    for (uint32_t lane = 0; lane < LANES; lane++) {
        load_lane(log_mel, wave, first + 2 * lane, lane, work);
    }
    fft_f64(&log_mel->scheme, log_mel->table, LANES, work);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        split_lane(work, lane, energies[0], energies[1]);
        put_frame(log_mel, energies[0], first + 2 * lane, frames, out);
        put_frame(log_mel, energies[1], first + 2 * lane + 1, frames, out);
    }
}

enum status log_mel_compute(const struct log_mel *log_mel, const float *samples, uint64_t count,
                            uint32_t frames, float *out, struct error *err)
{
    OBJ_CHECK(log_mel, LOG_MEL_MAGIC);
    must(frames >= 2);
    int64_t len = (int64_t)frames * LOG_MEL_HOP;
    const struct wave wave = {samples, count < (uint64_t)len ? (int64_t)count : len, len};
    double *memory = malloc(4 * LANES * (size_t)fft_work_count(&log_mel->scheme) * sizeof(double));
    if (!memory) {
        return error_no_memory(err, "log-mel features");
    }
    for (uint32_t first = 0; first < frames; first += BLOCK) {
        compute_block(log_mel, &wave, first, frames, memory, out);
    }
    free(memory);
    scale(out, (size_t)frames * log_mel->band_count);
    return ST_OK;
}
