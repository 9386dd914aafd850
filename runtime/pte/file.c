/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

static enum status check_kind(const char *path, const struct stat *st, struct error *err)
{
    if (S_ISDIR(st->st_mode)) {
        return error_set(err, ST_INVALID, "%.160s: is a directory, expected a file", path);
    }
    if (!S_ISREG(st->st_mode)) {
        return error_set(err, ST_INVALID, "%.160s: is not a regular file", path);
    }
    if (st->st_size == 0) {
        return error_set(err, ST_CORRUPT, "%.160s: is empty", path);
    }
    if ((uintmax_t)st->st_size > SIZE_MAX / 2) {
        return error_set(err, ST_TOO_LARGE, "%.160s: is too large to be mapped", path);
    }
    return ST_OK;
}

static enum status map_fd(int fd, const char *path, struct span *out_bytes, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return error_set(err, ST_SYSTEM, "%.160s: %m", path);
    }
    TRY(check_kind(path, &st, err));
    void *mapping = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) {
        return error_set(err, ST_SYSTEM, "%.160s: cannot be mapped: %m", path);
    }
    *out_bytes = span_of(mapping, (size_t)st.st_size);
    return ST_OK;
}

enum status pte_file_map(const char *path, struct span *out_bytes, struct error *err)
{
    /* O_NONBLOCK: opening a fifo must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return error_set(err, status_of_errno(errno), "%.160s: %m", path);
    }
    enum status status = map_fd(fd, path, out_bytes, err);
    close(fd);
    return status;
}

void pte_file_unmap(struct span bytes)
{
    /* munmap() wants a pointer to non-const although it changes no byte. */
    must(munmap((void *)(uintptr_t)bytes.ptr, bytes.len) == 0);
}
