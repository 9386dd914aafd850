/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/exif.h"

#define TAG_ORIENTATION 0x112
#define TYPE_SHORT 3
#define ENTRY_BYTES 12

struct tiff {
    struct span bytes;
    bool is_big_endian;
};

static uint32_t read_16(const struct tiff *tiff, size_t at)
{
    const uint8_t *p = tiff->bytes.ptr + at;
    return tiff->is_big_endian ? load_be16(p) : load_le16(p);
}

static uint32_t read_32(const struct tiff *tiff, size_t at)
{
    const uint8_t *p = tiff->bytes.ptr + at;
    return tiff->is_big_endian ? load_be32(p) : load_le32(p);
}

/* The entries of the first directory, at |at|. */
static unsigned search(const struct tiff *tiff, size_t at)
{
    if (!in_range(at, 2, tiff->bytes.len)) {
        return 1;
    }
    uint32_t count = read_16(tiff, at);
    at += 2;
    for (uint32_t i = 0; i < count && in_range(at, ENTRY_BYTES, tiff->bytes.len); i++) {
        if (read_16(tiff, at) == TAG_ORIENTATION && read_16(tiff, at + 2) == TYPE_SHORT) {
            uint32_t value = read_16(tiff, at + 8);
            return value >= 1 && value <= 8 ? value : 1;
        }
        at += ENTRY_BYTES;
    }
    return 1;
}

unsigned exif_find_orientation(struct span exif)
{
    struct tiff tiff = {.bytes = exif};
    if (exif.len >= 6 && memcmp(exif.ptr, "Exif\0\0", 6) == 0) {
        tiff.bytes = span_of(exif.ptr + 6, exif.len - 6);
    }
    if (tiff.bytes.len < 8) {
        return 1;
    }
    tiff.is_big_endian = memcmp(tiff.bytes.ptr, "MM\0*", 4) == 0;
    if (!tiff.is_big_endian && memcmp(tiff.bytes.ptr, "II*\0", 4) != 0) {
        return 1;
    }
    return search(&tiff, read_32(&tiff, 4));
}
