/* SPDX-License-Identifier: MIT */
/*
 * Where the model's picture lies in the picture that was sent. A resizing, a crop, a letterbox and
 * an EXIF orientation have changed it; for boxes and maps that is undone.
 *
 *     result     the model's picture, in pixels
 *     shown      the picture in the file, as people see it, after its EXIF orientation
 *     stored     the same one as the file has its pixels
 *
 * Coordinates have 0 at the left or upper edge; a pixel is 1 wide. Constant; any thread.
 */
#ifndef PTED_SERVER_MEDIA_PLACE_H
#define PTED_SERVER_MEDIA_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct image_place {
    uint32_t height, width; /* shown */
    unsigned orientation;   /* of EXIF, 1 to 8 */
    double first[2];        /* y, x: where the result's upper left corner lies, shown */
    double step[2];         /* y, x: shown pixels for each one of the result, above 0 */
};

/* Finds the size of the picture shown, or stored. */
void image_place_size(const struct image_place *place, bool is_stored, uint32_t *out_height,
                      uint32_t *out_width);

/* Makes a point of the result one in the picture shown, or stored. It may lie beyond the borders if
 * |clips| is false. */
void image_place_undo_point(const struct image_place *place, bool is_stored, bool clips, double *x,
                            double *y);

/* Makes a point in the picture shown, or stored, one of the result. */
void image_place_find_point(const struct image_place *place, bool is_stored, double *x, double *y);

/* A byte for each pixel of a result, or of a coarser map of it. */
struct image_map {
    const uint8_t *pixels; /* [height, width] */
    uint32_t height, width;
    uint32_t full[2]; /* height and width of the result that it is of */
};

/*
 * Writes the picture shown, or stored, at |out|: each of its pixels gets the pixel of |map| that
 * its centre lies in, or |none| outside of the map. ST_EXHAUSTED.
 */
MUST_CHECK enum status image_place_spread(const struct image_place *place, bool is_stored,
                                          const struct image_map *map, uint8_t none, uint8_t *out,
                                          struct error *err);

#endif
