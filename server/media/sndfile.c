/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/sndfile.h"

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(sf_##member, struct sndfile, member)
    SYMBOL(open_virtual), SYMBOL(close), SYMBOL(error), SYMBOL(strerror), SYMBOL(readf_float),
#undef SYMBOL
};

static struct sndfile functions;

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_SNDFILE, PTED_PACKAGE_SNDFILE, symbols, &functions, ST_UNSUPPORTED),
};

enum status sndfile_load(const struct sndfile **out, struct error *err)
{
    *out = &functions;
    return library_load(&library, err);
}
