/* SPDX-License-Identifier: MIT */
/* A file of sound in memory, as the libraries that read files see it. One thread at a time. */
#ifndef PTED_SERVER_MEDIA_SOUND_FILE_H
#define PTED_SERVER_MEDIA_SOUND_FILE_H

#include <stdint.h>

#include "base/bytes.h"

struct sound_file {
    struct span bytes; /* borrowed */
    size_t at;         /* the next byte that is read */
};

/* Does as lseek(): |whence| is SEEK_SET, SEEK_CUR or SEEK_END. A place behind the end is the end.
 * Returns the new place, or -1. */
int64_t sound_file_seek(struct sound_file *file, int64_t offset, int whence);

/* Returns how many bytes it has copied to |out|: at most |count|, 0 at the end. */
size_t sound_file_read(struct sound_file *file, void *out, size_t count);

#endif
