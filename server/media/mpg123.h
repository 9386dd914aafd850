/* SPDX-License-Identifier: MIT */
/* libmpg123, which reads files of MP3, loaded when something first needs it. */
#ifndef PTED_SERVER_MEDIA_MPG123_H
#define PTED_SERVER_MEDIA_MPG123_H

#include <mpg123.h>

#include "base/status.h"

/* The functions that pted uses, under their names without the prefix "mpg123_". */
struct mpg123 {
    mpg123_handle *(*new)(const char *decoder, int *error);
    void (*delete)(mpg123_handle *handle);
    int (*param)(mpg123_handle *handle, int type, long value, double fvalue);
    int (*replace_reader_handle)(mpg123_handle *handle, ssize_t (*read)(void *, void *, size_t),
                                 off_t (*seek)(void *, off_t, int), void (*cleanup)(void *));
    int (*open_handle)(mpg123_handle *handle, void *user);
    int (*getformat)(mpg123_handle *handle, long *rate, int *channels, int *encoding);
    int (*scan)(mpg123_handle *handle);
    off_t (*length)(mpg123_handle *handle);
    off_t (*framelength)(mpg123_handle *handle);
    int (*read)(mpg123_handle *handle, void *out, size_t size, size_t *done);
    const char *(*strerror)(mpg123_handle *handle);
    const char *(*plain_strerror)(int error);
};

/* Does as sndfile_load(). */
MUST_CHECK enum status mpg123_load(const struct mpg123 **mpg123, struct error *err);

#endif
