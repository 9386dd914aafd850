/* SPDX-License-Identifier: MIT */
/* libjpeg-turbo, which reads JPEG files, loaded when something first needs it. */
#ifndef PTED_SERVER_MEDIA_LIBJPEG_H
#define PTED_SERVER_MEDIA_LIBJPEG_H

#include <stddef.h>
#include <stdio.h>
/* Needs both of the above. */
#include <jpeglib.h>

#include "base/status.h"

/* The functions that pted uses, under their names without the prefix "jpeg_". */
struct libjpeg {
    struct jpeg_error_mgr *(*std_error)(struct jpeg_error_mgr *errors);
    void (*CreateDecompress)(j_decompress_ptr jpeg, int version, size_t struct_bytes);
    void (*destroy_decompress)(j_decompress_ptr jpeg);
    int (*read_header)(j_decompress_ptr jpeg, boolean requires_image);
    boolean (*start_decompress)(j_decompress_ptr jpeg);
    void (*crop_scanline)(j_decompress_ptr jpeg, JDIMENSION *x, JDIMENSION *width);
    JDIMENSION (*skip_scanlines)(j_decompress_ptr jpeg, JDIMENSION count);
    JDIMENSION (*read_scanlines)(j_decompress_ptr jpeg, JSAMPARRAY rows, JDIMENSION count);
    boolean (*resync_to_restart)(j_decompress_ptr jpeg, int desired);
};

/* Does as sndfile_load(). */
MUST_CHECK enum status libjpeg_load(const struct libjpeg **library, struct error *err);

#endif
