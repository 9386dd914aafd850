/* SPDX-License-Identifier: MIT */
/* Pictures in cards: the member "image" of an input, and the pixels that the program takes. */
#include "config.h"

#include "base/table.h"
#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"

/* ---- the card -------------------------------------------------------------------------------- */

static enum status read_side(const struct card_source *s, const struct cJSON *value, uint32_t *out,
                             struct error *err)
{
    uint64_t number;
    TRY(document_u64_from(s->in, value, 1, IMAGE_SIDE_MAX, &number, err));
    *out = (uint32_t)number;
    return ST_OK;
}

/* A number for both sides, or [height, width]. */
static enum status read_sides(const struct card_source *s, const struct cJSON *value,
                              uint32_t out[2], bool *out_is_pair, struct error *err)
{
    uint32_t count = 0;
    *out_is_pair = document_type(value) == JSON_ARRAY;
    if (!*out_is_pair) {
        TRY(read_side(s, value, &out[0], err));
        out[1] = out[0];
        return ST_OK;
    }
    for (const struct cJSON *at = document_first(value); at; at = document_next(at), count++) {
        if (count < 2) {
            TRY(read_side(s, at, &out[count], err));
        }
    }
    return count == 2 ? ST_OK
                      : document_fail(s->in, value, err, ST_INVALID,
                                      "expected a number, or [height, width]");
}

static enum status read_fill(const struct card_source *s, const struct cJSON *value, uint8_t out[3],
                             struct error *err)
{
    bool is_list = document_type(value) == JSON_ARRAY;
    const struct cJSON *at = is_list ? document_first(value) : value;
    uint32_t count = 0;
    for (; at && count < 3; at = is_list ? document_next(at) : NULL, count++) {
        uint64_t number;
        TRY(document_u64(s->in, at, UINT8_MAX, &number, err));
        out[count] = (uint8_t)number;
    }
    if (is_list && (count != 3 || at)) {
        return document_fail(s->in, value, err, ST_INVALID, "expected 0 to 255, or three of them");
    }
    if (!is_list) {
        out[1] = out[2] = out[0];
    }
    return ST_OK;
}

/* A number for all channels, or one for each. */
static enum status read_channels(const struct card_source *s, const struct cJSON *value,
                                 double out[RT_PIXEL_CHANNELS_MAX], uint32_t *out_count,
                                 struct error *err)
{
    bool is_list = document_type(value) == JSON_ARRAY;
    const struct cJSON *at = is_list ? document_first(value) : value;
    *out_count = 0;
    for (; at && *out_count < RT_PIXEL_CHANNELS_MAX; at = is_list ? document_next(at) : NULL) {
        TRY(document_f64(s->in, at, &out[(*out_count)++], err));
    }
    return *out_count > 0 && !at
               ? ST_OK
               : document_fail(s->in, value, err, ST_INVALID,
                               "expected a number, or 1 to %d of them", RT_PIXEL_CHANNELS_MAX);
}

static enum status read_std(const struct card_source *s, const struct cJSON *value,
                            struct card_image *image, struct error *err)
{
    TRY(read_channels(s, value, image->std, &image->std_count, err));
    for (uint32_t i = 0; i < image->std_count; i++) {
        if (image->std[i] == 0) {
            return document_fail(s->in, value, err, ST_INVALID, "expected another number than 0");
        }
    }
    return ST_OK;
}

static const char *const fit_words[] = {[IMAGE_SHORTER] = "shorter",
                                        [IMAGE_STRETCH] = "stretch",
                                        [IMAGE_INSIDE] = "inside",
                                        [IMAGE_LETTERBOX] = "letterbox"};
TABLE_ENDS_WITH(fit_words, IMAGE_LETTERBOX);

const char *card_fit_word(enum image_fit fit)
{
    return fit_words[fit];
}

