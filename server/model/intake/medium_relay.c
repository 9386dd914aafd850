/* SPDX-License-Identifier: MIT */
/* Media of inputs of pipelines, which hand them on to their steps. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/language/words.h"
#include "server/model/intake/medium.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The pipeline may have steps that take less, or one length alone. */
static void bound(struct medium *medium)
{
    const struct rt_io *io = medium->io;
    uint64_t most = io->shape.rank ? (uint64_t)io->shape.dims[io->shape.rank - 1] : 1;
    bool is_fixed = io->shape.rank && !rt_io_is_dynamic(io, io->shape.rank - 1);
    if (medium->kind == MEDIUM_IMAGE) {
        for (int side = 0; side < 2; side++) {
            medium->sides_max[side] =
                (uint32_t)least(medium->sides_max[side], (uint64_t)io->shape.dims[1 + side]);
        }
        medium->image.height =
            rt_io_is_dynamic(io, 1) ? medium->image.height : medium->sides_max[0];
        medium->image.width = rt_io_is_dynamic(io, 2) ? medium->image.width : medium->sides_max[1];
    } else if (medium->kind == MEDIUM_SOUND) {
        medium->length = is_fixed ? most : least(medium->length, most);
        medium->length_max = least(medium->length_max, most);
    } else if (medium->kind == MEDIUM_TEXT) {
        medium->tokens = (uint32_t)(is_fixed ? most : least(medium->tokens, most));
        medium->tokens_max = (uint32_t)least(medium->tokens_max, most);
    }
}

enum status medium_relay(struct medium *medium, const struct rt_method *method, uint32_t input,
                         const uint32_t parts[MEDIUM_PARTS], struct medium **out, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    struct medium *relay = malloc(sizeof(*relay));
    *out = relay;
    if (!relay) {
        return error_set(err, ST_EXHAUSTED, "media: out of memory");
    }
    *relay = *medium;
    refs_init(&relay->refs);
    relay->base = medium_ref(medium);
    relay->input = input;
    relay->io = rt_method_input(method, input);
    bound(relay);
    for (int part = 0; medium->kind == MEDIUM_TEXT && part < MEDIUM_PARTS; part++) {
        relay->parts[part] = parts[part];
        if (parts[part] != MEDIUM_ABSENT) {
            relay->dtypes[part] = rt_method_input(method, parts[part])->dtype;
        }
    }
    return ST_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static const char *compare_images(const struct image_form *a, const struct image_form *b)
{
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

static const char *compare_sounds(const struct medium *a, const struct medium *b)
{
    return a->rate != b->rate           ? "rate"
           : !a->log_mel != !b->log_mel ? "features"
           : a->length != b->length     ? "seconds"
                                        : NULL;
}

/* Both may fill inputs beside the ids, but no other ones than each other. */
static const char *compare_texts(const struct medium *a, const struct medium *b)
{
    for (int part = MEDIUM_MASK; part < MEDIUM_PARTS; part++) {
        bool are_both = a->parts[part] != MEDIUM_ABSENT && b->parts[part] != MEDIUM_ABSENT;
        if (are_both && a->parts[part] != b->parts[part]) {
            return part == MEDIUM_MASK ? "mask" : "types";
        }
    }
    return a->tokens_max != b->tokens_max        ? "max_tokens"
           : a->tokens != b->tokens              ? "pad"
           : !words_are_same(a->words, b->words) ? "tokenizer"
                                                 : NULL;
}

bool medium_is_alike(const struct medium *a, const struct medium *b, const char **out_what)
{
    OBJ_CHECK(a, MEDIUM_MAGIC);
    OBJ_CHECK(b, MEDIUM_MAGIC);
    *out_what = a->kind != b->kind        ? "image, sound or text"
                : a->kind == MEDIUM_IMAGE ? compare_images(&a->image, &b->image)
                : a->kind == MEDIUM_SOUND ? compare_sounds(a, b)
                                          : compare_texts(a, b);
    return !*out_what;
}
