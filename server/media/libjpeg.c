/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/libjpeg.h"

#include <pthread.h>
#include <stddef.h>

#include "server/process/library.h"

/* The layout of its structs, and so its name, differs between systems. */
#if JPEG_LIB_VERSION >= 80
#define JPEG_LIBRARY "libjpeg.so.8"
#define JPEG_PACKAGE "libjpeg-turbo8"
#else
#define JPEG_LIBRARY "libjpeg.so.62"
#define JPEG_PACKAGE "libjpeg62-turbo"
#endif

static const struct library_symbol symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "jpeg_" #member, offsetof(struct libjpeg, member)                                          \
    }
    SYMBOL(std_error),      SYMBOL(CreateDecompress), SYMBOL(destroy_decompress),
    SYMBOL(read_header),    SYMBOL(start_decompress), SYMBOL(crop_scanline),
    SYMBOL(skip_scanlines), SYMBOL(read_scanlines),   SYMBOL(resync_to_restart),
#undef SYMBOL
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct libjpeg functions;          /* written once, by load() */
static char problem[LIBRARY_PROBLEM_MAX]; /* why the library is not there; empty if it is */

static void load(void)
{
    library_load(JPEG_LIBRARY, JPEG_PACKAGE, symbols, sizeof(symbols) / sizeof(symbols[0]),
                 &functions, problem);
}

enum status libjpeg_load(const struct libjpeg **library, struct error *err)
{
    pthread_once(&once, load);
    if (problem[0] != '\0') {
        return error_set(err, ST_UNSUPPORTED, "%s", problem);
    }
    *library = &functions;
    return ST_OK;
}
