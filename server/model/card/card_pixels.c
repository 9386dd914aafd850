/* SPDX-License-Identifier: MIT */
/* A card's members about pixels, which are compiled with the program (runtime/program/adapt.h). */
#include "config.h"

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"

/* |values| of |count| numbers as one for each channel. */
static enum status spread(const struct card_io *io, const char *what, const double *values,
                          uint32_t count, uint32_t channels, double none,
                          double out[RT_PIXEL_CHANNELS_MAX], struct error *err)
{
    if (count > 1 && count != channels) {
        return card_fail(&io->media.place, err, ST_INVALID,
                         "%s: expected %u numbers, one for each channel, got %u", what, channels,
                         count);
    }
    for (uint32_t i = 0; i < RT_PIXEL_CHANNELS_MAX; i++) {
        out[i] = count == 0 ? none : values[count == 1 || i >= count ? 0 : i];
    }
    return ST_OK;
}

/* The sizes that "crop" or "resize" gives, where the program's vary. Without them they still do. */
static void take_sides(const struct card_image *image, struct rt_pixels *pixels)
{
    bool is_pair = image->resize[0] && image->fit != IMAGE_SHORTER;
    if (image->crop[0] || is_pair) {
        pixels->height = image->crop[0] ? image->crop[0] : image->resize[0];
        pixels->width = image->crop[0] ? image->crop[1] : image->resize[1];
        pixels->has_any_height = pixels->has_any_width = false;
    }
}

/* The program's dims, if the card says which they are. */
static void take_layout(const struct card_image *image, const struct rt_method *method,
                        uint32_t index, struct rt_pixels *pixels)
{
    const int64_t *dims = rt_method_input(method, index)->shape.dims;
    if (image->layout != CARD_LAYOUT_UNSAID) {
        pixels->is_nhwc = image->layout == CARD_NHWC;
        pixels->channels = (uint32_t)dims[pixels->is_nhwc ? 3 : 1];
        pixels->height = (uint32_t)dims[pixels->is_nhwc ? 1 : 2];
        pixels->width = (uint32_t)dims[pixels->is_nhwc ? 2 : 3];
        pixels->has_any_height = rt_adapt_varies(method, index, pixels->is_nhwc ? 1 : 2);
        pixels->has_any_width = rt_adapt_varies(method, index, pixels->is_nhwc ? 2 : 3);
    }
}

static enum status blame(const struct card_io *io, struct error *err)
{
    return err->code == ST_EXHAUSTED ? err->code : card_blame(&io->media.place, err);
}

enum status card_adapt_pixels(struct rt_method *method, const struct card_io *io, uint32_t index,
                              struct error *err)
{
    const struct card_image *image = &io->media.image;
    struct rt_pixels pixels;
    if (rt_adapt_find_pixels(method, index, &pixels, err) != ST_OK) {
        return blame(io, err);
    }
    take_layout(image, method, index, &pixels);
    take_sides(image, &pixels);
    pixels.is_reversed = image->colors == CARD_BGR;
    pixels.scale = image->has_scale ? image->scale : pixels.scale;
    TRY(spread(io, "mean", image->mean, image->mean_count, pixels.channels, 0, pixels.mean, err));
    TRY(spread(io, "std", image->std, image->std_count, pixels.channels, 1, pixels.std, err));
    return rt_adapt_pixels(method, index, &pixels, err) == ST_OK ? ST_OK : blame(io, err);
}
