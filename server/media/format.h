/* SPDX-License-Identifier: MIT */
/*
 * The format of a file of sound or of another medium, found by its first bytes (format.def). A
 * client's name or Content-Type for the file does not count. Any thread.
 */
#ifndef PTED_SERVER_MEDIA_FORMAT_H
#define PTED_SERVER_MEDIA_FORMAT_H

#include "base/bytes.h"
#include "base/status.h"

enum media_kind { MEDIA_OTHER, MEDIA_SOUND, MEDIA_PICTURE };

enum media_format {
#define FORMAT(id, ...) MEDIA_##id,
#include "server/media/format.def"
#undef FORMAT
    MEDIA_FORMATS
};

/* MEDIA_FORMATS: none that is known. */
enum media_format media_find_format(struct span file);

enum media_kind media_kind_of(enum media_format format);

/* Returns "FLAC"; of MEDIA_FORMATS "an unknown format". */
const char *media_format_name(enum media_format format);

/* Returns the formats of that kind that are read, for messages; for MEDIA_OTHER the formats of all
 * kinds. */
const char *media_formats_read(enum media_kind kind);

/* For a file that is of no format of kind |wanted|. */
MUST_CHECK enum status media_refuse(struct span file, enum media_kind wanted, struct error *err);

#endif
