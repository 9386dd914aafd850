/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/libpng.h"

#include <pthread.h>
#include <stddef.h>

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "png_" #member, offsetof(struct libpng, member)                                            \
    }
    SYMBOL(create_read_struct),
    SYMBOL(create_info_struct),
    SYMBOL(destroy_read_struct),
    SYMBOL(get_error_ptr),
    SYMBOL(get_io_ptr),
    SYMBOL(set_read_fn),
    SYMBOL(set_user_limits),
    SYMBOL(set_keep_unknown_chunks),
    SYMBOL(set_packing),
    SYMBOL(set_interlace_handling),
    SYMBOL(read_info),
    SYMBOL(read_update_info),
    SYMBOL(get_rowbytes),
    SYMBOL(get_PLTE),
    SYMBOL(read_row),
#undef SYMBOL
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct libpng functions;           /* written once, by load() */
static char problem[LIBRARY_PROBLEM_MAX]; /* why the library is not there; empty if it is */

static void load(void)
{
    library_load("libpng16.so.16", "libpng16-16", symbols, sizeof(symbols) / sizeof(symbols[0]),
                 &functions, problem);
}

enum status libpng_load(const struct libpng **library, struct error *err)
{
    pthread_once(&once, load);
    if (problem[0] != '\0') {
        return error_set(err, ST_UNSUPPORTED, "%s", problem);
    }
    *library = &functions;
    return ST_OK;
}
