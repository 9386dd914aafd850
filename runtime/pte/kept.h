/* SPDX-License-Identifier: MIT */
/*
 * Files that one process keeps for the next ones in a folder of their own: packed weights
 * (runtime/pte/packed.h), what trials have proven (runtime/program/proven.h), digests of files that
 * were read (runtime/pte/seen.h). A file that is
 * being written has another name and is locked, and gets its final name when it is whole. The next
 * process that writes in the folder removes those that are not locked: whoever wrote them was
 * killed.
 *
 * Any thread.
 */
#ifndef PTED_RUNTIME_PTE_KEPT_H
#define PTED_RUNTIME_PTE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* The ends of final names. */
#define RT_KEPT_PACKED ".packed"
#define RT_KEPT_PROVEN ".proven"
#define RT_KEPT_SEEN ".seen"

/* May nobody but the user and root change it? */
bool rt_kept_is_private(const struct stat *st);

/* Makes the name for a new file that becomes |path|: another one on each call. False: it is too
 * long. */
bool rt_kept_name_new(const char *path, char *out, size_t size);

/* Removes new files of processes that are gone from the folder, and makes |new_path|. Returns the
 * descriptor, or -1 with errno. */
int rt_kept_open_new(const char *new_path);

/* Call when the file is whole: it takes the place of |path|, and |fd| is closed. Otherwise false
 * with errno; |fd| stays open, and the file stays. */
bool rt_kept_settle(int fd, const char *new_path, const char *path);

#endif
