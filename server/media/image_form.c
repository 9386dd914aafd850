/* SPDX-License-Identifier: MIT */
/* Sizes: of resized pictures as torchvision's Resize, PIL's ImageOps.pad() or Ultralytics'
 * LetterBox, of crops as torchvision's CenterCrop. */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "server/media/image_priv.h"

uint32_t image_form_channels(const struct image_form *form)
{
    return form->colors == IMAGE_GRAY ? 1 : 3;
}

/* Half of |rest|, rounded to an even number if it ends in 0.5, as Python's round() does. */
static uint64_t half(uint64_t rest)
{
    return (uint64_t)rint((double)rest / 2);
}

static void set_shorter(const struct image_form *form, uint32_t height, uint32_t width,
                        struct image_layout *layout)
{
    uint64_t length = form->resize_height;
    layout->x.length = width <= height ? length : length * width / height;
    layout->y.length = width <= height ? length * height / width : length;
}

/* The order of the divisions decides the last bits, and so the rounding. */
static void set_inside(const struct image_form *form, uint32_t height, uint32_t width,
                       struct image_layout *layout)
{
    double ratio = (double)width / height;
    double wanted = (double)form->resize_width / form->resize_height;
    layout->x.length = form->resize_width;
    layout->y.length = form->resize_height;
    if (ratio > wanted) {
        layout->y.length = (uint64_t)rint((double)height / width * form->resize_width);
    } else if (ratio < wanted) {
        layout->x.length = (uint64_t)rint(ratio * form->resize_height);
    }
    layout->x.length += layout->x.length == 0;
    layout->y.length += layout->y.length == 0;
}

/* At least one pixel, and no more than |most|. */
static uint64_t round_side(double length, uint64_t most)
{
    double side = fmax(1, rint(length));
    return side < (double)most ? (uint64_t)side : most;
}

static void set_letterbox(const struct image_form *form, uint32_t height, uint32_t width,
                          struct image_layout *layout)
{
    double ratio = fmin((double)form->resize_height / height, (double)form->resize_width / width);
    layout->x.length = round_side(width * ratio, form->resize_width);
    layout->y.length = round_side(height * ratio, form->resize_height);
}

static void resize_sides(const struct image_form *form, uint32_t height, uint32_t width,
                         struct image_layout *layout)
{
    layout->x.length = width;
    layout->y.length = height;
    if (form->resize_height == 0 && form->resize_width == 0) {
        return;
    }
    switch (form->fit) {
    case IMAGE_SHORTER:
        set_shorter(form, height, width, layout);
        break;
    case IMAGE_STRETCH:
        layout->x.length = form->resize_width;
        layout->y.length = form->resize_height;
        break;
    case IMAGE_INSIDE:
        set_inside(form, height, width, layout);
        break;
    case IMAGE_LETTERBOX:
        set_letterbox(form, height, width, layout);
        break;
    }
}

/* The picture lies in a canvas, from |place| on; |crop|, if not 0, is cut from the middle of the
 * canvas, which is filled up on both sides where it is shorter. */
static void place_side(struct image_side *side, uint64_t canvas, uint64_t place, uint32_t crop,
                       bool rounds_down)
{
    uint64_t from = 0, size = crop ? crop : canvas;
    if (size > canvas) {
        place += (size - canvas) / 2;
    } else {
        from = rounds_down ? (canvas - size) / 2 : half(canvas - size);
    }
    uint64_t low = place > from ? place : from;
    uint64_t high = place + side->length < from + size ? place + side->length : from + size;
    side->size = size <= IMAGE_SIDE_MAX ? (uint32_t)size : IMAGE_SIDE_MAX + 1;
    side->count = high > low ? (uint32_t)(high - low) : 0;
    side->first = low - place;
    side->place = (uint32_t)(low - from);
}

static enum status check_size(const struct image_form *form, const struct image_layout *layout,
                              struct error *err)
{
    uint32_t height = layout->y.size, width = layout->x.size;
    if (height > IMAGE_SIDE_MAX || width > IMAGE_SIDE_MAX) {
        return error_set(err, ST_INVALID, "the resized picture has a side over %d pixels",
                         IMAGE_SIDE_MAX);
    }
    if ((form->height && form->height != height) || (form->width && form->width != width)) {
        return error_set(err, ST_INVALID,
                         "expected a picture that becomes %" PRIu32 " x %" PRIu32
                         " (height x width), got one that becomes %" PRIu32 " x %" PRIu32,
                         form->height ? form->height : height, form->width ? form->width : width,
                         height, width);
    }
    return ST_OK;
}

enum status image_form_layout(const struct image_form *form, uint32_t height, uint32_t width,
                              struct image_layout *layout, struct error *err)
{
    uint64_t canvas_height, canvas_width, top = 0, left = 0;
    bool is_letterbox = form->fit == IMAGE_LETTERBOX;
    bool is_filled =
        (form->fit == IMAGE_INSIDE || is_letterbox) && form->resize_height && form->resize_width;
    resize_sides(form, height, width, layout);
    must(layout->x.length > 0 && layout->y.length > 0);
    canvas_height = layout->y.length;
    canvas_width = layout->x.length;
    if (is_filled) {
        canvas_height = form->resize_height;
        canvas_width = form->resize_width;
        uint64_t rest_y = canvas_height - layout->y.length;
        uint64_t rest_x = canvas_width - layout->x.length;
        top = is_letterbox ? rest_y / 2 : half(rest_y);
        left = is_letterbox ? rest_x / 2 : half(rest_x);
    }
    place_side(&layout->y, canvas_height, top, form->crop_height, form->crop_rounds_down);
    place_side(&layout->x, canvas_width, left, form->crop_width, form->crop_rounds_down);
    return check_size(form, layout, err);
}
