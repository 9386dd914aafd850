/* SPDX-License-Identifier: MIT */
/* libsoxr, which changes the sample rate of sound, loaded when something first needs it. */
#ifndef PTED_SERVER_MEDIA_SOXR_H
#define PTED_SERVER_MEDIA_SOXR_H

#include <soxr.h>

#include "base/status.h"

/* The functions that pted uses, under their names without the prefix "soxr_". */
struct soxr_library {
    soxr_t (*create)(double input_rate, double output_rate, unsigned channels, soxr_error_t *error,
                     const soxr_io_spec_t *io, const soxr_quality_spec_t *quality,
                     const soxr_runtime_spec_t *runtime);
    soxr_error_t (*process)(soxr_t resampler, soxr_in_t in, size_t in_count, size_t *in_done,
                            soxr_out_t out, size_t out_count, size_t *out_done);
    void (*delete)(soxr_t resampler);
};

/* Does as sndfile_load(). */
MUST_CHECK enum status soxr_load(const struct soxr_library **library, struct error *err);

#endif
