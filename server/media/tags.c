/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/tags.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ID3_HEAD 10       /* "ID3", two of version, flags, four of length */
#define ID3_HAS_FOOTER 16 /* of the flags: as long as the head, and not counted */
#define ID3V1_BYTES 128
#define APE_FOOTER                                                                                 \
    32 /* "APETAGEX", version, length without the head, count, flags, eight unused                 \
        */
#define APE_HAS_HEAD 0x80000000u

static struct span behind(struct span file, size_t len)
{
    return len < file.len ? span_of(file.ptr + len, file.len - len) : span_str("");
}

/* There may be several. Their lengths have seven bits in each byte. */
static struct span strip_begin(struct span file)
{
    while (file.len >= ID3_HEAD && span_begins(file, "ID3")) {
        const uint8_t *at = file.ptr;
        size_t len = ID3_HEAD + ((size_t)(at[6] & 127) << 21 | (size_t)(at[7] & 127) << 14 |
                                 (size_t)(at[8] & 127) << 7 | (size_t)(at[9] & 127));
        file = behind(file, len + (at[5] & ID3_HAS_FOOTER ? ID3_HEAD : 0));
    }
    return file;
}

/* Bytes of a tag at the end, or 0. */
static size_t tag_at_end(struct span file)
{
    const uint8_t *end = file.ptr + file.len;
    if (file.len >= ID3V1_BYTES && memcmp(end - ID3V1_BYTES, "TAG", 3) == 0) {
        return ID3V1_BYTES;
    }
    if (file.len < APE_FOOTER || memcmp(end - APE_FOOTER, "APETAGEX", 8) != 0) {
        return 0;
    }
    uint32_t flags = load_le32(end - APE_FOOTER + 20);
    size_t len = (size_t)load_le32(end - APE_FOOTER + 12) + (flags & APE_HAS_HEAD ? APE_FOOTER : 0);
    return len >= APE_FOOTER && len <= file.len ? len : 0;
}

/* Is it a frame of MP3? The bits are all of its mark, and two for the layer. */
static bool is_mp3(struct span file)
{
    return file.len >= 2 && file.ptr[0] == 0xff && (file.ptr[1] & 0xe6) == 0xe2;
}

struct span tags_strip(struct span file)
{
    struct span rest = strip_begin(file);
    if (span_begins(rest, "RIFF") || span_begins(rest, "RF64")) {
        return rest;
    }
    if (!span_begins(rest, "fLaC") && !span_begins(rest, "OggS") && !is_mp3(rest)) {
        return file;
    }
    for (size_t len = tag_at_end(rest); len > 0; len = tag_at_end(rest)) {
        rest.len -= len;
    }
    return rest;
}
