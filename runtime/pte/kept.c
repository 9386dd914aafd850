/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/folder.h"

#define NEW_SUFFIX ".new" /* behind the final name and two numbers */

bool rt_kept_is_private(const struct stat *st)
{
    return (st->st_uid == geteuid() || st->st_uid == 0) && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool rt_kept_name_new(const char *path, char *out, size_t size)
{
    static atomic_uint count; /* two loads of one process */
    int len = snprintf(out, size, "%s.%ld.%u" NEW_SUFFIX, path, (long)getpid(),
                       atomic_fetch_add_explicit(&count, 1, memory_order_relaxed));
    return len >= 0 && (size_t)len < size;
}

static bool is_new_file(const char *name)
{
    size_t len = strlen(name), suffix = strlen(NEW_SUFFIX);
    return len > suffix && strcmp(name + len - suffix, NEW_SUFFIX) == 0 &&
           (strstr(name, RT_KEPT_PACKED ".") || strstr(name, RT_KEPT_PROVEN ".") ||
            strstr(name, RT_KEPT_SEEN "."));
}

/* A process that was killed has left its new file, perhaps as large as the weights. One that writes
 * has locked its own, and no number of a process tells that: containers share folders. */
static void remove_left(const char *folder)
{
    DIR *dir = folder_open(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        int fd = is_new_file(entry->d_name)
                     ? openat(dirfd(dir), entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
                     : -1;
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            unlinkat(dirfd(dir), entry->d_name, 0);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Locked, unless the file system has no locks. Another process may have found it before it was
 * locked, and removed it: then there is none, and errno is EAGAIN. */
static int open_locked(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd >= 0 && flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 && st.st_nlink == 0) {
        close(fd);
        fd = -1;
        errno = EAGAIN;
    }
    return fd;
}

int rt_kept_open_new(const char *new_path)
{
    char folder[PATH_MAX];
    int fd;
    const char *slash = strrchr(new_path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - new_path) : 1,
             slash ? new_path : ".");
    remove_left(folder);
    do {
        fd = open_locked(new_path);
    } while (fd < 0 && errno == EAGAIN);
    return fd;
}

bool rt_kept_settle(int fd, const char *new_path, const char *path)
{
    if (fdatasync(fd) < 0 || rename(new_path, path) < 0) {
        return false;
    }
    close(fd);
    return true;
}
