/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/place.h"

#include "server/media/exif.h"

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

/* |from| to |to| seen from the other end of |length|. */
static void reverse(double length, double *from, double *to)
{
    double low = length - *to;
    *to = length - *from;
    *from = low;
}

static void turn_back(const struct image_place *place, struct image_edges *edges)
{
    uint32_t height, width;
    image_place_size(place, true, &height, &width);
    if (exif_is_turned(place->orientation)) {
        *edges = (struct image_edges){edges->top, edges->left, edges->bottom, edges->right};
    }
    if (exif_has_columns_reversed(place->orientation)) {
        reverse(width, &edges->left, &edges->right);
    }
    if (exif_has_rows_reversed(place->orientation)) {
        reverse(height, &edges->top, &edges->bottom);
    }
}

void image_place_undo(const struct image_place *place, bool is_stored, struct image_edges *edges)
{
    edges->top = undo(place, 0, edges->top, place->height);
    edges->bottom = undo(place, 0, edges->bottom, place->height);
    edges->left = undo(place, 1, edges->left, place->width);
    edges->right = undo(place, 1, edges->right, place->width);
    if (is_stored) {
        turn_back(place, edges);
    }
}
