/* SPDX-License-Identifier: MIT */
/* Shared by image.c and the decoders of its formats. */
#ifndef PTED_SERVER_MEDIA_IMAGE_PRIV_H
#define PTED_SERVER_MEDIA_IMAGE_PRIV_H

#include "server/media/image.h"
#include "server/media/resize.h"

struct image_decoder;

/* The head of a file. image_open() checks the size, of which neither side may be 0. */
struct image_head {
    uint32_t height, width;      /* as the file has them */
    unsigned orientation;        /* of EXIF, 1 to 8 */
    uint32_t components;         /* JPEG */
    uint32_t sampling;           /* JPEG: blocks of a unit of all components */
    uint32_t sample_x, sample_y; /* JPEG: blocks of a unit, of the finest component */
    bool is_whole;               /* JPEG with several scans, PNG interlaced: kept as a whole */
    uint32_t bits, color_type;   /* PNG: of IHDR */
    struct span data;            /* WebP: the bitstream of the picture, or of the first frame */
    uint32_t x, y;               /* WebP: where that frame lies */
    uint32_t data_height, data_width;
    bool is_lossless; /* WebP */
};

struct image {
    uint32_t magic;
    struct span file;
    struct image_limits limits;
    enum media_format format;
    const struct image_decoder *decoder;
    struct image_head head;
    unsigned scale; /* of JPEG, while it is read: 1, 2, 4, 8; its sides are divided by it */
};

struct image_decoder {
    /* Needs no library. Errors without a prefix: "the file ends in its head". */
    enum status (*open)(struct span file, struct image_head *head, struct error *err);
    /* Bytes that read() takes, including the library's. */
    size_t (*work_bytes)(const struct image_head *head);
    /* Hands all rows of the part that |resize| needs to it. */
    enum status (*read)(const struct image *image, struct resize *resize, struct error *err);
};

extern const struct image_decoder image_jpeg, image_png, image_webp;

/* ---- image_form.c ---------------------------------------------------------------------------- */

/* Along one side: the picture is resized to |length|. Of the result's |size| pixels, |count| from
 * |place| on are the picture's, from |first| on. The others are filled; |count| may be 0. */
struct image_side {
    uint64_t length, first;
    uint32_t size, place, count;
};

struct image_layout {
    struct image_side y, x;
};

/* Finds the resizing and the crop of a picture of that size, as it is shown. ST_INVALID: not of the
 * form's size. */
MUST_CHECK enum status image_form_layout(const struct image_form *form, uint32_t height,
                                         uint32_t width, struct image_layout *layout,
                                         struct error *err);

#endif
