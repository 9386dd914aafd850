/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
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
