/* SPDX-License-Identifier: MIT */
/* libsndfile, which reads files of sound, loaded when something first needs it. */
#ifndef PTED_SERVER_MEDIA_SNDFILE_H
#define PTED_SERVER_MEDIA_SNDFILE_H

#include <sndfile.h>

#include "base/status.h"

/* The functions that pted uses, under their names without the prefix "sf_". */
struct sndfile {
    SNDFILE *(*open_virtual)(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *user);
    int (*close)(SNDFILE *file);
    int (*error)(SNDFILE *file);
    const char *(*strerror)(SNDFILE *file);
    sf_count_t (*readf_float)(SNDFILE *file, float *out, sf_count_t frames);
};

/* Sets |*sndfile| to the library's functions, for as long as the process lives. ST_UNSUPPORTED if
 * it is not installed: the error has the name of its package. Any thread. */
MUST_CHECK enum status sndfile_load(const struct sndfile **sndfile, struct error *err);

#endif
