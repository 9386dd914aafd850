/* SPDX-License-Identifier: MIT */
/*
 * Pictures in files (JPEG, PNG, WebP) as pixels of one byte for each channel: decoded, turned as
 * their EXIF orientation says, resized and cropped. The result has the very bytes of
 *
 *     picture = PIL.ImageOps.exif_transpose(PIL.Image.open(file)).convert("RGB")  (gray: "L")
 *     picture.resize(...), then torchvision's CenterCrop
 *
 *     image_open     looks at the head, and compares it with the limits; no pixels yet
 *     image_size     the size that the result will have
 *     image_read     the pixels, into memory of the caller
 *     image_close
 *
 * Alpha is dropped, as convert("RGB") drops it: pixels keep the colour below it. The first picture
 * of an animation counts. 16 bits become 8 as they do there. Colour profiles and gamma are ignored.
 *
 * The file is hostile: its size is compared with the limits before anybody takes memory for it. A
 * picture is resized row by row while it is decoded where its format permits that; only the part
 * that the crop keeps is computed. The memory for it is known beforehand: image_work_bytes(). An
 * image belongs to one thread at a time. All functions may take long: none runs on the loop.
 */
#ifndef PTED_SERVER_MEDIA_IMAGE_H
#define PTED_SERVER_MEDIA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "server/media/format.h"
#include "server/media/place.h"

struct image;

/* Longest side of a picture, also after its resizing: the longest that a JPEG file can have. */
#define IMAGE_SIDE_MAX 65535

struct image_limits {
    uint64_t pixels_max; /* height times width, as the file says them */
};

/* How a picture gets the size that a form names. */
enum image_fit {
    IMAGE_SHORTER,   /* its shorter side gets the length resize_height; the ratio stays */
    IMAGE_STRETCH,   /* exactly that size */
    IMAGE_INSIDE,    /* as large as fits in that size; the rest, on both sides, is filled, as PIL's
                        ImageOps.pad() does it */
    IMAGE_LETTERBOX, /* the same as Ultralytics' LetterBox: an odd row or column is at the end */
};

/* The filters of PIL's Image.resize(), and INTER_LINEAR of OpenCV's cv2.resize(), in which a pixel
 * is made of the two nearest ones, also where the picture becomes smaller. Numbers may differ from
 * OpenCV's by 1. */
enum image_filter {
    IMAGE_NEAREST,
    IMAGE_BOX,
    IMAGE_BILINEAR,
    IMAGE_BICUBIC,
    IMAGE_LANCZOS,
    IMAGE_LINEAR,
};

enum image_colors { IMAGE_RGB, IMAGE_BGR, IMAGE_GRAY };

/* The form that a picture gets. No side may be longer than IMAGE_SIDE_MAX. */
struct image_form {
    uint32_t resize_height, resize_width; /* both 0: as it is. IMAGE_SHORTER reads the first */
    enum image_fit fit;
    enum image_filter filter;
    uint32_t crop_height, crop_width; /* both 0: not cropped. A smaller picture is filled up */
    /* Of an odd rest, the crop begins behind the smaller half, as in transformers; otherwise behind
     * the half rounded to even, as in torchvision. */
    bool crop_rounds_down;
    uint8_t fill[3]; /* in the order of |colors|; gray: the first */
    enum image_colors colors;
    /* The size that the result must have; 0: any. A picture that gets another one is refused. */
    uint32_t height, width;
    /* A JPEG file may be decoded at a half, a quarter or an eighth of its size while that leaves it
     * twice as large as the resized picture. Faster for large files. The bytes are then the same as
     * from PIL's Image.draft() and resize(), not from resize() alone. */
    bool draft;
};

/* 3, or 1 for gray. */
uint32_t image_form_channels(const struct image_form *form);

/* Loads all libraries, now. ST_UNSUPPORTED: one is missing; the error has the name of its
 * package. */
MUST_CHECK enum status image_load(struct error *err);

/*
 * |file| is borrowed until image_close(). ST_INVALID: it is no such file, or its head is damaged;
 * ST_TOO_LARGE: beyond a limit; ST_UNSUPPORTED: its library is missing, or pictures of its kind are
 * not read; ST_EXHAUSTED.
 */
MUST_CHECK enum status image_open(struct span file, const struct image_limits *limits,
                                  struct image **out, struct error *err);
void image_close(struct image *image); /* NULL is fine */

/* Returns the decoded picture, 4 bytes a pixel: a measure of the time that image_read() takes. */
uint64_t image_decoded_bytes(const struct image *image);

/* Finds the size of the result. ST_INVALID: not the size that the form wants, or longer than
 * IMAGE_SIDE_MAX. */
MUST_CHECK enum status image_size(const struct image *image, const struct image_form *form,
                                  uint32_t *out_height, uint32_t *out_width, struct error *err);

/* Finds where the pixels of the result come from. Errors as of image_size(). */
MUST_CHECK enum status image_find_place(const struct image *image, const struct image_form *form,
                                        struct image_place *out, struct error *err);

/* Returns the bytes of memory that image_read() takes at most, beside |out|; SIZE_MAX: image_size()
 * fails. */
size_t image_work_bytes(const struct image *image, const struct image_form *form);

/*
 * Once. Writes all of [height, width, channels]; |out_len| is that product for the size that
 * image_size() says. ST_INVALID: the file is damaged, or ends too early; ST_EXHAUSTED, and the
 * errors of image_size(). |out| may then have some of the pixels.
 */
MUST_CHECK enum status image_read(struct image *image, const struct image_form *form, uint8_t *out,
                                  size_t out_len, struct error *err);

#endif
