/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (16 << 10)

static enum status fail(struct error *err)
{
    return error_set(err, status_of_errno(errno), "%s", strerror(errno));
}

/* Opening a fifo does not wait for a writer: one that lies in a folder of models is an empty file.
 * Reading waits, so that a shell may write to a pipe while it is read. */
static FILE *open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    FILE *file = fd >= 0 && fcntl(fd, F_SETFL, 0) == 0 ? fdopen(fd, "rb") : NULL;
    if (fd >= 0 && !file) {
        int number = errno;
        close(fd);
        errno = number;
    }
    return file;
}

enum status file_read(const char *path, struct buf *out, struct error *err)
{
    char bytes[READ_BYTES];
    size_t len;
    FILE *file = open_file(path);
    if (!file) {
        return fail(err);
    }
    while (!buf_failed(out) && (len = fread(bytes, 1, sizeof(bytes), file)) > 0) {
        buf_add(out, bytes, len);
    }
    enum status status = ferror(file) ? fail(err) : ST_OK;
    fclose(file);
    if (out->lacks_memory) {
        return error_no_memory(err, "the file");
    }
    return buf_failed(out) ? error_set(err, ST_TOO_LARGE, "more than %zu bytes", out->max_bytes)
                           : status;
}
