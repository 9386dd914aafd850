/* SPDX-License-Identifier: MIT */
/*
 * Libraries that are loaded when something first needs them, so that a daemon that does not need
 * them starts without them, also where they are not installed.
 */
#ifndef PTED_SERVER_PROCESS_LIBRARY_H
#define PTED_SERVER_PROCESS_LIBRARY_H

#include <stddef.h>

#define LIBRARY_PROBLEM_MAX 240

/* A function of a library, and the place of its pointer in a table of functions. */
struct library_symbol {
    const char *name;
    size_t offset;
};

/*
 * Opens the library |name|, such as "libcurl.so.4", of Debian's |package|, and writes the pointers
 * of |symbols| to |functions|. |problem| becomes the reason why it cannot be used, or stays empty.
 * The library stays open. Called once for each library, by pthread_once(3).
 */
void library_load(const char *name, const char *package, const struct library_symbol *symbols,
                  size_t count, void *functions, char problem[LIBRARY_PROBLEM_MAX]);

#endif
