/* SPDX-License-Identifier: MIT */
/* The description of a medium for clients: they can tell which part of a picture a model sees. */
#include "config.h"

#include "server/model/intake/medium.h"

#include <inttypes.h>

#include "base/check.h"

static void print_image(const struct image_form *form, struct buf *out)
{
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

void medium_print(const struct medium *medium, struct buf *out)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    switch (medium->kind) {
    case MEDIUM_IMAGE:
        print_image(&medium->image, out);
        break;
    case MEDIUM_SOUND:
        buf_printf(out, "{\"rate\":%" PRIu32 "}", medium->rate);
        break;
    case MEDIUM_TEXT:
        buf_printf(out, "{\"max_tokens\":%" PRIu32 "}", medium->tokens_max);
        break;
    case MEDIUM_NONE:
    case MEDIUM_KINDS:
        unreachable();
    }
}
