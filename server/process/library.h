/* SPDX-License-Identifier: MIT */
/*
 * Libraries that are loaded when something first needs them, so that a daemon that does not need
 * them starts without them, also where they are not installed.
 */
#ifndef PTED_SERVER_PROCESS_LIBRARY_H
#define PTED_SERVER_PROCESS_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* A function of a library, and the place of its pointer in a table of functions. */
struct library_symbol {
    const char *name;
    size_t offset;
};

/* The row of the function |prefix||member|; its pointer goes to |member| of |table|. */
#define LIBRARY_SYMBOL(prefix, table, member)                                                      \
    {                                                                                              \
        prefix #member, offsetof(table, member)                                                    \
    }

/* A library, in a static variable with LIBRARY_INIT(). */
struct library {
    const char *name;    /* such as "libcurl.so.4" */
    const char *package; /* of Debian */
    const struct library_symbol *symbols;
    size_t symbol_count;
    void *functions;     /* the table; written once */
    enum status missing; /* of library_load(), if the library cannot be used */
    /* NULL, or checks and prepares the library after its functions are there. */
    enum status (*prepare)(struct error *err);
    pthread_mutex_t lock; /* of the members below */
    bool is_tried;
    struct error problem; /* why it cannot be used; its code is ST_OK: it can */
};

#define LIBRARY_INIT(name_, package_, symbols_, functions_, missing_)                              \
    .name = (name_), .package = (package_), .symbols = (symbols_),                                 \
    .symbol_count = sizeof(symbols_) / sizeof((symbols_)[0]), .functions = (functions_),           \
    .missing = (missing_), .lock = PTHREAD_MUTEX_INITIALIZER

/*
 * Loads |library| at the first call; later calls, on any thread, have the result of the first. The
 * library then stays open. ST_OK: its functions may be called. Otherwise library->missing, with the
 * reason and the package.
 */
MUST_CHECK enum status library_load(struct library *library, struct error *err);

/* Tries to open the library, which then stays open: some leak what they took once closed. */
bool library_is_there(const char *name);

#endif
