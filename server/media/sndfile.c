/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/sndfile.h"

#include <pthread.h>
#include <stddef.h>

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "sf_" #member, offsetof(struct sndfile, member)                                            \
    }
    SYMBOL(open_virtual), SYMBOL(close), SYMBOL(error), SYMBOL(strerror), SYMBOL(readf_float),
#undef SYMBOL
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sndfile functions;          /* written once, by load() */
static char problem[LIBRARY_PROBLEM_MAX]; /* why the library is not there; empty if it is */

static void load(void)
{
    library_load("libsndfile.so.1", "libsndfile1", symbols, sizeof(symbols) / sizeof(symbols[0]),
                 &functions, problem);
}

enum status sndfile_load(const struct sndfile **sndfile, struct error *err)
{
    pthread_once(&once, load);
    if (problem[0] != '\0') {
        return error_set(err, ST_UNSUPPORTED, "%s", problem);
    }
    *sndfile = &functions;
    return ST_OK;
}
