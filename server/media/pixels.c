/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/pixels.h"

#include <string.h>

static const uint8_t bytes_of_kind[] = {
    [PIXEL_GRAY] = 1,   [PIXEL_RGBX] = 4,     [PIXEL_NUMBER] = 1,  [PIXEL_RGB] = 3,
    [PIXEL_GRAY_X] = 2, [PIXEL_CMYK_INV] = 4, [PIXEL_GRAY_16] = 2, [PIXEL_GRAY_X_16] = 4,
    [PIXEL_RGB_16] = 6, [PIXEL_RGBX_16] = 8,
};

uint32_t pixel_bytes(enum pixel_kind kind)
{
    return bytes_of_kind[kind];
}

bool pixels_are_final(enum pixel_kind kind, bool is_gray)
{
    return kind == (is_gray ? PIXEL_GRAY : PIXEL_RGBX);
}

/* ITU-R BT.601, in 16 binary places, rounded. */
static uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

/* a * b / 255, rounded. */
static unsigned mul_255(unsigned a, unsigned b)
{
    unsigned product = a * b + 128;
    return (product + (product >> 8)) >> 8;
}

static void load_cmyk(const uint8_t *at, uint8_t *rgb)
{
    unsigned light = at[3];
    for (int c = 0; c < 3; c++) {
        rgb[c] = (uint8_t)(light - mul_255(255u - at[c], light));
    }
}

static uint8_t cut_16(const uint8_t *at)
{
    return at[0] ? 255 : at[1];
}

static void fill_rgb(uint8_t *rgb, uint8_t gray)
{
    rgb[0] = rgb[1] = rgb[2] = gray;
}

/* A pixel as three bytes. Inlined with a constant |kind|, so that each loop has one case. */
static inline void load(const struct pixel_format *format, enum pixel_kind kind, const uint8_t *at,
                        uint8_t *rgb)
{
    switch (kind) {
    case PIXEL_GRAY:
    case PIXEL_GRAY_X:
    case PIXEL_GRAY_X_16:
        fill_rgb(rgb, at[0]);
        break;
    case PIXEL_RGBX:
    case PIXEL_RGB:
        memcpy(rgb, at, 3);
        break;
    case PIXEL_NUMBER:
        memcpy(rgb, format->palette[at[0]], 3);
        break;
    case PIXEL_CMYK_INV:
        load_cmyk(at, rgb);
        break;
    case PIXEL_GRAY_16:
        fill_rgb(rgb, cut_16(at));
        break;
    case PIXEL_RGB_16:
    case PIXEL_RGBX_16:
        rgb[0] = at[0];
        rgb[1] = at[2];
        rgb[2] = at[4];
        break;
    }
}

static inline void convert(const struct pixel_format *format, enum pixel_kind kind,
                           const uint8_t *row, uint32_t count, bool is_gray, uint8_t *out)
{
    size_t step = pixel_bytes(kind);
    for (size_t i = 0; i < count; i++) {
        uint8_t pixel[4] = {0, 0, 0, 255};
        load(format, kind, row + step * i, pixel);
        if (is_gray) {
            out[i] = luma(pixel);
        } else {
            memcpy(out + 4 * i, pixel, 4);
        }
    }
}

/* The weights of luma() sum up to 1, so that grey stays the same. */
void pixels_convert(const struct pixel_format *format, const uint8_t *row, uint32_t count,
                    bool is_gray, uint8_t *out)
{
    switch (format->kind) {
#define CASE(kind)                                                                                 \
    case kind:                                                                                     \
        convert(format, kind, row, count, is_gray, out);                                           \
        break;
        CASE(PIXEL_GRAY)
        CASE(PIXEL_RGBX)
        CASE(PIXEL_NUMBER)
        CASE(PIXEL_RGB)
        CASE(PIXEL_GRAY_X)
        CASE(PIXEL_CMYK_INV)
        CASE(PIXEL_GRAY_16)
        CASE(PIXEL_GRAY_X_16)
        CASE(PIXEL_RGB_16)
        CASE(PIXEL_RGBX_16)
#undef CASE
    }
}
