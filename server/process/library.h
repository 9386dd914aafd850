/* SPDX-License-Identifier: MIT */
/*
 * Libraries that are loaded when something first needs them, so that a daemon that does not need
 * them starts without them, also where they are not installed. After configure
 * --enable-linked-libraries they are linked in instead, and loading takes the addresses that the
 * linker put into the rows.
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
    void (*linked)(void); /* the function, whatever its type; NULL: its library is opened */
};

/* The row of |function| of a library that is opened; its pointer goes to |member| of |table|. If
 * |function| is a macro, the row has the name behind it. */
#define LIBRARY_OPENED(function, table, member)                                                    \
    {                                                                                              \
        LIBRARY_NAME(function), offsetof(table, member), NULL                                      \
    }
#define LIBRARY_NAME(function) #function

/* The same of a library that is linked in. */
#define LIBRARY_LINKED(function, table, member)                                                    \
    {                                                                                              \
        LIBRARY_NAME(function), offsetof(table, member), (void (*)(void))(function)                \
    }

/* The same of a library that configure decides about. */
#ifdef PTED_LINKED_LIBRARIES
#define LIBRARY_SYMBOL LIBRARY_LINKED
#define LIBRARY_WAY "linked in"
#else
#define LIBRARY_SYMBOL LIBRARY_OPENED
#define LIBRARY_WAY "opened when needed"
#endif

/* A library, in a static variable with LIBRARY_INIT(). */
struct library {
    const char *name;    /* such as "libcurl.so.4"; linked in: "libcurl 7.88.1" */
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

/* Tries to open a library that configure decides about. It then stays open: some leak what they
 * took once closed. One that is linked in is there. */
bool library_is_there(const char *name);

#endif
