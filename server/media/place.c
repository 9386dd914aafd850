/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/place.h"

#include <stdlib.h>

#include "server/media/exif.h"

#define NOWHERE UINT32_MAX

void image_place_size(const struct image_place *place, bool is_stored, uint32_t *out_height,
                      uint32_t *out_width)
{
    bool is_turned = is_stored && exif_is_turned(place->orientation);
    *out_height = is_turned ? place->width : place->height;
    *out_width = is_turned ? place->height : place->width;
}

/* A coordinate of the result along axis |axis|, 0 for y, in the picture shown of |length| pixels.
 */
static double undo(const struct image_place *place, int axis, double at, double length)
{
    double shown = place->first[axis] + at * place->step[axis];
    return shown < 0 ? 0 : shown > length ? length : shown;
}

static void turn_back(const struct image_place *place, double *x, double *y)
{
    uint32_t height, width;
    image_place_size(place, true, &height, &width);
    if (exif_is_turned(place->orientation)) {
        double was = *x;
        *x = *y;
        *y = was;
    }
    *x = exif_has_columns_reversed(place->orientation) ? width - *x : *x;
    *y = exif_has_rows_reversed(place->orientation) ? height - *y : *y;
}

void image_place_undo_point(const struct image_place *place, bool is_stored, bool clips, double *x,
                            double *y)
{
    double top = place->first[0] + *y * place->step[0],
           left = place->first[1] + *x * place->step[1];
    if (clips) {
        top = undo(place, 0, *y, place->height);
        left = undo(place, 1, *x, place->width);
    }
    *x = left;
    *y = top;
    if (is_stored) {
        turn_back(place, x, y);
    }
}

void image_place_find_point(const struct image_place *place, bool is_stored, double *x, double *y)
{
    uint32_t height, width;
    double left = *x, top = *y;
    image_place_size(place, is_stored, &height, &width);
    if (is_stored && exif_has_rows_reversed(place->orientation)) {
        top = height - top;
    }
    if (is_stored && exif_has_columns_reversed(place->orientation)) {
        left = width - left;
    }
    bool is_turned = is_stored && exif_is_turned(place->orientation);
    *x = ((is_turned ? top : left) - place->first[1]) / place->step[1];
    *y = ((is_turned ? left : top) - place->first[0]) / place->step[0];
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* For each of |count| pixels shown along |axis|, the one of |size| pixels of the map. */
static void find_along(const struct image_place *place, int axis, uint32_t count, uint32_t size,
                       uint32_t full, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        double at = ((double)i + 0.5 - place->first[axis]) / place->step[axis] * size / full;
        out[i] = at >= 0 && at < size ? (uint32_t)at : NOWHERE;
    }
}

/* |x| and |y|: by pixel shown, the column and the row of the map. */
static void spread(const struct image_place *place, bool is_stored, const struct image_map *map,
                   uint8_t none, const uint32_t *y, const uint32_t *x, uint8_t *out)
{
    uint32_t height, width;
    unsigned orientation = is_stored ? place->orientation : 1;
    bool is_turned = exif_is_turned(orientation);
    bool has_columns_reversed = exif_has_columns_reversed(orientation);
    bool has_rows_reversed = exif_has_rows_reversed(orientation);
    image_place_size(place, is_stored, &height, &width);
    for (uint32_t row = 0; row < height; row++) {
        uint32_t down = has_rows_reversed ? height - 1 - row : row;
        for (uint32_t column = 0; column < width; column++) {
            uint32_t along = has_columns_reversed ? width - 1 - column : column;
            uint32_t at_y = y[is_turned ? along : down], at_x = x[is_turned ? down : along];
            *out++ = at_y == NOWHERE || at_x == NOWHERE
                         ? none
                         : map->pixels[(size_t)at_y * map->width + at_x];
        }
    }
}

enum status image_place_spread(const struct image_place *place, bool is_stored,
                               const struct image_map *map, uint8_t none, uint8_t *out,
                               struct error *err)
{
    uint32_t *y = calloc((size_t)place->height + place->width, sizeof(*y));
    if (!y) {
        return error_no_memory(err, "a picture");
    }
    uint32_t *x = y + place->height;
    find_along(place, 0, place->height, map->height, map->full[0], y);
    find_along(place, 1, place->width, map->width, map->full[1], x);
    spread(place, is_stored, map, none, y, x, out);
    free(y);
    return ST_OK;
}
