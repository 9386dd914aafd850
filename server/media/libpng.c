/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/libpng.h"

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(png_##member, struct libpng, member)
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

static struct libpng functions;

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_PNG, PTED_PACKAGE_PNG, symbols, &functions, ST_UNSUPPORTED),
};

enum status libpng_load(const struct libpng **out, struct error *err)
{
    *out = &functions;
    return library_load(&library, err);
}
