/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

DIR *folder_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir) {
        int number = errno;
        close(fd);
        errno = number;
    }
    return dir;
}

const char *folder_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool folder_beside(const char *path, const char *name, char *out, size_t size)
{
    int len = snprintf(out, size, "%.*s%s", (int)(folder_name(path) - path), path, name);
    return len >= 0 && (size_t)len < size;
}
