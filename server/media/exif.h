/* SPDX-License-Identifier: MIT */
/* The orientation of a picture in EXIF, which is a TIFF file. Source: CIPA DC-008 (Exif 2.32). */
#ifndef PTED_SERVER_MEDIA_EXIF_H
#define PTED_SERVER_MEDIA_EXIF_H

#include <stdbool.h>

#include "base/bytes.h"

/* Returns how a file has to be turned, as EXIF numbers it: 1 not at all, 2 to 8. |exif| may begin
 * with "Exif\0\0". 1 if it has no orientation, or is damaged: the picture may still be fine. */
unsigned exif_find_orientation(struct span exif);

/* Do rows of the file become columns? */
static inline bool exif_is_turned(unsigned orientation)
{
    return orientation >= 5;
}

/* Is the last pixel of a row of the file, or the last row, shown first? */
static inline bool exif_has_columns_reversed(unsigned orientation)
{
    return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

static inline bool exif_has_rows_reversed(unsigned orientation)
{
    return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

#endif
