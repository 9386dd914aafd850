/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/soxr.h"

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(soxr_##member, struct soxr_library, member)
    SYMBOL(create),
    SYMBOL(process),
    SYMBOL(delete),
#undef SYMBOL
};

static struct soxr_library functions;

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_SOXR, PTED_PACKAGE_SOXR, symbols, &functions, ST_UNSUPPORTED),
};

enum status soxr_load(const struct soxr_library **out, struct error *err)
{
    *out = &functions;
    return library_load(&library, err);
}
