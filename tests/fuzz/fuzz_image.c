/* SPDX-License-Identifier: MIT */
/* Any bytes as a picture in a file. What opens is read in several forms: either it is refused with
 * a text, or the same pixels come twice. The chunks of PNG files are tried with right checksums,
 * too, for damaged ones do not come far otherwise. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/media/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PIXELS_MAX ((uint64_t)1 << 16)
#define WORK_BYTES_MAX ((size_t)32 << 20)

static const struct image_form forms[] = {
    {0},
    {.resize_height = 9,
     .resize_width = 14,
     .fit = IMAGE_STRETCH,
     .filter = IMAGE_BICUBIC,
     .crop_height = 4,
     .crop_width = 5,
     .draft = true},
    {.resize_height = 8, .filter = IMAGE_BILINEAR, .crop_height = 3, .crop_width = 20},
    {.resize_height = 21,
     .resize_width = 6,
     .fit = IMAGE_INSIDE,
     .filter = IMAGE_LANCZOS,
     .colors = IMAGE_GRAY},
};

/* The pixels, or NULL if the picture is refused. */
static uint8_t *read_pixels(struct span file, const struct image_form *form, size_t *len)
{
    const struct image_limits limits = {.pixels_max = PIXELS_MAX};
    struct image *image;
    struct error err = {0};
    uint32_t height, width;
    uint8_t *out = NULL;
    enum status status = image_open(file, &limits, &image, &err);
    must(status == ST_OK || (!image && err.text[0]));
    if (status == ST_OK) {
        status = image_size(image, form, &height, &width, &err);
        must((status == ST_OK) == (image_work_bytes(image, form) != SIZE_MAX));
    }
    if (status == ST_OK && (uint64_t)height * width <= 4 * PIXELS_MAX) {
        must(image_work_bytes(image, form) <= WORK_BYTES_MAX);
        *len = (size_t)height * width * image_form_channels(form);
        out = calloc(1, *len);
        must(out != NULL);
        if (image_read(image, form, out, *len, &err) != ST_OK) {
            must(err.text[0]);
            free(out);
            out = NULL;
        }
    }
    image_close(image);
    return out;
}

static void check(struct span file)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t len = 0, again_len = 0;
        uint8_t *out = read_pixels(file, &forms[i], &len);
        if (out) {
            uint8_t *again = read_pixels(file, &forms[i], &again_len);
            must(again && again_len == len && memcmp(out, again, len) == 0);
            free(again);
        }
        free(out);
    }
}

/* The checksum of W3C's specification of PNG, appendix D. */
static uint32_t crc_of(const uint8_t *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

static void mend_chunks(uint8_t *bytes, size_t size)
{
    size_t at = 8;
    while (in_range(at, 12, size)) {
        uint32_t len = load_be32(bytes + at);
        if (!in_range(at + 12, len, size)) {
            return;
        }
        uint32_t crc = crc_of(bytes + at + 4, 4 + (size_t)len);
        for (int i = 0; i < 4; i++) {
            bytes[at + 8 + len + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        }
        at += 12 + (size_t)len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(span_of(data, size));
    if (media_find_format(span_of(data, size)) == MEDIA_PNG) {
        uint8_t *copy = malloc(size);
        must(copy != NULL);
        memcpy(copy, data, size);
        mend_chunks(copy, size);
        check(span_of(copy, size));
        free(copy);
    }
    return 0;
}
