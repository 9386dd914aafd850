/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/soxr.h"

#include <pthread.h>
#include <stddef.h>

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "soxr_" #member, offsetof(struct soxr_library, member)                                     \
    }
    SYMBOL(create),
    SYMBOL(process),
    SYMBOL(delete),
#undef SYMBOL
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct soxr_library functions;     /* written once, by load() */
static char problem[LIBRARY_PROBLEM_MAX]; /* why the library is not there; empty if it is */

static void load(void)
{
    library_load("libsoxr.so.0", "libsoxr0", symbols, sizeof(symbols) / sizeof(symbols[0]),
                 &functions, problem);
}

enum status soxr_load(const struct soxr_library **library, struct error *err)
{
    pthread_once(&once, load);
    if (problem[0] != '\0') {
        return error_set(err, ST_UNSUPPORTED, "%s", problem);
    }
    *library = &functions;
    return ST_OK;
}
