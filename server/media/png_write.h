/* SPDX-License-Identifier: MIT */
/*
 * PNG files of answers: maps of classes, masks, depths. 8 or 16 bits for each channel, not
 * interlaced, compressed by zlib. Any thread; not the loop, for pictures may be large.
 * Source: W3C, Portable Network Graphics (PNG) Specification, second edition.
 */
#ifndef PTED_SERVER_MEDIA_PNG_WRITE_H
#define PTED_SERVER_MEDIA_PNG_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

/* The kind of pixels. */
enum png_kind {
    PNG_GRAY,    /* 1 byte */
    PNG_GRAY_16, /* a uint16_t of this machine */
    PNG_PALETTE, /* 1 byte, the number of a colour */
    PNG_RGB,     /* 3 bytes */
    PNG_RGBA,    /* 4 bytes; not multiplied by alpha */
};

#define PNG_COLOR_COUNT_MAX 256

struct png_picture {
    uint32_t height, width; /* each 1 to 2^31 - 1 */
    enum png_kind kind;
    const void *pixels; /* borrowed: [height, width, channels], without gaps */
    /* Of PNG_PALETTE: [color_count, 4] bytes of red, green, blue, alpha, borrowed. Pixels beyond
     * it are refused. */
    const uint8_t *colors;
    uint32_t color_count; /* 1 to PNG_COLOR_COUNT_MAX */
};

/* Appends the file to |out|. ST_INVALID: a size is wrong, or pixel has no colour; ST_TOO_LARGE:
 * beyond the maximum of |out|; ST_EXHAUSTED. After an error |out| may have a part of the file. */
MUST_CHECK enum status png_write(const struct png_picture *picture, struct buf *out,
                                 struct error *err);

#endif
