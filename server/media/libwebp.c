/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/libwebp.h"

#include <pthread.h>
#include <stddef.h>

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "WebP" #member, offsetof(struct libwebp, member)                                           \
    }
    SYMBOL(InitDecoderConfigInternal),
    SYMBOL(Decode),
#undef SYMBOL
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct libwebp functions;          /* written once, by load() */
static char problem[LIBRARY_PROBLEM_MAX]; /* why the library is not there; empty if it is */

static void load(void)
{
    library_load("libwebp.so.7", "libwebp7", symbols, sizeof(symbols) / sizeof(symbols[0]),
                 &functions, problem);
}

enum status libwebp_load(const struct libwebp **library, struct error *err)
{
    pthread_once(&once, load);
    if (problem[0] != '\0') {
        return error_set(err, ST_UNSUPPORTED, "%s", problem);
    }
    *library = &functions;
    return ST_OK;
}
