/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/sound_file.h"

#include <stdio.h>
#include <string.h>

int64_t sound_file_seek(struct sound_file *file, int64_t offset, int whence)
{
    int64_t base = whence == SEEK_SET   ? 0
                   : whence == SEEK_CUR ? (int64_t)file->at
                                        : (int64_t)file->bytes.len;
    int64_t to;
    if (__builtin_add_overflow(base, offset, &to) || to < 0) {
        return -1;
    }
    file->at = (uint64_t)to < file->bytes.len ? (size_t)to : file->bytes.len;
    return (int64_t)file->at;
}

size_t sound_file_read(struct sound_file *file, void *out, size_t count)
{
    size_t left = file->bytes.len - file->at;
    size_t len = count < left ? count : left;
    memcpy(out, file->bytes.ptr + file->at, len);
    file->at += len;
    return len;
}