static enum status read_choice(const struct card_source *s, const struct cJSON *member,
                               struct card_image *image, bool *out_is_read, struct error *err)
{
    static const char *const filters[] = {"nearest", "box",     "bilinear",
                                          "bicubic", "lanczos", "linear"};
    static const char *const colors[] = {NULL, "rgb", "bgr", "gray"};
    static const char *const layouts[] = {NULL, "nchw", "nhwc"};
    static const char *const roundings[] = {"even", "down"};
    unsigned index = 0;
    *out_is_read = true;
    if (document_is(member, "fit")) {
        TRY(card_read_word(s, member, fit_words, 4, "shorter, stretch, inside or letterbox", &index,
                           err));
        image->fit = (enum image_fit)index;
    } else if (document_is(member, "interpolation")) {
        TRY(card_read_word(s, member, filters, 6,
                           "nearest, box, bilinear, bicubic, lanczos or linear", &index, err));
        image->filter = (enum image_filter)index;
    } else if (document_is(member, "colors")) {
        TRY(card_read_word(s, member, colors, 4, "rgb, bgr or gray", &index, err));
        image->colors = (enum card_colors)index;
    } else if (document_is(member, "layout")) {
        TRY(card_read_word(s, member, layouts, 3, "nchw or nhwc", &index, err));
        image->layout = (enum card_layout)index;
    } else if (document_is(member, "crop_rounding")) {
        TRY(card_read_word(s, member, roundings, 2, "even or down", &index, err));
        image->crop_rounds_down = index == 1;
    } else {
        *out_is_read = false;
    }
    return ST_OK;
}

static enum status read_image_member(const struct card_source *s, const struct cJSON *member,
                                     struct card_image *image, struct error *err)
{
    bool is_read;
    TRY(read_choice(s, member, image, &is_read, err));
    if (is_read) {
        return ST_OK;
    }
    if (document_is(member, "resize")) {
        return read_sides(s, member, image->resize, &image->is_resized_to_pair, err);
    }
    if (document_is(member, "crop")) {
        return read_sides(s, member, image->crop, &is_read, err);
    }
    if (document_is(member, "fill")) {
        return read_fill(s, member, image->fill, err);
    }
    if (document_is(member, "scale")) {
        image->has_scale = true;
        return document_f64(s->in, member, &image->scale, err);
    }
    if (document_is(member, "mean")) {
        return read_channels(s, member, image->mean, &image->mean_count, err);
    }
    if (document_is(member, "std")) {
        return read_std(s, member, image, err);
    }
    if (document_is(member, "draft")) {
        return document_bool(s->in, member, &image->is_draft, err);
    }
    return document_refuse_member(s->in, member,
                                  "resize, fit, interpolation, crop, crop_rounding, fill, colors, "
                                  "scale, mean, std, layout or draft",
                                  err);
}

static enum status read_image(const struct card_source *s, const struct cJSON *value,
                              struct card_media *out, struct error *err)
{
    struct card_image *image = &out->image;
    bool has_fit = document_find(value, "fit") != NULL;
    *image = (struct card_image){.filter = IMAGE_BILINEAR};
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_image_member(s, at, image, err));
    }
    if (!has_fit && image->is_resized_to_pair) {
        image->fit = IMAGE_STRETCH;
    }
    if (has_fit && !image->resize[0]) {
        return document_fail(s->in, document_find(value, "fit"), err, ST_INVALID,
                             "it says how to resize, but \"resize\" is missing");
    }
    if (image->fit == IMAGE_SHORTER && image->is_resized_to_pair) {
        return document_fail(s->in, document_find(value, "fit"), err, ST_INVALID,
                             "shorter is for \"resize\" with one number");
    }
    return ST_OK;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* The shorter side must be one that the program takes: each picture has two sides as long or
 * longer. */
static enum status check_varying(const struct rt_io *is, const struct card_io *io,
                                 struct error *err)
{
    const struct card_image *image = &io->media.image;
    const int64_t *dims = is->shape.dims;
    return image->resize[0] <= dims[1] && image->resize[0] <= dims[2]
               ? ST_OK
               : card_fail(&io->media.place, err, ST_INVALID,
                           "resize: the shorter side becomes %u, the program takes at most "
                           "[%lld, %lld]",
                           image->resize[0], (long long)dims[1], (long long)dims[2]);
}

