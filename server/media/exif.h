/* SPDX-License-Identifier: MIT */
/* The orientation of a picture in EXIF, which is a TIFF file. Source: CIPA DC-008 (Exif 2.32). */
#ifndef PTED_SERVER_MEDIA_EXIF_H
#define PTED_SERVER_MEDIA_EXIF_H

#include "base/bytes.h"

/* How a file has to be turned, as EXIF numbers it: 1 not at all, 2 to 8. |exif| may begin with
 * "Exif\0\0". 1 if it has no orientation, or is damaged: the picture may still be fine. */
unsigned exif_find_orientation(struct span exif);

#endif
