/* SPDX-License-Identifier: MIT */
/*
 * A picture that is resized and turned while its rows come. It takes rows of the file from the top
 * down, only the rows that the result needs. The result has the bytes that Pillow gets when it
 * turns the picture first. It keeps the last few rows.
 */
#ifndef PTED_SERVER_MEDIA_RESIZE_H
#define PTED_SERVER_MEDIA_RESIZE_H

#include "hal/resize.h"
#include "server/media/image.h"
#include "server/media/pixels.h"
#include "server/media/resize_axis.h"

struct resize_task {
    unsigned orientation; /* of EXIF, 1 to 8: how the file has to be turned */
    /* Along the width and the height of the turned picture. is_reversed is not read. */
    struct axis_task x, y;
    enum image_colors colors;
    const struct hal_resize *rows;
};

struct resize;

/* Returns the bytes that resize_new() takes. The pixels of the file may be of any kind. */
size_t resize_bytes(const struct resize_task *task);

/* |out|, borrowed, is the pixel of the result that output 0 of both axes becomes; |out_stride| is
 * in bytes. ST_EXHAUSTED. */
MUST_CHECK enum status resize_new(const struct resize_task *task, uint8_t *out, size_t out_stride,
                                  struct resize **resize, struct error *err);
void resize_free(struct resize *resize); /* NULL is fine */

/* The part of the file that is needed: columns |x| ... |x_end| - 1 of rows |y| ... |y_end| - 1. */
struct resize_part {
    uint32_t x, x_end, y, y_end;
};
struct resize_part resize_part(const struct resize *resize);

/* Puts the next row of the part. |row| is its pixel in column |x|, with HAL_RESIZE_PAD bytes more
 * than the part has. */
void resize_put(struct resize *resize, const struct pixel_format *format, const uint8_t *row);

#endif
