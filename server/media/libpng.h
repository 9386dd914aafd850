/* SPDX-License-Identifier: MIT */
/* libpng, which reads PNG files, loaded when something first needs it. */
#ifndef PTED_SERVER_MEDIA_LIBPNG_H
#define PTED_SERVER_MEDIA_LIBPNG_H

#include <png.h>

#include "base/status.h"

/* The functions that pted uses, under their names without the prefix "png_". */
struct libpng {
    png_structp (*create_read_struct)(png_const_charp version, png_voidp user,
                                      png_error_ptr on_error, png_error_ptr on_warning);
    png_infop (*create_info_struct)(png_const_structrp png);
    void (*destroy_read_struct)(png_structpp png, png_infopp info, png_infopp end);
    png_voidp (*get_error_ptr)(png_const_structrp png);
    png_voidp (*get_io_ptr)(png_const_structrp png);
    void (*set_read_fn)(png_structrp png, png_voidp user, png_rw_ptr read);
    void (*set_user_limits)(png_structrp png, png_uint_32 width, png_uint_32 height);
    void (*set_keep_unknown_chunks)(png_structrp png, int keep, png_const_bytep names, int count);
    void (*set_packing)(png_structrp png);
    int (*set_interlace_handling)(png_structrp png);
    void (*read_info)(png_structrp png, png_inforp info);
    void (*read_update_info)(png_structrp png, png_inforp info);
    size_t (*get_rowbytes)(png_const_structrp png, png_const_inforp info);
    png_uint_32 (*get_PLTE)(png_const_structrp png, png_inforp info, png_colorp *colors,
                            int *count);
    void (*read_row)(png_structrp png, png_bytep row, png_bytep shown);
};

/* Does as sndfile_load(). */
MUST_CHECK enum status libpng_load(const struct libpng **library, struct error *err);

#endif
