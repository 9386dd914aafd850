/* SPDX-License-Identifier: MIT */
/*
 * Which format a file of sound or of another medium has, told by its first bytes (format.def). What
 * a client says of its file, such as a name or a Content-Type, is not looked at. Any thread.
 */
#ifndef PTED_SERVER_MEDIA_FORMAT_H
#define PTED_SERVER_MEDIA_FORMAT_H

#include "base/bytes.h"

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

/* "FLAC"; of MEDIA_FORMATS "an unknown format". */
const char *media_format_name(enum media_format format);

#endif
