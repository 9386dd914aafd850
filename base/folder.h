/* SPDX-License-Identifier: MIT */
/* Opens a folder to read its entries. Any thread. */
#ifndef PTED_BASE_FOLDER_H
#define PTED_BASE_FOLDER_H

#include <dirent.h>

/*
 * opendir(3), by way of a descriptor that open(2) gives. ThreadSanitizer knows such a descriptor;
 * one of opendir() itself looks to it like the last one with the same number. NULL sets errno;
 * closedir() ends it.
 */
DIR *folder_open(const char *path);

#endif
