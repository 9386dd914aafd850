/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/format.h"

#include <string.h>

#include "server/media/tags.h"

static const struct {
    const char *name, *first, *second;
    size_t offset;
    enum media_kind kind;
} formats[MEDIA_FORMATS + 1] = {
#define FORMAT(id, name, kind, first, offset, second)                                              \
    [MEDIA_##id] = {name, first, second, offset, MEDIA_##kind},
#include "server/media/format.def"
#undef FORMAT
    [MEDIA_FORMATS] = {"an unknown format", "", "", 0, MEDIA_OTHER},
};

static bool has_at(struct span file, size_t offset, const char *text)
{
    size_t len = strlen(text);
    return file.len >= offset + len && memcmp(file.ptr + offset, text, len) == 0;
}

enum media_format media_find_format(struct span file)
{
    unsigned at = 0;
    file = tags_strip(file);
    while (at < MEDIA_FORMATS && !(has_at(file, 0, formats[at].first) &&
                                   has_at(file, formats[at].offset, formats[at].second))) {
        at++;
    }
    return (enum media_format)at;
}

enum media_kind media_kind_of(enum media_format format)
{
    return formats[format].kind;
}

const char *media_format_name(enum media_format format)
{
    return formats[format].name;
}

const char *media_formats_read(enum media_kind kind)
{
    return kind == MEDIA_SOUND     ? "WAV, FLAC, MP3 or Ogg"
           : kind == MEDIA_PICTURE ? "JPEG, PNG or WebP"
                                   : "JPEG, PNG, WebP, WAV, FLAC, MP3 or Ogg";
}

enum status media_refuse(struct span file, enum media_kind wanted, struct error *err)
{
    const char *expected = media_formats_read(wanted);
    if (file.len == 0) {
        return error_set(err, ST_INVALID, "the file is empty, expected %s", expected);
    }
    return error_set(err, ST_INVALID, "expected %s, got %s of %zu bytes", expected,
                     media_format_name(media_find_format(file)), file.len);
}
