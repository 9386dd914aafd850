/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/mpg123.h"

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(mpg123_##member, struct mpg123, member)
    SYMBOL(new),         SYMBOL(delete),    SYMBOL(param),    SYMBOL(replace_reader_handle),
    SYMBOL(open_handle), SYMBOL(getformat), SYMBOL(scan),     SYMBOL(length),
    SYMBOL(framelength), SYMBOL(read),      SYMBOL(strerror), SYMBOL(plain_strerror),
#undef SYMBOL
};

static struct mpg123 functions;

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_MPG123, PTED_PACKAGE_MPG123, symbols, &functions, ST_UNSUPPORTED),
};

enum status mpg123_load(const struct mpg123 **out, struct error *err)
{
    *out = &functions;
    return library_load(&library, err);
}
