/* SPDX-License-Identifier: MIT */
/* Rows of pixels as files have them, made rows of pixels as models see them. */
#ifndef PTED_SERVER_MEDIA_PIXELS_H
#define PTED_SERVER_MEDIA_PIXELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Samples of 16 bits are big-endian, and the high byte counts; but grey of 16 bits is cut to 255,
 * as PIL's convert() cuts it. */
enum pixel_kind {
    PIXEL_GRAY,
    PIXEL_RGBX,   /* the fourth byte does not count */
    PIXEL_NUMBER, /* of a colour in the palette */
    PIXEL_RGB,
    PIXEL_GRAY_X,   /* grey and a byte that does not count */
    PIXEL_CMYK_INV, /* as in JPEG files: 255 is no ink */
    PIXEL_GRAY_16,
    PIXEL_GRAY_X_16,
    PIXEL_RGB_16,
    PIXEL_RGBX_16,
};

#define PALETTE_COUNT 256

struct pixel_format {
    enum pixel_kind kind;
    uint8_t palette[PALETTE_COUNT][4]; /* RGBX */
};

/* Returns the bytes of a pixel. */
uint32_t pixel_bytes(enum pixel_kind kind);

/* Are pixels of this kind what pixels_convert() would write? */
bool pixels_are_final(enum pixel_kind kind, bool is_gray);

/* Writes |count| pixels: of RGBX, or of grey, which is PIL's convert("L"). */
void pixels_convert(const struct pixel_format *format, const uint8_t *row, uint32_t count,
                    bool is_gray, uint8_t *out);

#endif
