/* SPDX-License-Identifier: MIT */
/* Folders, their entries, and files that lie beside each other. Any thread. */
#ifndef PTED_BASE_FOLDER_H
#define PTED_BASE_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * opendir(3), by way of a descriptor that open(2) gives. ThreadSanitizer knows such a descriptor;
 * one of opendir() itself looks to it like the last one with the same number. NULL sets errno;
 * closedir() ends it.
 */
DIR *folder_open(const char *path);

/* Returns the last part of |path|: the file's name in its folder. */
const char *folder_name(const char *path);

/* Writes the path of the file |name| in the folder of |path|, into |out|. False: it is too long. */
bool folder_beside(const char *path, const char *name, char *out, size_t size);

#endif
