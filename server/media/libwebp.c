/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/libwebp.h"

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(WebP##member, struct libwebp, member)
    SYMBOL(InitDecoderConfigInternal),
    SYMBOL(Decode),
#undef SYMBOL
};

static struct libwebp functions;

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_WEBP, PTED_PACKAGE_WEBP, symbols, &functions, ST_UNSUPPORTED),
};

enum status libwebp_load(const struct libwebp **out, struct error *err)
{
    *out = &functions;
    return library_load(&library, err);
}
