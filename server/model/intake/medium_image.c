/* SPDX-License-Identifier: MIT */
/* Pictures: their pixels as rows. Each is read by itself, as its size is known before. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/model/intake/medium_priv.h"

/* The pixels have red first; where the program takes blue first, it has a step that turns them. */
static enum status take_image(struct medium *medium, const struct medium_origin *origin,
                              struct error *err)
{
    const struct card_image *said = &origin->said->image;
    medium->item_rank = 3;
    medium->image.form = (struct image_form){
        .resize_height = said->resize[0],
        .resize_width = said->resize[1],
        .fit = said->fit,
        .filter = said->filter,
        .crop_height = said->crop[0],
        .crop_width = said->crop[1],
        .crop_rounds_down = said->crop_rounds_down,
        .fill = {said->fill[0], said->fill[1], said->fill[2]},
        .colors = said->colors == CARD_GRAY ? IMAGE_GRAY : IMAGE_RGB,
        .height = said->has_any_height ? 0 : said->height,
        .width = said->has_any_width ? 0 : said->width,
        .draft = said->is_draft,
    };
    medium->image.sides_max[0] = said->height;
    medium->image.sides_max[1] = said->width;
    must(image_form_channels(&medium->image.form) == said->channels);
    return image_load(err);
}

static void bound_image(struct medium *relay)
{
    struct medium_image *image = &relay->image;
    const struct rt_io *io = relay->io;
    for (int side = 0; side < 2; side++) {
        image->sides_max[side] =
            (uint32_t)medium_least(image->sides_max[side], (uint64_t)io->shape.dims[1 + side]);
    }
    image->form.height = rt_io_is_dynamic(io, 1) ? image->form.height : image->sides_max[0];
    image->form.width = rt_io_is_dynamic(io, 2) ? image->form.width : image->sides_max[1];
}

static const char *compare_images(const struct medium *medium_a, const struct medium *medium_b)
{
    const struct image_form *a = &medium_a->image.form, *b = &medium_b->image.form;
    bool is_resized = a->resize_height || a->resize_width;
    return a->resize_height != b->resize_height || a->resize_width != b->resize_width ? "resize"
           : is_resized && a->fit != b->fit                                           ? "fit"
           : is_resized && a->filter != b->filter                               ? "interpolation"
           : a->crop_height != b->crop_height || a->crop_width != b->crop_width ? "crop"
           : a->crop_height && a->crop_rounds_down != b->crop_rounds_down       ? "crop_rounding"
           : memcmp(a->fill, b->fill, sizeof(a->fill)) != 0                     ? "fill"
           : a->colors != b->colors                                             ? "colors"
           : a->draft != b->draft                                               ? "draft"
                                                                                : NULL;
}

static void print_image(const struct medium *medium, struct buf *out)
{
    const struct image_form *form = &medium->image.form;
    bool is_shorter = form->fit == IMAGE_SHORTER;
    buf_add_char(out, '{');
    if (form->resize_height && is_shorter) {
        buf_printf(out, "\"resize\":%" PRIu32, form->resize_height);
    } else if (form->resize_height) {
        buf_printf(out, "\"resize\":[%" PRIu32 ",%" PRIu32 "]", form->resize_height,
                   form->resize_width);
    }
    if (form->resize_height) {
        buf_printf(out, ",\"fit\":\"%s\"", card_fit_word(form->fit));
    }
    if (form->crop_height) {
        buf_printf(out, "%s\"crop\":[%" PRIu32 ",%" PRIu32 "]", form->resize_height ? "," : "",
                   form->crop_height, form->crop_width);
    }
    buf_add_char(out, '}');
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is_image_fixed(const struct medium *medium)
{
    return medium->image.form.height && medium->image.form.width;
}

static void shape_image(const struct medium *medium, uint64_t length, struct shape *out)
{
    (void)length;
    out->dims[1] = medium->image.sides_max[0];
    out->dims[2] = medium->image.sides_max[1];
}

static enum status check_sides(const struct medium *medium, const uint32_t sides[2],
                               struct error *err)
{
    const uint32_t *most = medium->image.sides_max;
    return sides[0] <= most[0] && sides[1] <= most[1]
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected a picture that becomes at most %u x %u (height x width), got "
                           "one that becomes %u x %u",
                           most[0], most[1], sides[0], sides[1]);
}

static enum status measure_image(const struct medium *medium, struct span file,
                                 struct medium_reader *reader, uint32_t out_sides[2],
                                 struct error *err)
{
    struct image *image;
    TRY(image_open(file, &reader->limits->image, &image, err));
    enum status status = image_size(image, &medium->image.form, &out_sides[0], &out_sides[1], err);
    image_close(image);
    TRY(status);
    TRY(medium_weigh(reader, file, 0, err));
    return check_sides(medium, out_sides, err);
}

static enum status read_pixels(const struct medium *medium, struct image *image,
                               struct medium_reader *reader, void *dst, size_t bytes,
                               struct error *err)
{
    uint32_t height, width;
    TRY(image_size(image, &medium->image.form, &height, &width, err));
    TRY(reader->place ? image_find_place(image, &medium->image.form, reader->place, err) : ST_OK);
    size_t work = image_work_bytes(image, &medium->image.form);
    TRY(medium_take(reader, work, err));
    enum status status = image_read(image, &medium->image.form, dst, bytes, err);
    medium_give(reader, work);
    return status;
}

static enum status read_image(const struct medium *medium, struct span file,
                              struct medium_reader *reader, void *dst, size_t bytes,
                              struct error *err)
{
    struct image *image;
    TRY(image_open(file, &reader->limits->image, &image, err));
    enum status status = medium_weigh(reader, file, image_decoded_bytes(image), err);
    if (status == ST_OK) {
        status = read_pixels(medium, image, reader, dst, bytes, err);
    }
    image_close(image);
    return status;
}

const struct medium_ops medium_image_ops = {
    .word = "image",
    .take = take_image,
    .bound = bound_image,
    .compare = compare_images,
    .print = print_image,
    .is_fixed = is_image_fixed,
    .shape = shape_image,
    .read = read_image,
    .measure = measure_image,
};