/* Without a crop, a shorter side of another length than the program's fits no picture. */
static enum status check_shorter(const struct rt_io *is, const struct card_io *io,
                                 struct error *err)
{
    const struct card_image *image = &io->media.image;
    const int64_t *dims = is->shape.dims;
    bool is_open = image->resize[0] && image->fit == IMAGE_SHORTER && !image->crop[0];
    if (is_open && (image->has_any_height || image->has_any_width)) {
        return check_varying(is, io, err);
    }
    return !is_open || image->resize[0] == (dims[1] < dims[2] ? dims[1] : dims[2])
               ? ST_OK
               : card_fail(&io->media.place, err, ST_INVALID,
                           "resize: the shorter side becomes %u, the program takes [%lld, %lld]; "
                           "expected a crop, too",
                           image->resize[0], (long long)dims[1], (long long)dims[2]);
}

/* The pixels that the method takes now: card_adapt() has put its steps in front of it, or it takes
 * bytes itself. */
static enum status apply_image(const struct rt_method *method, struct card_io *io,
                               struct error *err)
{
    const struct rt_io *is = rt_method_input(method, io->index);
    struct card_image *image = &io->media.image;
    const int64_t *dims = is->shape.dims;
    bool is_pixels = is->kind == RT_IO_TENSOR && is->dtype == DT_U8 && is->shape.rank == 4 &&
                     (dims[3] == 1 || dims[3] == 3);
    if (!is_pixels) {
        return card_refuse_input(io, is, "pixels of 1 or 3 channels", err);
    }
    image->channels = (uint32_t)dims[3];
    if (image->colors == CARD_COLORS_UNSAID) {
        image->colors = image->channels == 1 ? CARD_GRAY : CARD_RGB;
    }
    if ((image->colors == CARD_GRAY) != (image->channels == 1)) {
        return card_fail(&io->media.place, err, ST_INVALID, "colors: the program has %u channel%s",
                         image->channels, image->channels == 1 ? "" : "s");
    }
    image->has_any_height = rt_io_is_dynamic(is, 1);
    image->has_any_width = rt_io_is_dynamic(is, 2);
    TRY(check_shorter(is, io, err));
    bool is_pair = image->resize[0] && image->fit != IMAGE_SHORTER;
    image->height = image->crop[0] ? image->crop[0] : is_pair ? image->resize[0] : 0;
    image->width = image->crop[0] ? image->crop[1] : is_pair ? image->resize[1] : 0;
    image->height = image->height ? image->height : (uint32_t)dims[1];
    image->width = image->width ? image->width : (uint32_t)dims[2];
    return image->height == dims[1] && image->width == dims[2]
               ? ST_OK
               : card_fail(&io->media.place, err, ST_INVALID,
                           "the pictures are [%u, %u], the program takes [%lld, %lld]",
                           image->height, image->width, (long long)dims[1], (long long)dims[2]);
}

static bool find_doubt(const struct card_io *io, struct error *out)
{
    const struct card_image *image = &io->media.image;
    bool is_shorter = image->resize[0] && image->fit == IMAGE_SHORTER;
    bool has_any = image->has_any_height && image->has_any_width;
    if (!image->crop[0] && (!image->resize[0] || is_shorter) && !has_any) {
        card_fail(&io->media.place, out, ST_INVALID,
                  "only pictures %s %u x %u are taken; with a resize to [%u, %u], or with a "
                  "crop, all are",
                  image->resize[0] ? "with the proportions of" : "of", image->height, image->width,
                  image->height, image->width);
        return true;
    }
    uint32_t side = image->crop[0] < image->crop[1] ? image->crop[0] : image->crop[1];
    if (is_shorter && image->resize[0] < side) {
        card_fail(&io->media.place, out, ST_INVALID,
                  "the crop is larger than the shorter side, which becomes %u: the rest is filled",
                  image->resize[0]);
        return true;
    }
    return false;
}

const struct card_medium card_medium_image = {
    .word = "image",
    .noun = "picture",
    .types = {"image/*"},
    .formats = MEDIA_PICTURE,
    .has_pixels = true,
    .read = read_image,
    .adapt = card_adapt_pixels,
    .apply = apply_image,
    .find_doubt = find_doubt,
};
