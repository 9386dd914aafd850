/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/image.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/media/exif.h"
#include "server/media/image_priv.h"
#include "server/media/libjpeg.h"
#include "server/media/libpng.h"
#include "server/media/libwebp.h"

#define IMAGE_MAGIC 0x696d6721u

#define PIXEL_BYTES 4 /* as decoders make them */

enum status image_load(struct error *err)
{
    const struct libjpeg *libjpeg;
    const struct libpng *libpng;
    const struct libwebp *libwebp;
    TRY(libjpeg_load(&libjpeg, err));
    TRY(libpng_load(&libpng, err));
    return libwebp_load(&libwebp, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static const struct image_decoder *decoder_of(enum media_format format)
{
    return format == MEDIA_JPEG   ? &image_jpeg
           : format == MEDIA_PNG  ? &image_png
           : format == MEDIA_WEBP ? &image_webp
                                  : NULL;
}

static enum status check_limits(const struct image *image, struct error *err)
{
    const struct image_head *head = &image->head;
    const char *name = media_format_name(image->format);
    uint64_t pixels = (uint64_t)head->height * head->width;
    if (pixels == 0) {
        return error_set(err, ST_INVALID, "a damaged %s file: it has no pixels", name);
    }
    if (head->height > IMAGE_SIDE_MAX || head->width > IMAGE_SIDE_MAX) {
        return error_set(err, ST_TOO_LARGE,
                         "expected a picture of at most %d pixels a side, got %" PRIu32
                         " x %" PRIu32,
                         IMAGE_SIDE_MAX, head->height, head->width);
    }
    if (pixels > image->limits.pixels_max) {
        return error_set(err, ST_TOO_LARGE,
                         "expected a picture of at most %" PRIu64 " pixels, got %" PRIu32
                         " x %" PRIu32 ", see --image-pixels-max",
                         image->limits.pixels_max, head->height, head->width);
    }
    return ST_OK;
}

static enum status open_head(struct image *image, struct error *err)
{
    image->format = media_find_format(image->file);
    image->decoder = decoder_of(image->format);
    const char *name = media_format_name(image->format);
    if (!image->decoder) {
        return media_refuse(image->file, MEDIA_PICTURE, err);
    }
    image->head.orientation = 1;
    enum status status = image->decoder->open(image->file, &image->head, err);
    if (status != ST_OK) {
        return status == ST_INVALID ? error_prefix(err, "a damaged %s file: ", name) : status;
    }
    return check_limits(image, err);
}

enum status image_open(struct span file, const struct image_limits *limits, struct image **out,
                       struct error *err)
{
    struct image *image = calloc(1, sizeof(*image));
    *out = NULL;
    if (!image) {
        return error_no_memory(err, "a picture");
    }
    image->magic = IMAGE_MAGIC;
    image->file = file;
    image->limits = *limits;
    enum status status = open_head(image, err);
    if (status != ST_OK) {
        image_close(image);
        return status;
    }
    *out = image;
    return ST_OK;
}

void image_close(struct image *image)
{
    if (!image) {
        return;
    }
    OBJ_CHECK(image, IMAGE_MAGIC);
    image->magic = 0;
    free(image);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The size of the picture as people see it, after its EXIF orientation. */
static void find_shown_size(const struct image *image, uint32_t *out_height, uint32_t *out_width)
{
    OBJ_CHECK(image, IMAGE_MAGIC);
    bool is_turned = exif_is_turned(image->head.orientation);
    *out_height = is_turned ? image->head.width : image->head.height;
    *out_width = is_turned ? image->head.height : image->head.width;
}

uint64_t image_decoded_bytes(const struct image *image)
{
    OBJ_CHECK(image, IMAGE_MAGIC);
    return (uint64_t)image->head.height * image->head.width * PIXEL_BYTES;
}

static enum status find_layout(const struct image *image, const struct image_form *form,
                               struct image_layout *layout, struct error *err)
{
    uint32_t height, width;
    find_shown_size(image, &height, &width);
    return image_form_layout(form, height, width, layout, err);
}

enum status image_size(const struct image *image, const struct image_form *form,
                       uint32_t *out_height, uint32_t *out_width, struct error *err)
{
    OBJ_CHECK(image, IMAGE_MAGIC);
    struct image_layout layout;
    TRY(find_layout(image, form, &layout, err));
    *out_height = layout.y.size;
    *out_width = layout.x.size;
    return ST_OK;
}

/* How far the result's first pixel is from the first pixel of the resized picture, and how wide the
 * result is. */
static void find_side(const struct image_side *side, uint32_t shown, double *out_first,
                      double *out_step)
{
    *out_step = (double)shown / (double)side->length;
    *out_first = ((double)side->first - (double)side->place) * *out_step;
}

enum status image_find_place(const struct image *image, const struct image_form *form,
                             struct image_place *out, struct error *err)
{
    struct image_layout layout;
    OBJ_CHECK(image, IMAGE_MAGIC);
    TRY(find_layout(image, form, &layout, err));
    find_shown_size(image, &out->height, &out->width);
    out->orientation = image->head.orientation;
    find_side(&layout.y, out->height, &out->first[0], &out->step[0]);
    find_side(&layout.x, out->width, &out->first[1], &out->step[1]);
    return ST_OK;
}

/* The largest scale that leaves the decoded picture twice as large as the resized one. */
static unsigned find_scale(const struct image *image, const struct image_form *form,
                           const struct image_layout *layout)
{
    uint32_t height, width;
    unsigned scale = 8;
    if (!form->draft || image->format != MEDIA_JPEG) {
        return 1;
    }
    find_shown_size(image, &height, &width);
    uint64_t y = height / (2 * layout->y.length), x = width / (2 * layout->x.length);
    while (scale > 1 && (scale > y || scale > x)) {
        scale /= 2;
    }
    return scale;
}

static struct axis_task axis_task(uint32_t length, unsigned scale, const struct image_side *side,
                                  enum image_filter filter)
{
    return (struct axis_task){
        .in_count = (length + scale - 1) / scale,
        .in_length = (double)length / scale,
        .out_count = side->length,
        .first = side->first,
        .count = side->count,
        .filter = filter,
    };
}

static struct resize_task resize_task(const struct image *image, const struct image_form *form,
                                      const struct image_layout *layout)
{
    uint32_t height, width;
    unsigned scale = find_scale(image, form, layout);
    find_shown_size(image, &height, &width);
    return (struct resize_task){
        .orientation = image->head.orientation,
        .x = axis_task(width, scale, &layout->x, form->filter),
        .y = axis_task(height, scale, &layout->y, form->filter),
        .colors = form->colors,
        .rows = hal_resize(),
    };
}

size_t image_work_bytes(const struct image *image, const struct image_form *form)
{
    OBJ_CHECK(image, IMAGE_MAGIC);
    struct image_layout layout;
    size_t bytes;
    if (find_layout(image, form, &layout, NULL) != ST_OK) {
        return SIZE_MAX;
    }
    struct resize_task task = resize_task(image, form, &layout);
    return add_size(resize_bytes(&task), image->decoder->work_bytes(&image->head), &bytes)
               ? bytes
               : SIZE_MAX;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void fill(const struct image_form *form, uint8_t *out, size_t len)
{
    uint32_t channels = image_form_channels(form);
    if (channels == 1) {
        memset(out, form->fill[0], len);
        return;
    }
    for (size_t i = 0; i < len; i += 3) {
        memcpy(out + i, form->fill, 3);
    }
}

static enum status decode(struct image *image, const struct image_form *form,
                          const struct image_layout *layout, uint8_t *out, struct error *err)
{
    struct resize_task task = resize_task(image, form, layout);
    struct resize *resize;
    size_t channels = image_form_channels(form), stride = layout->x.size * channels;
    image->scale = find_scale(image, form, layout);
    TRY(resize_new(&task, out + layout->y.place * stride + layout->x.place * channels, stride,
                   &resize, err));
    enum status status = image->decoder->read(image, resize, err);
    resize_free(resize);
    return status == ST_INVALID
               ? error_prefix(err, "a damaged %s file: ", media_format_name(image->format))
               : status;
}

enum status image_read(struct image *image, const struct image_form *form, uint8_t *out,
                       size_t out_len, struct error *err)
{
    struct image_layout layout;
    OBJ_CHECK(image, IMAGE_MAGIC);
    TRY(find_layout(image, form, &layout, err));
    const struct image_side *y = &layout.y, *x = &layout.x;
    size_t len = (size_t)y->size * x->size * image_form_channels(form);
    if (out_len != len) {
        return error_set(err, ST_INTERNAL, "image: the result has %zu bytes, expected %zu", len,
                         out_len);
    }
    if (y->count < y->size || x->count < x->size) {
        fill(form, out, len);
    }
    return y->count && x->count ? decode(image, form, &layout, out, err) : ST_OK;
}
