/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/libjpeg.h"

#include "server/process/library.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(jpeg_##member, struct libjpeg, member)
    SYMBOL(std_error),      SYMBOL(CreateDecompress), SYMBOL(destroy_decompress),
    SYMBOL(read_header),    SYMBOL(start_decompress), SYMBOL(crop_scanline),
    SYMBOL(skip_scanlines), SYMBOL(read_scanlines),   SYMBOL(resync_to_restart),
#undef SYMBOL
};

static struct libjpeg functions;

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_JPEG, PTED_PACKAGE_JPEG, symbols, &functions, ST_UNSUPPORTED),
};

enum status libjpeg_load(const struct libjpeg **out, struct error *err)
{
    *out = &functions;
    return library_load(&library, err);
}
